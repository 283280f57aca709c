"""The table of detections: what it accepts to the last bit of its tolerances, and what it derives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from probox import Detections, InputError, Masks
from probox.tables.geometry import SYMMETRY
from probox.tables.heatmaps import crop_heatmap, to_bytes
from probox.tables.label_probs import LabelProbs
from probox.tables.row_problems import (
    FARTHEST,
    ROUNDING,
    SIZE_ROUNDING,
    boxes_are_valid,
    extent_problems,
    find_problems,
)

USUAL: dict[str, Any] = {"boxes": [[10, 20, 50, 60]], "label_probs": [[0.2, 0.8]]}


def some_mask(runs):
    """Return a mask of these runs in the box of 2 x 2 pixels."""
    pixels = sum(end - begin for _, begin, end in runs)
    return Masks(
        np.array([[0, 0, 1, 1]], np.int32), np.array([pixels]), np.array([0, len(runs)]), np.array(runs, np.int32)
    )


def table(**columns: Any) -> Detections:
    return Detections(classes=["cup", "dog"], image_ids=[7], **{**USUAL, **columns})


def corner(xx: float, xy: float, yy: float, yx: float | None = None) -> np.ndarray:
    """Return covariances whose second corner is this one, the first a unit circle."""
    return np.array([[np.eye(2), [[xx, xy], [xy if yx is None else yx, yy]]]])


INSIDE, OUTSIDE = 0.98, 1.02
BEYOND = float(np.nextafter(FARTHEST, np.inf))

TOLERATED = [
    ("a probability above 1", {"label_probs": [[0.0, 1 + INSIDE * ROUNDING]]}),
    ("a probability below 0", {"label_probs": [[-INSIDE * ROUNDING, 0.5]]}),
    ("a sum above 1", {"label_probs": [[0.5, 0.5 + INSIDE * ROUNDING]]}),
    ("nothing at all", {"label_probs": [[0.0, 0.0]]}),
    ("a corner at the farthest", {"boxes": [[-FARTHEST, 0, FARTHEST, 9]]}),
    ("a box without area", {"boxes": [[10, 20, 10, 20]]}),
    ("a variance at the farthest", {"covariances": corner(FARTHEST**2, 0, 1)}),
    ("a skew", {"covariances": corner(4, 1, 4, 1 + 4 * INSIDE * SYMMETRY)}),
    ("a skew beside a variance at the farthest", {"covariances": corner(FARTHEST**2, 1, 4, 1.5)}),
    ("a variance below 0", {"covariances": corner(4, 0, -4 * INSIDE * SYMMETRY)}),
    ("a determinant below 0", {"covariances": corner(4, 4 + 4 * INSIDE * SYMMETRY, 4)}),
    ("a singular covariance", {"covariances": corner(4, 4, 4)}),
    ("a heatmap of 0 and 1", {"heatmaps": [np.array([[0.0, 1.0]])]}),
    ("a heatmap of bytes", {"heatmaps": [np.array([[0, 255]], np.uint8)]}),
    ("a heatmap without pixels", {"heatmaps": [np.zeros((0, 3))]}),
    ("no heatmap", {"heatmaps": [None]}),
    ("a mask", {"masks": some_mask([[0, 1, 2], [1, 0, 1]])}),
    ("an area of 0", {"areas": [0.0]}),
]

REFUSED = [
    ("a probability above 1", {"label_probs": [[0.0, 1 + OUTSIDE * ROUNDING]]}, "between 0 and 1, but got 1.00102"),
    ("a probability below 0", {"label_probs": [[-OUTSIDE * ROUNDING, 0.5]]}, "between 0 and 1, but got -0.00102"),
    ("a sum above 1", {"label_probs": [[0.5, 0.5 + OUTSIDE * ROUNDING]]}, "at most 1, but they make 1.00102"),
    ("a probability that is none", {"label_probs": [[np.nan, 0.5]]}, "NaN or infinite"),
    ("an endless probability", {"label_probs": [[-np.inf, 0.5]]}, "NaN or infinite"),
    ("a corner beyond", {"boxes": [[-BEYOND, 0, 1, 1]]}, "four finite box corners"),
    ("a corner that is none", {"boxes": [[0, 0, np.nan, 1]]}, "four finite box corners"),
    ("x turned round", {"boxes": [[10, 20, np.nextafter(10, 0), 60]]}, "x1 <= x2"),
    ("y turned round", {"boxes": [[10, 20, 50, np.nextafter(20, 0)]]}, "y1 <= y2"),
    ("a variance beyond", {"covariances": corner(FARTHEST**2 * 1.001, 0, 1)}, "finite covariances"),
    ("a variance that is none", {"covariances": corner(1, np.nan, 1)}, "finite covariances"),
    ("a skew", {"covariances": corner(4, 1, 4, 1 + 4 * OUTSIDE * SYMMETRY)}, "differ by 4.08e-06"),
    ("a variance below 0", {"covariances": corner(4, 0, -4 * OUTSIDE * SYMMETRY)}, "eigenvalue is -4.08e-06"),
    ("a determinant below 0", {"covariances": corner(4, 4 + 4 * OUTSIDE * SYMMETRY, 4)}, "eigenvalue is -4.08"),
    ("a heatmap above 1", {"heatmaps": [np.array([[0.0, np.nextafter(1, 2)]])]}, "between 0 and 1"),
    ("a heatmap below 0", {"heatmaps": [np.array([[-1e-300, 1.0]])]}, "between 0 and 1"),
    ("a heatmap with a hole", {"heatmaps": [np.array([[np.nan, 1.0]])]}, "between 0 and 1"),
    ("a heatmap of whole numbers", {"heatmaps": [np.array([[0, 1]])]}, "H x W heatmap, but got int64 1 x 2"),
    ("a run outside the box of its mask", {"masks": some_mask([[0, 1, 3], [1, 0, 1]])}, "runs by row and column"),
    ("runs of a mask out of order", {"masks": some_mask([[1, 0, 1], [0, 1, 2]])}, "runs by row and column"),
    ("an area below 0", {"areas": [-1e-300]}, "an area that is finite and at least 0"),
    ("an area without end", {"areas": [np.inf]}, "an area that is finite and at least 0"),
    ("an area of NaN", {"areas": [np.nan]}, "an area that is finite and at least 0"),
    ("a heatmap of a line", {"heatmaps": [np.array([0.5])]}, "H x W heatmap, but got float64 1"),
    ("a label below", {"labels": [-1]}, "labels from 0 to 1"),
    ("a label above", {"labels": [2]}, "labels from 0 to 1"),
]


@pytest.mark.parametrize("columns", [columns for _, columns in TOLERATED], ids=[name for name, _ in TOLERATED])
def test_within_tolerance_is_accepted_as_it_is(columns):
    made = table(**columns)
    for name, value in columns.items():
        if name not in ("heatmaps", "masks"):
            np.testing.assert_array_equal(getattr(made, name), np.asarray(value, getattr(made, name).dtype))


@pytest.mark.parametrize(
    ("columns", "words"), [(columns, words) for _, columns, words in REFUSED], ids=[name for name, *_ in REFUSED]
)
def test_beyond_tolerance_is_refused_in_words(columns, words):
    with pytest.raises(InputError, match=words):
        table(**columns)


EDGES = st.sampled_from([-FARTHEST, -BEYOND, 0.0, 10.0, np.nextafter(10, 0), 50.0, FARTHEST, BEYOND, np.nan, np.inf])
TOO_WIDE = float(np.nextafter(2 * FARTHEST, np.inf))
SIZES = st.sampled_from([0.0, -1e-300, 40.0, 40 + SIZE_ROUNDING, 41.500001, 2 * FARTHEST, TOO_WIDE, np.nan])


@given(st.lists(st.tuples(st.tuples(EDGES, EDGES, EDGES, EDGES), st.tuples(SIZES, SIZES)), max_size=3))
@example([((10.0, 10.0, 50.0, 50.0), (40.0, 40 + SIZE_ROUNDING))])
@example([((10.0, 10.0, 50.0, 50.0), (40.0, 40 + SIZE_ROUNDING + 1e-6))])
@example([((-FARTHEST, 0.0, FARTHEST, 0.0), (2 * FARTHEST + 2.4, 0.0))])
@example([((-FARTHEST, 0.0, FARTHEST, 0.0), (2 * FARTHEST, 2.6))])
def test_the_fast_check_of_boxes_finds_what_the_plain_one_does(rows: list[tuple[Any, Any]]) -> None:
    boxes = np.array([box for box, _ in rows]).reshape(-1, 4)
    extents = np.array([extent for _, extent in rows]).reshape(-1, 2)
    finite = (np.abs(boxes) <= FARTHEST).all(axis=1)
    ordered = (boxes[:, :2] <= boxes[:, 2:]).all(axis=1)
    wrong = [problem for problem in extent_problems(boxes, extents, finite & ordered) if len(problem.rows)]
    assert boxes_are_valid(boxes, extents) == ((finite & ordered).all() and not wrong)


def test_columns_that_are_not_given_are_not_looked_at():
    found = table()
    assert find_problems(found.boxes, found.label_probs) == []


def test_the_last_label_is_a_label():
    assert table(labels=[1]).labels.tolist() == [1]
    assert table(labels=[0]).scores.tolist() == [np.float32(0.2)]


def test_a_refusal_names_file_image_and_number():
    probs = [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5], [0.5, 0.7], [0.5, 0.8]]
    with pytest.raises(InputError) as caught:
        Detections(
            classes=["cup", "dog"],
            image_ids=[7, 3, 7, 7, 3],
            boxes=USUAL["boxes"] * 5,
            label_probs=probs,
            source="found.json",
        )
    assert (caught.value.file, caught.value.image, caught.value.entry) == ("found.json", 7, "detection 2")
    assert caught.value.remedy


def test_label_sums_of_many_classes_count_every_column():
    # Columns are added up in blocks of eight with a rest: each must be in the sum.
    for classes in (1, 7, 8, 9, 16, 17, 80):
        for column in range(classes):
            probs = np.full((1, classes), 0.5 / classes, np.float32)
            probs[0, column] += 0.6
            with pytest.raises(InputError, match=r"they make 1\.1"):
                Detections(
                    classes=[str(n) for n in range(classes)], image_ids=[1], boxes=USUAL["boxes"], label_probs=probs
                ) if classes > 1 else table(label_probs=[[0.55, 0.55]])


def test_numbers_count_within_each_image_in_the_order_of_the_table():
    found = Detections(classes=["cup"], image_ids=[7, 3, 7, 7, 3, 1], boxes=USUAL["boxes"] * 6, label_probs=[[0.5]] * 6)
    assert found.numbers_in_image().tolist() == [0, 0, 1, 2, 1, 0]
    assert found.select([]).numbers_in_image().tolist() == []


def test_what_is_not_given_follows_from_what_is():
    found = Detections(
        classes=["cup", "dog", "car"],
        image_ids=[1, 2],
        boxes=[[10, 20, 50, 65], [0, 0, 3, 4]],
        label_probs=[[0.25, 0.5, 0.125], [0.25, 0.25, 0.125]],
    )
    assert found.labels.tolist() == [1, 0]  # the first of equals
    assert found.scores.tolist() == [0.5, 0.25]
    assert found.extents.tolist() == [[40, 45], [3, 4]]
    assert found.scores.dtype == np.float64


def test_a_table_says_what_it_holds():
    assert repr(table()) == "Detections(1 detection in 1 image, 2 classes)"
    assert repr(table(covariances=np.zeros((1, 2, 2, 2)))).endswith("2 classes, 0 probabilistic)")
    assert repr(table(covariances=corner(1, 0, 1))).endswith("2 classes, 1 probabilistic)")
    assert repr(table(heatmaps=[None])).endswith("2 classes, 0 with heatmaps)")


def test_masks_of_detections():
    whole = table(masks=Masks.from_arrays([np.array([[False, True], [True, True]])]))
    assert repr(whole).endswith("2 classes, 1 with masks)")
    assert (whole.has_mask.tolist(), whole.areas.tolist()) == ([True], [3])
    empty = table(masks=Masks.empty(1), has_mask=[False])
    assert (empty.has_mask.tolist(), empty.areas.tolist()) == ([False], empty.extents.prod(axis=1).tolist())
    none = table(masks=Masks.empty(1))  # a mask without pixels
    assert (none.has_mask.tolist(), none.areas.tolist()) == ([True], [0])
    both = Detections.concatenate([table(), whole])
    assert (both.has_mask.tolist(), both.masks.pixels.tolist()) == ([False, True], [0, 3])
    assert both.areas.tolist() == [*empty.areas, 3]
    assert both[1:].masks.runs.tolist() == [[0, 1, 2], [1, 0, 2]]
    assert both.flat()["pixels"].tolist() == [0, 3]
    with pytest.raises(InputError, match="expected one mask per detection, but got 2 for 1 detections"):
        table(masks=Masks.empty(2))
    with pytest.raises(InputError, match="expected argument `masks` to be Masks, but got list"):
        table(masks=[np.ones((2, 2))])


def test_heatmaps_become_masks_above_a_threshold() -> None:
    rng = np.random.default_rng(8)
    values = rng.random((3, 6, 9)) * (rng.random((3, 6, 9)) < 0.7)
    values[:, :, :2], values[0, 1, 3], values[2] = 0.0, 0.5, 0.25
    bytes_ = to_bytes(values)
    flags = rng.random((6, 9)) < 0.5
    found = Detections(
        classes=["cup"], image_ids=[1] * 6, boxes=[[0, 0, 5, 5]] * 6, label_probs=[[0.5]] * 6,
        heatmaps=[values[0], crop_heatmap(values[1]), crop_heatmap(bytes_[2]), bytes_[0], None, None],
        masks=Masks.concatenate([Masks.empty(5), Masks.from_arrays([flags])]), has_mask=[False] * 5 + [True],
    )  # fmt: skip
    np.testing.assert_array_equal(np.asarray(found.heatmaps[1]), bytes_[1])
    for threshold in (0.5, 0.2):
        made = found.with_binary_masks(threshold)
        level = 255 * threshold
        expected = [values[0] > threshold, *(bytes_[row] > level for row in (1, 2, 0)), flags & False, flags]
        assert made.heatmaps is None
        for row, mask in enumerate(expected):
            np.testing.assert_array_equal(made.masks.to_array(row, 6, 9), mask)
        assert made.has_mask.tolist() == [True, True, True, True, False, True]
        assert made.areas.tolist() == [*(mask.sum() for mask in expected[:4]), 25, flags.sum()]
    plain = table()
    assert plain.with_binary_masks() is plain
    assert found.replace(masks=None).with_binary_masks().areas[4] == 25
    for wrong in (1.0, -0.1, float("nan")):
        with pytest.raises(InputError, match="expected threshold to be at least 0 and below 1, but got"):
            found.with_binary_masks(wrong)


def test_other_masks_bring_their_own_columns():
    mask = Masks.from_arrays([np.array([[False, True], [True, True]])])
    whole = table(masks=mask)
    assert whole.replace(masks=None).has_mask is whole.replace(masks=None).areas is None
    assert whole.replace(masks=Masks.from_boxes(np.array([[0, 0, 1, 1]], np.int32))).areas.tolist() == [4]
    assert whole.replace(masks=mask, areas=[7]).replace(scores=[0.5]).areas.tolist() == [7]


@pytest.mark.parametrize(
    ("box", "pixels", "offsets"),
    [([-1, 0, 3, 3], 20, [0, 0]), ([0, -1, 3, 3], 20, [0, 0]), ([0, 0, 3, 3], 15, [0, 0]), ([0, 0, 3, 3], 16, [0, 1])],
    ids=["left", "above", "pixels", "offsets"],
)
def test_masks_that_are_not_what_they_say(box, pixels, offsets):
    runs = np.zeros((0, 3), np.int32)
    masks = Masks(np.array([box], np.int32), np.array([pixels]), np.array(offsets), runs)
    with pytest.raises(InputError, match="expected runs by row and column"):
        table(masks=masks)


def test_rows_that_are_taken_are_those_of_a_table_made_anew() -> None:
    whole = Detections(
        classes=["cup", "dog"],
        image_ids=[7, 9, 8],
        boxes=[[1, 2, 3, 4], [5, 6, 7, 8], [2, 3, 9, 9]],
        label_probs=[[0.2, 0.8], [0.5, 0.1], [0.0, 1.0]],
        covariances=np.stack([np.eye(2) * n for n in (1, 2, 3, 4, 5, 6)]).reshape(3, 2, 2, 2),
        heatmaps=[None, np.zeros((4, 4)), None],
        source="found.json",
        notes=["one is odd"],
    )
    for rows in (np.array([2, 0]), np.array([True, False, True]), np.zeros(0, np.int64), np.array([1, 1, 1])):
        taken, anew = whole.take(rows), whole.replace(**whole.columns_at(rows))
        assert repr(taken) == repr(anew)
        assert (taken.classes, taken.source, taken.notes) == (anew.classes, anew.source, anew.notes)
        for name, column in anew.columns().items():
            mine = getattr(taken, name)
            assert type(mine) is type(column)
            if isinstance(column, LabelProbs):
                assert mine.equals(column)
                continue
            np.testing.assert_equal(mine, column)
            if isinstance(column, np.ndarray):
                assert mine.dtype == column.dtype
                assert mine.flags.c_contiguous
                assert not mine.flags.writeable
    with pytest.raises(InputError, match="expected image_ids of shape N"):
        table().select([[0]])
    with pytest.raises(IndexError):
        whole.select([3])
