"""The simulated detector errs exactly as told."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from probox import GroundTruth, InputError
from probox_experiments import SimulatedDetector, synthetic_truth


def many_boxes(count: int = 20_000) -> GroundTruth:
    """Return one 100 x 80 object in each of many images."""
    images = dict.fromkeys(range(1, count + 1), (400, 300))
    return GroundTruth.from_boxes(
        ["cup", "dog", "car"], images, list(images), np.tile([100, 90, 199, 169], (count, 1)), [1] * count
    )


@pytest.mark.parametrize(
    "covariance",
    [4.0, [[9.0, 3.0], [3.0, 2.0]], [[[1.0, 0.0], [0.0, 25.0]], [[16.0, -6.0], [-6.0, 4.0]]], [[4.0, 4.0], [4.0, 4.0]]],
)
def test_corner_errors_have_the_covariance_asked_for(covariance: Any) -> None:
    truth = many_boxes()
    boxes = SimulatedDetector(corner_variance=covariance).detect(truth, seed=3).boxes
    errors = boxes - truth.masks.boxes
    wanted = np.asarray(covariance) * np.eye(2) if np.ndim(covariance) == 0 else np.asarray(covariance)
    wanted = np.broadcast_to(wanted, (2, 2, 2))
    for corner in range(2):
        drawn = errors[:, 2 * corner : 2 * corner + 2]
        np.testing.assert_allclose(drawn.mean(axis=0), 0.0, atol=0.15)
        np.testing.assert_allclose(np.cov(drawn.T), wanted[corner], atol=0.06 * np.abs(wanted).max())
    np.testing.assert_allclose(np.cov(errors.T)[:2, 2:], 0.0, atol=0.06 * np.abs(wanted).max())


def test_reported_covariances_are_reported() -> None:
    truth = synthetic_truth(5)
    matrix = np.array([[9.0, 3.0], [3.0, 2.0]])
    found = SimulatedDetector(reported_variance=matrix).detect(truth)
    assert found.covariances is not None
    assert (found.covariances == matrix).all()
    np.testing.assert_array_equal(found.boxes, truth.masks.boxes)


def test_detectors_that_differ_in_variance_err_in_the_same_directions() -> None:
    truth = many_boxes(50)
    small = SimulatedDetector(corner_variance=1.0).detect(truth, seed=[5, 2]).boxes - truth.masks.boxes
    large = (
        SimulatedDetector(corner_variance=9.0, reported_variance=4.0).detect(truth, seed=[5, 2]).boxes
        - truth.masks.boxes
    )
    np.testing.assert_allclose(large, 3.0 * small, atol=1e-9)
    other = SimulatedDetector(corner_variance=1.0).detect(truth, seed=[5, 3]).boxes - truth.masks.boxes
    assert not np.allclose(small, other)


def test_a_box_stays_a_box_however_small_the_object() -> None:
    truth = GroundTruth.from_boxes(["cup"], {1: (64, 48)}, [1] * 200, np.tile([30, 20, 31, 21], (200, 1)), [0] * 200)
    boxes = SimulatedDetector(corner_variance=100.0).detect(truth).boxes
    assert (boxes[:, 2:] >= boxes[:, :2]).all()


def test_labels_share_what_the_true_class_leaves() -> None:
    truth = many_boxes(4)
    found = SimulatedDetector(label_probability=0.4).detect(truth)
    np.testing.assert_allclose(found.label_probs, np.tile([0.3, 0.4, 0.3], (4, 1)), rtol=1e-6)
    found = SimulatedDetector(label_probability=0.0).detect(truth)
    np.testing.assert_allclose(found.label_probs, np.tile([0.5, 0.0, 0.5], (4, 1)), rtol=1e-6)


def test_objects_are_missed_at_the_rate_asked_for() -> None:
    truth = many_boxes()
    assert len(SimulatedDetector(miss_rate=0.3).detect(truth)) == pytest.approx(14_000, abs=300)
    assert len(SimulatedDetector(miss_rate=1.0).detect(truth)) == 0
    assert len(SimulatedDetector(miss_rate=0.0).detect(truth)) == 20_000


@pytest.mark.parametrize(
    ("order", "images", "probabilities"),
    [
        ("objects", [1, 1, 1, 2, 2, 2], [1.0, 0.9, 0.9, 1.0, 0.9, 0.9]),
        ("rounds", [1, 2, 1, 2, 1, 2], [1.0, 1.0, 0.9, 0.9, 0.9, 0.9]),
    ],
)
def test_duplicates_come_in_order(order: Any, images: list[int], probabilities: list[float]) -> None:
    truth = many_boxes(2)
    found = SimulatedDetector(detections_per_object=3, duplicate_probability=0.9, order=order).detect(truth)
    assert found.image_ids.tolist() == images
    np.testing.assert_allclose(found.scores, probabilities, rtol=1e-6)


def test_false_detections_lie_where_they_were_told_to() -> None:
    truth = many_boxes(300)
    detector = SimulatedDetector(miss_rate=1.0, false_per_image=4, false_probability=0.8, false_size=3)
    found = detector.detect(truth)
    assert len(found) == 1200
    np.testing.assert_array_equal(found.boxes[:, 2:] - found.boxes[:, :2], 2.0)
    x1, y1, x2, y2 = found.boxes.T
    assert ((x1 == 0) | (y1 == 0) | (x2 == 399) | (y2 == 299)).all()
    assert len({(x, y) for x, y in zip(x1, y1, strict=True)}) > 500
    np.testing.assert_allclose(found.scores, 0.8, rtol=1e-6)
    assert set(found.labels.tolist()) == {0, 1, 2}
    x1, y1, x2, y2 = dataclasses.replace(detector, false_place="anywhere").detect(truth).boxes.T
    assert ((x1 >= 0) & (y1 >= 0) & (x2 <= 399) & (y2 <= 299)).all()
    assert ((x1 > 0) & (y1 > 0) & (x2 < 399) & (y2 < 299)).mean() > 0.9


def test_false_detections_fit_images_that_are_smaller_than_they() -> None:
    truth = GroundTruth.from_boxes(["cup"], {1: (5, 3)}, [], np.zeros((0, 4)), [])
    found = SimulatedDetector(false_per_image=2, false_size=9).detect(truth)
    np.testing.assert_array_equal(found.boxes, [[0, 0, 4, 2]] * 2)


def test_the_same_seed_gives_the_same_detections() -> None:
    truth = synthetic_truth(10)
    detector = SimulatedDetector(corner_variance=4.0, miss_rate=0.2, false_per_image=2, order="shuffled")
    one, two, three = (detector.detect(truth, seed) for seed in (7, 7, 8))
    np.testing.assert_array_equal(one.boxes, two.boxes)
    np.testing.assert_array_equal(one.label_probs, two.label_probs)
    assert one.boxes.tolist() != three.boxes.tolist()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"label_probability": 1.5}, "expected label_probability between 0 and 1, but got 1.5"),
        ({"miss_rate": -0.1}, "expected miss_rate between 0 and 1"),
        ({"duplicate_probability": 2}, "expected duplicate_probability between 0 and 1"),
        ({"detections_per_object": 0}, "expected detections_per_object to be at least 1"),
        ({"false_per_image": -1}, "expected false_per_image to be at least 0"),
        ({"corner_variance": -1.0}, "expected corner_variance to be a variance"),
        ({"corner_variance": float("nan")}, "expected corner_variance to be a variance"),
        ({"reported_variance": [[1.0, 2.0], [2.0, 1.0]]}, "expected reported_variance to be a variance"),
        ({"reported_variance": [1.0, 2.0, 3.0]}, "of shape 2 x 2 or 2 x 2 x 2, but got 3"),
        ({"order": "random"}, "expected order to be"),
        ({"false_place": "middle"}, "expected false_place to be"),
    ],
)
def test_wrong_options_are_refused_by_name(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        SimulatedDetector(**options)
