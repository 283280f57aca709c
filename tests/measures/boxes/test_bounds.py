"""Areas and overlaps exactly on a bound: on the side where pycocotools has them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.measures.boxes.conftest import found_of, truth_of

from probox.measures.boxes import average_precision, box_definition, lrp, lrp_curve, match_boxes
from probox.measures.boxes.matching import AREA_RANGES, IOU_THRESHOLDS

SMALL, LARGE = 32.0**2, 96.0**2

NOTHING = found_of([])
BELOW_AND_ABOVE = [
    (0.0, [1, 1, 0, 0]),
    (np.nextafter(SMALL, 0), [1, 1, 0, 0]),
    (SMALL, [1, 1, 1, 0]),
    (np.nextafter(SMALL, LARGE), [1, 0, 1, 0]),
    (np.nextafter(LARGE, 0), [1, 0, 1, 0]),
    (LARGE, [1, 0, 1, 1]),
    (np.nextafter(LARGE, np.inf), [1, 0, 0, 1]),
    (1e10, [1, 0, 0, 1]),
    (np.nextafter(1e10, np.inf), [0, 0, 0, 0]),
]


@pytest.mark.parametrize(("area", "counts"), BELOW_AND_ABOVE)
def test_an_object_counts_by_its_annotated_area_both_ends_included(coco_twelve, area, counts):
    # The box is 10 x 10 whatever the area says.
    truth, found = truth_of([[0, 0, 10, 10]], areas=[area]), found_of([[0, 0, 10, 10]])
    assert match_boxes(truth, NOTHING).objects_per_class()[0].tolist() == counts
    ours = average_precision(truth, found)
    np.testing.assert_allclose(list(ours.summary().values()), coco_twelve(truth, found), rtol=0, atol=1e-12)
    defined = [not np.isnan(value) for value in (ours.map, ours.ap_small, ours.ap_medium, ours.ap_large)]
    assert defined == [bool(count) for count in counts]
    expected = box_definition.coco_numbers(truth, found)
    np.testing.assert_allclose(list(ours.summary().values()), list(expected.values()), rtol=0, atol=1e-12)


@pytest.mark.parametrize("side", [32.0, 96.0])
@pytest.mark.parametrize("step", [-1, 0, 1])
def test_a_wrong_detection_counts_by_its_own_box(coco_twelve, side, step):
    # An object of every size, found; and a stray, whose size decides in which of them it is wrong.
    boxes = [[0, 0, 20, 20], [100, 0, 150, 50], [200, 0, 400, 200]]
    width = {-1: np.nextafter(side, 0), 0: side, 1: np.nextafter(side, np.inf)}[step]
    truth, found = truth_of(boxes), found_of([[500, 500, 500 + side, 500 + side], *boxes], [0.9, 0.8, 0.7, 0.6])
    sizes = found.extents.copy()
    sizes[0, 0] = width
    found = dataclasses.replace(found, extents=sizes)
    ours = average_precision(truth, found)
    np.testing.assert_allclose(list(ours.summary().values()), coco_twelve(truth, found), rtol=0, atol=1e-12)
    wrong = [ours.ap_small < 1 - 1e-9, ours.ap_medium < 1 - 1e-9, ours.ap_large < 1 - 1e-9]
    if side == 32:
        assert wrong == [step <= 0, step >= 0, False]
    else:
        assert wrong == [False, step <= 0, step >= 0]


@pytest.mark.parametrize("twentieths", range(10, 20))
def test_an_overlap_of_exactly_the_threshold_matches(coco_evaluate, twentieths):
    # 20 x 10 against its left part of twentieths x 10: the overlap is twentieths / 20.
    truth, found = truth_of([[0, 0, 20, 10]]), found_of([[0, 0, twentieths, 10]])
    iou = (twentieths * 10.0) / 200.0
    matches = match_boxes(truth, found)
    expected = [iou >= threshold for threshold in IOU_THRESHOLDS]
    theirs = coco_evaluate(truth, found).evalImgs[0]["dtMatches"][:, 0] > 0
    assert theirs.tolist() == expected
    assert [bool(matches.matched[0, 0] >> bit & 1) for bit in range(10)] == expected
    outcomes = [box_definition.class_outcome(truth, found, 0, "all", threshold) for threshold in IOU_THRESHOLDS]
    assert [bool(outcome.right[0]) for outcome in outcomes] == expected


def test_half_is_enough_and_a_bit_less_is_not():
    half, less = found_of([[0, 0, 10, 10]]), found_of([[0, 0, np.nextafter(10, 0), 10]])
    truth = truth_of([[0, 0, 20, 10]])
    assert match_boxes(truth, half).matched_objects.tolist() == [0]
    assert match_boxes(truth, less).matched_objects.tolist() == [-1]
    # At the bound the whole slack is used up: as bad as a miss, but no false positive.
    result = lrp(truth, half)
    assert (result.molrp, result.loc, result.fp, result.fn) == (1.0, 0.5, 0.0, 0.0)
    assert lrp(truth, less).fp == 1.0


def test_lrp_keeps_a_score_of_exactly_the_threshold():
    truth = truth_of([[0, 0, 20, 10]])
    for score in (0.0, 0.07, 0.29, 0.57, 1.0):
        found = found_of([[0, 0, 20, 10]], [score])
        curve = lrp(truth, found, variant="exact")
        assert curve.thresholds[0, 0] == score
        assert curve.molrp == 0.0
        kept = lrp_curve(match_boxes(truth, found), "cup").true_positives
        assert kept.tolist() == [1 if level <= score else 0 for level in np.linspace(0, 1, 101)]


@pytest.mark.parametrize(("count", "kept"), [(99, 99), (100, 100), (101, 100)])
def test_a_hundred_detections_of_an_image_and_class_and_not_one_more(coco_twelve, count, kept):
    # All but the last are wrong: the only right one is the last, which the limit lets in or not.
    strays = [[500 + n % 50, 500 + n // 50, 510 + n % 50, 510 + n // 50] for n in range(count - 1)]
    truth = truth_of([[0, 0, 20, 10]])
    found = found_of([*strays, [0, 0, 20, 10]], [0.9] * (count - 1) + [0.1])
    assert len(match_boxes(truth, found)) == kept
    ours = average_precision(truth, found)
    assert ours.ar_100 == float(count <= 100)
    np.testing.assert_allclose(list(ours.summary().values()), coco_twelve(truth, found), rtol=0, atol=1e-12)


@pytest.mark.parametrize("constant", [IOU_THRESHOLDS, AREA_RANGES], ids=["overlaps", "areas"])
def test_the_bounds_cannot_be_moved(constant):
    with pytest.raises(ValueError, match="read-only"):
        constant[...] = 0.0
