"""Where scores peak between the settings that were tried, and how sure that is."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from probox.experiments.table import ResultTable

__all__ = ["Peak", "fitted_peak", "near_truth", "peaks_of", "scores_of"]

Floats = npt.NDArray[np.float64]

NEARBY = 2.9
"""A reported variance within this factor of the true one belongs to the finer grid around it: four steps of 1.3, not
a step of three."""
FITTED = 5
"""So many points around the highest have a parabola put through them."""


@dataclasses.dataclass(frozen=True)
class Peak:
    """Where PDQ peaks between the variances that were tried.

    Parameters
    ----------
    variance : float
        The reported variance there.
    error : float
        Its standard error over repeats, of its logarithm; NaN for a single repeat.
    """

    variance: float
    error: float

    def distance(self, true: float) -> float:
        """Return how far it is from a true variance, as a logarithm."""
        return float(np.log(self.variance / true))

    def over(self, true: float) -> str:
        """Return it as a multiple of a true variance, with its standard error.

        >>> Peak(33.0, 0.02).over(30.0)
        '1.10 ± 0.02'
        """
        ratio = self.variance / true
        return f"{ratio:.2f} ± {ratio * self.error:.2f}"


def fitted_peak(reported: Floats, scores: Floats) -> Peak | None:
    """Return the peak of scores, (repeats, reported); None if they do not peak inside the grid.

    A parabola in the logarithm of the variance is put through the highest point of the mean and those beside it,
    through the same ones in each repeat.

    >>> grid = np.exp(np.linspace(-2, 2, 9))
    >>> peak = fitted_peak(grid, 1 - (np.log(grid) - np.array([[0.2], [0.4]])) ** 2)
    >>> round(float(np.log(peak.variance)), 6), round(peak.error, 6)
    (0.3, 0.1)
    """
    x = np.log(reported)
    width = min(FITTED, len(x))
    highest = int(scores.mean(axis=0).argmax())
    if width < 3 or highest in (0, len(x) - 1):
        return None
    first = int(np.clip(highest - width // 2, 0, len(x) - width))
    near = slice(first, first + width)
    fits = np.array([np.polyfit(x[near], score[near], 2) for score in scores])
    if (fits[:, 0] >= 0).any():
        return None
    tops = -fits[:, 1] / (2 * fits[:, 0])
    error = float(tops.std(ddof=1) / np.sqrt(len(tops))) if len(tops) > 1 else np.nan
    return Peak(float(np.exp(tops.mean())), error)


def scores_of(table: ResultTable, column: str, true: float) -> tuple[Floats, Floats]:
    """Return the reported variances of a true one, rising, and their scores, (repeats, reported)."""
    rows = table.where(true_variance=true)
    reported, repeats = np.unique(rows["reported_variance"]), np.unique(rows["repeat"])
    scores = np.full((len(repeats), len(reported)), np.nan)
    at = np.searchsorted(repeats, rows["repeat"]), np.searchsorted(reported, rows["reported_variance"])
    scores[at] = rows[column]
    return reported, scores


def near_truth(reported: Floats, true: float) -> npt.NDArray[np.bool_]:
    """Return which reported variances belong to the finer grid around a true one."""
    return (reported * NEARBY >= true) & (reported <= true * NEARBY)


def peaks_of(table: ResultTable, column: str) -> dict[float, Peak | None]:
    """Return the peak on the finer grid around each true variance that has one; None where it lies beyond."""
    peaks = {}
    for true in np.unique(table["true_variance"]).tolist():
        reported, scores = scores_of(table, column, true)
        fine = near_truth(reported, true)
        if fine.sum() >= 3 and not np.isnan(scores[:, fine]).any():
            peaks[true] = fitted_peak(reported[fine], scores[:, fine])
    return peaks
