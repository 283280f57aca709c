"""Matching by hand-made examples, and what `BoxMatches` promises."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from pycocotools import mask as coco_mask
from tests.measures.boxes.conftest import found_of, truth_of

from probox import Detections, GroundTruth, InputError
from probox.measures.boxes import average_precision, box_definition, match_boxes


def test_overlaps_are_pycocotools_to_the_last_bit():
    random = np.random.default_rng(5)
    corners, sizes = random.uniform(0, 50, (400, 2)), random.uniform(0, 40, (400, 2))
    xywh = np.concatenate([corners, sizes], axis=1)
    boxes = np.concatenate([corners, corners + sizes], axis=1)
    truth = dataclasses.replace(
        truth_of(boxes[:30]), extents=sizes[:30], areas=sizes[:30].prod(axis=1), crowd=np.arange(30) % 5 == 0
    )
    found = dataclasses.replace(found_of(boxes[300:], np.linspace(1, 0, 100)), extents=sizes[300:])
    expected = coco_mask.iou(xywh[300:], xywh[:30], truth.crowd.astype(np.uint8))
    np.testing.assert_array_equal(box_definition.overlaps(xywh[300:], xywh[:30], truth.crowd), expected)
    matches = match_boxes(truth, found)
    rows = np.flatnonzero(matches.matched_objects >= 0)
    assert len(rows) > 20
    np.testing.assert_array_equal(matches.ious[rows, 0], expected[matches.numbers[rows], matches.matched_objects[rows]])


def test_the_higher_score_takes_the_object_and_the_overlap_is_kept():
    matches = match_boxes(
        truth_of([[0, 0, 100, 100]]), found_of([[0, 0, 100, 100], [0, 0, 100, 80]], scores=[0.3, 0.9])
    )
    assert matches.numbers.tolist() == [1, 0]
    assert matches.ranks.tolist() == [0, 1]
    assert matches.scores.tolist() == [0.9, 0.3]
    assert matches.matched_objects.tolist() == [0, -1]
    # IoU 0.8 is enough for seven thresholds; at the other three the second detection gets the object.
    assert matches.matched[:, 0].tolist() == [0b0001111111, 0b1110000000]
    assert matches.ious[0, 0] == 0.8
    assert np.isnan(matches.ious[1, 0])


def test_an_undefined_overlap_matches_at_every_threshold_as_in_coco(coco_evaluate):
    """The areas of two tiny boxes underflow to 0, so that their IoU is 0 / 0."""
    tiny = np.array([[1e-200, 1e-200]])
    truth = dataclasses.replace(truth_of([[0, 0, 0, 0]], images=[1]), extents=tiny, areas=[5.0])
    found = dataclasses.replace(found_of([[0, 0, 0, 0]], images=[1]), extents=tiny)
    matches = match_boxes(truth, found)
    assert matches.matched[0, 0] == (1 << 10) - 1
    expected = coco_evaluate(truth, found)
    assert expected.stats[0] == pytest.approx(average_precision(truth, found).map, abs=1e-15)
    assert expected.stats[0] > 0.99


def test_the_order_of_the_table_is_that_of_ties_only():
    rng = np.random.default_rng(2)
    low = rng.integers(0, 400, (40, 2))
    boxes, classes = np.concatenate([low, low + 60], axis=1), rng.integers(0, 3, 40)
    truth = truth_of(boxes, classes.tolist(), [1] * 20 + [2] * 20)
    rows = rng.integers(0, 40, 300)
    moved, images = boxes[rows] + rng.normal(0, 5, (300, 1)), rng.integers(1, 3, 300)
    found = found_of(moved, np.round(rng.random(300), 2), classes[rows].tolist(), images.tolist())
    order = np.argsort(-found.scores, kind="stable")
    one, other = match_boxes(truth, found), match_boxes(truth, found[order])
    for name in ("image_rows", "labels", "scores", "ranks", "matched", "ignored", "ious", "matched_objects"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_a_crowd_takes_any_number_and_only_when_nothing_else_is_left():
    truth = truth_of([[0, 0, 300, 300], [10, 10, 60, 60]], crowd=[True, False])
    found = found_of([[10, 10, 60, 60], [100, 100, 150, 150], [200, 200, 250, 250]], scores=[0.9, 0.8, 0.7])
    matches = match_boxes(truth, found)
    assert matches.matched_objects.tolist() == [1, 0, 0]
    assert matches.matched[:, 0].tolist() == [0b1111111111] * 3
    assert matches.ignored[:, 0].tolist() == [0, 0b1111111111, 0b1111111111]
    assert matches.ious[:, 0].tolist() == [1, 1, 1]
    assert matches.objects_per_class().tolist() == [[1, 0, 1, 0], [0] * 4, [0] * 4]


def test_the_stated_width_counts_not_the_difference_of_corners():
    x, w = 0.1, 0.2
    assert (x + w) - x != w
    truth = truth_of([[x, 0, x + w, 1]])
    exact = dataclasses.replace(truth, extents=[[w, 1.0]])
    found = dataclasses.replace(found_of([[x, 0, x + w, 1]], [0.5]), extents=[[w, 1.0]])
    expected = coco_mask.iou([[x, 0, w, 1]], [[x, 0, w, 1]], [0])[0, 0]
    assert match_boxes(exact, found).ious[0, 0] == expected
    assert match_boxes(truth, found_of([[x, 0, x + w, 1]], [0.5])).ious[0, 0] != expected


def test_classes_meet_by_name():
    truth = truth_of([[0, 0, 50, 50], [100, 0, 150, 50]], labels=[0, 1], classes=("tv", "couch"))
    found = found_of(
        [[100, 0, 150, 50], [0, 0, 50, 50], [0, 0, 50, 50]],
        scores=[0.5, 0.5, 0.9],
        labels=[1, 2, 0],
        classes=("ghost", "Sofa", "television"),
    )
    matches = match_boxes(truth, found)
    assert matches.labels.tolist() == [0, 1]
    assert matches.numbers.tolist() == [1, 0]
    assert matches.matched_objects.tolist() == [0, 1]
    assert matches.left_out == 1


def test_detections_of_unknown_images_are_left_out_and_counted():
    found = found_of([[0, 0, 50, 50]] * 4, scores=[0.5] * 4, images=[0, 1, 3, 2])
    matches = match_boxes(truth_of([[0, 0, 50, 50]]), found)
    assert matches.left_out == 2
    assert matches.image_rows.tolist() == [0, 1]


def test_threads_must_be_at_least_one():
    with pytest.raises(InputError, match="threads"):
        match_boxes(truth_of([]), found_of([], []), threads=0)


def test_nothing_at_all():
    truth = GroundTruth.from_boxes([], {}, [], [], [])
    found = Detections(classes=[], image_ids=[], boxes=np.zeros((0, 4)), label_probs=np.zeros((0, 0)))
    matches = match_boxes(truth, found)
    assert len(matches) == 0
    assert all(np.isnan(value) for value in average_precision(truth, found).summary().values())
    some = Detections(classes=[], image_ids=[4], boxes=[[0, 0, 1, 1]], label_probs=np.zeros((1, 0)))
    assert match_boxes(truth, some).left_out == 1


def test_columns_are_read_only():
    matches = match_boxes(truth_of([[0, 0, 50, 50]]), found_of([[0, 0, 50, 50]], [0.5]))
    columns = [value for value in vars(matches).values() if isinstance(value, np.ndarray)]
    assert len(columns) == 11
    assert not any(column.flags.writeable for column in columns)
