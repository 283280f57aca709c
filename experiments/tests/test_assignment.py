"""Assignments: by exhaustive search, by PDQ, and by other rules."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from probox.tables.results import PairTable
from probox_experiments import ResultTable, Run, assignment
from probox_experiments.figures import style
from probox_experiments.paper.assignment import (
    ASSIGNMENT,
    EXPECTED,
    LABELS,
    WAYS,
    _assign_again,
    _evaluate,
    claims_of_assignment,
    draw_label_probs,
    small_scene,
    take_in_turn,
)
from probox_experiments.synthetic import SimulatedDetector, crowded_truth


@pytest.fixture(scope="module")
def small() -> ResultTable:
    return assignment(crowds=(48,), images=1, repeats=1)


@pytest.mark.parametrize("scene", LABELS)
def test_the_largest_total_is_found_by_trying_everything(scene: str) -> None:
    count, labels = LABELS[scene]
    quality = np.sqrt(np.array(labels)[:, :count])
    assert quality.shape == (count, count)
    tried = [[quality[row, column] for row, column in enumerate(way)] for way in itertools.permutations(range(count))]
    best = max(tried, key=sum)
    right = sum(value > 0 for value in best)
    pdq, tp, fp, fn = EXPECTED[scene]["PDQ"]
    assert (tp, fp, fn) == (right, count - right, count - right)
    assert pdq == pytest.approx(sum(best) / (2 * count - right), abs=1e-12)


def test_a_larger_total_may_be_a_smaller_pdq() -> None:
    (optimal, *_), (greedy, *_) = (EXPECTED["total or PDQ"][way] for way in ("PDQ", "greedy"))
    assert optimal == pytest.approx(0.225)
    assert greedy == pytest.approx(0.8 / 3)


def test_what_is_measured_as_greedy_is_greedy() -> None:
    truth = crowded_truth(40, in_all=80, seed=3)
    found = draw_label_probs(SimulatedDetector(corner_variance=100, reported_variance=100).detect(truth, seed=3), [3])
    run = Run(presets=["reference"])
    (result,) = _evaluate(run, truth, found).values()
    greedy = dataclasses.replace(run, changes={"assignment": "greedy"}).measure(truth, found, also=["TP"], measures=())
    again = _assign_again(result, "greedy")
    assert again.summary()["PDQ"] == pytest.approx(greedy["PDQ"], abs=1e-12)
    assert again.tp == greedy["TP"]
    assert again.pdq < result.pdq
    by_confidence = _assign_again(result, "confidence")
    # The detection of highest confidence has its best object.
    best = int(result.detections.confidences.argmax())
    quality = result.pairs.quality("pPDQ")[result.pairs.detections == best]
    assert by_confidence.detections.quality("pPDQ")[best] == quality.max()
    assert by_confidence.pdq < result.pdq


def test_each_side_is_matched_once() -> None:
    pairs = PairTable(detections=np.array([0, 0, 1, 1]), objects=np.array([5, 6, 5, 6]), qualities=np.full((4, 5), 0.5))
    taken = take_in_turn(pairs, np.array([2, 0, 3, 1]))
    assert list(zip(taken.detections.tolist(), taken.objects.tolist(), strict=True)) == [(0, 6), (1, 5)]


def test_labels_are_spread_over_two_classes() -> None:
    truth = crowded_truth(5, in_all=50)
    found = draw_label_probs(SimulatedDetector().detect(truth), [1])
    assert found.label_probs.sum(axis=1) == pytest.approx(1.0)
    assert 0.3 <= found.label_probs[:, 0].min() < 0.4 < 0.9 < found.label_probs[:, 0].max() <= 1.0
    assert (found.labels == found.label_probs.argmax(axis=1)).all()


def test_a_measure_that_assigns_greedily_is_found_out() -> None:
    table = assignment(
        crowds=(48,), images=1, repeats=2, run=Run(presets=["reference"], changes={"assignment": "greedy"})
    )
    verdicts = [claim.holds for claim in claims_of_assignment(table)]
    assert verdicts == [False, True, False, False, False, True]
    assert not table.where(assigned="greedy")["other_matches"].any()


def test_where_nothing_was_drawn_only_the_small_scenes_are_judged(small: ResultTable) -> None:
    rows = small.take(np.isin(small["scene"], list(EXPECTED)))
    assert [claim.holds for claim in claims_of_assignment(rows)] == [True, True, True, True, None, None]
    assert set(rows["assigned"]) == set(WAYS)


@pytest.mark.parametrize("way", WAYS[1:])
def test_a_larger_total_in_any_draw_is_found_out(small: ResultTable, way: str) -> None:
    assert claims_of_assignment(small)[3].holds
    # In one of two draws, and there under one of two presets.
    more = np.where((small["scene"] == "truth") & (small["assigned"] == way), 1.0, 0.0)
    claim = claims_of_assignment(small.replace(pPDQ=small["pPDQ"] + more))[3]
    assert claim.holds is False
    assert claim.numbers["least lead, reference"] < -0.9
    assert claim.numbers["least lead, paper"] >= -1e-9


def test_one_preset_is_judged_and_drawn() -> None:
    table = assignment(crowds=(), images=1, repeats=0, run=Run(presets=["paper"]))
    assert "PDQ" not in table
    claims = claims_of_assignment(table)
    assert [claim.holds for claim in claims[:3]] == [True, True, True]
    assert list(claims[0].numbers) == [f"{name} under `paper`" for name in ("PDQ", "TP", "FP", "FN")]
    with style():
        first = ASSIGNMENT.draw(table).axes[0]
    assert first.get_xlabel() == "rings: optimal, PDQ 0.700, 2 TP\nsquares: greedy, PDQ 0.238, 1 TP"


def test_scenes_have_the_pairs_that_they_should() -> None:
    truth, found = small_scene("two or one")
    assert len(truth) == 2
    assert truth.labels.tolist() == [0, 1]
    assert (truth.masks.boxes == truth.masks.boxes[0]).all()
    assert found.label_probs.max(axis=1).tolist() == pytest.approx([0.51, 0.5])  # no tie in confidence
