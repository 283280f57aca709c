"""What a calibration does to label probabilities: a temperature, or a curve from score to precision."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from probox.calibration.isotonic import Curve
from probox.support.types import Floats, Ints
from probox.tables.detections import Detections
from probox.tables.labels import BACKGROUND_NAMES, canonical_name, probabilities_of

__all__ = ["FLOOR", "LabelMap", "NoLabelMap", "ScoreCurves", "Temperature", "with_background"]

FLOOR = 1e-6
"""Probabilities count as at least this much in ignorance: a certain mistake costs much, but not without bound."""


class LabelMap(Protocol):
    """A way to replace label probabilities; frozen."""

    method: ClassVar[str]

    def apply(self, found: Detections) -> Detections:
        """Return detections with other label probabilities and scores; each names the class that it named."""
        ...

    def knows(self, name: str) -> bool:
        """Return whether the map has values of its own for a class, or treats all alike."""
        ...


@dataclasses.dataclass(frozen=True)
class NoLabelMap:
    """Labels stay."""

    method: ClassVar[str] = "none"

    def apply(self, found: Detections) -> Detections:
        return found

    def knows(self, name: str) -> bool:
        return True


@dataclasses.dataclass(frozen=True)
class Temperature:
    """p_k becomes p_k^(1/T) over the sum of all, background (what a row leaves of 1) being one of them.

    Above 1 a detector becomes less sure, below 1 surer. What has no probability gets none.
    """

    method: ClassVar[str] = "temperature"
    temperature: float

    def apply(self, found: Detections) -> Detections:
        logs = log_probabilities(with_background(found.label_probs))
        return _relabelled(found, tempered(logs, self.temperature)[:, :-1])

    def knows(self, name: str) -> bool:
        return True


@dataclasses.dataclass(frozen=True)
class ScoreCurves:
    """For each class a non-decreasing curve from score to precision; one for all classes that had too few detections.

    A detection's score s becomes s' = curve(s). The other classes of its row are scaled by s'/s where the score falls,
    so that background gets what is taken, and by (1 - s')/(1 - s) where it rises, so that all give alike.
    """

    method: ClassVar[str] = "isotonic"
    others: Curve
    classes: tuple[tuple[str, Curve], ...]

    def apply(self, found: Detections) -> Detections:
        scores = probabilities_of(found.label_probs, found.labels)
        wanted = self.precisions(found, scores)
        with np.errstate(divide="ignore", invalid="ignore"):
            falling = np.where(scores > 0, wanted / scores, 0.0)
            rising = np.where(scores < 1, (1 - wanted) / (1 - scores), 0.0)
        probs = found.label_probs.astype(np.float64) * np.minimum(falling, rising)[:, None]
        if probs.shape[1]:
            probs[np.arange(len(found)), found.labels] = wanted
        return _relabelled(found, probs)

    def precisions(self, found: Detections, scores: Floats) -> Floats:
        """Return what the curves of the classes that detections name make of their scores."""
        known = {canonical_name(name): curve for name, curve in self.classes}
        result = np.empty(len(found))
        for label in np.unique(found.labels).tolist():
            rows = found.labels == label
            curve = known.get(canonical_name(found.classes[label]), self.others) if found.classes else self.others
            result[rows] = curve(scores[rows])
        return np.clip(result, 0.0, 1.0)

    def knows(self, name: str) -> bool:
        return canonical_name(name) in {canonical_name(own) for own, _ in self.classes}


def with_background(label_probs: npt.NDArray[np.float32]) -> Floats:
    """Return label probabilities with what each row leaves of 1 as a last column."""
    probs = np.clip(label_probs.astype(np.float64), 0.0, 1.0)
    return np.concatenate([probs, np.maximum(0.0, 1.0 - probs.sum(axis=1, keepdims=True))], axis=1)


def log_probabilities(probs: Floats) -> Floats:
    """Return logarithms, minus infinity for 0."""
    with np.errstate(divide="ignore"):
        return np.log(probs)


def tempered(logs: Floats, temperature: float) -> Floats:
    """Return p^(1/T) over its sum, from logarithms; every row has a probability above 0."""
    powers = logs / temperature
    powers = np.exp(powers - powers.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def background_columns(classes: tuple[str, ...]) -> Ints:
    """Return the columns that mean "no object"."""
    return np.array([at for at, name in enumerate(classes) if canonical_name(name) in BACKGROUND_NAMES], np.int64)


def _relabelled(found: Detections, probs: Floats) -> Detections:
    """Return detections with these label probabilities; a score that was not a probability changes in proportion."""
    before = probabilities_of(found.label_probs, found.labels)
    narrow = probs.astype(np.float32)
    after = probabilities_of(narrow, found.labels)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(before > 0, after / before, 1.0)
    scores = np.where(found.scores == before, after, np.clip(found.scores * ratio, 0.0, 1.0))
    return found.replace(label_probs=narrow, scores=scores)
