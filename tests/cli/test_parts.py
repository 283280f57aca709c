"""Parts and merges on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli import in_process

import probox
from probox.evaluation.parts import KEEP


def run(*args: object) -> tuple[int, str, str]:
    status, out, err = in_process.run(*args)
    return status, out, " ".join(err.split())


@pytest.fixture
def parts(demo_files: Path, tmp_path: Path) -> list[Path]:
    """Three parts of two detectors."""
    folders = [tmp_path / "parts" / str(number) for number in (1, 2, 3)]
    for number, folder in enumerate(folders, 1):
        files = [demo_files / name for name in ("truth.json", "deterministic.json", "probabilistic.json")]
        status, _, err = run("evaluate", *files, "--part", f"{number}/3", "--out", folder)
        assert status == 0, err
        assert f"detections; part {number} of 3" in err
    return folders


def test_parts_of_several_files_are_merged_by_name(parts: list[Path], demo_files: Path, tmp_path: Path) -> None:
    status, out, err = run("merge", *reversed(parts), "--out", tmp_path / "R")
    assert (status, f"probabilistic: 3 parts, 12 images; wrote {tmp_path / 'R' / 'probabilistic'}" in err) == (0, True)
    _, whole, _ = run("evaluate", *(demo_files / n for n in ("truth.json", "deterministic.json", "probabilistic.json")))
    assert out == whole
    files = demo_files / "truth.json", demo_files / "probabilistic.json"
    assert probox.load(tmp_path / "R" / "probabilistic").summary() == probox.evaluate(*files).summary()


def test_json_describes_the_merge(parts: list[Path], tmp_path: Path) -> None:
    folders = [folder / "probabilistic" for folder in parts]
    status, out, _ = run("merge", *folders, "--out", tmp_path / "R", "--json")
    said = json.loads(out)
    assert (status, said["parts"], said["part"], said["counts"]["images"]) == (0, 3, None, 12)
    assert (tmp_path / "R" / "evaluation.json").is_file()


def test_incomplete_parts_make_a_part(parts: list[Path], tmp_path: Path) -> None:
    status, _, err = run("merge", parts[0], parts[2], "--out", tmp_path / "R")
    assert (status, err) == (1, "probox: part 2 of 3 is missing; evaluate it with --part 2/3")
    assert not (tmp_path / "R").exists()
    status, _, err = run("merge", parts[0], parts[2], "--out", tmp_path / "R", "--incomplete")
    assert (status, "; 2 of 3 parts; wrote" in err) == (0, True)
    status, _, err = run("merge", parts[1], tmp_path / "R", "--out", tmp_path / "S")
    assert status == 0, err


def test_wrong_parts(parts: list[Path], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    remedy = "give folders written by `probox evaluate --part K/N --out DIR`"
    for given, message in {
        (parts[0], tmp_path / "none"): f"none: no such folder; {remedy}",
        (parts[0], tmp_path / "empty"): f"empty: contains no results; {remedy}",
        (
            parts[0],
            parts[1] / "deterministic",
        ): f"is a result, but {parts[0]} is a folder of results; give results only",
        (parts[0], parts[0]): "duplicate of part 1 of 3 (also ",
    }.items():
        status, _, err = run("merge", *given, "--out", tmp_path / "R")
        assert (status, message in err) == (1, True), err


def test_parts_are_not_replaced(parts: list[Path]) -> None:
    status, _, err = run("merge", *parts, "--out", parts[0])
    assert status == 1
    assert "would replace one of the parts; choose another --out" in err


def test_a_merged_result_hides_no_others(parts: list[Path], tmp_path: Path) -> None:
    folders = [folder / "probabilistic" for folder in parts]
    assert run("merge", *parts, "--out", tmp_path / "R")[0] == 0
    status, _, err = run("merge", *folders, "--out", tmp_path / "R")
    assert (status, err) == (
        1,
        f"probox: {tmp_path / 'R' / 'deterministic'}: would be hidden by a result in --out; choose another --out",
    )
    assert not (tmp_path / "R" / "evaluation.json").exists()
    for _ in range(2):  # a result of the same kind is replaced
        assert run("merge", *folders, "--out", tmp_path / "S")[0] == 0


def test_results_are_not_kept_at_urls(demo_files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = demo_files / "truth.json", demo_files / "probabilistic.json"
    status, _, err = run("evaluate", *files, "--out", "s3://bucket/R")
    assert (status, "results are saved to folders, not to URLs; name a folder" in err) == (1, True)
    for keep in KEEP:
        with pytest.raises(probox.InputError, match="not to URLs"):
            probox.evaluate(*files, keep=keep).save("memory://bucket/R")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("keep", ["matches", "summary"])
def test_what_is_kept_has_the_same_numbers(demo_files: Path, tmp_path: Path, keep: str) -> None:
    files = demo_files / "truth.json", demo_files / "probabilistic.json"
    _, out, _ = run("evaluate", *files, "--json", "--per-class", "--per-size")
    whole = json.loads(out)
    status, out, err = run(
        "evaluate",
        *files,
        "--keep",
        keep,
        "--json",
        "--per-class",
        "--per-size",
        "--intervals",
        "--out",
        tmp_path,
    )
    assert status == 0, err
    kept = json.loads(out)
    assert kept["summary"].items() <= whole["summary"].items()
    assert kept["counts"] == whole["counts"]
    for groups in ("per_class", "per_size"):
        for name, numbers in kept[groups].items():
            assert numbers.items() <= whole[groups][name].items()
    assert set(kept["intervals"]["columns"]) == set(kept["summary"])
    assert probox.load(tmp_path / "probabilistic").keep == keep
    status, _, err = run("diagnose", tmp_path / "probabilistic")
    assert status == 1
    assert f"contains only the {keep} of an evaluation, not its tables; evaluate again with --keep all" in err
