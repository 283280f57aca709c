"""Is the uncertainty informative? What a detector's own sigmas are worth over the best constant one.

PDQ alone hardly shows it: the constant-variance baseline, a std of one fraction of the side for all boxes, takes
nothing from the detector and has most of the gain over deterministic boxes. So every rule is compared with the same
rule under that control,

    skill = 1 - S(own) / S(constant)       for the energy score and CRPS,
    skill = S(constant) - S(own)           for the NLL, whose zero means nothing,
    skill = PDQ(own) - PDQ(constant),

above 0 if the sigmas say more than that large boxes are less sure. The constant's share is the best for the rule on
the other half of the images. Plain boxes have no sigma that could be worth anything.

The difference in PDQ has two denominators, the gain over deterministic boxes (the same boxes without covariances) and
what remains between the baseline and a perfect score:

    gain_fraction      = (PDQ(constant) - PDQ(deterministic)) / (PDQ(own) - PDQ(deterministic)),
    remaining_fraction = (PDQ(own) - PDQ(constant)) / (1 - PDQ(constant)).

Both are defined if deterministic < constant <= own only: a fraction of no gain, or of a loss, means nothing.

A sigma of so many pixels for all corners may beat a share of the side and know as little. So the energy score has that
control, too: only what beats both tells sure corners from unsure ones.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from probox.analysis.control import SHARES, Fitted, halves
from probox.analysis.intervals import Interval, interval_of
from probox.analysis.resampling import drawn_images
from probox.analysis.rescoring import golden_section, pixel_covariances
from probox.evaluation.result import Evaluation
from probox.measures.matched import MatchedPairs
from probox.measures.measure import weighted_sums
from probox.measures.pdq.pdq_measure import PDQ
from probox.measures.scoring.scores import (
    EXACT,
    QUICK,
    crps,
    edge_variances,
    energy_scores,
    invertible,
    negative_log_likelihoods,
)
from probox.tables.covariances import constant_covariances

__all__ = ["RULES", "Skill", "skill_of", "skill_of_pdq"]

PIXELS = (0.05, 200.0)
"""Between these the best constant sigma in pixels is sought."""
STEPS = 12
"""Steps of the search for the best constant: it ends within 2 %."""

FloatArray = npt.NDArray[np.float64]
Rule = Callable[[MatchedPairs, FloatArray, bool], tuple[FloatArray, FloatArray]]
"""Takes pairs, covariances for them and whether to be quick, for a search; returns the sum of scores of each pair, and
of how many scores it is."""


def _nll(pairs: MatchedPairs, covariances: FloatArray, quick: bool = False) -> tuple[FloatArray, FloatArray]:
    return negative_log_likelihoods(pairs.residuals, covariances), np.ones(len(pairs))


def _energy(pairs: MatchedPairs, covariances: FloatArray, quick: bool = False) -> tuple[FloatArray, FloatArray]:
    return energy_scores(pairs.residuals, covariances, steps=QUICK if quick else EXACT), np.ones(len(pairs))


def _crps(pairs: MatchedPairs, covariances: FloatArray, quick: bool = False) -> tuple[FloatArray, FloatArray]:
    """Return CRPS of the edges that are not cut off by the image's border."""
    judged = ~pairs.truncated
    scores = crps(pairs.residuals, np.sqrt(edge_variances(covariances)))
    return np.asarray(np.where(judged, scores, 0.0).sum(axis=1)), judged.sum(axis=1).astype(np.float64)


RULES: dict[str, Rule] = {"nll": _nll, "energy": _energy, "energy_pixels": _energy, "crps": _crps}
"""Rules of which low scores are good; the control of ``energy_pixels`` is a constant in pixels."""


def _control(rule: str) -> tuple[Callable[[FloatArray, float | FloatArray], FloatArray], tuple[float, float]]:
    """Return how a rule's control makes covariances of boxes, and between which constants the best is sought."""
    return (pixel_covariances, PIXELS) if rule == "energy_pixels" else (constant_covariances, SHARES)


