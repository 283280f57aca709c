"""The truths that experiments run on."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import probox
from probox import InputError
from probox_experiments import SimulatedDetector, pixel_aligned, synthetic_truth
from probox_experiments.synthetic import (
    border_squares,
    classes_within_images,
    fingerprint,
    first_images,
)


def test_made_up_images_are_like_coco() -> None:
    truth = synthetic_truth(1000, seed=4)
    per_image = np.bincount(truth.image_rows, minlength=1000)
    assert 6.5 < per_image.mean() < 8.5
    assert 3 <= np.median(per_image) <= 6
    assert 0 < (per_image == 0).mean() < 0.03
    area = truth.extents.prod(axis=1)
    shares = [(area < 32**2).mean(), ((area >= 32**2) & (area < 96**2)).mean(), (area >= 96**2).mean()]
    assert all(0.2 < share < 0.5 for share in shares), shares
    assert len(truth.classes) == 80
    assert 0.2 < (truth.labels == np.bincount(truth.labels).argmax()).mean() < 0.4
    box = truth.masks.boxes
    last = np.stack([truth.dataset.widths, truth.dataset.heights], axis=1)[truth.image_rows] - 1
    cut = (box[:, :2] == 0).any(axis=1) | (box[:, 2:] == last).any(axis=1)
    assert 0.1 < cut.mean() < 0.3


def test_made_up_masks_are_what_their_runs_say() -> None:
    truth = synthetic_truth(30, seed=9)
    masks = [
        truth.masks.to_array(row, int(truth.dataset.heights[image]), int(truth.dataset.widths[image]))
        for row, image in enumerate(truth.image_rows)
    ]
    again = probox.Masks.from_arrays(masks)
    np.testing.assert_array_equal(again.boxes, truth.masks.boxes)
    np.testing.assert_array_equal(again.pixels, truth.masks.pixels)
    np.testing.assert_array_equal(again.offsets, truth.masks.offsets)
    np.testing.assert_array_equal(again.runs, truth.masks.runs)


def test_the_same_seed_gives_the_same_truth() -> None:
    assert fingerprint(synthetic_truth(20)) == fingerprint(synthetic_truth(20))
    assert fingerprint(synthetic_truth(20)) != fingerprint(synthetic_truth(20, seed=1))
    with pytest.raises(InputError, match="at least one image"):
        synthetic_truth(0)


def test_fingerprints_see_every_column() -> None:
    truth = synthetic_truth(5)
    others = [
        dataclasses.replace(truth, labels=np.roll(truth.labels, 1)),
        dataclasses.replace(truth, crowd=np.arange(len(truth)) == 0),
        dataclasses.replace(truth, boxes=truth.boxes + 0.5),
        truth.replace(dataset=truth.dataset.replace(classes=truth.classes[::-1])),
        first_images(truth, 4),
    ]
    assert len({fingerprint(table) for table in [truth, *others]}) == len(others) + 1


def test_squares_lie_along_the_border_apart() -> None:
    for count in (0, 1, 7, 10, 200):
        squares = border_squares(count, 400)
        assert squares.shape == (count, 4)
        x1, y1, x2, y2 = squares.T
        assert ((x2 - x1 == 1) & (y2 - y1 == 1)).all()
        assert (((x1 == 0) | (x2 == 399) | (y1 == 0) | (y2 == 399)) & (squares >= 0).all(axis=1)).all()
        assert squares.max(initial=0) <= 399
        assert len(np.unique(squares, axis=0)) == count


def test_aligned_truth_has_a_box_that_is_perfect_for_all() -> None:
    shifted = synthetic_truth(10)
    shifted = dataclasses.replace(shifted, boxes=shifted.boxes + np.array([0.3, 0.4, -0.2, 0.1]), extents=None)
    found = SimulatedDetector().detect(shifted)
    from probox.measures.boxes import lrp

    assert lrp(shifted, found).molrp > 0
    assert lrp(pixel_aligned(shifted), found).molrp == 0
    assert lrp(pixel_aligned(shifted), SimulatedDetector().detect(pixel_aligned(shifted))).molrp == 0


def test_numbering_classes_anew_in_each_image_changes_no_score() -> None:
    truth = synthetic_truth(60, seed=2)
    fewer = classes_within_images(truth)
    assert len(fewer.classes) < 15
    same = truth.image_rows[:, None] == truth.image_rows[None, :]
    before = truth.labels[:, None] == truth.labels[None, :]
    after = fewer.labels[:, None] == fewer.labels[None, :]
    np.testing.assert_array_equal(before[same], after[same])
    detector = SimulatedDetector(corner_variance=30.0, reported_variance=30.0)
    for convention in ("reference", "paper"):
        scores = [
            probox.evaluate(t, detector.detect(t, 5), convention=convention, measures=["pdq"]).summary()
            for t in (truth, fewer)
        ]
        assert scores[0] == scores[1]


def test_first_images() -> None:
    truth = synthetic_truth(9)
    assert first_images(truth, None) is truth
    assert first_images(truth, 50) is truth
    assert first_images(truth, 3).image_ids.tolist() == [1, 2, 3]
    with pytest.raises(InputError, match="at least one image"):
        first_images(truth, 0)
