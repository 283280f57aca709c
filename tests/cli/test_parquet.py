"""Parquet files on the command line: `probox convert`, `probox evaluate` and `probox validate`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.in_process import run

from probox.formats import read_detections, read_truth


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
    status, _, err = run("convert", case / "detections.json", found, "--truth", truth)
    assert status == 1
    assert "Parquet files cannot hold heatmaps; write RVC1 instead (--to rvc1)" in err
    assert not found.exists()
    found.write_bytes(b"PAR1 and nothing else")
    for command in ("evaluate", "validate"):
        status, out, err = run(command, truth, found)
        assert status == 1
        assert "found.parquet: cannot be read as Parquet" in out + err
    status, _, err = run("evaluate", found, found)
    assert status == 1
    assert err.count("\n") == 1
