"""Proper scoring rules of matched boxes: the negative log likelihood and the exact energy score.

    NLL    = 1/2 r' Sigma^-1 r + 1/2 ln det(2 pi Sigma)
    energy = E|Z - y| - 1/2 E|Z - Z'|,   Z, Z' ~ N(mu, Sigma)

For X ~ N(m, diag(l)) in any number of dimensions

    E|X| = pi^-1/2 * integral over s > 0 of [1 - prod_i (1 + 2 s^2 l_i)^-1/2 exp(-s^2 m_i^2 / (1 + 2 s^2 l_i))] s^-2 ds,

where lengths are measured in sqrt(sum m^2 + l). No sample is drawn, so a score has no noise of its own. With s = e^t
the integrand is analytic and bounded in |Im t| < pi / 4 whatever the variances are, and falls off as e^-|t| on both
sides. So equal steps h in t are off by about exp(-pi^2 / 2h), also for corners that are a thousand times less sure of x
than of y, where a rule of Gauss and Legendre in x of s = x / (1 - x) would need hundreds of nodes.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.measures.scoring.covariances import log_determinants, squared_distances

__all__ = ["energy_scores", "mean_lengths", "negative_log_likelihoods"]

FloatArray = npt.NDArray[np.float64]

Steps = tuple[float, int, int]
"""The length of a step in t = ln s, and the first and the last of them."""

EXACT: Steps = (1 / 6, -90, 96)
"""Within 1e-12 of the integral."""
QUICK: Steps = (1 / 3, -24, 24)
"""Within 1e-5 of it at a quarter of the cost, for searches whose result is then scored exactly."""


def negative_log_likelihoods(residuals: FloatArray, covariances: FloatArray, *, floor: float = 0.0) -> FloatArray:
    """Return the negative log likelihood of each box, in nats.

    Parameters
    ----------
    residuals : (K, 4) float64
        Truth minus mean: x1, y1, x2, y2.
    covariances : (K, 2, 2, 2) float64
        Of the top-left and the bottom-right corner.
    floor : float
        Variance in square pixels that is added to every coordinate first. Some published code adds 0.01; nothing is
        added unless it is asked for, so that a plain box has no likelihood (NaN or infinity).
    """
    if not (math.isfinite(floor) and floor >= 0):
        raise InputError(f"expected floor to be a variance of at least 0, but got {floor!r}")
    raised = covariances + floor * np.eye(2) if floor else covariances
    logs = log_determinants(raised) + 4.0 * math.log(2.0 * math.pi)
    nll: FloatArray = 0.5 * (squared_distances(residuals, raised) + logs)
    return nll


def energy_scores(residuals: FloatArray, covariances: FloatArray, *, steps: Steps = EXACT) -> FloatArray:
    """Return the energy score of each box, in pixels; for a plain box it is the distance |r|."""
    variances, axes = np.linalg.eigh(covariances)
    along = np.einsum("kcij,kci->kcj", axes, residuals.reshape(-1, 2, 2)).reshape(-1, 4)
    variances = np.maximum(variances, 0.0).reshape(-1, 4)  # rounding may take a singular one below 0
    apart = mean_lengths(np.zeros_like(along), 2.0 * variances, steps)
    scores: FloatArray = mean_lengths(along, variances, steps) - 0.5 * apart
    return scores


def mean_lengths(means: FloatArray, variances: FloatArray, steps: Steps = EXACT) -> FloatArray:
    """Return E|X| of X ~ N(m, diag(l)) for each row of `means` and `variances`, (K, D)."""
    scale = np.sqrt((np.square(means) + variances).sum(axis=1))
    unit = np.where(scale > 0, scale, 1.0)[:, None]
    m2, spread = np.square(means / unit), variances / np.square(unit)
    # What lies beyond the ends: the integrand is e^t on the left, e^-t on the right, and the steps a geometric series.
    step, first, last = steps
    beyond = math.exp(step * first) + math.exp(-step * last)
    total = np.full(len(scale), beyond / math.expm1(step))
    for t in step * np.arange(first, last + 1):
        s2 = math.exp(2.0 * t)
        wide = 2.0 * s2 * spread
        logs = (0.5 * np.log1p(wide) + s2 * m2 / (1.0 + wide)).sum(axis=1)
        total -= math.exp(-t) * np.expm1(-logs)
    lengths: FloatArray = scale * total * (step / math.sqrt(math.pi))
    return lengths
