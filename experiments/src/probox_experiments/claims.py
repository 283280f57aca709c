"""Claims and what became of them: numbers, the limit they must keep, and whether they do."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from probox_experiments.table import ResultTable, presets_in

__all__ = [
    "EXACT",
    "Claim",
    "all_hold",
    "at_most",
    "close_enough",
    "equals",
    "falls",
    "not_measured",
    "stays_perfect",
    "verdict_words",
]

EXACT = 1e-6
"""What two numbers that are equal in exact arithmetic may differ by: label probabilities are float32."""


@dataclasses.dataclass(frozen=True)
class Claim:
    """A claim, and whether it holds.

    Parameters
    ----------
    claim : str
        The claim, as a sentence.
    holds : bool or None
        What the data say; None if what it speaks of was not measured.
    measured, required : str
        The numbers, and the limits that they must keep, in words.
    numbers : dict
        The numbers by name.
    explanation : str
        Why the data say so, where that is not plain.
    """

    claim: str
    holds: bool | None
    measured: str
    required: str
    numbers: Mapping[str, float] = dataclasses.field(default_factory=dict)
    explanation: str = ""

    def __str__(self) -> str:
        return f"{self.verdict}: {self.claim} ({self.measured}; required: {self.required})"

    @property
    def verdict(self) -> str:
        """Return in words what became of it."""
        return verdict_words(self.holds)


def verdict_words(holds: bool | None) -> str:
    """Return in words what became of a claim."""
    return "not measured" if holds is None else "holds" if holds else "does not hold"


def all_hold(claims: Iterable[Claim]) -> bool | None:
    """Return whether all claims hold that were measured; None if none was."""
    measured = [claim.holds for claim in claims if claim.holds is not None]
    return all(measured) if measured else None


def not_measured(claim: str, missing: str) -> Claim:
    """Return the claim about something that a table does not have.

    >>> print(not_measured("PDQ is 1/n", "n above 1"))
    not measured: PDQ is 1/n (nothing; required: n above 1)
    """
    return Claim(claim, None, "nothing", missing)


def at_most(claim: str, what: str, value: float, limit: float, explanation: str = "") -> Claim:
    """Return the claim about a number that must not pass a limit."""
    return Claim(claim, value <= limit, f"{what}: {value:.3g}", f"at most {limit:g}", {what: value}, explanation)


def equals(
    claim: str,
    table: ResultTable,
    expected: Mapping[str, npt.ArrayLike],
    tolerance: float = EXACT,
    explanation: str = "",
) -> Claim:
    """Return the claim that columns have known values.

    Parameters
    ----------
    claim : str
        The sentence.
    table : ResultTable
        What was measured. Numbers that depend on the preset are compared under every preset that is in it.
    expected : mapping of str to array
        The values of each number, row by row; ``PDQ`` stands for that of every preset, ``1 - moLRP`` for what it says.
    tolerance : float
        How far off each may be.
    explanation : str
        Why, where that is not plain.

    Examples
    --------
    >>> table = ResultTable({"n": [1, 2], "PDQ": [1, 0.5], "PDQ_paper": [1, 0.5], "moLRP": [0, 0.5]})
    >>> equals("both are 1/n", table, {name: 1 / table["n"] for name in ("PDQ", "1 - moLRP")}).measured
    'largest distance: PDQ 0, PDQ under `paper` 0, 1 - moLRP 0'
    """
    apart: dict[str, float] = {}
    for name, values in expected.items():
        if name.startswith("1 - "):
            columns = {name: 1 - table[name[4:]]} if name[4:] in table else {}
        else:
            named = presets_in(table, name) or ({"": name} if name in table else {})
            columns = {
                name if preset in ("", "reference") else f"{name} under `{preset}`": table[column]
                for preset, column in named.items()
            }
        if not columns or not len(table):
            return not_measured(claim, f"{', '.join(expected)}, at most {tolerance:g} off")
        for words, column in columns.items():
            distance = np.abs(column - np.asarray(values, dtype=np.float64))
            apart[words] = float(distance.max(initial=0.0))  # NaN stays NaN, and no NaN is small enough
    return close_enough(claim, apart, tolerance, explanation)


def close_enough(claim: str, apart: Mapping[str, float], tolerance: float = EXACT, explanation: str = "") -> Claim:
    """Return the claim that named distances are at most so large; one that is NaN is not."""
    return Claim(
        claim,
        all(value <= tolerance for value in apart.values()),
        "largest distance: " + ", ".join(f"{words} {value:.2g}" for words, value in apart.items()),
        f"at most {tolerance:g}",
        apart,
        explanation,
    )


def falls(claim: str, table: ResultTable, along: str, rising: bool = False) -> Claim:
    """Return the claim about PDQ falling at every step of a setting upwards, or, if `rising`, downwards."""
    columns = presets_in(table)
    if not columns or len(table) < 2:
        return not_measured(claim, f"PDQ at two values of {along} or more")
    order = np.argsort(table[along], kind="stable")
    order = order[::-1] if rising else order
    steps = {preset: float(np.diff(table[column][order]).max()) for preset, column in columns.items()}
    first, last = (float(table[next(iter(columns.values()))][order[end]]) for end in (0, -1))
    return Claim(
        claim,
        all(step < 0 for step in steps.values()),
        f"from {first:.4f} to {last:.4f}; smallest fall between neighbours {-max(steps.values()):.2g}",
        f"a fall at every step, under {' and '.join(f'`{preset}`' for preset in columns)}",
        {"first": first, "last": last} | {f"largest step, {preset}": step for preset, step in steps.items()},
    )


def stays_perfect(table: ResultTable, tolerance: float = EXACT, measures: tuple[str, ...] = ("mAP", "moLRP")) -> Claim:
    """Return the claim about mAP staying 1 and moLRP staying 0."""
    claim = f"{' and '.join(measures)} consider{'s' if len(measures) == 1 else ''} the detections perfect throughout"
    if not len(table) or any(name not in table for name in measures):
        return not_measured(claim, ", ".join(measures))
    worst = {name: float(table[name].min() if name == "mAP" else table[name].max()) for name in measures}
    shown = [f"{'lowest' if name == 'mAP' else 'highest'} {name}: {worst[name]:.6g}" for name in measures]
    limits = [f"mAP at least 1 - {tolerance:g}", f"moLRP at most {tolerance:g}"][: len(measures)]
    return Claim(
        claim,
        all(value >= 1 - tolerance if name == "mAP" else value <= tolerance for name, value in worst.items()),
        ", ".join(shown),
        ", ".join(limits),
        worst,
    )
