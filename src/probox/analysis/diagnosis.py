"""Why, and what now? Everything that an evaluation can tell about its points and its sigmas, a verdict first."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from probox.analysis.budget import Budget, budget_of
from probox.analysis.calibration_table import CalibrationRow, ErrorFactor, calibration_table, last_pixels
from probox.analysis.diagnosis_pieces import (
    Case,
    Controlled,
    Piece,
    best_for,
    best_of_half,
    every_number,
    factor_of,
    repaired_boxes,
    repaired_labels,
    skill_in,
    under_constant,
    under_scale,
    worked_out,
)
from probox.analysis.intervals import notes_on_images
from probox.analysis.rescoring import Scene, scene_of
from probox.analysis.skill import RULES, Skill
from probox.analysis.thresholds import BestThreshold
from probox.analysis.verdict import verdict_of
from probox.analysis.what_if import WhatIf, in_order, what_if_matched
from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox.measures.registry import measures_called
from probox.support.mapping import Mapper, here

__all__ = ["NUMBERS", "Diagnosis", "diagnose"]

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
Result = TypeVar("Result")


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
    error_factor : ErrorFactor
        How many times the predicted std the errors are, with an interval, outliers and the worst group.
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
    error_factor: ErrorFactor
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
            "error_factor": self.error_factor.to_dict(),
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
    mapper: Mapper = here,
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
    mapper : Mapper
        Who works out the pieces that take time. Default: this process; `probox.distributed` has a cluster do it.

    Examples
    --------
    >>> import probox
    >>> from probox.demo import make_demo
    >>> demo = make_demo()
    >>> diagnosis = probox.evaluate(demo.truth, demo.detectors["unsure"]).diagnose()
    >>> round(diagnosis.budget.pdq + diagnosis.budget.lost, 12)
    1.0
    """
    evaluation.expect_one_threshold("diagnose")
    remarks = list(notes_on_images(len(evaluation.dataset)))
    pairs = evaluation.matched_pairs  # before the evaluation is sent anywhere, which then has them
    asked = dict.fromkeys(["pdq", *thresholds_for]) if len(evaluation.detections) else {}
    measures = [name for name in asked if name != "pdq" or evaluation.has_pairs]
    unscored: list[str] = []
    scene = _scene(evaluation, threads, unscored) if evaluation.has_pairs and len(evaluation.detections) else None
    case = Case(evaluation, scene, replicates, seed)
    controls = _controls(case)
    searches = {(control, half): Piece(best_of_half, (control, half)) for control in controls for half in (0, 1)}
    skills = {rule: Piece(skill_in, (rule,)) for rule in RULES}
    sought = {name: Piece(best_for, (name,)) for name in measures}
    repairs = [Piece(repaired_labels), Piece(repaired_boxes)] if scene is not None else []
    # The searches and the factor first: something waits for them.
    pieces = [*searches.values(), Piece(factor_of), *skills.values(), *sought.values(), *repairs, Piece(every_number)]
    step = _Steps(progress, len(pieces) + len(controls) + 1)
    working = map(step, worked_out(pieces, case, mapper))
    calibration = calibration_table(evaluation)
    values = {search: next(working) for search in searches}
    factor = next(working)
    given = {"constant": (), "scale": (factor.factor.value,)}
    applying = [Piece(under, ((values[c, 0], values[c, 1]), *given[c])) for c, under in controls.items()]
    controlled = map(step, worked_out(applying, case, mapper))
    skill = {rule: next(working) for rule in skills}
    bests = [next(working) for _ in sought]
    answers = [next(working) for _ in repairs]
    numbers, said = next(working)
    remarks += [*said, *last_pixels(calibration)]
    budget = None
    if evaluation.has_pairs:
        budget = budget_of(evaluation)
        answers += what_if_matched(evaluation, next((best for best in bests if best.measure == "pdq"), None))
    else:
        remarks.append("PDQ was not measured: no budget, no what-if; evaluate with PDQ among the measures")
    remarks += unscored
    for control, under in zip(controls, controlled, strict=True):
        answers += under.answers
        if under.skill is not None:
            skill["pdq"] = under.skill
        elif control == "constant":
            remarks.append("no constant sigma for PDQ: one half of the images has no detection to fit it on")
    diagnosis = Diagnosis(
        verdict=(),
        pairs=len(pairs),
        plain_pairs=int(pairs.plain.sum()),
        pairing=pairs.pairing,
        numbers=numbers,
        error_factor=factor,
        calibration=calibration,
        budget=budget,
        what_if=tuple(in_order(answers)),
        skill=skill,
        best_thresholds=tuple(bests),
        remarks=tuple(dict.fromkeys(remarks)),
    )
    return step(dataclasses.replace(diagnosis, verdict=verdict_of(diagnosis)))


def _controls(case: Case) -> dict[str, Callable[..., Controlled]]:
    """Return what is fitted to be compared with: nothing where nothing can be scored anew."""
    if case.scene is None:
        return {}
    sigmas = bool(case.evaluation.detections.covariances.any())
    return {"constant": under_constant} | ({"scale": under_scale} if sigmas else {})


def _scene(evaluation: Evaluation, threads: int | None, remarks: list[str]) -> Scene | None:
    try:
        return scene_of(evaluation, threads=threads)
    except InputError as error:
        remarks.append(f"nothing was scored anew: {error.problem}")
        return None


class _Steps:
    """Counts steps for a progress bar."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress = progress
        self.total = total
        self.done = 0

    def __call__(self, result: Result) -> Result:
        """Count one more, which has this result."""
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, self.total)
        return result
