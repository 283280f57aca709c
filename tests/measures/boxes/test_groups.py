"""Groups of objects as in Open Images: the rule of TensorFlow's OpenImagesDetectionEvaluator, without weight of groups.

The rule takes the object of highest overlap first and only then asks whether it is free, so the outcomes equal those of
COCO's matching where objects do not overlap each other.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.measures.boxes.conftest import found_of, truth_of

from probox.measures.boxes import match_boxes
from probox.measures.boxes.box_definition import overlaps

TP, FP, IGNORED = "TP", "FP", "ignored"


def group_outcomes(found: np.ndarray, objects: np.ndarray, groups: np.ndarray) -> list[str]:
    """Return the outcome of each detection, by descending score, at an overlap of a half.

    First, a detection is right if the object of highest IoU has at least a half, and is free. Then each other detection
    is ignored if at least half of its own area lies in a group.
    """
    iou = overlaps(found, objects, np.zeros(len(objects), bool))
    inside = overlaps(found, groups, np.ones(len(groups), bool))
    taken: set[int] = set()
    outcomes = []
    for row in range(len(found)):
        best = int(iou[row].argmax())
        if iou[row, best] >= 0.5 and best not in taken:
            taken.add(best)
            outcomes.append(TP)
        else:
            outcomes.append(IGNORED if inside[row].max() >= 0.5 else FP)
    return outcomes


@pytest.mark.parametrize("seed", range(20))
def test_outcomes_are_those_of_the_rule(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells = rng.permutation(16)[:6]  # of a grid, so that objects do not overlap
    objects = np.stack([cells % 4 * 200.0, cells // 4 * 200.0, *rng.integers(40, 180, (2, 6))], axis=1)
    groups = np.concatenate([rng.integers(0, 500, (3, 2)), rng.integers(50, 300, (3, 2))], axis=1).astype(float)
    near = np.concatenate([objects, groups])[rng.integers(0, 9, 60)] + rng.integers(-30, 31, (60, 4))
    found = np.concatenate([near[:, :2], np.maximum(near[:, 2:], 5.0)], axis=1)

    def corners(boxes: np.ndarray) -> np.ndarray:
        return np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1)

    truth = truth_of(corners(np.concatenate([objects, groups])).tolist(), crowd=np.arange(9) >= 6)
    matches = match_boxes(truth, found_of(corners(found), np.linspace(0.9, 0.1, 60).tolist()))
    right = (matches.matched[:, 0] & 1 == 1) & (matches.ignored[:, 0] & 1 == 0)
    own = np.where(matches.ignored[:, 0] & 1 == 1, IGNORED, np.where(right, TP, FP)).tolist()
    assert own == group_outcomes(found, objects, groups)
    assert {TP, FP, IGNORED} == {*own}
    assert matches.objects_per_class()[0, 0] == 6  # groups are not objects to find


@pytest.mark.parametrize(("width", "outcome"), [(100.0, IGNORED), (101.0, FP)])
def test_half_of_the_detection_decides(width: float, outcome: str) -> None:
    matches = match_boxes(truth_of([[0, 0, 50, 50]], crowd=[True]), found_of([[0, 0, width, 50]]))
    assert (matches.ignored[0, 0] & 1 == 1) == (outcome == IGNORED)
    assert group_outcomes(np.array([[0, 0, width, 50.0]]), np.full((1, 4), 500.0), np.array([[0, 0, 50.0, 50.0]])) == [
        outcome
    ]
