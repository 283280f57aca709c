"""`probox validate`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli import in_process


def run(*args: object) -> tuple[int, str, str]:
    return in_process.run("validate", *args)


@pytest.fixture
def bad(golden_dir: Path, tmp_path: Path) -> Path:
    """Return golden detections with an inverted box and a probability of 5."""
    detections = json.loads((golden_dir / "bbox" / "detections.json").read_text())
    detections["detections"][0][0]["bbox"] = [9, 9, 1, 1]
    detections["detections"][0][1]["label_probs"] = [5, 0, 0, 0, 0, 0]
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(detections))
    return path


def test_good_files(golden_dir: Path) -> None:
    case = golden_dir / "mixed"
    status, out, err = run(case / "ground_truth.json", case / "detections.json")
    assert status == 0
    assert "can be evaluated: 40 images, 130 objects, 6 classes, 160 detections, 105 probabilistic, 0 heatmaps" in out
    assert err == ""


def test_bad_files(golden_dir: Path, bad: Path) -> None:
    status, out, err = run(golden_dir / "bbox" / "ground_truth.json", bad)
    assert status == 1
    assert "error: inverted box (1)\n" in out
    assert f"  {bad}: image 100: detections[0][0]: expected x1 <= x2 and y1 <= y2" in out
    assert "error: label probability outside [0, 1] (1)\n" in out
    assert "cannot be evaluated" in out
    assert err == ""


def test_json(golden_dir: Path, bad: Path) -> None:
    status, out, _ = run(golden_dir / "bbox" / "ground_truth.json", bad, "--json")
    assert status == 1
    report = json.loads(out)
    assert [(error["code"], error["count"]) for error in report["errors"]] == [
        ("inverted-box", 1),
        ("label-probability-outside-0-1", 1),
    ]
    assert report["warnings"] == []
    assert report["counts"]["detections"] == 104


def test_missing_files(tmp_path: Path) -> None:
    status, out, _ = run(tmp_path / "no.json", tmp_path / "no.json")
    assert status == 1
    assert "no such file; check the path" in out
