"""How a detector's columns meet the truth's classes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probox import Detections, GroundTruth, average_precision, evaluate
from probox.formats import write_coco_results
from probox.tables.label_probs import LabelProbs
from probox.tables.labels import canonical_name, column_of_each, repeated_classes, scores_alone, unknown_classes

NAMES = ("cup", "dog", "couch", "Sofa", "bg", "background", "__bg__", "none", "unicorn", "TV", "tv")


def found_with(classes: list[str], probs: list[float], **columns: object) -> Detections:
    return Detections(classes=classes, image_ids=[7], boxes=[[10, 20, 40, 40]], label_probs=[probs], **columns)


@pytest.fixture
def truth() -> GroundTruth:
    return GroundTruth.from_boxes(["cup", "dog"], {7: (64, 48)}, [7], [[10, 20, 40, 40]], [0])


@pytest.mark.parametrize("other", ["background", "bg", "none", "unicorn"])
def test_what_the_truth_does_not_know_is_not_in_the_way(truth: GroundTruth, other: str) -> None:
    """The largest column is background: the detection is a cup of score 0.40 all the same."""
    found = found_with([other, "cup", "dog"], [0.55, 0.40, 0.05])
    result = evaluate(truth, found)
    assert result.summary()["mAP"] == pytest.approx(1.0)
    assert result.detections.labels.tolist() == [0]
    assert result.detections.scores[0] == pytest.approx(0.40)
    assert average_precision(truth, found).map == pytest.approx(1.0)
    assert result.lrp.molrp == 0.0


def test_a_stated_class_stays(truth: GroundTruth) -> None:
    named, score = found_with(["dog", "bg", "cup"], [0.4, 0.2, 0.3], labels=[2], scores=[0.7]).named_classes(
        truth.classes
    )
    assert (named.tolist(), score.tolist()) == ([0], [0.7])


def test_a_stated_class_that_the_truth_lacks_gives_way(truth: GroundTruth) -> None:
    named, score = found_with(["dog", "bg", "cup"], [0.4, 0.2, 0.3], labels=[1], scores=[0.7]).named_classes(
        truth.classes
    )
    assert named.tolist() == [1]
    assert score[0] == pytest.approx(0.4)


def test_nothing_known_names_nothing(truth: GroundTruth) -> None:
    result = evaluate(truth, found_with(["unicorn", "cup"], [0.9, 0.0]))
    assert result.detections.labels.tolist() == [-1]
    assert result.summary()["mAP"] == 0.0


@given(
    classes=st.lists(st.sampled_from(NAMES), min_size=1, max_size=5, unique=True),
    known=st.lists(st.sampled_from(("cup", "dog", "couch", "none", "tv")), max_size=4, unique=True),
    data=st.data(),
)
def test_named_classes_by_the_definition(classes: list[str], known: list[str], data: st.DataObject) -> None:
    shares = data.draw(st.lists(st.sampled_from([0.0, 0.1, 0.2]), min_size=len(classes), max_size=len(classes)))
    named, score = found_with(classes, shares).named_classes(known)
    best, value = -1, 0.0
    for at, name in enumerate(known):
        columns = [p for given, p in zip(classes, shares, strict=True) if canonical_name(given) == canonical_name(name)]
        if columns and columns[-1] > value:
            best, value = at, columns[-1]
    if tuple(known) == tuple(classes):  # the table's own choice: the first of the largest, whatever it is
        best = int(np.argmax(shares))
        value = shares[best]
    assert named.tolist() == [best]
    assert score[0] == pytest.approx(value)


def test_several_columns_of_one_class() -> None:
    given = ["couch", "cup", "Sofa", "cup", "dog"]
    assert column_of_each(["cup", "couch"], given).tolist() == [3, 2]
    assert repeated_classes(given, ["cup", "couch"]) == [0, 1]
    assert unknown_classes(given, ["cup", "couch"]) == [4]


def test_classes_that_the_truth_tells_apart_go_by_name() -> None:
    assert column_of_each(["tv", "television", "cup"], ["Cup", "television", "tv"]).tolist() == [2, 1, 0]
    assert column_of_each(["tv", "television"], ["TV"]).tolist() == [-1, -1]


def test_files_checks_and_evaluations_name_the_same_class(tmp_path: Path, truth: GroundTruth) -> None:
    """Of two columns of one class the last counts: when it is scored, when it is checked and when it is written."""
    found = found_with(["cup", "bg", "Cup", "dog"], [0.6, 0.0, 0.1, 0.3])
    assert evaluate(truth, found).detections.labels.tolist() == [1]
    write_coco_results(tmp_path / "found.json", found, truth)
    (said,) = json.loads((tmp_path / "found.json").read_text())
    assert said["category_id"] == truth.dataset.category_ids[1]
    assert said["score"] == pytest.approx(0.3)


FOUR = ("cup", "dog", "cat", "hat")


@pytest.mark.parametrize(
    ("row", "label", "alone"),
    [
        ((0.7, 0.1, 0.1, 0.1), 0, True),
        ((0.1, 0.7, 0.1, 0.1), 1, True),
        ((0.1, 0.1, 0.1, 0.7), 3, True),
        ((0.31, 0.31, 0.07, 0.31), 2, True),  # a score below what the others share
        ((0.31, 0.31, 0.07, 0.31), 0, False),  # the one that differs is not the one that is named
        ((0.7, 0.1, 0.1, 0.1), -1, False),
        ((0.25, 0.25, 0.25, 0.25), 0, False),  # cannot tell any two classes apart
        ((0.6, 0.1, 0.1, 0.1), 0, False),  # leaves something for background
        ((0.6998, 0.1, 0.1, 0.1), 0, False),
        ((0.69995, 0.1, 0.1, 0.1), 0, True),
        ((0.6, 0.2, 0.1, 0.1), 0, False),
        ((0.4, 0.4, 0.1, 0.1), 0, False),
        ((1.0, 0.0, 0.0, 0.0), 0, False),  # leaves nothing to spread
    ],
)
def test_which_rows_are_scores_alone(row: tuple[float, ...], label: int, alone: bool) -> None:
    assert scores_alone(LabelProbs([row]), np.array([label], np.int32), FOUR).tolist() == [alone]


def test_even_rows_are_scores_if_their_neighbours_are() -> None:
    probs = LabelProbs([[0.25] * 4, [0.7, 0.1, 0.1, 0.1], [0.4, 0.4, 0.1, 0.1]])
    labels = np.array([2, 0, 0], np.int32)
    assert scores_alone(probs, labels, FOUR).tolist() == [True, True, False]
    assert scores_alone(probs, labels, ("bg", *FOUR[1:])).tolist() == [False, False, False], "it names background"
    assert scores_alone(probs[:, :2], labels, FOUR[:2]).tolist() == [False] * 3, "of two classes nobody can tell"
    assert scores_alone(LabelProbs(np.zeros((0, 4))), np.zeros(0, np.int32), FOUR).tolist() == []


def test_scores_as_they_are_read_stand_alone() -> None:
    scores = np.array([1e-3, 0.1, 0.0125, 0.5, 0.999])
    labels = np.array([3, 0, 79, 40, 2], np.int32)
    classes = tuple(f"class {number}" for number in range(80))
    probs = LabelProbs.from_scores(scores, labels, 80)
    assert scores_alone(probs, labels, classes).all()
    assert not scores_alone(probs, (labels + 1) % 80, classes).any()
