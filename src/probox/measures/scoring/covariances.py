"""Corner covariances: which can be inverted, distances in sigmas, determinants.

A box has two corners, so its 4 x 4 covariance is two blocks of 2 x 2, (K, 2, 2, 2); residuals are x1, y1, x2, y2.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["edge_variances", "invertible", "log_determinants", "squared_distances"]

FloatArray = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

SINGULAR = 1e-12
"""A correlation rho with 1 - rho^2 at most this is a line, not an ellipse: rounding decides what is left of it."""


def edge_variances(covariances: FloatArray) -> FloatArray:
    """Return the variances of x1, y1, x2 and y2, (K, 4)."""
    diagonals: FloatArray = np.diagonal(covariances, axis1=-2, axis2=-1).reshape(-1, 4)
    return diagonals


def invertible(covariances: FloatArray) -> Flags:
    """Return which boxes have a density: both corners are spread in every direction. Plain boxes have none."""
    a, b, c = _parts(covariances)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = (a > 0) & (c > 0) & (1.0 - (b / a) * (b / c) > SINGULAR)
    both: Flags = spread[:, 0] & spread[:, 1]
    return both


def squared_distances(residuals: FloatArray, covariances: FloatArray) -> FloatArray:
    """Return r' Sigma^-1 r of each box, (K,); NaN or infinity where `invertible` is False."""
    a, b, c = _parts(covariances)
    x, y = residuals[:, 0::2], residuals[:, 1::2]
    with np.errstate(invalid="ignore", divide="ignore"):
        left = c - b * b / a
        distances: FloatArray = (x * x / a + np.square(y - b / a * x) / left).sum(axis=1)
    return distances


def log_determinants(covariances: FloatArray) -> FloatArray:
    """Return ln det Sigma of each box, (K,); NaN or -infinity where `invertible` is False."""
    a, b, c = _parts(covariances)
    with np.errstate(invalid="ignore", divide="ignore"):
        logs: FloatArray = (np.log(a) + np.log(c - b * b / a)).sum(axis=1)
    return logs


def _parts(covariances: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return var(x), cov(x, y) and var(y) of both corners, each (K, 2)."""
    return covariances[..., 0, 0], covariances[..., 0, 1], covariances[..., 1, 1]
