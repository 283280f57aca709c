"""False positives that outweigh everything else in PDQ, where a label threshold would leave most of them out."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from probox.evaluation.oddities.columns import Oddity
from probox.tables.results import Verdict

if TYPE_CHECKING:
    from probox.evaluation.result import Evaluation

__all__ = ["CLUTTER", "check_clutter", "warn_of_clutter"]

CLUTTER = "false positives dominate"

TIMES_HIGHER = 1.5
"""PDQ at the threshold must be so many times PDQ of all detections."""
NEAR = 0.75
"""The exact best threshold is sought from this fraction of the roughly best one on."""
LEVELS = (np.arange(100) / 100.0).astype(np.float32)


def check_clutter(evaluation: Evaluation) -> list[Oddity]:
    """Warn if false positives are most of PDQ's denominator TP + FP + FN and a label threshold raises PDQ much.

    The threshold is sought in steps of 0.01 with the matches of all detections, which takes no assignment; then exactly
    around the one found, where few detections are left to be matched anew.
    """
    if "pdq" not in evaluation.measures or evaluation.convention.label_threshold is not None:
        return []
    table, objects = evaluation.detections, evaluation.objects
    hit, wrong = table.verdicts == Verdict.TP, table.verdicts == Verdict.FP
    cost = np.where(wrong, table.costs if evaluation.convention.confidence_denominator else 1.0, 0.0)
    real = int((~objects.ignored).sum())
    if cost.sum() <= real or not real:  # TP + FN; where there are no objects, another check warns
        return []
    above = np.searchsorted(LEVELS, table.confidences, side="left")  # how many levels each is above

    def kept(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.asarray(np.bincount(above, values, len(LEVELS) + 1)[:0:-1].cumsum()[::-1])

    sums = kept(np.where(hit, table.quality("pPDQ"), 0.0))
    level = float(LEVELS[int(np.argmax(sums / (real + kept(cost))))])
    alone = dataclasses.replace(evaluation, measures=("pdq",))
    best = alone.keeping(table.confidences > np.float32(NEAR * level)).best_threshold()
    exact = NEAR * level if best.threshold is None else best.threshold
    return warn_of_clutter(evaluation.pdq, float(cost.sum()), real, exact, best.value)


def warn_of_clutter(pdq: float, false: float, real: int, level: float, there: float) -> list[Oddity]:
    """Warn if `false` positives outweigh `real` objects and PDQ is much higher `there`, above the threshold `level`."""
    if false <= real or not there > TIMES_HIGHER * pdq:
        return []
    text = (
        f"{false / (real + false):.0%} of PDQ's denominator TP + FP + FN are false positives: PDQ is {100 * pdq:.2f}%, "
        f"and {100 * there:.2f}% at scores > {level:.4g} (threshold chosen on these images)"
    )
    remedy = 'evaluate with label_threshold="auto", which chooses it on other images'
    return [Oddity(CLUTTER, text, remedy)]
