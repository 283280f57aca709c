"""What the name of OUT means to `probox convert`: the same as to other commands, but for a plain .json."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from probox import read_truth
from probox.cli import main

Convert = Callable[..., str]


@pytest.fixture
def convert(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Convert:
    """Return a function that converts a file and returns the format, or what was wrong."""

    def run(*words: object) -> str:
        with pytest.raises(SystemExit):
            main(["convert", *map(str, words), "--json"])
        streams = capsys.readouterr()
        return str(json.loads(streams.out)["format"]) if streams.out else streams.err

    return run


@pytest.fixture
def sources(convert: Convert, golden_dir: Path, tmp_path: Path) -> dict[str, Path]:
    """Return detections in each format, and their truth."""
    files = {"truth": golden_dir / "bbox" / "ground_truth.json", "rvc1": golden_dir / "bbox" / "detections.json"}
    for form in ("coco", "parquet"):
        files[form] = tmp_path / f"in.{form}"
        assert convert(files["rvc1"], files[form], "--truth", files["truth"], "--to", form) == form
    return files


@pytest.mark.parametrize("given", ["coco", "rvc1", "parquet"])
def test_with_truth(convert: Convert, sources: dict[str, Path], tmp_path: Path, given: str) -> None:
    plain = "rvc1" if given == "coco" else "coco"
    meant = {"a.coco.json": "coco", "a.bbox.json.gz": "coco", "a.rvc1.json": "rvc1", "a.rvc1.json.gz": "rvc1",
             "a.parquet": "parquet", "b.PARQUET": "parquet", "a.json": plain, "a.json.gz": plain}  # fmt: skip
    for name, form in meant.items():
        assert convert(sources[given], tmp_path / name, "--truth", sources["truth"]) == form, name


@pytest.mark.parametrize("given", ["coco", "rvc1"])
def test_without_truth(convert: Convert, sources: dict[str, Path], tmp_path: Path, given: str) -> None:
    for name in (f"a.{given}.json", "a.json", "a.json.gz", "a"):
        assert convert(sources[given], tmp_path / name) == given, name
    other = {"coco": ("a.rvc1.json", "RVC1"), "rvc1": ("b.coco.json", "COCO results")}
    for name, title in (other[given], ("a.parquet", "Parquet")):
        assert f"cannot become {title} without the images and classes" in convert(sources[given], tmp_path / name)
        assert not (tmp_path / name).exists()


def test_parquet_without_truth(convert: Convert, sources: dict[str, Path], tmp_path: Path) -> None:
    assert convert(sources["parquet"], tmp_path / "a.parquet") == "parquet"
    assert convert(sources["parquet"], tmp_path / "a") == "parquet"
    assert "cannot become COCO results without" in convert(sources["parquet"], tmp_path / "a.json")


def test_ground_truth_becomes_parquet_and_stays_ground_truth(
    convert: Convert, sources: dict[str, Path], tmp_path: Path
) -> None:
    assert convert(sources["truth"], tmp_path / "truth.parquet") == "parquet"
    assert convert(tmp_path / "truth.parquet", tmp_path / "copy.parquet") == "parquet"
    assert read_truth(tmp_path / "copy.parquet").boxes.tolist() == read_truth(sources["truth"]).boxes.tolist()
    broken = json.loads(sources["truth"].read_text())
    broken["annotations"][0]["image_id"] = -1
    (tmp_path / "broken.json").write_text(json.dumps(broken))
    said = convert(tmp_path / "broken.json", tmp_path / "broken.parquet")
    assert "annotations[0].image_id: expected the id of one of the" in said
