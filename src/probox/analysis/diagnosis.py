"""Why, and what now? Everything that an evaluation can tell about its points and its sigmas, a verdict first."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from probox.analysis.budget import Budget, budget_of
from probox.analysis.calibration_table import CalibrationRow, calibration_table, last_pixels, worst_edge
from probox.analysis.control import best_constant, best_scale, kept_inside
from probox.analysis.intervals import Interval, bootstrap, notes_on_images
from probox.analysis.rescoring import Scene, scene_of
from probox.analysis.skill import RULES, Skill, skill_of, skill_of_pdq
from probox.analysis.thresholds import BestThreshold, best_threshold
from probox.analysis.verdict import verdict_of
from probox.analysis.what_if import WhatIf, in_order, what_if_matched, what_if_scored
from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox.measures.registry import MEASURES, measures_called
from probox.measures.scoring.covariances import invertible

__all__ = ["NUMBERS", "Diagnosis", "diagnose", "too_sure_of"]

NUMBERS = {
    "nll": "nll",
    "energy": "energy",
    "crps": "crps",
    "nees": "nees",
    "brier": "brier",
    "ignorance": "ignorance",
    "ence": "ence",
    "mqce": "mqce",
    "sharpness": "sharpness",
    "ause": "ause",
    "spearman": "spearman",
    "mue": "mue",
    "d_ece": "d-ece",
    "laece": "laece",
    "laace": "laace",
    "oce": "oce",
    "qgc": "qgc",
    "pmb_nll": "pmb-nll",
}
"""The measures whose own number a diagnosis gives, by its key in JSON."""

PMB_PARTS = ("PMB_box", "PMB_label", "PMB_unmatched", "PMB_missed", "PMB_clutter")

Progress = Callable[[int, int], None]


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Diagnosis:
    """What `Evaluation.diagnose` returns; ``print`` shows it all, `verdict` is the short of it.

    Parameters
    ----------
    verdict : tuple of str
        The short of it, one sentence each.
    pairs, plain_pairs : int
        Pairs of a detection and its object by which covariances and labels are judged, and how many of them are plain
        boxes, which have no sigma to judge.
    pairing : str
        How they were paired.
    numbers : dict
        Every column of every measure of uncertainty, by its key, which names bins and pairing where they matter.
    calibration : tuple of CalibrationRow
        Sigmas against errors: all, each edge, each size, each class.
    budget : Budget, optional
        Where the points went.
    what_if : tuple of WhatIf
        PDQ after each repair, the best first.
    skill : dict of str to Skill
        What the sigmas are worth over the best constant ones, by rule.
    best_thresholds : tuple of BestThreshold
        Where each measure that was asked for is best.
    remarks : tuple of str
        What was left out, and why.
    """

    verdict: tuple[str, ...]
    pairs: int
    plain_pairs: int
    pairing: str
    numbers: Mapping[str, float]
    calibration: tuple[CalibrationRow, ...]
    budget: Budget | None
    what_if: tuple[WhatIf, ...]
    skill: Mapping[str, Skill]
    best_thresholds: tuple[BestThreshold, ...]
    remarks: tuple[str, ...] = ()

    @property
    def best_threshold(self) -> BestThreshold | None:
        """Return where PDQ is best; None if it was not measured or not asked for."""
        return next((best for best in self.best_thresholds if best.measure == "pdq"), None)

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON; `names` tells which measure, bins and pairing each number is of."""
        headlines = {key: measures_called([name])[0].headline.key for key, name in NUMBERS.items()}
        numbers = {key: self.numbers.get(column, math.nan) for key, column in headlines.items()}
        return {
            "verdict": list(self.verdict),
            "pairs": self.pairs,
            "plain_pairs": self.plain_pairs,
            "pairing": self.pairing,
            **numbers,
            "pmb_nll_floored": self.numbers.get("PMB_NLL_floored", math.nan),
            "pmb_nll_parts": {key.removeprefix("PMB_"): v for key, v in self.numbers.items() if key in PMB_PARTS},
            "coverage": {key.removeprefix("coverage_"): v for key, v in self.numbers.items() if "coverage_" in key},
            "names": headlines,
            "numbers": dict(self.numbers),
            "calibration": [dataclasses.asdict(row) for row in self.calibration],
            "budget": None if self.budget is None else self.budget.to_dict(),
            "what_if": {
                answer.key: {"PDQ": answer.pdq, "gain": answer.gain, "words": answer.words} for answer in self.what_if
            },
            "skill": {rule: skill.to_dict() for rule, skill in self.skill.items()},
            "best_threshold": None if self.best_threshold is None else self.best_threshold.to_dict(),
            "best_thresholds": {best.measure: best.to_dict() for best in self.best_thresholds},
            "remarks": list(self.remarks),
        }

    def __repr__(self) -> str:
        return f"Diagnosis({'; '.join(self.verdict)})"

    def __str__(self) -> str:
        from probox.analysis.diagnosis_text import diagnosis_text

        return diagnosis_text(self)


