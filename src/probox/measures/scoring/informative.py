"""Do sigmas know which errors are large? AUSE, and Spearman's rank correlation."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

__all__ = ["ause", "prepared_ause", "prepared_spearman", "sparsification", "spearman"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Counted = Callable[[FloatArray], float]


def spearman(a: FloatArray, b: FloatArray) -> float:
    """Return the rank correlation of two columns, ranks of equal values averaged; NaN where one is constant."""
    return prepared_spearman(a, b)(np.ones(len(a)))


def prepared_spearman(a: FloatArray, b: FloatArray) -> Counted:
    """Return Spearman's correlation as a function of how often each row is there."""
    groups = [np.unique(column, return_inverse=True)[1].ravel() for column in (a, b)]

    def correlation(counts: FloatArray) -> float:
        n = counts.sum()
        if n < 2:
            return math.nan
        x, y = (_middle_ranks(group, counts)[group] - 0.5 * (n + 1.0) for group in groups)
        spread = np.sqrt(counts @ np.square(x)) * np.sqrt(counts @ np.square(y))
        return float(counts @ (x * y) / spread) if spread > 0 else math.nan

    return correlation


def _middle_ranks(groups: IntArray, counts: FloatArray) -> FloatArray:
    """Return the mean rank, counted from 1, of each group of equal values."""
    sizes = np.bincount(groups, counts)
    ranks: FloatArray = np.cumsum(sizes) - 0.5 * (sizes - 1.0)
    return ranks


def ause(uncertainties: FloatArray, errors: FloatArray) -> float:
    """Return the area under the sparsification error, over that of the random order: 0 is perfect, 1 knows nothing.

    Take away the most uncertain rows one by one, and look at the mean error of those that are left; its mean over all
    steps is an area A. So it is with the true order of errors (B), and in random order, where the mean error stays
    what it is (C). The number is (A - B) / (C - B). Rows of equal uncertainty go in random order, so that a constant
    uncertainty has 1. NaN where all errors are equal.
    """
    return prepared_ause(uncertainties, errors)(np.ones(len(errors)))


def sparsification(uncertainties: FloatArray, errors: FloatArray) -> FloatArray:
    """Return the mean error of the n - k rows that are left when the k most uncertain are gone, k = 0 .. n - 1."""
    groups = np.unique(uncertainties, return_inverse=True)[1].ravel()
    order = np.argsort(groups, kind="stable")
    expected = np.bincount(groups, errors) / np.bincount(groups) if len(groups) else np.zeros(0)
    left: FloatArray = np.cumsum(expected[groups[order]]) / np.arange(1, len(errors) + 1)
    return left[::-1]


def prepared_ause(uncertainties: FloatArray, errors: FloatArray) -> Counted:
    """Return AUSE as a function of how often each row is there."""
    by_sigma, by_error = (np.unique(column, return_inverse=True)[1].ravel() for column in (uncertainties, errors))

    def area(counts: FloatArray) -> float:
        n = counts.sum()
        if n == 0:
            return math.nan
        totals = counts * errors
        own, best = (_area(group, counts, totals) for group in (by_sigma, by_error))
        mean = float(totals.sum() / n)
        return (own - best) / (mean - best) if mean - best > 1e-12 * abs(mean) else math.nan

    return area


def _area(groups: IntArray, counts: FloatArray, totals: FloatArray) -> float:
    """Return the mean over m = 1 .. n of the mean of the first m rows, rows of one group in random order.

    Within a group of w rows with mean e that follows M rows with sum S, sum over j = 1 .. w of (S + j e) / (M + j) is
    w e + (S - M e) (H(M + w) - H(M)), H being the harmonic numbers.
    """
    w = np.bincount(groups, counts)
    there = w > 0
    w, sums = w[there], np.bincount(groups, totals)[there]
    e = sums / w
    until, so_far = np.cumsum(w), np.cumsum(sums)
    before = until - w
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1.0, until[-1] + 1.0))])
    steps = harmonic[until.astype(np.int64)] - harmonic[before.astype(np.int64)]
    return float((w * e + (so_far - sums - before * e) * steps).sum() / until[-1])
