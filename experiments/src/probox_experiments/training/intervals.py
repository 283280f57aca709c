"""How sure a mean over seeds is."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Interval", "interval_of"]

QUANTILES = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
"""Of Student's t at 0.975, for 1, 2, ... degrees of freedom; with more of them the last is a little too careful."""


class Interval(NamedTuple):
    """A mean and the ends of its 95 % interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"

    def in_points(self) -> str:
        """Return a difference of shares in words, in points of a hundred."""
        return f"{100 * self.mean:+.2f} [{100 * self.low:+.2f}, {100 * self.high:+.2f}]"


def interval_of(values: npt.ArrayLike) -> Interval:
    """Return the mean of values, one for each seed, with its 95 % t interval; of one value it is endless.

    Examples
    --------
    >>> print(interval_of([0.1, 0.2, 0.3]))
    0.200 [-0.048, 0.448]
    """
    numbers = np.asarray(values, dtype=np.float64)
    mean, count = float(numbers.mean()), len(numbers)
    if count < 2:
        return Interval(mean, -math.inf, math.inf)
    half = QUANTILES[min(count - 1, len(QUANTILES)) - 1] * float(numbers.std(ddof=1)) / math.sqrt(count)
    return Interval(mean, mean - half, mean + half)
