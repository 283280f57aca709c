"""Tables of results: columns together, qualities by name, locked."""

from __future__ import annotations

import numpy as np
import pytest

from probox import InputError
from probox.tables.columns import columns_of, joined
from probox.tables.results import QUALITIES, DetectionTable, ObjectTable, PairTable, Verdict


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


def test_rows_are_taken_and_joined_across_all_columns() -> None:
    both = joined([pairs(2), pairs(3, start=7)])
    assert both.detections.tolist() == [0, 1, 7, 8, 9]
    taken = both.take(np.array([4, 0]))
    assert (taken.detections.tolist(), taken.objects.tolist()) == ([9, 0], [18, 0])
    assert taken.qualities.tolist() == [[10, 11, 12, 13, 14], [0, 1, 2, 3, 4]]
    assert len(joined([pairs(2), pairs(3)], np.array([1, 1, 0]))) == 3


@pytest.mark.parametrize("kind", [ObjectTable, DetectionTable, PairTable])
def test_a_table_without_rows_has_every_column_in_its_type(kind: type) -> None:
    empty = kind.none()
    assert len(empty) == 0
    for name, declared in columns_of(kind).items():
        if declared.optional:
            assert getattr(empty, name) is None
            continue
        column = getattr(empty, name)
        assert (column.dtype, column.shape) == (declared.dtype, (0, *declared.row)), name


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


def test_a_table_says_what_it_holds() -> None:
    assert repr(pairs(3)) == "PairTable(3 rows: qualities, detections, objects)"