@dataclasses.dataclass(frozen=True)
class Skill:
    """What a detector's own sigmas are worth in one rule.

    Parameters
    ----------
    rule : str
        ``nll``, ``energy``, ``energy_pixels``, ``crps`` or ``pdq``.
    own, constant : float
        The rule's mean over pairs (or PDQ) under the detector's sigmas, and under the constant ones.
    skill : Interval
        Above 0: the detector's are worth something.
    share : float
        The constant sigma, as a share of the side (of rule ``energy_pixels``: in pixels).
    pairs : int
        How many pairs were scored; for PDQ, detections.
    deterministic : float
        For PDQ: that of the same boxes without covariances.
    """

    rule: str
    own: float
    constant: float
    skill: Interval
    share: float
    pairs: int
    deterministic: float = math.nan

    @property
    def gain_fraction(self) -> float:
        """Return which fraction of the gain over deterministic boxes the constant-variance baseline has, or NaN."""
        return (self.constant - self.deterministic) / (self.own - self.deterministic) if self._ordered else math.nan

    @property
    def remaining_fraction(self) -> float:
        """Return the gain over the baseline as a fraction of what remains between it and a PDQ of 1, or NaN."""
        return (self.own - self.constant) / (1.0 - self.constant) if self._ordered and self.constant < 1 else math.nan

    @property
    def _ordered(self) -> bool:
        return self.deterministic < self.constant <= self.own

    def to_dict(self) -> dict[str, float | list[float]]:
        """Return it for JSON."""
        told: dict[str, float | list[float]] = {
            "skill": self.skill.value,
            "interval": [self.skill.low, self.skill.high],
            "own": self.own,
            "constant": self.constant,
            "share_of_side": self.share,
            "pairs": self.pairs,
        }
        of_pdq = ("deterministic", "gain_fraction", "remaining_fraction") if self.rule == "pdq" else ()
        return told | {name: getattr(self, name) for name in of_pdq}


def skill_of(evaluation: Evaluation, rule: str, *, replicates: int = 1000, seed: int = 0) -> Skill:
    """Return what the sigmas of matched pairs are worth in a rule of `RULES`; NaN where no pair has any."""
    pairs = evaluation.matched_pairs
    pairs = pairs.take(np.flatnonzero(invertible(pairs.covariances)))
    if not len(pairs):
        return Skill(rule, np.nan, np.nan, Interval(np.nan), np.nan, 0)
    score = RULES[rule]
    boxes = evaluation.detections.boxes[pairs.detections]
    own, counts = score(pairs, pairs.covariances, False)
    half = halves(pairs.image_rows)
    shares = [_best_share(pairs, boxes, half == other, rule) for other in (1, 0)]
    covariances_of, _ = _control(rule)
    constant, _ = score(pairs, covariances_of(boxes, np.asarray(shares)[half]), False)

    images = len(evaluation.dataset)
    sums = np.stack([np.bincount(pairs.image_rows, values, images) for values in (own, constant, counts)])
    draws = [weighted_sums(weights, sums) for weights in drawn_images(images, replicates, seed)]
    value = _skill(rule, sums.sum(axis=1)[None])[0]
    interval = interval_of(float(value), _skill(rule, np.concatenate(draws, axis=1).T), images, 0.95)
    share = float(np.sqrt(shares[0] * shares[1]))
    with np.errstate(invalid="ignore"):
        means = np.divide([own.sum(), constant.sum()], counts.sum())
    return Skill(rule, float(means[0]), float(means[1]), interval, share, len(pairs))


def skill_of_pdq(
    own: Evaluation, constant: Fitted, deterministic: float = math.nan, *, replicates: int = 1000, seed: int = 0
) -> Skill:
    """Return what the sigmas are worth in PDQ: the difference to the best constant, images drawn alike for both.

    `deterministic` is PDQ of the same boxes without covariances.
    """
    assert PDQ.resampled is not None
    other = constant.evaluation
    images = len(own.dataset)
    draws = [
        PDQ.resampled(own, weights)["PDQ"] - PDQ.resampled(other, weights)["PDQ"]
        for weights in drawn_images(images, replicates, seed)
    ]
    interval = interval_of(own.pdq - other.pdq, np.concatenate(draws), images, 0.95)
    return Skill("pdq", own.pdq, other.pdq, interval, constant.value, len(own.detections), deterministic)


def _skill(rule: str, sums: FloatArray) -> FloatArray:
    """Return the skill from sums of the own scores, of the constant's and of pairs, (R, 3)."""
    own, constant, pairs = sums.T
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((constant - own) / pairs if rule == "nll" else 1.0 - own / constant)


def _best_share(pairs: MatchedPairs, boxes: FloatArray, chosen: npt.NDArray[np.bool_], rule: str) -> float:
    score = RULES[rule]
    covariances_of, between = _control(rule)
    pairs, boxes = pairs.take(np.flatnonzero(chosen)), boxes[chosen]
    if not len(boxes):
        return float(np.sqrt(between[0] * between[1]))

    def loss(logarithm: float) -> float:
        return float(score(pairs, covariances_of(boxes, float(np.exp(logarithm))), True)[0].sum())

    low, high = np.log(between)
    return float(np.exp(golden_section(loss, low, high, steps=STEPS)))
