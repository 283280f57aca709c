"""What is claimed of training with pPDQ, written down before it was measured, and judged with intervals over seeds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from probox_experiments.claims import Claim, not_measured
from probox_experiments.table import ResultTable
from probox_experiments.training.arms import ARMS, PPDQ_ARMS, find_arm
from probox_experiments.training.intervals import Interval, interval_of

__all__ = ["claims_of_training"]

MARGIN = 0.005
"""Half a point: what counts as the same PDQ or mAP, if the difference is not sure to be a loss at that."""
CORRELATION = 0.9
WIDER = 0.95
COVERAGE, COVERAGE_OFF = 0.9, 0.02
CONTROL = "l1-constant"

PRESETS = {"PDQ": "reference", "PDQ_paper": "paper"}

WHY_SIGMAS = (
    "-log pPDQ is, but for the division by the object's pixels, the log score of every pixel, whose expectation is "
    "best at the right sigma. Dividing by the pixels lets truths that came out small count more, and asks for a little "
    "more; 1 - pPDQ lets pairs that fit badly count less, and asks for less: both the more so the smaller an object is "
    "against its sigmas (`proper`). What the detector itself errs comes on top of the scenes' sigmas and asks for "
    "larger ones."
)


def claims_of_training(table: ResultTable) -> list[Claim]:
    """Judge both forms of the loss."""
    claims: list[Claim] = []
    names = set(table["arm"].tolist())
    for form in PPDQ_ARMS:
        if form in names:
            others = [arm.name for arm in ARMS if arm.name in names and arm.name not in PPDQ_ARMS]
            claims += [
                _at_least_every_other(table, form, others),
                _same_boxes(table, form, others),
                *([_more_than_a_constant(table, form)] if CONTROL in names else []),
                _sigmas_are_right(table, form),
                _occluded_is_wider(table, form),
                _coverage(table, form),
            ]
    if len(set(table["seed"].tolist())) < 2:
        return [not_measured(claim.claim, "an interval over seeds: two repeats or more") for claim in claims]
    return claims


def _column(table: ResultTable, arm: str, column: str) -> npt.NDArray[np.float64]:
    """Return a column of an arm by seed."""
    rows = table.where(arm=arm)
    return np.asarray(rows[column][np.argsort(rows["seed"])], dtype=np.float64)


def _difference(table: ResultTable, form: str, other: str, column: str) -> Interval:
    """Return the difference of two arms, seed by seed."""
    return interval_of(_column(table, form, column) - _column(table, other, column))


def _numbers(what: str, of: Interval) -> dict[str, float]:
    return {what: of.mean, f"{what}, low": of.low, f"{what}, high": of.high}


def _at_least_every_other(table: ResultTable, form: str, others: list[str]) -> Claim:
    differences = {(column, arm): _difference(table, form, arm, column) for column in PRESETS for arm in others}
    worse = [key for key, of in differences.items() if of.high < 0 or of.low < -MARGIN]
    shown = "; ".join(
        f"`{preset}`: " + ", ".join(f"{arm} {differences[column, arm].in_points()}" for arm in others)
        for column, preset in PRESETS.items()
    )
    lost = ", ".join(f"{find_arm(arm).title} (`{PRESETS[column]}`)" for column, arm in worse)
    return Claim(
        f"Trained with {find_arm(form).title}, PDQ is at least that of every other arm",
        not worse and bool(others),
        f"more than other arms by, in points, with 95 % intervals over seeds: {shown}",
        f"of every other arm, under both presets, no interval below 0, and none that reaches below -{100 * MARGIN:g}",
        {
            name: value
            for (column, arm), of in differences.items()
            for name, value in _numbers(f"{column} more than {arm}", of).items()
        },
        f"Not so against: {lost}." if worse else "",
    )


def _same_boxes(table: ResultTable, form: str, others: list[str]) -> Claim:
    differences = {arm: _difference(table, form, arm, "mAP") for arm in others}
    return Claim(
        f"Trained with {find_arm(form).title}, mAP is at most {100 * MARGIN:g} points below that of any other arm",
        bool(others) and all(of.low >= -MARGIN for of in differences.values()),
        "mAP, more than other arms by, in points: "
        + ", ".join(f"{arm} {of.in_points()}" for arm, of in differences.items()),
        f"no interval that reaches below -{100 * MARGIN:g}",
        {
            name: value
            for arm, of in differences.items()
            for name, value in _numbers(f"mAP more than {arm}", of).items()
        },
    )


def _more_than_a_constant(table: ResultTable, form: str) -> Claim:
    differences = {column: _difference(table, form, CONTROL, column) for column in PRESETS}
    return Claim(
        f"Trained with {find_arm(form).title}, PDQ is higher than with L1 and the best one sigma for all",
        all(of.low > 0 for of in differences.values()),
        "more by, in points: "
        + ", ".join(f"{of.in_points()} (`{PRESETS[column]}`)" for column, of in differences.items()),
        "both intervals above 0",
        {name: value for column, of in differences.items() for name, value in _numbers(column, of).items()},
    )


def _sigmas_are_right(table: ResultTable, form: str) -> Claim:
    judged = interval_of(_column(table, form, "log_sigma_correlation"))
    beside = interval_of(_column(table, form, "sigma_correlation"))
    ratio = interval_of(_column(table, form, "sigma_ratio"))
    return Claim(
        f"Trained with {find_arm(form).title}, predicted and true sigma correlate above {CORRELATION:g}",
        judged.low > CORRELATION,
        f"correlation of their logarithms {judged}; of the sigmas {beside}; median of predicted over true {ratio}",
        f"interval of the logarithms' above {CORRELATION:g}",
        _numbers("log sigma correlation", judged) | _numbers("sigma correlation", beside) | _numbers("ratio", ratio),
    )


def _occluded_is_wider(table: ResultTable, form: str) -> Claim:
    share = interval_of(_column(table, form, "occluded_wider"))
    hidden, seen = (interval_of(_column(table, form, name)).mean for name in ("occluded_sigma", "sharp_sigma"))
    return Claim(
        f"Trained with {find_arm(form).title}, a corner's ellipse is longer across an occluded edge than a sharp one",
        share.low > WIDER,
        f"share of corners with one of each {share}; mean sigma {hidden:.2f} and {seen:.2f} pixels",
        f"interval above {WIDER:g}",
        _numbers("share", share) | {"occluded": hidden, "sharp": seen},
    )


def _coverage(table: ResultTable, form: str) -> Claim:
    share = interval_of(_column(table, form, "coverage_90"))
    return Claim(
        f"Trained with {find_arm(form).title}, 90 % intervals hold 90 % of true edges, within 2 points",
        abs(share.low - COVERAGE) <= COVERAGE_OFF and abs(share.high - COVERAGE) <= COVERAGE_OFF,
        f"{share}",
        f"interval between {COVERAGE - COVERAGE_OFF:.2f} and {COVERAGE + COVERAGE_OFF:.2f}",
        _numbers("coverage", share),
        WHY_SIGMAS,
    )
