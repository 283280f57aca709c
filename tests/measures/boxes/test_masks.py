"""mAP and LRP of masks: pycocotools, the definition, and the kernel from tables, kept columns and stored results."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pycocotools import mask as coco_mask
from tests.amounts import examples
from tests.measures.boxes.conftest import coco_numbers, coco_runs
from tests.measures.boxes.test_own_rules import close, conventions
from tests.strategies import random_mask

import probox
from probox import Convention, Detections, Evaluation, GroundTruth, InputError, Masks, evaluate
from probox.measures.boxes import AveragePrecisionResult, LRPResult, average_precision, box_definition, lrp, match_boxes
from probox.measures.boxes.mask_overlaps import masks_of_detections, overlaps_of_masks
from probox.measures.boxes.matching import COCO_RULES, BoxRules
from probox.measures.boxes.mean_ap import MASK_MEAN_AP
from probox.measures.boxes.optimal_lrp import MASK_OPTIMAL_LRP
from probox.measures.registry import measure_names
from probox.tables.dataset import Dataset
from probox.tables.geometry import polygon_pixels_of_boxes

CLASSES = ("cup", "dog", "tv")
IDS, WIDTHS, HEIGHTS = (3, 10, 11, 40), (20, 17, 17, 110), (16, 24, 24, 100)
BOTH = "map-mask,lrp-mask"


def blob(rng: np.random.Generator, height: int, width: int) -> np.ndarray:
    """Return a mask: with a hole, in two pieces, empty, or one of the usual shapes."""
    mask = random_mask(rng, height, width)
    kind = rng.integers(0, 8)
    if kind == 0:
        return np.zeros_like(mask)
    if kind == 1:
        mask[2:-2, 2:-2] = True
        mask[height // 3 : height // 2, width // 3 : width // 2] = False
    elif kind == 2:
        mask |= random_mask(rng, height, width)
    return mask


def perturbed(rng: np.random.Generator, mask: np.ndarray) -> np.ndarray:
    """Return the mask itself, one that touches or overlaps it, or a part of it."""
    kind = rng.integers(0, 4)
    if kind == 0:
        return mask
    if kind == 1:
        return np.roll(mask, rng.integers(-2, 3, 2), (0, 1))
    return mask & (rng.random(mask.shape) < 0.9) if kind == 2 else ~mask


@st.composite
def tables(draw: st.DrawFn) -> tuple[GroundTruth, Detections]:
    """Draw objects and detections with masks; also empty ones, crowds, ties, and detections with a box alone.

    Image 40 has areas of all sizes; elsewhere annotated areas differ from the number of pixels.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, m, flood = draw(st.integers(0, 20)), draw(st.integers(0, 12)), draw(st.sampled_from([0, 0, 0, 92, 99]))
    image_rows = np.sort(rng.choice([0, 0, 0, 1, 3], m))
    there = [blob(rng, HEIGHTS[row], WIDTHS[row]) for row in image_rows]
    masks = Masks.from_arrays(there)
    truth = GroundTruth(
        dataset=Dataset(classes=CLASSES, image_ids=IDS, widths=WIDTHS, heights=HEIGHTS),
        image_rows=image_rows,
        labels=rng.choice([0, 0, 1], m),
        boxes=np.tile([0.0, 0.0, 9.0, 9.0], (m, 1)),
        masks=masks,
        areas=masks.pixels * rng.choice([1, 1, 0.7, 8, 90], m),
        crowd=rng.random(m) < 0.25,
    )
    found_rows, found = [], []
    for _ in range(n):
        row = int(rng.choice([0, 0, 0, 1, 2, 3]))
        own = np.flatnonzero(image_rows == row)
        found_rows.append(row)
        like = there[int(rng.choice(own))] if len(own) and rng.random() < 0.8 else blob(rng, HEIGHTS[row], WIDTHS[row])
        found.append(perturbed(rng, like))
    corner = np.zeros((HEIGHTS[0], WIDTHS[0]), bool)
    corner[-1, -1] = True
    corners = rng.integers(-20, 90, (n + flood, 2)) / rng.choice([1, 5, 7], (n + flood, 1))
    scores = np.where(rng.random(n) < 0.5, rng.choice([0.0, 0.07, 0.57, 1.0], n), rng.random(n))
    masks = Masks.from_arrays([*found, *[corner] * flood])
    detections = Detections(
        classes=CLASSES,
        image_ids=np.array(IDS)[np.concatenate([found_rows, np.zeros(flood)]).astype(int)],
        boxes=np.concatenate([corners, corners + rng.integers(0, 60, (n + flood, 2)) / 5], axis=1),
        label_probs=np.zeros((n + flood, len(CLASSES))),
        labels=np.concatenate([rng.choice([0, 0, 1, 2], n), np.zeros(flood)]).astype(int),
        scores=np.concatenate([scores, np.full(flood, 0.9)]),
        masks=masks,
        has_mask=np.concatenate([rng.random(n) < 0.8, np.ones(flood, bool)]),
    )
    return truth, detections.select(rng.permutation(n + flood))


