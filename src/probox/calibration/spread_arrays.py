"""Arrays that a spread head is given: numbers of the right shape, or a sentence that says what is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

from probox.errors import InputError
from probox.support.types import Floats

__all__ = ["checked_array", "checked_features", "checked_sides"]


def checked_array(values: Any, name: str, shape: tuple[int, ...], *, missing: bool = False) -> Floats:
    """Return finite numbers of a shape; those that may be missing may be NaN."""
    numbers = _numbers(values, name)
    if numbers.shape != shape:
        raise InputError(f"expected {name} of shape {shape}, but got {numbers.shape}")
    return _finite(numbers, name, missing=missing)


def _numbers(values: Any, name: str) -> Floats:
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"expected {name} to be an array of numbers, but got {type(values).__name__}") from None


def _finite(numbers: Floats, name: str, *, missing: bool = False) -> Floats:
    wrong = np.isinf(numbers) if missing else ~np.isfinite(numbers)
    if wrong.any():
        place = tuple(int(at) for at in np.argwhere(wrong)[0])
        which = f"{name}[{', '.join(map(str, place))}]"
        raise InputError(
            f"{which} is {numbers[place]:g}, one of {int(wrong.sum()):,} that are no numbers",
            remedy="leave such rows out, or put numbers in their place",
        )
    return numbers


def checked_features(values: Any) -> Floats:
    """Return features of edges, (N, 4, F)."""
    numbers = _numbers(values, "features")
    if numbers.ndim not in (2, 3) or numbers.shape[-1] == 0 or (numbers.ndim == 3 and numbers.shape[1] != 4):
        raise InputError(
            f"expected features of shape (N, F) or (N, 4, F), but got {numbers.shape}",
            remedy="give a row for each box and a column for each feature",
        )
    _finite(numbers, "features")
    return np.repeat(numbers[:, None, :], 4, axis=1) if numbers.ndim == 2 else numbers


def checked_sides(values: Any, rows: int) -> Floats:
    """Return what residuals are relative to: 1 if nothing is said."""
    if values is None:
        return np.ones((rows, 4))
    sides = checked_array(values, "sides", (rows, 4))
    if not (sides > 0).all():
        raise InputError("expected sides above 0", remedy="leave out boxes without extent")
    return sides
