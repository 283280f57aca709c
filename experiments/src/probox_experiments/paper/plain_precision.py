"""Average precision in plain NumPy, with two things left open: who is right, and how precision is read (appendix D)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np
import numpy.typing as npt

from probox.measures.boxes.matching import IOU_THRESHOLDS, MAX_DETECTIONS
from probox.measures.boxes.mean_ap import RECALL_POINTS
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

__all__ = [
    "Hits",
    "after_the_last",
    "algorithm_1",
    "coco_rule",
    "find_hits",
    "highest_from_there",
    "mean_precision",
    "overlaps",
    "without_crowds",
]

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]
Ties = Literal["images", "submission"]


# --- who is right -----------------------------------------------------------------------------------------------------


def coco_rule(ious: Floats, thresholds: Floats = IOU_THRESHOLDS) -> Flags:
    """Return which detections hit an object at each threshold, (T, D), as COCO's evaluator says.

    Each detection (row), in order of score, looks at the objects (columns) that are still *free*, and takes the one
    that it overlaps most if that is *at least* the threshold; the last one of equals.

    >>> both_fit_the_first = np.array([[1.0, 0.54], [0.82, 0.67]])
    >>> coco_rule(both_fit_the_first, np.array([0.5])).tolist()
    [[True, True]]
    >>> algorithm_1(both_fit_the_first, np.array([0.5])).tolist()
    [[True, False]]
    """
    hits = np.zeros((len(thresholds), len(ious)), bool)
    free = np.ones((len(thresholds), ious.shape[1]), bool)
    each = np.arange(len(thresholds))
    for row, overlap in enumerate(ious):
        left = np.where(free, overlap, -1.0)
        best = _last_largest(left)
        hits[:, row] = left[each, best] >= thresholds
        free[each, best] &= ~hits[:, row]
    return hits


def algorithm_1(ious: Floats, thresholds: Floats = IOU_THRESHOLDS) -> Flags:
    """Return which detections hit an object at each threshold, (T, D), as the paper's Algorithm 1 says.

    Each detection (row), in order of score, looks at *all* objects (columns) for the one that it overlaps most, and
    hits it if that is *more* than the threshold and the object is still free. Of equals it is the last one, as above.
    """
    hits = np.zeros((len(thresholds), len(ious)), bool)
    free = np.ones((len(thresholds), ious.shape[1]), bool)
    for row, best in enumerate(_last_largest(ious)):
        hits[:, row] = (ious[row, best] > thresholds) & free[:, best]
        free[:, best] &= ~hits[:, row]
    return hits


def _last_largest(table: Floats) -> Rows:
    """Return the column of the largest number of each row, the last one of equals."""
    largest: Rows = table.shape[1] - 1 - table[:, ::-1].argmax(axis=1)
    return largest


def overlaps(found: Floats, there: Floats) -> Floats:
    """Return the IoU of boxes ``x, y, width, height``: detections in rows, objects in columns."""
    d, g = found[:, None, :], there[None, :, :]
    sides = np.minimum(d[..., :2] + d[..., 2:], g[..., :2] + g[..., 2:]) - np.maximum(d[..., :2], g[..., :2])
    both = np.maximum(sides, 0.0).prod(axis=2)
    either = d[..., 2:].prod(axis=2) + g[..., 2:].prod(axis=2) - both
    ious: Floats = np.divide(both, either, out=np.zeros_like(both), where=both > 0)
    return ious


@dataclasses.dataclass(frozen=True)
class Hits:
    """What became of detections under a rule.

    Parameters
    ----------
    labels, scores, images : (N,) arrays
        The class that each detection names, its score, and the row of its image.
    ranks : (N,) int64
        How many detections of its image and class go before it.
    hits : (T, N) bool
        Whether it hits an object at each threshold.
    objects : (C,) int64
        How many objects of each class there are.
    """

    labels: npt.NDArray[np.int32]
    scores: Floats
    images: Rows
    ranks: Rows
    hits: Flags
    objects: npt.NDArray[np.int64]

    def by_class(self, ties: Ties = "images") -> Iterator[tuple[Flags, int]]:
        """Yield, for each class with objects, its hits from the highest score down, and the number of its objects.

        Of equal scores those of the earlier image go first, as in COCO's evaluator; with ``ties="submission"`` those
        that were handed in first, of whichever image, as the paper says. An image has 100 of a class at most.
        """
        handed_in = np.arange(len(self.labels))
        earlier = (self.ranks, self.images) if ties == "images" else (handed_in,)
        order = np.lexsort((*earlier, -self.scores, self.labels))
        order = order[self.ranks[order] < MAX_DETECTIONS]
        ends = np.searchsorted(self.labels[order], np.arange(len(self.objects) + 1))
        for label in np.flatnonzero(self.objects).tolist():
            yield self.hits[:, order[ends[label] : ends[label + 1]]], int(self.objects[label])


def find_hits(truth: GroundTruth, found: Detections, rule: Callable[[Floats], Flags]) -> Hits:
    """Return which detections hit an object, in every image and class by itself.

    The truth has no crowds. Detections of images or classes that it does not know are left out.
    """
    labels, scores = found.named_classes(truth.classes)
    images = truth.dataset.rows_of(found.image_ids)
    boxes = np.concatenate([found.boxes[:, :2], found.extents], axis=1)
    there = np.concatenate([truth.boxes[:, :2], truth.extents], axis=1)
    known = (labels >= 0) & (images >= 0)
    labels, scores, images, boxes = labels[known], scores[known], images[known], boxes[known]
    count = len(truth.classes)
    group, group_there = images * count + labels, truth.image_rows * count + truth.labels
    by_score, by_group = np.lexsort((-scores, group)), np.argsort(group_there, kind="stable")
    ranks = np.zeros(len(labels), np.int64)
    hits = np.zeros((len(IOU_THRESHOLDS), len(labels)), bool)
    starts = np.flatnonzero(np.diff(group[by_score], prepend=-1))
    numbers = group[by_score][starts]
    first = np.searchsorted(group_there[by_group], numbers)
    last = np.searchsorted(group_there[by_group], numbers, side="right")
    for rows, begin, end in zip(np.split(by_score, starts)[1:], first, last, strict=True):
        ranks[rows] = np.arange(len(rows))
        if end > begin:  # else there is nothing of this class in the image to be hit
            seen = rows[:MAX_DETECTIONS]
            hits[:, seen] = rule(overlaps(boxes[seen], there[by_group[begin:end]]))
    return Hits(labels, scores, images, ranks, hits, np.bincount(truth.labels, minlength=count))


# --- how precision is read --------------------------------------------------------------------------------------------


def highest_from_there(hits: Flags, objects: int) -> Floats:
    """Return precision at 101 recalls, (T, 101), as mAP reads it: the highest at that recall or a higher one.

    >>> two_of_each = np.array([[True, False, True, False, True, False]])
    >>> highest_from_there(two_of_each, 3)[0, [0, 50, 100]].round(4).tolist()
    [1.0, 0.6667, 0.6]
    >>> after_the_last(two_of_each, 3)[0, [0, 50, 100]].round(4).tolist()
    [0.5, 0.5, 0.5]
    """
    _, precision, at = _curve(hits, objects)
    highest = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
    return _read(highest, at)


def after_the_last(hits: Flags, objects: int) -> Floats:
    """Return precision at 101 recalls, (T, 101), after the last detection that leaves the recall there.

    False detections that follow a true one count before the next true one comes: nothing is hidden.
    """
    right, precision, at = _curve(hits, objects)
    last = np.array([np.searchsorted(row, row, side="right") - 1 for row in right]).reshape(right.shape)
    return _read(np.take_along_axis(precision, last, axis=1), at)


def _curve(hits: Flags, objects: int) -> tuple[Rows, Floats, Rows]:
    """Return true detections so far, precision, and which detection reaches each recall (N: none)."""
    right = np.cumsum(hits, axis=1, dtype=np.int64)
    precision = right / np.arange(1, hits.shape[1] + 1)
    at = np.array([np.searchsorted(row / objects, RECALL_POINTS) for row in right])
    return right, precision, at


def _read(precision: Floats, at: Rows) -> Floats:
    """Return the precision of these detections, 0 for a recall that none reaches."""
    return np.take_along_axis(np.pad(precision, ((0, 0), (0, 1))), at, axis=1)


def mean_precision(
    found: Hits, read: Callable[[Flags, int], Floats] = highest_from_there, ties: Ties = "images"
) -> float:
    """Return the mean over classes, thresholds and recalls: mAP, if read as mAP does."""
    of_classes = [float(read(hits, objects).mean()) for hits, objects in found.by_class(ties)]
    return float(np.mean(of_classes)) if of_classes else float("nan")


def without_crowds(truth: GroundTruth) -> GroundTruth:
    """Return the truth without regions of many objects, which COCO's evaluator ignores and the paper does not know."""
    return truth.take(~truth.crowd)
