"""Where the points went: shares that add up to 1, and to nobody's surprise."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import random_world

from probox import Convention, Detections, GroundTruth, InputError, evaluate
from probox.analysis.loss_breakdown import PARTS, compute_budget, shapley_losses
from probox.tables.results import Verdict

QUALITY = st.floats(0.0, 1.0)


def shapley(values: list[float]) -> list[float]:
    """Return Shapley values by their definition: the mean over all orders of what each takes when its turn comes."""
    taken = [0.0] * len(values)
    orders = list(itertools.permutations(range(len(values))))
    for order in orders:
        left = 1.0
        for player in order:
            taken[player] += left - left * values[player]
            left *= values[player]
    return [total / len(orders) for total in taken]


@given(st.lists(QUALITY, min_size=3, max_size=3))
def test_losses_are_shapley_values(values):
    losses = shapley_losses(np.array([values]))[0]
    np.testing.assert_allclose(losses, shapley(values), atol=1e-15)
    assert math.fsum(losses) == pytest.approx(1.0 - math.prod(values), abs=1e-15)


@pytest.mark.parametrize(
    "convention",
    ["reference", "paper", "challenge", Convention(confidence_denominator=True), Convention(label_weight=0.3)],
    ids=str,
)
@pytest.mark.parametrize("seed", range(4))
def test_shares_add_up(seed, convention):
    result = evaluate(*random_world(seed), convention=convention)
    budget = compute_budget(result)
    assert budget.pdq == pytest.approx(result.pdq, abs=1e-15)
    assert math.fsum(budget.to_dict().values()) == pytest.approx(1.0, abs=1e-12)
    assert budget.lost == pytest.approx(1.0 - result.pdq, abs=1e-12)
    assert abs(budget.rounding) < 1e-5
    assert min(getattr(budget, name) for name in PARTS if name != "rounding") >= 0.0


@pytest.mark.parametrize("seed", range(4))
def test_the_paper_rounds_nothing(seed):
    assert abs(compute_budget(evaluate(*random_world(seed), convention="paper")).rounding) < 1e-12


@pytest.mark.parametrize("seed", range(4))
def test_counts_are_shares_of_what_counts(seed):
    result = evaluate(*random_world(seed))
    budget, counted = compute_budget(result), result.tp + result.fp + result.fn
    assert budget.missed == pytest.approx(result.fn / counted)
    assert budget.false_positives == pytest.approx(result.fp / counted)


def one_cup(probability: float, box: list[float]) -> tuple[GroundTruth, Detections]:
    truth = GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [7], [[10, 20, 40, 40]], [0])
    return truth, Detections(classes=["cup"], image_ids=[7], boxes=[box], label_probs=[[probability]])


def test_a_label_alone_is_to_blame():
    budget = compute_budget(evaluate(*one_cup(0.64, [10, 20, 40, 40])))
    assert budget.label == pytest.approx(0.2, abs=1e-7)  # 1 - sqrt(0.64), the probability in single precision
    assert budget.foreground == budget.background == budget.missed == budget.false_positives == 0.0


def test_what_sticks_out_is_background():
    result = evaluate(*one_cup(1.0, [10, 20, 41, 40]))
    budget = compute_budget(result)
    assert result.detections.verdicts.tolist() == [Verdict.TP]
    assert budget.background > 0.0
    assert budget.foreground == budget.label == 0.0


def test_nothing_to_score():
    truth = GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [], np.zeros((0, 4)), [])
    none = Detections(classes=["cup"], image_ids=[], boxes=np.zeros((0, 4)), label_probs=np.zeros((0, 1)))
    assert math.isnan(compute_budget(evaluate(truth, none)).pdq)


def test_without_pdq_there_is_no_budget():
    with pytest.raises(InputError, match="PDQ was not measured, so no points are lost; evaluate with PDQ"):
        compute_budget(evaluate(*random_world(0), measures=("map",)))
