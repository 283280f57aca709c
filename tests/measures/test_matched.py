"""The pairs that scoring rules judge: COCO's, whatever the covariances say."""

from __future__ import annotations

import numpy as np
import pytest
from tests.strategies import random_world

from probox import Convention, Detections, GroundTruth, InputError, evaluate
from probox.measures.matched import MatchedPairs
from probox.tables.results import Verdict


def scene(**changes):
    """Return one image with two cups and a crowd, and five detections: near, doubled, off, in the crowd, plain."""
    truth = GroundTruth.from_boxes(
        ["cup", "dog"], {7: (100, 80)}, [7, 7, 7], [[10, 20, 40, 60], [60, 1, 99.5, 40], [0, 62, 30, 79]], [0, 1, 0]
    ).replace(crowd=[False, False, True])
    columns = {
        "classes": ["cup", "dog"],
        "image_ids": [7] * 5,
        "boxes": [[12, 21, 39, 58], [11, 20, 40, 60], [10, 20, 20, 30], [2, 64, 28, 78], [61, 2, 98, 39]],
        "label_probs": [[0.9, 0.05], [0.6, 0.1], [0.8, 0], [0.7, 0], [0.1, 0.5]],
        "covariances": [[[[4, 1], [1, 9]], [[16, 0], [0, 25]]]] * 4 + [np.zeros((2, 2, 2))],
    }
    return truth, Detections(**(columns | changes))


def test_a_scene_by_hand():
    pairs = evaluate(*scene()).matched_pairs
    assert pairs.pairing == "COCO IoU 0.5"
    assert pairs.detections.tolist() == [0, 4]  # the crowd's makes no pair, nor does one that comes second
    assert pairs.objects.tolist() == [0, 1]
    assert pairs.image_rows.tolist() == [0, 0]
    np.testing.assert_array_equal(pairs.residuals, [[-2, -1, 1, 2], [-1, -1, 1.5, 1]])
    np.testing.assert_array_equal(pairs.variances, [[4, 9, 16, 25], [0, 0, 0, 0]])
    assert pairs.plain.tolist() == [False, True]
    assert pairs.labels.tolist() == [0, 1]
    np.testing.assert_allclose(pairs.scores, [0.9, 0.5])
    np.testing.assert_array_equal(pairs.sides, [[27, 37], [37, 37]])
    assert pairs.truncated.tolist() == [[False] * 4, [False, True, True, False]]
    np.testing.assert_allclose(pairs.ious, [27 * 37 / (30 * 40), 37 * 37 / (39.5 * 39)])
    np.testing.assert_array_equal(pairs.label_probs, np.float32([[0.9, 0.05], [0.1, 0.5]]))


def test_the_border_is_a_pixel_wide():
    truth = GroundTruth.from_boxes(["cup"], {1: (50, 40)}, [1, 1], [[1, 1, 49, 39], [1.01, 1.01, 48.99, 38.99]], [0, 0])
    found = Detections(classes=["cup"], image_ids=[1, 1], boxes=truth.boxes, label_probs=[[0.9], [0.8]])
    assert evaluate(truth, found).matched_pairs.truncated.tolist() == [[True] * 4, [False] * 4]


@pytest.mark.parametrize("seed", range(3))
def test_pairs_do_not_depend_on_the_covariance(seed):
    truth, found = random_world(seed)
    sure = evaluate(truth, found).matched_pairs
    unsure = evaluate(truth, found.replace(covariances=np.tile(400 * np.eye(2), (len(found), 2, 1, 1)))).matched_pairs
    np.testing.assert_array_equal(sure.detections, unsure.detections)
    np.testing.assert_array_equal(sure.objects, unsure.objects)


@pytest.mark.parametrize("seed", range(3))
def test_overlaps_are_those_of_the_matching(seed):
    result = evaluate(*random_world(seed))
    pairs, matches = result.matched_pairs, result.box_matches
    assert len(pairs) > 0
    wanted = matches.ious[:, 0][(matches.matched[:, 0] & 1 == 1) & (matches.ignored[:, 0] & 1 == 0)]
    np.testing.assert_allclose(np.sort(pairs.ious), np.sort(wanted), rtol=1e-12)


def test_another_overlap():
    result = evaluate(*scene())
    strict = MatchedPairs.of(result, iou=0.85)
    assert strict.pairing == "COCO IoU 0.85"
    assert (strict.ious >= 0.85).all()
    assert strict.detections.tolist() == [1, 4]  # the surer one overlaps too little, so the next may take the object


def test_pairs_of_pdq():
    result = evaluate(*scene())
    pairs = MatchedPairs.of(result, "pdq")
    assert pairs.pairing == "PDQ"
    np.testing.assert_array_equal(pairs.detections, np.flatnonzero(result.detections.verdicts == Verdict.TP))
    np.testing.assert_array_equal(pairs.objects, result.detections.partners[pairs.detections])


@pytest.mark.parametrize(
    ("pairing", "iou", "message"),
    [("coco", iou, "expected iou to be a number above 0, at most 1") for iou in (0, -1, 1.5, np.nan, True, "0.5")]
    + [("best", 0.5, "expected pairing to be 'coco' or 'pdq', got 'best'")],
)
def test_other_pairings_are_refused(pairing, iou, message):
    with pytest.raises(InputError, match=message):
        MatchedPairs.of(evaluate(*scene()), pairing, iou=iou)


def test_heatmaps_are_plain():
    truth, found = scene()
    given = [np.full((80, 100), 0.5), *[None] * 4]
    assert evaluate(truth, found.replace(heatmaps=given)).matched_pairs.plain.tolist() == [True, True]
    set_ = evaluate(truth, found.replace(heatmaps=given), convention=Convention(fixed_variance=4.0))
    assert set_.detections.covariances.any(axis=(1, 2, 3)).tolist() == [False, True, True, True, True]
