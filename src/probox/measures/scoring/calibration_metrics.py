"""Calibration and ranking metrics of covariances and scores, with their bins and groups of equal values.

The *level* of a ground truth value is the probability of the smallest central region that contains it. If covariances
are calibrated, levels are uniform between 0 and 1. For an edge the level is 2 Phi(|z|) - 1, for a box it is
chi^2_4(r' Sigma^-1 r). Coverage at 90% is the fraction of levels up to 0.9.
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
    """Number and kind of bins.

    Parameters
    ----------
    number : int
        Number of bins.
    kind : {"width", "mass"}
        ``width``: equal width between two ends. ``mass``: edges at the quantiles of the values (linearly interpolated),
        so that bins hold about the same number. Equal values are in the same bin.
    """

    number: int
    kind: Kind = "width"

    @property
    def name(self) -> str:
        """Return the name in keys of results: ``10w`` for ten bins of equal width, ``10m`` for equal mass."""
        return f"{self.number}{self.kind[0]}"

    @property
    def words(self) -> str:
        """Return the description for hints."""
        return f"{self.number} bins of equal {self.kind}"

    def inner_edges(self, values: Floats, counts: Floats, ends: tuple[float, float] | None) -> Floats:
        """Return the edges between bins, (R, B - 1).

        Parameters
        ----------
        values : (K,) float64, ascending
            Binned values; at least one.
        counts : (R, K) float64
            How often each value occurs in each of R resamplings; whole numbers.
        ends : (float, float), optional
            Ends of bins of equal width. Default: the minimum and maximum of the values that occur.
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
    """Values in ascending order with further columns, so that bins are ranges of rows.

    A bin includes its lower edge; the last one also includes its upper edge.

    Parameters
    ----------
    values : (K,) float64
        Binned values.
    columns : sequence of (K,) float64
        Columns that are summed in each bin.
    ends : (float, float), optional
        Ends of bins of equal width. Default: the minimum and maximum.
    """

    def __init__(self, values: Floats, columns: Sequence[Floats], ends: tuple[float, float] | None = None) -> None:
        self.order = np.argsort(values, kind="stable")
        self.values, self.ends = values[self.order], ends
        self.columns = [np.ones(len(values)), *(column[self.order] for column in columns)]

    def sums(self, bins: Bins, counts: Floats | None = None) -> list[Floats]:
        """Return the number of values in each bin, then the sum of each column in it, each (R, B).

        `counts` (R, K) is how often each value occurs in each resampling, in the original order of values. Default: a
        single resampling with each value once.
        """
        counts = np.ones((1, len(self.values))) if counts is None else counts[:, self.order]
        r, k = counts.shape
        if not r or not k:
            return [np.zeros((r, bins.number)) for _ in self.columns]
        inner = np.searchsorted(self.values, bins.inner_edges(self.values, counts, self.ends), side="left")
        starts = np.concatenate([np.zeros((r, 1), np.int64), inner], axis=1)
        empty = np.diff(starts, axis=1, append=k) == 0
        # All resamplings are concatenated. Each ends with a 0, for bins that start above all values.
        flat = (starts + np.arange(r)[:, None] * (k + 1)).ravel()
        padded = np.zeros((r, k + 1))
        sums = []
        for column in self.columns:
            np.multiply(counts, column, out=padded[:, :-1])
            total = np.add.reduceat(padded.ravel(), flat).reshape(r, bins.number)
            sums.append(np.where(empty, 0.0, total))
        return sums


def weighted_bin_edges(values: Floats, counts: Floats, parts: int) -> Floats:
    """Return the quantiles k / parts, k = 1 .. parts - 1, as in `np.quantile`, (R, parts - 1).

    `values` (K,) are ascending, and each occurs `counts` (R, K) times; the result for all-zero counts is arbitrary.
    """
    until = np.cumsum(counts, axis=1)
    # Integer arithmetic: a quantile equal to a value must be exact, because the value belongs to the upper bin.
    last = np.maximum(until[:, -1:].astype(np.int64) - 1, 0)
    below, rest = np.divmod(np.arange(1, parts) * last, parts)
    # All resamplings in one ascending column, each above the previous one.
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
"""Nominal coverages of the reported intervals."""

ONE_STD = math.erf(math.sqrt(0.5))
"""P(|z| <= 1) of a standard normal z: 0.6827."""

MQCE_LEVELS = np.linspace(0.05, 0.95, 19)
"""Nominal coverages of M-QCE."""

PIT_BINS = 10
"""Number of PIT bins of equal width between 0 and 1."""


