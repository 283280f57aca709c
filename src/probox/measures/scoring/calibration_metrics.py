"""Calibration and ranking metrics of covariances and of scores, and the bins and runs they are computed in.

A ground truth has a *level*: the fraction that the least central region with it inside should hold. If covariances are
right, levels are uniform between 0 and 1. For an edge it is 2 Phi(|z|) - 1, for a box chi^2_4(r' Sigma^-1 r). Coverage
at 90% is the fraction of levels up to 0.9.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from probox.measures.boxes.box_definition import overlaps
from probox.measures.scoring.scores import brier_scores, central_level, chi2_4_cdf, normal_cdf, squared_distances
from probox.support.types import Bools, Floats, Ints

Kind = Literal["width", "mass"]


@dataclasses.dataclass(frozen=True)
class Bins:
    """A number of bins between two ends.

    Parameters
    ----------
    number : int
        How many.
    kind : {"width", "mass"}
        Of equal width between the ends, or with edges at the quantiles of the values (linear between two of them),
        so that each holds about as many. Values that are equal are in the same bin.
    """

    number: int
    kind: Kind = "width"

    @property
    def name(self) -> str:
        """Return how keys of results call them: ``10w`` for ten of equal width, ``10m`` of equal mass."""
        return f"{self.number}{self.kind[0]}"

    @property
    def words(self) -> str:
        """Return what hints say of them."""
        return f"{self.number} bins of equal {self.kind}"

    def inner_edges(self, values: Floats, counts: Floats, ends: tuple[float, float] | None) -> Floats:
        """Return the edges between bins, (R, B - 1).

        Parameters
        ----------
        values : (K,) float64, ascending
            What is put into bins; at least one.
        counts : (R, K) float64
            How often each value is there in each of R resamplings, whole numbers.
        ends : (float, float), optional
            Of bins of equal width. Default: the least and the greatest value that is there.
        """
        if self.kind == "mass":
            return weighted_bin_edges(values, counts, self.number)
        steps = np.arange(1, self.number) / self.number
        if ends is not None:
            low, high = np.full((len(counts), 1), ends[0]), np.full((len(counts), 1), ends[1])
        else:
            there = counts > 0
            low = values[there.argmax(axis=1)][:, None]
            high = values[len(values) - 1 - there[:, ::-1].argmax(axis=1)][:, None]
        edges: Floats = low + (high - low) * steps
        return edges


class SortedColumns:
    """Values in ascending order with other columns beside them, so that bins are runs of rows.

    A bin holds its lower edge; the last one holds its upper edge too.

    Parameters
    ----------
    values : (K,) float64
        What bins are made of.
    columns : sequence of (K,) float64
        What is summed in each bin.
    ends : (float, float), optional
        Of bins of equal width. Default: the least and the greatest value.
    """

    def __init__(self, values: Floats, columns: Sequence[Floats], ends: tuple[float, float] | None = None) -> None:
        self.order = np.argsort(values, kind="stable")
        self.values, self.ends = values[self.order], ends
        self.columns = [np.ones(len(values)), *(column[self.order] for column in columns)]

    def sums(self, bins: Bins, counts: Floats | None = None) -> list[Floats]:
        """Return how many values each bin has, then the sum of each column in it, each (R, B).

        `counts` (R, K) says how often each value is there in each resampling, in the order in which values were given;
        default: once, in one.
        """
        counts = np.ones((1, len(self.values))) if counts is None else counts[:, self.order]
        r, k = counts.shape
        if not r or not k:
            return [np.zeros((r, bins.number)) for _ in self.columns]
        inner = np.searchsorted(self.values, bins.inner_edges(self.values, counts, self.ends), side="left")
        starts = np.concatenate([np.zeros((r, 1), np.int64), inner], axis=1)
        empty = np.diff(starts, axis=1, append=k) == 0
        # All resamplings one after the other; a 0 behind each, where a bin may start that lies above all values.
        flat = (starts + np.arange(r)[:, None] * (k + 1)).ravel()
        padded = np.zeros((r, k + 1))
        sums = []
        for column in self.columns:
            np.multiply(counts, column, out=padded[:, :-1])
            total = np.add.reduceat(padded.ravel(), flat).reshape(r, bins.number)
            sums.append(np.where(empty, 0.0, total))
        return sums


def weighted_bin_edges(values: Floats, counts: Floats, parts: int) -> Floats:
    """Return the quantiles k / parts, k = 1 .. parts - 1, as `np.quantile` has them, (R, parts - 1).

    `values` (K,) are ascending, and each is there `counts` (R, K) times; where none is, any value will do.
    """
    until = np.cumsum(counts, axis=1)
    # In whole numbers: a quantile that falls on a value must be that value, since the value goes into the upper bin.
    last = np.maximum(until[:, -1:].astype(np.int64) - 1, 0)
    below, rest = np.divmod(np.arange(1, parts) * last, parts)
    # All resamplings in one ascending column, each above the one before.
    step = until[:, -1].max(initial=0.0) + 1.0
    above = step * np.arange(len(counts))[:, None]
    flat = (until + above).ravel()

    def value(ranks: Ints) -> Floats:
        rows = np.searchsorted(flat, ranks + above, side="right") - np.arange(len(counts))[:, None] * len(values)
        found: Floats = values[np.minimum(rows, len(values) - 1)]
        return found

    low, high = value(below), value(below + (rest > 0))
    quantiles: Floats = low + (high - low) * (rest / parts)
    return quantiles


SHARES = (0.5, 0.68, 0.9, 0.95)
"""What the intervals should hold whose coverage is reported."""

ONE_STD = math.erf(math.sqrt(0.5))
"""P(|z| <= 1) of a standard normal z: 0.6827."""

MQCE_LEVELS = np.linspace(0.05, 0.95, 19)
"""The quantiles of M-QCE."""

PIT_BINS = 10
"""Bins of equal width between 0 and 1."""


def error_factor(z: Floats) -> float:
    """Return q(|z|), the quantile of |z| = |error| / std at the probability `ONE_STD`; NaN of no edge.

    Errors are so many times the predicted std: 1 for calibrated Gaussians, above if overconfident, below if
    underconfident. It is the least |z| that this fraction of edges does not exceed, so outliers do not move it.
    """
    return float(np.quantile(np.abs(z), ONE_STD, method="inverted_cdf")) if np.size(z) else math.nan


def rms_z(z: Floats) -> float:
    """Return sqrt(mean z^2): 1 for calibrated Gaussians; a single outlier can dominate it."""
    return math.sqrt(_mean(np.square(z)))


def pit_values(residuals: Floats, sigmas: Floats) -> Floats:
    """Return the probability integral transform Phi(z): spread evenly between 0 and 1 if sigmas are right."""
    return normal_cdf(residuals / sigmas)


def pit_histogram(pit: Floats, bins: int = PIT_BINS) -> Floats:
    """Return the share of PIT values in each of some bins of equal width; a value on an edge is in the upper bin."""
    numbers = np.minimum((pit.ravel() * bins).astype(np.int64), bins - 1)
    with np.errstate(invalid="ignore"):
        shares: Floats = np.bincount(numbers, minlength=bins) / np.float64(pit.size)
    return shares


def pit_distance(shares: Floats) -> Floats:
    """Return half the sum over bins (last axis) of |share - 1 / bins|: what would have to move to be flat."""
    distance: Floats = 0.5 * np.abs(shares - 1.0 / shares.shape[-1]).sum(axis=-1)
    return distance


def edge_levels(residuals: Floats, sigmas: Floats) -> Floats:
    """Return the level of each edge's truth."""
    return central_level(residuals / sigmas)


