"""Average precision in plain NumPy: both rules by their words, every reading by hand, the sum by the measure itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from probox import Detections, GroundTruth
from probox.errors import InputError
from probox.formats import read_truth
from probox.measures.boxes import average_precision
from probox_experiments import Run, duplicates_order, false_positions, matching_rule, pixel_aligned, square_scene
from probox_experiments.claims import Claim
from probox_experiments.figures import style
from probox_experiments.paper.closed_form import duplicates_map
from probox_experiments.paper.duplicates import (
    DUPLICATES_ORDER,
    ORDERS,
    claims_of_duplicates_order,
    keep_distinct,
)
from probox_experiments.paper.matching_rule import (
    MATCHING_RULE,
    SCENES,
    after_the_last,
    algorithm_1,
    claims_of_matching_rule,
    coco_rule,
    find_hits,
    highest_from_there,
    mean_precision,
    without_crowds,
)
from probox_experiments.paper.misses import (
    boxes_beside,
    claims_of_false_positions,
    mean_anywhere,
)
from probox_experiments.synthetic import SimulatedDetector, crowded_truth

ONE_PRESET = Run(presets=["reference"])


def some_scene(seed: int) -> tuple[GroundTruth, Detections]:
    """Return crowded images with detections of two classes, of equal and of different scores, and of other images."""
    truth = crowded_truth(12, in_all=48, seed=seed)
    rng = np.random.default_rng(seed)
    truth = truth.replace(labels=rng.integers(0, 2, len(truth)).astype(np.int32))
    detector = SimulatedDetector(corner_variance=9.0, detections_per_object=3, order="shuffled", false_per_image=5)
    found = detector.detect(truth, seed=seed)
    images = np.where(rng.random(len(found)) < 0.05, 99, found.image_ids)
    return truth, found.replace(scores=rng.integers(1, 6, len(found)) / 5, image_ids=images)


@pytest.mark.parametrize("seed", range(3))
def test_mean_precision_is_map(seed: int) -> None:
    truth, found = some_scene(seed)
    assert mean_precision(find_hits(truth, found, coco_rule)) == pytest.approx(
        average_precision(truth, found).map, abs=1e-12
    )


def test_more_than_a_hundred_detections_do_not_take_part() -> None:
    truth = crowded_truth(60, in_all=120)
    found = SimulatedDetector(detections_per_object=2, corner_variance=1.0).detect(truth)
    hits = find_hits(truth, found, coco_rule)
    assert mean_precision(hits) == pytest.approx(average_precision(truth, found).map, abs=1e-12)
    assert [shown.shape[1] for shown, _ in hits.by_class()] == [200]


@pytest.mark.parametrize("seed", range(20))
def test_rules_do_what_their_words_say(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ious = np.round(rng.random((6, 4)), 1)  # tenths: with ties, and exactly at thresholds
    thresholds = np.array([0.3, 0.5, 0.9])
    by_coco, by_paper = coco_rule(ious, thresholds), algorithm_1(ious, thresholds)
    for t, threshold in enumerate(thresholds):
        free, unmatched = [0, 1, 2, 3], [0, 1, 2, 3]
        for row in range(6):
            able = [column for column in free if ious[row, column] >= threshold]
            assert by_coco[t, row] == bool(able)
            if able:
                free.remove(max(able, key=lambda column: (ious[row, column], column)))
            star = max(range(4), key=lambda column: (ious[row, column], column))
            hit = ious[row, star] > threshold and star in unmatched
            assert by_paper[t, row] == hit
            if hit:
                unmatched.remove(star)
        assert set(free) <= set(unmatched)  # whatever Algorithm 1 gives away, COCO's rule does too


def test_precision_is_read_where_it_should_be() -> None:
    hits = np.array([[True, False, False, True, False, True, False]])  # of four objects
    high, last = highest_from_there(hits, 4)[0], after_the_last(hits, 4)[0]
    assert high[[0, 25, 26, 50, 51, 75, 76, 100]].tolist() == pytest.approx([1, 1, 0.5, 0.5, 0.5, 0.5, 0, 0])
    assert last[[0, 25, 26, 50, 51, 75, 76]].tolist() == pytest.approx([1 / 3, 1 / 3, 2 / 5, 2 / 5, 3 / 7, 3 / 7, 0])
    nothing = np.zeros((1, 0), bool)
    assert not highest_from_there(nothing, 2).any()
    assert not after_the_last(nothing, 2).any()


def test_equal_scores_go_by_image_or_by_submission() -> None:
    truth = crowded_truth(2, in_all=4, image=400, seed=5)
    found = SimulatedDetector(detections_per_object=2, order="rounds").detect(truth)
    hits = find_hits(truth, found, coco_rule)
    assert [shown[0].tolist() for shown, _ in hits.by_class()] == [[True, True, False, False] * 2]
    assert [shown[0].tolist() for shown, _ in hits.by_class("submission")] == [[True] * 4 + [False] * 4]


# --- the experiments made of it ---------------------------------------------------------------------------------------


def results(claims: list[Claim]) -> list[bool | None]:
    return [claim.holds for claim in claims]


def test_small_scenes_alone_are_judged() -> None:
    table = matching_rule(square_scene(), crowds=(), repeats=0, run=ONE_PRESET)
    assert results(claims_of_matching_rule(table)) == [True] * 5 + [None, True, None]
    assert table["scene"].tolist() == list(SCENES)
    assert table["differ"].tolist() == [1, 2, 1, 0, 0]
    with style():
        assert len(MATCHING_RULE.draw(table).axes) == 2


def test_an_evaluator_that_follows_the_paper_to_the_letter_is_found_out() -> None:
    table = matching_rule(square_scene(), crowds=(4, 48), repeats=2, run=ONE_PRESET)
    assert results(claims_of_matching_rule(table)) == [True] * 8
    printed = table.replace(mAP=table["mAP_algorithm_1"])
    assert results(claims_of_matching_rule(printed)) == [False] * 3 + [True, True, False, True, True]
    swapped = table.replace(mAP_coco=table["mAP_algorithm_1"], mAP_algorithm_1=table["mAP_coco"])
    assert results(claims_of_matching_rule(swapped)) == [False] * 3 + [True, True] + [False] * 3
    once_ahead = table.replace(ahead=np.arange(len(table)) == 4)
    assert results(claims_of_matching_rule(once_ahead)) == [True] * 6 + [False, True]


def test_crowds_hold_at_least_as_many_as_are_wanted() -> None:
    truth = crowded_truth(5, in_all=12, side=10, image=40)
    assert np.bincount(truth.image_rows).tolist() == [5, 5, 5]
    assert (truth.boxes[:, 2:] - truth.boxes[:, :2] == 10).all()
    assert truth.masks.boxes.min() >= 0
    assert truth.masks.boxes.max() <= 39
    assert crowded_truth(5, seed=1).boxes.tolist() != crowded_truth(5, seed=2).boxes.tolist()
    with pytest.raises(InputError, match="at least one object"):
        crowded_truth(0)


def test_only_objects_that_can_be_told_apart_are_left() -> None:
    # The second lies on the first by 2/3, the third by a quarter; the fourth is another class, the fifth a crowd.
    boxes = np.array(
        [[0, 0, 9, 9], [2, 0, 11, 9], [6, 0, 15, 9], [0, 0, 9, 9], [30, 0, 39, 9], [60, 0, 69, 9]], np.int32
    )
    truth = square_scene(50, 100, classes=2, extra=boxes)
    truth = truth.replace(labels=[0, 0, 0, 0, 1, 0, 0], crowd=[False] * 5 + [True, False], ids=np.arange(7))
    assert without_crowds(truth).ids.tolist() == [0, 1, 2, 3, 4, 6]
    assert keep_distinct(truth, 100).ids.tolist() == [0, 1, 3, 4, 6]
    assert keep_distinct(truth, 2).ids.tolist() == [0, 1, 4]
    annotated = truth.replace(boxes=truth.boxes + np.array([0, 0, 0.5, 0.5]), extents=None)
    assert (keep_distinct(annotated, 100).boxes == keep_distinct(truth, 100).boxes).all()


def test_closed_forms() -> None:
    truth = square_scene(20, 100, extra=[[2, 2, 21, 21]])
    assert duplicates_map(truth, 3, "objects") == pytest.approx((51 + 50 * 2 / 4) / 101)
    assert duplicates_map(truth, 3, "rounds") == 1.0
    shuffled = duplicates_order(truth, times=(3,), repeats=1, run=ONE_PRESET).where(order="shuffled")
    assert len(shuffled)
    assert np.isnan(shuffled["expected"]).all()
    # Three objects in two images, two detections each: true, true, false, false, true, false.
    several = GroundTruth.from_boxes(
        ["thing"], {1: (100, 100), 2: (100, 100)}, [1, 1, 2], [[0, 0, 9, 9], [50, 50, 59, 59], [0, 0, 9, 9]], [0, 0, 0]
    )
    assert duplicates_map(several, 2, "rounds") == pytest.approx((67 * 1 + 34 * 3 / 5) / 101)
    assert duplicates_map(several, 2, "objects") == pytest.approx((34 * 1 + 33 * 2 / 3 + 34 * 3 / 5) / 101)


def test_orders_that_were_not_tried_are_not_judged() -> None:
    table = duplicates_order(crowded_truth(3, in_all=6, image=400), times=(1,), repeats=1, run=Run(presets=["paper"]))
    assert "PDQ" not in table
    assert results(claims_of_duplicates_order(table)) == [True] * 5 + [None, True]
    with style():
        assert len(DUPLICATES_ORDER.draw(table).axes) == 2


def test_shuffled_lies_between() -> None:
    table = duplicates_order(crowded_truth(6, in_all=24, image=400), times=(3,), repeats=2, run=ONE_PRESET)
    assert results(claims_of_duplicates_order(table)) == [True] * 7
    for order in ORDERS[:2]:
        moved = np.where(table["order"] == order, table.where(order="shuffled")["mAP"].mean(), table["mAP"])
        assert claims_of_duplicates_order(table.replace(mAP=moved))[5].holds is False


@pytest.mark.parametrize("times", [(0,), (2, 101)])
def test_more_detections_than_map_takes_are_refused(times: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="expected 1 to 100 detections per object"):
        duplicates_order(times=times)


def test_real_objects(coco_dir: Path) -> None:
    real = read_truth(coco_dir / "val2017_masks_206.json")
    assert all(results(claims_of_duplicates_order(duplicates_order(real, times=(2,), repeats=1, run=ONE_PRESET))))
    assert all(results(claims_of_matching_rule(matching_rule(real, crowds=(1, 48), repeats=2))))
    assert len(pixel_aligned(without_crowds(real))) == 1786 - 21


def test_false_boxes_have_no_pixel_of_the_object() -> None:
    there = np.array([75, 75, 124, 124], np.int32)
    canvas = np.zeros((200, 200), np.int64)
    boxes = boxes_beside(there, 4000, 200, np.random.default_rng(0))
    assert len(boxes) == 4000
    for x1, y1, x2, y2 in boxes.tolist():
        assert 0 <= x1 <= x2 < 200
        assert 0 <= y1 <= y2 < 200
        canvas[y1 : y2 + 1, x1 : x2 + 1] += 1
    assert canvas[75:125, 75:125].sum() == 0
    # All around it, up to its very edge.
    assert min(canvas[74, 100], canvas[125, 100], canvas[100, 74], canvas[100, 125]) > 0


def test_the_mean_over_all_places() -> None:
    assert mean_anywhere(0) == (1.0, 0.0)
    mean, deviation = mean_anywhere(2)
    assert mean == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert deviation == pytest.approx(np.std([1, 1 / 2, 1 / 3]))


def test_places_are_what_they_are_called() -> None:
    table = false_positions(counts=(3,), repeats=12, run=Run(presets=["reference"]))
    assert table.where(place="first")["before"].tolist() == [0]
    assert table.where(place="last")["before"].tolist() == [3]
    assert set(table.where(place="anywhere")["before"]) == {0, 1, 2, 3}


def test_a_right_one_that_is_always_early_is_found_out() -> None:
    table = false_positions(counts=(0, 4), repeats=30, run=Run(presets=["reference"]))
    mean = claims_of_false_positions(table)[3]
    assert mean.holds
    # As if it never stood behind more than one of the four.
    kept = table.take((table["place"] != "anywhere") | (table["before"] < 2))
    assert not claims_of_false_positions(kept)[3].holds


@pytest.mark.parametrize("wrong", [{"counts": (100,)}, {"counts": (-1,)}, {"side": 150}, {"side": 0}])
def test_scenes_that_cannot_be_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InputError, match="expected"):
        false_positions(**wrong)  # type: ignore[arg-type]
