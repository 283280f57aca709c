"""What may be concluded from differences, in one sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from probox.analysis.intervals import Interval
from probox.evaluation.text import limit_digits
from probox.measures.measure import Column
from probox.support.words import with_count

__all__ = ["Finding", "conclude", "listed", "p_words", "shown_difference"]

_MANY = 3
"""Of more differences that cannot be claimed, only the names are told: the table has the numbers."""


class Finding(NamedTuple):
    """A column, the first result's number minus the second's, its p-values, and whether a difference is claimed."""

    column: Column
    difference: Interval
    p: float
    adjusted: float
    claimed: bool


def conclude(couple: tuple[str, str], findings: Sequence[Finding], images: int, level: float, pairs: int = 1) -> str:
    """Return the sentence about two results; adjusted p-values are those of as many pairs.

    >>> pdq = Finding(Column(key="PDQ", heading="PDQ"), Interval(0.013, 0.004, 0.022, 0.005), 0.004, 0.004, True)
    >>> conclude(("A", "B"), [pdq], 206, 0.95)
    'A is better than B in PDQ by 1.30 points (95 % interval 0.40 to 2.20, p = 0.004, 206 images).'
    """
    if images < 2:
        return f"Nothing can be concluded about {couple[0]} and {couple[1]} from {with_count(images, 'image')}."
    claims: dict[str, list[Finding]] = {}
    unclaimed: dict[str, list[Finding]] = {}
    equal: list[str] = []
    missing: list[str] = []
    for finding in findings:
        column, difference = finding.column, finding.difference
        if not math.isfinite(difference.value):
            missing.append(_name(column))
        elif difference.value == difference.low == difference.high == 0:
            equal.append(_name(column))
        elif finding.claimed:
            (ahead, behind), how = _order(couple, column, difference)
            claims.setdefault(f"{ahead} is {how} than {behind}", []).append(finding)
        else:
            unclaimed.setdefault(_reason(finding, level, pairs), []).append(finding)
    corrected = f", Holm's correction for {pairs} pairs" if pairs > 1 else ""
    amounts = _Amounts(f"{100 * level:g} % interval ", f", {images:,} images{corrected}", adjusted=pairs > 1)
    said = [
        f"{who} {listed([f'in {_name(finding.column)} by {amounts.of(finding)}' for finding in found])}"
        for who, found in claims.items()
    ]
    for reason, found in unclaimed.items():
        names = listed([_name(finding.column) for finding in found])
        told = [amounts.of(finding) for finding in found] if len(found) <= _MANY else []
        rest = f": {couple[0]} minus {couple[1]} is {listed(told)}" if told else ""
        said.append(f"in {names} no difference can be claimed{reason}{rest}")
    said += [f"in {listed(equal)} they are equal"] if equal else []
    said += [f"in {listed(missing)} one of them has no finite number"] if missing else []
    text = "; ".join(said) or f"there is nothing to compare {couple[0]} and {couple[1]} by"
    return f"{text[:1].upper() if text.startswith(('in ', 'there ')) else text[:1]}{text[1:]}."


def _reason(finding: Finding, level: float, pairs: int) -> str:
    """Return why nothing is claimed although the interval, which is of this pair alone, excludes 0 as it is printed."""
    low, high = shown_difference(finding.column, finding.difference)[1:]
    digits = limit_digits(finding.column, low, high)
    low, high = (float(_number(finding.column, end, digits).replace(",", "")) for end in (low, high))
    if not (low > 0 or high < 0):
        return ""
    if pairs > 1 and finding.p <= 1 - level:
        return f" after Holm's correction for {pairs} pairs, although the interval of this pair alone excludes 0"
    return f" by the permutation test (p above {1 - level:.2g}), although the interval excludes 0"


class _Amounts:
    """By how much results differ, with intervals; what is true of all intervals is told with the first."""

    def __init__(self, before: str, behind: str, *, adjusted: bool) -> None:
        self.before, self.behind, self.adjusted = before, behind, adjusted

    def of(self, finding: Finding) -> str:
        column, difference, p, adjusted, claimed = finding
        value, low, high = shown_difference(column, difference)
        sign = -1 if claimed and value < 0 else 1  # a claim says by how much one is ahead, whichever it is
        low, high = sorted((sign * low, sign * high))
        if math.isnan(low):
            return f"{_amount(column, sign * value, column.digits)} (without an interval{self.behind})"
        digits = limit_digits(column, low, high)
        between = f"{_number(column, low, digits)} to {_number(column, high, digits)}"
        both = f"{p_words(p)}, adjusted {p_words(adjusted)}" if self.adjusted else p_words(adjusted)
        ends = f"{self.before}{between}, {both}{self.behind}"
        self.before = self.behind = ""
        return f"{_amount(column, sign * value, digits)} ({ends})"


def listed(words: Sequence[str]) -> str:
    """Return words as a sentence lists them.

    >>> listed(["PDQ"]), listed(["PDQ", "mAP", "NLL"])
    ('PDQ', 'PDQ, mAP and NLL')
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def shown_difference(column: Column, difference: Interval) -> tuple[float, float, float]:
    """Return a difference and its interval as tables show the column: of an error's complement, the other way round."""
    value, low, high = difference.value, difference.low, difference.high
    return (0.0 - value, 0.0 - high, 0.0 - low) if column.complement else (value, low, high)  # never -0.0


def p_words(p: float) -> str:
    """Return p as people write it.

    >>> p_words(0.0214), p_words(0.000999), p_words(0.0004)
    ('p = 0.021', 'p = 0.001', 'p < 0.001')
    """
    return "p < 0.001" if p < 0.0005 else f"p = {p:.3f}"


def _name(column: Column) -> str:
    return column.heading or column.key


def _order(couple: tuple[str, str], column: Column, difference: Interval) -> tuple[tuple[str, str], str]:
    """Return who is ahead of whom, and how."""
    first_is_higher = shown_difference(column, difference)[0] > 0
    if column.shown_better is None:
        return couple, "higher" if first_is_higher else "lower"
    return couple if first_is_higher == (column.shown_better == "high") else (couple[1], couple[0]), "better"


def _number(column: Column, value: float, digits: int) -> str:
    return f"{round(column.scale * value, digits) + 0.0:,.{digits}f}"  # -0.04 is 0.0, not -0.0


def _amount(column: Column, value: float, digits: int) -> str:
    unit = "points" if column.unit == "per cent" else column.symbol
    return f"{_number(column, value, digits)} {unit}".rstrip()
