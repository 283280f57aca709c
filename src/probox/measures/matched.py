"""Matched pairs: detections with their objects, on which metrics of covariances and labels are computed.

The matching must not depend on the covariance that is scored. The default is therefore COCO's: within each class, in
the order of scores, by IoU of boxes, without crowds. An IoU of at least 0.5 excludes the largest errors, which
makes calibration metrics optimistic.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.measures.boxes.matching import PAIR_IOU, BoxMatches, BoxRules, match_columns
from probox.measures.scoring.scores import edge_variances
from probox.support.types import Bools, Floats, Ints
from probox.tables.label_probs import LabelProbs
from probox.tables.results import DetectionTable, ObjectTable, Verdict
from probox.tables.table import Table, column

if TYPE_CHECKING:
    from probox.measures.measure import Evaluated

Pairing = Literal["coco", "pdq"]

EDGES = ("x1", "y1", "x2", "y2")
"""The coordinates of a box, in the order of columns."""

BORDER = 1.0
"""An edge of the ground truth within this many pixels of the image border belongs to a truncated object."""

FEW_PAIRS = 30
"""With fewer pairs than this, metrics add a note."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MatchedPairs(Table):
    """Matched pairs of a detection and an object: one row per pair, ordered by detection.

    `Evaluation.matched_pairs` holds COCO's matches at IoU 0.5; `MatchedPairs.of` computes others.

    Parameters
    ----------
    detections, objects : (K,) int64
        Rows of the evaluation's tables.
    image_rows : (K,) int64
        Rows of the dataset's images.
    residuals : (K, 4) float64
        True box minus mean of the detection: x1, y1, x2, y2, in pixels.
    covariances : (K, 2, 2, 2) float64
        Covariances of the top-left and the bottom-right corner, in square pixels.
    plain : (K,) bool
        The detection has no covariance: a deterministic box, or a heatmap.
    label_probs : LabelProbs (K, C), optional
        Probabilities of the ground truth's classes; the remainder to 1 is background.
    labels : (K,) int32
        The object's class.
    scores : (K,) float64
        The detection's score.
    ious : (K,) float64
        IoU of the two boxes.
    sides : (K, 2) float64
        Width and height of the detection's box, in pixels.
    truncated : (K, 4) bool
        The true edge lies within a pixel of the image border, where it marks the end of the image, not of the object.
    areas : (K,) float64
        The object's annotated area, in square pixels.
    pairing : str
        How pairs were matched, for names of values: ``"COCO IoU 0.5"`` or ``"PDQ"``.

    Examples
    --------
    >>> import probox
    >>> from probox.demo import make_demo
    >>> demo = make_demo()
    >>> pairs = probox.evaluate(demo.truth, demo.detectors["probabilistic"]).matched_pairs
    >>> len(pairs), pairs.residuals.mean(axis=0).round(2).tolist()  # boxes end a pixel too early right and below
    (134, [-0.33, -0.26, 0.88, 1.0])
    """

    adopts: ClassVar[bool] = True

    detections: Ints = column(np.int64)
    objects: Ints = column(np.int64)
    image_rows: Ints = column(np.int64)
    residuals: Floats = column(np.float64, 4)
    covariances: Floats = column(np.float64, 2, 2, 2)
    plain: Bools = column(np.bool_)
    label_probs: LabelProbs | None = column(np.float32, "classes", optional=True)
    labels: npt.NDArray[np.int32] = column(np.int32)
    scores: Floats = column(np.float64)
    ious: Floats = column(np.float64)
    sides: Floats = column(np.float64, 2)
    truncated: Bools = column(np.bool_, 4)
    areas: Floats = column(np.float64)
    pairing: str = ""

    @classmethod
    def of(cls, evaluated: Evaluated, pairing: Pairing = "coco", iou: float = PAIR_IOU) -> MatchedPairs:
        """Return the pairs of an evaluation.

        Parameters
        ----------
        evaluated : Evaluation
            Evaluated detections and objects.
        pairing : {"coco", "pdq"}
            COCO's matches by IoU, or the true positives of PDQ, which depend on the covariances.
        iou : float
            Smallest IoU of COCO's matches.

        Returns
        -------
        MatchedPairs
            One row per pair.
        """
        if pairing == "pdq":
            found = np.flatnonzero(evaluated.detections.verdicts == Verdict.TP)
            return cls.of_rows(evaluated, found, evaluated.detections.partners[found], "PDQ")
        if pairing != "coco":
            raise InputError(f"expected pairing to be 'coco' or 'pdq', got {pairing!r:.40}")
        found, there = _coco_rows(evaluated, iou)
        return cls.of_rows(evaluated, found, there, f"COCO IoU {iou:g}")

    @classmethod
    def of_rows(cls, evaluated: Evaluated, found: Ints, there: Ints, pairing: str) -> MatchedPairs:
        """Return the pairs of these rows of detections and objects; `pairing` names the kind of matching."""
        detections, objects = evaluated.detections, evaluated.objects
        boxes, truths = detections.boxes[found], objects.boxes[there]
        covariances = detections.covariances[found]
        shapes = evaluated.dataset.shapes[objects.image_rows[there]]
        return cls(
            detections=found,
            objects=there,
            image_rows=detections.image_rows[found],
            residuals=truths - boxes,
            covariances=covariances,
            plain=np.asarray(~covariances.any(axis=(1, 2, 3)) | detections.heatmaps[found], np.bool_),
            label_probs=None if detections.label_probs is None else detections.label_probs[found],
            labels=objects.labels[there],
            scores=detections.scores[found],
            ious=overlaps(detections, objects, found, there),
            sides=boxes[:, 2:] - boxes[:, :2],
            truncated=at_border(truths, shapes),
            areas=objects.areas[there],
            pairing=pairing,
        )

    @property
    def variances(self) -> Floats:
        """Return the variance of each edge in square pixels, (K, 4)."""
        return edge_variances(self.covariances)


