"""All detections with what became of them under COCO's matching, and objects, as rows of measures."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from probox.measures.boxes.matching import IOU_THRESHOLDS, MAX_DETECTIONS
from probox.measures.matched import FEW_PAIRS, matches_at
from probox.measures.measure import Evaluated

__all__ = ["IOU", "Outcomes", "outcomes", "remarks_of_detections"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

IOU = float(IOU_THRESHOLDS[0])
"""The least overlap of a match, unless a name says another."""


@dataclasses.dataclass(frozen=True, eq=False)
class Outcomes:
    """What became of detections and objects at one overlap; those that are ignored are left out.

    Parameters
    ----------
    detections : (N,) int64
        Rows of detections: those that were matched with an object, and those with nothing.
    hits : (N,) bool
        Which were matched.
    ious : (N,) float64
        The overlap with the match; 0 without one.
    areas : (N,) float64
        The object's area; of a detection without one, its own box's.
    objects : (M,) int64
        Rows of objects that are no crowd.
    found : (M,) bool
        Which were matched.
    """

    detections: IntArray
    hits: Flags
    ious: FloatArray
    areas: FloatArray
    objects: IntArray
    found: Flags


def outcomes(evaluated: Evaluated, iou: float = IOU) -> Outcomes:
    """Return what became of every detection and object when matches overlap by at least `iou`."""
    matches = matches_at(evaluated, iou)
    detections, objects, dataset = evaluated.detections, evaluated.objects, evaluated.dataset
    counted = matches.ignored[:, 0] & 1 == 0
    images = matches.image_rows[counted].astype(np.int64)
    rows = dataset.offsets(detections.image_rows)[images] + matches.numbers[counted]
    hits = matches.matched[counted, 0] & 1 == 1
    partners = dataset.offsets(objects.image_rows)[images] + matches.matched_objects[counted]
    areas = detections.extents[rows].prod(axis=1)
    areas[hits] = objects.areas[partners[hits]]
    found = np.zeros(len(objects), bool)
    found[partners[hits]] = True
    there = np.flatnonzero(~objects.crowd)
    return Outcomes(rows, hits, np.where(hits, matches.ious[counted, 0], 0.0), areas, there, found[there])


def remarks_of_detections(evaluated: Evaluated) -> list[str]:
    """Return what to know of numbers of all detections: which were left out, and whether they are few."""
    matches = evaluated.box_matches
    ignored = int((matches.ignored[:, 0] & 1 == 1).sum())
    unnamed, everything = matches.left_out, len(evaluated.detections)
    beyond = everything - unnamed - len(matches)
    n = len(matches) - ignored
    said = {
        f"{ignored:,} of {everything:,} detections lie in crowds and are left out of scores' calibration": ignored,
        f"{unnamed:,} of {everything:,} detections name none of the truth's classes and are left out of scores' "
        "calibration": unnamed,
        f"{beyond:,} of {everything:,} detections are not among the {MAX_DETECTIONS} best of their image and class and "
        "are left out of scores' calibration": beyond,
        f"only {n} detections are scored: fewer than {FEW_PAIRS} say little": n < FEW_PAIRS,
    }
    return [text for text, true in said.items() if true]
