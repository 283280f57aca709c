"""Claims and what became of them: numbers, the limit they must keep, and whether they do."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from probox.experiments.table import ResultTable

__all__ = ["Claim", "at_most", "falls", "fractions_of_one", "stays_perfect"]

EXACT = 1e-6
"""What two numbers that are equal in exact arithmetic may differ by: label probabilities are float32."""


@dataclasses.dataclass(frozen=True)
class Claim:
    """A claim, and whether it holds.

    Parameters
    ----------
    claim : str
        The claim, as a sentence.
    holds : bool
        What the data say.
    measured, required : str
        The numbers, and the limits that they must keep, in words.
    numbers : dict
        The numbers by name.
    explanation : str
        Why the data say so, where that is not plain.
    """

    claim: str
    holds: bool
    measured: str
    required: str
    numbers: Mapping[str, float] = dataclasses.field(default_factory=dict)
    explanation: str = ""

    def __str__(self) -> str:
        return (
            f"{'holds' if self.holds else 'does not hold'}: {self.claim} ({self.measured}; required: {self.required})"
        )


def at_most(claim: str, what: str, value: float, limit: float, explanation: str = "") -> Claim:
    """Return the claim about a number that must not pass a limit."""
    return Claim(claim, value <= limit, f"{what}: {value:.3g}", f"at most {limit:g}", {what: value}, explanation)


def falls(claim: str, table: ResultTable, along: str, rising: bool = False) -> Claim:
    """Return the claim about PDQ falling at every step of a setting upwards, or, if `rising`, downwards."""
    order = np.argsort(table[along], kind="stable")
    order = order[::-1] if rising else order
    steps = {name: np.diff(table[name][order]).max() for name in ("PDQ", "PDQ_paper")}
    first, last = (float(table["PDQ"][order[end]]) for end in (0, -1))
    return Claim(
        claim,
        all(step < 0 for step in steps.values()),
        f"from {first:.4f} to {last:.4f}; smallest fall between neighbours {-max(steps.values()):.2g}",
        "a fall at every step, under `reference` and `paper`",
        {
            "first": first,
            "last": last,
            "largest step, reference": steps["PDQ"],
            "largest step, paper": steps["PDQ_paper"],
        },
    )


def stays_perfect(table: ResultTable, tolerance: float = EXACT, measures: tuple[str, ...] = ("mAP", "moLRP")) -> Claim:
    """Return the claim about mAP staying 1 and moLRP staying 0."""
    worst = {"mAP": float(table["mAP"].min()), "moLRP": float(table["moLRP"].max())}
    holds = worst["mAP"] >= 1 - tolerance and ("moLRP" not in measures or worst["moLRP"] <= tolerance)
    shown = [f"{'lowest' if name == 'mAP' else 'highest'} {name}: {worst[name]:.6g}" for name in measures]
    limits = [f"mAP at least 1 - {tolerance:g}", f"moLRP at most {tolerance:g}"][: len(measures)]
    return Claim(
        f"{' and '.join(measures)} consider{'s' if len(measures) == 1 else ''} the detections perfect throughout",
        holds,
        ", ".join(shown),
        ", ".join(limits),
        {name: worst[name] for name in measures},
    )


def fractions_of_one(
    table: ResultTable, count: npt.NDArray[np.float64], names: tuple[str, ...], claim: str, tolerance: float
) -> Claim:
    """Return the claim about measures that must be 1/count; moLRP is taken as 1 - moLRP."""
    values = {name: 1 - table[name] if name == "moLRP" else table[name] for name in names}
    apart = {name: float(np.abs(value - 1 / count).max()) for name, value in values.items()}
    shown = {"moLRP": "1 - moLRP", "PDQ_paper": "PDQ under `paper`"}
    return Claim(
        claim,
        max(apart.values()) <= tolerance,
        "largest distance: " + ", ".join(f"{shown.get(name, name)} {value:.2g}" for name, value in apart.items()),
        f"at most {tolerance:g}",
        apart,
    )
