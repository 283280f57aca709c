"""The control of every uncertainty: the same boxes with the best constant sigma, and the best scale of their own.

Both are found on one half of the images and applied to the other, so that no number is judged by images that chose it.
PDQ takes away the probability that a corner has beyond the image's border, and detectors of this package keep their
corners inside (`probox.fusion.keep_inside`); so does the control, or it would lose by its borders alone. What it is
compared with is the detector's own with its corners kept inside, too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from probox.analysis.rescoring import Scene, golden_section
from probox.evaluation.result import Evaluation
from probox.fusion.gaussian import keep_inside
from probox.tables.covariances import constant_covariances
from probox.tables.results import Verdict

__all__ = ["SCALES", "SHARES", "STEPS", "Fitted", "best_constant", "best_scale", "halves", "kept_inside"]

SHARES = (0.005, 0.4)
"""Between these shares of a box's side the best constant sigma is sought."""
SCALES = (0.125, 8.0)
"""Between these factors the best scale of sigmas is sought."""
STEPS = 9
"""Steps of the search: it ends within 5 % of the best, around which PDQ hardly changes."""
LEAST = 0.01
"""Matches of a lower pPDQ are passed over in the search."""

FloatArray = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, eq=False)
class Fitted:
    """One number that was fitted on each half of the images, and the evaluation of the other halves under it.

    Parameters
    ----------
    values : (float, float)
        What was used on images of even and of odd row, found on the others.
    evaluation : Evaluation
        All detections, scored and matched anew.
    """

    values: tuple[float, float]
    evaluation: Evaluation

    @property
    def value(self) -> float:
        """Return the two in one: their geometric mean."""
        return float(np.sqrt(self.values[0] * self.values[1]))


def halves(images: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the half of each image row, 0 or 1, by turns: neighbours in a sequence of frames are in both."""
    return images % 2


def kept_inside(evaluation: Evaluation, scene: Scene) -> Evaluation:
    """Return the evaluation with corners kept inside the image: itself where they are."""
    table = evaluation.detections
    boxes, covariances = _inside(scene, table.covariances)
    moved = (boxes != table.boxes).any(axis=1) | (covariances != table.covariances).any(axis=(1, 2, 3))
    if not moved.any():
        return evaluation
    return scene.with_rows(evaluation, moved, boxes=boxes[moved], covariances=covariances[moved], extents=None)


def best_constant(evaluation: Evaluation, scene: Scene) -> Fitted | None:
    """Return the best sigma of one share of the side for all corners, in PDQ; None if a half has nothing to fit on."""
    boxes = scene.found.boxes
    return _fitted(evaluation, scene, SHARES, lambda share, rows: constant_covariances(boxes[rows], share))


def best_scale(evaluation: Evaluation, scene: Scene) -> Fitted | None:
    """Return the best factor for all sigmas, in PDQ; None if a half has nothing to fit on."""
    covariances = evaluation.detections.covariances

    def scaled(factor: float | FloatArray, rows: npt.NDArray[np.int64]) -> FloatArray:
        return np.asarray(covariances[rows] * np.reshape(np.square(factor), (-1, 1, 1, 1)))

    return _fitted(evaluation, scene, SCALES, scaled)


def _fitted(
    evaluation: Evaluation,
    scene: Scene,
    between: tuple[float, float],
    covariances_of: Callable[[float | FloatArray, npt.NDArray[np.int64]], FloatArray],
) -> Fitted | None:
    half = halves(np.arange(len(evaluation.dataset)))
    half_of = halves(evaluation.detections.image_rows)
    matter = _that_matter(evaluation)
    found: list[float] = []
    for other in (1, 0):
        chosen = matter & (half_of == other)
        if not chosen.any():
            return None
        part = scene.of(evaluation.dataset.image_ids[half == other], chosen)
        rows = np.flatnonzero(chosen)
        found.append(_search(part, rows, between, covariances_of))
    per_row = np.asarray(found)[half_of]
    everything = np.arange(len(evaluation.detections))
    return Fitted((found[0], found[1]), _scored_inside(scene, covariances_of(per_row, everything)))


def _scored_inside(scene: Scene, covariances: FloatArray) -> Evaluation:
    boxes, covariances = _inside(scene, covariances)
    return scene.scored(boxes=boxes, covariances=covariances, extents=None)


def _inside(scene: Scene, covariances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return boxes and covariances kept inside; plain boxes, which claim nothing beyond, stay as they are."""
    dataset = scene.truth.dataset
    sizes = dataset.shapes[dataset.rows_of(scene.found.image_ids)].astype(np.float64)
    spread = covariances.any(axis=(1, 2, 3))
    boxes, covariances = scene.found.boxes.copy(), covariances.copy()
    boxes[spread], covariances[spread] = keep_inside(boxes[spread], covariances[spread], sizes[spread])
    return boxes, covariances


def _search(
    part: Scene,
    rows: npt.NDArray[np.int64],
    between: tuple[float, float],
    covariances_of: Callable[[float | FloatArray, npt.NDArray[np.int64]], FloatArray],
) -> float:
    """Return the number between the ends that gives the highest sum of pPDQ."""

    def lost(logarithm: float) -> float:
        scored = _scored_inside(part, covariances_of(float(np.exp(logarithm)), rows))
        return -float(scored.detections.quality("pPDQ").sum())

    low, high = np.log(between)
    return float(np.exp(golden_section(lost, low, high, steps=STEPS)))


def _that_matter(evaluation: Evaluation) -> npt.NDArray[np.bool_]:
    """Return the detections that meet an object now, by pixels or by boxes: the others matter little or not at all.

    The search goes by them alone, which is ten times faster where most detections are false; what it finds is then
    scored with all detections.
    """
    found = evaluation.detections
    matter = np.asarray((found.verdicts == Verdict.TP) & (found.quality("pPDQ") > LEAST))
    matter[evaluation.matched_pairs.detections] = True
    return matter
