"""Masks as run lengths: what is taken and joined keeps its pixels."""

from __future__ import annotations

import numpy as np

from probox import Masks
from probox.tables.masks import box_pixels, unusable_masks


def test_masks_taken_and_joined_keep_their_pixels():
    rng = np.random.default_rng(5)
    arrays = [rng.random((6, 9)) < share for share in (0.1, 0.5, 0.9, 1.0, 0.3)]
    for array in arrays:
        array[2, 4] = True
    masks = Masks.from_arrays(arrays)
    order = np.array([3, 0, 4, 4, 1])
    taken = masks.take(order)
    joined = Masks.concatenate([taken, masks.take(np.array([2])), Masks.concatenate([])])
    assert len(joined) == 6
    for row, source in enumerate([*order, 2]):
        np.testing.assert_array_equal(joined.to_array(row, 6, 9), arrays[source])
        assert joined.pixels[row] == arrays[source].sum()
    assert masks.offsets[4] == masks.offsets[3]  # a full box needs no runs


def test_runs_do_not_touch_and_are_sorted():
    rng = np.random.default_rng(6)
    masks = Masks.from_arrays([rng.random((20, 30)) < 0.5])
    y, begin, end = masks.runs.T
    assert (end > begin).all()
    same = y[1:] == y[:-1]
    assert (begin[1:][same] > end[:-1][same]).all()
    assert (np.diff(y) >= 0).all()


def test_made_masks_are_usable_and_others_are_named():
    rng = np.random.default_rng(7)
    masks = Masks.from_arrays([rng.random((9, 7)) < 0.5 for _ in range(5)])
    assert not unusable_masks(masks.boxes, masks.offsets, masks.runs).any()
    for change in ([0, 1, 0], [0, 0, -1], [1, 0, 0], [-1, 0, 0]):  # x_begin, x_end, or the row of one run
        runs = masks.runs.copy()
        runs[masks.offsets[2]] += np.array(change, np.int32) * 40
        assert unusable_masks(masks.boxes, masks.offsets, runs).tolist() == [False, False, True, False, False]
    wider = masks.boxes + np.array([[0, 0, 1, 0]], np.int32)
    assert unusable_masks(wider, masks.offsets, masks.runs).all()
    empty = np.array([[0, 0, -1, -1], [3, 0, 2, 0]], np.int32)
    assert unusable_masks(empty, np.zeros(3, np.int64), np.zeros((0, 3), np.int32)).tolist() == [False, True]


def test_boxes_have_pixels_of_both_ends():
    assert box_pixels(np.array([[0, 0, 0, 0], [2, 3, 5, 4], [0, 0, -1, -1]], np.int32)).tolist() == [1, 8, 0]
    filled = Masks.from_boxes(np.array([[2, 3, 5, 4]], np.int32)).to_array(0, 6, 8)
    assert filled.sum() == 8
    assert filled[3:5, 2:6].all()
    assert repr(Masks.from_boxes(np.array([[2, 3, 5, 4]], np.int32))) == "Masks(1 masks, 8 pixels)"
