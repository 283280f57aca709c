"""False detections beside an object: where they lie, where they stand, and what mAP makes of it on average."""

from __future__ import annotations

import numpy as np
import pytest

from probox.errors import InputError
from probox_experiments import Run, false_positions
from probox_experiments.figures import style
from probox_experiments.paper.misses import (
    FALSE_POSITIONS,
    boxes_beside,
    claims_of_false_positions,
    mean_anywhere,
)


def test_false_boxes_have_no_pixel_of_the_object() -> None:
    there = np.array([75, 75, 124, 124], np.int32)
    canvas = np.zeros((200, 200), np.int64)
    boxes = boxes_beside(there, 4000, 200, np.random.default_rng(0))
    assert len(boxes) == 4000
    for x1, y1, x2, y2 in boxes.tolist():
        assert 0 <= x1 <= x2 < 200
        assert 0 <= y1 <= y2 < 200
        canvas[y1 : y2 + 1, x1 : x2 + 1] += 1
    assert canvas[75:125, 75:125].sum() == 0
    # All around it, up to its very edge.
    assert min(canvas[74, 100], canvas[125, 100], canvas[100, 74], canvas[100, 125]) > 0


def test_the_mean_over_all_places() -> None:
    assert mean_anywhere(0) == (1.0, 0.0)
    mean, deviation = mean_anywhere(2)
    assert mean == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert deviation == pytest.approx(np.std([1, 1 / 2, 1 / 3]))


def test_places_are_what_they_are_called() -> None:
    table = false_positions(counts=(3,), repeats=12, run=Run(presets=["reference"]))
    assert table.where(place="first")["before"].tolist() == [0]
    assert table.where(place="last")["before"].tolist() == [3]
    assert set(table.where(place="anywhere")["before"]) == {0, 1, 2, 3}


def test_a_right_one_that_is_always_early_is_found_out() -> None:
    table = false_positions(counts=(0, 4), repeats=30, run=Run(presets=["reference"]))
    mean = claims_of_false_positions(table)[3]
    assert mean.holds
    # As if it never stood behind more than one of the four.
    kept = table.take((table["place"] != "anywhere") | (table["before"] < 2))
    assert not claims_of_false_positions(kept)[3].holds


def test_what_was_not_measured_is_not_judged() -> None:
    table = false_positions(counts=(0,), repeats=1, run=Run(presets=["paper"]))
    assert [claim.holds for claim in claims_of_false_positions(table)] == [True, True, True, None, True]
    with style():
        assert len(FALSE_POSITIONS.draw(table).axes) == 3
    nothing = table.take(np.zeros(0, np.int64))
    assert [claim.holds for claim in claims_of_false_positions(nothing)] == [None] * 5


@pytest.mark.parametrize("wrong", [{"counts": (100,)}, {"counts": (-1,)}, {"side": 150}, {"side": 0}])
def test_scenes_that_cannot_be_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InputError, match="expected"):
        false_positions(**wrong)  # type: ignore[arg-type]
