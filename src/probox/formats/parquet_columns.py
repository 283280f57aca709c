"""What Parquet files of detections and of ground truth share: numbers in columns, words in the metadata, row groups."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.errors import InputError
from probox.formats.files import Paths
from probox.formats.output import write_files
from probox.parallel import thread_count

__all__ = [
    "ParquetFile",
    "as_columns",
    "box_columns",
    "cut_at_images",
    "is_parquet",
    "pyarrow",
    "same_bits",
    "write_row_groups",
]

OLDEST_PYARROW = 22
"""The first one that writes 32-bit decimals."""

FORMAT = 1
KEY = b"probox"
"""The key of the file's metadata under which JSON says what the columns mean."""

MAGIC = b"PAR1"
GROUP_BYTES = 16 << 20
"""About how many bytes of a table go into one row group."""
ZSTD_LEVEL = 3
MAX_DIGITS = 9
"""Decimals of up to nine digits fit Parquet's 32-bit integers."""
MAX_SINGLE = 1 << 24
"""Integers up to this one are float32 numbers; label probabilities with more digits are no printed decimals."""

_REMEDY = "write it with probox.write_parquet or `probox convert`"

STARTS, ENDS, SIZES = ("x1", "y1"), ("x2", "y2"), ("width", "height")

Doubles = npt.NDArray[np.float64]
Floats = npt.NDArray[np.floating[Any]]
Ids = npt.NDArray[np.int64]


def is_parquet(path: Paths) -> bool:
    """Return whether a file starts as Parquet files do; pipes are not looked into, for that would use them up."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):
        return False


def pyarrow() -> tuple[Any, Any]:
    """Return the modules `pyarrow` and `pyarrow.parquet`, which are installed on demand."""
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise InputError("Parquet files need pyarrow", remedy="pip install 'probox[parquet]'") from None
    if int(arrow.__version__.split(".")[0]) < OLDEST_PYARROW:
        raise InputError(
            f"Parquet files need pyarrow {OLDEST_PYARROW} or newer, but got {arrow.__version__}",
            remedy="pip install -U 'probox[parquet]'",
        )
    return arrow, parquet


# --- writing ---


def as_columns(columns: Mapping[str, npt.NDArray[Any]], *, alike: bool = False) -> dict[str, Any]:
    """Return Arrow arrays of columns, decimals where that gives back every bit.

    Numbers that were printed with a few digits take half the space as decimals: ``0.01561`` is the integer
    1561 and the scale 5, and ``float(1561) / float(100000)`` is the nearest float again. With `alike` all columns
    get the same scale, or none gets one.
    """
    arrow, _ = pyarrow()
    groups = [list(columns)] if alike else [[name] for name in columns]
    made: dict[str, Any] = {}
    for names in groups:
        scale = _decimal_scale([columns[name] for name in names])
        for name in names:
            values = columns[name]
            if scale is None:
                made[name] = arrow.array(np.ascontiguousarray(values))
            else:
                integers = _as_integers(values, scale)
                kind = arrow.decimal32(MAX_DIGITS, scale)
                made[name] = arrow.Array.from_buffers(kind, len(values), [None, arrow.py_buffer(integers)])
    return made


def _decimal_scale(columns: Sequence[npt.NDArray[Any]]) -> int | None:
    """Return the fewest decimal places that give back all floats to the last bit, if nine digits are enough."""
    if not columns or not np.issubdtype(columns[0].dtype, np.floating) or not columns[0].size:
        return None
    samples = [values[:: max(1, len(values) // 100)] for values in columns]
    for scale in range(MAX_DIGITS):
        if all(_comes_back(values, scale) for values in samples) and all(_comes_back(v, scale) for v in columns):
            return scale
    return None


def _comes_back(values: Floats, scale: int) -> bool:
    limit = MAX_SINGLE if values.dtype == np.float32 else 10**MAX_DIGITS
    if not bool((np.abs(values.astype(np.float64)) * 10.0**scale < limit - 1).all()):  # NaN is none either
        return False
    bits = np.uint32 if values.dtype == np.float32 else np.uint64
    again = from_integers(_as_integers(values, scale), scale, values.dtype)
    return np.array_equal(again.view(bits), np.ascontiguousarray(values).view(bits))


def _as_integers(values: Floats, scale: int) -> npt.NDArray[np.int32]:
    return np.rint(values.astype(np.float64) * 10.0**scale).astype(np.int32)


def from_integers(integers: npt.NDArray[np.int32], scale: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return decimals as floats: one division, correctly rounded, is the float nearest to the decimal."""
    return np.asarray(integers.astype(dtype) / np.array(10.0**scale, dtype))


