"""Flat tables with named columns: data frames, Arrow, CSV and HTML."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from probox.errors import InputError, UnknownKeyError
from probox.support.formatting import csv_lines, nearest_word, some_names, without_formula
from probox.support.optional import require
from probox.support.text_table import html_table, html_text, shown_value
from probox.support.types import Array

if TYPE_CHECKING:
    from probox.tables.dataset import Dataset


LIBRARIES = ("pandas", "polars")

"""Libraries of data frames in order of preference."""

Columns = Mapping[str, npt.NDArray[Any]]


def missing(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which values of a column are missing."""
    if values.dtype == object:
        return np.fromiter((value is None for value in values), bool, len(values))
    if np.issubdtype(values.dtype, np.floating):
        return np.asarray(np.isnan(values))
    return np.ma.getmaskarray(values)


def _pandas(pd: Any, columns: Columns) -> Any:
    def made(values: npt.NDArray[Any]) -> Any:
        if isinstance(values, np.ma.MaskedArray):
            whole = np.ma.getdata(values).astype(np.int64)
            return pd.arrays.IntegerArray(whole, np.ma.getmaskarray(values).copy())
        return values

    return pd.DataFrame({name: made(values) for name, values in columns.items()}, copy=True)


def _polars(pl: Any, columns: Columns) -> Any:
    def made(name: str, values: npt.NDArray[Any]) -> Any:
        if values.dtype == object:
            return pl.Series(name, values.tolist(), dtype=pl.String)
        series = pl.Series(name, np.array(np.ma.getdata(values)), nan_to_null=True)
        gone = missing(values)
        return series.scatter(np.flatnonzero(gone), None) if isinstance(values, np.ma.MaskedArray) else series

    return pl.DataFrame([made(name, values) for name, values in columns.items()])


SHOWN_ROWS = 10

"""Number of rows shown in notebooks."""

CHUNK = 10_000

"""Number of rows written at a time."""


class Readable:
    """Base class of objects that can be exported as a flat table."""

    def flat(self) -> FlatTable:
        """Return the object as a table with one number or text per cell."""
        raise NotImplementedError

    def to_frame(self, library: str | None = None) -> Any:
        """Return a pandas or polars data frame.

        The default `library` is pandas if installed, otherwise polars. Missing numbers are NaN or null.
        """
        return self.flat().to_frame(library)

    def to_arrow(self) -> Any:
        """Return a ``pyarrow.Table``; missing numbers are null."""
        return self.flat().to_arrow()

    def _repr_html_(self) -> str:
        return self.flat()._repr_html_()


class FlatTable:
    """Named columns of equal length, each an array of numbers or of text.

    Missing floats are NaN, missing integers are masked, missing text is None.

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
            raise InputError(f"unknown column {name!r:.60}", remedy=f"use one of {', '.join(self.columns)}")
        return self.columns[name]

    def to_frame(self, library: str | None = None) -> Any:
        """Return a pandas or polars data frame.

        The default `library` is pandas if installed, otherwise polars. Text becomes object or string columns, integers
        with missing values nullable integers. Missing values are null where the library supports it.
        """
        if library is not None and library not in LIBRARIES:
            known = " or ".join(map(repr, LIBRARIES))
            problem = f"expected library to be {known}, but got {library!r:.40}"
            raise InputError(problem, remedy="use to_arrow() for others")
        for name in (library,) if library else LIBRARIES:
            try:
                return (_pandas if name == "pandas" else _polars)(import_module(name), self.columns)
            except ImportError:
                continue
        problem = f"{library}, which cannot be imported" if library else "pandas or polars"
        remedy = f"install it with: pip install {library}"
        if not library:
            remedy = "install one with: pip install pandas (or: pip install polars)"
        raise InputError(f"a data frame needs {problem}", remedy=remedy)

    def to_arrow(self) -> Any:
        """Return a ``pyarrow.Table``; missing values are null."""
        pa = require("pyarrow", extra="parquet", purpose="a table of Arrow needs")
        arrays = {}
        for name, values in self.columns.items():
            if values.dtype == object:
                arrays[name] = pa.array(values.tolist(), pa.string())
            else:
                arrays[name] = pa.array(np.ma.getdata(values), mask=missing(values))
        return pa.table(arrays)

    def row_values(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[Any, ...]]:
        """Yield rows as plain Python values; None for missing text and integers."""
        return zip(*(values[start:stop].tolist() for values in self.columns.values()), strict=True)

    def csv_chunks(self) -> Iterator[bytes]:
        """Yield the table as CSV with a header line, a number of rows at a time."""
        yield "".join(csv_lines([list(self.columns)])).encode()
        for start in range(0, len(self), CHUNK):
            fields = [_fields(values[start : start + CHUNK]) for values in self.columns.values()]
            yield "".join(csv_lines(zip(*fields, strict=True), ready=True)).encode()

    def _is_text(self) -> list[bool]:
        return [values.dtype == object for values in self.columns.values()]

    def _repr_html_(self) -> str:
        cells = [[shown_value(value) for value in row] for row in self.row_values(0, SHOWN_ROWS)]
        title = f"<p><b>{html_text(self.title)}</b></p>" if self.title else ""
        more = f"<p>... {len(cells):,} of {self.rows:,} rows</p>" if self.rows > len(cells) else ""
        return f"<div>{title}{html_table(list(self.columns), cells, texts=self._is_text())}{more}</div>"

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
    """Raise for an unknown row or column; the message names the known ones."""
    names = list(map(str, known))
    near = nearest_word(key, names) if isinstance(key, str) else None
    remedy = f"did you mean {near}?" if near else f"choose one of {some_names(names)}"
    raise UnknownKeyError(f"no {what} {key!r:.60}", remedy=remedy if names else "the table is empty")


class Row(dict[str, Any]):
    """Numbers of a row by column name; an unknown name raises an error that lists the known ones."""

    def __missing__(self, key: str) -> NoReturn:
        raise_unknown("column", key, self)


class NumberTable(Mapping[Any, Row], Readable):
    """Table of numbers with named rows: ``table["cup"]["AP"]``; ``table.columns["AP"]`` is the whole column.

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
        """Return the table with the names of rows as first column."""
        return FlatTable({self.kind: text_column(map(str, self._rows)), **self.columns})

    def __str__(self) -> str:
        return str(self.flat())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} rows: {', '.join(self.columns)})"


