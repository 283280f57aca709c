"""Scores of matched boxes, edges and labels.

A box has two corners, so its 4 x 4 covariance is two blocks of 2 x 2, (K, 2, 2, 2); residuals, ground truth minus mean,
are x1, y1, x2, y2. All values are in pixels. Proper scoring rules of boxes:

    NLL    = 1/2 r' Sigma^-1 r + 1/2 ln det(2 pi Sigma)
    energy = E|Z - y| - 1/2 E|Z - Z'|,   Z, Z' ~ N(mu, Sigma)

For X ~ N(m, diag(l)) in any number of dimensions

    E|X| = pi^-1/2 * integral over s > 0 of [1 - prod_i (1 + 2 s^2 l_i)^-1/2 exp(-s^2 m_i^2 / (1 + 2 s^2 l_i))] s^-2 ds,

where lengths are scaled by sqrt(sum m^2 + l). The integral is evaluated without sampling. With s = e^t the integrand
is analytic and bounded in |Im t| < pi / 4 for all variances, and decreases as e^-|t| on both sides. The error of equal
steps h in t is therefore about exp(-pi^2 / 2h), even if var(x) and var(y) differ by a factor of a million, where
Gauss-Legendre quadrature in x of s = x / (1 - x) would need hundreds of nodes.

Edges are arrays of any shape. The remainder of label probabilities to 1 is background.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.measures.measure import Evaluated
from probox.notes import Note
from probox.support.types import Bools, Floats, Ints
from probox.tables.label_probs import LabelProbs
from probox.tables.labels import scores_alone

_erf, _erfc = np.frompyfunc(math.erf, 1, 1), np.frompyfunc(math.erfc, 1, 1)


def normal_cdf(z: Floats) -> Floats:
    """Return Phi(z), exact in both tails."""
    return 0.5 * np.asarray(_erfc(-np.asarray(z, np.float64) / math.sqrt(2.0)), np.float64)


def central_level(z: Floats) -> Floats:
    """Return 2 Phi(|z|) - 1: the probability of the smallest central interval around 0 that contains z."""
    return np.asarray(_erf(np.abs(z) / math.sqrt(2.0)), np.float64)


def normal_pdf(z: Floats) -> Floats:
    """Return phi(z)."""
    values: Floats = np.exp(-0.5 * np.square(z)) / math.sqrt(2.0 * math.pi)
    return values


def normal_quantile(q: float) -> float:
    """Return the z with Phi(z) = q."""
    from statistics import NormalDist  # imported on use: it loads fractions and decimal

    return NormalDist().inv_cdf(q)


def chi2_4_cdf(x: Floats) -> Floats:
    """Return the probability that the sum of four squared standard normal numbers is at most x."""
    # At 1e3 the result is 1 already, while infinity times 0 is NaN; rounding may make a sum of squares negative.
    half = np.clip(0.5 * np.asarray(x, np.float64), 0.0, 1e3)
    values: Floats = -np.expm1(-half) - half * np.exp(-half)
    return values


SINGULAR = 1e-12
"""A correlation rho with 1 - rho^2 up to this counts as singular: rounding dominates the remainder."""


def edge_variances(covariances: Floats) -> Floats:
    """Return the variances of x1, y1, x2 and y2, (K, 4)."""
    diagonals: Floats = np.diagonal(covariances, axis1=-2, axis2=-1).reshape(-1, 4)
    return diagonals


def invertible(covariances: Floats) -> Bools:
    """Return which boxes have a density: both corner covariances are positive definite."""
    a, b, c = _parts(covariances)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = (a > 0) & (c > 0) & (1.0 - (b / a) * (b / c) > SINGULAR)
    both: Bools = spread[:, 0] & spread[:, 1]
    return both


def squared_distances(residuals: Floats, covariances: Floats) -> Floats:
    """Return r' Sigma^-1 r of each box, (K,); NaN or infinity where `invertible` is False."""
    a, b, c = _parts(covariances)
    x, y = residuals[:, 0::2], residuals[:, 1::2]
    with np.errstate(invalid="ignore", divide="ignore"):
        left = c - b * b / a
        distances: Floats = (x * x / a + np.square(y - b / a * x) / left).sum(axis=1)
    return distances


def log_determinants(covariances: Floats) -> Floats:
    """Return ln det Sigma of each box, (K,); NaN or -infinity where `invertible` is False."""
    a, b, c = _parts(covariances)
    with np.errstate(invalid="ignore", divide="ignore"):
        logs: Floats = (np.log(a) + np.log(c - b * b / a)).sum(axis=1)
    return logs


def _parts(covariances: Floats) -> tuple[Floats, Floats, Floats]:
    """Return var(x), cov(x, y) and var(y) of both corners, each (K, 2)."""
    return covariances[..., 0, 0], covariances[..., 0, 1], covariances[..., 1, 1]


Steps = tuple[float, int, int]
"""Step size in t = ln s, and the first and the last step."""

EXACT: Steps = (1 / 6, -90, 96)
"""Within 1e-12 of the integral."""

QUICK: Steps = (1 / 3, -24, 24)
"""Within 1e-5 of the integral at a quarter of the cost, for searches whose result is then scored exactly."""


