"""Detections whose errors and labels follow distributions that we know."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from probox.tables.dataset import Dataset
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.masks import Masks

__all__ = [
    "ERRORS",
    "FREEDOM",
    "LOW",
    "NAMED",
    "OBJECTS",
    "SCALE",
    "SIGMAS",
    "drawn_around_boxes",
    "labelled",
    "reported",
]

Floats = npt.NDArray[np.float64]

SCALE = 3.0
"""Of the errors of all four edges, in pixels: sigma of Gaussian ones."""
FREEDOM = 2.5
"""Degrees of freedom of Student's t: its variance is 5 times the squared scale, and has no variance itself."""

ERRORS: Mapping[str, Callable[[np.random.Generator, tuple[int, ...]], Floats]] = {
    "gaussian": lambda rng, shape: rng.standard_normal(shape),
    "laplace": lambda rng, shape: rng.laplace(size=shape),
    "student": lambda rng, shape: rng.standard_t(FREEDOM, shape),
}
"""The distributions of errors, of scale 1."""


def _steps(step: float, first: int, last: int) -> tuple[float, ...]:
    return tuple(round(SCALE * math.exp(step * number), 4) for number in range(first, last + 1))


SIGMAS = {"gaussian": _steps(0.08, -2, 2), "laplace": _steps(0.1, 1, 7), "student": _steps(0.12, 1, 10)}
"""The sigmas to try, around what scores may ask for."""

MARGIN = 150
"""From a box to the border of its image, in pixels."""
LAST_PIXEL = np.array([0.0, 0.0, 1.0, 1.0])
"""Boxes end with their last pixel, one before their far edges."""
LOW = frozenset(("NLL", "energy", "CRPS", "PMB_NLL", "Brier", "ignorance"))
"""Of these scores, less is better."""
NAMED = ("object's", "likelier")
"""Which class detections name: with the object's own, whoever pairs by class finds every object."""
OBJECTS = 20
"""Of the study of labels; shares are multiples of one in so many."""


def drawn_around_boxes(errors: str, side: int, boxes: int, seed: tuple[int, int]) -> tuple[GroundTruth, Floats]:
    """Return objects, and the boxes (x1, y1, x2, y2, the far edges) around which their edges were drawn."""
    rng = np.random.default_rng([*seed, list(ERRORS).index(errors), side])
    image = side + 2 * MARGIN
    first = MARGIN + rng.random((boxes, 1, 2))  # anywhere in a pixel
    means = np.concatenate([first, first + side], axis=1)
    edges = (means + SCALE * ERRORS[errors](rng, means.shape)).clip(0, image)
    while (turned := edges[:, 1] - edges[:, 0] < 1).any():  # an object has a pixel at least
        row, axis = np.nonzero(turned)
        again = means[row, :, axis] + SCALE * ERRORS[errors](rng, (len(row), 2))
        edges[row, :, axis] = again.clip(0, image)
    corners = edges.reshape(-1, 4)
    touched = np.concatenate([np.floor(corners[:, :2]), np.ceil(corners[:, 2:]) - 1], axis=1)
    truth = GroundTruth(
        dataset=Dataset(
            classes=("object",),
            image_ids=np.arange(boxes),
            widths=np.full(boxes, image),
            heights=np.full(boxes, image),
        ),
        image_rows=np.arange(boxes),
        labels=np.zeros(boxes, np.int32),
        boxes=corners - LAST_PIXEL,
        extents=corners[:, 2:] - corners[:, :2],
        masks=Masks.from_boxes(touched.astype(np.int32)),
    )
    return truth, means.reshape(-1, 4)


def reported(means: Floats, sigma: float) -> Detections:
    return Detections(
        classes=("object",),
        image_ids=np.arange(len(means)),
        boxes=means - LAST_PIXEL,
        extents=means[:, 2:] - means[:, :2],
        label_probs=np.ones((len(means), 1), np.float32),
        covariances=np.broadcast_to(sigma**2 * np.eye(2), (len(means), 2, 2, 2)),
    )


def labelled(share: float, probability: float, named: str) -> tuple[GroundTruth, Detections]:
    """Return objects of class A, a share of them, and of class B, with perfect boxes that all say the same of both."""
    labels = (np.arange(OBJECTS) >= round(share * OBJECTS)).astype(np.int32)
    pixels = np.tile(np.array([4, 4, 7, 7], np.int32), (OBJECTS, 1))
    each = np.arange(OBJECTS)
    truth = GroundTruth(
        dataset=Dataset(classes=("A", "B"), image_ids=each, widths=np.full(OBJECTS, 12), heights=np.full(OBJECTS, 12)),
        image_rows=each,
        labels=labels,
        boxes=pixels + LAST_PIXEL,
        masks=Masks.from_boxes(pixels),
    )
    found = Detections(
        classes=truth.classes,
        image_ids=each,
        boxes=pixels.astype(np.float64),
        extents=np.full((OBJECTS, 2), 4.0),
        label_probs=np.tile([probability, 1 - probability], (OBJECTS, 1)),
        labels=labels if named == NAMED[0] else np.full(OBJECTS, int(probability < 0.5), np.int32),
    )
    return truth, found
