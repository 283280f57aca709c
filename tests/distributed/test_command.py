"""`probox evaluate --dask`, and the example of analyses over a cluster."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import probox
from probox.cli import main
from probox.demo import make_demo

pytest.importorskip("distributed")


@pytest.fixture
def address(client: Any) -> str:
    return str(client.scheduler.address)


def run(capfd: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(["evaluate", *map(str, arguments)])
    out, err = capfd.readouterr()
    return int(caught.value.code or 0), out, err


def test_the_same_as_without(
    address: str, sets: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files = sets / "truth", sets / "found"
    alone = json.loads(run(capfd, *files, "--json", "--out", "alone", "--per-class", "--label-threshold", 0.2)[1])
    status, out, err = run(
        capfd, *files, "--json", "--out", "shared", "--per-class", "--label-threshold", 0.2, "--dask", address
    )
    assert (status, err) == (0, "")
    assert json.loads(out) == alone
    one, other = (probox.Evaluation.load(tmp_path / name / "found") for name in ("alone", "shared"))
    assert one.summary() == other.summary()
    assert {path.name for path in tmp_path.iterdir()} == {"alone", "shared"}


def test_several_files_and_formats(address: str, demo_files: Path, capfd: pytest.CaptureFixture[str]) -> None:
    files = [demo_files / name for name in ("truth.json", "deterministic.json", "probabilistic.json")]
    _, alone, _ = run(capfd, *files)
    status, shared, err = run(capfd, *files, "--dask", address, "--keep", "all")
    assert (status, shared) == (0, alone)
    assert "Traceback" not in err


def test_what_a_failed_run_kept_is_said_and_taken_up(
    address: str, sets: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = (sets / "truth", sets / "found", "--dask", address, "--out", "results")

    def fail(*_: Any) -> None:
        raise probox.InputError("cannot be written: No space left on device", file="results/found")

    with monkeypatch.context() as patched:
        patched.setattr("probox.cli.merge.keep_results", fail)
        status, out, err = run(capfd, *arguments)
    assert (status, out) == (1, "")
    assert err.splitlines() == [
        "8 finished parts are kept in results.partial; repeat the command to continue",
        "probox: results/found: cannot be written: No space left on device",
    ]
    status, _, err = run(capfd, *arguments, "--label-threshold", "0.5")
    assert status == 1
    assert "results.partial/found: an interrupted run with other settings (convention) left its results here; " in err
    status, _, err = run(capfd, *arguments)
    assert status == 0
    assert err.splitlines()[0] == "found: continued with 8 of 8 parts finished before"
    assert [path.name for path in tmp_path.iterdir()] == ["results"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--dask", "local", "--part", "1/2"], "--dask splits the images itself: leave out --part."),
        (["--dask", "local", "--threads", "2"], "--threads does not apply to the workers of --dask: leave it out."),
    ],
)
def test_options_that_do_not_go_together(
    demo_files: Path, capfd: pytest.CaptureFixture[str], options: list[str], problem: str
) -> None:
    status, out, err = run(capfd, demo_files / "truth.json", demo_files / "probabilistic.json", *options)
    assert (status, out) == (2, "")
    assert problem in err


def test_no_scheduler_is_one_line(
    demo_files: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("probox.support.dask_cluster.PATIENCE", 0.5)
    status, out, err = run(capfd, demo_files / "truth.json", demo_files / "probabilistic.json", "--dask", "127.0.0.1:1")
    assert (status, out) == (1, "")
    assert err.startswith("probox: no Dask scheduler answers at 127.0.0.1:1 (")
    assert err.count("\n") == 1


EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "dask_analyses.py"

pytest.importorskip("distributed")


@pytest.mark.slow
def test_analyses_of_several_results(tmp_path: Path) -> None:
    demo = make_demo(images=3)
    words = [sys.executable, str(EXAMPLE)]
    for name, found in demo.detectors.items():
        probox.evaluate(demo.truth, found).save(tmp_path / name)
        words.append(name)
    done = subprocess.run(
        [*words, "--dask", "local:2"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    for name in demo.detectors:
        result = probox.load(tmp_path / name)
        interval = result.intervals(replicates=200)["PDQ"]
        first = f"{name}: PDQ {interval.value:.4f} [{interval.low:.4f}, {interval.high:.4f}]\n"
        assert f"{first}{result.diagnose(replicates=200)}\n" in done.stdout
