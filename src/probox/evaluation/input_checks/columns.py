"""What the checks look at: columns of an evaluation or of tables, and how well detections overlap objects."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from probox.support.types import Floats
from probox.tables.labels import named_classes

if TYPE_CHECKING:
    from probox.evaluation.result import Evaluation
    from probox.formats.format import Draft
    from probox.tables.dataset import Dataset
    from probox.tables.groundtruth import GroundTruth, Masks
    from probox.tables.results import ObjectTable

Rows = npt.NDArray[np.int64]

MAX_IMAGES = 200
"""So many images, spread evenly, tell as much as all of them."""
MAX_PER_IMAGE = 10
"""The surest detections of an image; those below overlap something by chance."""
PIXEL = np.array([0.0, 0.0, 1.0, 1.0])
HALF = 0.5
"""An overlap (IoU) from which on a detection is about that object."""


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Columns:
    """Images, objects and detections; objects and detections point at image rows.

    Parameters
    ----------
    shapes : (I, 2) float64
        Width and height of each image.
    classes : tuple of str
        The truth's classes.
    object_rows, object_labels, object_boxes, crowd
        One row per object: its image row, class and box.
    mask_boxes : (N, 4) float64
        The box around each object's pixels, x2 and y2 on the far edge of the last pixel.
    image_rows, labels, boxes, scores
        One row per detection; `labels` count in the truth's classes, -1: none of them.
    covariances : (M, 2, 2, 2) float64, optional
        Of the detections' corners.
    clipped : bool
        Whether corners outside the image are moved onto its border before they are scored.
    """

    shapes: Floats
    classes: tuple[str, ...]
    object_rows: Rows
    object_labels: npt.NDArray[np.int32]
    object_boxes: Floats
    crowd: npt.NDArray[np.bool_]
    mask_boxes: Floats
    image_rows: Rows
    labels: npt.NDArray[np.int32]
    boxes: Floats
    scores: Floats
    covariances: Floats | None
    clipped: bool = False

    @classmethod
    def of_evaluation(cls, evaluation: Evaluation) -> Columns:
        """Return the columns of what was scored."""
        objects, found = evaluation.objects, evaluation.detections
        own = evaluation.convention.fixed_variance is None and found.covariances.any()
        return cls(
            **_of_objects(evaluation.dataset, objects, evaluation.masks),
            image_rows=found.image_rows,
            labels=found.labels,
            boxes=found.boxes,
            scores=found.scores,
            covariances=found.covariances if own else None,
            clipped=evaluation.convention.clip == "corners",
        )

    @classmethod
    def of_draft(cls, truth: GroundTruth, draft: Draft, rows: Rows) -> Columns:
        """Return the columns of ground truth and of the rows of a draft that are fit to be scored."""
        part = draft.select(rows)
        named, scores = named_classes(part.label_probs, part.classes, truth.classes, part.labels, part.scores)
        return cls(
            **_of_objects(truth.dataset, truth, truth.masks),
            image_rows=truth.dataset.rows_of(part.image_ids),
            labels=named,
            boxes=part.boxes,
            scores=scores,
            covariances=None if part.covariances is None or not part.covariances.any() else part.covariances,
        )

    @property
    def probabilistic(self) -> npt.NDArray[np.bool_]:
        """Return which detections have Gaussian corners."""
        if self.covariances is None:
            return np.zeros(len(self.boxes), bool)
        return np.asarray(self.covariances.any(axis=(1, 2, 3)))

    @property
    def variances(self) -> Floats:
        """Return the variances of ``x1, y1, x2, y2`` of each detection; 0 where there are none."""
        if self.covariances is None:
            return np.zeros((len(self.boxes), 4))
        return np.maximum(np.diagonal(self.covariances, axis1=2, axis2=3), 0.0).reshape(-1, 4)


def _of_objects(dataset: Dataset, objects: ObjectTable | GroundTruth, masks: Masks) -> dict[str, Any]:
    """Return the columns about what is there."""
    return {
        "shapes": dataset.shapes.astype(np.float64),
        "classes": dataset.classes,
        "object_rows": objects.image_rows,
        "object_labels": objects.labels,
        "object_boxes": objects.boxes,
        "crowd": objects.crowd,
        "mask_boxes": masks.boxes + np.array([0.0, 0.0, 1.0, 1.0]),
    }


def median(values: npt.NDArray[Any]) -> float:
    """Return the median of all numbers, none of which is missing.

    As `numpy.median` has it, which loads NumPy's masked arrays when it is first called: as long as a small file takes.

    >>> median(np.array([5, 1, 4])), median(np.array([[4.0, 1.0], [2.0, 9.0]]))
    (4.0, 3.0)
    """
    ordered = np.sort(values, axis=None)
    middle = ordered[(len(ordered) - 1) // 2 : len(ordered) // 2 + 1]
    return float(middle.mean())


@dataclasses.dataclass(frozen=True, eq=False)
class Sample:
    """Pairs of an object and a detection of the same image, in some images: all pairs of the surest detections.

    Parameters
    ----------
    columns : Columns
        The tables.
    objects : rows
        Objects that take part, none of them a crowd.
    object, detection : rows
        The pairs; `object` counts in `objects`.
    """

    columns: Columns
    objects: Rows
    object: Rows
    detection: Rows

    @classmethod
    def draw(cls, columns: Columns) -> Sample:
        """Return the pairs of images that have both objects and detections."""
        plain = np.flatnonzero(~columns.crowd)
        there, found = (np.zeros(len(columns.shapes), bool) for _ in range(2))
        there[columns.object_rows[plain]] = True
        found[columns.image_rows] = True
        both = np.flatnonzero(there & found)
        if len(both) > MAX_IMAGES:
            both = both[np.linspace(0, len(both) - 1, MAX_IMAGES).astype(np.int64)]
        chosen = np.zeros(len(columns.shapes), bool)
        chosen[both] = True
        objects = plain[chosen[columns.object_rows[plain]]]
        surest = _surest(columns, chosen)
        # Detections are sorted by image, so those of an object's image are one range.
        images = columns.image_rows[surest]
        begin = np.searchsorted(images, columns.object_rows[objects], side="left")
        count = np.searchsorted(images, columns.object_rows[objects], side="right") - begin
        owner = np.repeat(np.arange(len(objects)), count)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
        return cls(columns, objects, owner, surest[np.repeat(begin, count) + within])

    def overlaps(self, boxes: Floats | None = None) -> Floats:
        """Return the overlap (IoU) of every pair, with these boxes of the pairs' detections instead of their own."""
        theirs = self.columns.boxes[self.detection] if boxes is None else boxes
        # Boxes may end on their last pixel: without it, one of a single pixel overlaps nothing.
        return iou(self.columns.object_boxes[self.objects[self.object]] + PIXEL, theirs + PIXEL)

    def found(self, overlaps: Floats) -> float:
        """Return the share of objects that some detection, of whatever class, overlaps by half."""
        hit = np.zeros(len(self.objects), bool)
        hit[self.object[overlaps >= HALF]] = True
        return float(hit.mean()) if len(hit) else 0.0

    def surest_right(self, overlaps: Floats) -> tuple[float, int]:
        """Return in which share of how many images the surest detection overlaps an object by half."""
        pairs, images, count = self._surest_pairs
        hit = np.zeros(count, bool)
        hit[images[overlaps[pairs] >= HALF]] = True
        return float(hit.mean()) if count else 0.0, count

    @cached_property
    def _surest_pairs(self) -> tuple[Rows, Rows, int]:
        """Return the pairs of each image's surest detection, the number of each one's image, and how many these are."""
        images, scores = self.columns.image_rows[self.detection], self.columns.scores[self.detection]
        order = np.lexsort((self.detection, -scores, images))
        _, first, number = np.unique(images[order], return_index=True, return_inverse=True)
        surest = self.detection[order] == self.detection[order[first]][number]
        return order[surest], number[surest], len(first)

    def best_pairs(self, chosen: npt.NDArray[np.bool_], order: Floats, of: Rows | None = None) -> Rows:
        """Return, for each object that has one (or each of `of`), the pair of highest `order` among the chosen."""
        pairs = np.flatnonzero(chosen)
        whose = (self.object if of is None else of)[pairs]
        by_order = np.lexsort((-order[pairs], whose))
        _, first = np.unique(whose[by_order], return_index=True)
        return pairs[by_order[first]]


def _surest(columns: Columns, chosen: npt.NDArray[np.bool_]) -> Rows:
    """Return the surest detections of each chosen image, by image."""
    rows = np.flatnonzero(chosen[columns.image_rows])
    rows = rows[np.lexsort((-columns.scores[rows], columns.image_rows[rows]))]
    of = columns.image_rows[rows]
    starts = np.searchsorted(of, of, side="left")
    return rows[np.arange(len(rows)) - starts < MAX_PER_IMAGE]


def iou(one: Floats, other: Floats) -> Floats:
    """Return intersection over union of boxes, row by row; 0 for boxes without area."""
    low, high = np.maximum(one[:, :2], other[:, :2]), np.minimum(one[:, 2:], other[:, 2:])
    both = np.prod(np.maximum(high - low, 0.0), axis=1)
    areas = np.prod(one[:, 2:] - one[:, :2], axis=1) + np.prod(np.maximum(other[:, 2:] - other[:, :2], 0.0), axis=1)
    union = areas - both
    result: Floats = np.divide(both, union, out=np.zeros(len(both)), where=union > 0)
    return result
