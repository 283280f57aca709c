"""Result tables of an evaluation: one row per object, detection or pair, with outcome and qualities.

probox creates them itself, so the columns are not checked.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.tables.dataset import Dataset
from probox.tables.flat import (
    box_columns,
    class_columns,
    corner_columns,
    image_columns,
    maybe_missing,
    probability_columns,
    text_column,
)
from probox.tables.label_probs import LabelProbs
from probox.tables.table import Table, column, columns_of

QUALITIES = ("pPDQ", "spatial", "label", "foreground", "background")
"""Qualities of a pair, in the order of the `qualities` columns."""


SomeTable = TypeVar("SomeTable", bound="ResultTable")
SomePairs = TypeVar("SomePairs", "PairTable", "OverlapTable")


class Verdict:
    """Outcome of an object or detection: values of the `verdicts` columns.

    ``Verdict.IGNORED`` is 0, ``Verdict.TP`` 1, ``Verdict.FP`` 2 and ``Verdict.FN`` 3. ``Verdict.NAMES`` has their
    names in this order, as shown in data frames. Detections are TP, FP or ignored; objects are TP, FN or ignored.
    """

    IGNORED, TP, FP, FN = 0, 1, 2, 3
    NAMES = ("ignored", "TP", "FP", "FN")


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ResultTable(Table):
    """Table of an evaluation."""

    adopts: ClassVar[bool] = True

    @classmethod
    def none(cls: type[SomeTable]) -> SomeTable:
        """Return a table without rows."""
        declared = {name: column for name, column in columns_of(cls).items() if not column.optional}
        columns: dict[str, Any] = {name: np.zeros((0, *map(int, c.row)), c.dtype) for name, c in declared.items()}
        return cls(**columns)


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class QualityTable(ResultTable):
    """Table with the qualities of a pair in each row."""

    qualities: npt.NDArray[np.float64] = column(np.float64, len(QUALITIES))

    def quality(self, name: str) -> npt.NDArray[np.float64]:
        """Return one quality of each row: ``pPDQ``, ``spatial``, ``label``, ``foreground`` or ``background``."""
        if name not in QUALITIES:
            raise InputError(f"expected a quality to be one of {', '.join(QUALITIES)}, but got {name!r:.40}")
        column: npt.NDArray[np.float64] = self.qualities[:, QUALITIES.index(name)]
        return column

    def _quality_columns(self) -> dict[str, Any]:
        """Return the qualities, with ``_quality`` in the names that could be mistaken for a label or position."""
        return {name if name == "pPDQ" else f"{name}_quality": self.quality(name) for name in QUALITIES}


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class JudgedTable(QualityTable):
    """Table of objects or detections with outcome and match.

    `image_rows` are rows and `labels` class indices of `dataset`. Without a match, `partners` is -1, qualities are NaN
    and pPDQ is 0.
    """

    dataset: Dataset | None = None

    verdicts: npt.NDArray[np.uint8] = column(np.uint8)
    partners: npt.NDArray[np.int64] = column(np.int64)
    image_rows: npt.NDArray[np.int64] = column(np.int64)
    labels: npt.NDArray[np.int32] = column(np.int32)
    boxes: npt.NDArray[np.float64] = column(np.float64, 4)
    extents: npt.NDArray[np.float64] = column(np.float64, 2)

    def _of_images(self) -> dict[str, Any]:
        """Return row numbers, to which `partner` columns refer, and image columns."""
        known = self.dataset
        images = {"image_row": self.image_rows} if known is None else image_columns(known, self.image_rows)
        return {"row": np.arange(len(self)), **images}

    def _of_classes(self, *, optional: bool) -> dict[str, Any]:
        if self.dataset is None:
            return {"class_index": maybe_missing(self.labels) if optional else self.labels}
        return class_columns(self.labels, self.dataset.classes, optional=optional)

    def _of_matches(self) -> dict[str, Any]:
        """Return outcomes by name, matches and qualities; outcomes are missing if PDQ was not computed."""
        names = text_column([*Verdict.NAMES, None])
        judged = ~np.isnan(self.quality("pPDQ"))
        return {
            "verdict": names[np.where(judged, self.verdicts.astype(np.int64), -1)],
            "partner": maybe_missing(self.partners),
            **self._quality_columns(),
        }


def unmatched_columns(n: int) -> dict[str, Any]:
    """Return the match columns of a `JudgedTable` with n unmatched rows."""
    return {
        "verdicts": np.zeros(n, np.uint8),
        "partners": np.full(n, -1, np.int64),
        "qualities": np.full((n, len(QUALITIES)), np.nan),
    }


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ObjectTable(JudgedTable):
    """One row per object, sorted by image; `partners` are rows of the detections.

    Parameters
    ----------
    qualities : (N, 5) float64
        pPDQ, spatial, label, foreground and background quality of the match. Unmatched: NaN, and pPDQ 0.
    dataset : Dataset, optional
        Images and classes.
    verdicts : (N,) uint8
        Outcome, a value of `Verdict`.
    partners : (N,) int64
        Row of the matched detection; -1 if unmatched.
    image_rows : (N,) int64
        Row of the object's image in `dataset`, not its id.
    labels : (N,) int32
        Class index.
    boxes : (N, 4) float64
        Annotated box ``x1, y1, x2, y2`` in pixels.
    extents : (N, 2) float64
        Annotated width and height in pixels.
    ids : (N,) int64
        Annotation id.
    areas : (N,) float64
        Annotated area in pixels, which decides between small, medium and large.
    crowd : (N,) bool
        True for a region of many objects.
    pixels : (N,) int64
        Number of pixels of the mask.
    mask_boxes : (N, 4) int32
        Tight box of the mask, last pixels included.
    ignored : (N,) bool
        True for objects that PDQ ignores: small ones if the convention ignores them, and those with an empty mask.
    """

    ids: npt.NDArray[np.int64] = column(np.int64)
    areas: npt.NDArray[np.float64] = column(np.float64)
    crowd: npt.NDArray[np.bool_] = column(np.bool_)
    pixels: npt.NDArray[np.int64] = column(np.int64)
    mask_boxes: npt.NDArray[np.int32] = column(np.int32, 4)
    ignored: npt.NDArray[np.bool_] = column(np.bool_)

    @property
    def countable(self) -> npt.NDArray[np.bool_]:
        """Which rows are objects: all except crowds with an empty mask, which are ignore regions."""
        return ~self.crowd | (self.pixels > 0)

    def _flat_columns(self, label_probs: bool) -> dict[str, Any]:
        self._has_no_label_probs(label_probs)
        return {
            **self._of_images(),
            "object_id": self.ids,
            **self._of_classes(optional=False),
            **self._of_matches(),
            **box_columns(self.boxes),
            "area": self.areas,
            "pixels": self.pixels,
            "crowd": self.crowd,
            "ignored": self.ignored,
        }


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DetectionTable(JudgedTable):
    """One row per scored detection, sorted by image; `partners` are rows of the objects.

    Parameters
    ----------
    qualities : (N, 5) float64
        pPDQ, spatial, label, foreground and background quality of the match. Unmatched: NaN, and pPDQ 0.
    dataset : Dataset, optional
        Images and classes.
    verdicts : (N,) uint8
        Outcome, a value of `Verdict`.
    partners : (N,) int64
        Row of the matched object; -1 if unmatched.
    image_rows : (N,) int64
        Row of the detection's image in `dataset`, not its id.
    labels : (N,) int32
        Class index among the ground truth's classes, stated or most probable; -1 if it has none of them.
    boxes : (N, 4) float64
        ``x1, y1, x2, y2`` in pixels; the mean corners if there are covariances.
    extents : (N, 2) float64
        Width and height as written by the detector.
    numbers : (N,) int64
        Number within the detections of its image in the file, from 0.
    scores : (N,) float64
        Score of the detection's class.
    confidences : (N,) float32
        Highest label probability, background included; compared with the label threshold.
    costs : (N,) float32
        Highest probability of a class other than background.
    covariances : (N, 2, 2, 2) float64
        Covariances of the top-left and bottom-right corner in pixels squared; 0 for boxes without covariance.
    heatmaps : (N,) bool
        True if PDQ scored a heatmap instead of the box.
    masks : (N,) bool
        True if PDQ scored a mask instead of the box.
    areas : (N,) float64, optional
        Area of the mask in pixels, by which mAP of masks assigns sizes. None if no metric of masks was requested.
    label_probs : LabelProbs (N, C), optional
        Probabilities of the ground truth's classes; the rest to 1 is background. None if they were not kept.
    """

    numbers: npt.NDArray[np.int64] = column(np.int64)
    scores: npt.NDArray[np.float64] = column(np.float64)
    confidences: npt.NDArray[np.float32] = column(np.float32)
    costs: npt.NDArray[np.float32] = column(np.float32)
    covariances: npt.NDArray[np.float64] = column(np.float64, 2, 2, 2)
    heatmaps: npt.NDArray[np.bool_] = column(np.bool_)
    masks: npt.NDArray[np.bool_] = column(np.bool_)
    areas: npt.NDArray[np.float64] | None = column(np.float64, optional=True)
    label_probs: LabelProbs | None = column(np.float32, "classes", optional=True)

    def _flat_columns(self, label_probs: bool) -> dict[str, Any]:
        columns = {
            **self._of_images(),
            "number": self.numbers,
            **self._of_classes(optional=True),
            "score": self.scores,
            "confidence": self.confidences,
            **self._of_matches(),
            **box_columns(self.boxes),
            **corner_columns(self.covariances),
            "heatmap": self.heatmaps,
            "mask": self.masks,
        }
        if not label_probs:
            return columns
        width = 0 if self.label_probs is None else self.label_probs.shape[1]
        classes = self.dataset.classes if self.dataset is not None else tuple(map(str, range(width)))
        return columns | probability_columns(classes, self.label_probs)


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PairTable(QualityTable):
    """One row per pair of a detection and an object with a quality above 0, by image.

    Kept so that matches can be recomputed, for example at another label threshold, without pixel sums.

    Parameters
    ----------
    qualities : (P, 5) float64
        pPDQ, spatial, label, foreground and background quality.
    detections, objects : (P,) int64
        Rows of the detection table and of the object table.
    """

    detections: npt.NDArray[np.int64] = column(np.int64)
    objects: npt.NDArray[np.int64] = column(np.int64)

    def _flat_columns(self, label_probs: bool) -> dict[str, Any]:
        self._has_no_label_probs(label_probs)
        return {"detection": self.detections, "object": self.objects, **self._quality_columns()}


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class OverlapTable(ResultTable):
    """One row per detection and object of the same image and class whose masks overlap, by detection, then object.

    Kept so that metrics of masks can be recomputed, for example at another label threshold, without masks.

    Parameters
    ----------
    detections, objects : (P,) int64
        Rows of the detection table and of the object table.
    ious : (P,) float64
        IoU of the masks; for a crowd, the fraction of the detection inside it.
    """

    detections: npt.NDArray[np.int64] = column(np.int64)
    objects: npt.NDArray[np.int64] = column(np.int64)
    ious: npt.NDArray[np.float64] = column(np.float64)

    def _flat_columns(self, label_probs: bool) -> dict[str, Any]:
        self._has_no_label_probs(label_probs)
        return {"detection": self.detections, "object": self.objects, "iou": self.ious}


def renumber_pairs(
    pairs: SomePairs, detections: npt.NDArray[np.int64], objects: npt.NDArray[np.int64] | None = None
) -> SomePairs:
    """Return the pairs whose rows remain, with new row numbers.

    Parameters
    ----------
    pairs : PairTable or OverlapTable
        Pairs of detections and objects.
    detections, objects : (N,) int64
        New number of each row; -1: the row is removed. Default for objects: no change.
    """
    found, there = detections[pairs.detections], pairs.objects if objects is None else objects[pairs.objects]
    kept = np.flatnonzero((found >= 0) & (there >= 0))
    return pairs.take(kept).replace(detections=found[kept], objects=there[kept])
