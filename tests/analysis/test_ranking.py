"""Which images a detector is unsure of, and which are worth a look: each number against a plain loop."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.amounts import examples
from tests.strategies import random_world

from probox import Detections, Evaluation, GroundTruth, InputError, evaluate, rank
from probox.analysis.ranking import (
    AGGREGATES,
    CHOICES,
    UNCERTAINTIES,
    choose_images,
    compute_lost_points,
    find_images,
    find_seen_images,
)
from probox.notes import Note


def uncertainty(found: Detections, row: int, by: str) -> float | None:
    """Return how unsure one detection is, as the words define it; None if nothing tells."""
    if by == "spread":
        if found.covariances is None or not found.covariances[row].any():
            return None
        x1, y1, x2, y2 = found.boxes[row].tolist()
        (top_left, bottom_right), total = found.covariances[row], 0.0
        for corner in (top_left, bottom_right):
            total += math.sqrt(corner[0, 0]) / max(x2 - x1, 1.0) + math.sqrt(corner[1, 1]) / max(y2 - y1, 1.0)
        return total / 4
    probs = [
        float(p) for name, p in zip(found.classes, found.label_probs[row], strict=True) if name != "__background__"
    ]
    probs.append(max(1.0 - sum(probs), 0.0))
    if by == "entropy":
        return -sum(p * math.log(p) for p in probs if p > 0)
    first, second = sorted(probs, reverse=True)[:2]
    return 1.0 - (first - second)


def ranked(
    found: Detections, by: str, aggregate: str, threshold: float | None, images: list[int]
) -> list[tuple[int, float, int]]:
    """Return images with their numbers, by a plain sort."""
    lines = []
    for image in images:
        values = []
        for row in np.flatnonzero(found.image_ids == image).tolist():
            if threshold is None or found.label_probs[row].max() > np.float32(threshold):
                value = uncertainty(found, row, by)
                values += [] if value is None else [value]
        total = {"sum": sum, "mean": lambda v: sum(v) / len(v), "max": max}[aggregate](values) if values else math.nan
        lines.append((image, total, len(values)))
    return sorted(lines, key=lambda line: (line[2] == 0, 0.0 if line[2] == 0 else -round(line[1], 9), line[0]))


@examples(60)
@given(
    seed=st.integers(0, 2**32 - 1),
    by=st.sampled_from(list(UNCERTAINTIES)),
    aggregate=st.sampled_from(list(AGGREGATES)),
    threshold=st.sampled_from([None, 0.0, 0.4, 0.7]),
    every=st.booleans(),
)
def test_the_plain_loop_gives_the_same(
    seed: int, by: str, aggregate: str, threshold: float | None, every: bool
) -> None:
    truth, found = random_world(seed, heatmaps=False)
    images = truth.image_ids.tolist() if every else np.unique(found.image_ids).tolist()
    expected = ranked(found, by, aggregate, threshold, images)
    options: dict[str, Any] = {"image_ids": images} if every else {}
    settled = any(n for _, _, n in expected)
    kept = [threshold is None or probs.max() > np.float32(threshold) for probs in found.label_probs]
    if by == "spread" and any(kept) and not settled:
        with pytest.raises(InputError, match="all boxes are plain"):
            rank(found, by, aggregate=aggregate, label_threshold=threshold, **options)
        return
    ranking = rank(found, by, aggregate=aggregate, label_threshold=threshold, **options)
    np.testing.assert_allclose(ranking.values, [value for _, value, _ in expected], rtol=1e-6, atol=1e-7)
    by_image = {image: (value, n) for image, value, n in expected}
    for image, value, n in zip(ranking.image_ids.tolist(), ranking.values, ranking.detections, strict=True):
        assert by_image[image] == (pytest.approx(value, rel=1e-6, abs=1e-7, nan_ok=True), n)


def made(label_probs: Any, image_ids: Any = None, classes: Any = ("cup", "dog"), **columns: Any) -> Detections:
    n = len(label_probs)
    ids = list(range(n)) if image_ids is None else image_ids
    return Detections(classes=classes, image_ids=ids, boxes=[[10, 20, 50, 40]] * n, label_probs=label_probs, **columns)


def test_numbers_by_hand() -> None:
    found = made([[0.5, 0.25]], covariances=[[[[16, 0], [0, 4]], [[64, 0], [0, 1]]]])
    assert rank(found).values[0] == pytest.approx(1.5 * math.log(2))
    assert rank(found, "margin").values[0] == pytest.approx(0.75)
    assert rank(found, "spread").values[0] == pytest.approx((4 / 40 + 2 / 20 + 8 / 40 + 1 / 20) / 4)


def test_a_class_of_background_is_background() -> None:
    stated = made([[0.3, 0.6]], classes=("cup", "__background__"))
    left = made([[0.3]], classes=("cup",))
    for by in ("entropy", "margin"):
        assert rank(stated, by).values[0] == pytest.approx(rank(left, by).values[0])


def test_what_a_score_alone_leaves_is_background() -> None:
    scores = np.array([0.5, 0.9, 0.05, 0.2], np.float32)
    labels = np.array([2, 0, 1, 3], np.int32)
    spread = np.repeat((1 - scores[:, None]) / 3, 4, axis=1).astype(np.float32)
    spread[np.arange(4), labels] = scores
    classes = ("cup", "background", "dog", "cat", "hat")
    probs = np.insert(spread, 1, 0.0, axis=1)  # no longer even: taken as it is
    alone = made(spread, classes=("cup", "dog", "cat", "hat"), labels=labels, scores=scores)
    for by in ("entropy", "margin"):
        bare = rank(made(scores[:, None], classes=("cup",)), by)
        ranking = rank(alone, by)
        assert ranking.image_ids.tolist() == bare.image_ids.tolist() == [0, 3, 1, 2]
        np.testing.assert_allclose(ranking.values, bare.values, rtol=1e-6)
        assert ranking.notes == (Note("background-of-scores", 4, total=4),)
        assert rank(made(probs, classes=classes), by).notes == ()
    assert rank(made([[0.25, 0.25, 0.25, 0.25]], classes=("a", "b", "c", "d"))).values[0] == pytest.approx(math.log(4))
    both = made([[0.25, 0.25, 0.25, 0.25], [0.7, 0.1, 0.1, 0.1]], classes=("a", "b", "c", "d"))
    assert rank(both, "margin").values.tolist() == pytest.approx([0.6, 0.5])
    # With background among the columns, the class keeps its own.
    rest = np.full((1, 5), 0.1, np.float32)
    rest[0, 2] = 0.6
    assert rank(made(rest, classes=classes)).values[0] == pytest.approx(rank(made([[0.6]], classes=("a",))).values[0])
    rest[0, [1, 2]] = rest[0, [2, 1]]  # it names background: nothing is said of a class
    assert rank(made(rest, classes=classes)).notes == ()


def test_sure_labels_have_no_entropy_and_no_minus() -> None:
    values = rank(made([[1.0, 0.0], [0.0, 0.0]])).values
    assert values.tolist() == [0.0, 0.0]
    assert not np.signbit(values).any()


def test_equals_go_by_id_and_images_with_nothing_come_last() -> None:
    found = made([[0.5, 0.5], [0.5, 0.5], [0.1, 0.0]], image_ids=[9, 4, 5])
    ranking = rank(found, label_threshold=0.1, image_ids=[9, 5, 4, 1])
    assert ranking.image_ids.tolist() == [4, 9, 1, 5]
    assert ranking.detections.tolist() == [1, 1, 0, 0]
    assert np.isnan(ranking.values[2:]).all()
    assert ranking.top(2).image_ids.tolist() == [4, 9]
    assert repr(ranking.top(2)) == "Ranking(2 images by entropy, sum over detections)"


def test_what_is_left_out_is_said() -> None:
    covariances = np.zeros((3, 2, 2, 2))
    covariances[1] = np.eye(2)
    found = made([[0.9, 0.0]] * 3, image_ids=[1, 2, 3], covariances=covariances)
    ranking = rank(found, "spread", image_ids=[1, 2])
    assert ranking.notes == (
        Note("other-images", 1, total=3),
        Note("no-spread", 1, total=2),
    )
    assert ranking.image_ids.tolist() == [2, 1]
    with pytest.raises(InputError, match="no box has a covariance to rank by; rank by entropy or"):
        rank(found, "spread", image_ids=[1, 3])


def test_nothing_can_be_ranked() -> None:
    empty = Detections(classes=[], image_ids=[], boxes=np.zeros((0, 4)), label_probs=np.zeros((0, 0)))
    for by in UNCERTAINTIES:
        assert len(rank(empty, by)) == 0
        assert rank(empty, by, image_ids=[3]).image_ids.tolist() == [3]


def test_without_classes_there_is_no_margin() -> None:
    found = Detections(classes=[], image_ids=[1], boxes=[[0, 0, 9, 9]], label_probs=np.zeros((1, 0)))
    assert [rank(found, by).values.tolist() for by in ("entropy", "margin")] == [[0.0], [0.0]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"by": "sigma"}, "expected by to be one of entropy, spread, margin, but got 'sigma'"),
        ({"by": ["entropy"]}, "expected by to be one of"),
        ({"aggregate": "median"}, "expected aggregate to be one of sum, mean, max, but got 'median'"),
        ({"label_threshold": 1.5}, "expected label_threshold to be a number between 0 and 1, but got 1.5"),
        ({"label_threshold": math.nan}, "expected label_threshold to be a number"),
        ({"image_ids": ["a"]}, "expected image_ids to be numbers"),
    ],
)
def test_wrong_arguments_are_told(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        rank(made([[0.5, 0.5]]), **arguments)
    with pytest.raises(InputError, match="read them first"):
        rank("detections.json")
    with pytest.raises(InputError, match="expected n to be a whole number"):
        rank(made([[0.5, 0.5]])).top(-1)


@pytest.mark.parametrize("choice", list(CHOICES))
def test_the_first_images_of_every_choice(results: dict[str, Evaluation], choice: str) -> None:
    result = results["probabilistic"]
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
    result = results["deterministic"]
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
    result = results["probabilistic"]
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