def box_levels(residuals: Floats, covariances: Floats) -> Floats:
    """Return the level of each box's truth, all four edges together."""
    return chi2_4_cdf(squared_distances(residuals, covariances))


def coverage(levels: Floats, share: float) -> float:
    """Return which share of the truths lies in the central regions that should hold `share`."""
    return _mean(levels <= share)


def _mean(values: Floats | Bools) -> float:
    return float(np.mean(values)) if np.size(values) else math.nan


def ence_of_sums(n: Floats, variances: Floats, squares: Floats) -> Floats:
    """Return ENCE (R,) of how many edges are in each bin (R, B), and the sums of variances and squared residuals."""
    some = n > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        rmv, rmse = np.sqrt(variances / n), np.sqrt(squares / n)
        ratios = np.where(some, np.abs(rmse - rmv) / rmv, 0.0)
        means: Floats = ratios.sum(axis=1) / some.sum(axis=1)
    return means


Labels = npt.NDArray[np.int32] | Ints

UNIT = (0.0, 1.0)
"""Between which bins of equal width lie, unless the least and the greatest score are asked for."""


def calibration_errors(n: Floats, gaps: Floats) -> Floats:
    """Return sum over bins of n_b/N |mean outcome - mean score|, (R,); NaN of nothing.

    Parameters
    ----------
    n : (R, B) float64
        How many detections are in each bin.
    gaps : (R, B) float64
        The sum of outcome minus score in each.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        errors: Floats = np.abs(gaps).sum(axis=1) / n.sum(axis=1)
    return errors


MISSED = 1.0
"""The loss of an object that nothing overlaps: the Brier score of p = 0."""

_MOST_OVERLAPS = 1 << 22
"""How many overlaps of objects and detections are in memory at a time, or those of a single object."""


def object_brier_scores(
    found: Floats,
    probs: npt.NDArray[np.float32] | Floats,
    there: Floats,
    labels: Labels,
    *,
    ious: tuple[float, ...] = (0.5,),
) -> Floats:
    """Return, for one image, the Brier score of the mean p of all detections that overlap each object; 1 without any.

    Detections of every class count, and one may count for several objects. OCE is the mean over objects.

    Parameters
    ----------
    found : (N, 4) float64
        Boxes of detections: x, y, width, height.
    probs : (N, C)
        Their label probabilities.
    there : (M, 4) float64
        Boxes of objects: x, y, width, height.
    labels : (M,) int
        Classes of objects.
    ious : tuple of float
        How much at least must overlap; each gives a column.

    Returns
    -------
    (M, T) float64
    """
    losses = np.full((len(there), len(ious)), MISSED)
    if not len(found) or not len(there):
        return losses
    probs = np.asarray(probs, np.float64)
    step = max(1, _MOST_OVERLAPS // len(found))
    for rows in (slice(begin, begin + step) for begin in range(0, len(there), step)):
        shared = overlaps(found, there[rows], np.zeros(len(there[rows]), bool)).T
        for column, threshold in enumerate(ious):
            near = (shared >= threshold).astype(np.float64)
            n = near.sum(axis=1)
            some = n > 0
            mean = near[some] @ probs / n[some, None]
            losses[rows, column][some] = brier_scores(mean, labels[rows][some])
    return losses


# --- whether uncertainties rank errors (AUSE, Spearman) and false positives (MUE) ---


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
"""R numbers from how often each row counts, (R, K); functions called `prepare` order rows once and return it."""


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


def prepare_mue(uncertainties: Floats, hits: Bools) -> Counted:
    """Return MUE as a function of how often each detection is there.

    MUE is min over d of 1/2 P(u > d | TP) + 1/2 P(u <= d | FP): 0.5 says nothing, 0 tells all apart. NaN without true
    or without false positives.
    """
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
