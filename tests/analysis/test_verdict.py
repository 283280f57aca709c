"""Where the words of a verdict change."""

from __future__ import annotations

import pytest

from probox.analysis.budget import Budget
from probox.analysis.calibration_table import CalibrationRow
from probox.analysis.diagnosis import Diagnosis
from probox.analysis.intervals import Interval
from probox.analysis.verdict import verdict_of


def said(too_sure: Interval, budget: Budget | None = None, calibration: tuple[CalibrationRow, ...] = ()) -> str:
    """Return the verdict on a hundred pairs whose errors are so many times their sigmas."""
    diagnosis = Diagnosis(
        verdict=(), pairs=100, plain_pairs=0, pairing="", numbers={"NLL_pairs": 100, "coverage_68": 0.5},
        calibration=calibration, budget=budget, what_if=(), skill={}, best_thresholds=(),
    )  # fmt: skip
    return "; ".join(verdict_of(diagnosis, too_sure, None))


@pytest.mark.parametrize(
    ("factor", "low", "high", "words"),
    [
        (1.04, 1.02, 1.06, "corners are as sure as they should be: errors are 1.04 times their sigmas"),
        (1.06, 1.04, 1.08, "corners are 1.1 times too sure"),
        (0.96, 0.94, 0.98, "corners are as sure as they should be: errors are 0.96 times their sigmas"),
        (0.94, 0.92, 0.96, "corners are 1.1 times too unsure"),
        (1.1, 0.81, 1.24, "corners are as sure as they should be: errors are 1.10 times their sigmas"),
        (1.1, 0.79, 1.24, "errors are 1.1 times what sigmas say"),
        (1.1, 0.81, 1.26, "errors are 1.1 times what sigmas say"),
    ],
)
def test_when_corners_are_as_sure_as_they_should_be(factor: float, low: float, high: float, words: str) -> None:
    assert said(Interval(factor, low, high)).startswith(f"{words} (95 % interval ")


@pytest.mark.parametrize(("label", "words"), [(0.12, ", 12 % unsure or wrong labels"), (0.09, "")])
def test_a_second_cause_is_named_from_a_tenth_of_the_loss_on(label: float, words: str) -> None:
    shares = {"missed": 0.9 - label, "false_positives": 0.05, "label": label, "foreground": 0.05, "background": 0.0}
    budget = Budget(pdq=0.0, rounding=0.0, **shares)
    assert said(Interval(1.0, 0.9, 1.1), budget).endswith(f"of the lost points are missed objects{words}")


@pytest.mark.parametrize(
    ("group", "edges", "bias", "rmse", "told"),
    [
        ("edge", 100, 9.0, 12.0, "x1 by +9.0 px"),
        ("edge", 100, -9.0, 12.0, "x1 by -9.0 px"),
        ("edge", 100, 9.0, 13.0, ""),  # less than half of the mean square
        ("edge", 100, 1.1, 1.5, "x1 by +1.1 px"),
        ("edge", 100, 0.9, 1.0, ""),  # a pixel is a matter of counting: `last_pixels`
        ("edge", 3, 9.0, 9.5, ""),
        ("class", 100, 9.0, 9.5, ""),
    ],
)
def test_boxes_that_lie_aside(group: str, edges: int, bias: float, rmse: float, told: str) -> None:
    row = CalibrationRow(group, "x1", edges, 3.0, bias, rmse, 4.0, 0.5, 0.6, 2.0)
    text = said(Interval(3.0, 2.9, 3.1), calibration=(row,))
    assert ("the truth lies to one side of the boxes" in text) == bool(told)
    assert told in text
