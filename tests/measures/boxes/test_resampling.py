"""Box measures of resampled images: against copies of matches, and against files in which images are copied."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.amounts import examples
from tests.measures.boxes.test_properties import tables

from probox import Detections, GroundTruth
from probox.measures.boxes import AveragePrecisionResult, BoxMatches, LRPResult, match_boxes
from probox.measures.boxes.box_definition import copied_images
from probox.measures.boxes.matching import means_of_defined, resampled_lrp, resampled_precision
from probox.measures.boxes.mean_ap import RECALL_POINTS
from probox.measures.boxes.optimal_lrp import GRID


def precision_and_lrp(
    matches: BoxMatches, truth: GroundTruth, weights: np.ndarray, threads: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return AP (R, 10, C) and LRP with its components (R, C, 4) of resampled images."""
    weights = np.asarray(weights)
    return (
        resampled_precision(matches, truth.image_rows, weights, RECALL_POINTS, threads=threads),
        resampled_lrp(matches, truth.image_rows, weights, GRID, threads=threads),
    )


def of_matches(matches: BoxMatches) -> tuple[np.ndarray, np.ndarray]:
    """Return the same of matches as they are."""
    precision, lrp = AveragePrecisionResult.from_matches(matches), LRPResult.from_matches(matches)
    optimum = [getattr(lrp, name)[:, 0] for name in ("olrp", "olrp_loc", "olrp_fp", "olrp_fn")]
    return precision.precision[:, :, :, 0].mean(axis=1), np.stack(optimum, axis=1)


def copied_files(truth: GroundTruth, found: Detections, counts: np.ndarray) -> tuple[GroundTruth, Detections]:
    """Return truth and detections in which image i is there counts[i] times; copies have ids that follow each other."""
    dataset = truth.dataset
    copy_of = np.repeat(np.arange(len(dataset)), counts)
    number = np.concatenate([np.zeros(0, int), *(np.arange(count) for count in counts)]).astype(int)
    ids = 1000 * dataset.image_ids[copy_of] + number
    objects = [np.flatnonzero(truth.image_rows == row) for row in copy_of]
    rows = [np.flatnonzero(found.image_ids == dataset.image_ids[row]) for row in copy_of]
    there, taken = (np.concatenate([np.zeros(0, int), *parts]).astype(int) for parts in (objects, rows))
    copied = truth.take(there).replace(
        dataset=dataset.replace(
            image_ids=ids, widths=dataset.widths[copy_of], heights=dataset.heights[copy_of], file_names=()
        ),
        image_rows=np.repeat(np.arange(len(ids)), [len(part) for part in objects]),
        ids=None,
    )
    named = found.take(taken).replace(image_ids=np.repeat(ids, [len(part) for part in rows]))
    return copied, named


@given(tables(), st.lists(st.integers(0, 3), min_size=4, max_size=4))
@examples(60)
def test_weights_are_copies(world: tuple[GroundTruth, Detections], counts: list[int]) -> None:
    """To the last bit but for the mean over recalls, which is summed in another order."""
    truth, found = world
    weights = np.array(counts)
    matches = match_boxes(truth, found)
    precision, lrp = precision_and_lrp(matches, truth, weights[None])
    copies = copied_images(matches, truth.image_rows, weights)
    expected_precision, expected_lrp = of_matches(copies)
    np.testing.assert_allclose(precision[0], expected_precision, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(lrp[0], expected_lrp)

    anew = match_boxes(*copied_files(truth, found, weights))
    assert len(anew) == len(copies)
    for name in ("image_rows", "labels", "scores", "matched", "ignored", "ious"):
        np.testing.assert_array_equal(getattr(anew, name), getattr(copies, name), err_msg=name)
    assert (anew.objects_per_class() == copies.objects_per_class()).all()


@given(tables(), st.integers(0, 2**32 - 1))
@examples(20)
def test_replicates_and_threads_do_not_touch_each_other(world: tuple[GroundTruth, Detections], seed: int) -> None:
    truth, found = world
    matches = match_boxes(truth, found)
    weights = np.random.default_rng(seed).integers(0, 4, (9, len(truth.image_ids)))
    together = precision_and_lrp(matches, truth, weights, threads=1)
    for numbers, again in zip(together, precision_and_lrp(matches, truth, weights, threads=3), strict=True):
        np.testing.assert_array_equal(numbers, again)
    for row in range(9):
        for numbers, alone in zip(together, precision_and_lrp(matches, truth, weights[row : row + 1]), strict=True):
            np.testing.assert_array_equal(numbers[row], alone[0])


def test_no_images_no_numbers() -> None:
    truth = GroundTruth.from_boxes(["cup"], {1: (9, 9)}, [1], [[0, 0, 8, 8]], [0])
    found = Detections(classes=["cup"], image_ids=[], boxes=np.zeros((0, 4)), label_probs=np.zeros((0, 1)))
    precision, lrp = precision_and_lrp(match_boxes(truth, found), truth, np.array([[1], [0]]))
    np.testing.assert_array_equal(precision[:, 0, 0], [0.0, np.nan])
    np.testing.assert_array_equal(lrp[0, 0], [1.0, np.nan, np.nan, 1.0])
    assert np.isnan(lrp[1]).all()
    np.testing.assert_array_equal(means_of_defined(np.array([[1.0, np.nan, 2.0], [np.nan] * 3])), [1.5, np.nan])


def test_weights_below_zero_are_refused() -> None:
    truth = GroundTruth.from_boxes(["cup"], {1: (9, 9)}, [1], [[0, 0, 8, 8]], [0])
    found = Detections(classes=["cup"], image_ids=[1], boxes=[[0, 0, 8, 8]], label_probs=[[1.0]])
    with pytest.raises(ValueError, match="expected weights from 0"):
        precision_and_lrp(match_boxes(truth, found), truth, np.array([[-1]]))
