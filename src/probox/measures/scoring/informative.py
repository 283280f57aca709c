"""Do sigmas know which errors are large? AUSE, and Spearman's rank correlation.

What is `prepared` puts rows in order once, and then takes how often each row is there, (R, K), for R numbers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from probox.measures.scoring.runs import Runs

__all__ = ["ause", "prepared_ause", "prepared_spearman", "sparsification", "spearman"]

FloatArray = npt.NDArray[np.float64]
Counted = Callable[[FloatArray], FloatArray]


def spearman(a: FloatArray, b: FloatArray) -> float:
    """Return the rank correlation of two columns, ranks of equal values averaged; NaN where one is constant."""
    return float(prepared_spearman(a, b)(np.ones((1, len(a))))[0])


def prepared_spearman(a: FloatArray, b: FloatArray) -> Counted:
    """Return Spearman's correlation as a function of how often each row is there."""
    columns = Runs(a), Runs(b)

    def correlations(counts: FloatArray) -> FloatArray:
        x, y = (_centred_ranks(column, counts) for column in columns)
        squares = np.einsum("rk,rk->r", counts, x * x) * np.einsum("rk,rk->r", counts, y * y)
        products = np.einsum("rk,rk->r", counts, x * y)
        found: FloatArray = np.divide(products, np.sqrt(squares), out=np.full(len(counts), np.nan), where=squares > 0)
        return found

    return correlations


def _centred_ranks(column: Runs, counts: FloatArray) -> FloatArray:
    """Return each row's rank minus the mean rank, the ranks of equal values averaged, (R, K)."""
    sizes = column.sums(counts)
    ranks = np.cumsum(sizes, axis=1) - 0.5 * sizes - 0.5 * sizes.sum(axis=1, keepdims=True)
    centred: FloatArray = ranks[:, column.groups]
    return centred


def ause(uncertainties: FloatArray, errors: FloatArray) -> float:
    """Return the area under the sparsification error, over that of the random order: 0 is perfect, 1 knows nothing.

    Take away the most uncertain rows one by one, and look at the mean error of those that are left; its mean over all
    steps is an area A. So it is with the true order of errors (B), and in random order, where the mean error stays
    what it is (C). The number is (A - B) / (C - B). Rows of equal uncertainty go in random order, so that a constant
    uncertainty has 1. NaN where all errors are equal.
    """
    return float(prepared_ause(uncertainties, errors)(np.ones((1, len(errors))))[0])


def sparsification(uncertainties: FloatArray, errors: FloatArray) -> FloatArray:
    """Return the mean error of the n - k rows that are left when the k most uncertain are gone, k = 0 .. n - 1."""
    runs, one = Runs(uncertainties), np.ones((1, len(errors)))
    expected = (runs.sums(one * errors) / runs.sums(one))[0]
    left: FloatArray = np.cumsum(expected[np.sort(runs.groups)]) / np.arange(1, len(errors) + 1)
    return left[::-1]


def prepared_ause(uncertainties: FloatArray, errors: FloatArray) -> Counted:
    """Return AUSE as a function of how often each row is there."""
    orders = Runs(uncertainties), Runs(errors)

    def areas(counts: FloatArray) -> FloatArray:
        totals = counts * errors
        own, best = (_areas(order, counts, totals) for order in orders)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = totals.sum(axis=1) / counts.sum(axis=1)
        differ = mean - best > 1e-12 * np.abs(mean)
        found: FloatArray = np.divide(own - best, mean - best, out=np.full(len(counts), np.nan), where=differ)
        return found

    return areas


def _areas(order: Runs, counts: FloatArray, totals: FloatArray) -> FloatArray:
    """Return the mean over m = 1 .. n of the mean of the first m rows, rows of one group in random order.

    Within a group of w rows with mean e that follows M rows with sum S, sum over j = 1 .. w of (S + j e) / (M + j) is
    w e + (S - M e) (H(M + w) - H(M)), H being the harmonic numbers.
    """
    w, sums = order.sums(counts), order.sums(totals)
    e = np.divide(sums, w, out=np.zeros_like(sums), where=w > 0)
    until = np.cumsum(w, axis=1)
    before, so_far = until - w, np.cumsum(sums, axis=1) - sums
    n = until[:, -1] if until.shape[1] else np.zeros(len(counts))
    harmonic = np.append(0.0, np.cumsum(1.0 / np.arange(1.0, n.max(initial=0.0) + 1.0)))
    steps = harmonic[until.astype(np.int64)] - harmonic[before.astype(np.int64)]
    with np.errstate(invalid="ignore", divide="ignore"):
        means: FloatArray = (sums + (so_far - before * e) * steps).sum(axis=1) / n
    return means
