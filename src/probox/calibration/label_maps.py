"""Calibration maps of label probabilities and their fits: a temperature, or a curve from score to precision."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from probox.calibration.corner_fit import BOUND, FittingPairs, MatchOutcome, lattice_maximum
from probox.calibration.corner_maps import MonotoneCurve, count_curves, fit_curve, is_among
from probox.errors import InputError
from probox.measures.matched import FEW_PAIRS
from probox.notes import Note
from probox.support.formatting import some_names
from probox.support.types import Bools, Floats, Ints
from probox.tables.detections import Detections
from probox.tables.label_probs import LabelProbs
from probox.tables.labels import background_classes, canonical_name, column_of_each, probabilities_of

FLOOR = 1e-6
"""Lower limit of probabilities in ignorance, so that a single mistake with probability 0 does not make it infinite."""


class LabelMap(Protocol):
    """A map of label probabilities; frozen."""

    method: ClassVar[str]

    def apply(self, found: Detections) -> Detections:
        """Return detections with other label probabilities and scores, but the same labels."""
        ...

    def has_class(self, name: str) -> bool:
        """Return whether the map has values of its own for a class, or treats all alike."""
        ...


@dataclasses.dataclass(frozen=True)
class NoLabelMap:
    """No change of labels."""

    method: ClassVar[str] = "none"

    def apply(self, found: Detections) -> Detections:
        return found

    def has_class(self, name: str) -> bool:
        return True

    def __str__(self) -> str:
        return ""


@dataclasses.dataclass(frozen=True)
class Temperature:
    """p_k becomes p_k^(1/T) over the sum of all, where background is the rest of each row.

    Above 1, a detector becomes less confident, below 1 more confident. Probabilities of 0 stay 0.
    """

    method: ClassVar[str] = "temperature"
    temperature: float

    def apply(self, found: Detections) -> Detections:
        def scaled(matrix: npt.NDArray[np.float32], _: slice) -> Floats:
            logs = log_probabilities(with_background(matrix))
            return apply_temperature(logs, self.temperature)[:, :-1]

        return _replace_labels(found, found.label_probs.map_rows(scaled))

    def has_class(self, name: str) -> bool:
        return True

    def __str__(self) -> str:
        return f"labels at temperature {self.temperature:.3g}"


@dataclasses.dataclass(frozen=True)
class ScoreCurves:
    """Per class, a non-decreasing curve from score to precision; one for all classes with too few detections.

    A detection's score s becomes s' = curve(s). The other classes of its row are scaled by s'/s if the score decreases,
    so that background gets the difference, and by (1 - s')/(1 - s) if it increases, so that all decrease alike.
    """

    method: ClassVar[str] = "isotonic"
    others: MonotoneCurve
    classes: tuple[tuple[str, MonotoneCurve], ...]

    def apply(self, found: Detections) -> Detections:
        scores = probabilities_of(found.label_probs, found.labels)
        wanted = self.precisions(found, scores)
        with np.errstate(divide="ignore", invalid="ignore"):
            falling = np.where(scores > 0, wanted / scores, 0.0)
            rising = np.where(scores < 1, (1 - wanted) / (1 - scores), 0.0)
        factors = np.minimum(falling, rising)

        def mapped(matrix: npt.NDArray[np.float32], rows: slice) -> Floats:
            probs = matrix.astype(np.float64) * factors[rows, None]
            if probs.shape[1]:
                probs[np.arange(len(probs)), found.labels[rows]] = wanted[rows]
            return probs

        return _replace_labels(found, found.label_probs.map_rows(mapped))

    def precisions(self, found: Detections, scores: Floats) -> Floats:
        """Return the scores mapped by the curves of the detections' classes."""
        known = {canonical_name(name): curve for name, curve in self.classes}
        result = np.empty(len(found))
        for label in np.unique(found.labels).tolist():
            rows = found.labels == label
            curve = known.get(canonical_name(found.classes[label]), self.others) if found.classes else self.others
            result[rows] = curve(scores[rows])
        return np.clip(result, 0.0, 1.0)

    def has_class(self, name: str) -> bool:
        return is_among(name, self.classes)

    def __str__(self) -> str:
        own = count_curves("curve", len(self.classes)) if self.classes else "one curve for all classes"
        return f"scores are mapped to precision ({own})"


def with_background(label_probs: npt.NDArray[np.float32]) -> Floats:
    """Return label probabilities with the rest of each row, background, as a last column."""
    probs = np.clip(label_probs.astype(np.float64), 0.0, 1.0)
    return np.concatenate([probs, np.maximum(0.0, 1.0 - probs.sum(axis=1, keepdims=True))], axis=1)


def log_probabilities(probs: Floats) -> Floats:
    """Return logarithms, minus infinity for 0."""
    with np.errstate(divide="ignore"):
        return np.log(probs)


def apply_temperature(logs: Floats, temperature: float) -> Floats:
    """Return p^(1/T) over its sum, from logarithms; every row needs a probability above 0."""
    powers = logs / temperature
    powers = np.exp(powers - powers.max(axis=1, keepdims=True))  # of the largest, to avoid underflow of all
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _replace_labels(found: Detections, probs: LabelProbs) -> Detections:
    """Return detections with these label probabilities; a score that is not a probability is scaled alike."""
    before = probabilities_of(found.label_probs, found.labels)
    after = probabilities_of(probs, found.labels)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(before > 0, after / before, 1.0)
    scores = np.where(found.scores == before, after, np.clip(found.scores * ratio, 0.0, 1.0))
    return found.replace(label_probs=probs, scores=scores)


LABEL_METHODS = ("none", "temperature", "isotonic")
"""Methods for labels."""

TEMPERATURE_STEP = 0.005
"""Temperatures are exp(step k) with integer k, 0.5% apart."""


LabelFit = tuple[LabelMap, tuple[Note, ...]]
"""A map and its notes."""


def label_targets(pairs: FittingPairs, found: Detections, classes: tuple[str, ...]) -> Ints:
    """Return the column of each detection's true class; the number of columns for background, -1 for undefined.

    The true class of a match is its object's, if the detector has it; that of an unmatched detection is background.
    Ignored detections have none.
    """
    columns = len(found.classes)
    targets = np.where(pairs.outcomes == MatchOutcome.UNMATCHED, columns, -1)
    targets[pairs.detections] = column_of_each(classes, found.classes)[pairs.labels]
    return targets.astype(np.int64)


def rests(label_probs: LabelProbs) -> Floats:
    """Return the rest of each row, background."""
    result: Floats = label_probs.of_rows(lambda matrix, _: with_background(matrix)[:, -1])
    return result


def target_probs(label_probs: LabelProbs, targets: Ints, background: Bools) -> Floats:
    """Return the probability of each target, a column of the table or the number of columns for background, (N, 1 + B).

    The detector's own B background columns, `background`, count as background too, and are 0 for other targets.
    """
    nothing = targets == label_probs.shape[1]
    of_class = np.clip(probabilities_of(label_probs, np.where(nothing, 0, targets)), 0.0, 1.0)
    own = np.clip(np.asarray(label_probs[:, background], np.float64), 0.0, 1.0)
    target = np.where(nothing, rests(label_probs), of_class)
    return np.concatenate([target[:, None], np.where(nothing[:, None], own, 0.0)], axis=1)


def ignorances(probs: Floats) -> Floats:
    """Return -ln p of the target, the sum of its columns in `target_probs`, with p at least `FLOOR`."""
    lost: Floats = -np.log(np.clip(probs[:, 0] + probs[:, 1:].sum(axis=1), FLOOR, 1.0))
    return lost


def fit_labels(pairs: FittingPairs, found: Detections, targets: Ints, rows: Ints, method: str) -> LabelFit:
    """Return the map of a method that fits these rows of detections best."""
    if method == "none":
        return NoLabelMap(), ()
    used = rows[targets[rows] >= 0]
    if not len(used):
        raise InputError("expected detections with a class and an image of the ground truth, but got none")
    if method == "temperature":
        return _temperature(found, targets, used)
    return _score_curves(pairs, found, used)


def _temperature(found: Detections, targets: Ints, rows: Ints) -> LabelFit:
    probs, wanted = found.label_probs[rows], targets[rows]
    background = background_classes(found.classes)
    rest = rests(probs)
    values, counts, row = probs.distinct()
    largest = np.maximum(np.minimum(probs.max(axis=1, initial=0.0), 1.0), rest)
    logs = log_probabilities(np.clip(values.astype(np.float64), 0.0, 1.0)) - np.log(largest)[row]
    logs_of_rest = log_probabilities(rest) - np.log(largest)
    logs_of_target = log_probabilities(target_probs(probs, wanted, background)) - np.log(largest)[:, None]

    def quality(k: int) -> float:
        # As `apply_temperature`, with equal probabilities of a row computed once.
        cold = math.exp(-TEMPERATURE_STEP * k)
        total = np.bincount(row, counts * np.exp(cold * logs), len(rest)) + np.exp(cold * logs_of_rest)
        return -float(ignorances(np.exp(cold * logs_of_target) / total[:, None]).mean())

    # Apart from the floor, ignorance is convex in 1/T, so there is a single minimum.
    best = lattice_maximum(quality, 0)
    temperature = math.exp(TEMPERATURE_STEP * best)
    notes = []
    if abs(best) >= BOUND:
        way = "higher" if best > 0 else "lower"
        notes.append(Note("temperature-at-bound", temperature=temperature, way=way))
    missed = wanted == len(found.classes)
    if missed.any() and not (rest > FLOOR).any() and not background.any():
        notes.append(Note("no-background"))
    return Temperature(temperature), tuple(notes)


def _score_curves(pairs: FittingPairs, found: Detections, rows: Ints) -> LabelFit:
    scores = probabilities_of(found.label_probs[rows], found.labels[rows])
    right = (pairs.outcomes[rows] == MatchOutcome.MATCHED).astype(np.float64)
    labels = found.labels[rows]
    own: list[tuple[str, MonotoneCurve]] = []
    poor: list[str] = []
    for label in np.unique(labels).tolist():
        chosen = labels == label
        if int(chosen.sum()) < FEW_PAIRS:
            poor.append(found.classes[label])
        else:
            own.append((found.classes[label], fit_curve(scores[chosen], right[chosen])))
    few = Note("few-detections-of-classes", len(poor), least=FEW_PAIRS, names=some_names(poor))
    return ScoreCurves(fit_curve(scores, right), tuple(own)), (few,) if poor else ()
