"""The normal distribution and chi squared with four degrees of freedom, without SciPy."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

__all__ = ["central_level", "chi2_4_cdf", "normal_cdf", "normal_pdf", "normal_quantile"]

FloatArray = npt.NDArray[np.float64]

_erf, _erfc = np.frompyfunc(math.erf, 1, 1), np.frompyfunc(math.erfc, 1, 1)


def normal_cdf(z: FloatArray) -> FloatArray:
    """Return Phi(z), exact in both tails."""
    return 0.5 * np.asarray(_erfc(-np.asarray(z, np.float64) / math.sqrt(2.0)), np.float64)


def central_level(z: FloatArray) -> FloatArray:
    """Return 2 Phi(|z|) - 1: the share that the least central interval around 0 with z in it should hold."""
    return np.asarray(_erf(np.abs(z) / math.sqrt(2.0)), np.float64)


def normal_pdf(z: FloatArray) -> FloatArray:
    """Return phi(z)."""
    values: FloatArray = np.exp(-0.5 * np.square(z)) / math.sqrt(2.0 * math.pi)
    return values


def normal_quantile(q: float) -> float:
    """Return the z with Phi(z) = q."""
    from statistics import NormalDist  # brings fractions and decimals, which nothing else needs

    return NormalDist().inv_cdf(q)


def chi2_4_cdf(x: FloatArray) -> FloatArray:
    """Return the probability that the sum of four squared standard normal numbers is at most x."""
    # Beyond 1e3 it is as sure, but infinity times 0 is no number; rounding may make a sum of squares fall below 0.
    half = np.clip(0.5 * np.asarray(x, np.float64), 0.0, 1e3)
    values: FloatArray = -np.expm1(-half) - half * np.exp(-half)
    return values
