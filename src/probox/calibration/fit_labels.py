"""Fitting what happens to label probabilities."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from probox.calibration.isotonic import Curve, fit_curve
from probox.calibration.labels import (
    FLOOR,
    LabelMap,
    NoLabelMap,
    ScoreCurves,
    Temperature,
    background_columns,
    log_probabilities,
    tempered,
    with_background,
)
from probox.calibration.pairs import FittingPairs, Outcome
from probox.calibration.search import BOUND, lattice_maximum
from probox.calibration.words import count_of_classes
from probox.errors import InputError
from probox.measures.matched import FEW_PAIRS
from probox.support.types import Floats, Ints
from probox.support.words import some_names
from probox.tables.detections import Detections
from probox.tables.labels import column_of_each, probabilities_of

__all__ = ["LABEL_METHODS", "LabelFit", "fit_labels", "ignorances", "label_targets"]

LABEL_METHODS = ("none", "temperature", "isotonic")
"""What can happen to labels."""

TEMPERATURE_STEP = 0.005
"""Temperatures are searched for half a per cent apart."""


@dataclasses.dataclass(frozen=True)
class LabelFit:
    """A map and what is to be said about it."""

    mapping: LabelMap
    notes: tuple[str, ...] = ()


def label_targets(pairs: FittingPairs, found: Detections, classes: tuple[str, ...]) -> Ints:
    """Return for each detection the column of its true class; the number of columns for background, -1 for none.

    A matched detection's is its object's class, if the detector has it; one that met nothing ought to have said
    background. Those that were left aside have none.
    """
    columns = len(found.classes)
    targets = np.where(pairs.outcomes == Outcome.UNMATCHED, columns, -1)
    targets[pairs.detections] = column_of_each(classes, found.classes)[pairs.labels]
    return targets.astype(np.int64)


def ignorances(probs: Floats, targets: Ints, background: Ints) -> Floats:
    """Return -ln p of the target, at least `FLOOR` being counted; `probs` have background as their last column.

    Columns of the detector that mean background count as background too.
    """
    hit = probs[np.arange(len(probs)), targets]
    if len(background):
        nothing = targets == probs.shape[1] - 1
        hit = np.where(nothing, hit + probs[:, background].sum(axis=1), hit)
    return -np.log(np.clip(hit, FLOOR, 1.0))


def fit_labels(pairs: FittingPairs, found: Detections, targets: Ints, rows: Ints, method: str) -> LabelFit:
    """Return the map of a method that suits these rows of detections best."""
    if method == "none":
        return LabelFit(NoLabelMap())
    used = rows[targets[rows] >= 0]
    if not len(used):
        raise InputError("no detection has a class and an image of the truth: there are no labels to fit")
    if method == "temperature":
        return _temperature(found, targets, used)
    return _score_curves(pairs, found, used)


def _temperature(found: Detections, targets: Ints, rows: Ints) -> LabelFit:
    probs = with_background(found.label_probs[rows])
    background = background_columns(found.classes)
    logs, wanted = log_probabilities(probs), targets[rows]

    def quality(k: int) -> float:
        return -float(ignorances(tempered(logs, math.exp(TEMPERATURE_STEP * k)), wanted, background).mean())

    # Ignorance is convex in 1/T but for the floor, so there is one minimum.
    best = lattice_maximum(quality, 0)
    temperature = math.exp(TEMPERATURE_STEP * best)
    notes = []
    if abs(best) >= BOUND:
        way = "higher" if best > 0 else "lower"
        notes.append(f"the search for a temperature ends at its bound, {temperature:.3g}: labels ask for a {way} one")
    missed = wanted == len(found.classes)
    if missed.any() and not (probs[:, -1] > FLOOR).any() and not len(background):
        notes.append("label probabilities leave nothing to background: a temperature cannot move scores towards it")
    return LabelFit(Temperature(temperature), tuple(notes))


def _score_curves(pairs: FittingPairs, found: Detections, rows: Ints) -> LabelFit:
    scores = probabilities_of(found.label_probs[rows], found.labels[rows])
    right = (pairs.outcomes[rows] == Outcome.MATCHED).astype(np.float64)
    labels = found.labels[rows]
    own: list[tuple[str, Curve]] = []
    poor: list[str] = []
    for label in np.unique(labels).tolist():
        chosen = labels == label
        if int(chosen.sum()) < FEW_PAIRS:
            poor.append(found.classes[label])
        else:
            own.append((found.classes[label], fit_curve(scores[chosen], right[chosen])))
    few = f"{count_of_classes(len(poor))} with fewer than {FEW_PAIRS} detections ({some_names(poor)})"
    said = f"the curve of all is used for {few}"
    return LabelFit(ScoreCurves(fit_curve(scores, right), tuple(own)), (said,) if poor else ())
