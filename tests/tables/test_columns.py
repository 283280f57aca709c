"""Columns: arrays of a known type and shape, whole numbers that stay whole, rows that are found again."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from probox import Detections, InputError
from probox.tables.label_probs import LabelProbs
from probox.tables.labels import align_labels, canonical_name, column_of_each
from probox.tables.results import QUALITIES, PairTable, Verdict
from probox.tables.table import frozen, rows_where_all


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
    ("values", "words"),
    [
        ([[1, 2], [3]], "expected boxes to be numbers in rows of equal length"),
        ([["a", "b"]], "expected boxes to be numbers, but got the text 'a'"),
        ([[1, 2, 3]], "expected boxes of shape N x 2, but got 1 x 3"),
        (7, "expected boxes to be a list, but got one int64; give a list"),
    ],
)
def test_another_shape_is_named(values, words):
    with pytest.raises(InputError, match=words):
        frozen(values, np.float64, (-1, 2), "boxes")


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
    given = LabelProbs([[0.25, 0.5, 0.125]])
    aligned = align_labels(given, ["ghost", "dog", "cup"], ["cup", "cat", "dog"])
    np.testing.assert_array_equal(aligned, np.float32([[0.125, 0.0, 0.5]]))
    assert align_labels(given, ["a", "b", "c"], ["a", "b", "c"]) is given


def test_nobody_can_write_to_a_tables_memory() -> None:
    mine = np.array([[1.0, 2.0, 3.0, 4.0]])
    view = mine[:]
    view.flags.writeable = False
    found = Detections(classes=["cup"], image_ids=[1], boxes=view, label_probs=[[0.5]])
    mine[0] = 7
    for table in (found, copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert table.boxes.tolist() == [[1, 2, 3, 4]]
        assert not table.boxes.flags.writeable


def pairs(n: int, start: int = 0) -> PairTable:
    rows = np.arange(start, start + n)
    return PairTable(detections=rows, objects=rows * 2, qualities=np.arange(5.0 * n).reshape(n, 5))


def test_qualities_go_by_their_names() -> None:
    table = pairs(3)
    assert QUALITIES == ("pPDQ", "spatial", "label", "foreground", "background")
    for number, name in enumerate(QUALITIES):
        assert table.quality(name).tolist() == [number, 5 + number, 10 + number]
    with pytest.raises(InputError, match="one of pPDQ, spatial, label, foreground, background, but got 'colour'"):
        table.quality("colour")


def test_a_table_says_what_it_holds() -> None:
    assert repr(pairs(3)) == "PairTable(3 rows: qualities, detections, objects)"


def test_columns_are_taken_as_they_are_and_locked() -> None:
    rows = np.arange(3)
    table = PairTable(detections=rows, objects=rows.copy(), qualities=np.zeros((3, 5)))
    assert table.detections is rows
    with pytest.raises(ValueError, match="read-only"):
        rows[0] = 7
    with pytest.raises(AssertionError, match="objects"):
        table.replace(objects=np.zeros(2, np.int64))


def test_verdicts_have_names() -> None:
    named = [Verdict.NAMES[v] for v in (Verdict.IGNORED, Verdict.TP, Verdict.FP, Verdict.FN)]
    assert named == ["ignored", "TP", "FP", "FN"]
