"""The table of ground truth: what it refuses, and what its ways in make of boxes and masks."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from probox import Convention, Detections, GroundTruth, InputError, Masks, evaluate
from probox.notes import Note, as_notes
from probox.tables.dataset import Dataset


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
    assert truth.notes == (Note("pixelless-masks", 1),)


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


COLUMNS: dict[str, Any] = {
    "classes": ["cup", "dog"],
    "image_ids": [3, 5, 9],
    "widths": [20, 30, 40],
    "heights": [10, 15, 25],
    "image_rows": [0, 1, 1],
    "labels": [0, 1, 0],
    "boxes": [[1, 2, 6, 7], [0, 0, 29, 14], [3, 3, 4, 4]],
    "masks": Masks.from_boxes(np.array([[1, 2, 6, 7], [0, 0, 29, 14], [3, 3, 4, 4]], np.int32)),
    "source": "truth.json",
}


DATASET = {field.name for field in dataclasses.fields(Dataset)}


def table(**changes: Any) -> GroundTruth:
    given = {**COLUMNS, **changes}
    dataset = {name: given.pop(name) for name in list(given) if name in DATASET}
    return GroundTruth(dataset=Dataset(**dataset), **given)


def pixels(*boxes: list[int]) -> Masks:
    return Masks.from_boxes(np.array(boxes, np.int32))


INSIDE = [[0, 0, 9, 9], [3, 3, 4, 4]]

ACCEPTED = {
    "an image of one pixel": {"widths": [20, 30, 1], "heights": [10, 15, 1]},
    "all objects in the last image": {"image_rows": [2, 2, 2]},
    "a mask that fills its image": {"masks": pixels([0, 0, 19, 9], [0, 0, 29, 14], [3, 3, 4, 4])},
}

REFUSED = {
    "equal ids": ({"image_ids": [3, 5, 5]}, "image 5: image ids must be distinct and ascending"),
    "ids out of order": ({"image_ids": [3, 9, 5]}, "image 5: image ids must be distinct and ascending"),
    "the first two out of order": ({"image_ids": [7, 5, 9]}, "image 5: image ids"),
    "no width": ({"widths": [20, 0, 40]}, "image 5: expected a size of 1 to .* but got 0 x 15"),
    "no height": ({"heights": [10, 15, 0]}, "image 9: expected a size of 1 to .* but got 40 x 0"),
    "an object before the first image": ({"image_rows": [-1, 1, 1]}, "ascending rows of the dataset"),
    "an object after the last image": ({"image_rows": [0, 1, 3]}, "ascending rows of the dataset"),
    "objects out of order": ({"image_rows": [1, 0, 1]}, "ascending rows of the dataset"),
    "a class below": ({"labels": [0, -1, 0]}, "count in classes"),
    "a class above": ({"labels": [0, 2, 0]}, "count in classes"),
    "a box that is none": ({"boxes": [[1, 2, 6, 7], [0, 0, np.nan, 1], [3, 3, 4, 4]]}, "image 5: object 1: .*finite"),
    "an endless box": ({"boxes": [[1, 2, 6, 7], [0, 0, 1, 1], [3, 3, np.inf, 4]]}, "image 5: object 2: .*finite"),
    "a mask right of it": ({"masks": pixels([1, 2, 20, 7], *INSIDE)}, "image 3: object 0: .*outside"),
    "a mask below it": ({"masks": pixels([1, 2, 6, 10], *INSIDE)}, "image 3: object 0: .*outside"),
    "a mask left of it": ({"masks": pixels([1, 2, 6, 7], [-1, 0, 9, 9], INSIDE[1])}, "image 5: object 1: .*outside"),
    "a mask above it": ({"masks": pixels([1, 2, 6, 7], [0, -1, 9, 9], INSIDE[1])}, "image 5: object 1: .*outside"),
    "a mask too few": ({"masks": pixels(*INSIDE), "areas": [1, 2, 3]}, "one mask per object, but got 2"),
    "a name too few": ({"file_names": ["a", "b"]}, "one file name per image, but got 2 for 3"),
    "a box too few": ({"boxes": [[1, 2, 6, 7]] * 2}, "boxes of shape 3 x 4"),
    "a width too many": ({"widths": [1, 2, 3, 4]}, "widths of shape 3"),
}  # fmt: skip


@pytest.mark.parametrize("changes", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_at_the_edge_of_what_is_accepted(changes):
    assert len(table(**changes)) == 3


@pytest.mark.parametrize(("changes", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_is_refused_with_its_place(changes, words):
    with pytest.raises(InputError, match=words) as caught:
        table(**changes)
    if "shape" not in words:
        assert caught.value.file == "truth.json"


def test_what_is_not_given_follows_from_what_is():
    truth = table()
    assert truth.extents.tolist() == [[5, 5], [29, 14], [1, 1]]
    assert truth.areas.tolist() == [36, 450, 4]  # the masks' pixels
    assert truth.crowd.tolist() == [False] * 3
    assert truth.ids.tolist() == [0, 1, 2]
    assert truth.dataset.category_ids.tolist() == [1, 2]
    assert truth.dataset.file_names == ("", "", "")
    assert truth.dataset.offsets(truth.image_rows).tolist() == [0, 1, 3, 3]
    assert repr(truth) == "GroundTruth(3 images, 3 objects, 2 classes)"


def test_selected_images_bring_everything_of_theirs():
    truth = table(
        areas=[7, 8, 9], crowd=[True, False, True], ids=[70, 80, 90], file_names=["a", "b", "c"], notes=("said",)
    )
    part = truth.select_images([9, 5])
    assert part.image_ids.tolist() == [5, 9]
    assert (part.dataset.widths.tolist(), part.dataset.heights.tolist()) == ([30, 40], [15, 25])
    assert part.dataset.file_names == ("b", "c")
    assert part.image_rows.tolist() == [0, 0]
    assert part.labels.tolist() == [1, 0]
    assert part.boxes.tolist() == [[0, 0, 29, 14], [3, 3, 4, 4]]
    assert part.extents.tolist() == [[29, 14], [1, 1]]
    assert part.areas.tolist() == [8, 9]
    assert part.crowd.tolist() == [False, True]
    assert part.ids.tolist() == [80, 90]
    assert part.masks.boxes.tolist() == [[0, 0, 29, 14], [3, 3, 4, 4]]
    assert (part.notes, part.source) == (as_notes(["said"]), "truth.json")
    assert len(truth.select_images([])) == 0


def test_boxes_come_in_any_order_and_leave_by_image():
    truth = GroundTruth.from_boxes(
        ["cup", "dog"],
        {9: (40, 25), 3: (20, 10)},
        [9, 3, 9],
        [[1.5, 2, 5, 8], [0, 0, 4, 2], [10, 10, 12, 14]],
        [1, 0, 0],
    )
    assert truth.image_ids.tolist() == [3, 9]
    assert (truth.dataset.widths.tolist(), truth.dataset.heights.tolist()) == ([20, 40], [10, 25])
    assert truth.image_rows.tolist() == [0, 1, 1]
    assert truth.labels.tolist() == [0, 1, 0]
    assert truth.boxes.tolist() == [[0, 0, 4, 2], [1.5, 2, 5, 8], [10, 10, 12, 14]]
    assert truth.areas.tolist() == [8, 21, 8]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([4], [[0, 0, 1, 1]], [0]), "image 4: unknown image of an object"),
        (([3], [[0, 0, 1, 1]] * 2, [0]), "1 objects, 2 boxes and 1 labels"),
        (([3], [[0, 0, 1, 1]], [0, 0]), "1 objects, 1 boxes and 2 labels"),
        (([3], [[0, 0, np.inf, 1]], [0]), "finite"),
    ],
)
def test_boxes_that_do_not_fit_are_refused(arguments, words):
    with pytest.raises(InputError, match=words):
        GroundTruth.from_boxes(["cup"], {3: (20, 10)}, *arguments)


def test_masks_come_in_any_order_and_leave_by_image():
    first, second, third = (np.zeros((10, 20), bool) for _ in range(3))
    first[2:4, 3:9] = second[5, 5] = third[:, 7] = True
    empty = np.zeros((10, 20), bool)
    truth = GroundTruth.from_masks(
        ["cup", "dog"], [(9, [first, empty, second], [1, 0, 0]), (3, [third], [1]), (5, [], [])], shapes={5: (7, 8)}
    )
    assert truth.image_ids.tolist() == [3, 5, 9]
    assert (truth.dataset.widths.tolist(), truth.dataset.heights.tolist()) == ([20, 8, 20], [10, 7, 10])
    assert truth.image_rows.tolist() == [0, 2, 2]
    assert truth.labels.tolist() == [1, 1, 0]
    assert truth.masks.pixels.tolist() == [10, 12, 1]
    assert truth.boxes[:, :2].tolist() == [[7, 0], [3, 2], [5, 5]]
    for row, mask in enumerate((third, first, second)):
        np.testing.assert_array_equal(truth.masks.to_array(row, 10, 20), mask)


def test_masks_of_images_without_objects_make_an_empty_table():
    truth = GroundTruth.from_masks(["cup"], [(4, [np.zeros((3, 5), bool)], [0])], shapes={6: (7, 8)})
    assert truth.image_ids.tolist() == [4, 6]
    assert (truth.dataset.widths.tolist(), truth.dataset.heights.tolist()) == ([5, 8], [3, 7])
    assert truth.boxes.shape == (0, 4)


@pytest.mark.parametrize(
    ("masks", "shapes", "words"),
    [
        ([(1, [np.ones((2, 3))], [])], None, "image 1: got 1 masks but 0 classes"),
        ([(1, [np.ones(3)], [0])], None, "image 1: expected masks of shape H x W, but got 1 dimensions"),
        ([(1, [np.ones((2, 3)), np.ones((3, 2))], [0, 0])], None, "image 1: masks of one image differ in shape"),
        ([(1, [np.ones((2, 3))], [0])], {1: (3, 2)}, "image 1: masks of one image differ in shape"),
        ([(1, [], [])], None, "image 1: an image without masks needs its shape; pass shapes="),
    ],
)
def test_masks_that_do_not_fit_are_refused(masks, shapes, words):
    with pytest.raises(InputError, match=words):
        GroundTruth.from_masks(["cup"], masks, shapes=shapes)


def test_columns_cannot_be_written_to_and_do_not_follow_their_maker():
    widths = np.array([20, 30, 40], np.int32)
    truth = table(widths=widths)
    widths[:] = 1
    assert truth.dataset.widths.tolist() == [20, 30, 40]
    columns = {**truth.columns(), **truth.dataset.columns(), "category_ids": truth.dataset.category_ids}
    arrays = {name: column for name, column in columns.items() if isinstance(column, np.ndarray)}
    assert len(arrays) == 11
    assert not [name for name, column in arrays.items() if column.flags.writeable]


# --- masks ----------------------------------------------------------------------------------------------------------
