"""Images of a metric as tables: objects and detections of all of them, with sizes where nobody says them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.adapters.dictionaries import Seen
from probox.errors import InputError
from probox.tables.boxes import extents_of, pixels_of_boxes
from probox.tables.dataset import Dataset
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.masks import Masks

__all__ = ["check_pixels", "detections_of", "large_enough", "numbered", "truth_of"]

Floats = npt.NDArray[np.float64]

REACH = 8.0
"""Standard deviations beyond which a corner's Gaussian has nothing that a number would show."""
LARGEST = 1 << 30
"""The widest image that is made up where nobody says how wide it is."""
MANY = 5
"""So many predictions between 0 and 1, and none beyond, are no accident."""


def numbered(images: Sequence[Seen]) -> list[int]:
    """Return the ids of images; those without get numbers that nobody has."""
    taken = [seen.image_id for seen in images if seen.image_id is not None]
    free = max(taken, default=-1) + 1
    ids = []
    for seen in images:
        ids.append(free if seen.image_id is None else seen.image_id)
        free += seen.image_id is None
    return ids


def large_enough(seen: Seen, least_variance: float) -> tuple[int, int]:
    """Return a width and height beyond which there is nothing of an image's boxes and their Gaussians."""
    far = np.ones(2)
    if len(seen.object_boxes):
        far = np.maximum(far, seen.object_boxes[:, 2:].max(axis=0))
    if len(seen.boxes):
        # The variances of the corner's x and y; a top-left corner far from certain reaches as far as it does.
        var = np.full((len(seen.boxes), 2, 2), least_variance)
        if seen.covariances is not None:
            var = np.maximum(var, np.diagonal(seen.covariances, axis1=2, axis2=3))
        corners = seen.boxes.reshape(-1, 2, 2)
        with np.errstate(invalid="ignore", over="ignore"):  # tables reject what is no number, in words
            reach = corners + REACH * np.sqrt(np.maximum(var, 0.0))
        far = np.maximum(far, np.nan_to_num(reach.max(axis=(0, 1)), posinf=LARGEST))
    wide, high = np.minimum(np.ceil(far) + 2, LARGEST).astype(np.int64).tolist()
    return wide, high


def _joined(parts: Sequence[npt.NDArray[Any]], empty: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.concatenate(parts) if parts else empty


def _extents(boxes: Floats, stated: Floats | None) -> Floats:
    return extents_of(boxes) if stated is None else stated


def truth_of(dataset: Dataset, images: Sequence[Seen]) -> GroundTruth:
    """Return the objects of images, which are in the order of the data set."""
    boxes = _joined([seen.object_boxes for seen in images], np.zeros((0, 4)))
    extents = _joined([_extents(seen.object_boxes, seen.object_extents) for seen in images], np.zeros((0, 2)))
    masks, areas = [], []
    for seen, shape in zip(images, dataset.shapes, strict=True):
        own = seen.masks
        if own is None:
            shapes = np.broadcast_to(shape, (len(seen.object_boxes), 2))
            own = Masks.from_boxes(pixels_of_boxes(seen.object_boxes, shapes))
        masks.append(own)
        usual = _extents(seen.object_boxes, seen.object_extents).prod(axis=1)  # as torchmetrics has it
        areas.append(usual if seen.areas is None else seen.areas)
    return GroundTruth(
        dataset=dataset,
        image_rows=np.repeat(np.arange(len(images)), [len(seen.object_boxes) for seen in images]),
        labels=_joined([seen.object_labels for seen in images], np.zeros(0, np.int64)).astype(np.int32),
        boxes=boxes,
        masks=Masks.concatenate(masks),
        extents=extents,
        areas=_joined(areas, np.zeros(0)),
        crowd=_joined([seen.crowd for seen in images], np.zeros(0, bool)),
    )


def detections_of(dataset: Dataset, images: Sequence[Seen]) -> Detections:
    """Return the detections of images, which are in the order of the data set."""
    counts = [len(seen.boxes) for seen in images]
    labels = _joined([seen.labels for seen in images], np.zeros(0, np.int64)).astype(np.int32)
    scores = _joined([seen.scores for seen in images], np.zeros(0))
    starts = np.cumsum([0, *counts])
    with_probs = [row for row, seen in enumerate(images) if seen.label_probs is not None and counts[row]]
    given_rows = _joined([np.arange(starts[row], starts[row + 1]) for row in with_probs], np.zeros(0, np.int64))
    given = [seen.label_probs for seen in images if seen.label_probs is not None and len(seen.boxes)]
    # A score alone: the class gets it, the others share the rest evenly, as for results in COCO's files.
    label_probs = _core.label_matrix(
        scores=scores,
        labels=labels,
        columns=len(dataset.classes),
        given_rows=given_rows,
        given=_joined(given, np.zeros(0, np.float32)).reshape(-1),
        threads=1,
    )
    covariances = None
    if any(seen.covariances is not None for seen in images):
        covariances = np.concatenate(
            [
                np.zeros((count, 2, 2, 2)) if seen.covariances is None else seen.covariances
                for seen, count in zip(images, counts, strict=True)
            ]
        )
    return Detections(
        classes=dataset.classes,
        image_ids=np.repeat(dataset.image_ids, counts),
        boxes=_joined([seen.boxes for seen in images], np.zeros((0, 4))),
        extents=_joined([_extents(seen.boxes, seen.extents) for seen in images], np.zeros((0, 2))),
        label_probs=label_probs,
        covariances=covariances,
        labels=labels,
        scores=scores,
    )


def check_pixels(truth: GroundTruth, found: Detections) -> None:
    """Raise if all predictions lie between 0 and 1 while objects do not."""
    if len(found) >= MANY and len(truth) and found.boxes.max() <= 1.0 < truth.boxes.max():
        raise InputError(
            "the predictions' boxes lie between 0 and 1, the targets' do not",
            remedy="multiply predictions by the image's width and height",
        )
