"""What may be concluded from differences, in one sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence

from probox.analysis.intervals import Interval
from probox.measures.measure import Column

__all__ = ["conclude", "listed", "p_words", "shown_difference"]

_MANY = 3
"""Of more differences that cannot be claimed, only the names are told: the table has the numbers."""

Finding = tuple[Column, Interval, float, bool]
"""A column, the first result's number minus the second's, p, and whether a difference may be claimed."""


def conclude(couple: tuple[str, str], findings: Sequence[Finding], images: int, level: float, pairs: int = 1) -> str:
    """Return the sentence about two results; p are corrected for as many pairs.

    >>> pdq = Column(key="PDQ", heading="PDQ")
    >>> conclude(("A", "B"), [(pdq, Interval(0.013, 0.004, 0.022, 0.005), 0.004, True)], 206, 0.95)
    'A is better than B in PDQ by 1.3 points (95 % interval 0.4 to 2.2, p = 0.004, 206 images).'
    """
    if images < 2:
        return f"Nothing can be concluded about {couple[0]} and {couple[1]} from {images} image{'s' * (images != 1)}."
    where = f", {images:,} images" + (f", Holm's correction for {pairs} pairs" if pairs > 1 else "")
    once = [f"{100 * level:g} % interval ", where]  # told with the first interval
    claims: dict[str, list[str]] = {}
    unclaimed: list[tuple[str, str]] = []
    equal: list[str] = []
    missing: list[str] = []
    for column, difference, p, claimed in findings:
        name = column.heading or column.key
        value, low, high = shown_difference(column, difference)
        if math.isnan(value):
            missing.append(name)
            continue
        if value == low == high == 0:
            equal.append(name)
            continue
        sign = -1 if claimed and value < 0 else 1  # a claim says by how much one is ahead, whichever it is
        low, high = sorted((sign * low, sign * high))
        sides = f"({once[0]}{_number(column, low)} to {_number(column, high)}, {p_words(p)}{once[1]})"
        amount = f"{_amount(column, sign * value)} {sides}"
        if claimed:
            (ahead, behind), how = _order(couple, value > 0, column)
            claims.setdefault(f"{ahead} is {how} than {behind}", []).append(f"in {name} by {amount}")
        elif len(unclaimed) < _MANY:
            unclaimed.append((name, amount))
        else:
            unclaimed.append((name, ""))
            continue
        once = ["", ""]
    said = [f"{who} {listed(what)}" for who, what in claims.items()]
    if unclaimed:
        told = [amount for _, amount in unclaimed]
        rest = f": {couple[0]} minus {couple[1]} is {listed(told)}" if all(told) else ""
        said.append(f"in {listed([name for name, _ in unclaimed])} no difference can be claimed{rest}")
    said += [f"in {listed(equal)} they are equal"] if equal else []
    said += [f"in {listed(missing)} one of them has no number"] if missing else []
    text = "; ".join(said) or f"there is nothing to compare {couple[0]} and {couple[1]} by"
    return f"{text[:1].upper() if text.startswith(('in ', 'there ')) else text[:1]}{text[1:]}."


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


def _order(couple: tuple[str, str], first_is_higher: bool, column: Column) -> tuple[tuple[str, str], str]:
    """Return who is ahead of whom, and how."""
    if column.shown_better is None:
        return couple, "higher" if first_is_higher else "lower"
    return couple if first_is_higher == (column.shown_better == "high") else (couple[1], couple[0]), "better"


def _number(column: Column, value: float) -> str:
    if column.unit == "per cent":
        return f"{round(100 * value, 1) + 0.0:.1f}"  # -0.04 is 0.0, not -0.0
    return f"{value:,.0f}" if column.unit == "count" else f"{value:.3g}"


def _amount(column: Column, value: float) -> str:
    return f"{_number(column, value)} points" if column.unit == "per cent" else _number(column, value)
