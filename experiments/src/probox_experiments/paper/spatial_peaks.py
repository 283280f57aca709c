"""Where PDQ peaks around each true variance, on the finer grid of reported ones."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from probox_experiments.peaks import Mean, mean_of, peak_of
from probox_experiments.table import ResultTable

__all__ = ["as_ratio", "near_truth", "peaks_of", "scores_of"]

Floats = npt.NDArray[np.float64]

NEARBY = 2.9
"""A reported variance within this factor of the true one belongs to the finer grid around it: four steps of 1.3, not
a step of three."""


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


def peaks_of(table: ResultTable, column: str) -> dict[float, Mean]:
    """Return the logarithm of peak over truth, for each true variance that has a finer grid around it."""
    peaks = {}
    for true in np.unique(table["true_variance"]).tolist():
        reported, scores = scores_of(table, column, true)
        fine = near_truth(reported, true)
        if fine.sum() >= 3 and not np.isnan(scores[:, fine]).any():
            peaks[true] = mean_of([np.log(peak_of(reported[fine], score[fine]) / true) for score in scores])
    return peaks


def as_ratio(peak: Mean) -> str:
    """Return peak over truth with its standard error.

    >>> as_ratio(Mean(0.0953, 0.02))
    '1.10 ± 0.02'
    """
    ratio = float(np.exp(peak.value))
    return f"{ratio:.2f} ± {ratio * peak.error:.2f}"
