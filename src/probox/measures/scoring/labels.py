"""Proper scoring rules of a detection's label: Brier score and ignorance. What p leaves of 1 is background."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from probox.measures.measure import Evaluated
from probox.tables.labels import background_classes, scores_alone

__all__ = ["brier_scores", "entropies", "ignorances", "remarks_of_scores", "without_background"]

FloatArray = npt.NDArray[np.float64]
Probabilities = npt.NDArray[np.float32] | FloatArray
Labels = npt.NDArray[np.int32] | npt.NDArray[np.int64]


def brier_scores(probs: Probabilities, labels: Labels) -> FloatArray:
    """Return sum over classes k of (p_k - 1[k = c])^2, c being the true class; 0 is best, 2 worst."""
    p = np.asarray(probs, np.float64)
    of_truth = p[np.arange(len(p)), labels]
    scores: FloatArray = np.square(p).sum(axis=1) - np.square(of_truth) + np.square(of_truth - 1.0)
    return scores


def ignorances(probs: Probabilities, labels: Labels) -> FloatArray:
    """Return -ln p_c, in nats; infinity where the true class was held impossible: nothing is clamped."""
    p = np.asarray(probs, np.float64)[np.arange(len(probs)), labels]
    with np.errstate(divide="ignore"):
        scores: FloatArray = -np.log(p) + 0.0  # no -0
    return scores


def entropies(probs: Probabilities) -> FloatArray:
    """Return -sum p ln p over classes and background, in nats."""
    p = np.asarray(probs, np.float64)
    every = np.concatenate([p, np.maximum(1.0 - p.sum(axis=1, keepdims=True), 0.0)], axis=1)
    logs = np.log(every, out=np.zeros_like(every), where=every > 0)
    sums: FloatArray = -(every * logs).sum(axis=1) + 0.0
    return sums


def without_background(probs: npt.NDArray[np.float32], classes: Sequence[str]) -> npt.NDArray[np.float32]:
    """Return probabilities in which a class that means background has none: it is what the others leave of 1."""
    background = background_classes(classes)
    return np.where(background, np.float32(0.0), probs) if background.any() else probs


def remarks_of_scores(evaluated: Evaluated) -> list[str]:
    """Return how many detections state no more than a score, whose labels their reader has made up."""
    found = evaluated.detections
    if found.label_probs is None:
        return []
    alone = int(scores_alone(found.label_probs, found.labels, evaluated.classes).sum())
    if not alone:
        return []
    return [
        f"{alone:,} of {len(found):,} detections state one score alone; to Brier score, OCE and MUE by entropy what it "
        "leaves of 1 is spread over the other classes"
    ]
