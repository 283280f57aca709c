"""The k assignments of least cost: against all of them, and against each other."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.amounts import examples

from probox import _core
from probox.measures.pmb_definition import all_assignments


@st.composite
def problems(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Return costs of pairs and of rows alone: smooth or full of ties, of either sign, some infinite."""
    rows, columns = draw(st.integers(0, 4)), draw(st.integers(0, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    ties = draw(st.booleans())
    scale = draw(st.sampled_from([1.0, 1e-3, 1e6]))

    def costs(shape: tuple[int, ...], forbidden: float) -> np.ndarray:
        values = rng.integers(-3, 4, shape).astype(np.float64) if ties else rng.normal(size=shape) * scale
        return np.where(rng.random(shape) < forbidden, np.inf, values)

    return costs((rows, columns), draw(st.sampled_from([0.0, 0.4]))), costs((rows,), draw(st.sampled_from([0.0, 0.7])))


def cost_of(assignment: tuple[int, ...], costs: np.ndarray, alone: np.ndarray) -> float:
    return sum(alone[row] if column < 0 else costs[row, column] for row, column in enumerate(assignment))


@given(problems(), st.integers(0, 60))
def test_they_are_the_first_of_all(problem: tuple[np.ndarray, np.ndarray], k: int) -> None:
    costs, alone = problem
    every = {a: cost_of(a, costs, alone) for a in all_assignments(*costs.shape)}
    wanted = sorted(cost for cost in every.values() if cost < math.inf)[:k]
    columns, totals = _core.k_best_assignments(costs, alone, k)
    assert columns.shape == (len(wanted), len(costs))
    np.testing.assert_allclose(totals, wanted, rtol=1e-12, atol=1e-12)
    assert (np.diff(totals) >= 0).all()
    found = [tuple(row) for row in columns.tolist()]
    assert len(set(found)) == len(found)
    assert [every[a] for a in found] == totals.tolist()  # to the bit: summed row by row


def ranked_plainly(wide: np.ndarray, k: int) -> list[float]:
    """Return the k least costs by Murty's split, with a whole assignment problem for each part."""
    from scipy.optimize import linear_sum_assignment

    def best(costs: np.ndarray) -> tuple[float, list[int]]:
        chosen = linear_sum_assignment(costs)
        return float(costs[chosen].sum()), chosen[1].tolist()

    parts = [(*best(wide), wide, 0)]
    found = []
    while len(found) < k:
        total, columns, costs, first = parts.pop(min(range(len(parts)), key=lambda i: parts[i][0]))
        found.append(total)
        for row in range(first, len(wide)):
            part = costs.copy()
            part[row, columns[row]] = BARRED
            for before in range(row):
                part[before] = BARRED
                part[before, columns[before]] = costs[before, columns[before]]
            parts.append((*best(part), part, row))
    return found


BARRED = 1e7


@examples(20)
@given(st.integers(0, 2**32 - 1), st.integers(4, 15), st.integers(4, 20))
def test_large_problems_are_ranked_as_by_a_plain_way(seed: int, rows: int, columns: int) -> None:
    rng = np.random.default_rng(seed)
    costs, alone = rng.normal(size=(rows, columns)) * 10, rng.normal(size=rows) * 10 + rng.choice([-5, 5, 30])
    square = np.full((rows, rows), BARRED)
    np.fill_diagonal(square, alone)
    chosen, totals = _core.k_best_assignments(costs, alone, 25)
    assert len(set(map(tuple, chosen.tolist()))) == 25
    np.testing.assert_allclose(totals, ranked_plainly(np.concatenate([costs, square], axis=1), 25), atol=1e-7)


def test_all_assignments_have_no_row_twice_in_a_column() -> None:
    assert list(all_assignments(0, 3)) == [()]
    # Three rows and two columns: none taken, one of 3 x 2 pairs, two of 3 x 2 ways.
    assert len(list(all_assignments(3, 2))) == 1 + 6 + 6


def test_nothing_to_assign() -> None:
    columns, totals = _core.k_best_assignments(np.zeros((0, 3)), np.zeros(0), 5)
    assert (columns.shape, totals.tolist()) == ((1, 0), [0.0])
    columns, totals = _core.k_best_assignments(np.zeros((2, 1)), np.full(2, np.inf), 5)
    assert (columns.shape, totals.tolist()) == ((0, 2), [])
    assert _core.k_best_assignments(np.zeros((1, 1)), np.zeros(1), 0)[0].shape == (0, 1)


@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_costs_are_numbers(bad: float) -> None:
    with pytest.raises(ValueError, match="no cost of NaN or -infinity"):
        _core.k_best_assignments(np.array([[bad]]), np.zeros(1), 1)
    with pytest.raises(ValueError, match="no cost of NaN or -infinity"):
        _core.k_best_assignments(np.zeros((1, 1)), np.array([bad]), 1)
    with pytest.raises(ValueError, match="as many"):
        _core.k_best_assignments(np.zeros((1, 1)), np.zeros(2), 1)
    with pytest.raises(ValueError, match="k from 0"):
        _core.k_best_assignments(np.zeros((1, 1)), np.zeros(1), -1)
