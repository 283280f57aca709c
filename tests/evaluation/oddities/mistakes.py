"""Mistakes that people make when they store detections, applied to good ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from probox import Detections, GroundTruth

Mistake = Callable[[GroundTruth, Detections], Detections]


def _boxes(found: Detections, boxes: np.ndarray) -> Detections:
    return dataclasses.replace(found, boxes=boxes, extents=None)


def shapes(truth: GroundTruth, found: Detections) -> np.ndarray:
    rows = np.searchsorted(truth.image_ids, found.image_ids)
    return np.tile(np.stack([truth.dataset.widths[rows], truth.dataset.heights[rows]], axis=1).astype(float), 2)


def corners_as_sizes(truth: GroundTruth, found: Detections) -> Detections:
    low, high = found.boxes[:, :2], found.boxes[:, 2:]
    return _boxes(found, np.concatenate([low, low + high], axis=1))


def normalised(truth: GroundTruth, found: Detections) -> Detections:
    return _boxes(found, found.boxes / shapes(truth, found))


def normalised_corners_as_sizes(truth: GroundTruth, found: Detections) -> Detections:
    return corners_as_sizes(truth, normalised(truth, found))


def stretched(truth: GroundTruth, found: Detections) -> Detections:
    return _boxes(found, found.boxes / shapes(truth, found) * 416)


def padded(truth: GroundTruth, found: Detections) -> Detections:
    return _boxes(found, found.boxes / shapes(truth, found).max(axis=1, keepdims=True) * 300)


def centred(truth: GroundTruth, found: Detections) -> Detections:
    shape = shapes(truth, found)
    longer = shape.max(axis=1, keepdims=True)
    return _boxes(found, (found.boxes + (longer - shape) / 2) / longer * 416)


def centres(truth: GroundTruth, found: Detections) -> Detections:
    return _boxes(found, found.boxes + np.tile((found.boxes[:, 2:] - found.boxes[:, :2]) / 2, 2))


def swapped(truth: GroundTruth, found: Detections) -> Detections:
    return _boxes(found, found.boxes[:, [1, 0, 3, 2]])


def other_images(truth: GroundTruth, found: Detections) -> Detections:
    rows = np.searchsorted(truth.image_ids, found.image_ids)
    return dataclasses.replace(found, image_ids=np.roll(truth.image_ids, 7)[rows])


def twice(truth: GroundTruth, found: Detections) -> Detections:
    return found.select(np.tile(np.arange(len(found)), 2))


def huge_variances(truth: GroundTruth, found: Detections) -> Detections:
    return dataclasses.replace(found, covariances=np.tile(np.eye(2) * 1e6, (len(found), 2, 1, 1)))


def unknown_classes(truth: GroundTruth, found: Detections) -> Detections:
    return dataclasses.replace(found, classes=tuple(f"n{number:05}" for number in range(len(found.classes))))


def shifted_classes(truth: GroundTruth, found: Detections) -> Detections:
    count = len(found.classes)
    return dataclasses.replace(
        found, label_probs=np.roll(found.label_probs, 1, axis=1), labels=(found.labels + 1) % count
    )


def a_part(truth: GroundTruth, found: Detections) -> Detections:
    return found.select(found.image_ids < np.quantile(truth.image_ids, 0.55))


MISTAKES: dict[str, tuple[Mistake, str]] = {
    "xyxy": (corners_as_sizes, "corners written as width and height"),
    "normalised": (normalised, "normalised boxes"),
    "normalised xyxy": (normalised_corners_as_sizes, "normalised corners written as width and height"),
    "stretched": (stretched, "boxes in the detector's pixels"),
    "padded": (padded, "boxes in the detector's pixels"),
    "centred": (centred, "boxes in the detector's pixels"),
    "centres": (centres, "centres written as corners"),
    "swapped": (swapped, "axes swapped"),
    "other images": (other_images, "boxes far from objects"),
    "twice": (twice, "duplicate detections"),
    "huge variances": (huge_variances, "variance larger than the image"),
    "unknown classes": (unknown_classes, "unknown classes"),
    "shifted classes": (shifted_classes, "classes disagree"),
    "a part": (a_part, "images without detections"),
}


def rooted(found: Detections) -> Detections:
    """Return standard deviations in place of variances; covariances must be diagonal."""
    assert found.covariances is not None
    return dataclasses.replace(found, covariances=np.sqrt(found.covariances))


def squared(found: Detections) -> Detections:
    assert found.covariances is not None
    return dataclasses.replace(found, covariances=found.covariances**2)
