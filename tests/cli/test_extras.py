"""Each extra installs what its commands import; without it, they name it in one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.amounts import others_slow
from tests.hiding import hide_all_but

COMMANDS = [
    ("report", "draw {demo}/results/deterministic --images {demo}/images --out {here}/pictures"),
    ("parquet", "convert {demo}/deterministic.json {here}/deterministic.parquet --truth {demo}/truth.json"),
    ("report", "plot {demo}/results/deterministic --out {here}/plots"),
    ("report", "report {demo}/results/deterministic --images {demo}/images --out {here}/report"),
    ("distributed", "evaluate {demo}/truth.json {demo}/deterministic.json --dask local:1 --out {here}/shared"),
]
BASE = [
    "demo",
    "evaluate {demo}/truth.json {demo}/deterministic.json --measures all --intervals",
    "diagnose {demo}/results/deterministic",
    "validate {demo}/truth.json {demo}/deterministic.json",
    "calibrate fit {demo}/truth.json {demo}/probabilistic.json --out {here}/calibration.json",
    "fuse {demo}/truth.json {demo}/deterministic.json {demo}/probabilistic.json --out {here}/fused.json",
    "rank {demo}/probabilistic.json",
    "convert {demo}/deterministic.json {here}/deterministic.rvc1.json --truth {demo}/truth.json",
]


def run_with(requirement: str, command: str, demo: Path, here: Path) -> subprocess.CompletedProcess[str]:
    """Run a command with only this requirement installed."""
    (here / "hiding").mkdir()
    return subprocess.run(
        [sys.executable, "-m", "probox", *(word.format(demo=demo, here=here) for word in command.split())],
        capture_output=True, text=True, env=hide_all_but(requirement, folder=here / "hiding"), check=False, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize(("extra", "command"), others_slow(COMMANDS, several=True))
def test_an_extra_is_enough_for_its_commands(extra: str, command: str, demo_files: Path, tmp_path: Path) -> None:
    done = run_with(f"probox[{extra}]", command, demo_files, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("extra", "command"), others_slow(COMMANDS, several=True))
def test_a_command_names_its_missing_extra(extra: str, command: str, demo_files: Path, tmp_path: Path) -> None:
    done = run_with("probox", command, demo_files, tmp_path)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert f"'probox[{extra}]'" in line


def test_the_demo_is_saved_without_pictures(tmp_path: Path) -> None:
    done = run_with("probox", "demo --save {here}/demo", tmp_path, tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (tmp_path / "demo").glob("[!.]*")) == [
        "deterministic.json",
        "probabilistic.json",
        "truth.json",
    ]
    said = " ".join(done.stderr.split())
    assert "note: no images were written, as they need Pillow; install it with: " in said
    assert "'probox[report]'" in said
    assert "probox evaluate" in said
    assert "probox draw" not in said


@pytest.mark.parametrize("command", others_slow(BASE))
def test_other_commands_need_no_extra(command: str, demo_files: Path, tmp_path: Path) -> None:
    done = run_with("probox", command, demo_files, tmp_path)
    assert done.returncode == 0, done.stderr