def negative_log_likelihoods(residuals: Floats, covariances: Floats, *, floor: float = 0.0) -> Floats:
    """Return the negative log likelihood of each box, in nats.

    Parameters
    ----------
    residuals : (K, 4) float64
        Ground truth minus mean: x1, y1, x2, y2.
    covariances : (K, 2, 2, 2) float64
        Covariances of the top-left and the bottom-right corner.
    floor : float
        Variance in square pixels that is added to every coordinate. Some published code adds 0.01. With the default,
        a box without covariance has no likelihood (NaN or infinity).
    """
    if not (math.isfinite(floor) and floor >= 0):
        raise InputError(f"expected floor to be a variance of at least 0, but got {floor!r}")
    raised = covariances + floor * np.eye(2) if floor else covariances
    logs = log_determinants(raised) + 4.0 * math.log(2.0 * math.pi)
    nll: Floats = 0.5 * (squared_distances(residuals, raised) + logs)
    return nll


def energy_scores(residuals: Floats, covariances: Floats, *, steps: Steps = EXACT) -> Floats:
    """Return the energy score of each box, in pixels; without covariance it is the distance |r|."""
    variances, axes = np.linalg.eigh(covariances)
    along = np.einsum("kcij,kci->kcj", axes, residuals.reshape(-1, 2, 2)).reshape(-1, 4)
    variances = np.maximum(variances, 0.0).reshape(-1, 4)  # rounding may make a singular one negative
    apart = mean_lengths(np.zeros_like(along), 2.0 * variances, steps)
    scores: Floats = mean_lengths(along, variances, steps) - 0.5 * apart
    return scores


def mean_lengths(means: Floats, variances: Floats, steps: Steps = EXACT) -> Floats:
    """Return E|X| of X ~ N(m, diag(l)) for each row of `means` and `variances`, (K, D)."""
    scale = np.sqrt((np.square(means) + variances).sum(axis=1))
    unit = np.where(scale > 0, scale, 1.0)[:, None]
    m2, spread = np.square(means / unit), variances / np.square(unit)
    # Remainders: the integrand is e^t on the left and e^-t on the right, so the steps form a geometric series.
    step, first, last = steps
    beyond = math.exp(step * first) + math.exp(-step * last)
    total = np.full(len(scale), beyond / math.expm1(step))
    for t in step * np.arange(first, last + 1):
        s2 = math.exp(2.0 * t)
        wide = 2.0 * s2 * spread
        logs = (0.5 * np.log1p(wide) + s2 * m2 / (1.0 + wide)).sum(axis=1)
        total -= math.exp(-t) * np.expm1(-logs)
    lengths: Floats = scale * total * (step / math.sqrt(math.pi))
    return lengths


def crps(residuals: Floats, sigmas: Floats) -> Floats:
    """Return sigma [z (2 Phi(z) - 1) + 2 phi(z) - pi^-1/2]; |r| where sigma is 0."""
    some = sigmas > 0
    z = residuals / np.where(some, sigmas, 1.0)
    scores = sigmas * (z * (2.0 * normal_cdf(z) - 1.0) + 2.0 * normal_pdf(z) - 1.0 / math.sqrt(math.pi))
    return np.where(some, scores, np.abs(residuals))


def interval_widths(sigmas: Floats, share: float) -> Floats:
    """Return the width of the central interval of nominal coverage `share`; its mean is MPIW."""
    widths: Floats = 2.0 * normal_quantile(0.5 + 0.5 * share) * sigmas
    return widths


Probabilities = npt.NDArray[np.float32] | Floats

Labels = npt.NDArray[np.int32] | Ints


def brier_scores(probs: Probabilities, labels: Labels) -> Floats:
    """Return sum over classes k of (p_k - 1[k = c])^2 for the true class c; 0 is best, 2 worst."""
    p = np.asarray(probs, np.float64)
    of_truth = p[np.arange(len(p)), labels]
    scores: Floats = np.square(p).sum(axis=1) - np.square(of_truth) + np.square(of_truth - 1.0)
    return scores


def ignorances(probs: Probabilities | LabelProbs, labels: Labels) -> Floats:
    """Return -ln p_c, in nats; infinity if the true class has probability 0: values are not clamped."""
    p = np.asarray(probs[np.arange(len(labels)), labels], np.float64)
    with np.errstate(divide="ignore"):
        scores: Floats = -np.log(p) + 0.0  # avoids -0
    return scores


def entropies(probs: Probabilities) -> Floats:
    """Return -sum p ln p over classes and background, in nats."""
    p = np.asarray(probs, np.float64)
    every = np.concatenate([p, np.maximum(1.0 - p.sum(axis=1, keepdims=True), 0.0)], axis=1)
    logs = np.log(every, out=np.zeros_like(every), where=every > 0)
    sums: Floats = -(every * logs).sum(axis=1) + 0.0
    return sums


def notes_on_scores(evaluated: Evaluated) -> list[Note]:
    """Return a note on detections with a score only, whose other label probabilities their reader filled in."""
    found = evaluated.detections
    if found.label_probs is None:
        return []
    alone = int(scores_alone(found.label_probs, found.labels, evaluated.classes).sum())
    if not alone:
        return []
    return [Note("scores-alone", alone, total=len(found))]
