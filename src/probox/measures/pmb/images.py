"""PMB-NLL of every image of an evaluation, by the kernel."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.measures.measure import Evaluated
from probox.measures.pmb.definition import ASSIGNMENTS, CLUTTER, MIN_DETERMINANT, MIN_PROBABILITY
from probox.support.parallel import thread_count
from probox.tables.dataset import Dataset
from probox.tables.labels import background_classes, scores_alone

__all__ = ["NUMBERS", "PmbImages", "log_floors", "pmb_of_images"]

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

NUMBERS = (
    "nll",
    "matched_box",
    "matched_label",
    "unmatched",
    "missed",
    "expected",
    "assignments",
    "missed_objects",
    "floored_objects",
)
"""The kernel's numbers of an image, in its order; `ImageNLL` has the same."""

LITTLE_BACKGROUND = 1e-3
"""What a detection leaves for background is little below this: unmatched it costs 7 and more."""


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class PmbImages:
    """PMB-NLL of the images of an evaluation, with what it could not use: one number for each image.

    Parameters
    ----------
    floored : (N, 9) float64
        `NUMBERS` of each image, with the floor.
    plain : (N,) float64
        PMB-NLL without it; infinite where nothing explains all objects.
    objects, detections, dense : (N,) int64
        How many objects (crowds are none), detections, and detections that have a density.
    sure, firm : (N,) int64
        How many detections may be matched, and how many of these leave little for background.
    scores_alone : (N,) int64
        How many detections state a score and nothing about other classes.
    crowds : (N,) int64
        How many crowds were left out.
    """

    floored: Floats
    plain: Floats
    objects: Counts
    detections: Counts
    dense: Counts
    sure: Counts
    firm: Counts
    scores_alone: Counts
    crowds: Counts

    def number(self, name: str) -> Floats:
        """Return one of `NUMBERS` of each image."""
        column: Floats = self.floored[:, NUMBERS.index(name)]
        return column

    def defined(self, weights: Floats) -> Flags:
        """Return of each row of weights (R, N) whether there is a number: an image, and a density if any detection."""
        found, dense = (weights @ np.stack([self.detections, self.dense], axis=1).astype(np.float64)).T
        return np.asarray((weights.sum(axis=1) > 0) & ((dense > 0) | (found == 0)), dtype=bool)


_kept: WeakKeyDictionary[Evaluated, PmbImages] = WeakKeyDictionary()


def pmb_of_images(evaluated: Evaluated) -> PmbImages | None:
    """Return PMB-NLL of each image; None if the evaluation has not kept label probabilities.

    It is measured once: summary, remarks and replicates all read it.
    """
    if evaluated not in _kept:
        measured = _measure(evaluated)
        if measured is None:
            return None
        _kept[evaluated] = measured
    return _kept[evaluated]


def log_floors(dataset: Dataset, classes: int) -> Floats:
    """Return the floor of ln lambda in each image: 1e-6 objects, spread evenly over its boxes and the classes.

    In an image of W x H pixels the boxes with x1 <= x2 and y1 <= y2 fill W^2 / 2 * H^2 / 2 pixels^4.
    """
    width, height = dataset.shapes.astype(np.float64).T
    with np.errstate(divide="ignore"):
        floors: Floats = np.log(MIN_PROBABILITY) - np.log(classes) - 2.0 * (np.log(width) + np.log(height))
    return floors + math.log(4.0)


def _measure(evaluated: Evaluated) -> PmbImages | None:
    found, there, dataset = evaluated.detections, evaluated.objects, evaluated.dataset
    if found.label_probs is None:
        return None
    label_probs, alone = _claims(found.label_probs, found.labels, evaluated.classes)
    kept = np.flatnonzero(~there.crowd)
    offsets = dataset.offsets(found.image_rows)
    object_offsets = dataset.offsets(there.image_rows[kept])
    real = int((~background_classes(evaluated.classes)).sum())
    floors = log_floors(dataset, max(real, 1))

    def run(log_floors: Floats) -> Floats:
        return _core.pmb_nll(
            offsets=offsets,
            boxes=np.ascontiguousarray(found.boxes),
            covariances=np.ascontiguousarray(found.covariances),
            label_probs=label_probs,
            object_offsets=object_offsets,
            object_boxes=np.ascontiguousarray(there.boxes[kept]),
            object_labels=np.ascontiguousarray(there.labels[kept]),
            log_floors=log_floors,
            clutter=CLUTTER,
            min_probability=MIN_PROBABILITY,
            min_determinant=MIN_DETERMINANT,
            assignments=ASSIGNMENTS,
            threads=thread_count(None),
        )

    def per_image(rows: npt.NDArray[np.int64], chosen: Flags) -> Counts:
        return np.bincount(rows[chosen], minlength=len(dataset)).astype(np.int64)

    sure = label_probs.max(axis=1, initial=0.0) > np.float32(CLUTTER)
    firm = sure & (1.0 - label_probs.sum(axis=1, dtype=np.float64) < LITTLE_BACKGROUND)
    everywhere = np.ones(len(found), bool)
    return PmbImages(
        floored=run(floors),
        plain=run(np.full(len(dataset), -np.inf))[:, 0],
        objects=np.diff(object_offsets),
        detections=per_image(found.image_rows, everywhere),
        dense=per_image(found.image_rows, _dense(found.covariances)),
        sure=per_image(found.image_rows, sure),
        firm=per_image(found.image_rows, firm),
        scores_alone=per_image(found.image_rows, alone),
        crowds=per_image(there.image_rows, there.crowd),
    )


def _claims(
    label_probs: npt.NDArray[np.float32], labels: npt.NDArray[np.int32], classes: Sequence[str]
) -> tuple[npt.NDArray[np.float32], Flags]:
    """Return the probabilities of classes that detections claim, and which detections state a score alone.

    Background is no class, whatever the truth lists; and what was shared out is taken back, see `scores_alone`.
    """
    background, alone = background_classes(classes), scores_alone(label_probs, labels, classes)
    rows = np.flatnonzero(alone)
    if not background.any() and not len(rows):
        return np.ascontiguousarray(label_probs), alone
    claims = label_probs.copy()
    claims[rows] = 0.0
    claims[rows, labels[rows]] = label_probs[rows, labels[rows]]
    claims[:, background] = 0.0
    return claims, alone


def _dense(covariances: Floats) -> Flags:
    """Return which detections have a density, as the definition has it."""
    a, b, d = covariances[..., 0, 0], covariances[..., 0, 1], covariances[..., 1, 1]
    corners = (a > 0) & (d > 0) & (a * d - b * b > MIN_DETERMINANT * a * d)
    return np.asarray(corners.all(axis=1), dtype=bool)
