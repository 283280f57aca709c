"""What is claimed of one constant sigma, and how sure the numbers are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from probox_experiments.beyond.error_kinds import ALIKE, HEAVY, KINDS, SIZE, TWO
from probox_experiments.claims import Claim, not_measured
from probox_experiments.table import ResultTable, column_of, presets_in

__all__ = ["CONSTANT", "OWN", "PLAIN", "SHARE", "SHUFFLED", "Estimate", "claims_of_constant_sigma", "estimated"]

PLAIN, CONSTANT, SHARE, OWN, SHUFFLED = "plain", "constant", "share", "own", "shuffled"
SURE = 2.0
"""A difference counts if it is more than so many standard errors."""
MOST = 0.5
"""The share of the gain that is most of it."""

Floats = npt.NDArray[np.float64]
Contrast = Callable[[Mapping[str, float]], float]


class Estimate(NamedTuple):
    """A number and its standard error."""

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:+.4f} ± {self.error:.4f}"

    @property
    def above(self) -> bool:
        """Return whether it is surely above 0."""
        return self.value > SURE * self.error


def estimated(table: ResultTable, detector: str, preset: str, contrast: Contrast, *needed: str) -> Estimate | None:
    """Return a contrast of PDQ by sigmas, with the jackknife's standard error; None if something is not there.

    PDQ of all repeats, or of all parts of the images, is the sum of their pPDQ over the sum of their TP, FP and FN.
    Each is left out in turn. For repeats of the same size this is the mean, and its standard error with ddof 1; one
    alone has none (NaN).

    Parameters
    ----------
    table : ResultTable
        Of `constant_sigma`.
    detector, preset : str
        Whose PDQ.
    contrast : callable
        Takes PDQ by sigmas, returns a number.
    needed : str
        The sigmas that it needs.
    """
    sums: dict[str, tuple[Floats, Floats]] = {}
    of = table.where(detector=detector)
    column = column_of("PDQ", preset)
    for sigmas in needed:
        rows = of.where(sigmas=sigmas)
        counted = sum(rows[column_of(key, preset)] for key in ("TP", "FP", "FN")) if len(rows) else np.zeros(0)
        counted = np.asarray(counted, np.float64)
        if not counted.sum() > 0:
            return None
        sums[sigmas] = np.where(counted > 0, np.nan_to_num(rows[column]), 0.0) * counted, counted
    count = len(next(iter(sums.values()))[0])
    if any(len(quality) != count for quality, _ in sums.values()):
        return None

    def without(row: int | None) -> float:
        kept = np.arange(count) != (-1 if row is None else row)
        return contrast({name: float(q[kept].sum() / n[kept].sum()) for name, (q, n) in sums.items()})

    if count < 2:
        return Estimate(without(None), math.nan)
    left_out = np.array([without(row) for row in range(count)])
    spread = np.square(left_out - left_out.mean()).sum()
    return Estimate(without(None), math.sqrt((count - 1) / count * spread))


def _above(one: str, other: str) -> tuple[Contrast, str, str]:
    return lambda pdq: pdq[one] - pdq[other], one, other


def _share_of_gain(pdq: Mapping[str, float]) -> float:
    gain = pdq[OWN] - pdq[PLAIN]
    return (pdq[CONSTANT] - pdq[PLAIN]) / gain if gain else math.nan


def claims_of_constant_sigma(table: ResultTable) -> list[Claim]:
    """Judge what a constant sigma is worth: of simulated errors what was foreseen, of detectors what they need."""
    names = list(dict.fromkeys(table["detector"].tolist())) if len(table) else []
    kinds = [name for name in names if name in KINDS]
    claims = _of_kinds(table, kinds) if kinds or not names else []
    return [*claims, *(claim for name in names if name not in KINDS for claim in _of_detector(table, name))]


def _of_kinds(table: ResultTable, kinds: Sequence[str]) -> list[Claim]:
    return [
        _judged("One constant sigma beats plain boxes, however corners err", table, kinds, _above(CONSTANT, PLAIN)),
        _judged(
            "Where all corners err alike, own sigmas do not beat one constant",
            table,
            [kind for kind in kinds if kind == ALIKE],
            _above(OWN, CONSTANT),
            surely=False,
        ),
        _judged(
            "Where errors grow with size, or are of two kinds, own sigmas beat one constant",
            table,
            [kind for kind in kinds if kind in (SIZE, TWO)],
            _above(OWN, CONSTANT),
        ),
        _judged(
            "Where errors grow with size, own sigmas do not beat one share of the side",
            table,
            [kind for kind in kinds if kind == SIZE],
            _above(OWN, SHARE),
            surely=False,
            explanation="The simulated detector knows the true side of an object, the share is of a side that errs.",
        ),
        _judged(
            "Where errors have heavy tails, one constant that PDQ chose beats their standard deviation",
            table,
            [kind for kind in kinds if kind == HEAVY],
            _above(CONSTANT, OWN),
        ),
        _judged(
            "Own sigmas that are shuffled do not beat one constant",
            table,
            kinds,
            _above(SHUFFLED, CONSTANT),
            surely=False,
        ),
        _most_of_the_gain("One constant", "however corners err", table, kinds),
    ]


def _of_detector(table: ResultTable, name: str) -> list[Claim]:
    claims = [_judged(f"{name}: one constant sigma beats plain boxes", table, [name], _above(CONSTANT, PLAIN))]
    if len(table.where(detector=name, sigmas=OWN)):
        claims += [
            _judged(f"{name}: own sigmas beat one constant", table, [name], _above(OWN, CONSTANT)),
            _judged(f"{name}: own sigmas beat one share of the side", table, [name], _above(OWN, SHARE)),
            _judged(
                f"{name}: own sigmas that are shuffled do not beat one constant",
                table,
                [name],
                _above(SHUFFLED, CONSTANT),
                surely=False,
            ),
            _most_of_the_gain(f"{name}: one constant", "", table, [name]),
        ]
    return claims


def _estimates(
    table: ResultTable, names: Sequence[str], contrast: Contrast, *needed: str
) -> dict[tuple[str, str], Estimate]:
    found = {
        (name, preset): estimated(table, name, preset, contrast, *needed)
        for name in names
        for preset in presets_in(table)
    }
    return {key: one for key, one in found.items() if one is not None and not math.isnan(one.error)}


def _judged(
    claim: str,
    table: ResultTable,
    names: Sequence[str],
    difference: tuple[Contrast, str, str],
    *,
    surely: bool = True,
    explanation: str = "",
) -> Claim:
    """Return the claim that a difference of PDQ is surely above 0, or, if not `surely`, that it is not."""
    contrast, *needed = difference
    what = f"{needed[0]} - {needed[1]}"
    required = f"{what} {'above' if surely else 'at most'} {SURE:g} standard errors"
    found = _estimates(table, names, contrast, *needed)
    if not found:
        return not_measured(claim, required)
    return Claim(
        claim,
        all(estimate.above == surely for estimate in found.values()),
        f"{what}: " + _listed(found),
        required,
        {f"{name}, {preset}": estimate.value for (name, preset), estimate in found.items()},
        explanation,
    )


def _most_of_the_gain(who: str, when: str, table: ResultTable, names: Sequence[str]) -> Claim:
    claim = f"{who} has at least half of what own sigmas gain over plain boxes{', ' * bool(when)}{when}"
    required = f"share of the gain less {SURE:g} standard errors at least {MOST:g}"
    found = _estimates(table, names, _share_of_gain, PLAIN, CONSTANT, OWN)
    if not found:
        return not_measured(claim, required)
    return Claim(
        claim,
        all(estimate.value - SURE * estimate.error >= MOST for estimate in found.values()),
        "(constant - plain) / (own - plain): "
        + ", ".join(f"{name} `{preset}` {e.value:.3f} ± {e.error:.3f}" for (name, preset), e in found.items()),
        required,
        {f"{name}, {preset}": estimate.value for (name, preset), estimate in found.items()},
    )


def _listed(found: Mapping[tuple[str, str], Estimate]) -> str:
    return ", ".join(f"{name} `{preset}` {estimate}" for (name, preset), estimate in found.items())
