"""Sigmas, distances and quantiles of corners, and isotonic curves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import random_covariance

from probox.calibration.corner_maps import (
    MonotoneCurve,
    box_reach,
    edge_reach,
    fit_curve,
    pool_adjacent_violators,
    sigmas_of,
    squared_distances,
    with_sigmas,
)


def some_covariances(seed: int, n: int = 5) -> np.ndarray:
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(n, 2, 2, 2))
    return roots @ np.swapaxes(roots, -1, -2) + 0.01 * np.eye(2)


@given(st.integers(0, 10**6))
def test_distances_are_those_of_the_marginal(seed: int) -> None:
    rng = np.random.default_rng(seed)
    covariances, residuals = some_covariances(seed), rng.normal(size=(5, 4))
    free = rng.random((5, 4)) < 0.6
    found = squared_distances(residuals, covariances, free)
    for row in range(5):
        whole = np.zeros((4, 4))
        whole[:2, :2], whole[2:, 2:] = covariances[row]
        kept = np.flatnonzero(free[row])
        r = residuals[row, kept]
        assert found[row] == pytest.approx(r @ np.linalg.inv(whole[np.ix_(kept, kept)]) @ r if len(r) else 0.0)


@given(st.integers(0, 10**6))
def test_new_sigmas_keep_correlations(seed: int) -> None:
    rng = np.random.default_rng(seed)
    covariances = np.stack([[random_covariance(rng), random_covariance(rng)] for _ in range(4)])
    sigmas = rng.uniform(0.1, 9, (4, 4))
    changed = with_sigmas(covariances, sigmas)
    assert sigmas_of(changed) == pytest.approx(sigmas)
    old = sigmas_of(covariances).reshape(4, 2, 2)
    rho = np.divide(covariances[..., 0, 1], old.prod(-1), out=np.zeros((4, 2)), where=old.prod(-1) > 0)
    assert changed[..., 0, 1] == pytest.approx(rho * sigmas.reshape(4, 2, 2).prod(-1))
    assert changed[..., 1, 0] == pytest.approx(changed[..., 0, 1])


def test_quantiles() -> None:
    assert edge_reach(0.6826894921370859) == pytest.approx(1.0)
    for level in (0.5, 0.9, 0.99):
        assert math.erf(box_reach(level) / math.sqrt(2)) ** 4 == pytest.approx(level)


VALUES = st.lists(st.tuples(st.floats(-5, 5), st.floats(0.1, 4)), min_size=1, max_size=25)


def by_definition(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the max over starts up to i of the min over ends from i of the mean between them."""
    sums, mass = np.cumsum([0, *(values * weights)]), np.cumsum([0, *weights])
    n = len(values)
    mean = {(a, b): (sums[b + 1] - sums[a]) / (mass[b + 1] - mass[a]) for a in range(n) for b in range(a, n)}
    return np.array([max(min(mean[a, b] for b in range(i, n)) for a in range(i + 1)) for i in range(n)])


@given(VALUES)
def test_pooling_is_isotonic_regression(pairs: list[tuple[float, float]]) -> None:
    values, weights = np.array(pairs).T
    pooled = pool_adjacent_violators(values, weights)
    assert pooled == pytest.approx(by_definition(values, weights), abs=1e-9)
    assert (np.diff(pooled) >= 0).all()


def test_pooling_agrees_with_scipy() -> None:
    optimize = pytest.importorskip("scipy.optimize")
    if not hasattr(optimize, "isotonic_regression"):
        pytest.skip("needs SciPy 1.12")
    rng = np.random.default_rng(0)
    values, weights = rng.normal(np.linspace(0, 2, 300), 1), rng.uniform(0.1, 3, 300)
    expected = optimize.isotonic_regression(values, weights=weights).x
    assert pool_adjacent_violators(values, weights) == pytest.approx(expected, abs=1e-12)


def test_a_curve_is_straight_between_knots_and_level_beyond() -> None:
    curve = MonotoneCurve((1.0, 2.0), (3.0, 5.0))
    assert curve(np.array([0.0, 1.0, 1.5, 2.0, 9.0])).tolist() == [3.0, 3.0, 4.0, 5.0, 5.0]
    assert curve.scale_by(2.0) == MonotoneCurve((1.0, 2.0), (6.0, 10.0))


def test_a_curve_goes_through_means_of_neighbours() -> None:
    x, y = np.arange(6.0), np.array([1.0, 3.0, 2.0, 0.0, 7.0, 9.0])
    # Means of two: 2, 1, 8; the first two violate the order and become 1.5.
    assert fit_curve(x, y, least=2) == MonotoneCurve((0.5, 2.5, 4.5), (1.5, 1.5, 8.0))
    assert fit_curve(x[::-1], y[::-1], least=2) == fit_curve(x, y, least=2)
    assert fit_curve(x, y) == MonotoneCurve((2.5,), (22 / 6,)), "fewer than thirty are one"
    assert fit_curve(x, y, least=3) == MonotoneCurve((1.0, 4.0), (2.0, 16 / 3))


def test_equal_x_stay_together() -> None:
    x = np.array([1.0] * 5 + [2.0])
    assert fit_curve(x, np.arange(6.0), least=1) == MonotoneCurve((1.0, 2.0), (2.0, 5.0))


def test_knots_within_a_level_part_are_left_out() -> None:
    curve = fit_curve(np.arange(5.0), np.array([4.0, 4.0, 4.0, 4.0, 5.0]), least=1)
    assert curve == MonotoneCurve((0.0, 3.0, 4.0), (4.0, 4.0, 5.0))
