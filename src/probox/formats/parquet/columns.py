"""What Parquet files of detections and of ground truth share: numbers in columns, words in the metadata, row groups."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.files.output import write_files
from probox.files.reading import Paths
from probox.files.replacing import check_replaceable
from probox.support.optional import require
from probox.version import __version__

__all__ = [
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

REMEDY = "write it with probox.write_parquet or `probox convert`"

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
    needs = {"extra": "parquet", "purpose": "Parquet files need"}
    arrow, parquet = require("pyarrow", **needs), require("pyarrow.parquet", **needs)
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
    check_replaceable(path, "ground truth in Parquet" if words["table"] == "truth" else "detections in Parquet")
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
