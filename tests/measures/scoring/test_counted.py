"""Numbers that need an order or bins: as their definitions, and as if each row were there so many times."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from probox.measures.scoring import calibration_metrics, score_definition
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


def defined(define: Callable[..., float], a: np.ndarray, b: np.ndarray, counts: np.ndarray, *more: Any) -> list[object]:
    """Return what a definition gives of rows, of rows repeated, and of none."""
    again = counts.astype(int)
    several = define(np.repeat(a, again).tolist(), np.repeat(b, again).tolist(), *more) if counts.any() else math.nan
    return [near(define(a.tolist(), b.tolist(), *more)), near(several), near(math.nan)]


def thrice(counts: np.ndarray) -> np.ndarray:
    return np.stack([np.ones(len(counts)), counts, 0 * counts])


@given(SEEDS, EVERY_BINS)
def test_ence_is_that_of_the_definition(seed: int, bins: Bins) -> None:
    residuals, sigmas, counts = columns(seed)
    sigmas = sigmas + 0.1
    sums = SortedColumns(sigmas, [sigmas**2, residuals**2]).sums(bins, thrice(counts))
    expected = defined(score_definition.ence, residuals, sigmas, counts, bins.number, bins.kind)
    assert calibration_metrics.ence_of_sums(*sums).tolist() == expected


@given(SEEDS, EVERY_BINS, st.sampled_from([(0.0, 1.0), None]))
def test_d_ece_is_that_of_the_definition(seed: int, bins: Bins, ends: tuple[float, float] | None) -> None:
    scores, other, counts = columns(seed)
    hits = other < scores
    sums = SortedColumns(scores, [hits - scores], ends).sums(bins, thrice(counts))
    expected = defined(score_definition.d_ece, scores, hits, counts, bins.number, bins.kind, ends)
    assert calibration_metrics.calibration_errors(*sums).tolist() == expected


PREPARED = [
    (calibration_metrics.prepare_mue, score_definition.mue),
    (calibration_metrics.prepare_spearman, score_definition.spearman),
    (calibration_metrics.prepare_ause, score_definition.ause),
]


@pytest.mark.parametrize(("prepare", "define"), PREPARED, ids=["mue", "spearman", "ause"])
@given(SEEDS)
def test_an_order_gives_what_the_definition_gives(
    prepare: Callable[..., Callable[[np.ndarray], np.ndarray]], define: Callable[..., float], seed: int
) -> None:
    a, b, counts = columns(seed)
    if define is score_definition.mue:
        b = b < a
    assert prepare(a, b)(thrice(counts)).tolist() == defined(define, a, b, counts)


@given(SEEDS)
def test_spearman_is_scipys(seed: int) -> None:
    a, b, _ = columns(seed, least=3)
    if np.ptp(a) and np.ptp(b):
        assert calibration_metrics.spearman(a, b) == near(float(stats.spearmanr(a, b).statistic))
    else:
        assert math.isnan(calibration_metrics.spearman(a, b))


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
    assert calibration_metrics.ause(errors**2, errors) == pytest.approx(0.0, abs=1e-12)
    assert calibration_metrics.ause(np.ones(300), errors) == pytest.approx(1.0, abs=1e-12)
    assert calibration_metrics.ause(-errors, errors) > 1.5
    assert calibration_metrics.ause(np.random.default_rng(1).random(300), errors) == pytest.approx(1.0, abs=0.25)
    assert math.isnan(calibration_metrics.ause(errors, np.ones(300)))
    assert math.isnan(calibration_metrics.ause(np.zeros(0), np.zeros(0)))


def test_sparsification_says_what_is_left() -> None:
    left = calibration_metrics.sparsification(np.array([2.0, 1.0, 3.0, 3.0]), np.array([4.0, 2.0, 6.0, 8.0]))
    np.testing.assert_allclose(left, [5.0, 13 / 3, 3.0, 2.0])
    assert calibration_metrics.sparsification(np.zeros(0), np.zeros(0)).shape == (0,)
    errors = np.random.default_rng(0).exponential(size=50)
    sigmas = np.random.default_rng(1).random(50)
    own, best = (
        calibration_metrics.sparsification(sigmas, errors).mean(),
        calibration_metrics.sparsification(errors, errors).mean(),
    )
    assert calibration_metrics.ause(sigmas, errors) == pytest.approx((own - best) / (errors.mean() - best))


def test_mue_is_half_where_an_uncertainty_says_nothing() -> None:
    hits = np.array([True, False, True, False])
    # The last one is the wrong way round, and rejected whole.
    for uncertainties, expected in ((np.ones(4), 0.5), (1.0 - hits, 0.0), (hits + 0.0, 0.5)):
        assert calibration_metrics.prepare_mue(uncertainties, hits)(np.ones((1, 4))).tolist() == [expected]
    for few in (np.ones(2, bool), np.zeros(0, bool)):
        assert np.isnan(calibration_metrics.prepare_mue(np.ones(len(few)), few)(np.ones((1, len(few))))).all()
