"""Tables of results: one row per object, detection and pair of an evaluation, with what became of each.

Probox makes them itself, so their columns are taken as they are.
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
from probox.tables.table import Table, column, columns_of

QUALITIES = ("pPDQ", "spatial", "label", "foreground", "background")
"""The qualities of a pair: columns of `qualities`, in this order."""


SomeTable = TypeVar("SomeTable", bound="QualityTable")


class Verdict:
    """What became of an object or a detection; the values of the `verdicts` columns.

    ``Verdict.IGNORED`` is 0, ``Verdict.TP`` 1, ``Verdict.FP`` 2 and ``Verdict.FN`` 3; ``Verdict.NAMES`` has their
    names in this order, as data frames show them. Detections are TP, FP or ignored, objects TP, FN or ignored.
    """

    IGNORED, TP, FP, FN = 0, 1, 2, 3
    NAMES = ("ignored", "TP", "FP", "FN")


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class QualityTable(Table):
    """A table with the qualities of a pair in each row."""

    adopts: ClassVar[bool] = True

    qualities: npt.NDArray[np.float64] = column(np.float64, len(QUALITIES))

    @classmethod
    def none(cls: type[SomeTable]) -> SomeTable:
        """Return a table without rows."""
        declared = {name: column for name, column in columns_of(cls).items() if not column.optional}
        columns: dict[str, Any] = {name: np.zeros((0, *map(int, c.row)), c.dtype) for name, c in declared.items()}
        return cls(**columns)

    def quality(self, name: str) -> npt.NDArray[np.float64]:
        """Return one quality of each row: ``pPDQ``, ``spatial``, ``label``, ``foreground`` or ``background``."""
        if name not in QUALITIES:
            raise InputError(f"expected a quality to be one of {', '.join(QUALITIES)}, but got {name!r:.40}")
        column: npt.NDArray[np.float64] = self.qualities[:, QUALITIES.index(name)]
        return column

    def _quality_columns(self) -> dict[str, Any]:
        """Return the qualities under names that nobody takes for a place or a label."""
        return {name if name == "pPDQ" else f"{name}_quality": self.quality(name) for name in QUALITIES}


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class JudgedTable(QualityTable):
    """A table of things that may have been matched: with what became of each, and the row of its partner.

    `image_rows` count in the data set's images, `labels` in its classes. Qualities are those of the match; where a
    partner is -1, there is none, they are NaN and pPDQ is 0. `dataset` is what they count in; an evaluation sees to it.
    """

    dataset: Dataset | None = None

    verdicts: npt.NDArray[np.uint8] = column(np.uint8)
    partners: npt.NDArray[np.int64] = column(np.int64)
    image_rows: npt.NDArray[np.int64] = column(np.int64)
    labels: npt.NDArray[np.int32] = column(np.int32)
    boxes: npt.NDArray[np.float64] = column(np.float64, 4)
    extents: npt.NDArray[np.float64] = column(np.float64, 2)

    def _of_images(self) -> dict[str, Any]:
        """Return the row of each thing, which `partner` columns point at, and its image."""
        known = self.dataset
        images = {"image_row": self.image_rows} if known is None else image_columns(known, self.image_rows)
        return {"row": np.arange(len(self)), **images}

    def _of_classes(self, *, optional: bool) -> dict[str, Any]:
        if self.dataset is None:
            return {"class_index": maybe_missing(self.labels) if optional else self.labels}
        return class_columns(self.labels, self.dataset.classes, optional=optional)

    def _of_matches(self) -> dict[str, Any]:
        """Return verdicts in words, partners and qualities; nobody was judged where there is not even a pPDQ."""
        names = text_column([*Verdict.NAMES, None])
        judged = ~np.isnan(self.quality("pPDQ"))
        return {
            "verdict": names[np.where(judged, self.verdicts.astype(np.int64), -1)],
            "partner": maybe_missing(self.partners),
            **self._quality_columns(),
        }


def unmatched_columns(n: int) -> dict[str, Any]:
    """Return the columns of a `JudgedTable` that are about matches, for n things that nobody has matched."""
    return {
        "verdicts": np.zeros(n, np.uint8),
        "partners": np.full(n, -1, np.int64),
        "qualities": np.full((n, len(QUALITIES)), np.nan),
    }


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ObjectTable(JudgedTable):
    """One row per object, by image, then as in the truth; `partners` are rows of the detections.

    Parameters
    ----------
    qualities : (N, 5) float64
        Of the match: pPDQ, spatial, label, foreground and background quality. Without one they are NaN and pPDQ is 0.
    dataset : Dataset, optional
        The images and classes that `image_rows` and `labels` count in.
    verdicts : (N,) uint8
        Values of `Verdict`.
    partners : (N,) int64
        The row of the detection that it was matched with; -1 where there is none.
    image_rows : (N,) int64
        The row of its image in `dataset`, not its id.
    labels : (N,) int32
        Its class.
    boxes : (N, 4) float64
        The annotated box ``x1, y1, x2, y2``.
    extents : (N, 2) float64
        Annotated width and height.
    ids : (N,) int64
        The annotation's id.
    areas : (N,) float64
        The annotated area in square pixels, by which objects are small, medium or large.
    crowd : (N,) bool
        Whether it is a region of many objects.
    pixels : (N,) int64
        How many pixels its mask has.
    mask_boxes : (N, 4) int32
        The tight box of the mask, last pixels included.
    ignored : (N,) bool
        Which objects PDQ passes over: small ones where the convention asks for it, and any without pixels.
    """

    ids: npt.NDArray[np.int64] = column(np.int64)
    areas: npt.NDArray[np.float64] = column(np.float64)
    crowd: npt.NDArray[np.bool_] = column(np.bool_)
    pixels: npt.NDArray[np.int64] = column(np.int64)
    mask_boxes: npt.NDArray[np.int32] = column(np.int32, 4)
    ignored: npt.NDArray[np.bool_] = column(np.bool_)

    @property
    def countable(self) -> npt.NDArray[np.bool_]:
        """Return which rows are objects: all but regions to ignore, which are crowds without a pixel."""
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
    """One row per detection that was scored, by image, then as in the file; `partners` are rows of the objects.

    Parameters
    ----------
    qualities : (N, 5) float64
        Of the match: pPDQ, spatial, label, foreground and background quality. Without one they are NaN and pPDQ is 0.
    dataset : Dataset, optional
        The images and classes that `image_rows` and `labels` count in.
    verdicts : (N,) uint8
        Values of `Verdict`.
    partners : (N,) int64
        The row of the object that it was matched with; -1 where there is none.
    image_rows : (N,) int64
        The row of its image in `dataset`, not its id.
    labels : (N,) int32
        The truth's class that it names, stated or most probable; -1 where it names none of them.
    boxes : (N, 4) float64
        ``x1, y1, x2, y2``; of a probabilistic box the means of its corners.
    extents : (N, 2) float64
        Width and height as the detector states them.
    numbers : (N,) int64
        Its number among the detections of its image in the file, from 0.
    scores : (N,) float64
        The score of the class that it names.
    confidences : (N,) float32
        The highest label probability, background included: what label thresholds look at.
    costs : (N,) float32
        The highest probability of a class that is not background.
    covariances : (N, 2, 2, 2) float64
        Of the top-left and the bottom-right corner, in square pixels; all 0 where a plain box was scored.
    heatmaps : (N,) bool
        Whether a given heatmap was scored instead of the box.
    label_probs : (N, C) float32, optional
        Of the truth's classes, what a row leaves of 1 being background; None where nobody kept them.
    """

    numbers: npt.NDArray[np.int64] = column(np.int64)
    scores: npt.NDArray[np.float64] = column(np.float64)
    confidences: npt.NDArray[np.float32] = column(np.float32)
    costs: npt.NDArray[np.float32] = column(np.float32)
    covariances: npt.NDArray[np.float64] = column(np.float64, 2, 2, 2)
    heatmaps: npt.NDArray[np.bool_] = column(np.bool_)
    label_probs: npt.NDArray[np.float32] | None = column(np.float32, "classes", optional=True)

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
        }
        if not label_probs:
            return columns
        width = 0 if self.label_probs is None else self.label_probs.shape[1]
        classes = self.dataset.classes if self.dataset is not None else tuple(map(str, range(width)))
        return columns | probability_columns(classes, self.label_probs)


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PairTable(QualityTable):
    """One row per pair of a detection and an object with a quality above 0, by image.

    Kept so that matches can be chosen anew, say above another label threshold, without touching pixels.

    Parameters
    ----------
    qualities : (P, 5) float64
        pPDQ, spatial, label, foreground and background quality.
    detections, objects : (P,) int64
        Rows of the evaluation's tables.
    """

    detections: npt.NDArray[np.int64] = column(np.int64)
    objects: npt.NDArray[np.int64] = column(np.int64)

    def _flat_columns(self, label_probs: bool) -> dict[str, Any]:
        self._has_no_label_probs(label_probs)
        return {"detection": self.detections, "object": self.objects, **self._quality_columns()}
