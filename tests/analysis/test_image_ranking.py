"""Which images are worth a look: each choice against a plain sort of the images' numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from probox import Detections, Evaluation, GroundTruth, InputError, evaluate
from probox.analysis.ranking import CHOICES, choose_images, compute_lost_points, find_images, find_seen_images


@pytest.mark.parametrize("choice", list(CHOICES))
def test_the_first_images_of_every_choice(results: dict[str, Evaluation], choice: str) -> None:
    result = results["unsure"]
    columns = result.per_image().columns
    rows = [{name: values[row].item() for name, values in columns.items()} for row in range(len(result.dataset))]
    key = {
        "worst": lambda row: row["sum_pPDQ"] - row["TP"] - row["FP"] - row["FN"],
        "best": lambda row: -row["PDQ"],
        "false-positives": lambda row: -row["FP"],
        "missed": lambda row: -row["FN"],
        "crowded": lambda row: -(2 * row["TP"] + row["FP"] + row["FN"]),
    }[choice]
    assert not any(math.isnan(row["PDQ"]) for row in rows)
    expected = [row["image_id"] for row in sorted(rows, key=lambda row: (key(row), row["image_id"]))]
    assert choose_images(result, choice, 4) == expected[:4]


def test_lost_points_of_all_images_are_what_pdq_lacks(results: dict[str, Evaluation]) -> None:
    result = results["sure"]
    counted = result.tp + result.fp + result.fn
    assert compute_lost_points(result).sum() / counted == pytest.approx(1 - result.pdq)


def test_the_worst_image_lost_most_points_not_most_of_its_own() -> None:
    """Image 1: one object, missed, PDQ 0. Image 2: one object found, and three false positives, PDQ 0.25."""
    truth = GroundTruth.from_boxes(["cup"], dict.fromkeys([1, 2], (100, 100)), [1, 2], [[10, 10, 50, 50]] * 2, [0, 0])
    boxes = [[10, 10, 50, 50], [60, 60, 80, 80], [60, 10, 80, 20], [10, 60, 20, 80]]
    found = Detections(classes=["cup"], image_ids=[2] * 4, boxes=boxes, label_probs=[[1.0]] * 4)
    result = evaluate(truth, found)
    assert compute_lost_points(result) == pytest.approx([1, 3], abs=0.01)
    assert choose_images(result, "worst", 2) == [2, 1]


def test_of_images_with_no_points_those_with_more_mistakes_are_worse() -> None:
    truth = GroundTruth.from_boxes(["cup"], dict.fromkeys([1, 2, 3], (100, 100)), [2], [[10, 10, 50, 50]], [0])
    wrong = [[60, 60, 80, 80], [60, 60, 80, 80], [60, 10, 80, 20], [10, 60, 20, 80]]
    found = Detections(classes=["cup"], image_ids=[1, 2, 3, 3], boxes=wrong, label_probs=[[0.9]] * 4)
    assert choose_images(evaluate(truth, found), "worst", 3) == [2, 3, 1]  # 2, 2 and 1 mistakes
    assert choose_images(evaluate(truth, found), "best", 3) == [1, 2, 3]


@pytest.mark.parametrize("choice", list(CHOICES))
def test_images_with_nothing_to_show_are_never_chosen(choice: str) -> None:
    truth = GroundTruth.from_boxes(["cup"], dict.fromkeys([1, 2, 3], (100, 100)), [2], [[10, 10, 50, 50]], [0])
    wrong = Detections(classes=["cup"], image_ids=[3], boxes=[[60, 60, 80, 80]], label_probs=[[0.9]])
    chosen = {"false-positives": [3], "missed": [2]}.get(choice, [2, 3])
    assert choose_images(evaluate(truth, wrong), choice, 3) == chosen


def test_perfect_images_are_not_among_the_worst() -> None:
    boxes = [[10, 10, 50, 50], [20, 20, 60, 60]]
    truth = GroundTruth.from_boxes(["cup"], dict.fromkeys([1, 2], (100, 100)), [1, 2], boxes, [0, 0])
    found = Detections(classes=["cup"], image_ids=[1, 2], boxes=boxes, label_probs=[[1.0], [0.5]])
    assert choose_images(evaluate(truth, found), "worst", 2) == [2]


def test_images_without_pdq_have_no_order() -> None:
    truth = GroundTruth.from_boxes(["cup"], {1: (100, 100)}, [1], [[10, 10, 50, 50]], [0])
    found = Detections(classes=["cup"], image_ids=[1], boxes=[[10, 10, 50, 50]], label_probs=[[1.0]])
    with pytest.raises(InputError, match="PDQ was not measured"):
        choose_images(evaluate(truth, found, measures=["map"]), "worst", 1)


def test_images_go_by_id_or_name(results: dict[str, Evaluation]) -> None:
    result = results["unsure"]
    name = result.dataset.file_names[2]
    assert find_images(result, [str(result.dataset.image_ids[5]), name]) == result.dataset.image_ids[[5, 2]].tolist()
    with pytest.raises(InputError):
        find_images(result, ["nowhere.jpg"])


def partly_seen(images: int, unseen: int, each: int = 3) -> Evaluation:
    """Return the result of a detector that was run on some of the images, an object in each; it finds every second."""
    ids = list(range(1, images + 1))
    truth = GroundTruth.from_boxes(
        ["cup"], dict.fromkeys(ids, (100, 100)), ids, [[10, 10, 50, 50]] * images, [0] * images
    )
    seen = ids[unseen:]
    boxes = [[10, 10, 50 + i % 2, 50] if k == 0 else [60, 60, 70 + k, 80] for i in seen for k in range(each)]
    found = Detections(
        classes=["cup"], image_ids=np.repeat(seen, each), boxes=boxes, label_probs=np.full((len(boxes), 1), 0.6)
    )
    return evaluate(truth, found)


@pytest.mark.parametrize("choice", list(CHOICES))
def test_images_that_the_detector_never_saw_are_no_failures(choice: str) -> None:
    result = partly_seen(40, 15)
    assert find_seen_images(result).tolist() == [False] * 15 + [True] * 25
    chosen = choose_images(result, choice, 40)
    if choice == "missed":
        assert chosen == list(range(1, 16))
    else:
        assert sorted(chosen) == list(range(16, 41))


def test_a_few_empty_images_are_failures() -> None:
    result = partly_seen(40, 5)
    assert find_seen_images(result).all()
    lost = dict(zip(result.dataset.image_ids.tolist(), compute_lost_points(result).tolist(), strict=True))
    assert [lost[image_id] for image_id in (1, 2, 3, 4, 5)] == [1.0] * 5  # their objects were missed
    assert set(choose_images(result, "worst", 40)) == set(lost)


def test_a_threshold_does_not_make_images_unseen() -> None:
    result = partly_seen(40, 15)
    seen = find_seen_images(result)
    assert choose_images(result.at_threshold(0.9), "worst", 3, seen=seen) == [16, 17, 18]
