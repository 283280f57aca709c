"""Validation: every kind of problem in one pass."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from probox.analysis.validation import Report, validate
from probox.notes import Note

GOOD = {"bbox": [1, 1, 5, 5], "label_probs": [0.5, 0.5], "covars": [[[1, 0], [0, 1]], [[1, 0], [0, 1]]]}
TRUTH: dict[str, Any] = {
    "images": [{"id": 1, "width": 40, "height": 30}, {"id": 2, "width": 40, "height": 30}],
    "categories": [{"id": 1, "name": "cup"}, {"id": 2, "name": "dog"}],
    "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 1, 4, 4]}],
}


@pytest.fixture
def check(tmp_path: Path) -> Any:
    def run(detections: Any, truth: Any = TRUTH) -> Report:
        (tmp_path / "truth.json").write_text(json.dumps(truth))
        (tmp_path / "found.json").write_text(json.dumps(detections))
        return validate(tmp_path / "truth.json", tmp_path / "found.json")

    return run


def kinds(report: Report) -> dict[str, int]:
    return {finding.kind: finding.count for finding in report.findings}


def rvc1(*rows: Any) -> dict[str, Any]:
    return {"classes": ["cup", "dog"], "detections": [[GOOD, *({**GOOD, **row} for row in rows)], [GOOD]]}


def test_nothing_wrong(check: Any) -> None:
    report = check(rvc1())
    assert report.ok
    assert report.findings == ()
    assert report.counts == {
        "images": 2, "objects": 1, "classes": 2, "detections": 2, "probabilistic": 2, "heatmaps": 0, "masks": 0,
    }  # fmt: skip


def test_detections_that_cannot_be_read_are_not_missing(check: Any) -> None:
    bad = {**GOOD, "covars": [[[1, 2], [2, 1]], [[1, 0], [0, 1]]]}
    report = check({"classes": ["cup", "dog"], "detections": [[bad], [bad]]})
    assert kinds(report) == {"covariance not positive semi-definite": 2}
    assert report.counts["detections"] == 2
    assert kinds(check({"classes": ["cup", "dog"], "detections": [[], []]})) == {"no detections": 1}


ROWS: list[tuple[dict[str, Any], str]] = [
    ({"bbox": [float("nan"), 0, 1, 1]}, "non-finite box"),
    ({"bbox": [1e12, 0, 1e13, 1]}, "non-finite box"),
    ({"bbox": [5, 5, 1, 1]}, "inverted box"),
    ({"label_probs": [float("inf"), 0]}, "non-finite label probability"),
    ({"label_probs": [1.5, 0]}, "label probability outside [0, 1]"),
    ({"label_probs": [-0.5, 0]}, "label probability outside [0, 1]"),
    ({"label_probs": [0.75, 0.75]}, "label probabilities above 1 in sum"),
    ({"covars": [[[1, 0.5], [0, 1]], [[1, 0], [0, 1]]]}, "covariance not symmetric"),
    ({"covars": [[[1, 2], [2, 1]], [[1, 0], [0, 1]]]}, "covariance not positive semi-definite"),
    ({"covars": [[[float("nan"), 0], [0, 1]], [[1, 0], [0, 1]]]}, "non-finite covariance"),
    ({"covars": [[1, 0], [0, 1]]}, "wrong type"),
    ({"label_probs": [0.5]}, "wrong length"),
    ({"bbox": [1, 2, 3]}, "wrong length"),
    ({"bbox": None}, "wrong type"),
    ({"bbox": [1, 2, 3, "4"]}, "wrong type"),
    ({"masks_file": "none.npy", "mask_id": 0}, "unusable heatmap"),
]


@pytest.mark.parametrize(("row", "kind"), ROWS)
def test_each_kind(check: Any, row: dict[str, Any], kind: str) -> None:
    report = check(rvc1(row))
    assert not report.ok
    assert kinds(report) == {kind: 1}
    assert "detections[0][1]" in str(report.errors[0].examples[0])


def test_all_kinds_at_once(check: Any) -> None:
    rows = [row for row, _ in ROWS for _ in range(5)]
    report = check(rvc1(*rows))
    expected: dict[str, int] = {}
    for _, kind in ROWS:
        expected[kind] = expected.get(kind, 0) + 5
    assert kinds(report) == expected
    assert all(len(finding.examples) == 3 for finding in report.findings)
    assert report.counts["detections"] == len(rows) + 2 - 5 * 5  # rows that cannot be read at all are not rows


def test_rounding_is_allowed(check: Any) -> None:
    assert check(rvc1({"label_probs": [0.5, 0.5009]}, {"label_probs": [1.0009, -0.0009]})).ok


def test_image_count(check: Any) -> None:
    report = check({"classes": ["cup"], "detections": [[], [], [{"bbox": [0, 0, 1, 1], "label_probs": [0.5]}]]})
    assert kinds(report) == {"image count": 1, }  # fmt: skip
    assert "expected detections of 2 images, as the ground truth has, but got 3" in str(report.errors[0].examples[0])


def test_classes(check: Any) -> None:
    report = check({"classes": ["Cup", "unicorn", "cup "], "detections": [[], []]})
    assert report.ok
    assert kinds(report) == {"unknown class": 1, "duplicate class": 1, "no detections": 1}


def test_coco_results(check: Any) -> None:
    rows = [
        {"image_id": 1, "category_id": 1, "bbox": [1, 1, 2, 2], "score": 0.5},
        {"image_id": 7, "category_id": 1, "bbox": [1, 1, 2, 2], "score": 0.5},
        {"image_id": 1, "category_id": 9, "bbox": [1, 1, 2, 2], "score": 0.5},
        {"image_id": 1, "category_id": 1, "bbox": [1, 1, 2, 2], "score": 7},
        {"image_id": 1, "category_id": 1, "bbox": [1, 1, -2, 2], "score": 0.5},
        {"image_id": 1, "category_id": 1, "bbox": [1, 1, 2, 2]},
        {"image_id": 1, "category_id": 1, "bbox": [90, 1, 2, 2], "score": 0.5},
    ]
    report = check(rows)
    assert {f.kind: f.count for f in report.errors} == {
        "unknown category": 1, "label probability outside [0, 1]": 1, "missing key": 1, "inverted box": 1,
    }  # fmt: skip
    assert {f.kind: f.count for f in report.warnings} == {"unknown image": 1, "box outside image": 1}
    assert "image 1: [4]: expected x1 <= x2" in " ".join(str(f.examples[0]) for f in report.errors)


def test_truth(check: Any) -> None:
    broken = json.loads(json.dumps(TRUTH))
    broken["images"].append({"id": 2, "width": 40, "height": 30})
    broken["annotations"] += [
        {"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 1, 4, 4]},
        {"id": 2, "image_id": 5, "category_id": 1, "bbox": [1, 1, 4, 4]},
        {"id": 3, "image_id": 1, "category_id": 5, "bbox": [1, 1, 4, 4]},
        {"id": 4, "image_id": 1, "category_id": 1, "bbox": [1, 1, -4, 4]},
        {"id": 5, "image_id": 1, "category_id": 1, "segmentation": {"size": [3, 3], "counts": [9]}},
        {"id": 6, "image_id": 1, "category_id": 1, "segmentation": [[1, 2, 3]]},
    ]
    report = check(rvc1({"bbox": [5, 5, 1, 1]}), broken)
    assert kinds(report) == {
        "duplicate id": 2, "unknown image": 1, "unknown category": 1, "inverted box": 2, "mask size": 1, "polygon": 1,
    }  # fmt: skip


def test_corners_outside(check: Any) -> None:
    report = check(rvc1(
        {"bbox": [-1.5, 1, 5, 5]},
        {"bbox": [-0.9, 1, 5, 5]},
        {"bbox": [1, 1, 39.9, 5]},
        {"bbox": [1, 1, 5, 30.5]},
        {"bbox": [-9, -9, 60, 60], "covars": [[[0, 0], [0, 0]], [[0, 0], [0, 0]]]},
    ))  # fmt: skip
    assert report.ok
    assert kinds(report) == {"corner outside image": 2}
    first, second = report.warnings[0].examples
    assert "detections[0][1]: x1 lies 1.5 px outside the image, with a std of 1 px" in str(first)
    assert "detections[0][4]: y2 lies 1.5 px outside" in str(second)
    assert 'clip="corners"' in str(first)


def test_unreadable_files(check: Any, tmp_path: Path) -> None:
    report = validate(tmp_path / "none.json", tmp_path / "none.json")
    assert not report.ok
    assert report.counts == {}
    assert report.notes == (Note("detections-not-checked"),)
    check(rvc1())
    (tmp_path / "found.json").write_text('{"classes": ["cup", "dog"], "detections": [[{"bbox": [5,5,1,1], '
                                         '"label_probs": [0, 1]}')  # fmt: skip
    report = validate(tmp_path / "truth.json", tmp_path / "found.json")
    assert kinds(report) == {"not JSON": 1, "inverted box": 1}


def test_challenge(golden_dir: Path, tmp_path: Path) -> None:
    assert validate(golden_dir / "rvc1" / "gt", golden_dir / "rvc1" / "det").ok
    (tmp_path / "000000.json").write_text(json.dumps({"classes": ["cup"], "detections": [[]]}))
    (tmp_path / "zzz.json").write_text("{}")
    report = validate(golden_dir / "rvc1" / "gt", tmp_path)
    assert kinds(report) == {"image count": 1, "unusable file": 1, "unknown sequence": 1}


def test_heatmaps(golden_dir: Path, tmp_path: Path) -> None:
    truth = golden_dir / "probseg" / "ground_truth.json"
    detections = json.loads((golden_dir / "probseg" / "detections.json").read_text())
    for name in ("100", "107", "114", "121", "128"):
        (tmp_path / f"{name}.npy").write_bytes((golden_dir / "probseg" / f"{name}.npy").read_bytes())
    np.save(tmp_path / "135.npy", np.load(golden_dir / "probseg" / "135.npy") + np.float32(1.5))
    (tmp_path / "d.json").write_text(json.dumps(detections))
    report = validate(truth, tmp_path / "d.json")
    assert kinds(report) == {"heatmap range": 3}
    (tmp_path / "100.npy").unlink()
    assert kinds(validate(truth, tmp_path / "d.json")) == {"heatmap range": 3, "unusable heatmap": 4}


def test_the_report_is_json(check: Any) -> None:
    report = check(rvc1({"bbox": [5, 5, 1, 1]}, {"bbox": [-1.5, 1, 5, 5]}))
    plain = json.loads(json.dumps(report.to_dict()))
    assert plain["ok"] is False
    assert plain["errors"][0]["code"] == "inverted-box"
    assert plain["warnings"][0]["count"] == 1
