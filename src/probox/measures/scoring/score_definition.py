"""Uncertainty metrics in plain loops: slow, readable, and the reference for tests.

Each function follows its definition, one pair, bin or class at a time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from probox.support.types import Floats

__all__ = [
    "ause",
    "bin_edges",
    "box_coverage",
    "d_ece",
    "edge_coverage",
    "ence",
    "energy_score",
    "in_bin",
    "laace",
    "laece",
    "mean_length",
    "mue",
    "negative_log_likelihood",
    "oce",
    "qgc",
    "spearman",
]


def whole_covariance(corners: Floats) -> Floats:
    """Return the 4 x 4 covariance of x1, y1, x2, y2 from the 2 x 2 covariances of both corners."""
    whole = np.zeros((4, 4))
    whole[:2, :2], whole[2:, 2:] = corners
    return whole


def negative_log_likelihood(residual: Floats, corners: Floats) -> float:
    """Return 1/2 r' Sigma^-1 r + 1/2 ln det(2 pi Sigma) of one box."""
    sigma = whole_covariance(corners)
    sign, log_det = np.linalg.slogdet(2.0 * math.pi * sigma)
    assert sign > 0
    return float(0.5 * residual @ np.linalg.solve(sigma, residual) + 0.5 * log_det)


def mean_length(mean: Floats, covariance: Floats, step: float = 0.1) -> float:
    """Return E|X| of X ~ N(m, Sigma): the integral over s > 0, with s = e^t, by equal steps in t.

    The integrand decreases exponentially on both sides, so the error of equal steps decreases exponentially with the
    step.
    """
    spread, axes = np.linalg.eigh(covariance)
    spread, m = np.maximum(spread, 0.0), axes.T @ mean
    total = 0.0
    for t in np.arange(-45.0, 45.0, step):
        s2 = math.exp(2.0 * t)
        wide = 2.0 * s2 * spread
        total += -math.expm1(float(-(0.5 * np.log1p(wide) + s2 * m * m / (1.0 + wide)).sum())) * math.exp(-t)
    return total * step / math.sqrt(math.pi)


def energy_score(residual: Floats, corners: Floats) -> float:
    """Return E|Z - y| - 1/2 E|Z - Z'| of one box."""
    sigma = whole_covariance(corners)
    return mean_length(residual, sigma) - 0.5 * mean_length(np.zeros(4), 2.0 * sigma)


def edge_coverage(residuals: Sequence[float], sigmas: Sequence[float], share: float) -> float:
    """Return the fraction of edges with ground truth in the central interval of nominal coverage `share`."""
    inside = [math.erf(abs(r) / sigma / math.sqrt(2.0)) <= share for r, sigma in zip(residuals, sigmas, strict=True)]
    return sum(inside) / len(inside)


def box_coverage(residuals: Floats, covariances: Floats, share: float) -> float:
    """Return the fraction of boxes with ground truth in the ellipsoid of nominal coverage `share`."""
    inside = 0
    for residual, corners in zip(residuals, covariances, strict=True):
        distance = float(residual @ np.linalg.solve(whole_covariance(corners), residual))
        inside += 1.0 - math.exp(-distance / 2.0) * (1.0 + distance / 2.0) <= share
    return inside / len(residuals)


def bin_edges(values: Sequence[float], number: int, kind: str, ends: tuple[float, float] | None) -> list[float]:
    """Return the edges of bins in ascending order."""
    ordered = sorted(values)
    if kind == "width":
        low, high = ends or (ordered[0], ordered[-1])
        return [low + (high - low) * (k / number) for k in range(number + 1)]
    edges = []
    for k in range(number + 1):
        row, rest = divmod(k * (len(ordered) - 1), number)
        upper = ordered[min(row + 1, len(ordered) - 1)]
        edges.append(ordered[row] + (upper - ordered[row]) * (rest / number))
    return edges


def in_bin(value: float, edges: Sequence[float], number: int) -> bool:
    """Return whether a value is in a bin: edges belong to the bin above; the last bin includes its upper edge."""
    first, last = number == 0, number == len(edges) - 2
    return (first or value >= edges[number]) and (last or value < edges[number + 1])


def ence(residuals: Sequence[float], sigmas: Sequence[float], number: int, kind: str = "width") -> float:
    """Return the mean over bins of std of |RMSE - RMV| / RMV."""
    edges = bin_edges(sigmas, number, kind, None)
    ratios = []
    for b in range(number):
        rows = [i for i, sigma in enumerate(sigmas) if in_bin(sigma, edges, b)]
        if rows:
            rmse = math.sqrt(sum(residuals[i] ** 2 for i in rows) / len(rows))
            rmv = math.sqrt(sum(sigmas[i] ** 2 for i in rows) / len(rows))
            ratios.append(abs(rmse - rmv) / rmv)
    return sum(ratios) / len(ratios)


