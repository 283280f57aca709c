"""The table of images and classes: the one place that turns image ids into rows."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probox import Detections, InputError, _core
from probox.tables.dataset import Dataset, is_image_size
from probox.tables.table import join_tables


def dataset(**changes: Any) -> Dataset:
    ids = changes.get("image_ids", [2, 5, 9])
    usual = {"classes": ["cup"], "image_ids": ids, "widths": [30] * len(ids), "heights": [20] * len(ids)}
    return Dataset(**usual | changes)


def test_rows_are_found_and_others_are_minus_one() -> None:
    assert dataset().rows_of([9, 1, 2, 3, 5, 10, -4]).tolist() == [2, -1, 0, -1, 1, -1, -1]
    assert dataset(image_ids=[]).rows_of([1, 2]).tolist() == [-1, -1]
    assert dataset().rows_of([]).tolist() == []


def test_chosen_rows_are_each_once_and_ascending() -> None:
    assert dataset().chosen_rows([9, 2, 9]).tolist() == [0, 2]
    words = r"t\.json: image 3: unknown image \(and 1 more\); choose among its 3"
    with pytest.raises(InputError, match=words):
        dataset(source="t.json").chosen_rows([4, 3, 2])


@given(st.lists(st.integers(0, 4)), st.integers(0, 6))
def test_offsets_say_where_an_images_things_start(rows: list[int], images: int) -> None:
    rows = sorted(row for row in rows if row < images)
    table = dataset(image_ids=range(images))
    offsets = table.offsets(np.array(rows, np.int64))
    assert len(offsets) == images + 1
    for image in range(images):
        assert rows[offsets[image] : offsets[image + 1]] == [image] * rows.count(image)


def test_rules_are_known_ones() -> None:
    assert dataset(rules="challenge").rules == "challenge"
    with pytest.raises(
        InputError, match="expected rules to be one of coco, challenge, lvis, openimages, but got 'rvc2'"
    ):
        dataset(rules="rvc2")


def test_one_name_per_image() -> None:
    assert dataset(file_names=[]).file_names == ("", "", "")
    with pytest.raises(InputError, match="one file name per image, but got 2 for 3"):
        dataset(file_names=["a", "b"])


def test_parts_join_in_any_order() -> None:
    parts = [dataset(image_ids=[5, 9], file_names=["b", "c"]), dataset(image_ids=[2], file_names=["a"], widths=[7])]
    both = join_tables(parts, np.array([2, 0, 1]))
    assert both.image_ids.tolist() == [2, 5, 9]
    assert both.file_names == ("a", "b", "c")
    assert both.shapes.tolist() == [[7, 20], [30, 20], [30, 20]]


def test_an_endless_file_name_is_refused() -> None:
    """One long name would make the column of all names as wide: 3,000 images of 100 kB each take a gigabyte."""
    two = dataset(image_ids=[1, 2])
    assert two.replace(file_names=("a", "b" * 1024)).file_names[1] == "b" * 1024
    with pytest.raises(InputError, match="image 2: expected a file name of at most 1,024 characters, but got one of"):
        two.replace(file_names=("a", "b" * 1025))


def test_categories_have_ids_of_their_own() -> None:
    with pytest.raises(InputError, match="the category id 3 is given to several classes"):
        dataset(classes=["cup", "dog"], category_ids=[3, 3])


def test_a_copy_is_locked_as_a_whole() -> None:
    again = pickle.loads(pickle.dumps(dataset()))
    assert not any(values.flags.writeable for values in (again.image_ids, again.widths, again.category_ids))


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((1, 1), True), ((0, 1), False), ((1, 0), False), ((1_000_000, 1), True), ((1, 1_000_001), False),
        ((1 << 15, 1 << 15), True), ((1 << 15, (1 << 15) + 1), False), ((8, 8, 64), True), ((8, 8, 63), False),
    ],
)  # fmt: skip
def test_sizes_that_images_may_have(size: tuple[int, ...], expected: bool) -> None:
    assert is_image_size(*size) == expected


ids = st.lists(st.sampled_from([-(2**61), -5, 0, 3, 4, 7, 2**61]), max_size=20).map(lambda x: np.array(x, np.int64))


def detections_of(image_ids: npt.NDArray[np.int64]) -> Detections:
    n = len(image_ids)
    return Detections(classes=["cup"], image_ids=image_ids, boxes=np.ones((n, 4)), label_probs=np.ones((n, 1)))


@given(ids, ids, st.booleans())
def test_as_sorting_says(image_ids: npt.NDArray[np.int64], some: npt.NDArray[np.int64], tidy: bool) -> None:
    known = np.unique(some)
    image_ids = np.sort(image_ids) if tidy else image_ids
    rows, numbers, order, in_order = _core.group_by_image(image_ids, known)
    dataset = Dataset(classes=["cup"], image_ids=known, widths=[9] * len(known), heights=[9] * len(known))
    places = {image_id: row for row, image_id in enumerate(known.tolist())}
    assert rows.tolist() == [places.get(image_id, -1) for image_id in image_ids.tolist()]
    np.testing.assert_array_equal(dataset.rows_of(image_ids), rows)
    there = np.flatnonzero(rows >= 0)
    np.testing.assert_array_equal(order, there[np.argsort(rows[there], kind="stable")])
    np.testing.assert_array_equal(numbers, np.where(rows >= 0, detections_of(image_ids).numbers_in_image(), -1))
    assert in_order == np.array_equal(order, np.arange(len(image_ids)))
    ascending = rows[order]
    starts = np.searchsorted(ascending, np.arange(len(known) + 1))
    np.testing.assert_array_equal(dataset.offsets(ascending), starts)
    assert dataset.offsets(ascending).dtype == np.int64