Pair = tuple[GroundTruth, Detections]


@pytest.fixture(scope="module")
def pair() -> Pair:
    """Return a set of eight images, most of them with objects, and detections of middling quality."""
    rng = np.random.default_rng(4)
    sizes = dict.fromkeys(range(1, 9), (24, 30))
    objects = []
    for image_id, size in sizes.items():
        masks = [mask for mask in (blob(rng, *size) for _ in range(4)) if mask.any()]
        objects.append((image_id, masks, [0, 1, 0, 1][: len(masks)]))
    truth = GroundTruth.from_masks(CLASSES, objects, shapes=sizes)
    rows = rng.choice(len(truth), 60)
    arrays = [perturbed(rng, truth.masks.to_array(row, 24, 30)) for row in rows]
    masks = Masks.from_arrays(arrays)
    found = Detections(
        classes=CLASSES,
        image_ids=truth.image_ids[truth.image_rows[rows]],
        boxes=np.tile([1.0, 1.0, 5.0, 5.0], (60, 1)),
        label_probs=np.eye(3)[truth.labels[rows]] * rng.random((60, 1)),
        masks=masks,
        has_mask=np.ones(60, bool),
    )
    return truth, found


# --- IoU ---


@given(tables())
@examples(60)
def test_overlaps_are_those_of_pycocotools_and_of_the_definition(drawn: Pair) -> None:
    truth, found = drawn
    rows = truth.dataset.rows_of(found.image_ids)
    masks, (labels, _) = masks_of_detections(found, truth.dataset.shapes[rows]), found.named_classes(CLASSES)
    overlaps = overlaps_of_masks(truth.dataset, rows, labels, masks, truth, truth.masks)
    ious = np.zeros((len(found), len(truth)))
    ious[overlaps.detections, overlaps.objects] = overlaps.ious
    for image, shape in enumerate(truth.dataset.shapes):
        width, height = shape.tolist()
        mine, theirs = np.flatnonzero(rows == image), np.flatnonzero(truth.image_rows == image)
        if not len(mine) or not len(theirs):
            continue
        crowd, alike = truth.crowd[theirs], labels[mine][:, None] == truth.labels[theirs]
        own = ious[np.ix_(mine, theirs)]
        sides = [coco_runs(masks, row, shape) for row in mine], [coco_runs(truth.masks, row, shape) for row in theirs]
        np.testing.assert_array_equal(own, np.where(alike, coco_mask.iou(*sides, crowd.astype(np.uint8)), 0.0))
        arrays = (
            np.array([table.to_array(row, height, width) for row in some])
            for table, some in ((masks, mine), (truth.masks, theirs))
        )
        np.testing.assert_array_equal(own, np.where(alike, box_definition.mask_overlaps(*arrays, crowd), 0.0))


