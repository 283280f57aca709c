"""Corner covariances by their edges: standard deviations, Mahalanobis distances, quantiles."""

from __future__ import annotations

import math

import numpy as np

from probox.measures.scoring.scores import edge_variances, normal_quantile
from probox.support.types import Bools, Floats

__all__ = ["box_reach", "edge_reach", "sigmas_of", "squared_distances", "with_sigmas"]


def sigmas_of(covariances: Floats) -> Floats:
    """Return the standard deviations of x1, y1, x2, y2, (K, 4)."""
    return np.sqrt(np.maximum(edge_variances(covariances), 0.0))


def with_sigmas(covariances: Floats, sigmas: Floats) -> Floats:
    """Return covariances of the same correlations with other standard deviations (N, 4).

    >>> with_sigmas(np.array([[[[4, 1], [1, 1]], [[1, 0], [0, 1]]]], float), np.array([[4.0, 1, 1, 3]])).tolist()
    [[[[16.0, 2.0], [2.0, 1.0]], [[1.0, 0.0], [0.0, 9.0]]]]
    """
    old = sigmas_of(covariances)
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = np.where(old > 0, sigmas / old, 0.0).reshape(-1, 2, 2)
    changed = covariances * factors[..., :, None] * factors[..., None, :]
    axes = np.arange(2)
    changed[..., axes, axes] = np.square(sigmas).reshape(-1, 2, 2)
    return np.asarray(changed)


def squared_distances(residuals: Floats, covariances: Floats, free: Bools) -> Floats:
    """Return r' Sigma^-1 r over the edges that are free, those that are not being integrated out, (K,).

    Parameters
    ----------
    residuals : (K, 4) float64
        Truth minus mean.
    covariances : (K, 2, 2, 2) float64
        Of both corners; they must have an inverse.
    free : (K, 4) bool
        The edges to look at.
    """
    r, use = residuals.reshape(-1, 2, 2), free.reshape(-1, 2, 2)
    xx, xy, yy = covariances[..., 0, 0], covariances[..., 0, 1], covariances[..., 1, 1]
    x, y = r[..., 0], r[..., 1]
    both = (yy * x * x - 2 * xy * x * y + xx * y * y) / (xx * yy - xy * xy)
    one = np.where(use[..., 0], x * x / xx, 0.0) + np.where(use[..., 1], y * y / yy, 0.0)
    return np.asarray(np.where(use.all(axis=-1), both, one).sum(axis=1))


def edge_reach(level: float) -> float:
    """Return how many standard deviations to either side hold this much of a Gaussian.

    >>> round(edge_reach(0.9), 4)
    1.6449
    """
    return normal_quantile((1 + level) / 2)


def box_reach(level: float) -> float:
    """Return k such that four independent Gaussians lie within k standard deviations all at once with this probability.

    (2 Phi(k) - 1)^4 = level.

    >>> round(box_reach(0.9), 4)
    2.2263
    """
    return edge_reach(math.sqrt(math.sqrt(level)))
