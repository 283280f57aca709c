"""Tables as people read them: flat columns with names, which become data frames, Arrow, CSV and HTML."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from probox.errors import InputError, UnknownKeyError
from probox.support.csv_rows import csv_lines, without_formula
from probox.support.html_table import html_table, html_text, shown_value
from probox.support.words import nearest_word, some_names
from probox.tables.frames import arrow_table, data_frame, missing

__all__ = ["FlatTable", "NumberTable", "Readable", "Row", "maybe_missing", "named_once", "raise_unknown", "text_column"]

SHOWN_ROWS = 10
"""Rows that a notebook shows."""
CHUNK = 10_000
"""Rows that are written at a time."""

Array = npt.NDArray[Any]


class Readable:
    """What people can read as a table: a subclass says which flat columns it has."""

    def flat(self) -> FlatTable:
        """Return it as columns with a name each."""
        raise NotImplementedError

    def to_frame(self, library: str | None = None) -> Any:
        """Return a data frame of pandas or else of polars, whichever is installed; name one to choose it.

        Numbers that are missing are NaN in pandas and null in polars.
        """
        return self.flat().to_frame(library)

    def to_arrow(self) -> Any:
        """Return a ``pyarrow.Table``; numbers that are missing are null."""
        return self.flat().to_arrow()

    def _repr_html_(self) -> str:
        return self.flat()._repr_html_()


class FlatTable:
    """Columns of equal length by name; each is an array of numbers or of text.

    Missing numbers are NaN, or masked where they are whole; missing text is None.

    >>> table = FlatTable({"class": text_column(["cup", "dog"]), "AP50": np.array([0.5, np.nan])})
    >>> print(table)
    class  AP50
    cup     0.5
    dog
    """

    def __init__(self, columns: Mapping[str, Array], *, title: str = "", rows: int | None = None) -> None:
        self.columns = dict(columns)
        lengths = {len(values) for values in self.columns.values()}
        assert len(lengths) <= 1, lengths
        self.title = title
        self.rows = max(lengths, default=0) if rows is None else rows

    def __len__(self) -> int:
        return max((len(values) for values in self.columns.values()), default=0)

    def __getitem__(self, name: str) -> Array:
        if name not in self.columns:
            raise InputError(f"there is no column {name!r:.60}", remedy=f"choose one of {', '.join(self.columns)}")
        return self.columns[name]

    def to_frame(self, library: str | None = None) -> Any:
        """Return a data frame of pandas or else of polars, whichever is installed; name one to choose it."""
        return data_frame(self.columns, library)

    def to_arrow(self) -> Any:
        """Return a ``pyarrow.Table``."""
        return arrow_table(self.columns)

    def row_values(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[Any, ...]]:
        """Yield rows as plain values; None where a text or a whole number is missing."""
        return zip(*(values[start:stop].tolist() for values in self.columns.values()), strict=True)

    def csv_chunks(self) -> Iterator[bytes]:
        """Yield the table as CSV, some rows at a time, after a line with the columns' names."""
        yield "".join(csv_lines([list(self.columns)])).encode()
        for start in range(0, len(self), CHUNK):
            fields = [_fields(values[start : start + CHUNK]) for values in self.columns.values()]
            yield "".join(csv_lines(zip(*fields, strict=True), ready=True)).encode()

    def _is_text(self) -> list[bool]:
        return [values.dtype == object for values in self.columns.values()]

    def _repr_html_(self) -> str:
        cells = [[shown_value(value) for value in row] for row in self.row_values(0, SHOWN_ROWS)]
        title = f"<p><b>{html_text(self.title)}</b></p>" if self.title else ""
        return (
            f"<div>{title}{html_table(list(self.columns), cells, texts=self._is_text())}{_more(self, len(cells))}</div>"
        )

    def __repr__(self) -> str:
        return f"FlatTable({self.rows} rows: {', '.join(self.columns)})"

    def __str__(self) -> str:
        cells = [list(self.columns), *([shown_value(value) for value in row] for row in self.row_values())]
        widths = [max(len(row[column]) for row in cells) for column in range(len(self.columns))]
        lines = [
            "  ".join(
                cell.ljust(width) if text else cell.rjust(width)
                for cell, width, text in zip(row, widths, self._is_text(), strict=True)
            ).rstrip()
            for row in cells
        ]
        return "\n".join(lines)


