"""What mAP and LRP follow from, in few bytes: the same bits as from all matches, in any order of parts."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.amounts import examples
from tests.evaluation.worlds import many_images
from tests.strategies import random_world

from probox import Detections, Evaluation, GroundTruth, evaluate
from probox.evaluation.box_columns import BoxColumns, merge_boxes


def columns_of(result: Evaluation) -> BoxColumns:
    return BoxColumns.of(result.box_matches, result.objects.image_rows)


def assert_same(one: Any, other: Any) -> None:
    names = [field.name for field in dataclasses.fields(one) if field.name != "tables"]
    names += ["precision", "score"] if hasattr(one, "tables") else []
    for name in names:
        mine, theirs = getattr(one, name), getattr(other, name)
        assert getattr(mine, "dtype", None) == getattr(theirs, "dtype", None), name
        np.testing.assert_array_equal(mine, theirs, err_msg=name)


def odd_world() -> tuple[GroundTruth, Detections]:
    """A detection whose best object is a large one, and whose best small one is another; and one right only so."""
    boxes = [[10, 10, 60, 60], [10, 10, 60, 45], [100, 10, 160, 60]]
    truth = GroundTruth.from_boxes(["cup"], {1: (200, 100)}, [1, 1, 1], boxes, [0] * 3)
    truth = truth.replace(areas=[9_000, 500, 9_000])
    found = Detections(
        classes=["cup"],
        image_ids=[1] * 4,
        boxes=[[10, 10, 60, 58], [10, 10, 60, 60], [100, 10, 160, 59], [0, 0, 3, 3]],
        label_probs=np.array([[0.9], [0.8], [0.7], [0.6]]),
    )
    return truth, found


@given(st.integers(0, 2**32 - 1))
@examples(60)
def test_numbers_are_those_of_all_matches(seed: int) -> None:
    result = evaluate(*random_world(seed, heatmaps=False), measures="map,lrp")
    columns = columns_of(result)
    assert_same(columns.average_precision(result.classes), result.average_precision)
    assert_same(columns.lrp(result.classes), result.lrp)


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_numbers_of_many_images(seed: int, single: bool) -> None:
    result = evaluate(*many_images(seed, single=single), measures="map,lrp")
    columns = columns_of(result)
    assert columns.scores.dtype == (np.float32 if single else np.float64)
    assert_same(columns.average_precision(result.classes), result.average_precision)
    assert_same(columns.lrp(result.classes), result.lrp)


def test_classes_with_many_detections_go_some_overlaps_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    result = evaluate(*many_images(1), measures="map,lrp")
    columns = columns_of(result)
    monkeypatch.setattr("probox.evaluation.box_columns._MANY", 10)
    monkeypatch.setattr("probox.evaluation.box_columns._AT_ONCE", 7)
    assert_same(columns.average_precision(result.classes), result.average_precision)
    assert_same(columns.lrp(result.classes), result.lrp)


def test_overlaps_that_differ_between_sizes() -> None:
    result = evaluate(*odd_world(), measures="map,lrp")
    columns = columns_of(result)
    assert len(columns.odd_rows)
    assert_same(columns.lrp(result.classes), result.lrp)
    matches = columns.box_matches(result.classes)
    right = (result.box_matches.matched & ~result.box_matches.ignored) & 1 == 1
    np.testing.assert_array_equal(matches.ious[right], result.box_matches.ious[right])


@pytest.mark.parametrize("seed", range(6))
def test_parts_join_in_any_order(seed: int) -> None:
    truth, found = many_images(seed)
    result = evaluate(truth, found, measures="map,lrp")
    ids, rng = result.dataset.image_ids, np.random.default_rng(seed)
    owner = rng.integers(0, 5, len(ids))
    order = rng.permutation(5)
    parts = [columns_of(result.select_images(ids[owner == number])) for number in order]
    together = np.concatenate([ids[owner == number] for number in order])
    assert_same(merge_boxes(parts, np.argsort(together)), columns_of(result))


def test_odd_overlaps_go_along() -> None:
    result = evaluate(*odd_world(), measures="map,lrp")
    first = columns_of(result)
    other = columns_of(evaluate(*many_images(1), measures="map,lrp"))
    joined = merge_boxes([other, first], np.concatenate([[len(other.counts)], np.arange(len(other.counts))]))
    assert joined.odd_rows[: len(first.odd_rows)].tolist() == first.odd_rows.tolist()
    assert joined.overlaps[: len(first.overlaps)].tolist() == first.overlaps.tolist()


def test_matches_come_back_but_for_who_they_are() -> None:
    matches = evaluate(*many_images(3), measures="map").box_matches
    again = BoxColumns.of(matches, np.repeat(0, 0)).box_matches(matches.classes)
    for name in ("image_rows", "labels", "scores", "ranks", "matched", "ignored"):
        np.testing.assert_array_equal(getattr(again, name), getattr(matches, name), err_msg=name)


def test_a_detection_takes_about_ten_bytes() -> None:
    columns = columns_of(evaluate(*many_images(0, 400, single=True), measures="map"))
    assert columns.bytes / len(columns) < 12


@pytest.mark.parametrize(("classes", "kind"), [(256, np.uint8), (257, np.uint16)])
def test_classes_take_no_more_than_they_need(classes: int, kind: Any) -> None:
    names = [f"class {number}" for number in range(classes)]
    truth = GroundTruth.from_boxes(names, {1: (50, 50)}, [1], [[5, 5, 30, 30]], [classes - 1])
    probs = np.zeros((1, classes))
    probs[0, classes - 1] = 0.75
    found = Detections(classes=names, image_ids=[1], boxes=[[5, 5, 30, 30]], label_probs=probs)
    result = evaluate(truth, found, measures="map,lrp")
    columns = columns_of(result)
    assert columns.labels.dtype == kind
    assert columns.average_precision(result.classes).map == result.average_precision.map == pytest.approx(1.0)


def test_nothing_at_all() -> None:
    truth = GroundTruth.from_boxes(["cup"], {1: (9, 9)}, [], np.zeros((0, 4)), [])
    none = Detections(classes=["cup"], image_ids=[], boxes=np.zeros((0, 4)), label_probs=np.zeros((0, 1)))
    result = evaluate(truth, none, measures="map,lrp")
    columns = columns_of(result)
    assert_same(columns.average_precision(result.classes), result.average_precision)
    assert_same(columns.lrp(result.classes), result.lrp)
