"""Are covariances honest? NEES, PIT, coverage, M-QCE, and the scale that would put variances right.

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
from probox.measures.scoring.normal import central_level, chi2_4_cdf, normal_cdf, normal_quantile

__all__ = [
    "MQCE_LEVELS",
    "PIT_BINS",
    "SHARES",
    "box_levels",
    "coverage",
    "curve_errors",
    "edge_levels",
    "mean_quantile_error",
    "nees",
    "pit_distance",
    "pit_histogram",
    "pit_values",
    "robust_factor",
    "too_sure",
    "variance_scale",
]

FloatArray = npt.NDArray[np.float64]

SHARES = (0.5, 0.68, 0.9, 0.95)
"""What the intervals should hold whose coverage is reported."""

MQCE_LEVELS = np.linspace(0.05, 0.95, 19)
"""The quantiles of M-QCE."""

PIT_BINS = 10
"""Bins of equal width between 0 and 1."""


def nees(residuals: FloatArray, covariances: FloatArray) -> float:
    """Return the normalised estimation error squared, mean r' Sigma^-1 r: 4 if right, above if too sure."""
    return _mean(squared_distances(residuals, covariances))


def too_sure(nees: float) -> float:
    """Return the square root of NEES for each of its four degrees of freedom: sigmas are so many times too small."""
    return math.sqrt(nees / 4.0)


def variance_scale(residuals: FloatArray, sigmas: FloatArray) -> float:
    """Return theta = sqrt(mean z^2), by which sigmas would have to be multiplied."""
    return math.sqrt(_mean(np.square(residuals / sigmas)))


def robust_factor(residuals: FloatArray, sigmas: FloatArray) -> float:
    """Return the 68% quantile of |z| over that of a Gaussian: above 1 if overconfident, whatever a few outliers are."""
    return float(np.quantile(np.abs(residuals / sigmas), 0.68)) / normal_quantile(0.84)


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
