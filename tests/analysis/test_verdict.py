"""Where the words of a verdict change."""

from __future__ import annotations

import math
from typing import Any

import pytest

from probox.analysis.baseline import Skill
from probox.analysis.calibration_table import CalibrationRow, ErrorFactor, Outliers
from probox.analysis.diagnosis import Diagnosis
from probox.analysis.diagnosis_text import summarize
from probox.analysis.loss_breakdown import Budget
from probox.analysis.resampling import Interval


def said(
    factor: Interval,
    budget: Budget | None = None,
    calibration: tuple[CalibrationRow, ...] = (),
    skill: Skill | None = None,
    **more: Any,
) -> str:
    """Return the verdict on a hundred pairs whose errors are so many times their std."""
    errors = ErrorFactor(factor=factor, **{"edges": 400, "pairs": 100, "images": 50, "rms_z": 2.0} | more)
    diagnosis = Diagnosis(
        verdict=(), pairs=100, plain_pairs=0, pairing="", numbers={}, error_factor=errors, calibration=calibration,
        budget=budget, what_if=(), skill={} if skill is None else {"pdq": skill}, best_thresholds=(),
    )  # fmt: skip
    return "; ".join(summarize(diagnosis))


@pytest.mark.parametrize(
    ("factor", "low", "high", "words"),
    [
        (1.84, 1.62, 2.13, "Overconfident: errors are 1.8 [1.6, 2.1]"),
        (0.62, 0.57, 0.68, "Underconfident: errors are 0.62 [0.57, 0.68]"),
        (1.03, 0.97, 1.08, "Calibrated: errors are 1.03 [0.97, 1.08]"),
        (1.049, 1.02, 1.06, "Calibrated: errors are 1.05 [1.02, 1.06]"),  # within the tolerance
        (1.051, 1.02, 1.06, "Overconfident: errors are 1.05 [1.02, 1.06]"),
        (0.953, 0.94, 0.98, "Calibrated: errors are 0.95 [0.94, 0.98]"),
        (0.952, 0.94, 0.98, "Underconfident: errors are 0.95 [0.94, 0.98]"),
        (1.1, 0.99, 1.24, "Calibrated: errors are 1.10 [0.99, 1.24]"),  # the interval holds 1
        (0.9, 0.81, 1.01, "Calibrated: errors are 0.90 [0.81, 1.01]"),
        (1.1, 1.001, 1.24, "Overconfident: errors are 1.100 [1.001, 1.240]"),  # 1.00 would not tell why
        (1.1, 0.79, 1.24, "Undecided: errors are 1.10 [0.79, 1.24]"),
        (1.1, 0.81, 1.26, "Undecided: errors are 1.10 [0.81, 1.26]"),
        (5.42, 0.95, 11.18, "Undecided: errors are 5.4 [0.9, 11.2]"),
        (2.0, math.nan, math.nan, "Undecided: errors are 2.00"),
    ],
)
def test_what_a_factor_means(factor: float, low: float, high: float, words: str) -> None:
    assert said(Interval(factor, low, high)) == f"{words} times the predicted std (68% quantile of |z|)"


def test_few_pairs_and_the_worst_group() -> None:
    told = said(Interval(1.84, 1.62, 2.13), pairs=29, worst=("class dog", Interval(3.0, 2.5, 3.5)))
    assert told.endswith("; worst: class dog, 3.0 [2.5, 3.5] times; 29 matched boxes are too few for a reliable factor")
    assert "too few" not in said(Interval(1.84, 1.62, 2.13), pairs=30)


def test_outliers_are_named_with_their_count_and_place() -> None:
    places = {"edge y2": 3, "edges within 20 px of the image border": 4}
    found = Outliers(edges=4, images=2, bound=5.0, largest=912.4, rms_z=1.02, places=places)
    told = said(Interval(0.98, 0.95, 1.02), rms_z=13.1, outliers=found)
    assert told.endswith(
        "; Outliers: 4 of 400 edges have |z| above 5 (largest 912), in 2 of 50 images, most in edge y2 (3) and edges "
        "within 20 px of the image border (4); RMS z is 13.10 with outliers, 1.02 without"
    )
    far = Outliers(edges=1, images=1, bound=10.0, largest=12.0, rms_z=1.0, places={})
    told = said(Interval(2.0, 1.9, 2.1), outliers=far)
    assert "1 of 400 edges has |z| above 10, 5 times the factor (largest 12), in 1 of 50 images; RMS z is 2.00" in told


@pytest.mark.parametrize(
    ("deterministic", "constant", "own", "words"),
    [
        (0.3, 0.56, 0.58, "The baseline reaches 93% of the gain over deterministic boxes. "
         "Own minus baseline is +2.00 [+1.00, +3.00], 4.5% of the 44.00 points between the baseline and 100"),
        (0.3, 0.58, 0.56, "The baseline reaches the whole gain over deterministic boxes. "
         "Own minus baseline is -2.00 [-3.00, -1.00]"),
        (0.6, 0.58, 0.56, "The own std gains nothing over deterministic boxes. Own minus baseline is -2.00 [-3.00, "),
        (0.57, 0.56, 0.58, "The baseline gains nothing over deterministic boxes. Own minus baseline is +2.00 [+1.00, "),
        (0.58, 0.56, 0.58, "The own std gains nothing over deterministic boxes. Own minus baseline is +2.00 [+1.00, "),
    ],
)  # fmt: skip
def test_the_baseline_has_both_denominators(deterministic: float, constant: float, own: float, words: str) -> None:
    value = own - constant
    skill = Skill("pdq", own, constant, Interval(value, value - 0.01, value + 0.01), 0.041, 9, deterministic)
    told = said(Interval(1.0, 0.9, 1.1), skill=skill)
    assert f"; Constant-variance baseline (std 4.1% of the side): PDQ {100 * constant:.2f}, own std " in told
    assert words in told
    assert told.count("%") == (4 if deterministic == 0.3 and own > constant else 2)  # no fraction of what is no gain
    assert "nan" not in told


def test_a_difference_to_the_baseline_that_may_be_0_is_not_claimed() -> None:
    for low, words in ((-0.001, True), (0.001, False)):
        skill = Skill("pdq", 0.51, 0.5, Interval(0.01, low, 0.03), 0.041, 9, 0.2)
        told = said(Interval(1.0, 0.9, 1.1), skill=skill)
        assert told.endswith(": no difference can be claimed") == words


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
    row = CalibrationRow(group, "x1", edges, 3.0, 3.0, bias, rmse, 4.0, 0.5, 0.6, 2.0)
    text = said(Interval(3.0, 2.9, 3.1), calibration=(row,))
    assert ("the truth lies to one side of the boxes" in text) == bool(told)
    assert told in text
