"""Diagnose a result: what it lost, how its covariances and labels are calibrated, and what would repair it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from probox.analysis.baseline import (
    RULES,
    Rescorer,
    Skill,
    apply_constant,
    make_rescorer,
    measure_pdq_skill,
    measure_skill,
    pin_edges,
    search_constant,
)
from probox.analysis.calibration_table import (
    CalibrationRow,
    ErrorFactor,
    find_error_factor,
    note_last_pixels,
    tabulate_calibration,
    tabulate_edges,
)
from probox.analysis.diagnosis_text import summarize
from probox.analysis.loss_breakdown import (
    Budget,
    WhatIf,
    answer_constant,
    answer_factor,
    answer_pinned_edges,
    answer_scale,
    answer_true_boxes,
    answer_true_labels,
    compute_budget,
    sort_answers,
    what_if_matched,
)
from probox.analysis.resampling import note_few_images
from probox.analysis.threshold_sweep import Rematches
from probox.analysis.thresholds import BestThreshold, best_threshold, find_best_pdq
from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox.measures.registry import all_measures, measures_called
from probox.measures.scoring.score_rows import with_density
from probox.notes import Note


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """What a diagnosis is about: what was measured, what that was made of, and how often images are drawn anew."""

    evaluation: Evaluation
    scene: Rescorer | None
    replicates: int
    seed: int

    def to_score(self) -> Rescorer:
        """Return the scene, where a piece is about one."""
        assert self.scene is not None
        return self.scene


class Piece(NamedTuple):
    """One of the functions below, and what it is given besides the case."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()


def run_pieces(pieces: Sequence[Piece], case: Case) -> Iterator[Any]:
    """Yield what each piece gives, in their order."""
    return (piece.function(case, *piece.arguments) for piece in pieces)


def compute_numbers(case: Case) -> tuple[dict[str, float], list[Note]]:
    """Return every column of the measures that evaluations do not take as a standard, and what cannot be had."""
    evaluation = case.evaluation
    numbers: dict[str, float] = {}
    notes: list[Note] = []
    kept = evaluation.detections.label_probs is not None
    for measure in (measure for measure in all_measures() if not measure.standard):
        if "labels" in measure.needs and not kept:
            numbers.update(measure.nothing())
            notes.append(Note("no-label-metrics"))
            continue
        numbers.update(measure.summary(evaluation))
        if measure.notes is not None:
            notes += measure.notes(evaluation)
    return numbers, notes


def compute_factor(case: Case) -> ErrorFactor:
    """Return how many times the predicted std the errors are."""
    return find_error_factor(case.evaluation, replicates=case.replicates, seed=case.seed)


def compute_skill(case: Case, rule: str) -> Skill:
    """Return what sigmas are worth in a rule."""
    return measure_skill(case.evaluation, rule, replicates=case.replicates, seed=case.seed)


def compute_best_threshold(case: Case, measure: str) -> BestThreshold:
    """Return where a measure is best."""
    return best_threshold(case.evaluation, measure)


def repair_labels(case: Case) -> WhatIf:
    """Return what right labels would bring."""
    return answer_true_labels(case.evaluation, case.to_score())


def repair_boxes(case: Case) -> WhatIf:
    """Return what the truth's boxes would bring."""
    return answer_true_boxes(case.evaluation, case.to_score())


def search_half(case: Case, control: str, half: int) -> float | None:
    """Return the best number of a control for one half of the images."""
    return search_constant(case.evaluation, case.to_score(), control, half)


class Controlled(NamedTuple):
    """What a control brings, and what sigmas are worth over it."""

    answers: list[WhatIf]
    skill: Skill | None = None


def score_scale(case: Case, values: tuple[float | None, ...], factor: float) -> Controlled:
    """Return what the error factor would bring as a scale, and the best scale, known for both halves."""
    evaluation, scene = case.evaluation, case.to_score()
    best = apply_constant(evaluation, scene, "scale", values)
    answers = [] if best is None else [answer_scale(evaluation, best)]
    calibrating = apply_constant(evaluation, scene, "scale", (factor, factor)) if 0 < factor < math.inf else None
    return Controlled(answers + ([] if calibrating is None else [answer_factor(evaluation, calibrating)]))


