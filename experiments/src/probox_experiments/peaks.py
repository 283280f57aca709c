"""Where a score is best on a grid of settings, and how sure a mean over repeats is."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Mean", "mean_of", "peak_of"]


class Mean(NamedTuple):
    """A mean over repeats and its standard error, NaN of a single repeat."""

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:.4g}" if math.isnan(self.error) else f"{self.value:.4g} ± {self.error:.2g}"


def mean_of(values: npt.ArrayLike) -> Mean:
    """Return the mean of one value per repeat, and its standard error.

    >>> print(mean_of([0.1, 0.2, 0.3]), mean_of([0.5]))
    0.2 ± 0.058 0.5
    """
    numbers = np.asarray(values, dtype=np.float64)
    count = len(numbers)
    error = float(numbers.std(ddof=1)) / math.sqrt(count) if count > 1 else math.nan
    return Mean(float(numbers.mean()), error)


def peak_of(settings: npt.ArrayLike, scores: npt.ArrayLike) -> float:
    """Return the setting with the highest score: the top of a parabola, in the setting's logarithm, through the best of
    the grid and its neighbours; it never lies beyond these, nor beyond the grid's ends.

    >>> grid = np.array([1.0, 2.0, 4.0, 8.0])
    >>> round(peak_of(grid, -((np.log(grid) - 1) ** 2)), 6) == round(math.e, 6)
    True
    >>> peak_of(grid, grid), peak_of([2.0, 1.0], [0.5, 0.7])
    (8.0, 1.0)
    """
    given = np.asarray(settings, dtype=np.float64)
    order = np.argsort(given)
    x, y = np.log(given[order]), np.asarray(scores, dtype=np.float64)[order]
    if np.isnan(y).any():
        return math.nan
    i = int(y.argmax())
    if i in (0, len(y) - 1):
        return float(given[order][i])
    a, b, _ = np.polyfit(x[i - 1 : i + 2] - x[i], y[i - 1 : i + 2], 2)
    top = -b / (2 * a) if a < 0 else 0.0
    return math.exp(float(np.clip(x[i] + top, x[i - 1], x[i + 1])))
