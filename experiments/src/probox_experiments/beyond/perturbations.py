"""Twenty ways to make the detections of an honest detector worse, each in one thing alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox_experiments.beyond.honest import HALF_PIXEL, Drawn, boxes_of_nothing, label_rows, made_of

__all__ = ["BOXES", "COUNTS", "LABELS", "PERTURBATIONS", "SIGMAS", "Perturbation"]

Floats = npt.NDArray[np.float64]
Change = Callable[[Drawn, GroundTruth, np.random.Generator], Drawn]

TENTH = 0.1
CORRELATION = 0.9
CONFIDENCE = 0.8
TEMPERATURE = 0.5
DUPLICATED = 0.2
FALSE = 0.2
"""How many detections of nothing are added, as a share of the detections."""
SURE, UNSURE = 0.9, 0.05
"""Their confidence; the unsure ones are below all others, whose threshold is 0.1."""
FALSE_SHARE = 0.05
"""Their sigma, as a share of their side."""
FALSE_CERTAINTY = 0.95


@dataclasses.dataclass(frozen=True)
class Perturbation:
    """One change for the worse.

    Parameters
    ----------
    name : str
        What tables and figures call it.
    words : str
        What it does, in words.
    change : callable
        Takes what was drawn, the truth and random numbers; returns what becomes of it.
    """

    name: str
    words: str
    change: Change


def _shifted(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator) -> Drawn:
    sides = _sides(drawn.found)
    return _moved(drawn, drawn.found.boxes + TENTH * sides[:, [0, 0, 0, 0]] * np.array([1.0, 0.0, 1.0, 0.0]))


def _resized(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator, *, by: float) -> Drawn:
    out = 0.5 * by * _sides(drawn.found)
    return _moved(drawn, drawn.found.boxes + np.concatenate([-out, out], axis=1))


def _jittered(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator) -> Drawn:
    boxes = drawn.found.boxes + _sigmas(drawn.found) * rng.standard_normal((len(drawn.found), 4))
    ordered = [np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])]
    return _moved(drawn, np.concatenate(ordered, axis=1))


def _scaled(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator, *, by: float) -> Drawn:
    return _with_sigmas(drawn, by * _sigmas(drawn.found))


def _constant(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator) -> Drawn:
    sigmas = _sigmas(drawn.found)
    mean = sigmas[~drawn.wide].mean() if not drawn.wide.all() else 1.0
    return _with_sigmas(drawn, np.full_like(sigmas, mean))


def _sigmas_shuffled(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator) -> Drawn:
    sides = np.tile(_sides(drawn.found), 2)
    shares = _sigmas(drawn.found) / sides
    return _with_sigmas(drawn, shares[_order(drawn, rng)] * sides)


def _exchanged(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator) -> Drawn:
    return _with_sigmas(drawn, _sigmas(drawn.found)[:, [1, 0, 3, 2]])


def _correlated(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator) -> Drawn:
    sigmas = _sigmas(drawn.found).reshape(-1, 2, 2)
    both = np.where(np.eye(2, dtype=bool), 1.0, CORRELATION)
    return _with_covariances(drawn, sigmas[..., :, None] * sigmas[..., None, :] * both)


def _sharpened(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator) -> Drawn:
    probs = _probs(drawn)
    powers = probs ** (1.0 / TEMPERATURE)
    return _with_probs(drawn, powers / powers.sum(axis=1, keepdims=True) * probs.sum(axis=1, keepdims=True))


def _less_confident(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator) -> Drawn:
    return drawn.replace(label_probs=(CONFIDENCE * _probs(drawn)).astype(np.float32))  # the wide ones too


def _confidences_shuffled(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator) -> Drawn:
    """Give every detection the probabilities of another, the highest to the class that was the highest, and so on."""
    probs = _probs(drawn)
    ranking = np.argsort(-probs, axis=1, kind="stable")
    values = np.take_along_axis(probs, ranking, axis=1)[_order(drawn, rng)]
    shuffled = np.empty_like(probs)
    np.put_along_axis(shuffled, ranking, values, axis=1)
    return _with_probs(drawn, shuffled)


def _wrong_labels(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator) -> Drawn:
    probs, classes = _probs(drawn), len(drawn.found.classes)
    chosen = np.flatnonzero(rng.random(len(probs)) < TENTH)
    first = probs[chosen].argmax(axis=1)
    other = (first + rng.integers(1, max(classes, 2), len(chosen))) % classes
    changed = probs.copy()
    changed[chosen, first], changed[chosen, other] = probs[chosen, other], probs[chosen, first]
    return _with_probs(drawn, changed)


def _duplicated(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator) -> Drawn:
    again = np.flatnonzero((rng.random(len(drawn.found)) < DUPLICATED) & ~drawn.wide)
    return drawn.take(np.concatenate([np.arange(len(drawn.found)), again]))


def _missed(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator) -> Drawn:
    return drawn.take(np.flatnonzero((rng.random(len(drawn.found)) >= TENTH) | (drawn.objects < 0)))


def _with_false(drawn: Drawn, truth: GroundTruth, rng: np.random.Generator, *, confidence: float) -> Drawn:
    count, classes = round(FALSE * int((~drawn.wide).sum())), len(truth.classes)
    images = rng.integers(0, len(truth.image_ids), count)
    boxes = boxes_of_nothing(rng, truth, images)
    first = rng.integers(0, classes, count)
    second = (first + rng.integers(1, max(classes, 2), count)) % classes
    existence = np.full(count, confidence if classes == 1 else confidence / FALSE_CERTAINTY)
    probs = label_rows(first, second, existence, np.full(count, FALSE_CERTAINTY), classes)
    sigmas = FALSE_SHARE * np.tile(boxes[:, 2:] - boxes[:, :2] + 1.0, 2)
    false = made_of(truth, images, boxes + HALF_PIXEL, sigmas, probs)
    return Drawn(
        Detections.concatenate([drawn.found, false]),
        np.concatenate([drawn.objects, np.full(count, -1)]),
        np.concatenate([drawn.wide, np.zeros(count, bool)]),
    )


BOXES = (
    Perturbation("boxes shifted", "all boxes a tenth of their width to the right", _shifted),
    Perturbation("boxes grown", "all boxes a tenth wider and higher", partial(_resized, by=TENTH)),
    Perturbation("boxes shrunk", "all boxes a tenth narrower and lower", partial(_resized, by=-TENTH)),
    Perturbation("boxes jittered", "corners moved by as much again as they err", _jittered),
)
SIGMAS = (
    Perturbation("sigmas x 1/4", "all sigmas a quarter of what they should be", partial(_scaled, by=0.25)),
    Perturbation("sigmas x 1/2", "all sigmas half of what they should be", partial(_scaled, by=0.5)),
    Perturbation("sigmas x 2", "all sigmas twice what they should be", partial(_scaled, by=2.0)),
    Perturbation("sigmas x 4", "all sigmas four times what they should be", partial(_scaled, by=4.0)),
    Perturbation("sigmas constant", "one sigma for all corners, the mean of all, in pixels", _constant),
    Perturbation("sigmas shuffled", "every box has the sigmas of another, as shares of its sides", _sigmas_shuffled),
    Perturbation("x, y exchanged", "the sigmas of x and of y change places", _exchanged),
    Perturbation("correlated", "x and y of every corner claimed to be correlated by 0.9", _correlated),
)
LABELS = (
    Perturbation("labels sharpened", "label distributions squared (temperature 1/2), existence kept", _sharpened),
    Perturbation("confidences x 0.8", "all label probabilities times 0.8", _less_confident),
    Perturbation(
        "confid. shuffled",
        "every box has the probabilities of another; its order of classes stays",
        _confidences_shuffled,
    ),
    Perturbation(
        "labels wrong", "the most probable class exchanged with another in a tenth of the detections", _wrong_labels
    ),
)
COUNTS = (
    Perturbation("duplicates", "a fifth of the detections twice", _duplicated),
    Perturbation("misses", "a tenth of the detections of objects left out", _missed),
    Perturbation(
        "false, unsure",
        "a fifth more detections, of nothing, at a confidence of 0.05",
        partial(_with_false, confidence=UNSURE),
    ),
    Perturbation(
        "false, sure",
        "a fifth more detections, of nothing, at a confidence of 0.9",
        partial(_with_false, confidence=SURE),
    ),
)
PERTURBATIONS = (*BOXES, *SIGMAS, *LABELS, *COUNTS)
"""All of them. The wide boxes, which stand for what may have been missed, are less confident and else left alone."""


def _sides(found: Detections) -> Floats:
    """Return width and height of boxes, at least a pixel."""
    return np.maximum(found.extents, 1.0)


def _sigmas(found: Detections) -> Floats:
    """Return the sigmas of x1, y1, x2, y2."""
    assert found.covariances is not None
    return np.sqrt(np.diagonal(found.covariances, axis1=2, axis2=3).reshape(-1, 4))


def _probs(drawn: Drawn) -> Floats:
    return drawn.found.label_probs.astype(np.float64)


def _order(drawn: Drawn, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return the rows in random order; the wide ones stay where they are."""
    order, others = np.arange(len(drawn.found)), np.flatnonzero(~drawn.wide)
    order[others] = rng.permutation(others)
    return order


def _moved(drawn: Drawn, boxes: Floats) -> Drawn:
    """Return other boxes, as much wider than their corners are apart as before."""
    kept = np.where(drawn.wide[:, None], drawn.found.boxes, boxes)
    more = drawn.found.extents - (drawn.found.boxes[:, 2:] - drawn.found.boxes[:, :2])
    return drawn.replace(boxes=kept, extents=kept[:, 2:] - kept[:, :2] + more)


def _with_sigmas(drawn: Drawn, sigmas: Floats) -> Drawn:
    return _with_covariances(drawn, np.square(sigmas).reshape(-1, 2, 2)[..., None] * np.eye(2))


def _with_covariances(drawn: Drawn, covariances: Floats) -> Drawn:
    assert drawn.found.covariances is not None
    return drawn.replace(covariances=np.where(drawn.wide[:, None, None, None], drawn.found.covariances, covariances))


def _with_probs(drawn: Drawn, probs: Floats) -> Drawn:
    return drawn.replace(label_probs=np.where(drawn.wide[:, None], _probs(drawn), probs).astype(np.float32))