def score_constant(case: Case, values: tuple[float | None, ...]) -> Controlled:
    """Return the same of the best constant sigma and of pinned edges, and the skill in PDQ."""
    evaluation, scene = case.evaluation, case.to_score()
    constant, pinned = apply_constant(evaluation, scene, "constant", values), pin_edges(evaluation, scene)
    answers = [] if constant is None else [answer_constant(evaluation, constant)]
    answers += [] if pinned is evaluation else [answer_pinned_edges(evaluation, pinned)]
    if constant is None:
        return Controlled(answers)
    deterministic = scene.score(covariances=None).pdq if evaluation.detections.covariances.any() else evaluation.pdq
    skill = measure_pdq_skill(evaluation, constant, deterministic, replicates=case.replicates, seed=case.seed)
    return Controlled(answers, skill)


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
    notes : tuple of Note
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
    notes: tuple[Note, ...] = ()

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
            "notes": [note.to_dict() for note in self.notes],
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
    evaluation.expect_one_threshold("diagnose")
    notes = list(note_few_images(len(evaluation.dataset)))
    pairs = evaluation.matched_pairs
    asked = dict.fromkeys(["pdq", *thresholds_for]) if len(evaluation.detections) else {}
    measures = [name for name in asked if name != "pdq" or evaluation.has_pairs]
    unscored: list[Note] = []
    scene = (
        _make_rescorer(evaluation, threads, unscored) if evaluation.has_pairs and len(evaluation.detections) else None
    )
    case = Case(evaluation, scene, replicates, seed)
    controls = _list_repairs(case)
    searches = {(control, half): Piece(search_half, (control, half)) for control in controls for half in (0, 1)}
    skills = {rule: Piece(compute_skill, (rule,)) for rule in RULES}
    sought = {name: Piece(compute_best_threshold, (name,)) for name in measures}
    repairs = [Piece(repair_labels), Piece(repair_boxes)] if scene is not None else []
    # The searches and the factor first: something waits for them.
    pieces = [
        *searches.values(),
        Piece(compute_factor),
        *skills.values(),
        *sought.values(),
        *repairs,
        Piece(compute_numbers),
    ]
    step = _Progress(progress, len(pieces) + len(controls) + 1)
    working = map(step, run_pieces(pieces, case))
    calibration = tabulate_calibration(evaluation)
    values = {search: next(working) for search in searches}
    factor = next(working)
    given = {"constant": (), "scale": (factor.factor.value,)}
    applying = [Piece(under, ((values[c, 0], values[c, 1]), *given[c])) for c, under in controls.items()]
    controlled = map(step, run_pieces(applying, case))
    skill = {rule: next(working) for rule in skills}
    bests = [next(working) for _ in sought]
    answers = [next(working) for _ in repairs]
    numbers, said = next(working)
    notes += [*said, *note_last_pixels(calibration)]
    budget = None
    if evaluation.has_pairs:
        budget = compute_budget(evaluation)
        answers += what_if_matched(evaluation, next((best for best in bests if best.measure == "pdq"), None))
    else:
        notes.append(Note("pdq-not-measured"))
    notes += unscored
    for control, under in zip(controls, controlled, strict=True):
        answers += under.answers
        if under.skill is not None:
            skill["pdq"] = under.skill
        elif control == "constant":
            notes.append(Note("no-constant-baseline"))
    diagnosis = Diagnosis(
        verdict=(),
        pairs=len(pairs),
        plain_pairs=int(pairs.plain.sum()),
        pairing=pairs.pairing,
        numbers=numbers,
        error_factor=factor,
        calibration=calibration,
        budget=budget,
        what_if=tuple(sort_answers(answers)),
        skill=skill,
        best_thresholds=tuple(bests),
        notes=tuple(dict.fromkeys(notes)),
    )
    return step(dataclasses.replace(diagnosis, verdict=summarize(diagnosis)))


def _list_repairs(case: Case) -> dict[str, Callable[..., Controlled]]:
    """Return what is fitted to be compared with: nothing where nothing can be scored anew."""
    if case.scene is None:
        return {}
    sigmas = bool(case.evaluation.detections.covariances.any())
    return {"constant": score_constant} | ({"scale": score_scale} if sigmas else {})


def _make_rescorer(evaluation: Evaluation, threads: int | None, notes: list[Note]) -> Rescorer | None:
    try:
        return make_rescorer(evaluation, threads=threads)
    except InputError as error:
        notes.append(Note("not-rescored", problem=str(error.problem)))
        return None


class _Progress:
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


MOST_PAIRS = 2000
"""The most pairs with covariances for which the energy score under the best constant is sought: half a second."""


def summarize_for_page(
    evaluation: Evaluation, rematches: Rematches | None = None, *, replicates: int = 1000, seed: int = 0
) -> tuple[Diagnosis, tuple[str, ...]]:
    """Return a diagnosis with its verdict and the parts that the verdict speaks of, and what was left out in words.

    Parameters
    ----------
    evaluation : Evaluation
        What was measured.
    rematches : Rematches, optional
        From `probox.analysis.threshold_sweep.find_rematches`, if at hand.
    replicates, seed : int
        As in `probox.diagnose`.

    Examples
    --------
    >>> import probox
    >>> from probox.demo import make_demo
    >>> demo = make_demo()
    >>> evaluation = probox.evaluate(demo.truth, demo.detectors["unsure"])
    >>> diagnosis, _ = summarize_for_page(evaluation)
    >>> diagnosis.verdict[0] == evaluation.diagnose().verdict[0]
    True
    """
    pairs = evaluation.matched_pairs
    dense = int(with_density(pairs).sum())
    skill: dict[str, Skill] = {}
    if 0 < dense <= MOST_PAIRS:
        rules = ("energy", "energy_pixels")
        skill = {rule: measure_skill(evaluation, rule, replicates=replicates, seed=seed) for rule in rules}
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
        skill=skill,
        best_thresholds=(find_best_pdq(evaluation, rematches),) if scored else (),
        notes=note_last_pixels(tabulate_edges(evaluation)),
    )
    said = summarize(diagnosis)
    left_out = []
    if scored:
        left_out.append("PDQ of the constant-variance baseline")
    if dense > MOST_PAIRS:
        left_out.append("whether the std is informative")
    return dataclasses.replace(diagnosis, verdict=said), tuple(left_out)
