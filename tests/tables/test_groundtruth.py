"""Truth made from arrays: where boxes end, and what has no pixels."""

from __future__ import annotations

import numpy as np
import pytest

from probox import Convention, Detections, GroundTruth, InputError, evaluate


def square(height: int = 40, width: int = 50) -> np.ndarray:
    mask = np.zeros((height, width), bool)
    mask[10:26, 5:21] = True
    return mask


@pytest.mark.parametrize("box_truth", [False, True])
def test_a_box_from_a_mask_ends_on_its_last_pixel(box_truth: bool) -> None:
    """A detection of exactly the mask's 16 x 16 pixels is perfect by every measure."""
    truth = GroundTruth.from_masks(["cup"], [(1, [square()], [0])])
    assert truth.boxes.tolist() == [[5, 10, 20, 25]]
    found = Detections(classes=["cup"], image_ids=[1], boxes=[[5, 10, 20, 25]], label_probs=[[1.0]])
    summary = evaluate(truth, found, convention=Convention(box_truth=box_truth)).summary()
    assert [summary[name] for name in ("PDQ", "mAP", "moLRP")] == pytest.approx([1.0, 1.0, 0.0], abs=1e-12)


def test_masks_without_pixels_are_counted() -> None:
    truth = GroundTruth.from_masks(["cup"], [(1, [square(), np.zeros((40, 50), bool)], [0, 0])])
    assert len(truth) == 1
    assert truth.notes == ("1 masks have no pixel: left out",)


def test_an_object_without_pixels_is_no_miss_of_pdq_but_one_of_map() -> None:
    truth = GroundTruth.from_boxes(
        ["cup"], {1: (10, 8), 2: (10, 8)}, [1, 1, 2], [[20, 2, 24, 6], [1, 1, 5, 5], [2, 2, 7, 6]], [0, 0, 0]
    )
    found = Detections(classes=["cup"], image_ids=[1, 2], boxes=[[1, 1, 5, 5], [2, 2, 7, 6]], label_probs=[[1], [1]])
    result = evaluate(truth, found)
    assert result.pdq == 1.0
    assert (result.tp, result.fp, result.fn) == (2, 0, 0)
    assert result.objects.partners.tolist() == [-1, 0, 1]
    assert result.average_precision.ap50 == pytest.approx(67 / 101)
    halves = evaluate(truth.select_images([1]), found) + evaluate(truth.select_images([2]), found)
    assert halves.summary() == result.summary()


@pytest.mark.parametrize("value", [0.5, 7, np.nan])
def test_masks_are_of_two_values(value: float) -> None:
    with pytest.raises(InputError, match="image 1: expected masks of True and False, or of 0 and 1; compare with"):
        GroundTruth.from_masks(["cup"], [(1, [np.where(square(), value, 0)], [0])])
    assert len(GroundTruth.from_masks(["cup"], [(1, [square().astype(float)], [0])])) == 1


@pytest.mark.slow
def test_crowds_of_objects_that_all_meet_are_refused() -> None:
    """Their pairs alone would take gigabytes, though the files are small."""
    n = 4097
    truth = GroundTruth.from_boxes(["cup"], {5: (8, 8)}, [5] * n, [[2, 2, 4, 4]] * n, [0] * n)
    found = Detections(classes=["cup"], image_ids=[5] * n, boxes=[[2, 2, 4, 4]] * n, label_probs=[[1.0]] * n)
    with pytest.raises(InputError, match=r"image 5: 4,097 objects and 4,097 detections make more than 2\^24 pairs"):
        evaluate(truth, found, measures=["pdq"])


def test_a_large_image_is_matched_group_by_group() -> None:
    """Objects far from each other do not compete: tables of thousands of rows are never filled in whole."""
    side = 50
    corners = np.array([(10 * x, 10 * y) for x in range(side) for y in range(side)], float)
    boxes = np.concatenate([corners, corners + 6], axis=1)
    truth = GroundTruth.from_boxes(["cup"], {5: (500, 500)}, [5] * len(boxes), boxes, [0] * len(boxes))
    found = Detections(
        classes=["cup"],
        image_ids=[5] * (2 * len(boxes)),
        boxes=np.concatenate([boxes + np.array([0, 0, 1, 0]), boxes]),
        label_probs=np.full((2 * len(boxes), 1), 0.81),
    )
    assert len(truth) * len(found) > 1 << 22
    for assignment in ("optimal", "greedy"):
        result = evaluate(truth, found, convention=Convention(assignment=assignment), measures=["pdq"])
        assert (result.tp, result.fp, result.fn) == (len(boxes), len(boxes), 0)
        assert result.objects.partners.tolist() == list(range(len(boxes), 2 * len(boxes)))  # the better one of two
        assert result.pdq == pytest.approx(0.9 / 2)
