"""Columns about matches that the kernel fills: the same as the equations say in plain NumPy, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from tests.evaluation.equal import assert_equal
from tests.strategies import worlds

import probox
from probox import _core
from probox.evaluation.verdicts import matched_columns
from probox.measures.pdq.kernel import assign
from probox.tables.results import QUALITIES, PairTable, Verdict, unmatched_columns


def plain_columns(n: int, rows: Any, partners: Any, values: Any, verdicts: Any) -> dict[str, Any]:
    """Return the columns of n things, of which `rows` are matched and the others have these verdicts."""
    partner = np.full(n, -1, np.int64)
    partner[rows] = partners
    qualities = np.full((n, len(QUALITIES)), np.nan)
    qualities[:, QUALITIES.index("pPDQ")] = 0.0
    qualities[rows] = values
    return {"verdicts": verdicts, "partners": partner, "qualities": qualities}


@given(worlds)
def test_as_the_definition_says(world: tuple[probox.GroundTruth, probox.Detections]) -> None:
    truth, found = world
    for how in ("optimal", "greedy"):
        result = probox.evaluate(truth, found, assignment=how, object_filter=True, measures="pdq")
        pairs, ignored, images = result.pairs, result.objects.ignored, result.detections.image_rows
        matched = assign(images[pairs.detections], pairs, how)
        mine, theirs, values = pairs.detections[matched], pairs.objects[matched], pairs.qualities[matched]
        outcome = np.where(ignored[theirs], Verdict.IGNORED, Verdict.TP)
        of_objects = np.where(ignored, Verdict.IGNORED, Verdict.FN).astype(np.uint8)
        of_objects[theirs] = outcome
        of_detections = np.full(len(images), Verdict.FP, np.uint8)
        of_detections[mine] = outcome
        wanted = (
            plain_columns(len(ignored), theirs, mine, values, of_objects),
            plain_columns(len(images), mine, theirs, values, of_detections),
        )
        for got, want, table in zip(
            matched_columns(ignored, images, pairs, how), wanted, (result.objects, result.detections), strict=True
        ):
            for name, column in want.items():
                assert got[name].dtype == column.dtype
                np.testing.assert_array_equal(got[name], column)
                np.testing.assert_array_equal(getattr(table, name), column)


@given(worlds)
def test_tables_made_at_once_equal_those_that_are_judged_later(
    world: tuple[probox.GroundTruth, probox.Detections],
) -> None:
    result = probox.evaluate(*world)
    assert_equal(result, result.rematch())
    assert result.objects.dataset is result.detections.dataset is result.dataset


def test_nothing_to_match() -> None:
    of_objects, of_detections = matched_columns(np.zeros(2, bool), np.zeros(3, np.int64), PairTable.none(), "optimal")
    assert of_objects["verdicts"].tolist() == [Verdict.FN] * 2
    assert of_detections["verdicts"].tolist() == [Verdict.FP] * 3
    for columns, n in ((of_objects, 2), (of_detections, 3)):
        assert {name: (column.dtype, column.shape) for name, column in columns.items()} == {
            name: (column.dtype, column.shape) for name, column in unmatched_columns(n).items()
        }


@pytest.mark.parametrize(("detection", "thing"), [(3, 0), (-1, 0), (0, 2), (0, -1)])
def test_rows_that_are_not_there_are_refused(detection: int, thing: int) -> None:
    with pytest.raises(ValueError, match="a pair has an unknown row"):
        _core.judge_matches(
            matched=np.array([True]),
            detections=np.array([detection]),
            objects=np.array([thing]),
            qualities=np.ones((1, 5)),
            detection_count=3,
            ignored_objects=np.zeros(2, bool),
            ignored=0,
            right=1,
            wrong=2,
            missed=3,
        )
