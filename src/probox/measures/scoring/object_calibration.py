"""Are the labels around each object honest? OCE, the object-level calibration error."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from probox.measures.boxes.definition import overlaps
from probox.measures.scoring.labels import brier_scores

__all__ = ["MISSED", "object_brier_scores"]

FloatArray = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int32] | npt.NDArray[np.int64]

MISSED = 1.0
"""The loss of an object that nothing overlaps: the Brier score of p = 0."""

_MOST_OVERLAPS = 1 << 22
"""How many overlaps of objects and detections are in memory at a time, or those of a single object."""


def object_brier_scores(
    found: FloatArray,
    probs: npt.NDArray[np.float32] | FloatArray,
    there: FloatArray,
    labels: Labels,
    *,
    ious: tuple[float, ...] = (0.5,),
) -> FloatArray:
    """Return, for one image, the Brier score of the mean p of all detections that overlap each object; 1 without any.

    Detections of every class count, and one may count for several objects. OCE is the mean over objects.

    Parameters
    ----------
    found : (N, 4) float64
        Boxes of detections: x, y, width, height.
    probs : (N, C)
        Their label probabilities.
    there : (M, 4) float64
        Boxes of objects: x, y, width, height.
    labels : (M,) int
        Classes of objects.
    ious : tuple of float
        How much at least must overlap; each gives a column.

    Returns
    -------
    (M, T) float64
    """
    losses = np.full((len(there), len(ious)), MISSED)
    if not len(found) or not len(there):
        return losses
    probs = np.asarray(probs, np.float64)
    step = max(1, _MOST_OVERLAPS // len(found))
    for rows in (slice(begin, begin + step) for begin in range(0, len(there), step)):
        shared = overlaps(found, there[rows], np.zeros(len(there[rows]), bool)).T
        for column, threshold in enumerate(ious):
            near = (shared >= threshold).astype(np.float64)
            n = near.sum(axis=1)
            some = n > 0
            mean = near[some] @ probs / n[some, None]
            losses[rows, column][some] = brier_scores(mean, labels[rows][some])
    return losses
