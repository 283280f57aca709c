"""Numbers that need an order or bins: as their definitions, and as if each row were there so many times."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from probox.measures.scoring import calibration_metrics, ranking_metrics, score_definition
from probox.measures.scoring.calibration_metrics import Bins, SortedColumns, weighted_bin_edges

SEEDS = st.integers(0, 2**32 - 1)
EVERY_BINS = st.builds(Bins, st.integers(1, 12), st.sampled_from(["width", "mass"]))


def columns(seed: int, least: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return two columns of numbers between 0 and 1, often with equal ones, and counts, often 0."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(least, 30))
    a, b = rng.random((2, n))
    if rng.random() < 0.5:
        a, b = np.round(a, 1), np.round(b, 1)
    return a, b, rng.integers(0, 4, n).astype(float)


def near(value: float) -> object:
    return pytest.approx(value, abs=1e-11, nan_ok=True)


@given(SEEDS, EVERY_BINS)
def test_ence_is_that_of_the_definition(seed: int, bins: Bins) -> None:
    residuals, sigmas, counts = columns(seed)
    sigmas = sigmas + 0.1
    assert calibration_metrics.ence(residuals, sigmas, bins) == near(
        score_definition.ence(residuals.tolist(), sigmas.tolist(), bins.number, bins.kind)
    )
    again = counts.astype(int)
    expected = calibration_metrics.ence(np.repeat(residuals, again), np.repeat(sigmas, again), bins)
    sums = SortedColumns(sigmas, [sigmas**2, residuals**2]).sums(bins, np.stack([0 * counts, counts, counts]))
    assert calibration_metrics.ence_of_sums(*sums).tolist() == [near(math.nan), near(expected), near(expected)]


@given(SEEDS, EVERY_BINS, st.sampled_from([(0.0, 1.0), None]))
def test_d_ece_is_that_of_the_definition(seed: int, bins: Bins, ends: tuple[float, float] | None) -> None:
    scores, other, counts = columns(seed)
    hits = other < scores
    assert calibration_metrics.d_ece(scores, hits, bins, ends=ends) == near(
        score_definition.d_ece(scores.tolist(), hits.tolist(), bins.number, bins.kind, ends)
    )
    table = SortedColumns(scores, [hits - scores], ends)
    again = counts.astype(int)
    expected = calibration_metrics.d_ece(np.repeat(scores, again), np.repeat(hits, again), bins, ends=ends)
    sums = table.sums(bins, np.stack([counts, 0 * counts, counts]))
    assert calibration_metrics.calibration_errors(*sums).tolist() == [near(expected), near(math.nan), near(expected)]


@given(SEEDS, EVERY_BINS)
def test_laece_and_laace_are_those_of_the_definition(seed: int, bins: Bins) -> None:
    scores, ious, _ = columns(seed)
    labels = np.random.default_rng(seed).integers(0, 4, len(scores))
    lists = scores.tolist(), ious.tolist(), labels.tolist()
    assert calibration_metrics.laece(scores, ious, labels, bins) == near(
        score_definition.laece(*lists, bins.number, bins.kind)
    )
    assert calibration_metrics.laace(scores, ious, labels) == near(score_definition.laace(*lists))


PREPARED = [
    (ranking_metrics.prepare_mue, score_definition.mue),
    (ranking_metrics.prepare_spearman, score_definition.spearman),
    (ranking_metrics.prepare_ause, score_definition.ause),
]


@pytest.mark.parametrize(("prepare", "define"), PREPARED, ids=["mue", "spearman", "ause"])
@given(SEEDS)
def test_an_order_gives_what_the_definition_gives(
    prepare: Callable[..., Callable[[np.ndarray], np.ndarray]], define: Callable[..., float], seed: int
) -> None:
    a, b, counts = columns(seed)
    if define is score_definition.mue:
        b = b < a
    again = counts.astype(int)
    repeated = define(np.repeat(a, again).tolist(), np.repeat(b, again).tolist()) if counts.any() else math.nan
    numbers = prepare(a, b)(np.stack([np.ones(len(a)), counts, 0 * counts]))
    assert numbers.tolist() == [near(define(a.tolist(), b.tolist())), near(repeated), near(math.nan)]


@given(SEEDS)
def test_spearman_is_scipys(seed: int) -> None:
    a, b, _ = columns(seed, least=3)
    if np.ptp(a) and np.ptp(b):
        assert ranking_metrics.spearman(a, b) == near(float(stats.spearmanr(a, b).statistic))
    else:
        assert math.isnan(ranking_metrics.spearman(a, b))


@given(SEEDS, st.integers(1, 12))
def test_quantiles_are_numpys(seed: int, parts: int) -> None:
    values, _, counts = columns(seed)
    if not counts.any():
        counts[0] = 1
    order = np.argsort(values)
    several = np.stack([counts, np.ones(len(counts)), counts])
    expected = [np.quantile(np.repeat(values, row.astype(int)), np.arange(1, parts) / parts) for row in several]
    np.testing.assert_allclose(weighted_bin_edges(values[order], several[:, order], parts), expected, atol=1e-12)


def test_bins_have_names() -> None:
    assert (Bins(10).name, Bins(15, "mass").name) == ("10w", "15m")
    assert (Bins(10).words, Bins(15, "mass").words) == ("10 bins of equal width", "15 bins of equal mass")


def test_a_bin_holds_its_lower_edge() -> None:
    (n,) = SortedColumns(np.array([0.0, 0.1, 0.3, 0.7, 1.0]), [], (0.0, 1.0)).sums(Bins(10))
    assert n.tolist() == [[1, 1, 0, 1, 0, 0, 0, 1, 0, 1]]


# --- what numbers mean ---


def test_ause_is_0_for_the_right_order_and_1_for_a_constant() -> None:
    errors = np.random.default_rng(0).exponential(size=300)
    assert ranking_metrics.ause(errors**2, errors) == pytest.approx(0.0, abs=1e-12)
    assert ranking_metrics.ause(np.ones(300), errors) == pytest.approx(1.0, abs=1e-12)
    assert ranking_metrics.ause(-errors, errors) > 1.5
    assert ranking_metrics.ause(np.random.default_rng(1).random(300), errors) == pytest.approx(1.0, abs=0.25)
    assert math.isnan(ranking_metrics.ause(errors, np.ones(300)))
    assert math.isnan(ranking_metrics.ause(np.zeros(0), np.zeros(0)))


def test_sparsification_says_what_is_left() -> None:
    left = ranking_metrics.sparsification(np.array([2.0, 1.0, 3.0, 3.0]), np.array([4.0, 2.0, 6.0, 8.0]))
    np.testing.assert_allclose(left, [5.0, 13 / 3, 3.0, 2.0])
    assert ranking_metrics.sparsification(np.zeros(0), np.zeros(0)).shape == (0,)
    errors = np.random.default_rng(0).exponential(size=50)
    sigmas = np.random.default_rng(1).random(50)
    own, best = (
        ranking_metrics.sparsification(sigmas, errors).mean(),
        ranking_metrics.sparsification(errors, errors).mean(),
    )
    assert ranking_metrics.ause(sigmas, errors) == pytest.approx((own - best) / (errors.mean() - best))


def test_mue_is_half_where_an_uncertainty_says_nothing() -> None:
    hits = np.array([True, False, True, False])
    assert ranking_metrics.minimum_uncertainty_error(np.ones(4), hits) == 0.5
    assert ranking_metrics.minimum_uncertainty_error(1.0 - hits, hits) == 0.0
    assert ranking_metrics.minimum_uncertainty_error(hits + 0.0, hits) == 0.5  # the wrong way round is rejected whole
    assert math.isnan(ranking_metrics.minimum_uncertainty_error(np.ones(2), np.ones(2, bool)))
    assert math.isnan(ranking_metrics.minimum_uncertainty_error(np.zeros(0), np.zeros(0, bool)))