def _coco_rows(evaluated: Evaluated, iou: float) -> tuple[Ints, Ints]:
    """Return rows of matched detections and of their objects, without crowds."""
    if isinstance(iou, bool) or not isinstance(iou, int | float | np.number) or not 0.0 < iou <= 1.0:
        raise InputError(f"expected iou to be a number above 0, at most 1, got {iou!r:.40}")
    matches = matches_at(evaluated, float(iou))
    matched = (matches.matched[:, 0] & 1 == 1) & (matches.ignored[:, 0] & 1 == 0)
    found, there = rows_of_matches(evaluated, matches, matched)
    order = np.argsort(found, kind="stable")
    return found[order], there[order]


def rows_of_matches(evaluated: Evaluated, matches: BoxMatches, chosen: Bools) -> tuple[Ints, Ints]:
    """Return the table rows of chosen detections, and of the objects they match at IoU 0.5."""
    images = matches.image_rows[chosen].astype(np.int64)
    found = evaluated.dataset.offsets(evaluated.detections.image_rows)[images] + matches.numbers[chosen]
    there = evaluated.dataset.offsets(evaluated.objects.image_rows)[images] + matches.matched_objects[chosen]
    return found, there


def matches_at(evaluated: Evaluated, iou: float) -> BoxMatches:
    """Return COCO's matches at one IoU threshold; those of the evaluation if it is 0.5."""
    if iou == PAIR_IOU:
        return evaluated.box_matches
    rules = dataclasses.replace(
        BoxRules.of(evaluated.convention, evaluated.dataset), iou_thresholds=(iou,), pair_iou=iou
    )
    return match_columns(evaluated.dataset, evaluated.detections, evaluated.objects, rules)


def at_border(truths: Floats, shapes: npt.NDArray[np.integer | np.floating], margin: float = BORDER) -> Bools:
    """Return which edges lie within `margin` pixels of the border of images of these widths and heights, (K, 4).

    Metrics, diagnosis and calibration exclude exactly these edges. There the ground truth marks the end of the image,
    not of the object. Edges of detections do not matter: a detection that wrongly ends at the border is an error that
    its covariance has to cover, and excluding it would hide the error.
    """
    return np.concatenate([truths[:, :2] <= margin, truths[:, 2:] >= shapes - margin], axis=1)


def overlaps(detections: DetectionTable, objects: ObjectTable, found: Ints, there: Ints) -> Floats:
    """Return the IoU of boxes row by row, from given widths and heights, as in COCO's matching."""
    mine, theirs = detections.boxes[found], objects.boxes[there]
    my_extent, their_extent = detections.extents[found], objects.extents[there]
    low = np.maximum(mine[:, :2], theirs[:, :2])
    high = np.minimum(mine[:, :2] + my_extent, theirs[:, :2] + their_extent)
    common = np.maximum(high - low, 0.0).prod(axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray(common / (my_extent.prod(axis=1) + their_extent.prod(axis=1) - common))