def d_ece(
    scores: Sequence[float],
    outcomes: Sequence[float],
    number: int,
    kind: str = "width",
    ends: tuple[float, float] | None = (0.0, 1.0),
) -> float:
    """Return sum over bins of n_b/N |mean outcome - mean score|; an outcome is a hit (D-ECE) or an IoU (LaECE)."""
    edges = bin_edges(scores, number, kind, ends)
    total = 0.0
    for b in range(number):
        rows = [i for i, score in enumerate(scores) if in_bin(score, edges, b)]
        if rows:
            precision, score = (sum(column[i] for i in rows) / len(rows) for column in (outcomes, scores))
            total += len(rows) / len(scores) * abs(precision - score)
    return total


def laece(
    scores: Sequence[float],
    ious: Sequence[float],
    labels: Sequence[int],
    number: int,
    kind: str = "width",
    ends: tuple[float, float] | None = (0.0, 1.0),
) -> float:
    """Return the mean over predicted classes of the same, with IoU in place of precision."""
    errors = []
    for label in sorted(set(labels)):
        rows = [i for i, named in enumerate(labels) if named == label]
        errors.append(d_ece([scores[i] for i in rows], [ious[i] for i in rows], number, kind, ends))
    return sum(errors) / len(errors)


def laace(scores: Sequence[float], ious: Sequence[float], labels: Sequence[int]) -> float:
    """Return the mean over predicted classes of mean |score - IoU|."""
    errors = []
    for label in sorted(set(labels)):
        gaps = [abs(s - iou) for s, iou, named in zip(scores, ious, labels, strict=True) if named == label]
        errors.append(sum(gaps) / len(gaps))
    return sum(errors) / len(errors)


def qgc(scores: Sequence[float], hits: Sequence[bool], missed: int) -> float:
    """Return [sum over TP (1 - s)^2 + sum over FP s^2 + FN] / (TP + FP + FN)."""
    losses = [(1.0 - s) ** 2 if hit else s**2 for s, hit in zip(scores, hits, strict=True)]
    return (sum(losses) + missed) / (len(losses) + missed)


def oce(overlaps: Floats, probs: Floats, labels: Sequence[int], threshold: float) -> list[float]:
    """Return each object's loss; `overlaps` has objects in rows, detections in columns."""
    losses = []
    for row, label in zip(overlaps, labels, strict=True):
        near = [p for iou, p in zip(row, probs, strict=True) if iou >= threshold]
        if not near:
            losses.append(1.0)
            continue
        mean = sum(near) / len(near)
        losses.append(sum((float(p) - (k == label)) ** 2 for k, p in enumerate(mean)))
    return losses


def mue(uncertainties: Sequence[float], hits: Sequence[bool]) -> float:
    """Return min over d of 1/2 P(u > d | TP) + 1/2 P(u <= d | FP)."""
    right = [u for u, hit in zip(uncertainties, hits, strict=True) if hit]
    wrong = [u for u, hit in zip(uncertainties, hits, strict=True) if not hit]
    if not right or not wrong:
        return math.nan
    return min(
        0.5 * sum(u > d for u in right) / len(right) + 0.5 * sum(u <= d for u in wrong) / len(wrong)
        for d in (-math.inf, *uncertainties)
    )


def spearman(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the correlation of ranks, with average ranks for ties."""
    ranks = [[sum(w < v for w in column) + 0.5 * sum(w == v for w in column) for v in column] for column in (a, b)]
    x, y = (np.array(rank) - np.mean(rank) for rank in ranks)
    spread = math.sqrt(float(x @ x)) * math.sqrt(float(y @ y))
    return float(x @ y) / spread if spread > 0 else math.nan


def ause(uncertainties: Sequence[float], errors: Sequence[float]) -> float:
    """Return (A - B) / (C - B) from mean errors over removal steps: ordered by std, by error, at random.

    Among rows of equal uncertainty, the expected error of the next removed row is their mean.
    """
    n = len(errors)

    def area(order_by: Sequence[float]) -> float:
        expected = [
            float(np.mean([e for e, other in zip(errors, order_by, strict=True) if other == own])) for own in order_by
        ]
        left = [e for _, e in sorted(zip(order_by, expected, strict=True))]
        return sum(sum(left[: n - k]) / (n - k) for k in range(n)) / n

    own, best, mean = area(uncertainties), area(errors), sum(errors) / n
    return (own - best) / (mean - best) if mean - best > 1e-12 * mean else math.nan
