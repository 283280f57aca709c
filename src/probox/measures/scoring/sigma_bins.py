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
    return float(ence_of_sums(*Sorted(sigmas, [np.square(sigmas), np.square(residuals)]).sums(bins))[0])


def ence_of_sums(n: FloatArray, variances: FloatArray, squares: FloatArray) -> FloatArray:
    """Return ENCE (R,) of how many edges are in each bin (R, B), and the sums of variances and squared residuals."""
    some = n > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        rmv, rmse = np.sqrt(variances / n), np.sqrt(squares / n)
        ratios = np.where(some, np.abs(rmse - rmv) / rmv, 0.0)
        means: FloatArray = ratios.sum(axis=1) / some.sum(axis=1)
    return means


def uce(residuals: FloatArray, sigmas: FloatArray, bins: Bins) -> float:
    """Return the uncertainty calibration error in square pixels: sum over bins of variance of n_b/N |MSE - MV|."""
    variances = np.square(sigmas)
    n, predicted, seen = Sorted(variances, [variances, np.square(residuals)]).sums(bins)
    return float(np.abs(seen - predicted).sum() / n.sum()) if n.any() else math.nan


def conditional_quantile_error(
    levels: FloatArray, sigmas: FloatArray, bins: Bins, quantiles: FloatArray = MQCE_LEVELS
) -> float:
    """Return C-QCE: the mean over quantiles q of sum over bins of sigma of n_b/N |coverage in the bin at q - q|."""
    n, *covered = Sorted(sigmas, [(levels <= q).astype(np.float64) for q in quantiles]).sums(bins)
    gaps = [float(np.abs(inside - q * n).sum()) for inside, q in zip(covered, quantiles, strict=True)]
    return float(np.mean(gaps) / n.sum()) if n.any() else math.nan
