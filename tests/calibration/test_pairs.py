"""Which pairs are fitted to."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.amounts import examples
from tests.strategies import random_world

import probox
from probox import Detections, GroundTruth
from probox.calibration.corner_fit import FittingPairs, MatchOutcome
from probox.measures.matched import MatchedPairs


def test_pairs_of_a_small_scene() -> None:
    truth = GroundTruth.from_boxes(
        ["cup", "dog"],
        {3: (100, 80), 8: (100, 80), 9: (50, 50)},
        [8, 3, 3],
        [[0.5, 10, 40, 79.5], [10, 10, 30, 30], [50, 50, 70, 70]],
        [1, 0, 0],
    )
    found = Detections(
        classes=["dog", "cup"],
        image_ids=[8, 3, 3, 3, 77],
        boxes=[[2, 12, 40, 75], [50, 51, 69, 70], [11, 10, 31, 30], [80, 10, 90, 20], [0, 0, 1, 1]],
        label_probs=[[0.9, 0], [0.1, 0.8], [0, 0.7], [0, 0.6], [0, 1]],
        covariances=np.tile(4 * np.eye(2), (5, 2, 1, 1)) * np.array([1, 1, 0, 1, 1])[:, None, None, None],
    )
    pairs = FittingPairs.of(truth, found)
    order = np.argsort(pairs.detections)
    assert pairs.detections[order].tolist() == [0, 1, 2]
    assert truth.boxes[pairs.objects[order]].tolist() == [[0.5, 10, 40, 79.5], [50, 50, 70, 70], [10, 10, 30, 30]]
    assert pairs.image_rows[order].tolist() == [1, 0, 0]
    assert pairs.labels[order].tolist() == [1, 0, 0]
    assert pairs.residuals[order].tolist() == [[-1.5, -2, 0, 4.5], [0, -1, 1, 0], [-1, 0, -1, 0]]
    assert pairs.sides[order].tolist() == [[38, 63, 38, 63], [19, 19, 19, 19], [20, 20, 20, 20]]
    assert pairs.free[order].tolist() == [[False, True, True, False], [True] * 4, [True] * 4]
    assert pairs.usable[order].tolist() == [True, True, False]
    hit, missed, aside = MatchOutcome.MATCHED, MatchOutcome.UNMATCHED, MatchOutcome.ASIDE
    assert pairs.outcomes.tolist() == [hit, hit, hit, missed, aside]
    assert pairs.z[order][0].tolist() == [-0.75, -1, 0, 2.25]


@pytest.mark.parametrize(("edge", "said", "free"), [(1.0, 5, False), (1.01, 2.01, True), (5, 0.0, True)])
def test_the_border_is_one_pixel_of_the_truth(edge: float, said: float, free: bool) -> None:
    truth = GroundTruth.from_boxes(["cup"], {1: (60, 40)}, [1], [[edge, edge, 60 - edge, 40 - edge]], [0])
    boxes = [[said, said, 60 - said, 40 - said]]
    found = Detections(classes=["cup"], image_ids=[1], boxes=boxes, label_probs=[[1.0]])
    assert FittingPairs.of(truth, found).free.tolist() == [[free] * 4]


def test_crowds_are_left_aside() -> None:
    truth = GroundTruth.from_boxes(["cup"], {1: (60, 40)}, [1], [[5, 5, 30, 30]], [0])
    found = Detections(classes=["cup"], image_ids=[1], boxes=truth.boxes, label_probs=[[1.0]])
    pairs = FittingPairs.of(truth.replace(crowd=[True]), found)
    assert len(pairs) == 0
    assert pairs.outcomes.tolist() == [MatchOutcome.ASIDE]


@examples(40)
@given(st.integers(0, 10**6))
def test_pairs_are_those_of_the_measures(seed: int) -> None:
    """As many as mAP at an IoU of 0.5 counts as right, whatever the order of rows and the covariances."""
    truth, found = random_world(seed)
    pairs = FittingPairs.of(truth, found)
    matches = probox.evaluate(truth, found, measures=["map"]).box_matches
    assert len(pairs) == int(((matches.matched[:, 0] & 1 == 1) & (matches.ignored[:, 0] & 1 == 0)).sum())
    judged = MatchedPairs.of(probox.evaluate(truth, found))
    assert np.sort(judged.residuals, axis=0).tolist() == np.sort(pairs.residuals, axis=0).tolist()
    assert sorted(judged.objects.tolist()) == sorted(pairs.objects.tolist())
    assert int(judged.truncated.sum()) <= int((~pairs.free).sum())
    plain = found.replace(covariances=None)
    assert (FittingPairs.of(truth, plain).detections == pairs.detections).all()
    assert (found.image_ids[pairs.detections] == truth.image_ids[pairs.image_rows]).all()
    assert (truth.image_rows[pairs.objects] == pairs.image_rows).all()
    back = np.arange(len(found))[::-1]
    turned = FittingPairs.of(truth, found.select(back))
    if len(np.unique(found.scores)) == len(found):
        assert sorted(back[turned.detections].tolist()) == sorted(pairs.detections.tolist())


def test_a_correlation_of_one_has_no_inverse() -> None:
    truth = GroundTruth.from_boxes(["cup"], {1: (60, 40)}, [1], [[5, 5, 30, 30]], [0])
    for covariance, usable in (([[4, 2], [2, 1]], False), ([[4, 1], [1, 1]], True), ([[4, 0], [0, 0]], False)):
        found = Detections(
            classes=["cup"], image_ids=[1], boxes=truth.boxes, label_probs=[[1.0]],
            covariances=[[covariance, [[1, 0], [0, 1]]]],
        )  # fmt: skip
        assert FittingPairs.of(truth, found).usable.tolist() == [usable]
