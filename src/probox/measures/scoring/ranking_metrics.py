"""Whether uncertainties rank errors (AUSE, Spearman's correlation) and false positives (MUE).

Functions called `prepare` order rows once, and return a function of how often each row counts, (R, K), for R numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.support.types import Bools, Floats


class Runs:
    """Groups of equal values, from the least value up.

    Parameters
    ----------
    values : (K,) array
        What makes rows alike.

    Attributes
    ----------
    values : (G,) array
        The different values, ascending.
    groups : (K,) int64
        Each row's group.
    """

    def __init__(self, values: npt.NDArray[Any]) -> None:
        self.values, groups = np.unique(values, return_inverse=True)
        self.groups = groups.ravel()
        self._order = np.argsort(self.groups, kind="stable")
        self._starts = np.searchsorted(self.groups[self._order], np.arange(len(self.values)))

    def sums(self, numbers: Floats) -> Floats:
        """Return the sum of each group's numbers, (R, G), from (R, K)."""
        if not len(self.values):
            return np.zeros((len(numbers), 0))
        ordered = numbers[:, self._order]
        if len(self.values) == len(self.groups):
            return ordered
        sums: Floats = np.add.reduceat(ordered, self._starts, axis=1)
        return sums


Counted = Callable[[Floats], Floats]


def spearman(a: Floats, b: Floats) -> float:
    """Return the rank correlation of two columns, ranks of equal values averaged; NaN where one is constant."""
    return float(prepare_spearman(a, b)(np.ones((1, len(a))))[0])


def prepare_spearman(a: Floats, b: Floats) -> Counted:
    """Return Spearman's correlation as a function of how often each row is there."""
    columns = Runs(a), Runs(b)

    def correlations(counts: Floats) -> Floats:
        x, y = (_centred_ranks(column, counts) for column in columns)
        squares = np.einsum("rk,rk->r", counts, x * x) * np.einsum("rk,rk->r", counts, y * y)
        products = np.einsum("rk,rk->r", counts, x * y)
        found: Floats = np.divide(products, np.sqrt(squares), out=np.full(len(counts), np.nan), where=squares > 0)
        return found

    return correlations


def _centred_ranks(column: Runs, counts: Floats) -> Floats:
    """Return each row's rank minus the mean rank, the ranks of equal values averaged, (R, K)."""
    sizes = column.sums(counts)
    ranks = np.cumsum(sizes, axis=1) - 0.5 * sizes - 0.5 * sizes.sum(axis=1, keepdims=True)
    centred: Floats = ranks[:, column.groups]
    return centred


def ause(uncertainties: Floats, errors: Floats) -> float:
    """Return the area under the sparsification error, over that of the random order: 0 is perfect, 1 knows nothing.

    Take away the most uncertain rows one by one, and look at the mean error of those that are left; its mean over all
    steps is an area A. So it is with the true order of errors (B), and in random order, where the mean error stays
    what it is (C). The number is (A - B) / (C - B). Rows of equal uncertainty go in random order, so that a constant
    uncertainty has 1. NaN where all errors are equal.
    """
    return float(prepare_ause(uncertainties, errors)(np.ones((1, len(errors))))[0])


def sparsification(uncertainties: Floats, errors: Floats) -> Floats:
    """Return the mean error of the n - k rows that are left when the k most uncertain are gone, k = 0 .. n - 1."""
    runs, one = Runs(uncertainties), np.ones((1, len(errors)))
    expected = (runs.sums(one * errors) / runs.sums(one))[0]
    left: Floats = np.cumsum(expected[np.sort(runs.groups)]) / np.arange(1, len(errors) + 1)
    return left[::-1]


def prepare_ause(uncertainties: Floats, errors: Floats) -> Counted:
    """Return AUSE as a function of how often each row is there."""
    orders = Runs(uncertainties), Runs(errors)

    def areas(counts: Floats) -> Floats:
        totals = counts * errors
        own, best = (_areas(order, counts, totals) for order in orders)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = totals.sum(axis=1) / counts.sum(axis=1)
        differ = mean - best > 1e-12 * np.abs(mean)
        found: Floats = np.divide(own - best, mean - best, out=np.full(len(counts), np.nan), where=differ)
        return found

    return areas


def _areas(order: Runs, counts: Floats, totals: Floats) -> Floats:
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
        means: Floats = (sums + (so_far - before * e) * steps).sum(axis=1) / n
    return means


def minimum_uncertainty_error(uncertainties: Floats, hits: Bools) -> float:
    """Return min over d of 1/2 P(u > d | TP) + 1/2 P(u <= d | FP); 0.5 says nothing, 0 tells all apart.

    NaN without true or without false positives.
    """
    return float(prepare_mue(uncertainties, hits)(np.ones((1, len(hits))))[0])


def prepare_mue(uncertainties: Floats, hits: Bools) -> Callable[[Floats], Floats]:
    """Return MUE as a function of how often each detection is there, (R, K), for R numbers."""
    order = np.argsort(uncertainties, kind="stable")
    ranked, hit = uncertainties[order], hits[order]
    ends = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], np.ones(min(len(ranked), 1), bool)))

    def errors(counts: Floats) -> Floats:
        there = counts[:, order]
        right, wrong = ((there * flags).sum(axis=1, keepdims=True) for flags in (hit, ~hit))
        with np.errstate(invalid="ignore", divide="ignore"):
            # 1/2 + 1/2 [P(u <= d | FP) - P(u <= d | TP)], whose difference grows with wrong and falls with right ones.
            steps = there * np.where(hit, -1.0 / right, 1.0 / wrong)
        differences = np.cumsum(steps, axis=1)[:, ends]
        # Below the least u everything is rejected, and the difference is 0.
        least: Floats = 0.5 + 0.5 * differences.min(axis=1, initial=0.0)
        least[(right == 0)[:, 0] | (wrong == 0)[:, 0]] = np.nan
        return least

    return errors
