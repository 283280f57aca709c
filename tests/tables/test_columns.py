"""Columns: arrays of a known type and shape, whole numbers that stay whole, rows that are found again."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest

from probox import InputError
from probox.tables.columns import Table, column, columns_of, frozen, joined, rows_where_all
from probox.tables.labels import align_labels, canonical_name, column_of_each


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1.0, -2.0], np.int64),
        (np.array([1, 2], np.uint8), np.int64),
        ([2**31 - 1, -(2**31)], np.int32),
        ([0, 255], np.uint8),
    ],
)
def test_whole_numbers_of_any_type_are_taken(values, dtype):
    column = frozen(values, dtype, (-1,), "ids")
    assert column.dtype == dtype
    np.testing.assert_array_equal(column, np.asarray(values))


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
@pytest.mark.parametrize("values", [[True, False], [1 + 0j], np.array([1], "m8[s]"), np.array([1], "M8[s]")])
def test_flags_complex_numbers_and_times_are_no_numbers(values, dtype):
    with pytest.raises(InputError, match=r"expected ids to be numbers, but got (bool|complex|timedelta|datetime)"):
        frozen(values, dtype, (-1,), "ids")
    assert frozen([True, False], bool, (-1,), "flags").tolist() == [True, False]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [([1.5], np.int64), ([2**31], np.int32), ([-1], np.uint8), ([256], np.uint8), ([1e300], np.int64)],
)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_numbers_that_would_change_are_refused(values, dtype):
    with pytest.raises(InputError, match=r"expected ids to be (whole )?numbers"):
        frozen(np.asarray(values), dtype, (-1,), "ids")


@pytest.mark.parametrize(
    ("values", "shape", "words"),
    [
        ([[1, 2], [3]], (-1, 2), "expected boxes to be numbers in rows of equal length"),
        ([["a", "b"]], (-1, 2), "expected boxes to be numbers"),
        ([[1, 2, 3]], (-1, 2), "expected boxes of shape N x 2, but got 1 x 3"),
        ([1, 2], (-1, 2), "expected boxes of shape N x 2, but got 2"),
        (np.zeros((0, 5)), (-1, 4), "expected boxes of shape N x 4, but got 0 x 5"),
        ([[1, 2]], (3, 2), "expected boxes of shape 3 x 2, but got 1 x 2"),
    ],
)
def test_another_shape_is_named(values, shape, words):
    with pytest.raises(InputError, match=words):
        frozen(values, np.float64, shape, "boxes")


@pytest.mark.parametrize(("shape", "made"), [((-1,), (0,)), ((-1, 4), (0, 4)), ((0, 2, 2, 2), (0, 2, 2, 2))])
def test_nothing_has_the_shape_that_is_asked_for(shape, made):
    assert frozen([], np.float64, shape, "boxes").shape == made


def test_a_column_does_not_follow_its_maker():
    mine = np.arange(6.0)
    for given in (mine, mine[1:4], mine.reshape(2, 3)[0]):
        column = frozen(given, np.float64, (-1,), "column")
        before = column.copy()
        mine += 1
        np.testing.assert_array_equal(column, before)
        assert not column.flags.writeable
    mine.flags.writeable = False
    assert np.shares_memory(frozen(mine, np.float64, (-1,), "column"), mine)  # nobody can write to it: no copy


def test_a_row_needs_all_its_flags():
    flags = np.ones((4, 2, 3), bool)
    flags[1, 1, 2] = flags[3] = False
    assert rows_where_all(flags).tolist() == [True, False, True, False]
    assert rows_where_all(np.array([[True, False], [True, True]])).tolist() == [False, True]


def test_classes_meet_by_name():
    assert column_of_each(["TV", "cup", "dog"], ["Cup", " television ", "ghost"]).tolist() == [1, 0, -1]
    assert canonical_name("  MotorBike ") == canonical_name("motorcycle")


def test_aligned_probabilities_are_zero_where_nothing_is_said():
    given = np.array([[0.25, 0.5, 0.125]], np.float32)
    aligned = align_labels(given, ["ghost", "dog", "cup"], ["cup", "cat", "dog"])
    np.testing.assert_array_equal(aligned, np.float32([[0.125, 0.0, 0.5]]))
    assert align_labels(given, ["a", "b", "c"], ["a", "b", "c"]) is given


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Fruit(Table):
    """A table for these tests: names of kinds for the whole, numbers per fruit."""

    kinds: tuple[str, ...]
    weights: Any = column(np.float64)
    shares: Any = column(np.float32, "kinds", optional=True)
    places: Any = column(np.int64, 2, optional=True)
    tags: Any = column(object, optional=True)

    def _default(self, name: str) -> Any:
        return np.stack([self.weights, self.weights], axis=1) if name == "places" else None


def test_declared_columns_are_checked_completed_and_frozen() -> None:
    fruit = Fruit(kinds=("fig", "pear"), weights=[1, 2], shares=[[0.5, 0.5], [0, 1]], tags=["a", "b"])
    assert list(columns_of(Fruit)) == ["weights", "shares", "places", "tags"]
    assert fruit.weights.dtype == np.float64
    assert fruit.places.tolist() == [[1, 1], [2, 2]]
    assert not any(values.flags.writeable for values in (fruit.weights, fruit.shares, fruit.places))
    assert len(fruit) == 2
    assert Fruit(kinds=(), weights=[1]).columns().keys() == {"weights", "places"}  # nobody has shares or tags


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"shares": [[0.5]]}, "shares of shape 1 x 2"),
        ({"places": [[1, 2], [3, 4]]}, "places of shape 1 x 2"),
        ({"places": [[1.5, 2]]}, "places to be whole numbers"),
        ({"weights": 3}, "weights to be a list"),
    ],
)
def test_columns_that_do_not_fit_are_named(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Fruit(**{"kinds": ("fig", "pear"), "weights": [1]} | changes)


def test_taking_joining_and_replacing_keep_what_is_of_the_whole() -> None:
    fruit = Fruit(kinds=("fig",), weights=[1, 2, 3], tags=["a", "b", "c"])
    taken = fruit.take(np.array([2, 0]))
    assert (taken.kinds, taken.weights.tolist(), taken.tags) == (("fig",), [3, 1], ("c", "a"))
    both = joined([fruit, taken])
    assert (both.kinds, both.tags, both.shares) == (("fig",), ("a", "b", "c", "c", "a"), None)
    assert joined([fruit, taken], np.array([4])).weights.tolist() == [1]
    assert fruit.replace(weights=[4, 5, 6]).weights.tolist() == [4, 5, 6]


def test_a_required_column_cannot_be_missing() -> None:
    fruit = Fruit(kinds=("fig",), weights=[1])
    with pytest.raises(InputError, match="expected weights to be"):
        fruit.replace(weights=None)
    assert fruit.replace(places=None).places.tolist() == [[1, 1]]  # it follows from weights


def test_rows_may_be_a_mask() -> None:
    fruit = Fruit(kinds=("fig",), weights=[1, 2, 3], tags=["a", "b", "c"])
    taken = fruit.take(np.array([True, False, True]))
    assert (taken.weights.tolist(), taken.tags) == ([1, 3], ("a", "c"))


def test_nobody_can_write_to_a_tables_memory() -> None:
    mine = np.array([1.0, 2.0])
    view = mine[:]
    view.flags.writeable = False
    fruit = Fruit(kinds=("fig",), weights=view)
    mine[0] = 7
    assert fruit.weights.tolist() == [1, 2]
    for again in (copy.deepcopy(fruit), pickle.loads(pickle.dumps(fruit))):
        assert again.weights.tolist() == [1, 2]
        assert not again.weights.flags.writeable
