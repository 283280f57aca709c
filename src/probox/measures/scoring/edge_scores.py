"""Scores of single edges, each a normal distribution: CRPS, interval score, quantile loss; and how wide intervals are.

Arrays have any shape; `residuals` are truth minus mean, `sigmas` standard deviations. All are in pixels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from probox.measures.scoring.normal import normal_cdf, normal_pdf, normal_quantile

__all__ = ["crps", "folded_pinball_losses", "interval_scores", "interval_widths", "log_scores", "pinball_losses"]

FloatArray = npt.NDArray[np.float64]


def crps(residuals: FloatArray, sigmas: FloatArray) -> FloatArray:
    """Return sigma [z (2 Phi(z) - 1) + 2 phi(z) - pi^-1/2]; |r| where sigma is 0."""
    some = sigmas > 0
    z = residuals / np.where(some, sigmas, 1.0)
    scores = sigmas * (z * (2.0 * normal_cdf(z) - 1.0) + 2.0 * normal_pdf(z) - 1.0 / math.sqrt(math.pi))
    return np.where(some, scores, np.abs(residuals))


def log_scores(residuals: FloatArray, sigmas: FloatArray) -> FloatArray:
    """Return 1/2 z^2 + ln(sigma sqrt(2 pi)): the negative log likelihood of one edge; sigma must be above 0."""
    z = residuals / sigmas
    scores: FloatArray = 0.5 * z * z + np.log(sigmas) + 0.5 * math.log(2.0 * math.pi)
    return scores


def interval_widths(sigmas: FloatArray, share: float) -> FloatArray:
    """Return how wide the central interval is that should hold this share; its mean is MPIW."""
    widths: FloatArray = 2.0 * normal_quantile(0.5 + 0.5 * share) * sigmas
    return widths


def interval_scores(residuals: FloatArray, sigmas: FloatArray, share: float) -> FloatArray:
    """Return (u - l) + 2 / (1 - share) * miss of the central interval [l, u] that should hold this share."""
    half = 0.5 * interval_widths(sigmas, share)
    scores: FloatArray = 2.0 * half + 2.0 / (1.0 - share) * np.maximum(np.abs(residuals) - half, 0.0)
    return scores


def pinball_losses(residuals: FloatArray, sigmas: FloatArray, levels: Sequence[float] | FloatArray) -> FloatArray:
    """Return the mean over quantile levels q of max(q e, (q - 1) e), e being the truth minus the quantile q."""
    total = np.zeros(np.broadcast_shapes(np.shape(residuals), np.shape(sigmas)))
    for q in levels:
        e = residuals - normal_quantile(float(q)) * sigmas
        total += np.maximum(q * e, (q - 1.0) * e)
    return total / len(levels)


def folded_pinball_losses(
    residuals: FloatArray, sigmas: FloatArray, levels: Sequence[float] | FloatArray
) -> FloatArray:
    """Return the same of |r| and its quantiles, the half widths of central intervals: what netcal calls pinball."""
    total = np.zeros(np.broadcast_shapes(np.shape(residuals), np.shape(sigmas)))
    for q in levels:
        e = np.abs(residuals) - 0.5 * interval_widths(sigmas, float(q))
        total += np.maximum(q * e, (q - 1.0) * e)
    return total / len(levels)
