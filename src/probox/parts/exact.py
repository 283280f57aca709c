"""Sums without rounding: whole numbers of a tiny unit, which add up to the same in any order and any parts.

Every float is a whole multiple of 2^-1074, and Python's integers have as many digits as they need. The float nearest to
such a sum is what `math.fsum` gives for all of its terms at once.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["exact_sum", "exact_sums", "from_text", "to_float", "to_text"]

_LEAST = -1073
"""The least exponent that `frexp` has: that of 2^-1074."""
_DIGITS = 53
_UNIT = -(_LEAST - _DIGITS)
"""Sums count units of 2^-1126: the last of 53 digits of the least float."""
_HALF = 1 << 26


def exact_sums(values: npt.ArrayLike, groups: npt.NDArray[np.integer], count: int) -> list[int]:
    """Return the sum of each group's values, in units.

    Parameters
    ----------
    values : (N,) float
        Finite numbers, at least 0.
    groups : (N,) int
        The group of each, below `count`; values of negative ones are left out.
    count : int
        How many groups there are.

    Examples
    --------
    >>> [to_float(total) for total in exact_sums([0.1, 1e300, 0.2], np.array([1, 0, 1]), 3)]
    [1e+300, 0.30000000000000004, 0.0]
    """
    given = np.asarray(values, np.float64)
    used = (groups >= 0) & (given != 0)
    fraction, exponent = np.frexp(given[used])
    mantissa = (fraction * 2.0**_DIGITS).astype(np.int64)
    span = 2100  # there are fewer exponents
    key = groups[used].astype(np.int64) * span + (exponent - _LEAST)
    order = np.argsort(key, kind="stable")
    key, mantissa = key[order], mantissa[order]
    begins = np.flatnonzero(np.concatenate([np.ones(min(len(key), 1), bool), key[1:] != key[:-1]]))
    sums = [0] * count
    if not len(begins):
        return sums
    # In halves of 27 digits at most: sums of up to 2^36 of them fit 64 bits.
    high, low = (np.add.reduceat(half, begins) for half in (mantissa // _HALF, mantissa % _HALF))
    for at, upper, lower in zip(key[begins].tolist(), high.tolist(), low.tolist(), strict=True):
        sums[at // span] += (upper * _HALF + lower) << (at % span)
    return sums


def exact_sum(values: npt.ArrayLike) -> int:
    """Return the sum of all values, in units."""
    given = np.asarray(values, np.float64)
    return exact_sums(given, np.zeros(len(given), np.int64), 1)[0]


def to_float(total: int) -> float:
    """Return the float nearest to a sum: Python divides whole numbers correctly rounded."""
    return total / (1 << _UNIT)


def to_text(total: int) -> str:
    """Return a sum as a short text: hexadecimal digits, and how many binary zeros follow.

    >>> to_text(exact_sum([0.5, 0.25])), from_text(to_text(12345 << 99)) == 12345 << 99
    ('3p1124', True)
    """
    zeros = (total & -total).bit_length() - 1 if total else 0
    return f"{total >> zeros:x}p{zeros}"


def from_text(text: str) -> int:
    """Return the sum that `to_text` wrote; a text that it would not have written is a ValueError."""
    digits, _, zeros = text.partition("p")
    if len(text) > 2000 or not zeros.isdecimal() or int(zeros) > 4000:
        raise ValueError(f"no sum: {text[:40]!r}")
    total = int(digits, 16) << int(zeros)
    if total < 0 or total.bit_length() > _UNIT + 1024 or to_text(total) != text:  # no float is as large as 2^1024
        raise ValueError(f"no sum: {text[:40]!r}")
    return total