def diagnose(
    evaluation: Evaluation,
    *,
    thresholds_for: Sequence[str] = ("pdq",),
    replicates: int = 1000,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Diagnosis:
    """Say why an evaluation has the numbers it has, whether its sigmas can be trusted, and what would help.

    Parameters
    ----------
    evaluation : Evaluation
        What was measured; the diagnosis is of its convention and label threshold. Also as `Evaluation.diagnose`.
    thresholds_for : sequence of str
        The measures whose best label threshold is sought, beside PDQ.
    replicates, seed : int
        How often images are drawn anew for intervals, and where random numbers begin.
    threads : int, optional
        How many threads share the work; default: as many as there are processors. No number depends on it.
    progress : callable, optional
        Called with the numbers of steps done and in all.

    Examples
    --------
    >>> import probox
    >>> from probox.demo import make_demo
    >>> demo = make_demo()
    >>> diagnosis = probox.evaluate(demo.truth, demo.detectors["unsure"]).diagnose()
    >>> round(diagnosis.budget.pdq + diagnosis.budget.lost, 12)
    1.0
    """
    step = _Steps(progress)
    remarks = list(notes_on_images(len(evaluation.dataset)))
    pairs = evaluation.matched_pairs
    numbers = _numbers(evaluation, remarks)
    step()
    sure = too_sure_of(evaluation, replicates=replicates, seed=seed)
    calibration = calibration_table(evaluation)
    remarks += last_pixels(calibration)
    step()
    skill = {rule: skill_of(evaluation, rule, replicates=replicates, seed=seed) for rule in RULES}
    step()
    budget, bests, answers = None, list[BestThreshold](), list[WhatIf]()
    if len(evaluation.detections):
        asked = dict.fromkeys(["pdq", *thresholds_for])
        wanted = [name for name in asked if name != "pdq" or evaluation.has_pairs]
        bests = [best_threshold(evaluation, name) for name in wanted]
    if evaluation.has_pairs:
        budget = budget_of(evaluation)
        answers += what_if_matched(evaluation, next((best for best in bests if best.measure == "pdq"), None))
    else:
        remarks.append("PDQ was not measured: no budget, no what-if; evaluate with PDQ among the measures")
    step()
    scene = _scene(evaluation, threads, remarks) if evaluation.has_pairs and len(evaluation.detections) else None
    if scene is not None:
        inside = kept_inside(evaluation, scene)
        constant = best_constant(evaluation, scene)
        step()
        has_sigma = bool(evaluation.detections.covariances.any())
        scale = best_scale(evaluation, scene) if has_sigma else None
        step()
        answers += what_if_scored(evaluation, scene, inside, scale, constant)
        if constant is None:
            remarks.append("no constant sigma for PDQ: one half of the images has no detection to fit it on")
        else:
            skill["pdq"] = skill_of_pdq(inside, constant, replicates=replicates, seed=seed)
    diagnosis = Diagnosis(
        verdict=(),
        pairs=len(pairs),
        plain_pairs=int(pairs.plain.sum()),
        pairing=pairs.pairing,
        numbers=numbers,
        calibration=calibration,
        budget=budget,
        what_if=tuple(in_order(answers)),
        skill=skill,
        best_thresholds=tuple(bests),
        remarks=tuple(dict.fromkeys(remarks)),
    )
    step(last=True)
    return dataclasses.replace(diagnosis, verdict=verdict_of(diagnosis, sure, worst_edge(evaluation)))


def _numbers(evaluation: Evaluation, remarks: list[str]) -> dict[str, float]:
    """Return every column of the measures that evaluations do not take as a standard; say what cannot be had."""
    numbers: dict[str, float] = {}
    kept = evaluation.detections.label_probs is not None
    for measure in (measure for measure in MEASURES if not measure.standard):
        if "labels" in measure.needs and not kept:
            numbers.update(measure.nothing())
            remarks.append(
                "label probabilities were not kept: no rule about labels; evaluate anew (Parquet: all measures)"
            )
            continue
        numbers.update(measure.summary(evaluation))
        if measure.remarks is not None:
            remarks += measure.remarks(evaluation)
    return numbers


def too_sure_of(evaluation: Evaluation, *, replicates: int = 1000, seed: int = 0) -> Interval:
    """Return how many times too small sigmas are, with its interval."""
    nees = measures_called(["nees"])[0]
    key = nees.columns[1].key
    alone = dataclasses.replace(evaluation, measures=("nees",))
    pairs = evaluation.matched_pairs
    images = np.unique(pairs.image_rows[invertible(pairs.covariances) & ~pairs.plain])
    if len(images) < 2:  # draws of one image that matters say nothing
        return Interval(nees.summary(alone)[key])
    return bootstrap(alone, ["nees"], replicates=replicates, seed=seed)[key]


def _scene(evaluation: Evaluation, threads: int | None, remarks: list[str]) -> Scene | None:
    try:
        return scene_of(evaluation, threads=threads)
    except InputError as error:
        remarks.append(f"nothing was scored anew: {error.problem}")
        return None


class _Steps:
    """Counts steps for a progress bar."""

    TOTAL = 7

    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress
        self.done = 0

    def __call__(self, *, last: bool = False) -> None:
        self.done = self.TOTAL if last else self.done + 1
        if self.progress is not None:
            self.progress(self.done, self.TOTAL)