def raise_unknown(what: str, key: object, known: Iterable[object]) -> NoReturn:
    """Raise that there is no such row or column, naming those that there are."""
    names = list(map(str, known))
    near = nearest_word(key, names) if isinstance(key, str) else None
    remedy = f"did you mean {near}?" if near else f"choose one of {some_names(names)}"
    raise UnknownKeyError(f"no {what} {key!r:.60}", remedy=remedy if names else "there are none")


class Row(dict[str, Any]):
    """Numbers by the names of columns; an unknown name raises an error that lists the known ones."""

    def __missing__(self, key: str) -> NoReturn:
        raise_unknown("column", key, self)


class NumberTable(Mapping[Any, Row], Readable):
    """Rows of numbers by a name or id: ``table["cup"]["AP"]``; ``table.columns["AP"]`` has those of all rows.

    >>> table = NumberTable("class", ["cup", "dog"], {"AP": np.array([0.5, 0.25])})
    >>> table["dog"]["AP"], table.columns["AP"].tolist()
    (0.25, [0.5, 0.25])
    >>> table["cat"]
    Traceback (most recent call last):
        ...
    probox.errors.UnknownKeyError: no class 'cat'; choose one of cup, dog
    """

    def __init__(self, kind: str, keys: Sequence[Hashable], columns: Mapping[str, npt.NDArray[Any]]) -> None:
        self.kind = kind
        self.columns = Row(columns)
        self._rows = {key: row for row, key in enumerate(keys)}

    def __getitem__(self, key: Any) -> Row:
        if key not in self._rows:
            raise_unknown(self.kind, key, self._rows)
        row = self._rows[key]
        return Row((name, values[row].item()) for name, values in self.columns.items())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def flat(self) -> FlatTable:
        """Return the names of rows and the columns."""
        return FlatTable({self.kind: text_column(map(str, self._rows)), **self.columns})

    def __str__(self) -> str:
        return str(self.flat())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} rows: {', '.join(self.columns)})"


def _fields(values: Array) -> list[str | None]:
    """Return a column as text that is read back equal, column by column since there may be millions of rows."""
    if values.dtype == object:
        return [None if text is None else without_formula(text) for text in values]
    texts = [repr(value) for value in np.ma.getdata(values).tolist()]
    return [None if gone else text for text, gone in zip(texts, missing(values).tolist(), strict=True)]


def _more(table: FlatTable, shown: int) -> str:
    return f"<p>... {shown:,} of {table.rows:,} rows</p>" if table.rows > shown else ""


def text_column(texts: Iterable[str | None]) -> Array:
    """Return texts as a column; halves of characters, which no other library takes, are written as escapes."""
    values = [None if text is None else text.encode("utf-8", "backslashreplace").decode() for text in texts]
    column = np.empty(len(values), object)
    column[:] = values
    return column


def maybe_missing(numbers: npt.NDArray[np.integer[Any]]) -> Array:
    """Return whole numbers, those below 0 standing for none.

    >>> maybe_missing(np.array([3, -1])).tolist()
    [3, None]
    """
    return np.ma.MaskedArray(numbers, mask=numbers < 0)


def named_once(names: Sequence[str]) -> list[str]:
    """Return names of columns, with a number behind those that were there before.

    >>> named_once(["cup", "dog", "cup"])
    ['cup', 'dog', 'cup (2)']
    """
    found: list[str] = []
    taken: set[str] = set()
    for name in names:
        number, new = 1, name
        while new in taken:
            number += 1
            new = f"{name} ({number})"
        taken.add(new)
        found.append(new)
    return found
