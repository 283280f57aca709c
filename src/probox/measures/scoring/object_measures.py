"""The measure of objects: OCE, whether the labels around each are honest."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from probox.measures.matched import FEW_PAIRS
from probox.measures.measure import Column, Evaluated, Resampled
from probox.measures.scoring.labels import remarks_of_scores, without_background
from probox.measures.scoring.names import full_name
from probox.measures.scoring.object_calibration import MISSED, object_brier_scores
from probox.measures.scoring.rows import Rows, counted_mean, measure_of_rows

__all__ = ["OCE", "OCE_IOUS"]

FloatArray = npt.NDArray[np.float64]

OCE_IOUS = (0.5, 0.75)
"""Its authors take the mean of both; the first is the measure's own."""


def _rows(evaluated: Evaluated) -> Rows:
    """Return objects, no crowds; none where label probabilities were not kept."""
    found, objects = evaluated.detections, evaluated.objects
    probs = None if found.label_probs is None else without_background(found.label_probs, evaluated.classes)
    there = np.flatnonzero(~objects.crowd) if probs is not None else np.zeros(0, np.int64)
    losses = np.full((len(there), len(OCE_IOUS)), MISSED)
    images = objects.image_rows[there]
    starts, ends = evaluated.dataset.offsets(images), evaluated.dataset.offsets(found.image_rows)
    for image in np.unique(images).tolist():
        mine = slice(starts[image], starts[image + 1])
        theirs = slice(ends[image], ends[image + 1])
        rows = there[mine]
        assert probs is not None
        losses[mine] = object_brier_scores(
            np.concatenate([found.boxes[theirs, :2], found.extents[theirs]], axis=1),
            probs[theirs],
            np.concatenate([objects.boxes[rows, :2], objects.extents[rows]], axis=1),
            objects.labels[rows],
            ious=OCE_IOUS,
        )
    return Rows(images, objects.labels[there], objects.areas[there], {"losses": losses})


def _oce(rows: Rows, counts: FloatArray) -> Resampled:
    means = counted_mean(counts, rows["losses"])
    return {full_name("OCE", iou=iou): means[:, column] for column, iou in enumerate(OCE_IOUS)}


def _remarks(evaluated: Evaluated) -> list[str]:
    if evaluated.detections.label_probs is None:
        return ["label probabilities were not kept; evaluate anew for OCE"]
    n = int((~evaluated.objects.crowd).sum())
    few = [f"only {n} objects are scored: fewer than {FEW_PAIRS} say little"] if n < FEW_PAIRS else []
    return [*remarks_of_scores(evaluated), *few]


OCE = measure_of_rows(
    "oce",
    [
        Column(
            key=full_name("OCE", iou=iou),
            heading="OCE" if iou == OCE_IOUS[0] else None,
            unit="plain",
            better="low",
            hint=f"Brier score of the mean label of detections that overlap an object, IoU {iou:g}; 1 without any",
        )
        for iou in OCE_IOUS
    ],
    _rows,
    _oce,
    needs={"labels"},
    remarks=_remarks,
)
