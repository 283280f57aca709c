"""Diagnosis of a result: loss breakdown, calibration, constant-variance baseline and hypothetical repairs."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from probox.analysis.baseline import (
    RULES,
    FittedBaseline,
    Rescorer,
    Skill,
    apply_baseline,
    fit_baseline,
    make_rescorer,
    measure_pdq_skill,
    measure_skill,
    pin_edges,
)
from probox.analysis.calibration_table import (
    CalibrationRow,
    ErrorFactor,
    find_error_factor,
    note_last_pixels,
    tabulate_calibration,
    tabulate_edges,
)
from probox.analysis.diagnosis_text import diagnosis_text, summarize
from probox.analysis.loss_breakdown import (
    Budget,
    WhatIf,
    compute_budget,
    score_true_boxes,
    sort_answers,
    what_if,
    what_if_matched,
)
from probox.analysis.resampling import note_few_images
from probox.analysis.threshold_sweep import Rematches
from probox.analysis.thresholds import BestThreshold, best_threshold, find_best_pdq
from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox.measures.registry import all_measures, asks_for_all, measures_called, need_masks
from probox.measures.scoring.score_rows import with_density
from probox.notes import Note

NUMBERS = {
    name.replace("-", "_"): name
    for name in (
        "nll", "energy", "crps", "nees", "brier", "ignorance", "ence", "mqce", "sharpness", "ause", "spearman", "mue",
        "d-ece", "laece", "laace", "oce", "qgc", "pmb-nll",
    )
}  # fmt: skip
"""Metrics whose headline number a diagnosis reports, by its key in JSON."""

PMB_PARTS = ("PMB_box", "PMB_label", "PMB_unmatched", "PMB_missed", "PMB_clutter")

Progress = Callable[[int, int], None]

Result = TypeVar("Result")


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Diagnosis:
    """Result of `Evaluation.diagnose`; ``print`` shows all of it, and `verdict` is a summary.

    Parameters
    ----------
    verdict : tuple of str
        Summary, one sentence per topic.
    pairs, plain_pairs : int
        Number of matched pairs, by which covariances and labels are evaluated, and of those without covariance.
    pairing : str
        Matching rule.
    numbers : dict
        All columns of all uncertainty metrics by key, which names bins and matching rule if they matter.
    error_factor : ErrorFactor
        Errors over predicted std, with a confidence interval, outliers and the worst group.
    calibration : tuple of CalibrationRow
        Calibration of the predicted std: all edges, each edge, size and class.
    budget : Budget, optional
        Loss breakdown; None if PDQ was not measured.
    what_if : tuple of WhatIf
        PDQ after each hypothetical repair, the largest gain first.
    skill : dict of str to Skill
        Skill of the predicted std over the best constant std, by scoring rule.
    best_thresholds : tuple of BestThreshold
        Best label threshold of each requested metric.
    notes : tuple of Note
        Excluded data and missing numbers.
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
    notes: tuple[Note, ...] = ()

    @property
    def best_threshold(self) -> BestThreshold | None:
        """Return the best label threshold for PDQ; None if PDQ was not measured or there are no detections."""
        return next((best for best in self.best_thresholds if best.measure == "pdq"), None)

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary for JSON; ``names`` maps each number to its column, with bins and matching rule."""
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
            "notes": [note.to_dict() for note in self.notes],
        }

    def __repr__(self) -> str:
        return f"Diagnosis({'; '.join(self.verdict)})"

    def __str__(self) -> str:
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
    """Explain a score: loss breakdown, calibration of the predicted std, and hypothetical repairs.

    Parameters
    ----------
    evaluation : Evaluation
        Result to diagnose, with its convention and label threshold. Also as `Evaluation.diagnose`.
    thresholds_for : sequence of str
        Metrics to search the best label threshold for, besides PDQ.
    replicates, seed : int
        Number of bootstrap replicates, and random seed.
    threads : int, optional
        Number of threads. Default: number of processors. Results do not depend on it.
    progress : callable, optional
        Called with the number of finished steps and of all steps.

    Returns
    -------
    Diagnosis
        Summary, tables and notes.

    Examples
    --------
    >>> import probox
    >>> from probox.demo import make_demo
    >>> demo = make_demo()
    >>> diagnosis = probox.evaluate(demo.truth, demo.detectors["probabilistic"]).diagnose()
    >>> round(diagnosis.budget.pdq + diagnosis.budget.lost, 12)
    1.0
    """
    evaluation.expect_one_threshold("diagnose")
    table, pairs = evaluation.detections, evaluation.matched_pairs
    asked = dict.fromkeys(["pdq", *thresholds_for]) if len(table) else {}
    sought = [name for name in asked if name != "pdq" or evaluation.has_pairs]
    if asks_for_all(asked) and not evaluation.has_overlaps:
        sought = [name for name in sought if not need_masks([name])]
    scene, unscored = _make_rescorer(evaluation, threads)
    step = _count_steps(progress, len(RULES) + len(sought) + (3 if scene is None else 7))
    factor = step(find_error_factor(evaluation, replicates=replicates, seed=seed))
    skill = {rule: step(measure_skill(evaluation, rule, replicates=replicates, seed=seed)) for rule in RULES}
    bests = tuple(step(best_threshold(evaluation, name)) for name in sought)
    numbers, number_notes = step(_compute_numbers(evaluation))
    calibration = tabulate_calibration(evaluation)
    notes = [*note_few_images(len(evaluation.dataset)), *number_notes, *note_last_pixels(calibration)]
    answers: list[WhatIf] = []
    if evaluation.has_pairs:
        answers = what_if_matched(evaluation, next((best for best in bests if best.measure == "pdq"), None))
    else:
        notes.append(Note("pdq-not-measured"))
    notes += unscored
    if scene is not None:
        repaired, constant = _score_repairs(evaluation, scene, factor.factor.value, step)
        answers += repaired
        if constant is None:
            notes.append(Note("no-constant-baseline"))
        else:
            deterministic = scene.score(covariances=None).pdq if table.covariances.any() else evaluation.pdq
            skill["pdq"] = measure_pdq_skill(evaluation, constant, deterministic, replicates=replicates, seed=seed)
    diagnosis = Diagnosis(
        verdict=(),
        pairs=len(pairs),
        plain_pairs=int(pairs.plain.sum()),
        pairing=pairs.pairing,
        numbers=numbers,
        error_factor=factor,
        calibration=calibration,
        budget=compute_budget(evaluation) if evaluation.has_pairs else None,
        what_if=tuple(sort_answers(answers)),
        skill=skill,
        best_thresholds=bests,
        notes=tuple(dict.fromkeys(notes)),
    )
    return step(dataclasses.replace(diagnosis, verdict=summarize(diagnosis)))


def _make_rescorer(evaluation: Evaluation, threads: int | None) -> tuple[Rescorer | None, list[Note]]:
    """Return the tables to rescore, or a note if the result does not hold them."""
    if not evaluation.has_pairs or not len(evaluation.detections):
        return None, []
    try:
        return make_rescorer(evaluation, threads=threads), []
    except InputError as error:
        return None, [
            Note("not-rescored", problem=f"{error.problem}; {error.remedy}" if error.remedy else str(error.problem))
        ]


def _count_steps(progress: Progress | None, total: int) -> Callable[[Result], Result]:
    """Return a function that reports a finished step of `total` and returns its result."""
    done = itertools.count(1)

    def step(result: Result) -> Result:
        if progress is not None:
            progress(next(done), total)
        return result

    return step


def _compute_numbers(evaluation: Evaluation) -> tuple[dict[str, float], list[Note]]:
    """Return the columns of all metrics beyond the standard ones, and notes on missing ones."""
    numbers: dict[str, float] = {}
    notes: list[Note] = []
    for measure in all_measures():
        if measure.standard or ("masks" in measure.needs and not evaluation.has_overlaps):
            continue
        if "labels" in measure.needs and evaluation.detections.label_probs is None:
            numbers.update(measure.nothing())
            notes.append(Note("no-label-metrics"))
            continue
        numbers.update(measure.summary(evaluation))
        if measure.notes is not None:
            notes += measure.notes(evaluation)
    return numbers, notes


def _score_repairs(
    evaluation: Evaluation, scene: Rescorer, factor: float, step: Callable[[Any], Any]
) -> tuple[list[WhatIf], FittedBaseline | None]:
    """Return PDQ with other labels, boxes and stds, and the constant-variance baseline."""
    repair = functools.partial(what_if, evaluation)
    answers = [
        step(repair("labels_right", "correct labels with probability 1", scene.with_right_labels().pdq)),
        step(repair("truth_boxes", "true positives with ground-truth boxes", score_true_boxes(evaluation, scene))),
    ]
    pinned = pin_edges(evaluation, scene)
    if pinned is not evaluation:
        answers.append(repair("kept_inside", "edges pinned at the image border (overconfident)", pinned.pdq))
    constant = step(fit_baseline(evaluation, scene, "constant"))
    if constant is not None:
        words = f"constant std of {100 * constant.value:.2g}% of the side (fitted on other images)"
        answers.append(repair("best_constant", words, constant.evaluation.pdq))
    has_std = bool(evaluation.detections.covariances.any())
    scale = step(fit_baseline(evaluation, scene, "scale") if has_std else None)
    if scale is not None:
        words = f"std times {scale.value:.2g} (best for PDQ on other images)"
        answers.append(repair("best_scale", words, scale.evaluation.pdq))
    if has_std and 0 < factor < math.inf:
        calibrating = apply_baseline(evaluation, scene, "scale", (factor, factor)).evaluation
        answers.append(
            repair("calibrating_scale", f"std times {factor:.2f} (error factor, calibrated)", calibrating.pdq)
        )
    return answers, constant


MOST_PAIRS = 2000
"""Maximum number of pairs for which the report page searches the best constant std: about half a second."""


def summarize_for_page(
    evaluation: Evaluation, rematches: Rematches | None = None, *, replicates: int = 1000, seed: int = 0
) -> tuple[Diagnosis, tuple[str, ...]]:
    """Return a quick diagnosis for the report page, with only the parts of its summary, and the parts left out.

    Parameters
    ----------
    evaluation : Evaluation
        Result to diagnose.
    rematches : Rematches, optional
        From `probox.analysis.threshold_sweep.find_rematches`, if already computed.
    replicates, seed : int
        As in `probox.diagnose`.

    Examples
    --------
    >>> import probox
    >>> from probox.demo import make_demo
    >>> demo = make_demo()
    >>> evaluation = probox.evaluate(demo.truth, demo.detectors["probabilistic"])
    >>> diagnosis, _ = summarize_for_page(evaluation)
    >>> diagnosis.verdict[0] == evaluation.diagnose().verdict[0]
    True
    """
    pairs = evaluation.matched_pairs
    dense = int(with_density(pairs).sum())
    rules = ("energy", "energy_pixels") if 0 < dense <= MOST_PAIRS else ()
    scored = evaluation.has_pairs and len(evaluation.detections) > 0
    diagnosis = Diagnosis(
        verdict=(),
        pairs=len(pairs),
        plain_pairs=int(pairs.plain.sum()),
        pairing=pairs.pairing,
        numbers={},
        error_factor=find_error_factor(evaluation, replicates=replicates, seed=seed),
        calibration=(),
        budget=compute_budget(evaluation) if evaluation.has_pairs else None,
        what_if=(),
        skill={rule: measure_skill(evaluation, rule, replicates=replicates, seed=seed) for rule in rules},
        best_thresholds=(find_best_pdq(evaluation, rematches),) if scored else (),
        notes=note_last_pixels(tabulate_edges(evaluation)),
    )
    left_out = ["PDQ of the constant-variance baseline"] if scored else []
    left_out += ["whether the std is informative"] if dense > MOST_PAIRS else []
    return dataclasses.replace(diagnosis, verdict=summarize(diagnosis)), tuple(left_out)
