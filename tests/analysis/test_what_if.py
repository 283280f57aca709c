"""PDQ after each repair, against evaluating a repaired file."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.strategies import random_world as mixed_world
from tests.worlds import boxes_truth, simulated

from probox import Detections, GroundTruth, evaluate
from probox.analysis.baseline import make_rescorer
from probox.analysis.diagnosis import _score_repairs
from probox.analysis.loss_breakdown import (
    TITLES,
    find_duplicates,
    sort_answers,
    what_if_matched,
)
from probox.analysis.thresholds import best_threshold
from probox.tables.results import Verdict


def random_world(seed):
    """Return a world without heatmaps, which results do not keep."""
    truth, found = mixed_world(seed)
    return truth, found.replace(heatmaps=None)


def answers(result):
    matched = what_if_matched(result, best_threshold(result))
    scored, _ = _score_repairs(result, make_rescorer(result), math.nan, lambda done: done)
    return {a.key: a for a in matched + scored}


@pytest.mark.parametrize("seed", range(3))
def test_each_is_what_a_repaired_file_gives(seed):
    truth, found = random_world(seed)
    result = evaluate(truth, found)
    said = answers(result)
    assert set(said) | {"kept_inside", "best_constant", "best_scale"} == set(TITLES) - {"calibrating_scale"}
    for answer in said.values():
        assert answer.gain == pytest.approx(answer.pdq - result.pdq)
    table = result.detections
    order = np.argsort(truth.dataset.rows_of(found.image_ids), kind="stable")
    by_image = found.select(order)  # the rows of the table
    right = by_image.select(table.verdicts != Verdict.FP)
    assert said["no_false_positives"].pdq == pytest.approx(evaluate(truth, right).pdq, abs=1e-12)
    once = by_image.select(~find_duplicates(result))
    assert said["no_duplicates"].pdq == pytest.approx(evaluate(truth, once).pdq, abs=1e-12)

    hit = table.verdicts == Verdict.TP
    boxes = by_image.boxes.copy()
    covariances = np.zeros((len(found), 2, 2, 2)) if by_image.covariances is None else by_image.covariances.copy()
    boxes[hit], covariances[hit] = result.objects.mask_boxes[table.partners[hit]], 0.0
    repaired = by_image.replace(boxes=boxes, covariances=covariances, extents=None)
    assert said["truth_boxes"].pdq == pytest.approx(evaluate(truth, repaired).pdq, abs=1e-12)
    assert said["labels_right"].pdq >= result.pdq


def test_duplicates_by_hand():
    truth = GroundTruth.from_boxes(["cup", "dog"], {7: (64, 48)}, [7, 7], [[10, 20, 40, 40], [45, 5, 60, 15]], [0, 0])
    boxes = [[10, 20, 40, 40], [11, 20, 40, 40], [10, 20, 40, 39], [10, 20, 22, 40], [45, 25, 60, 35]]
    boxes.append([10, 20, 25, 40])
    probs = [[0.9, 0], [0.8, 0.1], [0.2, 0.7], [0.9, 0], [0.9, 0], [0.5, 0]]
    unsure = np.tile(np.eye(2) * 9.0, (6, 2, 1, 1))
    found = Detections(classes=["cup", "dog"], image_ids=[7] * 6, boxes=boxes, label_probs=probs, covariances=unsure)
    result = evaluate(truth, found)
    assert np.isin([1, 2, 3], result.pairs.detections).all()  # each meets the object somehow
    # The second repeats the first, and so does the last, which overlaps by half; the third names another class, the
    # fourth overlaps too little, the fifth nothing.
    assert find_duplicates(result).tolist() == [False, True, False, False, False, True]


def test_the_largest_gain_comes_first():
    said = list(answers(evaluate(*random_world(1))).values())
    gains = [answer.gain for answer in sort_answers(said)]
    assert gains == sorted(gains, reverse=True)


def test_the_error_factor_as_a_scale():
    truth = boxes_truth(12)
    found = simulated(truth)
    diagnosis = evaluate(truth, found).diagnose(replicates=20)
    factor = diagnosis.error_factor.factor.value
    (answer,) = (answer for answer in diagnosis.what_if if answer.key == "calibrating_scale")
    scaled = evaluate(truth, found.replace(covariances=found.covariances * factor**2))
    assert answer.pdq == pytest.approx(scaled.pdq, abs=1e-12)
    (row, *_) = scaled.diagnose(replicates=20).calibration
    assert row.factor == pytest.approx(1.0)
