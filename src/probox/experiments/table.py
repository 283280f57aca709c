"""What an experiment measured: one row per point."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.files.output import write_files
from probox.measures import registry
from probox.measures.pdq.measure import PDQ
from probox.support.csv_rows import csv_lines

__all__ = ["PDQ_PAPER", "ResultTable", "measured_columns"]

PDQ_PAPER = "PDQ_paper"


class ResultTable:
    """Named columns of equal length: settings first, then what was measured there.

    ``pandas.DataFrame(table.columns)`` makes a data frame of it.

    Examples
    --------
    >>> table = ResultTable.from_rows([{"shift": 0.0, "PDQ": 1.0}, {"shift": 0.1, "PDQ": 0.04}])
    >>> table["PDQ"]
    array([1.  , 0.04])
    >>> table.where(shift=0.1)
    ResultTable(1 rows: shift, PDQ)
    """

    def __init__(self, columns: Mapping[str, npt.ArrayLike]) -> None:
        self.columns: dict[str, npt.NDArray[Any]] = {name: np.asarray(values) for name, values in columns.items()}
        if len({len(values) for values in self.columns.values()}) > 1:
            raise InputError("expected columns of equal length")

    @classmethod
    def from_rows(cls, rows: Sequence[Mapping[str, Any]]) -> ResultTable:
        """Return the table of these rows, all with the same names."""
        return cls({name: [row[name] for row in rows] for name in rows[0]} if rows else {})

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.columns[name]

    def __repr__(self) -> str:
        return f"ResultTable({len(self)} rows: {', '.join(self.columns)})"

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows as dictionaries of plain Python values."""
        values = [column.tolist() for column in self.columns.values()]
        for row in zip(*values, strict=True):
            yield dict(zip(self.columns, row, strict=True))

    def where(self, **settings: Any) -> ResultTable:
        """Return the rows with these settings."""
        kept = np.ones(len(self), dtype=bool)
        for name, value in settings.items():
            kept &= self.columns[name] == value
        return ResultTable({name: values[kept] for name, values in self.columns.items()})

    def mean_over(self, setting: str) -> ResultTable:
        """Return the means over one setting, say the repeats; rows keep the order in which their settings first came.

        Points that were not measured (NaN) are left out of the mean.
        """
        measured = [name for name in self.columns if name in measured_columns()]
        others = [name for name in self.columns if name not in measured and name != setting]
        groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for row in self.rows():
            groups.setdefault(tuple(row[name] for name in others), []).append(row)
        return ResultTable.from_rows(
            [
                dict(zip(others, key, strict=True)) | {name: _mean([row[name] for row in rows]) for name in measured}
                for key, rows in groups.items()
            ]
        )

    def to_csv(self) -> str:
        """Return the table as CSV; numbers as short as they can be read back equal, nothing where not measured."""
        return "".join(csv_lines([list(self.columns), *(list(row.values()) for row in self.rows())]))

    def write_csv(self, path: str | Path) -> None:
        """Write the table as CSV."""
        write_files({Path(path): self.to_csv().encode()})


def measured_columns() -> tuple[str, ...]:
    """Return the columns of what was measured: the first of every measure, and PDQ under the preset `paper`."""
    names = [measure.headline.key for measure in registry.MEASURES if measure.standard]
    names.insert(names.index(PDQ.headline.key) + 1, PDQ_PAPER)
    return tuple(names)


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return math.fsum(known) / len(known) if known else math.nan
