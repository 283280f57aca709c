"""The pieces of a diagnosis that take time. None needs another of its kind, so they may be worked out anywhere."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from probox.analysis.calibration_table import ErrorFactor, find_error_factor
from probox.analysis.control import applied, pin_edges, searched
from probox.analysis.rescoring import Scene
from probox.analysis.skill import Skill, skill_of, skill_of_pdq
from probox.analysis.thresholds import BestThreshold, best_threshold
from probox.analysis.what_if import (
    WhatIf,
    labels_right,
    with_constant,
    with_factor,
    with_pinned_edges,
    with_scale,
    with_truth_boxes,
)
from probox.evaluation.result import Evaluation
from probox.measures.registry import all_measures
from probox.support.mapping import Mapper

__all__ = [
    "Case",
    "Controlled",
    "Piece",
    "best_for",
    "best_of_half",
    "every_number",
    "factor_of",
    "repaired_boxes",
    "repaired_labels",
    "skill_in",
    "under_constant",
    "under_scale",
    "worked_out",
]


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """What a diagnosis is about: what was measured, what that was made of, and how often images are drawn anew."""

    evaluation: Evaluation
    scene: Scene | None
    replicates: int
    seed: int

    def to_score(self) -> Scene:
        """Return the scene, where a piece is about one."""
        assert self.scene is not None
        return self.scene


class Piece(NamedTuple):
    """One of the functions below, and what it is given besides the case."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()


def worked_out(pieces: Sequence[Piece], case: Case, mapper: Mapper) -> Iterator[Any]:
    """Yield what each piece gives, in their order."""
    return mapper(_work_out, pieces, case)


def _work_out(piece: Piece, case: Case) -> Any:
    return piece.function(case, *piece.arguments)


def every_number(case: Case) -> tuple[dict[str, float], list[str]]:
    """Return every column of the measures that evaluations do not take as a standard, and what cannot be had."""
    evaluation = case.evaluation
    numbers: dict[str, float] = {}
    remarks: list[str] = []
    kept = evaluation.detections.label_probs is not None
    for measure in (measure for measure in all_measures() if not measure.standard):
        if "labels" in measure.needs and not kept:
            numbers.update(measure.nothing())
            remarks.append(
                "label probabilities were not kept: no rule about labels; evaluate anew (Parquet: all measures)"
            )
            continue
        numbers.update(measure.summary(evaluation))
        if measure.remarks is not None:
            remarks += measure.remarks(evaluation)
    return numbers, remarks


def factor_of(case: Case) -> ErrorFactor:
    """Return how many times the predicted std the errors are."""
    return find_error_factor(case.evaluation, replicates=case.replicates, seed=case.seed)


def skill_in(case: Case, rule: str) -> Skill:
    """Return what sigmas are worth in a rule."""
    return skill_of(case.evaluation, rule, replicates=case.replicates, seed=case.seed)


def best_for(case: Case, measure: str) -> BestThreshold:
    """Return where a measure is best."""
    return best_threshold(case.evaluation, measure)


def repaired_labels(case: Case) -> WhatIf:
    """Return what right labels would bring."""
    return labels_right(case.evaluation, case.to_score())


def repaired_boxes(case: Case) -> WhatIf:
    """Return what the truth's boxes would bring."""
    return with_truth_boxes(case.evaluation, case.to_score())


def best_of_half(case: Case, control: str, half: int) -> float | None:
    """Return the best number of a control for one half of the images."""
    return searched(case.evaluation, case.to_score(), control, half)


class Controlled(NamedTuple):
    """What a control brings, and what sigmas are worth over it."""

    answers: list[WhatIf]
    skill: Skill | None = None


def under_scale(case: Case, values: tuple[float | None, ...], factor: float) -> Controlled:
    """Return what the error factor would bring as a scale, and the best scale, known for both halves."""
    evaluation, scene = case.evaluation, case.to_score()
    best = applied(evaluation, scene, "scale", values)
    answers = [] if best is None else [with_scale(evaluation, best)]
    calibrating = applied(evaluation, scene, "scale", (factor, factor)) if 0 < factor < math.inf else None
    return Controlled(answers + ([] if calibrating is None else [with_factor(evaluation, calibrating)]))


def under_constant(case: Case, values: tuple[float | None, ...]) -> Controlled:
    """Return the same of the best constant sigma and of pinned edges, and the skill in PDQ."""
    evaluation, scene = case.evaluation, case.to_score()
    constant, pinned = applied(evaluation, scene, "constant", values), pin_edges(evaluation, scene)
    answers = [] if constant is None else [with_constant(evaluation, constant)]
    answers += [] if pinned is evaluation else [with_pinned_edges(evaluation, pinned)]
    if constant is None:
        return Controlled(answers)
    deterministic = scene.scored(covariances=None).pdq if evaluation.detections.covariances.any() else evaluation.pdq
    skill = skill_of_pdq(evaluation, constant, deterministic, replicates=case.replicates, seed=case.seed)
    return Controlled(answers, skill)
