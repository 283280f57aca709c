"""Tables of results: columns of equal length that can be cut, joined and stored."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["DetectionTable", "ImageTable", "ObjectTable", "PairTable", "Table", "Verdict"]

SomeTable = TypeVar("SomeTable", bound="Table")


class Verdict:
    """What became of an object or a detection; the values of the `verdict` columns."""

    IGNORED, TP, FP, FN = 0, 1, 2, 3
    NAMES = ("ignored", "TP", "FP", "FN")


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Table:
    """Columns of equal length; the first axis of every array counts rows."""

    def __post_init__(self) -> None:
        lengths = {name: len(column) for name, column in self.columns().items()}
        assert len(set(lengths.values())) <= 1, lengths
        for column in self.columns().values():
            column.flags.writeable = False

    def __len__(self) -> int:
        return len(next(iter(self.columns().values())))

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Return the columns by name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def take(self: SomeTable, rows: npt.NDArray[Any]) -> SomeTable:
        """Return the table of these rows, in this order."""
        return type(self)(**{name: column[rows] for name, column in self.columns().items()})

    def replace(self: SomeTable, **columns: npt.NDArray[Any]) -> SomeTable:
        """Return the table with some columns changed."""
        return dataclasses.replace(self, **columns)

    @classmethod
    def join(cls: type[SomeTable], parts: Sequence[SomeTable]) -> SomeTable:
        """Return the rows of all parts, one after the other."""
        names = [field.name for field in dataclasses.fields(cls)]
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})

    @classmethod
    def from_arrays(cls: type[SomeTable], arrays: Mapping[str, npt.NDArray[Any]], prefix: str) -> SomeTable:
        """Return the table that was stored as ``prefix.column`` arrays."""
        return cls(**{field.name: arrays[f"{prefix}.{field.name}"] for field in dataclasses.fields(cls)})

    def to_arrays(self, prefix: str) -> dict[str, npt.NDArray[Any]]:
        """Return the columns under names that say which table they belong to."""
        return {f"{prefix}.{name}": column for name, column in self.columns().items()}


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class ImageTable(Table):
    """One row per image, ascending by id."""

    id: npt.NDArray[np.int64]
    width: npt.NDArray[np.int32]
    height: npt.NDArray[np.int32]
    file_name: npt.NDArray[np.str_]


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class QualityTable(Table):
    """A table with the qualities of a pair in each row."""

    pPDQ: npt.NDArray[np.float64]  # noqa: N815 (the measure's own name)
    spatial: npt.NDArray[np.float64]
    label: npt.NDArray[np.float64]
    foreground: npt.NDArray[np.float64]
    background: npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class JudgedTable(QualityTable):
    """A table of things that may have been matched: with what became of each, and the row of its partner.

    Qualities are those of the match; where `partner` is -1, there is none, they are NaN and `pPDQ` is 0.
    """

    verdict: npt.NDArray[np.uint8]
    partner: npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class ObjectTable(JudgedTable):
    """One row per object, by image, then as in the truth; `partner` is a row of the detections.

    `small` says which objects PDQ ignores: small ones where the convention asks for it, and any without pixels.
    """

    image_id: npt.NDArray[np.int64]
    id: npt.NDArray[np.int64]
    class_index: npt.NDArray[np.int32]
    box: npt.NDArray[np.float64]
    size: npt.NDArray[np.float64]
    area: npt.NDArray[np.float64]
    crowd: npt.NDArray[np.bool_]
    pixels: npt.NDArray[np.int64]
    mask_box: npt.NDArray[np.int32]
    small: npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class DetectionTable(JudgedTable):
    """One row per detection that was scored, by image, then as in the file.

    `number` counts the image's detections in the file from 0. `class_index` is the truth's class that the detection
    names, stated or most probable, or -1 if it names none; `score` is that class's. `confidence` is its highest label
    probability, background included; `cost` the highest one of a class that is not background. `covariances`
    are all 0 where a plain box was scored. `partner` is a row of the objects.
    """

    image_id: npt.NDArray[np.int64]
    number: npt.NDArray[np.int64]
    class_index: npt.NDArray[np.int32]
    score: npt.NDArray[np.float64]
    confidence: npt.NDArray[np.float32]
    cost: npt.NDArray[np.float32]
    box: npt.NDArray[np.float64]
    size: npt.NDArray[np.float64]
    covariances: npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class PairTable(QualityTable):
    """One row per pair of a detection and an object with a quality above 0, by image.

    Kept so that matches can be chosen anew, say above another label threshold, without touching pixels.
    """

    detection: npt.NDArray[np.int64]
    object: npt.NDArray[np.int64]
