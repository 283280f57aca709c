"""Columns of the tables: arrays of a known type and shape that nobody can write to."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError

__all__ = ["chosen_ids", "frozen", "rows_of", "rows_where_all"]


def frozen(values: npt.ArrayLike, dtype: npt.DTypeLike, shape: tuple[int, ...], name: str) -> npt.NDArray[Any]:
    """Return `values` as a read-only contiguous array of the given type, -1 in `shape` standing for any length."""
    try:
        array = np.asarray(values)
        if array.size == 0 and array.ndim < len(shape):
            array = array.reshape(tuple(0 if n < 0 else n for n in shape))
        with np.errstate(invalid="ignore"):  # numbers that do not fit are rejected below
            converted = np.ascontiguousarray(array, dtype=dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"expected {name} to be numbers in rows of equal length, but got {error}") from None
    if (
        np.issubdtype(converted.dtype, np.integer)
        and converted.dtype != array.dtype
        and not np.array_equal(converted, array)
    ):
        raise InputError(f"expected {name} to be whole numbers that fit {converted.dtype}")
    if array.ndim == 0:  # NumPy makes a column of it
        raise InputError(f"expected {name} to be a list, but got one {array.dtype}", remedy=_about_shape((), shape))
    fits = converted.ndim == len(shape) and all(
        want in (-1, have) for want, have in zip(shape, converted.shape, strict=True)
    )
    if not fits:
        wanted = " x ".join("N" if n < 0 else str(n) for n in shape)
        raise InputError(
            f"expected {name} of shape {wanted}, but got {' x '.join(map(str, converted.shape)) or 'a scalar'}",
            remedy=_about_shape(converted.shape, shape),
        )
    if converted is array or converted.base is not None:
        # A view shares memory with its maker, who may write to it; the table must not notice.
        converted = converted.copy() if array.flags.writeable else converted
    converted.flags.writeable = False
    return converted


def _about_shape(have: tuple[int, ...], want: tuple[int, ...]) -> str | None:
    """Return what to do about a wrong shape, where it is plain."""
    if len(want) == 2 and len(have) == 2 and all(w in (-1, h) for w, h in zip(want, have[::-1], strict=True)):
        return "transpose it: one row each"
    if len(have) < len(want):
        return "give a list of rows, also for a single one"
    return None


def rows_where_all(flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return for each row whether all its flags are set."""
    return np.asarray(flags.all(axis=tuple(range(1, flags.ndim))), dtype=np.bool_)


def rows_of(ids: npt.NDArray[np.int64], table: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return where each id stands in an ascending table, -1 for those that do not."""
    if len(table) == 0:
        return np.full(len(ids), -1, np.int64)
    row = np.minimum(np.searchsorted(table, ids), len(table) - 1)
    return np.where(table[row] == ids, row, -1).astype(np.int64)


def chosen_ids(
    wanted: npt.ArrayLike, known: npt.NDArray[np.int64], *, file: str | None = None
) -> npt.NDArray[np.int64]:
    """Return the wanted image ids, each once and ascending; all must be among the known ones, which ascend."""
    ids = np.unique(frozen(wanted, np.int64, (-1,), "image ids"))
    unknown = ids[rows_of(ids, known) < 0]
    if len(unknown):
        more = f" (nor {len(unknown) - 1:,} more of those that are wanted)" if len(unknown) > 1 else ""
        raise InputError(
            f"there is no such image{more}",
            file=file,
            image=int(unknown[0]),
            remedy=f"choose among the {len(known):,} image ids that there are",
        )
    return ids
