"""What is taken for what: counts that agree with those of PDQ."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import random_world

from probox import Convention, Detections, Evaluation, GroundTruth, InputError, evaluate
from probox.analysis.loss_breakdown import Confusion, confusion
from probox.tables.results import Verdict

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
    assert list(counted.flat().row_values()) == [("cup", "cup", 1), ("background", "no class of the truth", 1)]


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
