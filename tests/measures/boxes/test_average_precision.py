"""Average precision where it is easy to say by hand, and where it is not defined."""

from __future__ import annotations

import numpy as np
import pytest
from tests.measures.boxes.conftest import CLASSES, found_of

from probox import Detections, GroundTruth, InputError
from probox.measures.boxes import average_precision


def test_right_wrong_right(truth):
    result = average_precision(
        truth, found_of([[0, 0, 100, 100], [0, 300, 50, 350], [200, 0, 300, 100]], [0.9, 0.8, 0.7])
    )
    # Precision 1 up to recall 0.5 (51 points), 2/3 up to recall 1 (50 points).
    assert result.per_class().columns["AP"][0] == pytest.approx((51 + 50 * 2 / 3) / 101, abs=1e-12)
    assert result.map == pytest.approx((51 + 50 * 2 / 3) / 101 / 2, abs=1e-12)
    assert (result.ar_1, result.ar_10) == (0.25, 0.5)
    assert list(result.per_class()) == list(CLASSES)
    assert len(result.per_size()) == 4
    curve = result.curve("cup", 0.75)
    assert curve.recall[50] == 0.5
    np.testing.assert_allclose(curve.precision[[0, 50, 51, 100]], [1, 1, 2 / 3, 2 / 3], atol=1e-12)
    assert curve.score[[0, 50, 51, 100]].tolist() == [0.9, 0.9, 0.7, 0.7]


def test_columns_of_thresholds_are_those_of_the_summary(truth):
    # An overlap of 0.77 is enough for six thresholds, 0.50 to 0.75.
    result = average_precision(truth, found_of([[0, 0, 100, 77], [200, 0, 300, 77]], [0.9, 0.8]))
    first = result.per_class()["cup"]
    np.testing.assert_allclose([first[name] for name in ("AP", "AP50", "AP75")], [0.6, 1, 1], atol=1e-12)
    np.testing.assert_allclose([result.map, result.ap50, result.ap75], [0.3, 0.5, 0.5], atol=1e-12)
    less = average_precision(truth, found_of([[0, 0, 100, 74], [200, 0, 300, 74]], [0.9, 0.8]))
    assert (less.per_class().columns["AP75"][0], less.ap75) == (0, 0)
    assert less.per_size().columns["AP75"][[0, 3]].tolist() == [0, 0]  # all, and large: 0.74 is below
    # The object of the second class, which nobody found, is not large.
    np.testing.assert_allclose(result.per_size().columns["AP75"][[0, 3]], [0.5, 1], atol=1e-12)
    assert (less.per_class().columns["AP50"][0], less.ap50) == pytest.approx((1, 0.5), abs=1e-12)


def test_no_objects_anywhere():
    empty = GroundTruth.from_boxes(CLASSES, {1: (400, 400)}, [], [], [])
    result = average_precision(empty, found_of([[0, 0, 9, 9]], [0.5]))
    assert all(np.isnan(value) for value in result.summary().values())
    assert repr(result) == "AveragePrecisionResult(mAP=nan, AP50=nan, AP75=nan)"


def test_curves_are_named(truth):
    result = average_precision(truth, found_of([], []))
    assert np.isnan(result.curve("television").precision).all()  # a synonym of tv
    with pytest.raises(InputError, match="unknown class 'cat'; use one of cup, dog, tv"):
        result.curve("cat")
    with pytest.raises(InputError, match="expected iou"):
        result.curve("cup", 0.52)
    with pytest.raises(InputError, match="expected size"):
        result.curve("cup", size="huge")


@pytest.mark.parametrize("classes", [1, 2, 7])
def test_averages_do_not_depend_on_how_many_classes_are_looked_at(
    classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are the means of all tables at once, to the bit."""
    random = np.random.default_rng(classes)
    names, labels = [f"class {number}" for number in range(classes)], random.integers(0, classes, 60)
    corners = random.uniform(0, 200, (60, 2))
    boxes = np.concatenate([corners, corners + random.uniform(5, 150, (60, 2))], axis=1)
    images = np.sort(random.integers(1, 5, 60))
    truth = GroundTruth.from_boxes(names, dict.fromkeys(range(1, 5), (400, 400)), images, boxes, labels)
    probs = np.full((60, classes), 0.01)
    probs[np.arange(60), labels] = random.uniform(0.2, 0.9, 60)
    found = Detections(classes=names, image_ids=images, boxes=boxes + np.array([0, 0, 9, 4]), label_probs=probs)
    monkeypatch.setattr("probox.measures.boxes.mean_ap._CLASSES_AT_ONCE", 3)
    result = average_precision(truth, found)
    for row, levels in enumerate((slice(None), slice(0, 1), slice(5, 6))):
        for size in range(4):
            values = result.precision[levels, :, :, size]
            means = np.add.reduce(values, axis=(0, 1)) / (values.shape[0] * values.shape[1])
            np.testing.assert_array_equal(result.ap[row, :, size], means)
    np.testing.assert_array_equal(result.tables(0, classes)[2], result.recall)
    curve = result.curve(names[-1], 0.75)
    np.testing.assert_array_equal(curve.precision, result.precision[5, :, -1, 0])
    np.testing.assert_array_equal(curve.score, result.score[5, :, -1, 0])
