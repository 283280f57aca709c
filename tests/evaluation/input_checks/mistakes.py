"""Mistakes that people make when they store detections, applied to good ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from probox import Detections, GroundTruth
from probox.tables.masks import Masks

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


def mirrored(truth: GroundTruth, found: Detections) -> Detections:
    width = shapes(truth, found)[:, 0]
    x1, y1, x2, y2 = found.boxes.T
    return _boxes(found, np.stack([width - x2, y1, width - x1, y2], axis=1))


def upside_down(truth: GroundTruth, found: Detections) -> Detections:
    height = shapes(truth, found)[:, 1]
    x1, y1, x2, y2 = found.boxes.T
    return _boxes(found, np.stack([x1, height - y2, x2, height - y1], axis=1))


def later_classes_shifted(truth: GroundTruth, found: Detections) -> Detections:
    """Return what a detector with a class more in the middle of its list gives."""
    columns = np.arange(len(found.classes))
    middle = len(columns) // 3
    moved = np.where(columns > middle, columns - 1, columns)
    moved[middle] = len(columns) - 1
    labels = np.argsort(moved)[found.labels].astype(np.int32)
    return dataclasses.replace(found, label_probs=found.label_probs[:, moved], labels=labels)


def scores_over_100(truth: GroundTruth, found: Detections) -> Detections:
    return dataclasses.replace(found, label_probs=found.label_probs / 100, scores=found.scores / 100)


def scores_of_1(truth: GroundTruth, found: Detections) -> Detections:
    probs = np.zeros_like(found.label_probs)
    probs[np.arange(len(found)), found.labels] = 1
    return dataclasses.replace(found, label_probs=probs, scores=np.ones(len(found)))


MISTAKES: dict[str, tuple[Mistake, str]] = {
    "xyxy": (corners_as_sizes, "corners-as-width-and-height"),
    "normalised": (normalised, "normalised-boxes"),
    "normalised xyxy": (normalised_corners_as_sizes, "normalised-corners-as-width-and-height"),
    "stretched": (stretched, "input-pixels"),
    "padded": (padded, "input-pixels-padded-at-end"),
    "centred": (centred, "input-pixels-padded-around"),
    "centres": (centres, "centres-as-corners"),
    "swapped": (swapped, "axes-swapped"),
    "other images": (other_images, "boxes-far-from-objects"),
    "twice": (twice, "duplicate-detections"),
    "huge variances": (huge_variances, "variance-larger-than-image"),
    "all-classes-unknown": (unknown_classes, "all-classes-unknown"),
    "shifted classes": (shifted_classes, "classes-disagree"),
    "a part": (a_part, "images-without-detections"),
    "mirrored": (mirrored, "mirrored-left-to-right"),
    "upside down": (upside_down, "mirrored-upside-down"),
    "later classes shifted": (later_classes_shifted, "classes-shifted"),
    "scores over 100": (scores_over_100, "tiny-scores"),
}


def annotated_twice(truth: GroundTruth) -> GroundTruth:
    return truth.take(np.repeat(np.arange(len(truth)), 2))


def _masks(truth: GroundTruth, boxes: np.ndarray) -> GroundTruth:
    sides = np.tile(truth.dataset.shapes[truth.image_rows], 2) - 1
    return truth.replace(masks=Masks.from_boxes(np.clip(boxes, 0, sides).astype(np.int32)))


def masks_of_half_the_size(truth: GroundTruth) -> GroundTruth:
    return _masks(truth, truth.masks.boxes / 2)


def masks_of_twice_the_size(truth: GroundTruth) -> GroundTruth:
    return _masks(truth, truth.masks.boxes * 2)


def masks_turned(truth: GroundTruth) -> GroundTruth:
    return _masks(truth, truth.masks.boxes[:, [1, 0, 3, 2]])


TRUTH_MISTAKES: dict[str, tuple[Callable[[GroundTruth], GroundTruth], str, str]] = {
    "annotated twice": (annotated_twice, "duplicate-objects", "repeat another one of the same image, class and box"),
    "masks of half the size": (masks_of_half_the_size, "scaled-masks", "masks are 0.5"),
    "masks of twice the size": (masks_of_twice_the_size, "scaled-masks", "one of them looks scaled"),
    "masks turned": (masks_turned, "swapped-masks", "x and y of the masks look swapped"),
}


def rooted(found: Detections) -> Detections:
    """Return standard deviations in place of variances; covariances must be diagonal."""
    assert found.covariances is not None
    return dataclasses.replace(found, covariances=np.sqrt(found.covariances))


def normalised_variances(truth: GroundTruth, found: Detections) -> Detections:
    """Return covariances in fractions of the image's width and height."""
    assert found.covariances is not None
    sides = shapes(truth, found)[:, :2]
    return dataclasses.replace(found, covariances=found.covariances / (sides[:, None, :, None] * sides[:, None, None]))


def inverted(found: Detections) -> Detections:
    """Return precision matrices in place of covariances."""
    assert found.covariances is not None
    return dataclasses.replace(found, covariances=np.linalg.inv(found.covariances))


def squared(found: Detections) -> Detections:
    assert found.covariances is not None
    return dataclasses.replace(found, covariances=found.covariances**2)
