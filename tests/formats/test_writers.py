"""Writers: what they write comes back, and a failure leaves nothing behind."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.readers import read_coco_results, read_rvc1, read_rvc1_truth

from probox import Detections, GroundTruth, InputError
from probox.formats import read_detections, read_truth, write_coco_results, write_rvc1
from probox.notes import Note


def assert_same(read: Detections, written: Detections, *columns: str) -> None:
    for column in columns:
        np.testing.assert_array_equal(getattr(read, column), getattr(written, column), err_msg=column)
    assert (read.covariances is None) == (written.covariances is None or not len(written))
    if read.covariances is not None:
        np.testing.assert_array_equal(read.covariances, written.covariances)


coordinates = st.floats(-500, 2000, allow_nan=False)
probabilities = st.floats(0, 1, width=32)


@st.composite
def tables(draw: st.DrawFn) -> Detections:
    """Draw detections in the images of the `truth` fixture, grouped by image as RVC1 keeps them."""
    n = draw(st.integers(0, 5))
    images = sorted(draw(st.lists(st.sampled_from([4, 9]), min_size=n, max_size=n)))
    corners = np.array(draw(st.lists(coordinates, min_size=4 * n, max_size=4 * n))).reshape(n, 2, 2)
    labels = np.array(draw(st.lists(probabilities, min_size=2 * n, max_size=2 * n)), np.float32).reshape(n, 2)
    labels /= np.maximum(labels.sum(axis=1, keepdims=True), 1)
    covariances = None
    if draw(st.booleans()):
        roots = np.array(draw(st.lists(st.floats(-50, 50), min_size=8 * n, max_size=8 * n))).reshape(n, 2, 2, 2)
        covariances = roots @ roots.swapaxes(-1, -2)
        covariances[..., 1, 0] = covariances[..., 0, 1]
    return Detections(
        classes=["cup", "dog"],
        image_ids=np.array(images, np.int64),
        boxes=np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1),
        label_probs=labels,
        covariances=covariances,
    )


fixture_is_constant = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(found=tables(), name=st.sampled_from(["d.json", "d.json.gz"]))
@fixture_is_constant
def test_rvc1_round_trip(truth: GroundTruth, tmp_path: Path, found: Detections, name: str) -> None:
    assert write_rvc1(tmp_path / name, found, truth) == ()
    read = read_rvc1(tmp_path / name, truth)
    assert_same(read, found, "classes", "image_ids", "boxes", "label_probs", "labels", "scores", "extents")
    json.loads((gzip.decompress if name.endswith("gz") else bytes)((tmp_path / name).read_bytes()))


@given(found=tables())
@fixture_is_constant
def test_coco_results_round_trip(truth: GroundTruth, tmp_path: Path, found: Detections) -> None:
    assert write_coco_results(tmp_path / "d.json", found, truth) == ()
    read = read_coco_results(tmp_path / "d.json", truth)
    assert_same(read, found, "classes", "image_ids", "label_probs", "labels", "scores")
    np.testing.assert_array_equal(read.boxes[:, :2], found.boxes[:, :2])
    # No width makes x + width hit every x2 to the last bit, but it never misses by more than rounding.
    np.testing.assert_allclose(read.boxes, found.boxes, rtol=0, atol=1e-12)
    json.loads((tmp_path / "d.json").read_bytes())


@pytest.mark.parametrize("case", ["bbox", "mixed", "outside", "pbox_corr", "pbox_huge", "pbox_tiny"])
def test_golden_round_trips(golden_dir: Path, tmp_path: Path, case: str) -> None:
    truth = read_truth(golden_dir / case / "ground_truth.json")
    found = read_detections(golden_dir / case / "detections.json", truth)
    write_rvc1(tmp_path / "r.json", found, truth)
    write_coco_results(tmp_path / "c.json", found, truth)
    columns = ("image_ids", "label_probs", "labels", "scores")
    assert_same(read_detections(tmp_path / "r.json", truth), found, "boxes", *columns)
    assert_same(read_detections(tmp_path / "c.json", truth), found, *columns)


def test_stated_sizes_and_scores_come_back(truth: GroundTruth, tmp_path: Path) -> None:
    rows = [{"image_id": 9, "category_id": 3, "bbox": [0.1, 0.7, 12.3, 4.56], "score": 0.4321}]
    (tmp_path / "a.json").write_text(json.dumps(rows))
    found = read_detections(tmp_path / "a.json", truth)
    write_coco_results(tmp_path / "b.json", found, truth)
    assert json.loads((tmp_path / "b.json").read_text()) == rows  # no all_scores: the score says it all


def test_heatmaps_round_trip(golden_dir: Path, tmp_path: Path) -> None:
    truth = read_truth(golden_dir / "probseg" / "ground_truth.json")
    found = read_detections(golden_dir / "probseg" / "detections.json", truth)
    write_rvc1(tmp_path / "out.json.gz", found, truth)
    read = read_detections(tmp_path / "out.json.gz", truth)
    assert_same(read, found, "boxes", "label_probs", "image_ids")
    assert read.heatmaps is not None
    assert found.heatmaps is not None
    for mine, theirs in zip(read.heatmaps, found.heatmaps, strict=True):
        np.testing.assert_array_equal(mine, theirs)
        assert mine is not None
        assert theirs is not None
        assert mine.dtype == theirs.dtype
    with pytest.raises(InputError, match="probox writes no heatmaps to COCO results"):
        write_coco_results(tmp_path / "c.json", found, truth)
    assert not (tmp_path / "c.json").exists()


def test_challenge_folder_round_trip(golden_dir: Path, tmp_path: Path) -> None:
    truth = read_rvc1_truth(golden_dir / "rvc1" / "gt")
    found = read_detections(golden_dir / "rvc1" / "det", truth)
    write_rvc1(tmp_path / "submission", found, truth)
    assert sorted(file.name for file in (tmp_path / "submission").iterdir()) == ["000000.json", "000001.json"]
    columns = ("boxes", "label_probs", "image_ids", "labels", "scores")
    assert_same(read_detections(tmp_path / "submission", truth), found, *columns)
    write_rvc1(tmp_path / "one.json", found, truth)
    assert_same(read_detections(tmp_path / "one.json", truth), found, *columns)


def detections(**changes: Any) -> Detections:
    columns: dict[str, Any] = {
        "classes": ["dog", "unicorn"],
        "image_ids": [9, 4],
        "boxes": [[0, 0, 1, 1], [0, 0, 1, 1]],
        "label_probs": [[0.25, 0.75], [0.75, 0.25]],
    }
    return Detections(**(columns | changes))


def test_classes_that_a_format_lacks_are_said(truth: GroundTruth, tmp_path: Path) -> None:
    notes = write_coco_results(tmp_path / "d.json", detections(), truth)
    assert notes == (
        Note("stated-class-replaced", 1),
        Note("lost-classes", 1, total=2, names="unicorn"),
    )
    rows = json.loads((tmp_path / "d.json").read_text())
    assert [row["category_id"] for row in rows] == [7, 7]
    assert [row["score"] for row in rows] == [0.25, 0.75]
    assert [row["all_scores"] for row in rows] == [[0, 0.25], [0, 0.75]]
    notes = write_rvc1(tmp_path / "d.json", detections(labels=[0, 0]), truth)
    assert notes == (Note("stated-class-lost", 1),)


def test_images_that_the_truth_lacks(truth: GroundTruth, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="image 5: 1 detection in images that are missing from the ground truth"):
        write_rvc1(tmp_path / "d.json", detections(image_ids=[9, 5]), truth)
    with pytest.raises(InputError, match="folders of sequences need RVC1 ground truth"):
        write_rvc1(tmp_path / "folder", detections(), truth)
    assert list(tmp_path.glob("d*")) == []
