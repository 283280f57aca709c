"""Classes and sizes for measures that follow from verdicts: the measure of each group's objects and detections."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from probox.convention import Convention
from probox.measures.boxes.matching import AREA_RANGES, SIZES
from probox.measures.measure import Evaluated, Groups, Judged, Summary, groups_by_label
from probox.tables.results import DetectionTable, ObjectTable

__all__ = ["by_class", "by_size"]

Flags = npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True, eq=False)
class _Part:
    """Some of an evaluation's objects and detections."""

    convention: Convention
    detections: DetectionTable
    objects: ObjectTable


def by_class(summary: Callable[[Judged], Summary], evaluated: Evaluated) -> Groups:
    """Return the summary of each class; a false positive belongs to the class that the detector names."""
    found, there = evaluated.detections.labels, evaluated.objects.labels
    return groups_by_label(
        evaluated.classes,
        np.concatenate([found, there]),
        lambda label: summary(_part(evaluated, found == label, there == label)),
    )


def by_size(summary: Callable[[Judged], Summary], evaluated: Evaluated) -> Groups:
    """Return the summary of small, medium and large objects; a false positive counts by its own box's area.

    The sizes are COCO's, both ends included: an object of exactly 32 x 32 pixels is small and medium.
    """
    width, height = evaluated.detections.extents.T
    sizes = {}
    for name, (low, high) in zip(SIZES[1:], AREA_RANGES[1:], strict=True):
        found = (width * height >= low) & (width * height <= high)
        there = (evaluated.objects.areas >= low) & (evaluated.objects.areas <= high)
        sizes[name] = summary(_part(evaluated, found, there))
    return sizes


def _part(evaluated: Evaluated, found: Flags, there: Flags) -> _Part:
    """Return some objects with their matches, and of the detections that match nothing those in `found`."""
    partner = evaluated.detections.partners
    chosen = np.where(partner >= 0, there[partner] if len(there) else False, found)
    return _Part(
        evaluated.convention,
        evaluated.detections.take(np.flatnonzero(chosen)),
        evaluated.objects.take(np.flatnonzero(there)),
    )
