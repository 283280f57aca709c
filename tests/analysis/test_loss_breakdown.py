"""Lost points, repairs and confusions: shares that add up, against evaluating repaired files."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import random_world
from tests.worlds import boxes_truth, simulated

from probox import Convention, Detections, Evaluation, GroundTruth, InputError, evaluate
from probox.analysis.baseline import make_rescorer
from probox.analysis.diagnosis import _score_repairs
from probox.analysis.loss_breakdown import (
    PARTS,
    TITLES,
    Confusion,
    compute_budget,
    confusion,
    find_duplicates,
    shapley_losses,
    sort_answers,
    what_if_matched,
)
from probox.analysis.thresholds import best_threshold
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
    assert abs(budget.rounding) < (1e-12 if convention == "paper" else 1e-5)
    assert min(getattr(budget, name) for name in PARTS if name != "rounding") >= 0.0
    if not result.convention.confidence_denominator:
        counted = result.tp + result.fp + result.fn
        assert (budget.missed, budget.false_positives) == pytest.approx((result.fn / counted, result.fp / counted))


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
    with pytest.raises(InputError, match="PDQ was not measured; evaluate again with measures="):
        compute_budget(evaluate(*random_world(0), measures=("map",)))


def random_boxes(seed):
    """Return a world without heatmaps, which results do not keep."""
    truth, found = random_world(seed)
    return truth, found.replace(heatmaps=None)


def answers(result):
    matched = what_if_matched(result, best_threshold(result))
    scored, _ = _score_repairs(result, make_rescorer(result), math.nan, lambda done: done)
    return {a.key: a for a in matched + scored}


@pytest.mark.parametrize("seed", range(3))
def test_each_is_what_a_repaired_file_gives(seed):
    truth, found = random_boxes(seed)
    result = evaluate(truth, found)
    said = answers(result)
    assert set(said) | {"kept_inside", "best_constant", "best_scale"} == set(TITLES) - {"calibrating_scale"}
    gains = [answer.gain for answer in sort_answers(list(said.values()))]
    assert gains == pytest.approx(sorted((answer.pdq - result.pdq for answer in said.values()), reverse=True))
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


BOXES = [[10, 10, 29, 29], [50, 10, 69, 29], [10, 50, 29, 69], [50, 50, 69, 69]]


def by_definition(result: Evaluation) -> tuple[list[list[int]], list[int]]:
    """Return the matrix and what names no class, one object and detection after the other."""
    classes = len(result.classes)
    matrix = [[0] * (classes + 1) for _ in range(classes + 1)]
    unnamed = [0] * (classes + 1)
    for verdict, label, partner in zip(
        result.detections.verdicts.tolist(),
        result.detections.labels.tolist(),
        result.detections.partners.tolist(),
        strict=True,
    ):
        if verdict == Verdict.IGNORED:
            continue
        row = int(result.objects.labels[partner]) if verdict == Verdict.TP else classes
        if label < 0:
            unnamed[row] += 1
        else:
            matrix[row][label] += 1
    for verdict, label in zip(result.objects.verdicts.tolist(), result.objects.labels.tolist(), strict=True):
        if verdict == Verdict.FN:
            matrix[label][classes] += 1
    return matrix, unnamed


@given(st.integers(0, 2**32 - 1), st.sampled_from(["reference", "paper"]), st.sampled_from([None, 0.2, 0.5]))
def test_it_is_the_definition_and_agrees_with_the_counts(seed: int, preset: str, threshold: float | None) -> None:
    truth, found = random_world(seed)
    result = evaluate(truth, found, convention=Convention.preset(preset), measures=["pdq"])
    result = result if threshold is None else result.at_threshold(threshold)
    counted = confusion(result)
    matrix, unnamed = by_definition(result)
    assert counted.matrix.tolist() == matrix
    assert counted.unnamed.tolist() == unnamed
    assert (counted.tp, counted.fp, counted.fn) == (result.tp, result.fp, result.fn)
    assert counted.matrix[-1, -1] == 0
    assert counted.flat()["count"].sum() == result.tp + result.fp + result.fn


def test_each_place_has_its_meaning() -> None:
    classes = ["cup", "dog", "owl"]
    truth = GroundTruth.from_boxes(classes, {7: (99, 99)}, [7] * 3, BOXES[:3], [0, 1, 1])
    # A cup taken for a dog, a dog found, a dog missed since its owl is sure to be no dog, an owl where nothing is.
    probs = [[0.3, 0.6, 0.0], [0.1, 0.8, 0.0], [0.0, 0.0, 0.9], [0.0, 0.0, 0.7]]
    found = Detections(classes=classes, image_ids=[7] * 4, boxes=BOXES, label_probs=probs)
    counted = evaluate(truth, found).confusion()
    assert counted.matrix.tolist() == [[0, 1, 0, 0], [0, 1, 0, 1], [0, 0, 0, 0], [0, 0, 2, 0]]
    assert counted.shares()[1].tolist() == [0, 0.5, 0, 0.5]
    assert np.isnan(counted.shares()[2]).all()
    assert counted.count_mixed().tolist() == [1, 1, 0]
    rows = list(counted.flat().row_values())
    assert rows == [("background", "owl", 2), ("cup", "dog", 1), ("dog", "dog", 1), ("dog", "background", 1)]
    assert repr(counted) == "Confusion(3 classes; TP 2, FP 2, FN 1)"


def test_detections_that_name_no_class_of_the_truth_are_counted_apart() -> None:
    truth = GroundTruth.from_boxes(["cup"], {7: (99, 99)}, [7], BOXES[:1], [0])
    found = Detections(classes=["cup", "ufo"], image_ids=[7, 7], boxes=BOXES[:2], label_probs=[[0.2, 0.7], [0.0, 0.9]])
    result = evaluate(truth, found)
    counted = result.confusion()
    assert (counted.tp, counted.fp, counted.fn) == (result.tp, result.fp, result.fn) == (1, 1, 0)
    assert result.detections.labels.tolist() == [0, -1]  # a cup before all that the truth has, and nothing of it
    assert counted.matrix.tolist() == [[1, 0], [0, 0]]
    assert counted.unnamed.tolist() == [0, 1]
    assert list(counted.flat().row_values()) == [("cup", "cup", 1), ("background", "unknown class", 1)]


def test_ignored_objects_and_their_matches_are_left_out() -> None:
    truth = GroundTruth.from_boxes(["cup"], {7: (99, 99)}, [7, 7], [[10, 10, 12, 12], BOXES[1]], [0, 0])
    found = Detections(
        classes=["cup"], image_ids=[7, 7], boxes=[[10, 10, 12, 12], BOXES[1]], label_probs=[[0.9], [0.9]]
    )
    result = evaluate(truth, found, convention=Convention(object_filter=True))
    assert result.objects.ignored.tolist() == [True, False]
    assert result.confusion().matrix.tolist() == [[1, 0], [0, 0]]


def test_the_most_confused_classes_are_those_of_most_mixed_matches() -> None:
    matrix = np.array([[9, 0, 1, 0, 5], [0, 3, 0, 0, 0], [2, 0, 7, 0, 0], [0, 0, 0, 0, 0], [4, 0, 0, 0, 0]])
    truth, predicted = np.nonzero(matrix)
    counted = Confusion(("a", "b", "c", "d"), truth, predicted, matrix[truth, predicted])
    assert counted.matrix.tolist() == matrix.tolist()
    assert counted.count_mixed().tolist() == [3, 0, 3, 0]
    assert counted.most_confused(1) == [0]  # as mixed as c, but there is more of it
    assert counted.most_confused(2) == [0, 2]
    assert counted.most_confused(9) == [0, 1, 2]  # of d there is nothing
    unnamed = (np.append(truth, 1), np.append(predicted, 5), np.append(matrix[truth, predicted], 4))
    named = Confusion(("a", "b", "c", "d"), *unnamed)
    assert named.unnamed.tolist() == [0, 4, 0, 0, 0]
    assert named.most_confused(1) == [1]


def test_without_pdq_there_is_no_matching_to_count() -> None:
    truth = GroundTruth.from_boxes(["cup"], {7: (99, 99)}, [7], BOXES[:1], [0])
    found = Detections(classes=["cup"], image_ids=[7], boxes=BOXES[:1], label_probs=[[0.9]])
    with pytest.raises(InputError, match="PDQ was not measured"):
        evaluate(truth, found, measures=["map"]).confusion()
