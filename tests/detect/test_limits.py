"""How many candidates and detections of an image are kept, to the last one, and which."""

from __future__ import annotations

import numpy as np
import pytest

from probox.detect import Candidates, Options, detect
from probox.detect.uncertainty import MAX_CANDIDATES, choose_candidates
from probox.fusion import fuse_candidates
from probox.fusion.fuse import survivors_of

from .test_uncertainty import Scripted

SIZE = (4000, 100)
IMAGE = np.zeros((SIZE[1], SIZE[0], 3), np.uint8)


def apart(scores: np.ndarray) -> Candidates:
    """Return one box for each score, none of which overlaps another; the first of three classes has the score."""
    left = np.arange(len(scores), dtype=float)
    boxes = np.stack([left, np.zeros(len(left)), left + 1, np.full(len(left), 9.0)], axis=1)
    columns = np.zeros((len(scores), 3), np.float32)
    columns[:, 0] = scores
    return Candidates(boxes, columns)


def shuffled(count: int) -> np.ndarray:
    """Return distinct scores in no order."""
    return np.random.default_rng(count).permutation(np.linspace(0.1, 0.9, count)).astype(np.float32)


@pytest.mark.parametrize("labels", ["all", "best"])
@pytest.mark.parametrize("beyond", [-1, 0, 1, 2, 30])
def test_the_best_candidates_enter_suppression(beyond: int, labels: str) -> None:
    limit = 40
    scores = shuffled(limit + beyond)
    rows, columns = choose_candidates(apart(scores), SIZE, 0.05, labels, limit)
    np.testing.assert_array_equal(rows, np.argsort(-scores, kind="stable")[:limit])
    assert not columns.any()


def test_a_named_class_s_candidates_are_limited_too() -> None:
    scores = shuffled(12)
    plain = apart(scores)
    named = Candidates(plain.boxes, plain.scores, labels=np.zeros(12, np.int64))
    assert choose_candidates(named, SIZE, 0.05, "all", 5)[0].tolist() == np.argsort(-scores)[:5].tolist()


@pytest.mark.parametrize("beyond", [0, 1])
def test_the_usual_limit(beyond: int) -> None:
    assert MAX_CANDIDATES == 3000
    scores = shuffled(MAX_CANDIDATES + beyond)
    rows, _ = choose_candidates(apart(scores), SIZE, 0.05, "all")
    assert len(rows) == MAX_CANDIDATES
    assert (scores.argmin() in rows) == (beyond == 0)


@pytest.mark.parametrize("uncertainty", ["none", "nms-clusters", "mc-dropout"])
@pytest.mark.parametrize(("count", "most"), [(7, 7), (8, 7), (7, 8), (20, 1)])
def test_so_many_detections_are_kept_the_best(uncertainty: str, count: int, most: int) -> None:
    scores = shuffled(count)
    options = Options(uncertainty=uncertainty, max_detections=most, passes=2)
    (found,) = detect(Scripted(apart(scores)), [IMAGE], [1], options)
    np.testing.assert_allclose(found.scores, np.sort(scores)[::-1][:most], rtol=1e-6)


@pytest.mark.parametrize(("count", "most"), [(7, 7), (8, 7), (7, 8)])
def test_a_graph_that_suppresses_itself_is_limited_too(count: int, most: int) -> None:
    scores = shuffled(count)
    (found,) = detect(Scripted(apart(scores), suppresses=True), [IMAGE], [1], Options(max_detections=most))
    np.testing.assert_array_equal(found.scores, np.sort(scores.astype(np.float64))[::-1][:most])


@pytest.mark.parametrize("most", [None, 0, 1, 3, 4, 9])
def test_survivors_are_the_best_in_order(most: int | None) -> None:
    boxes = np.array([[0, 0, 10, 10], [20, 0, 30, 10], [1, 0, 11, 10], [40, 0, 50, 10], [60, 0, 70, 10]], float)
    scores = np.array([0.5, 0.9, 0.6, 0.5, 0.1])
    labels = np.zeros(5, np.int64)
    stands_for, survivors = survivors_of(boxes, scores, labels, 0.5, False, most)
    assert stands_for.tolist() == [2, 1, 2, 3, 4]
    assert survivors.tolist() == [1, 2, 3, 4][:most]
    fused = fuse_candidates(boxes, scores[:, None], classes=["cup"], max_detections=most)
    assert fused.scores.tolist() == [0.9, 0.6, 0.5, 0.1][:most]


def test_classes_suppress_each_other_only_where_it_is_asked_for() -> None:
    boxes = np.array([[0, 0, 10, 10], [1, 0, 11, 10]], float)
    scores, labels = np.array([0.9, 0.8]), np.array([0, 1])
    assert survivors_of(boxes, scores, labels, 0.5)[1].tolist() == [0, 1]
    assert survivors_of(boxes, scores, labels, 0.5, class_agnostic=True)[1].tolist() == [0]


def test_an_overlap_of_exactly_the_bound_does_not_suppress() -> None:
    # Two boxes of 2 x 1 that share 1: IoU 1/3.
    boxes = np.array([[0, 0, 2, 1], [1, 0, 3, 1]], float)
    scores, labels = np.array([0.9, 0.8]), np.zeros(2, np.int64)
    third = 1 / 3
    assert survivors_of(boxes, scores, labels, third)[1].tolist() == [0, 1]
    assert survivors_of(boxes, scores, labels, np.nextafter(third, 0))[1].tolist() == [0]