def test_pixels_of_a_box_are_those_of_its_polygon_in_pycocotools() -> None:
    rng = np.random.default_rng(0)
    fifths = rng.integers(-20, 120, (600, 4)) / 5 + rng.choice([0, 0, 0.1, -0.1, 1e-9], (600, 4))
    boxes = np.concatenate([np.minimum(fifths[:, :2], fifths[:, 2:]), np.maximum(fifths[:, :2], fifths[:, 2:])], axis=1)
    masks = Masks.from_boxes(polygon_pixels_of_boxes(boxes, np.tile([18, 13], (600, 1))))
    for row, (x1, y1, x2, y2) in enumerate(boxes.tolist()):
        (runs,) = coco_mask.frPyObjects([[x1, y1, x1, y2, x2, y2, x2, y1]], 13, 18)
        np.testing.assert_array_equal(
            masks.to_array(row, 13, 18), coco_mask.decode(runs).astype(bool), err_msg=str(row)
        )


def test_a_thousand_threads_give_the_same(pair: Pair) -> None:
    one, other = (match_boxes(*pair, geometry="mask", threads=threads) for threads in (1, 1000))
    for name in ("matched", "ignored", "ious", "matched_objects"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


# --- mAP ---


@given(tables(), st.one_of(st.just(Convention()), conventions()))
@examples(80)
def test_numbers_are_those_of_pycocotools(drawn: Pair, convention: Convention) -> None:
    found = average_precision(*drawn, convention=convention, geometry="mask").summary()
    close(found, coco_numbers(*drawn, BoxRules.of(convention, drawn[0].dataset), "mask"))


@given(tables(), conventions())
@examples(4)
def test_the_definition_has_the_numbers_of_the_kernel(drawn: Pair, convention: Convention) -> None:
    rules = BoxRules.of(convention, drawn[0].dataset)
    expected = average_precision(*drawn, convention=convention, geometry="mask").summary()
    close(box_definition.coco_numbers(*drawn, rules, "mask"), expected)


def test_masks_that_fill_their_boxes_are_boxes_of_whole_pixels(pair: Pair) -> None:
    truth, found = pair
    assert found.masks is not None
    past = np.array([0.0, 0.0, 1.0, 1.0])
    boxes, there = np.maximum(found.masks.boxes, 0) + past, truth.masks.boxes + past
    filled = Masks.from_boxes(truth.masks.boxes)
    truth = dataclasses.replace(truth, boxes=there, extents=None, masks=filled, areas=filled.pixels)
    found = found.replace(boxes=boxes, extents=None, masks=None)
    masked = found.replace(masks=Masks.from_boxes((boxes - past).astype(np.int32)))
    expected = average_precision(truth, found).summary()
    assert 0.1 < expected["mAP"] < 0.9
    np.testing.assert_equal(average_precision(truth, masked, geometry="mask").summary(), expected)
    unmasked = masked.replace(masks=Masks.empty(len(found)), has_mask=np.zeros(len(found), bool), areas=None)
    np.testing.assert_equal(average_precision(truth, unmasked, geometry="mask").summary(), expected)


# --- LRP ---


@given(tables())
@examples(20)
def test_lrp_is_that_of_the_definition(drawn: Pair) -> None:
    result = lrp(*drawn, geometry="mask")
    for label in range(len(CLASSES)):
        outcome = box_definition.class_outcome(*drawn, label, "all", 0.5, geometry="mask")
        best, _ = box_definition.optimal_lrp(outcome, np.linspace(0, 1, 101))
        np.testing.assert_allclose(result.olrp[label, 0], best, rtol=0, atol=1e-12)


def test_lrp_of_two_masks_by_hand() -> None:
    truth = GroundTruth.from_masks(("cup",), [(1, [np.ones((4, 5), bool)], [0])])
    half = np.ones((4, 5), bool)
    half[0, :4] = False
    masks = Masks.from_arrays([half])
    found = Detections(classes=("cup",), image_ids=[1], boxes=[[0, 0, 1, 1]], label_probs=[[0.9]], masks=masks)
    assert evaluate(truth, found, measures=BOTH).summary() == pytest.approx({
        "mask_mAP": 0.7, "mask_AP50": 1.0, "mask_AP75": 1.0,
        "mask_moLRP": 0.4, "mask_moLRP_loc": 0.2, "mask_moLRP_fp": 0.0, "mask_moLRP_fn": 0.0,
    })  # fmt: skip


# --- evaluations ---


@given(tables(), conventions())
@examples(15)
def test_every_way_to_the_numbers_has_the_same(drawn: Pair, convention: Convention) -> None:
    truth, found = drawn
    how: dict[str, Any] = {"convention": convention, "measures": BOTH}
    whole = evaluate(truth, found, **how)
    matches = match_boxes(truth, found, convention=convention, geometry="mask")
    expected = AveragePrecisionResult.from_matches(matches).summary()
    close(expected, coco_numbers(truth, found, whole.box_rules, "mask"))
    kept = evaluate(truth, found, keep="matches", **how)
    parts = probox.merge([evaluate(truth, found, part=(k, 3), **how) for k in (3, 1, 2)])
    for result in (whole, kept, parts, probox.from_bytes(kept.to_bytes()), probox.from_bytes(whole.to_bytes())):
        np.testing.assert_equal(result.coco("mask"), expected)
        np.testing.assert_equal(result.summary(), whole.summary())
        np.testing.assert_equal(dict(result.per_class()), dict(whole.per_class()))
        np.testing.assert_equal(dict(result.per_size()), dict(whole.per_size()))
        ones = np.ones((1, len(result.dataset)), np.int64)
        for measure in (MASK_MEAN_AP, MASK_OPTIMAL_LRP):
            assert measure.resampled is not None
            drawn_numbers = measure.resampled(result, ones)
            for key, value in measure.summary(result).items():
                np.testing.assert_allclose(drawn_numbers[key], [value], rtol=0, atol=1e-12, err_msg=key)
    np.testing.assert_equal(whole.mask_lrp.olrp, LRPResult.from_matches(matches).olrp)
    for image_id in truth.image_ids[:2].tolist():
        alone = evaluate(truth.select_images([image_id]), found, **how)
        for key, value in alone.summary().items():
            assert whole.per_image()[image_id][key] == pytest.approx(value, abs=1e-12, nan_ok=True)


@given(tables())
@examples(10)
def test_boxes_keep_their_numbers_beside_masks(drawn: Pair) -> None:
    truth, found = drawn
    plain = found.replace(masks=None)
    both = evaluate(truth, found, measures=f"map,lrp,{BOTH}")
    expected = evaluate(truth, plain, measures="map,lrp").summary()
    np.testing.assert_equal({key: both.summary()[key] for key in expected}, expected)
    np.testing.assert_equal(both.coco(), evaluate(truth, plain, measures="map").coco())
    kept = evaluate(truth, found, measures=f"map,lrp,{BOTH}", keep="matches")
    for result in (kept, probox.from_bytes(kept.to_bytes())):
        np.testing.assert_equal(result.summary(), both.summary())


def test_a_part_of_an_evaluation_is_the_evaluation_of_a_part(pair: Pair) -> None:
    truth, found = pair
    result = evaluate(truth, found, measures=BOTH)
    assert 0.1 < result.summary()["mask_mAP"] < 0.9
    some = truth.image_ids[2:5]
    assert result.select_images(some).summary() == evaluate(truth.select_images(some), found, measures=BOTH).summary()
    high = evaluate(truth, found, measures=BOTH, label_threshold=0.5)
    assert result.at_threshold(0.5).summary() == high.summary() != result.summary()
    assert "mask mAP, scores > 0.5" in str(high)
    kept = result.keeping(result.detections.scores > 0.3)
    assert kept.summary() == evaluate(truth, found.select(found.scores > 0.3), measures=BOTH).summary()
    halves = [result.select_images(truth.image_ids[rows]) for rows in (slice(4, None), slice(4))]
    assert (halves[0] + halves[1]).summary() == result.summary()
    assert result.best_threshold("map-mask").now == result.summary()["mask_mAP"]


def test_images_of_an_evaluator_in_any_order(pair: Pair) -> None:
    truth, found = pair
    for measures in (BOTH, "all"):
        evaluator = probox.Evaluator(CLASSES, measures=measures)
        for image_id in truth.image_ids[::-1].tolist():
            evaluator.update(truth.select_images([image_id]), found.select(found.image_ids == image_id))
        np.testing.assert_equal(evaluator.result().summary(), evaluate(truth, found, measures=measures).summary())


def test_intervals_and_differences_of_a_resampling(pair: Pair) -> None:
    truth, found = pair
    result = evaluate(truth, found, measures=BOTH)
    weights = np.array([[2, 0, 1, 1, 0, 3, 1, 0]])
    copies = box_definition.copied_images(result.mask_matches, result.object_images, weights[0])
    expected = AveragePrecisionResult.from_matches(copies)
    drawn = MASK_MEAN_AP.resampled(result, weights)  # type: ignore[misc]
    np.testing.assert_allclose(drawn["mask_mAP"], expected.map, rtol=0, atol=1e-12)
    interval = result.intervals(replicates=60)["mask_mAP"]
    assert interval.low < interval.value == result.summary()["mask_mAP"] < interval.high
    everything = evaluate(truth, found, measures="all").intervals("all", replicates=3)
    assert everything.columns.keys() >= {"mask_mAP", "mask_moLRP", "mAP"}
    worse = evaluate(truth, found.replace(scores=1 - found.scores), measures=BOTH)
    compared = probox.compare({"a": result, "b": worse}, replicates=60, per_class=True)
    (couple,) = compared.pairs
    assert couple.columns["mask_mAP"].first.value == result.summary()["mask_mAP"]
    assert couple.columns["mask_mAP"].second.value == worse.summary()["mask_mAP"]
    assert set(couple.classes) == {"mask_mAP", "mask_moLRP"}
    assert couple.classes["mask_mAP"]["cup"].first.value == result.per_class()["cup"]["mask_mAP"]
    assert "mask" in couple.conclusion


def test_a_heatmap_counts_as_its_pixels_above_one_half(pair: Pair, tmp_path: Path) -> None:
    truth, found = pair
    assert found.masks is not None
    shapes = truth.dataset.shapes[truth.dataset.rows_of(found.image_ids)].tolist()
    rows = [found.masks.to_array(row, height, width) for row, (width, height) in enumerate(shapes)]
    maps = [np.where(mask, np.float32(0.51), np.float32(0.49)) for mask in rows]
    mapped = found.replace(heatmaps=maps, masks=None)
    expected = evaluate(truth, found.replace(areas=found.masks.pixels), measures=BOTH)
    for result in (evaluate(truth, mapped, measures=BOTH), evaluate(truth, mapped, measures="all")):
        np.testing.assert_equal(dict(result.coco("mask")), dict(expected.coco("mask")))
        assert result.summary()["mask_moLRP"] == expected.summary()["mask_moLRP"]
    assert average_precision(truth, mapped, geometry="mask").map == expected.summary()["mask_mAP"]
    probox.write_parquet(tmp_path / "found.parquet", mapped)
    probox.write_parquet(tmp_path / "truth.parquet", truth)
    stored = evaluate(tmp_path / "truth.parquet", tmp_path / "found.parquet", measures=BOTH, part="1/1")
    assert stored.summary() == expected.summary()


# --- what is missing ---


def test_masks_outside_the_image_are_named() -> None:
    truth = GroundTruth.from_boxes(["cup"], {7: (20, 16)}, [7], [[1, 1, 9, 9]], [0])
    wide = Masks.from_boxes(np.array([[0, 0, 20, 5]], np.int32))
    found = Detections.from_scores([[1, 1, 9, 9]], [0.9], [0], classes=["cup"], image_ids=7).replace(masks=wide)
    for call in (
        lambda: evaluate(truth, found, measures="map-mask"),
        lambda: match_boxes(truth, found, geometry="mask"),
    ):
        with pytest.raises(InputError, match="expected a mask in an image of 20 x 16 pixels"):
            call()
    assert len(match_boxes(truth, found.replace(image_ids=[8]), geometry="mask")) == 0


def test_results_with_and_without_masks_are_compared_in_any_order(pair: Pair) -> None:
    truth, found = pair
    plain = found.replace(masks=None)
    with_masks, without = (evaluate(truth, each, measures="all") for each in (found, plain))
    for results in ({"a": with_masks, "b": without}, {"a": without, "b": with_masks}):
        (couple,) = probox.compare(results, replicates=20).pairs
        assert "mAP" in couple.columns
        assert "mask_mAP" not in couple.columns


def test_a_metric_of_masks_begins_without_images() -> None:
    metric = probox.PDQ(["cup"], measures="map-mask")
    mask = np.zeros((1, 16, 20), bool)
    mask[:, 2:9, 3:12] = True
    boxes = [[3.0, 2.0, 11.0, 8.0]]
    metric.update(
        [{"boxes": boxes, "scores": [0.9], "labels": [0], "masks": mask}],
        [{"boxes": boxes, "labels": [0], "masks": mask}],
    )
    assert metric.result().summary()["mask_mAP"] == pytest.approx(1.0)
    truth = GroundTruth.from_boxes(["cup"], {7: (20, 16)}, [7], [[1, 1, 9, 9]], [0])
    none = Detections.from_scores(np.zeros((0, 4)), [], [], classes=["cup"], image_ids=7)
    assert evaluate(truth, none, measures="map-mask").summary()["mask_mAP"] == 0.0


def test_detections_without_masks_are_named(pair: Pair) -> None:
    truth, found = pair
    plain = found.replace(masks=None)
    message = "map-mask and lrp-mask need masks, which the detections do not have; give detections with masks"
    with pytest.raises(InputError, match=message):
        evaluate(truth, plain, measures=f"map,{BOTH}")
    with pytest.raises(InputError, match="map-mask needs masks"):
        evaluate(truth, plain, measures="map-mask", keep="matches")
    evaluator = probox.Evaluator(CLASSES, measures="map-mask")
    evaluator.update(truth, plain)
    with pytest.raises(InputError, match="map-mask needs masks"):
        evaluator.result()
    with pytest.raises(InputError, match="expected detections with masks"):
        average_precision(truth, plain, geometry="mask")
    with pytest.raises(InputError, match="expected geometry to be 'box' or 'mask', got 'masks'"):
        average_precision(truth, found, geometry="masks")  # type: ignore[arg-type]


def test_all_metrics_leave_masks_out_without_a_note(pair: Pair) -> None:
    truth, found = pair
    plain = found.replace(masks=None)
    result = evaluate(truth, plain, measures="all")
    evaluator = probox.Evaluator(CLASSES, measures="all")
    evaluator.update(truth, plain)
    for each in (result, evaluator.result(), probox.from_bytes(evaluator.result().to_bytes())):
        assert not {"map-mask", "lrp-mask"} & {*each.measures}
        assert not any("mask" in key for key in each.summary())
        assert each.detections.areas is None
    assert "mask_mAP" in evaluate(truth, found, measures="all").summary()
    assert not any("mask" in key for key in result.intervals("all", replicates=2))
    few = result.select_images(truth.image_ids[:2])
    diagnosis = few.diagnose(thresholds_for=measure_names(), replicates=2)
    assert {best.measure for best in diagnosis.best_thresholds} == {*measure_names()} - {"map-mask", "lrp-mask"}


def test_results_without_overlaps_say_so(pair: Pair) -> None:
    result = evaluate(*pair, measures="map")
    for call in (lambda: result.coco("mask"), lambda: result.summary_of(MASK_MEAN_AP)):
        with pytest.raises(InputError, match="metrics of masks were not measured; evaluate with measures="):
            call()
    with pytest.raises(InputError, match="map-mask needs overlaps of masks, which were not computed"):
        result.intervals("map-mask")
    with pytest.raises(InputError, match="map-mask was not measured"):
        result.best_threshold("map-mask")
    kept = evaluate(*pair, measures="map", keep="matches")
    with pytest.raises(InputError, match="mAP and LRP of masks were not kept"):
        kept.coco("mask")


def test_truth_of_boxes_is_named(pair: Pair) -> None:
    truth, found = pair
    filled = truth.replace(masks=Masks.from_boxes(truth.masks.boxes))

    def told(result: Evaluation) -> list[str]:
        return [str(note) for note in result.comparability]

    assert told(evaluate(truth, found, measures="map-mask")) == []
    assert told(evaluate(filled, found, measures="map-mask")) == ["box truth instead of masks"]
    assert told(evaluate(truth, found, measures="map-mask", box_truth=True)) == ["box truth instead of masks"]
    assert told(evaluate(filled, found, measures="map")) == []


# --- stored overlaps ---


FORGED = {
    "a pair of a missing row": ("objects", -1, "overlaps.object[0]: no such row"),
    "an IoU of 0": ("ious", 0.0, "overlaps.iou[0]: expected above 0, at most 1"),
    "an IoU above 1": ("ious", 1.5, "overlaps.iou[0]: expected above 0, at most 1"),
    "a pair across images": ("detections", 59, "overlaps.detection[0]: expected a detection in the image"),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_overlaps_are_refused(pair: Pair, name: str) -> None:
    column, value, message = FORGED[name]
    result = evaluate(*pair, measures="map-mask")
    values = getattr(result.overlaps, column).copy()
    values[0] = value
    forged = dataclasses.replace(result, overlaps=result.overlaps.replace(**{column: values}))
    with pytest.raises(InputError) as raised:
        probox.from_bytes(forged.to_bytes())
    assert message in str(raised.value)


def test_overlaps_and_areas_belong_to_metrics_of_masks(pair: Pair) -> None:
    result = evaluate(*pair, measures="map-mask")
    order = np.arange(len(result.overlaps))
    order[:2] = 1, 0
    negative = result.detections.replace(areas=-result.detections.areas)  # type: ignore[operator]
    for changes, message in (
        ({"measures": ("map",)}, "expected no overlaps where no metric of masks was measured"),
        ({"detections": result.detections.replace(areas=None)}, "expected areas of masks"),
        ({"detections": negative}, "detections.area[0]: expected a finite number, at least 0"),
        ({"overlaps": result.overlaps.take(order)}, "expected each pair once, by detection, then object"),
    ):
        with pytest.raises(InputError) as raised:
            probox.from_bytes(dataclasses.replace(result, **changes).to_bytes())  # type: ignore[arg-type]
        assert message in str(raised.value)


# --- real masks ---


def test_real_masks_have_pycocotools_numbers(coco_dir: Path) -> None:
    truth = probox.read_truth(coco_dir / "val2017_masks_206.json")
    truth = truth.select_images(truth.image_ids[:14])
    rng = np.random.default_rng(0)
    masks, rows = [], np.repeat(np.flatnonzero(truth.image_rows < 14), 2)
    for row in rows:
        width, height = truth.dataset.shapes[truth.image_rows[row]].tolist()
        moved = np.roll(truth.masks.to_array(row, height, width), rng.integers(-3, 4, 2), (0, 1))
        moved[rng.integers(0, height)] = False
        masks.append(moved)
    found = Detections(
        classes=truth.classes,
        image_ids=truth.image_ids[truth.image_rows[rows]],
        boxes=truth.boxes[rows],
        label_probs=np.eye(len(truth.classes))[truth.labels[rows]] * rng.random((len(rows), 1)),
        masks=Masks.from_arrays(masks),
    )
    result = evaluate(truth, found, measures="map-mask").coco("mask")
    assert 0.3 < result["mAP"] < 0.9
    assert truth.crowd[rows].any()
    close(result, coco_numbers(truth, found, COCO_RULES, "mask"))