def _fields(values: Array) -> list[str | None]:
    """Format a column as text that reads back equal; by columns, as there may be millions of rows."""
    if values.dtype == object:
        return [None if text is None else without_formula(text) for text in values]
    texts = [repr(value) for value in np.ma.getdata(values).tolist()]
    return [None if gone else text for text, gone in zip(texts, missing(values).tolist(), strict=True)]


def text_column(texts: Iterable[str | None]) -> Array:
    """Return texts as a column; unpaired surrogates, which other libraries refuse, are escaped."""
    values = [None if text is None else text.encode("utf-8", "backslashreplace").decode() for text in texts]
    column = np.empty(len(values), object)
    column[:] = values
    return column


def maybe_missing(numbers: npt.NDArray[np.integer[Any]]) -> Array:
    """Return integers with negative values masked as missing.

    >>> maybe_missing(np.array([3, -1])).tolist()
    [3, None]
    """
    return np.ma.MaskedArray(numbers, mask=numbers < 0)


def named_once(names: Sequence[str]) -> list[str]:
    """Return unique column names by numbering repeated ones.

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


Flat = dict[str, npt.NDArray[Any]]

EDGES = ("x1", "y1", "x2", "y2")

CORNERS = ("tl", "br")

"""Top-left and bottom-right corner."""


def image_columns(dataset: Dataset, rows: npt.NDArray[np.int64]) -> Flat:
    """Return image ids and, if any are known, file names of the given image rows."""
    columns: Flat = {"image_id": dataset.image_ids[rows]}
    if any(dataset.file_names):
        columns["file_name"] = text_column([name or None for name in dataset.file_names])[rows]
    return columns


def class_columns(labels: npt.NDArray[np.int32], classes: Sequence[str], *, optional: bool = False) -> Flat:
    """Return class names and indices; with `optional`, indices below 0 are masked."""
    names = text_column([*classes, None])  # index -1 selects the last entry
    return {"class": names[labels], "class_index": maybe_missing(labels) if optional else labels}


def box_columns(boxes: npt.NDArray[np.float64]) -> Flat:
    """Return the four edges of boxes."""
    return {name: boxes[:, number] for number, name in enumerate(EDGES)}


def corner_columns(covariances: npt.NDArray[np.float64]) -> Flat:
    """Return the standard deviations of the edges in pixels, then the corner covariances in pixels squared."""
    variances = np.diagonal(covariances, axis1=2, axis2=3).reshape(-1, 4)
    # Rounding may leave a variance just below 0.
    sigmas = np.sqrt(np.maximum(variances, 0.0))
    columns: Flat = {f"sigma_{name}": sigmas[:, number] for number, name in enumerate(EDGES)}
    for number, corner in enumerate(CORNERS):
        own = covariances[:, number]
        columns |= {f"{corner}_xx": own[:, 0, 0], f"{corner}_xy": own[:, 0, 1], f"{corner}_yy": own[:, 1, 1]}
    return columns


def probability_columns(classes: Sequence[str], label_probs: npt.ArrayLike | None) -> Flat:
    """Return the probability of each class, in columns named ``p_`` and the class."""
    if label_probs is None:
        raise InputError(
            "label probabilities were not stored",
            remedy='evaluate with measures="all" or, image by image, with Evaluator(keep_labels=True)',
        )
    names = named_once([f"p_{name}" for name in text_column(classes).tolist()])
    return dict(zip(names, np.asarray(label_probs).T, strict=True))


def plain_columns(columns: dict[str, Any]) -> Flat:
    """Return the columns of a table as they are; those with several numbers per row are split and numbered."""
    flat: Flat = {}
    for name, values in columns.items():
        if isinstance(values, np.ndarray):
            rows = values.reshape(len(values), -1) if values.size else np.zeros((len(values), 0), values.dtype)
            single = values.ndim == 1
            flat |= {name: values} if single else {f"{name}_{n}": rows[:, n] for n in range(rows.shape[1])}
        elif isinstance(values, tuple) and all(isinstance(value, str) for value in values):
            flat[name] = text_column(values)
    return flat
