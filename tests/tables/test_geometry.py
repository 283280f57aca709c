"""Pixels of boxes, covariances and masks, against plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from probox import GroundTruth, Masks
from probox.tables.geometry import extents_of, nearest_covariances, pixels_of_boxes, smallest_eigenvalues
from probox.tables.masks import box_pixels, unusable_masks


@pytest.mark.parametrize(
    ("box", "pixels"),
    [
        ([2, 3, 4, 5], [2, 3, 4, 5]),
        ([2.5, 3.5, 4.5, 5.5], [2, 3, 5, 6]),
        ([-8, -8, 60, 60], [0, 0, 9, 7]),
        ([-8, 2, 0, 4], [0, 2, 0, 4]),
        ([-8, 2, -1, 4], None),
        ([-8, 2, -0.5, 4], [0, 2, 0, 4]),  # ceil(-0.5) is 0
        ([9.9, 2, 12, 4], [9, 2, 9, 4]),
        ([10, 2, 12, 4], None),
        ([2, 7.5, 4, 9], [2, 7, 4, 7]),
        ([2, 8, 4, 9], None),
    ],
)
def test_the_pixels_of_a_box(box: list[float], pixels: list[int] | None) -> None:
    truth = GroundTruth.from_boxes(["cup"], {1: (10, 8)}, [1], [box], [0])
    assert truth.masks.boxes.tolist() == [pixels or [0, 0, -1, -1]]
    assert (truth.masks.pixels[0] == 0) == (pixels is None)
    assert truth.masks.to_array(0, 8, 10).sum() == truth.masks.pixels[0]
    found = pixels_of_boxes(np.array([box], float), np.array([[10, 8]], np.int32))
    assert found.tolist() == truth.masks.boxes.tolist()


def test_extents_are_differences_of_corners_whatever_they_are() -> None:
    boxes = np.array([[1, 2, 4, 8], [0, 0, 0, 0], [0, 0, np.inf, np.nan]], float)
    np.testing.assert_array_equal(extents_of(boxes), [[3, 6], [0, 0], [np.inf, np.nan]])


def test_eigenvalues_and_repairs_are_numpys():
    random = np.random.default_rng(2)
    matrices = random.normal(size=(200, 2, 2))
    symmetric = (matrices + matrices.swapaxes(1, 2)) / 2
    np.testing.assert_allclose(smallest_eigenvalues(symmetric), np.linalg.eigvalsh(symmetric)[:, 0], atol=1e-12)
    nearest = nearest_covariances(matrices)
    values, vectors = np.linalg.eigh(symmetric)
    expected = np.einsum("nik,nk,njk->nij", vectors, values.clip(0), vectors)
    np.testing.assert_allclose(nearest, expected, atol=1e-12)
    good = values[:, 0] >= 0
    assert 10 < good.sum() < 190
    np.testing.assert_array_equal(nearest[good], symmetric[good])  # what is valid is not touched
    singular = np.ones((1, 2, 2))
    assert np.linalg.eigvalsh(singular)[0, 0] >= 0
    np.testing.assert_array_equal(nearest_covariances(singular), singular)


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


def test_masks_of_windows_are_those_of_whole_images():
    rng = np.random.default_rng(6)
    whole = np.zeros((4, 20, 30), bool)
    corners = [(3, 5), (0, 0), (21, 11), (4, 4)]
    for mask, (left, top), share in zip(whole, corners, (0.5, 1.0, 0.9, 0.0), strict=True):
        mask[top : top + 9, left : left + 9] = rng.random((9, 9)) < share
    windows = [mask[top : top + 9, left : left + 9] for mask, (left, top) in zip(whole, corners, strict=True)]
    expected, made = Masks.from_arrays(list(whole)), Masks.from_arrays(windows, corners)
    for name in ("boxes", "pixels", "offsets", "runs"):
        np.testing.assert_array_equal(getattr(made, name), getattr(expected, name))
    assert made.boxes[3].tolist() == [0, 0, -1, -1]
    assert made.pixels[3] == 0
    assert not unusable_masks(made.boxes, made.offsets, made.runs).any()


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
