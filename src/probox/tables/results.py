"""Tables of results: one row per object, detection and pair of an evaluation, with what became of each.

Probox makes them itself, so their columns are taken as they are.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.tables.columns import Table, column, columns_of

__all__ = ["QUALITIES", "DetectionTable", "ObjectTable", "PairTable", "Verdict", "unmatched"]

QUALITIES = ("pPDQ", "spatial", "label", "foreground", "background")
"""The qualities of a pair: columns of `qualities`, in this order."""


SomeTable = TypeVar("SomeTable", bound="QualityTable")


class Verdict:
    """What became of an object or a detection; the values of the `verdicts` columns."""

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
        """Return one of the `QUALITIES`: ``table.quality("spatial")``."""
        if name not in QUALITIES:
            raise InputError(f"expected a quality to be one of {', '.join(QUALITIES)}, but got {name!r:.40}")
        column: npt.NDArray[np.float64] = self.qualities[:, QUALITIES.index(name)]
        return column


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class JudgedTable(QualityTable):
    """A table of things that may have been matched: with what became of each, and the row of its partner.

    `image_rows` count in the data set's images, `labels` in its classes. Qualities are those of the match; where a
    partner is -1, there is none, they are NaN and pPDQ is 0.
    """

    verdicts: npt.NDArray[np.uint8] = column(np.uint8)
    partners: npt.NDArray[np.int64] = column(np.int64)
    image_rows: npt.NDArray[np.int64] = column(np.int64)
    labels: npt.NDArray[np.int32] = column(np.int32)
    boxes: npt.NDArray[np.float64] = column(np.float64, 4)
    extents: npt.NDArray[np.float64] = column(np.float64, 2)


def unmatched(n: int) -> dict[str, npt.NDArray[Any]]:
    """Return the columns of a `JudgedTable` that are about matches, for n things that nobody has matched."""
    return {
        "verdicts": np.zeros(n, np.uint8),
        "partners": np.full(n, -1, np.int64),
        "qualities": np.full((n, len(QUALITIES)), np.nan),
    }


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ObjectTable(JudgedTable):
    """One row per object, by image, then as in the truth; `partners` are rows of the detections.

    `ignored` says which objects PDQ passes over: small ones where the convention asks for it, and any without pixels.
    """

    ids: npt.NDArray[np.int64] = column(np.int64)
    areas: npt.NDArray[np.float64] = column(np.float64)
    crowd: npt.NDArray[np.bool_] = column(np.bool_)
    pixels: npt.NDArray[np.int64] = column(np.int64)
    mask_boxes: npt.NDArray[np.int32] = column(np.int32, 4)
    ignored: npt.NDArray[np.bool_] = column(np.bool_)


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DetectionTable(JudgedTable):
    """One row per detection that was scored, by image, then as in the file; `partners` are rows of the objects.

    `numbers` count the image's detections in the file from 0. `labels` are the truth's classes that the detections
    name, stated or most probable, -1 for one that names none; `scores` are those of these classes. `confidences` are
    the highest label probabilities, background included; `costs` the highest ones of a class that is not background.
    `covariances` are all 0 where a plain box was scored; `heatmaps` says where a given heatmap was. `label_probs` are
    those of the truth's classes, what a row leaves of 1 being background; None where nobody kept them.
    """

    numbers: npt.NDArray[np.int64] = column(np.int64)
    scores: npt.NDArray[np.float64] = column(np.float64)
    confidences: npt.NDArray[np.float32] = column(np.float32)
    costs: npt.NDArray[np.float32] = column(np.float32)
    covariances: npt.NDArray[np.float64] = column(np.float64, 2, 2, 2)
    heatmaps: npt.NDArray[np.bool_] = column(np.bool_)
    label_probs: npt.NDArray[np.float32] | None = column(np.float32, "classes", optional=True)


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PairTable(QualityTable):
    """One row per pair of a detection and an object with a quality above 0, by image.

    Kept so that matches can be chosen anew, say above another label threshold, without touching pixels.
    """

    detections: npt.NDArray[np.int64] = column(np.int64)
    objects: npt.NDArray[np.int64] = column(np.int64)
