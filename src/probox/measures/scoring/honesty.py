"""Are covariances honest? Error factor, RMS z, NEES, PIT, coverage and M-QCE.

A truth has a *level*: the share that the least central region with the truth in it should hold. If covariances are
right, levels are spread evenly between 0 and 1. For an edge it is 2 Phi(|z|) - 1, for a box chi^2_4(r' Sigma^-1 r).
Coverage at 90 % is the share of levels up to 0.9.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from probox.measures.scoring.covariances import squared_distances
from probox.measures.scoring.normal import central_level, chi2_4_cdf, normal_cdf

__all__ = [
    "MQCE_LEVELS",
    "ONE_STD",
    "PIT_BINS",
    "SHARES",
    "box_levels",
    "coverage",
    "curve_errors",
    "edge_levels",
    "error_factor",
    "mean_quantile_error",
    "nees",
    "pit_distance",
    "pit_histogram",
    "pit_values",
    "rms_z",
]

FloatArray = npt.NDArray[np.float64]

SHARES = (0.5, 0.68, 0.9, 0.95)
"""What the intervals should hold whose coverage is reported."""

ONE_STD = math.erf(math.sqrt(0.5))
"""P(|z| <= 1) of a standard normal z: 0.6827."""

MQCE_LEVELS = np.linspace(0.05, 0.95, 19)
"""The quantiles of M-QCE."""

PIT_BINS = 10
"""Bins of equal width between 0 and 1."""


def nees(residuals: FloatArray, covariances: FloatArray) -> float:
    """Return the normalised estimation error squared, mean r' Sigma^-1 r: 4 if right, above if too sure."""
    return _mean(squared_distances(residuals, covariances))


def error_factor(z: FloatArray) -> float:
    """Return q(|z|), the quantile of |z| = |error| / std at the probability `ONE_STD`; NaN of no edge.

    Errors are so many times the predicted std: 1 for calibrated Gaussians, above if overconfident, below if
    underconfident. It is the least |z| that this fraction of edges does not exceed, so outliers do not move it.
    """
    return float(np.quantile(np.abs(z), ONE_STD, method="inverted_cdf")) if np.size(z) else math.nan


def rms_z(z: FloatArray) -> float:
    """Return sqrt(mean z^2): 1 for calibrated Gaussians; a single outlier can dominate it."""
    return math.sqrt(_mean(np.square(z)))


def pit_values(residuals: FloatArray, sigmas: FloatArray) -> FloatArray:
    """Return the probability integral transform Phi(z): spread evenly between 0 and 1 if sigmas are right."""
    return normal_cdf(residuals / sigmas)


def pit_histogram(pit: FloatArray, bins: int = PIT_BINS) -> FloatArray:
    """Return the share of PIT values in each of some bins of equal width; a value on an edge is in the upper bin."""
    numbers = np.minimum((pit.ravel() * bins).astype(np.int64), bins - 1)
    with np.errstate(invalid="ignore"):
        shares: FloatArray = np.bincount(numbers, minlength=bins) / np.float64(pit.size)
    return shares


def pit_distance(shares: FloatArray) -> FloatArray:
    """Return half the sum over bins (last axis) of |share - 1 / bins|: what would have to move to be flat."""
    distance: FloatArray = 0.5 * np.abs(shares - 1.0 / shares.shape[-1]).sum(axis=-1)
    return distance


def edge_levels(residuals: FloatArray, sigmas: FloatArray) -> FloatArray:
    """Return the level of each edge's truth."""
    return central_level(residuals / sigmas)


def box_levels(residuals: FloatArray, covariances: FloatArray) -> FloatArray:
    """Return the level of each box's truth, all four edges together."""
    return chi2_4_cdf(squared_distances(residuals, covariances))


def coverage(levels: FloatArray, share: float) -> float:
    """Return which share of the truths lies in the central regions that should hold `share`."""
    return _mean(levels <= share)


def mean_quantile_error(levels: FloatArray, quantiles: Sequence[float] | FloatArray = MQCE_LEVELS) -> float:
    """Return M-QCE: the mean over quantiles q of |coverage at q - q|."""
    return float(np.mean([abs(coverage(levels, float(q)) - float(q)) for q in quantiles]))


def curve_errors(levels: FloatArray, points: int = 100) -> dict[str, float]:
    """Return how far the curve of coverage against share lies from the diagonal, at `points` shares from 0 to 1.

    `mean` is the mean distance, `root_mean_square` that of squares, `area` what lies between the lines that join the
    points and the diagonal.
    """
    shares = np.linspace(0.0, 1.0, points)
    gap = np.array([coverage(levels, float(share)) for share in shares]) - shares
    left, right = gap[:-1], gap[1:]
    sides, ends = np.abs(left) + np.abs(right), np.where(left * right < 0)[0]
    areas = 0.5 * sides
    # Two triangles where the line crosses the diagonal.
    areas[ends] = 0.5 * (np.square(left[ends]) + np.square(right[ends])) / sides[ends]
    return {
        "mean": float(np.abs(gap).mean()),
        "root_mean_square": float(np.sqrt(np.square(gap).mean())),
        "area": float(areas.sum() / (points - 1)),
    }


def _mean(values: FloatArray | npt.NDArray[np.bool_]) -> float:
    return float(np.mean(values)) if np.size(values) else math.nan
