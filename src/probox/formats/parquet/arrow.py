"""Arrow columns of numbers: decimals that take little space, and the names that Parquet files of probox share."""

from __future__ import annotations

import os
import stat
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.files.reading import Paths
from probox.support.optional import pip_command, require

OLDEST_PYARROW = 18
"""The first one that reads the 32-bit decimals which others write."""
OLDEST_WITH_DECIMAL32 = 22
"""The first one that writes them."""

FORMAT = 1
KEY = b"probox"
"""The key of the file's metadata under which JSON says what the columns mean."""

MAGIC = b"PAR1"
MAX_DIGITS = 9
"""Decimals of up to nine digits fit Parquet's 32-bit integers."""

REMEDY = "write it with probox.write_parquet or `probox convert`"

STARTS, ENDS, SIZES = ("x1", "y1"), ("x2", "y2"), ("width", "height")

Doubles = npt.NDArray[np.float64]
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


def footer_of(file: BinaryIO) -> bytes:
    """Return the footer of a file, which says what is where in it; nothing if it does not end as Parquet files do."""
    size = file.seek(0, os.SEEK_END)
    if size < 3 * len(MAGIC):
        return b""
    file.seek(size - 8)
    end = file.read(8)
    length = int.from_bytes(end[:4], "little")
    if not end.endswith(MAGIC) or length > size - 8:
        return b""
    file.seek(size - 8 - length)
    return file.read(length)


def arrow_module(name: str) -> Any:
    """Return a module of pyarrow, which is installed on demand."""
    return require(name, extra="parquet", purpose="Parquet files need")


def pyarrow() -> tuple[Any, Any]:
    """Return the modules `pyarrow` and `pyarrow.parquet`."""
    arrow, parquet = arrow_module("pyarrow"), arrow_module("pyarrow.parquet")
    if _major(arrow) < OLDEST_PYARROW:
        raise InputError(
            f"Parquet files need pyarrow {OLDEST_PYARROW} or newer, but got {arrow.__version__}",
            remedy=f"{pip_command()} install -U pyarrow",
        )
    return arrow, parquet


def _major(arrow: Any) -> int:
    return int(arrow.__version__.split(".")[0])


def decimal_array(integers: npt.NDArray[np.int32], scale: int) -> Any:
    """Return an Arrow array of decimals: integers in units of ``10**-scale``.

    In the file they are 32-bit integers either way. In memory, a pyarrow that cannot write small decimals has them in
    128 bits.
    """
    arrow, _ = pyarrow()
    if _major(arrow) >= OLDEST_WITH_DECIMAL32:
        kind, words = arrow.decimal32(MAX_DIGITS, scale), np.ascontiguousarray(integers)
    else:
        kind, words = arrow.decimal128(MAX_DIGITS, scale), np.empty((len(integers), 2), np.int64)
        words[:, 0] = integers
        words[:, 1] = np.where(integers < 0, -1, 0)  # the upper half of two's complement
    return arrow.Array.from_buffers(kind, len(integers), [None, arrow.py_buffer(words)])


def are_small_decimals(kind: Any) -> bool:
    """Return whether an Arrow type is of decimals that `integers_of` gives."""
    arrow, _ = pyarrow()
    return bool(
        arrow.types.is_decimal(kind)
        and kind.bit_width in (32, 128)
        and kind.precision <= MAX_DIGITS
        and 0 <= kind.scale <= MAX_DIGITS
    )


def integers_of(chunk: Any) -> npt.NDArray[np.int32]:
    """Return the integers of an Arrow array of small decimals; those of 32 bits without a copy."""
    if not len(chunk):
        return np.zeros(0, np.int32)
    content = chunk.buffers()[1]
    if chunk.type.bit_width == 32:
        return np.frombuffer(content, np.int32, len(chunk), 4 * chunk.offset)
    low, high = np.frombuffer(content, np.int64, 2 * len(chunk), 16 * chunk.offset).reshape(-1, 2).T
    if ((high != low >> 63) | (low <= -(10**MAX_DIGITS)) | (low >= 10**MAX_DIGITS)).any():
        arrow, _ = pyarrow()
        raise arrow.ArrowInvalid("a decimal has more digits than its column says")
    return np.ascontiguousarray(low, np.int32)


def from_integers(integers: npt.NDArray[np.int32], scale: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return decimals as floats: one division, correctly rounded, is the float nearest to the decimal."""
    return np.asarray(integers.astype(dtype) / np.array(10.0**scale, dtype))
