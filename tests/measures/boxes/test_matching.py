"""Matching by hand-made examples, and what `BoxMatches` promises."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from pycocotools import mask as coco_mask

from probox import Detections, GroundTruth, InputError
from probox.measures.boxes import BoxMatches, average_precision, definition, match_boxes

SIZE = {1: (400, 400), 2: (400, 400)}


def truth_of(boxes, labels=None, images=None, crowd=None, classes=("cup", "dog")):
    truth = GroundTruth.from_boxes(
        classes, SIZE, images or [1] * len(boxes), boxes, labels if labels is not None else [0] * len(boxes)
    )
    return truth if crowd is None else dataclasses.replace(truth, crowd=crowd)


def found_of(boxes, scores, labels=None, images=None, classes=("cup", "dog")):
    return Detections(
        classes=classes,
        image_ids=images or [1] * len(boxes),
        boxes=boxes,
        label_probs=np.zeros((len(boxes), len(classes))),
        labels=labels or [0] * len(boxes),
        scores=scores,
    )


def test_overlaps_are_pycocotools_to_the_last_bit():
    random = np.random.default_rng(5)
    corners, sizes = random.uniform(0, 50, (400, 2)), random.uniform(0, 40, (400, 2))
    xywh = np.concatenate([corners, sizes], axis=1)
    boxes = np.concatenate([corners, corners + sizes], axis=1)
    truth = dataclasses.replace(
        truth_of(boxes[:30]), sizes=sizes[:30], areas=sizes[:30].prod(axis=1), crowd=np.arange(30) % 5 == 0
    )
    found = dataclasses.replace(found_of(boxes[300:], np.linspace(1, 0, 100)), sizes=sizes[300:])
    expected = coco_mask.iou(xywh[300:], xywh[:30], truth.crowd.astype(np.uint8))
    np.testing.assert_array_equal(definition.overlaps(xywh[300:], xywh[:30], truth.crowd), expected)
    matches = match_boxes(truth, found)
    rows = np.flatnonzero(matches.matched_object >= 0)
    assert len(rows) > 20
    np.testing.assert_array_equal(matches.iou[rows, 0], expected[matches.number[rows], matches.matched_object[rows]])


def test_the_higher_score_takes_the_object_and_the_overlap_is_kept():
    matches = match_boxes(
        truth_of([[0, 0, 100, 100]]), found_of([[0, 0, 100, 100], [0, 0, 100, 80]], scores=[0.3, 0.9])
    )
    assert matches.number.tolist() == [1, 0]
    assert matches.rank.tolist() == [0, 1]
    assert matches.score.tolist() == [0.9, 0.3]
    assert matches.matched_object.tolist() == [0, -1]
    # IoU 0.8 is enough for seven thresholds; at the other three the second detection gets the object.
    assert matches.matched[:, 0].tolist() == [0b0001111111, 0b1110000000]
    assert matches.iou[0, 0] == 0.8
    assert np.isnan(matches.iou[1, 0])


def test_of_equal_scores_the_earlier_row_goes_first():
    matches = match_boxes(truth_of([[0, 0, 50, 50]]), found_of([[0, 0, 50, 50]] * 3, scores=[0.5] * 3))
    assert matches.number.tolist() == [0, 1, 2]
    assert matches.matched_object.tolist() == [0, -1, -1]


def test_of_equal_overlaps_the_later_object_is_taken():
    matches = match_boxes(truth_of([[0, 0, 50, 50]] * 2), found_of([[0, 0, 50, 50]], scores=[0.5]))
    assert matches.matched_object.tolist() == [1]


def test_a_crowd_takes_any_number_and_only_when_nothing_else_is_left():
    truth = truth_of([[0, 0, 300, 300], [10, 10, 60, 60]], crowd=[True, False])
    found = found_of([[10, 10, 60, 60], [100, 100, 150, 150], [200, 200, 250, 250]], scores=[0.9, 0.8, 0.7])
    matches = match_boxes(truth, found)
    assert matches.matched_object.tolist() == [1, 0, 0]
    assert matches.matched[:, 0].tolist() == [0b1111111111] * 3
    assert matches.ignored[:, 0].tolist() == [0, 0b1111111111, 0b1111111111]
    assert matches.iou[:, 0].tolist() == [1, 1, 1]
    assert matches.objects_per_class().tolist() == [[1, 0, 1, 0], [0, 0, 0, 0]]


def test_size_ranges_include_both_ends():
    truth = truth_of([[0, 0, 32, 32], [100, 100, 196, 196]])
    assert match_boxes(truth, found_of([], [])).objects_per_class()[0].tolist() == [2, 1, 2, 1]


def test_the_stated_width_counts_not_the_difference_of_corners():
    x, w = 0.1, 0.2
    assert (x + w) - x != w
    truth = truth_of([[x, 0, x + w, 1]])
    exact = dataclasses.replace(truth, sizes=[[w, 1.0]])
    found = dataclasses.replace(found_of([[x, 0, x + w, 1]], [0.5]), sizes=[[w, 1.0]])
    expected = coco_mask.iou([[x, 0, w, 1]], [[x, 0, w, 1]], [0])[0, 0]
    assert match_boxes(exact, found).iou[0, 0] == expected
    assert match_boxes(truth, found_of([[x, 0, x + w, 1]], [0.5])).iou[0, 0] != expected


def test_a_hundred_detections_of_an_image_and_class_take_part():
    boxes = [[0, 0, 50, 50]] * 120
    found = found_of(
        boxes * 3, scores=list(np.linspace(1, 0.1, 120)) * 3, labels=[0] * 120 + [1] * 240, images=[1] * 240 + [2] * 120
    )
    matches = match_boxes(truth_of([[0, 0, 50, 50]]), found)
    assert len(matches) == 300
    assert matches.left_out == 0
    assert matches.score.min() == pytest.approx(np.linspace(1, 0.1, 120)[99])


def test_classes_meet_by_name():
    truth = truth_of([[0, 0, 50, 50], [100, 0, 150, 50]], labels=[0, 1], classes=("tv", "couch"))
    found = found_of(
        [[100, 0, 150, 50], [0, 0, 50, 50], [0, 0, 50, 50]],
        scores=[0.5, 0.5, 0.9],
        labels=[1, 2, 0],
        classes=("ghost", "Sofa", "television"),
    )
    matches = match_boxes(truth, found)
    assert matches.label.tolist() == [0, 1]
    assert matches.number.tolist() == [1, 0]
    assert matches.matched_object.tolist() == [0, 1]
    assert matches.left_out == 1


def test_detections_of_unknown_images_are_left_out_and_counted():
    found = found_of([[0, 0, 50, 50]] * 4, scores=[0.5] * 4, images=[0, 1, 3, 2])
    matches = match_boxes(truth_of([[0, 0, 50, 50]]), found)
    assert matches.left_out == 2
    assert matches.image.tolist() == [0, 1]


def test_a_score_that_is_no_number_is_named():
    with pytest.raises(InputError, match="image 2: detection 1: expected a finite score, but got nan"):
        found_of([[0, 0, 50, 50]] * 3, scores=[0.5, 0.5, np.nan], images=[1, 2, 2])


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


def test_matches_survive_a_file(tmp_path):
    found = found_of([[0, 0, 50, 50]] * 3, scores=[0.5, 0.6, 0.7], images=[1, 2, 9])
    matches = match_boxes(truth_of([[0, 0, 50, 50]]), found)
    np.savez(tmp_path / "matches.npz", **matches.to_arrays())
    with np.load(tmp_path / "matches.npz", allow_pickle=False) as stored:
        again = BoxMatches.from_arrays(stored)
    assert again.classes == ("cup", "dog")
    assert again.left_out == 1
    for name, column in matches.to_arrays().items():
        np.testing.assert_array_equal(again.to_arrays()[name], column)


def test_a_missing_column_is_named():
    arrays = match_boxes(truth_of([]), found_of([], [])).to_arrays()
    del arrays["rank"]
    with pytest.raises(InputError, match="'rank'"):
        BoxMatches.from_arrays(arrays)


def test_selecting_images_is_matching_them_alone():
    truth = truth_of([[0, 0, 50, 50], [0, 0, 30, 50]], images=[1, 2])
    found = found_of([[0, 0, 50, 50]] * 3, scores=[0.5, 0.6, 0.7], images=[1, 2, 2])
    part = match_boxes(truth, found).select_images([2, 77])
    alone = match_boxes(truth.select_images([2]), found.select(found.image_ids == 2))
    for name, column in alone.to_arrays().items():
        np.testing.assert_array_equal(part.to_arrays()[name], column)


def test_parts_must_fit_together():
    truth, found = truth_of([[0, 0, 50, 50]]), found_of([[0, 0, 50, 50]], [0.5])
    matches = match_boxes(truth, found)
    with pytest.raises(InputError, match="image 1: an image is in two parts"):
        BoxMatches.concatenate([matches, matches])
    with pytest.raises(InputError, match="same classes"):
        BoxMatches.concatenate([matches, match_boxes(truth_of([], classes=("cat",)), found)])
    with pytest.raises(InputError, match="at least one"):
        BoxMatches.concatenate([])


def test_columns_are_read_only():
    matches = match_boxes(truth_of([[0, 0, 50, 50]]), found_of([[0, 0, 50, 50]], [0.5]))
    assert dataclasses.replace(matches, classes=["cup", "dog"]).classes == ("cup", "dog")
    for name, column in matches.to_arrays().items():
        if name not in ("classes", "left_out"):
            assert not column.flags.writeable, name


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"image_ids": [1, 1]}, "distinct and ascending"),
        ({"image_ids": [2, 1]}, "distinct and ascending"),
        ({"image": [1, 0]}, "image must be ascending rows"),
        ({"image": [-1, 0]}, "image must be ascending rows"),
        ({"image": [0, 2]}, "image must be ascending rows"),
        ({"object_image": [1, 0]}, "object_image must be ascending rows"),
        ({"object_image": [0, 2]}, "object_image must be ascending rows"),
        ({"label": [0, 2]}, "label must count in classes"),
        ({"label": [-1, 0]}, "label must count in classes"),
        ({"object_label": [0, 2]}, "object_label must count in classes"),
        ({"object_label": [-1, 0]}, "object_label must count in classes"),
        ({"iou": [[1.0] * 3] * 2}, "iou of shape 2 x 4"),
    ],
)
def test_columns_that_cannot_be_are_refused(changes, words):
    truth = truth_of([[0, 0, 50, 50]] * 2, images=[1, 2])
    arrays = match_boxes(truth, found_of([[0, 0, 50, 50]] * 2, [0.5] * 2, images=[1, 2])).to_arrays()
    assert len(BoxMatches.from_arrays(arrays)) == 2
    with pytest.raises(InputError, match=words):
        BoxMatches.from_arrays(arrays | {name: np.asarray(value) for name, value in changes.items()})
