"""Detectors whose corners err in known ways, and who know it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

__all__ = ["ALIKE", "HEAVY", "KINDS", "SIZE", "TWO", "drawn_with"]

Floats = npt.NDArray[np.float64]
Kind = Callable[[np.random.Generator, Floats], tuple[Floats, Floats]]
"""Takes random numbers and the sides of boxes (N, 2); returns errors and sigmas of x1, y1, x2, y2, (N, 4) each."""

ALIKE, SIZE, TWO, HEAVY = "all alike", "by size", "two kinds", "heavy tails"

SIGMA = 4.0
SIDE_SHARE, LEAST = 0.06, 0.5
SHARP, BLURRED = 2.0, 8.0
SCALE, FREEDOM = 3.0, 3.0


def _alike(rng: np.random.Generator, sides: Floats) -> tuple[Floats, Floats]:
    return _gaussian(rng, np.full((len(sides), 4), SIGMA))


def _by_size(rng: np.random.Generator, sides: Floats) -> tuple[Floats, Floats]:
    return _gaussian(rng, np.maximum(SIDE_SHARE * np.tile(sides, 2), LEAST))


def _two_kinds(rng: np.random.Generator, sides: Floats) -> tuple[Floats, Floats]:
    sigma = np.where(rng.random(len(sides)) < 0.5, SHARP, BLURRED)
    return _gaussian(rng, np.tile(sigma[:, None], 4))


def _heavy(rng: np.random.Generator, sides: Floats) -> tuple[Floats, Floats]:
    """Return errors of Student's t, and its standard deviation: honest, and no Gaussian."""
    errors = SCALE * rng.standard_t(FREEDOM, (len(sides), 4))
    return errors, np.full((len(sides), 4), SCALE * np.sqrt(FREEDOM / (FREEDOM - 2.0)))


def _gaussian(rng: np.random.Generator, sigmas: Floats) -> tuple[Floats, Floats]:
    return sigmas * rng.standard_normal(sigmas.shape), sigmas


KINDS: Mapping[str, Kind] = {ALIKE: _alike, SIZE: _by_size, TWO: _two_kinds, HEAVY: _heavy}
"""Sigmas of 4 pixels; of 0.06 of the side; of 2 or 8 pixels by chance; errors of Student's t with 3 degrees of freedom
and a scale of 3 pixels, whose standard deviation is 5.2."""


def drawn_with(kind: Kind, truth: GroundTruth, rng: np.random.Generator) -> Detections:
    """Return one detection of every object, sure of its class, whose corners err in one way and report how much."""
    rows = np.flatnonzero(~truth.crowd)
    corners = truth.masks.boxes[rows].astype(np.float64)
    errors, sigmas = kind(rng, corners[:, 2:] - corners[:, :2] + 1.0)
    boxes = corners + errors
    boxes = np.concatenate([np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])], axis=1)
    return Detections(
        classes=truth.classes,
        image_ids=truth.image_ids[truth.image_rows[rows]],
        boxes=boxes,
        label_probs=np.eye(len(truth.classes), dtype=np.float32)[truth.labels[rows]],
        covariances=np.square(sigmas).reshape(-1, 2, 2)[..., None] * np.eye(2),
    )
