"""What Parquet files of detections and of ground truth share: names of columns and of words in the metadata."""

from __future__ import annotations

import os
import stat
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.files.reading import Paths
from probox.support.optional import pip_command, require

__all__ = ["are_among", "footer_of", "from_integers", "is_parquet", "pyarrow"]

OLDEST_PYARROW = 22
"""The first one that writes 32-bit decimals."""

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


def are_among(ids: Ids, known: Ids) -> npt.NDArray[np.bool_]:
    """Return which ids are among the known ones, which ascend: a few are found in millions at once.

    >>> are_among(np.array([4, 1, 9]), np.array([1, 2, 4])).tolist()
    [True, True, False]
    """
    if not len(known):
        return np.zeros(len(ids), bool)
    place = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    return np.asarray(known[place] == ids)


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


def pyarrow() -> tuple[Any, Any]:
    """Return the modules `pyarrow` and `pyarrow.parquet`, which are installed on demand."""
    needs = {"extra": "parquet", "purpose": "Parquet files need"}
    arrow, parquet = require("pyarrow", **needs), require("pyarrow.parquet", **needs)
    if int(arrow.__version__.split(".")[0]) < OLDEST_PYARROW:
        raise InputError(
            f"Parquet files need pyarrow {OLDEST_PYARROW} or newer, but got {arrow.__version__}",
            remedy=f"{pip_command()} install -U pyarrow",
        )
    return arrow, parquet


def from_integers(integers: npt.NDArray[np.int32], scale: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return decimals as floats: one division, correctly rounded, is the float nearest to the decimal."""
    return np.asarray(integers.astype(dtype) / np.array(10.0**scale, dtype))
