"""Where the points went: what PDQ lacks of 1, split exactly among its causes.

With N = TP + FP + FN and the pairwise quality q of each true positive,

    1 = PDQ + FN / N + FP / N + sum over true positives of (1 - q) / N.

A true positive's loss is 1 - q = 1 - L^w (F B)^(1 - w): label, foreground and background quality, w the label's weight
(0.5). Which of the three is to blame depends on the order in which one looks at them, so each gets the mean of what it
takes over all orders, its Shapley value; the three add up to the loss.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox.measures.measure import Judged
from probox.tables.results import Verdict

__all__ = ["PARTS", "Budget", "budget_of", "shapley_losses"]

PARTS = {
    "missed": "missed objects",
    "false_positives": "false positives",
    "label": "labels",
    "foreground": "foreground",
    "background": "background",
    "rounding": "rounding",
}
"""Where points can go, and what to call it."""


@dataclasses.dataclass(frozen=True)
class Budget:
    """Shares of 1 that add up to 1.

    Parameters
    ----------
    pdq : float
        What was reached.
    missed, false_positives : float
        FN / N and FP / N.
    label, foreground, background : float
        What true positives lack, by its cause: unsure or wrong labels, pixels of the object that are not claimed, and
        pixels around it that are.
    rounding : float
        What conventions that round qualities near 0 and 1 give or take; below 1e-5.
    """

    pdq: float
    missed: float
    false_positives: float
    label: float
    foreground: float
    background: float
    rounding: float

    @property
    def lost(self) -> float:
        """Return everything that is lost: 1 - PDQ."""
        return math.fsum(getattr(self, name) for name in PARTS)

    @property
    def largest(self) -> str:
        """Return the part to which most was lost."""
        return max(PARTS, key=lambda name: getattr(self, name))

    def to_dict(self) -> dict[str, float]:
        """Return the shares by name."""
        return dataclasses.asdict(self)


def budget_of(evaluation: Judged) -> Budget:
    """Return where the points of an evaluation went; NaN where there is nothing to score.

    >>> import probox
    >>> from probox.demo import make_demo
    >>> demo = make_demo()
    >>> budget = budget_of(probox.evaluate(demo.truth, demo.detectors["sure"]))
    >>> abs(budget.pdq + budget.lost - 1) < 1e-12
    True
    """
    if isinstance(evaluation, Evaluation) and not evaluation.has_pairs:
        raise InputError("PDQ was not measured, so no points are lost", remedy="evaluate with PDQ among the measures")
    found, convention = evaluation.detections, evaluation.convention
    hit, wrong = found.verdicts == Verdict.TP, found.verdicts == Verdict.FP
    missed = int((evaluation.objects.verdicts == Verdict.FN).sum())
    false = math.fsum(found.costs[wrong].tolist()) if convention.confidence_denominator else int(wrong.sum())
    counted = int(hit.sum()) + false + missed
    if not counted:
        return Budget(*[math.nan] * 7)
    quality = found.quality("pPDQ")[hit]
    weight = convention.label_weight
    losses = shapley_losses(
        np.stack(
            [
                found.quality("label")[hit].astype(np.float64) ** weight,
                found.quality("foreground")[hit] ** (1.0 - weight),
                found.quality("background")[hit] ** (1.0 - weight),
            ],
            axis=1,
        )
    )
    sums = [math.fsum(column) for column in losses.T]
    rest = math.fsum([*(1.0 - quality), *(-losses.ravel())])
    shares = [math.fsum(quality), missed, false, *sums, rest]
    return Budget(*(share / counted for share in shares))


def shapley_losses(factors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return how much each of three factors takes from 1, (K, 3); a row adds up to 1 minus the row's product.

    For factors a, b, c the mean over all orders in which they are multiplied is, for a,

        (1 - a) (1/3 + (b + c) / 6 + b c / 3).

    >>> shapley_losses(np.array([[0.25, 1.0, 1.0]])).tolist()
    [[0.75, 0.0, 0.0]]
    """
    b, c = np.roll(factors, -1, axis=1), np.roll(factors, -2, axis=1)
    return np.asarray((1.0 - factors) * (1.0 / 3.0 + (b + c) / 6.0 + b * c / 3.0))