def box_columns(boxes: Doubles, sizes: Doubles) -> dict[str, Doubles]:
    """Return the columns of boxes and their stated sizes, without those that follow from the others to the last bit."""
    low, high = boxes[:, :2], boxes[:, 2:]
    columns = dict(zip((*STARTS, *ENDS, *SIZES), (*low.T, *high.T, *sizes.T), strict=True))
    if same_bits(high - low, sizes):
        return {name: columns[name] for name in (*STARTS, *ENDS)}
    if same_bits(low + sizes, high):
        return {name: columns[name] for name in (*STARTS, *SIZES)}
    return columns


def same_bits(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    """Return whether two arrays of float64 are equal to the last bit, signs of zeros and NaN included."""
    return np.array_equal(np.ascontiguousarray(one).view(np.uint64), np.ascontiguousarray(other).view(np.uint64))


def cut_at_images(image_ids: Ids, bytes_per_row: int) -> list[slice]:
    """Return row ranges of about `GROUP_BYTES` that end where an image ends; `image_ids` ascend."""
    wanted = max(1, GROUP_BYTES // max(1, bytes_per_row))
    if not len(image_ids):
        return []
    borders = np.flatnonzero(np.concatenate([[True], image_ids[1:] != image_ids[:-1], [True]]))
    cuts: list[slice] = []
    begin = 0
    while begin < len(image_ids):
        at = int(np.searchsorted(borders, begin + wanted, side="right")) - 1
        end = int(borders[at])
        if end <= begin:  # one image has more rows than are wanted
            end = int(borders[at + 1])
        cuts.append(slice(begin, end))
        begin = end
    return cuts


def write_row_groups(
    path: Paths, schema: Any, words: Mapping[str, Any], tables: Iterable[Any], dictionaries: Sequence[str]
) -> None:
    """Write Arrow tables, one row group each, with `words` in the metadata; the file is there whole or not at all."""
    from probox import __version__

    arrow, parquet = pyarrow()
    text = json.dumps({"format": FORMAT, "version": __version__, **words}, ensure_ascii=False)
    full = schema.with_metadata({KEY: text.encode()})

    def write(file: Any) -> None:
        with parquet.ParquetWriter(
            file,
            full,
            compression="zstd",
            compression_level=ZSTD_LEVEL,
            use_dictionary=list(dictionaries),
            column_encoding={
                name: encoding
                for field in full
                for name, encoding in _encoding(arrow, field)
                if field.name not in dictionaries
            },
            write_statistics=["image_id"],
            store_decimal_as_integer=True,
            write_page_checksum=True,
        ) as writer:
            for table in tables:
                writer.write_table(table.cast(full), row_group_size=max(1, len(table)))

    write_files({Path(path): write})


def _encoding(arrow: Any, field: Any) -> Iterator[tuple[str, str]]:
    """Yield the path of a column and its encoding: bytes of like weight together, or differences of neighbours."""
    if arrow.types.is_list(field.type):
        yield f"{field.name}.list.element", "DELTA_BINARY_PACKED"
    elif arrow.types.is_decimal(field.type) or arrow.types.is_floating(field.type):
        yield field.name, "BYTE_STREAM_SPLIT"
    elif arrow.types.is_integer(field.type):
        yield field.name, "DELTA_BINARY_PACKED"


# --- reading ---


def holds_truth(path: Paths) -> bool:
    """Return whether a Parquet file is one of ground truth."""
    try:
        ParquetFile(path, "truth")
    except InputError:
        return False
    return True


class ParquetFile:
    """An open Parquet file of probox, its words already checked.

    Parameters
    ----------
    path : path
        The file.
    table : {"detections", "truth"}
        What it must hold.
    """

    def __init__(self, path: Paths, table: str) -> None:
        self.name = str(path)
        _, parquet = pyarrow()
        if not is_parquet(path):
            if not os.path.exists(path):
                raise InputError("no such file", file=self.name, remedy="check the path")
            raise InputError("expected a Parquet file", file=self.name, remedy="read_detections tells formats apart")
        with self._readable():
            self._file = parquet.ParquetFile(self.name, page_checksum_verification=True)
            self.columns: list[str] = self._file.schema_arrow.names
            self.row_groups: int = self._file.metadata.num_row_groups
            self.rows: int = self._file.metadata.num_rows
        self.words = self._checked_words(table)
        self.classes: tuple[str, ...] = tuple(self.words["classes"])

    def read(self, columns: Sequence[str], groups: Sequence[int] | None = None, *, optional: Sequence[str] = ()) -> Any:
        """Return an Arrow table of these columns, and of optional ones that are there, of some or all row groups."""
        missing = [name for name in columns if name not in self.columns]
        twice = [name for name in self.columns if self.columns.count(name) > 1] if self._has_twins() else []
        if missing or twice:
            problem = f"expected a column {missing[0]!r}" if missing else f"has the column {twice[0]!r} twice"
            raise InputError(problem, file=self.name, remedy=_REMEDY)
        wanted = [*columns, *(name for name in optional if name in self.columns)]
        with self._readable():
            if groups is None:
                return self._file.read(columns=wanted)
            return self._file.read_row_groups(list(groups), columns=wanted)

    def groups_between(self, first: int, last: int) -> list[int]:
        """Return the row groups that may hold images from `first` to `last`, as far as their statistics tell."""
        column = self.columns.index("image_id") if "image_id" in self.columns else -1
        chosen = []
        for group in range(self.row_groups):
            with self._readable():
                statistics = self._file.metadata.row_group(group).column(self._leaf(column)).statistics
            known = statistics is not None and statistics.has_min_max
            if not known or (statistics.max >= first and statistics.min <= last):
                chosen.append(group)
        return chosen

    def numbers(self, table: Any, name: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return a column of an Arrow table as an array, which must have no gaps and be of a fitting type."""
        arrow, _ = pyarrow()
        column = table.column(name)
        if column.null_count:
            raise InputError(
                f"expected a number in every row, but {column.null_count} are missing", file=self.name, entry=name
            )
        given, wanted = column.type, arrow.from_numpy_dtype(np.dtype(dtype))
        whole = arrow.types.is_integer(wanted)
        fits = arrow.types.is_integer(given) or (
            not whole and (arrow.types.is_floating(given) or arrow.types.is_decimal(given))
        )
        if not fits and given != wanted:
            raise InputError(f"expected {wanted}, but the column is {given}", file=self.name, entry=name)
        with self._readable():
            if arrow.types.is_decimal(given) and given.bit_width == 32 and 0 <= given.scale <= MAX_DIGITS:
                parts = [from_integers(_raw_integers(chunk), given.scale, dtype) for chunk in column.chunks]
            elif given == wanted:
                parts = [chunk.to_numpy(zero_copy_only=False) for chunk in column.chunks]
            else:
                parts = [self._cast(chunk, wanted, name).to_numpy(zero_copy_only=False) for chunk in column.chunks]
        if len(parts) == 1:
            return np.asarray(parts[0], dtype=dtype)
        return np.concatenate([np.zeros(0, dtype), *parts]).astype(dtype, copy=False)

    def _cast(self, chunk: Any, wanted: Any, name: str) -> Any:
        """Return a chunk of another type; floats may be rounded, whole numbers must fit."""
        arrow, _ = pyarrow()
        try:
            return chunk.cast(wanted, safe=arrow.types.is_integer(wanted))
        except arrow.ArrowInvalid as error:
            reason = " ".join(str(error).split())[:200]
            raise InputError(
                f"expected {wanted}, but got something else ({reason})", file=self.name, entry=name
            ) from None

    def matrix(self, table: Any, names: Sequence[str], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return columns side by side, one row of numbers per row of the table."""
        return np.ascontiguousarray(np.stack([self.numbers(table, name, dtype) for name in names]).T)

    def fill_rows(self, rows: npt.NDArray[np.float32], first: int, table: Any, names: Sequence[str]) -> None:
        """Write float32 columns side by side into `rows`, from row `first` on."""
        arrow, _ = pyarrow()
        columns = [table.column(name) for name in names]
        kind = columns[0].type
        alike = all(c.type == kind and c.num_chunks == 1 and c.null_count == 0 for c in columns)
        threads = thread_count(None)
        if alike and arrow.types.is_decimal(kind) and kind.bit_width == 32 and 0 <= kind.scale <= MAX_DIGITS:
            integers = [_raw_integers(column.chunk(0)) for column in columns]
            _core.fill_rows_of_integers(rows, first, integers, 10.0**kind.scale, threads)
        else:
            floats = [self.numbers(table, name, np.float32) for name in names]
            _core.fill_rows_of_floats(rows, first, floats, 1.0, threads)

    def box_names(self) -> list[str]:
        """Return the columns of boxes that the file must have: those it has, made complete."""
        ends, sizes = (any(name in self.columns for name in pair) for pair in (ENDS, SIZES))
        return [*STARTS, *(ENDS if ends or not sizes else ()), *(SIZES if sizes else ())]

    def boxes(self, table: Any) -> tuple[Doubles, Doubles | None]:
        """Return boxes, and their stated sizes where these do not follow from them."""
        given = self.box_names()
        starts = self.matrix(table, STARTS, np.float64)
        sizes = self.matrix(table, SIZES, np.float64) if SIZES[0] in given else None
        if ENDS[0] in given:
            ends = self.matrix(table, ENDS, np.float64)
        else:
            assert sizes is not None
            with np.errstate(over="ignore", invalid="ignore"):  # such boxes are rejected later, in words
                ends = starts + sizes
        return np.concatenate([starts, ends], axis=1), sizes

    def group_starts(self) -> Ids:
        """Return the first row of each row group, and the number of rows."""
        rows = [self._file.metadata.row_group(group).num_rows for group in range(self.row_groups)]
        return np.cumsum([0, *rows])

    def check_order(self, image_ids: Ids, after: int | None = None) -> None:
        """Raise unless images ascend and, if given, all come after one."""
        wrong = np.flatnonzero(image_ids[1:] < image_ids[:-1])
        if len(wrong) or (after is not None and len(image_ids) and image_ids[0] <= after):
            image = int(image_ids[wrong[0] + 1]) if len(wrong) else int(image_ids[0])
            raise InputError(
                "expected rows by ascending image_id and row groups of whole images",
                file=self.name, image=image, remedy="sort the rows, or " + _REMEDY,
            )  # fmt: skip

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Turn what Arrow raises on damaged files into words."""
        arrow, _ = pyarrow()
        try:
            yield
        except InputError:
            raise
        except (arrow.ArrowException, OSError, ValueError, KeyError, TypeError, OverflowError) as error:
            reason = " ".join(str(error).split())[:200]
            raise InputError(
                f"cannot be read as Parquet ({reason})", file=self.name, remedy="write or download it again"
            ) from None

    def _checked_words(self, table: str) -> dict[str, Any]:
        text = (self._file.schema_arrow.metadata or {}).get(KEY)
        if text is None:
            raise InputError("is a Parquet file, but not one of probox", file=self.name, remedy=_REMEDY)
        try:
            words = json.loads(text)
        except ValueError:
            words = None
        if not isinstance(words, dict):
            raise InputError("expected JSON under the key 'probox' of the metadata", file=self.name, remedy=_REMEDY)
        if words.get("format") != FORMAT:
            raise InputError(
                f"is of format {words.get('format')!r}, this probox reads {FORMAT}", file=self.name, remedy=_REMEDY
            )
        if words.get("table") != table:
            names = {"detections": "detections", "truth": "ground truth"}
            raise InputError(
                f"expected {names[table]}, but this file holds {names.get(str(words.get('table')), 'something else')}",
                file=self.name, remedy="name the ground truth first, then the detections",
            )  # fmt: skip
        for name, of in (("classes", str), ("notes", str), ("category_ids", int)):
            self._check_list(words, name, of, needed=name == "classes")
        return words

    def _check_list(self, words: dict[str, Any], name: str, of: type, *, needed: bool) -> None:
        values = words.get(name, None if needed else [])
        if not isinstance(values, list) or not all(type(value) is of for value in values):
            kind = "names" if of is str else "whole numbers"
            raise InputError(
                f"expected {name!r} in the metadata to be a list of {kind}", file=self.name, remedy=_REMEDY
            )

    def _has_twins(self) -> bool:
        return len(set(self.columns)) < len(self.columns)

    def _leaf(self, column: int) -> int:
        """Return the number of a flat column among the leaves of the schema; nested ones before it count more."""
        name = self.columns[column]
        paths = [self._file.schema.column(at).path for at in range(len(self._file.schema))]
        return paths.index(name)


def _raw_integers(chunk: Any) -> npt.NDArray[np.int32]:
    """Return the integers of 32-bit decimals without a copy."""
    return (
        np.frombuffer(chunk.buffers()[1], np.int32, len(chunk), 4 * chunk.offset)
        if len(chunk)
        else np.zeros(0, np.int32)
    )
