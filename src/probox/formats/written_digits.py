"""How finely numbers are written, and so how far rounding alone may have moved what they say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["rounding_of", "written_digits"]

SINGLE, DOUBLE = 7, 12
"""Decimals that fractions of single precision have right, and those that calculating with double precision leaves."""

SINGLE_DIGITS = 9
"""Digits that tell a number of single precision from any other."""

COARSE = 3
"""Fewer decimals are those of numbers that happen to be short, such as 0.5, and are taken as they are."""


def written_digits(words: Sequence[str]) -> tuple[int, bool]:
    """Return with how many decimals fractions were written, and whether at least half of them have so many.

    These are all decimals of 0.062500, and the six digits that ``%g`` keeps of 0.00123457.

    >>> written_digits(["0.500000", "0.062500"]), written_digits(["0.123457", "0.00123457", "1e-05", "0.5"])
    ((6, True), (6, True))
    """
    counted = [_digits(word) for word in words]
    if not counted:
        return 0, False
    most = min(max(decimals for decimals, _ in counted), max(digits for _, digits in counted))
    have = sum(decimals >= most or digits >= most for decimals, digits in counted)
    return most, 2 * have >= len(counted)


def _digits(word: str) -> tuple[int, int]:
    """Return how many decimals a number has, and how many digits from the first that is not 0."""
    mantissa, _, power = word.replace("_", "").lower().partition("e")
    whole, _, decimals = mantissa.partition(".")
    return len(decimals) - int(power[:6] or 0), len((whole + decimals).lstrip("+-0"))


def rounding_of(groups: Sequence[Sequence[str]]) -> list[float]:
    """Return for each group of numbers how far rounding can have moved a corner of a box, in fractions of the image.

    A corner is a centre and half a side, so that is 3/4 of the last decimal. A group tells its decimals itself if at
    least half of its numbers have them; short ones, such as 0.5, may be those of any file, and all groups tell it.

    Parameters
    ----------
    groups : sequence of sequences of str
        The numbers of a file, or of a line, as they are written: numbers that can be read.

    Examples
    --------
    >>> rounding_of([["0.1234", "0.2500"], ["0.5", "0.25"]])
    [7.5e-05, 7.5e-05]
    """
    told = [written_digits(words) for words in groups]
    most = max((decimals for decimals, _ in told), default=0)
    result = []
    for words, (decimals, clear) in zip(groups, told, strict=True):
        own = decimals if clear and decimals >= COARSE else most
        if own > SINGLE:
            own = SINGLE if own <= SINGLE_DIGITS or _is_single(words) else DOUBLE
        elif own < COARSE:
            own = DOUBLE
        result.append(0.75 / 10.0**own)
    return result


def _is_single(words: Sequence[str]) -> bool:
    """Return whether all numbers are those of single precision, written with all that double precision shows."""
    values = np.array([float(word) for word in words])
    with np.errstate(over="ignore"):
        return bool((values.astype(np.float32) == values).all())
