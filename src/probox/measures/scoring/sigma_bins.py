"""Are covariances honest whatever they say? Errors and sigmas compared in bins of sigma: ENCE, UCE and C-QCE."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from probox.measures.scoring.bins import Bins, Sorted
from probox.measures.scoring.honesty import MQCE_LEVELS

__all__ = ["conditional_quantile_error", "ence", "ence_of_sums", "uce"]

FloatArray = npt.NDArray[np.float64]


def ence(residuals: FloatArray, sigmas: FloatArray, bins: Bins) -> float:
    """Return the expected normalised calibration error: the mean over bins of sigma of |RMSE - RMV| / RMV.

    RMSE is the root of the mean squared residual in a bin, RMV that of the mean variance. Every bin that holds
    something counts alike; bins of equal width lie between the least and the greatest sigma.
    """
    squares = np.stack([np.square(sigmas), np.square(residuals)], axis=1)
    return ence_of_sums(*Sorted(sigmas, squares).sums(bins))


def ence_of_sums(n: FloatArray, sums: FloatArray) -> float:
    """Return ENCE of how many edges are in each bin, and the sums of variances and squared residuals in it."""
    variances, errors = sums[n > 0].T
    if not len(variances):
        return math.nan
    rmv, rmse = np.sqrt(variances), np.sqrt(errors)
    return float(np.mean(np.abs(rmse - rmv) / rmv))


def uce(residuals: FloatArray, sigmas: FloatArray, bins: Bins) -> float:
    """Return the uncertainty calibration error in square pixels: sum over bins of variance of n_b/N |MSE - MV|."""
    squares = np.stack([np.square(sigmas), np.square(residuals)], axis=1)
    n, sums = Sorted(squares[:, 0], squares).sums(bins)
    return float(np.abs(sums[:, 1] - sums[:, 0]).sum() / n.sum()) if n.any() else math.nan


def conditional_quantile_error(
    levels: FloatArray, sigmas: FloatArray, bins: Bins, quantiles: FloatArray = MQCE_LEVELS
) -> float:
    """Return C-QCE: the mean over quantiles q of sum over bins of sigma of n_b/N |coverage in the bin at q - q|."""
    covered = (levels[:, None] <= quantiles).astype(np.float64)
    n, sums = Sorted(sigmas, covered).sums(bins)
    return float((np.abs(sums - n[:, None] * quantiles).sum(axis=0) / n.sum()).mean()) if n.any() else math.nan
