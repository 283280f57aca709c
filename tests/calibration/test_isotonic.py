"""Isotonic regression against its definition, and curves through pooled neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probox.calibration.corner_maps import MonotoneCurve, fit_curve, pool_adjacent_violators

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
