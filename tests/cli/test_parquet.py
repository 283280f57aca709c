"""Parquet files and sets of many on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.in_process import run
from tests.formats.parquet.tables import by_image
from tests.readers import read_parquet

from probox.formats import read_detections, read_truth
from probox.formats.parquet.sets import open_detections, open_truth
from probox.notes import Note

pytest.importorskip("pyarrow")


@pytest.mark.parametrize("case", ["pbox_full", "mixed", "bbox"])
def test_there_and_back(golden_dir: Path, tmp_path: Path, case: str) -> None:
    truth, source = golden_dir / case / "ground_truth.json", golden_dir / case / "detections.json"
    there, found = tmp_path / "truth.parquet", tmp_path / "found.parquet"
    status, out, err = run("convert", truth, there)
    assert (status, out) == (0, "")
    assert "objects to" in err
    assert err.endswith("truth.parquet (Parquet)\n")
    status, out, _ = run("convert", source, found, "--truth", there, "--json")
    assert status == 0
    assert json.loads(out)["format"] == "parquet"
    status, _, err = run("convert", found, tmp_path / "back.json", "--truth", there, "--to", "rvc1")
    assert status == 0
    table = read_truth(truth)
    first, last = read_detections(source, table), read_detections(tmp_path / "back.json", table)
    for name in ("image_ids", "boxes", "label_probs", "covariances"):
        np.testing.assert_array_equal(getattr(first, name), getattr(last, name))
    summaries = []
    for a, b in ((truth, source), (there, found), (truth, found), (there, source)):
        status, out, _ = run("evaluate", a, b, "--json")
        assert status == 0
        summaries.append(json.loads(out)["summary"])
    assert summaries[1:] == summaries[:1] * 3
    assert run("validate", there, found)[0] == 0


def test_parquet_to_parquet_and_to_results(golden_dir: Path, tmp_path: Path) -> None:
    case = golden_dir / "bbox"
    found = tmp_path / "found.parquet"
    run("convert", case / "detections.json", found, "--truth", case / "ground_truth.json")
    assert run("convert", found, tmp_path / "copy.parquet")[0] == 0
    assert (tmp_path / "copy.parquet").stat().st_size > 0
    status, _, err = run("convert", found, tmp_path / "out.json", "--truth", case / "ground_truth.json")
    assert (status, "(COCO results)" in err) == (0, True)
    assert isinstance(json.loads((tmp_path / "out.json").read_text()), list)


@pytest.mark.parametrize("name", ["detections.json", "results.json", "found.parquet"])
def test_detections_need_the_truth(golden_dir: Path, tmp_path: Path, name: str) -> None:
    case = golden_dir / "bbox"
    source = tmp_path / name if name != "detections.json" else case / name
    if name != "detections.json":
        run("convert", case / "detections.json", source, "--truth", case / "ground_truth.json")
    target = tmp_path / ("out.json" if name == "found.parquet" else "out.parquet")
    status, _, err = run("convert", source, target)
    assert status == 1
    assert "without the images and classes of the ground truth; add --truth FILE" in err
    assert not target.exists()


def test_wrong_files(golden_dir: Path, tmp_path: Path) -> None:
    case = golden_dir / "probseg"
    truth, found = case / "ground_truth.json", tmp_path / "found.parquet"
    found.write_bytes(b"PAR1 and nothing else")
    for command in ("evaluate", "validate"):
        status, out, err = run(command, truth, found)
        assert status == 1
        assert "found.parquet: cannot be read as Parquet" in out + err
    status, _, err = run("evaluate", found, found)
    assert status == 1
    assert err.count("\n") == 1


def summary(*args: object) -> Any:
    status, out, err = run("evaluate", *args, "--json")
    assert status == 0, err
    return json.loads(out)["summary"]


@pytest.fixture
def sets(demo_files: Path, tmp_path: Path) -> Path:
    """A folder with the demo's truth and a detector's output, in three files each."""
    truth = demo_files / "truth.json"
    assert run("convert", truth, tmp_path / "truth", "--shards", 3)[0] == 0
    status, _, err = run(
        "convert", demo_files / "probabilistic.json", tmp_path / "found", "--truth", truth, "--shards", 3
    )
    assert (status, "found (Parquet)" in err) == (0, True)
    return tmp_path


def test_commands_read_sets_like_files(sets: Path, demo_files: Path) -> None:
    truth, found = demo_files / "truth.json", demo_files / "probabilistic.json"
    assert open_truth(sets / "truth").image_ids.tolist() == read_truth(truth).image_ids.tolist()
    assert open_detections(sets / "found").shards == 3
    expected = summary(truth, found)
    assert summary(sets / "truth", sets / "found") == expected
    assert summary(truth, sets / "found") == expected
    assert summary(sets / "truth", found) == expected
    some = ("--image-ids", "1,3,9")
    assert summary(sets / "truth", sets / "found", *some) == summary(truth, found, *some)
    status, out, _ = run("validate", sets / "truth", sets / "found")
    assert (status, "can be evaluated: 12 images" in out) == (0, True)
    assert run("table", sets / "truth", f"A={sets / 'found'}")[0] == 0
    assert run("rank", sets / "found", "--top", 2)[0] == 0


def test_sets_there_and_back(sets: Path, demo_files: Path) -> None:
    truth = read_truth(demo_files / "truth.json")
    status, out, _ = run("convert", sets / "found", sets / "more", "--shards", 5, "--json")
    assert (status, json.loads(out)["detections"]) == (0, len(read_parquet(sets / "found")))
    status, _, err = run("convert", sets / "more", sets / "back.json", "--truth", sets / "truth", "--to", "rvc1")
    assert status == 0, err
    first = by_image(read_detections(demo_files / "probabilistic.json", truth))
    last = read_detections(sets / "back.json", truth)
    for name in ("image_ids", "boxes", "label_probs", "covariances"):
        assert getattr(first, name).tolist() == getattr(last, name).tolist()
    assert run("convert", sets / "truth", sets / "truth.parquet")[0] == 0
    assert read_truth(sets / "truth.parquet").ids.tolist() == truth.ids.tolist()
    assert run("convert", sets / "truth.parquet", sets / "truth2", "--shards", 2)[0] == 0
    assert open_truth(sets / "truth2").shards == 2


def test_fewer_images_than_shards(sets: Path) -> None:
    status, _, err = run("convert", sets / "found", sets / "more", "--shards", 1000)
    assert status == 0
    assert f"note: {Note('fewer-shards', 12, wanted=1000, images=12)}" in err


def test_wrong_sets(sets: Path, demo_files: Path) -> None:
    found = sets / "found"
    for args, message in (
        ((found, found, "--shards", 2), "would replace what it is made from"),
        ((found / "part-00000-of-00003.parquet", found, "--shards", 2), "would replace what it is made from"),
        ((found, sets / "truth", "--shards", 2), "truth: exists and does not contain detections"),
        ((found, sets, "--shards", 2), "is not empty, and probox did not write its files"),
        (
            (found, sets / "x", "--shards", 2, "--to", "coco"),
            "--shards writes Parquet, but --to is coco: leave out one of the two",
        ),
        ((found, sets / "x", "--shards", 0), "0 is not in the range x>=1"),
        ((found, "s3://bucket/x.coco.json", "--truth", sets / "truth"), "COCO results cannot be written to a URL"),
        (("nothing://bucket/found", sets / "x.parquet"), "unknown scheme"),
    ):
        status, out, err = run("convert", *args)
        assert status in (1, 2)
        assert message in err
        assert (out, "Traceback" in err) == ("", False)
    (found / "part-00001-of-00003.parquet").unlink()
    status, _, err = run("evaluate", sets / "truth", found)
    assert status == 1
    assert "found/part-00001-of-00003.parquet: is missing: the set is incomplete" in err


def test_urls(sets: Path, demo_files: Path) -> None:
    pytest.importorskip("fsspec")
    truth = demo_files / "truth.json"
    url = f"file://{sets}"
    expected = summary(truth, demo_files / "probabilistic.json")
    assert summary(f"{url}/truth", f"{url}/found") == expected
    assert run("convert", f"{url}/found", f"{url}/camera=left", "--shards", 2)[0] == 0
    assert summary(truth, f"{url}/camera=left") == expected
    assert summary(truth, f"A={url}/camera=left") == expected
    assert run("convert", f"{url}/found", f"{url}/one.parquet")[0] == 0
    assert summary(f"{url}/truth", f"{url}/one.parquet") == expected
    assert run("fuse", f"{url}/truth", f"{url}/found", f"{url}/one.parquet", "--out", f"{url}/two.parquet")[0] == 0
    assert len(read_parquet(sets / "two.parquet"))
    status, _, err = run("fuse", f"{url}/truth", f"{url}/found", f"{url}/one.parquet", "--out", f"{url}/x.json")
    assert (status, "cannot be written to a URL" in err) == (1, True)
    assert not (sets / "file:").exists()