def error_factor(z: Floats) -> float:
    """Return q(|z|), the quantile of |z| = |error| / std at the probability `ONE_STD`; NaN without edges.

    It is 1 for calibrated Gaussians, above 1 if overconfident, below 1 if underconfident. It is the smallest |z| that
    this fraction of edges does not exceed, so it is robust to outliers.
    """
    return float(np.quantile(np.abs(z), ONE_STD, method="inverted_cdf")) if np.size(z) else math.nan


def rms_z(z: Floats) -> float:
    """Return sqrt(mean z^2): 1 for calibrated Gaussians; a single outlier can dominate it."""
    return math.sqrt(_mean(np.square(z)))


def pit_values(residuals: Floats, sigmas: Floats) -> Floats:
    """Return the probability integral transform Phi(z): uniform between 0 and 1 for calibrated standard deviations."""
    return normal_cdf(residuals / sigmas)


def pit_histogram(pit: Floats, bins: int = PIT_BINS) -> Floats:
    """Return the fraction of PIT values in each bin of equal width; a value on an edge belongs to the upper bin."""
    numbers = np.minimum((pit.ravel() * bins).astype(np.int64), bins - 1)
    with np.errstate(invalid="ignore"):
        shares: Floats = np.bincount(numbers, minlength=bins) / np.float64(pit.size)
    return shares


def pit_distance(shares: Floats) -> Floats:
    """Return half the sum over bins (last axis) of |fraction - 1 / bins|: the mass to move for a uniform histogram."""
    distance: Floats = 0.5 * np.abs(shares - 1.0 / shares.shape[-1]).sum(axis=-1)
    return distance


def edge_levels(residuals: Floats, sigmas: Floats) -> Floats:
    """Return the level of each edge's ground truth."""
    return central_level(residuals / sigmas)


def box_levels(residuals: Floats, covariances: Floats) -> Floats:
    """Return the level of each box's ground truth, for its four edges jointly."""
    return chi2_4_cdf(squared_distances(residuals, covariances))


def coverage(levels: Floats, share: float) -> float:
    """Return the fraction of ground truth values in central regions of nominal coverage `share`."""
    return _mean(levels <= share)


def _mean(values: Floats | Bools) -> float:
    return float(np.mean(values)) if np.size(values) else math.nan


def ence_of_sums(n: Floats, variances: Floats, squares: Floats) -> Floats:
    """Return ENCE (R,) from the number of edges per bin (R, B) and the sums of variances and squared residuals."""
    some = n > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        rmv, rmse = np.sqrt(variances / n), np.sqrt(squares / n)
        ratios = np.where(some, np.abs(rmse - rmv) / rmv, 0.0)
        means: Floats = ratios.sum(axis=1) / some.sum(axis=1)
    return means


Labels = npt.NDArray[np.int32] | Ints

UNIT = (0.0, 1.0)
"""Range of bins of equal width, unless the minimum and maximum score are requested."""


def calibration_errors(n: Floats, gaps: Floats) -> Floats:
    """Return sum over bins of n_b/N |mean outcome - mean score|, (R,); NaN without detections.

    Parameters
    ----------
    n : (R, B) float64
        Number of detections per bin.
    gaps : (R, B) float64
        Sum of outcome minus score per bin.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        errors: Floats = np.abs(gaps).sum(axis=1) / n.sum(axis=1)
    return errors


MISSED = 1.0
"""Loss of an object without overlapping detections: the Brier score of p = 0."""

_MOST_OVERLAPS = 1 << 22
"""Limit of overlaps between objects and detections in memory, unless a single object has more."""


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
        Label probabilities of detections.
    there : (M, 4) float64
        Boxes of objects: x, y, width, height.
    labels : (M,) int
        Classes of objects.
    ious : tuple of float
        Minimum overlaps; each gives a column.

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


# --- ranking of errors (AUSE, Spearman) and of false positives (MUE) by uncertainty ---


class Runs:
    """Groups of equal values in ascending order.

    Parameters
    ----------
    values : (K,) array
        Values that define the groups.

    Attributes
    ----------
    values : (G,) array
        Distinct values, ascending.
    groups : (K,) int64
        Group of each row.
    """

    def __init__(self, values: npt.NDArray[Any]) -> None:
        self.values, groups = np.unique(values, return_inverse=True)
        self.groups = groups.ravel()
        self._order = np.argsort(self.groups, kind="stable")
        self._starts = np.searchsorted(self.groups[self._order], np.arange(len(self.values)))

    def sums(self, numbers: Floats) -> Floats:
        """Return the sums of numbers per group, (R, G), from (R, K)."""
        if not len(self.values):
            return np.zeros((len(numbers), 0))
        ordered = numbers[:, self._order]
        if len(self.values) == len(self.groups):
            return ordered
        sums: Floats = np.add.reduceat(ordered, self._starts, axis=1)
        return sums


Counted = Callable[[Floats], Floats]
"""Function of row counts (R, K) that returns R values; functions named `prepare` sort rows once and return it."""


def spearman(a: Floats, b: Floats) -> float:
    """Return the rank correlation of two columns with average ranks for ties; NaN if one is constant."""
    return float(prepare_spearman(a, b)(np.ones((1, len(a))))[0])


def prepare_spearman(a: Floats, b: Floats) -> Counted:
    """Return Spearman's correlation as a function of row counts."""
    columns = Runs(a), Runs(b)

    def correlations(counts: Floats) -> Floats:
        x, y = (_centred_ranks(column, counts) for column in columns)
        squares = np.einsum("rk,rk->r", counts, x * x) * np.einsum("rk,rk->r", counts, y * y)
        products = np.einsum("rk,rk->r", counts, x * y)
        found: Floats = np.divide(products, np.sqrt(squares), out=np.full(len(counts), np.nan), where=squares > 0)
        return found

    return correlations


