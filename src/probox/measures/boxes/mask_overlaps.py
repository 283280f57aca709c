"""IoU of the masks of detections and objects, computed from their runs."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.support.parallel import threads_for
from probox.support.types import Bools, Ints
from probox.tables.dataset import Dataset
from probox.tables.detections import Detections
from probox.tables.geometry import polygon_pixels_of_boxes
from probox.tables.masks import Masks
from probox.tables.results import OverlapTable


class LabelledObjects(Protocol):
    """Objects of ground truth or of an evaluation."""

    @property
    def image_rows(self) -> Ints: ...
    @property
    def labels(self) -> npt.NDArray[np.int32]: ...
    @property
    def crowd(self) -> Bools: ...


def masks_of_detections(found: Detections, shapes: npt.NDArray[np.int32]) -> Masks:
    """Return the masks of detections, in images of these widths and heights, (N, 2).

    A detection without a mask gets the pixels of its box as the COCO API rasterises it.
    """
    found.check_masks(shapes)
    if found.masks is not None and found.has_mask is not None and found.has_mask.all():
        return found.masks
    boxes = Masks.from_boxes(polygon_pixels_of_boxes(found.boxes, shapes))
    if found.masks is None or found.has_mask is None:
        return boxes
    rows = np.arange(len(found))
    return Masks.concatenate([found.masks, boxes]).take(np.where(found.has_mask, rows, len(found) + rows))


def overlaps_of_masks(
    dataset: Dataset,
    image_rows: Ints,
    labels: npt.NDArray[np.int32],
    masks: Masks,
    there: LabelledObjects,
    object_masks: Masks,
    *,
    threads: int | None = None,
) -> OverlapTable:
    """Return the IoU of each detection with the objects of its image and class, without pairs that do not overlap.

    Parameters
    ----------
    dataset : Dataset
        Images of the ground truth.
    image_rows, labels : (N,)
        Image row and class of each detection; -1 if unknown.
    masks : Masks
        Masks of the detections.
    there : GroundTruth or ObjectTable
        The objects, by image.
    object_masks : Masks
        Their masks.
    threads : int, optional
        Number of threads. Default: all available. Results are bit-identical for any number.
    """
    detections, objects, ious = _core.mask_overlaps(
        image_rows=image_rows,
        labels=labels,
        boxes=masks.boxes,
        pixels=masks.pixels,
        offsets=masks.offsets,
        runs=masks.runs,
        object_offsets=dataset.offsets(there.image_rows),
        object_labels=there.labels,
        object_crowd=there.crowd,
        object_boxes=object_masks.boxes,
        object_pixels=object_masks.pixels,
        object_run_offsets=object_masks.offsets,
        object_runs=object_masks.runs,
        threads=threads_for(len(labels), threads),
    )
    some = np.flatnonzero(ious)
    return OverlapTable(detections=detections[some], objects=objects[some], ious=ious[some])
