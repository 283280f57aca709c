"""The best place on a lattice, for functions that rise and then fall and are costly to evaluate."""

from __future__ import annotations

import math
from collections.abc import Callable

__all__ = ["BOUND", "STEP", "lattice_maximum"]

STEP = 0.02
"""Factors are searched for as exp(STEP k) with whole k: two per cent apart, much finer than PDQ can tell."""

STRIDE = 35
"""The first steps of a search, in lattice steps: about a doubling."""

FARTHEST = 12
"""So many strides from the start a search gives up."""

BOUND = (FARTHEST + 1) * STRIDE
"""No search ends farther than this from its start, in lattice steps; one that ends there would have gone on."""

_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def lattice_maximum(value: Callable[[int], float], start: int) -> int:
    """Return the whole number with the highest value, found by strides uphill and then by golden section.

    Parameters
    ----------
    value : callable
        Rises and then falls, but for noise.
    start : int
        Where to begin.

    >>> lattice_maximum(lambda k: -abs(k - 77.2), 0)
    77
    """
    known: dict[int, float] = {}

    def at(k: int) -> float:
        if k not in known:
            known[k] = value(k)
        return known[k]

    middle = start
    for way in (-STRIDE, STRIDE):
        while abs(middle + way - start) <= FARTHEST * STRIDE and at(middle + way) > at(middle):
            middle += way
        if middle != start:
            break
    low, high = middle - STRIDE, middle + STRIDE
    while high - low > 2:
        left, right = high - max(1, round(_GOLDEN * (high - low))), low + max(1, round(_GOLDEN * (high - low)))
        if left >= right:
            left, right = (low + high) // 2, (low + high) // 2 + 1
        if at(left) >= at(right):
            high = right
        else:
            low = left
    for k in range(low, high + 1):
        at(k)
    best = max(known.values())
    return min((k for k, height in known.items() if height == best), key=lambda k: (abs(k - start), k))
