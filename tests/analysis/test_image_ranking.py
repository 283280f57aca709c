"""Which images are worth a look: each choice against a plain sort of the images' numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from probox import Detections, Evaluation, GroundTruth, InputError, evaluate
from probox.analysis.image_ranking import CHOICES, choose_images, find_images, seen_images


@pytest.mark.parametrize("choice", list(CHOICES))
def test_the_first_images_of_every_choice(results: dict[str, Evaluation], choice: str) -> None:
    result = results["unsure"]
    columns = result.per_image()
    rows = [{name: values[row].item() for name, values in columns.items()} for row in range(len(result.dataset))]
    key = {
        "worst": lambda row: row["PDQ"],
        "best": lambda row: -row["PDQ"],
        "false-positives": lambda row: -row["FP"],
        "missed": lambda row: -row["FN"],
        "crowded": lambda row: -(2 * row["TP"] + row["FP"] + row["FN"]),
    }[choice]
    assert not any(math.isnan(row["PDQ"]) for row in rows)
    expected = [row["image_id"] for row in sorted(rows, key=lambda row: (key(row), row["image_id"]))]
    assert choose_images(result, choice, 4) == expected[:4]


def test_of_images_with_no_points_those_with_more_mistakes_are_worse() -> None:
    truth = GroundTruth.from_boxes(["cup"], dict.fromkeys([1, 2, 3], (100, 100)), [2], [[10, 10, 50, 50]], [0])
    wrong = [[60, 60, 80, 80], [60, 60, 80, 80], [60, 10, 80, 20], [10, 60, 20, 80]]
    found = Detections(classes=["cup"], image_ids=[1, 2, 3, 3], boxes=wrong, label_probs=[[0.9]] * 4)
    assert choose_images(evaluate(truth, found), "worst", 3) == [2, 3, 1]  # 2, 2 and 1 mistakes
    assert choose_images(evaluate(truth, found), "best", 3) == [1, 2, 3]


@pytest.mark.parametrize("choice", list(CHOICES))
def test_images_with_nothing_in_them_come_last(choice: str) -> None:
    truth = GroundTruth.from_boxes(["cup"], dict.fromkeys([1, 2, 3], (100, 100)), [2], [[10, 10, 50, 50]], [0])
    wrong = Detections(classes=["cup"], image_ids=[3], boxes=[[60, 60, 80, 80]], label_probs=[[0.9]])
    assert choose_images(evaluate(truth, wrong), choice, 3)[-1] == 1


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
    assert seen_images(result).tolist() == [False] * 15 + [True] * 25
    chosen = choose_images(result, choice, 40)
    if choice == "missed":
        assert chosen[:15] == list(range(1, 16))
        assert len(chosen) == 40
    else:
        assert sorted(chosen) == list(range(16, 41))


def test_a_few_empty_images_are_failures() -> None:
    result = partly_seen(40, 5)
    assert seen_images(result).all()
    assert choose_images(result, "worst", 5) == [1, 2, 3, 4, 5]


def test_a_threshold_does_not_make_images_unseen() -> None:
    result = partly_seen(40, 15)
    seen = seen_images(result)
    assert choose_images(result.at_threshold(0.9), "worst", 3, seen=seen) == [16, 17, 18]
