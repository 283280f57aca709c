"""What an experiment measured: one row per point."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.convention import PRESETS
from probox.errors import InputError
from probox.files.output import write_files
from probox.support.csv_rows import csv_lines

__all__ = ["ResultTable", "column_of", "presets_in"]

PLAIN_PRESET = "reference"
"""The preset whose columns have no ending."""


class ResultTable:
    """Named columns of equal length: settings first, then what was measured there.

    ``pandas.DataFrame(table.columns)`` makes a data frame of it.

    Examples
    --------
    >>> table = ResultTable.from_rows([{"shift": 0.0, "PDQ": 1.0}, {"shift": 0.1, "PDQ": 0.04}], settings=["shift"])
    >>> table["PDQ"]
    array([1.  , 0.04])
    >>> table.where(shift=0.1)
    ResultTable(1 rows: shift, PDQ)
    """

    def __init__(self, columns: Mapping[str, npt.ArrayLike], settings: Collection[str] = ()) -> None:
        self.columns: dict[str, npt.NDArray[Any]] = {name: np.asarray(values) for name, values in columns.items()}
        self.settings = tuple(name for name in self.columns if name in settings)
        if len({len(values) for values in self.columns.values()}) > 1:
            raise InputError("expected columns of equal length")

    @classmethod
    def from_rows(cls, rows: Sequence[Mapping[str, Any]], settings: Collection[str] = ()) -> ResultTable:
        """Return the table of these rows, all with the same names; `settings` are those that were not measured."""
        return cls({name: [row[name] for row in rows] for name in rows[0]} if rows else {}, settings)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.columns[name]

    def __repr__(self) -> str:
        return f"ResultTable({len(self)} rows: {', '.join(self.columns)})"

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows as dictionaries of plain Python values."""
        values = [column.tolist() for column in self.columns.values()]
        for row in zip(*values, strict=True):
            yield dict(zip(self.columns, row, strict=True))

    def take(self, kept: npt.NDArray[Any]) -> ResultTable:
        """Return the rows that a mask or numbers choose."""
        return ResultTable({name: values[kept] for name, values in self.columns.items()}, self.settings)

    def where(self, **settings: Any) -> ResultTable:
        """Return the rows with these settings."""
        kept = np.ones(len(self), dtype=bool)
        for name, value in settings.items():
            kept &= self.columns[name] == value
        return self.take(kept)

    def replace(self, **columns: npt.ArrayLike) -> ResultTable:
        """Return the table with some columns changed, or added."""
        return ResultTable({**self.columns, **columns}, self.settings)

    def mean_over(self, setting: str) -> ResultTable:
        """Return the means over one setting, say the repeats; rows keep the order in which their settings first came.

        Points that were not measured (NaN) are left out of the mean.
        """
        others = [name for name in self.settings if name != setting]
        measured = [name for name in self.columns if name not in self.settings]
        groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for row in self.rows():
            groups.setdefault(tuple(row[name] for name in others), []).append(row)
        return ResultTable.from_rows(
            [
                dict(zip(others, key, strict=True)) | {name: _mean([row[name] for row in rows]) for name in measured}
                for key, rows in groups.items()
            ],
            others,
        )

    def to_csv(self) -> str:
        """Return the table as CSV; numbers as short as they can be read back equal, nothing where not measured."""
        return "".join(csv_lines([list(self.columns), *(list(row.values()) for row in self.rows())]))

    def write_csv(self, path: str | Path) -> None:
        """Write the table as CSV."""
        write_files({Path(path): self.to_csv().encode()})


def column_of(key: str, preset: str) -> str:
    """Return what the column of a number is called that depends on the preset.

    >>> column_of("PDQ", "reference"), column_of("PDQ", "paper")
    ('PDQ', 'PDQ_paper')
    """
    return key if preset == PLAIN_PRESET else f"{key}_{preset}"


def presets_in(table: ResultTable, key: str = "PDQ") -> dict[str, str]:
    """Return the presets under which a number was measured at any point, each with its column.

    PDQ was measured wherever it has a column: if it is NaN throughout, then that is what came out, and no claim holds.
    What it is made of is NaN wherever nothing was matched.
    """
    named = {preset: column_of(key, preset) for preset in PRESETS} if len(table) else {}
    known = {preset: column for preset, column in named.items() if column in table}
    return {preset: name for preset, name in known.items() if key == "PDQ" or not np.isnan(table[name]).all()}


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return math.fsum(known) / len(known) if known else math.nan