def _centred_ranks(column: Runs, counts: Floats) -> Floats:
    """Return each row's rank minus the mean rank, with average ranks for ties, (R, K)."""
    sizes = column.sums(counts)
    ranks = np.cumsum(sizes, axis=1) - 0.5 * sizes - 0.5 * sizes.sum(axis=1, keepdims=True)
    centred: Floats = ranks[:, column.groups]
    return centred


def ause(uncertainties: Floats, errors: Floats) -> float:
    """Return the area under the sparsification error, relative to random order: 0 is perfect, 1 uninformative.

    Rows are removed in order of decreasing uncertainty; A is the mean over all steps of the mean error of the rest. B
    is the same in the order of true errors, C in random order, where the expected mean error is constant. The result is
    (A - B) / (C - B). Rows of equal uncertainty are removed in random order, so a constant uncertainty gives 1. NaN if
    all errors are equal.
    """
    return float(prepare_ause(uncertainties, errors)(np.ones((1, len(errors))))[0])


def sparsification(uncertainties: Floats, errors: Floats) -> Floats:
    """Return the mean error of the n - k rows left after removing the k most uncertain, k = 0 .. n - 1."""
    runs, one = Runs(uncertainties), np.ones((1, len(errors)))
    expected = (runs.sums(one * errors) / runs.sums(one))[0]
    left: Floats = np.cumsum(expected[np.sort(runs.groups)]) / np.arange(1, len(errors) + 1)
    return left[::-1]


def prepare_ause(uncertainties: Floats, errors: Floats) -> Counted:
    """Return AUSE as a function of row counts."""
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
    """Return the mean over m = 1 .. n of the mean of the first m rows, with rows of one group in random order.

    Within a group of w rows with mean e that follows M rows with sum S, sum over j = 1 .. w of (S + j e) / (M + j) is
    w e + (S - M e) (H(M + w) - H(M)), where H are the harmonic numbers.
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
    """Return MUE as a function of detection counts.

    MUE is min over d of 1/2 P(u > d | TP) + 1/2 P(u <= d | FP): 0.5 is uninformative, 0 is perfect. NaN without
    true or without false positives.
    """
    order = np.argsort(uncertainties, kind="stable")
    ranked, hit = uncertainties[order], hits[order]
    ends = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], np.ones(min(len(ranked), 1), bool)))

    def errors(counts: Floats) -> Floats:
        there = counts[:, order]
        right, wrong = ((there * flags).sum(axis=1, keepdims=True) for flags in (hit, ~hit))
        with np.errstate(invalid="ignore", divide="ignore"):
            # 1/2 + 1/2 [P(u <= d | FP) - P(u <= d | TP)]: each false positive raises the difference, each true one
            # lowers it.
            steps = there * np.where(hit, -1.0 / right, 1.0 / wrong)
        differences = np.cumsum(steps, axis=1)[:, ends]
        # Below the smallest u all detections are rejected, and the difference is 0.
        least: Floats = 0.5 + 0.5 * differences.min(axis=1, initial=0.0)
        least[(right == 0)[:, 0] | (wrong == 0)[:, 0]] = np.nan
        return least

    return errors
