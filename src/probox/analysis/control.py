"""The control of every uncertainty: the same boxes with the best constant sigma, and the best scale of their own.

Both are found on one half of the images and applied to the other, so that no number is judged by images that chose it.
They are pinned at the image border (`probox.fusion.keep_inside`) if and only if all detections with a covariance are:
PDQ takes away the probability that a corner has beyond the border, and one side would win by that alone.
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

__all__ = [
    "SCALES",
    "SHARES",
    "STEPS",
    "Fitted",
    "applied",
    "best_constant",
    "best_scale",
    "halves",
    "is_pinned",
    "pin_edges",
    "searched",
]

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


def pin_edges(evaluation: Evaluation, scene: Scene) -> Evaluation:
    """Return the evaluation of the detections pinned at the image border: itself where they are, or have no std."""
    table = evaluation.detections
    if is_pinned(evaluation, scene) or not table.covariances.any():
        return evaluation
    boxes, covariances = _inside(scene, table.covariances)
    moved = (boxes != table.boxes).any(axis=1) | (covariances != table.covariances).any(axis=(1, 2, 3))
    return scene.with_rows(evaluation, moved, boxes=boxes[moved], covariances=covariances[moved], extents=None)


def is_pinned(evaluation: Evaluation, scene: Scene) -> bool:
    """Return whether there are covariances, and pinning changes none of them, but for rounding."""
    table = evaluation.detections
    if not table.covariances.any():
        return False
    boxes, covariances = _inside(scene, table.covariances)
    return np.allclose(boxes, table.boxes, atol=1e-3) and np.allclose(covariances, table.covariances, rtol=1e-3)


def best_constant(evaluation: Evaluation, scene: Scene) -> Fitted | None:
    """Return the best sigma of one share of the side for all corners, in PDQ; None if a half has nothing to fit on."""
    return _fitted(evaluation, scene, "constant")


def best_scale(evaluation: Evaluation, scene: Scene) -> Fitted | None:
    """Return the best factor for all sigmas, in PDQ; None if a half has nothing to fit on."""
    return _fitted(evaluation, scene, "scale")


def _fitted(evaluation: Evaluation, scene: Scene, control: str) -> Fitted | None:
    values = tuple(searched(evaluation, scene, control, half) for half in (0, 1))
    return applied(evaluation, scene, control, values)


def searched(evaluation: Evaluation, scene: Scene, control: str, half: int) -> float | None:
    """Return the best number of a control for one half of the images, sought on the other; None if that has nothing."""
    chosen = _that_matter(evaluation) & (halves(evaluation.detections.image_rows) != half)
    if not chosen.any():
        return None
    others = halves(np.arange(len(evaluation.dataset))) != half
    part, pinned = scene.of(evaluation.dataset.image_ids[others], chosen), is_pinned(evaluation, scene)
    between, covariances_of = _CONTROLS[control]
    rows = np.flatnonzero(chosen)

    def lost(logarithm: float) -> float:
        scored = _scored(part, covariances_of(evaluation, float(np.exp(logarithm)), rows), pinned)
        return -float(scored.detections.quality("pPDQ").sum())

    low, high = np.log(between)
    return float(np.exp(golden_section(lost, low, high, steps=STEPS)))


def applied(evaluation: Evaluation, scene: Scene, control: str, values: tuple[float | None, ...]) -> Fitted | None:
    """Return all detections under what was found for each half; None if one is missing."""
    even, odd = values
    if even is None or odd is None:
        return None
    table = evaluation.detections
    per_row = np.asarray([even, odd])[halves(table.image_rows)]
    covariances = _CONTROLS[control][1](evaluation, per_row, np.arange(len(table)))
    return Fitted((even, odd), _scored(scene, covariances, is_pinned(evaluation, scene)))


def _constant(evaluation: Evaluation, share: float | FloatArray, rows: npt.NDArray[np.int64]) -> FloatArray:
    return constant_covariances(evaluation.detections.boxes[rows], share)


def _scaled(evaluation: Evaluation, factor: float | FloatArray, rows: npt.NDArray[np.int64]) -> FloatArray:
    covariances = evaluation.detections.covariances[rows]
    return np.asarray(covariances * np.reshape(np.square(factor), (-1, 1, 1, 1)))


_CONTROLS: dict[
    str,
    tuple[tuple[float, float], Callable[[Evaluation, float | FloatArray, npt.NDArray[np.int64]], FloatArray]],
] = {"constant": (SHARES, _constant), "scale": (SCALES, _scaled)}
"""Between which numbers each control is sought, and the covariances that some detections have under one."""


def _scored(scene: Scene, covariances: FloatArray, pinned: bool) -> Evaluation:
    if not pinned:
        return scene.scored(covariances=covariances)
    boxes, covariances = _inside(scene, covariances)
    return scene.scored(boxes=boxes, covariances=covariances, extents=None)


def _inside(scene: Scene, covariances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return boxes and covariances pinned at the image border; boxes without covariance stay as they are."""
    dataset = scene.truth.dataset
    sizes = dataset.shapes[dataset.rows_of(scene.found.image_ids)].astype(np.float64)
    spread = covariances.any(axis=(1, 2, 3))
    boxes, covariances = scene.found.boxes.copy(), covariances.copy()
    boxes[spread], covariances[spread] = keep_inside(boxes[spread], covariances[spread], sizes[spread])
    return boxes, covariances


def _that_matter(evaluation: Evaluation) -> npt.NDArray[np.bool_]:
    """Return the detections that meet an object now, by pixels or by boxes: the others matter little or not at all.

    The search goes by them alone, which is ten times faster where most detections are false; what it finds is then
    scored with all detections.
    """
    found = evaluation.detections
    matter = np.asarray((found.verdicts == Verdict.TP) & (found.quality("pPDQ") > LEAST))
    matter[evaluation.matched_pairs.detections] = True
    return matter
