"""Some images of an evaluation: what `Evaluation.on` returns."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from probox.columns import chosen_ids
from probox.evaluation import Evaluation

__all__ = ["evaluation_of_images"]


def evaluation_of_images(evaluation: Evaluation, images: npt.ArrayLike) -> Evaluation:
    """Return the evaluation of these images alone; see `Evaluation.on`."""
    ids = chosen_ids(images, evaluation.images.id)
    there = np.flatnonzero(np.isin(evaluation.objects.image_id, ids))
    found = np.flatnonzero(np.isin(evaluation.detections.image_id, ids))
    new_object, new_detection = (np.full(len(table), -1) for table in (evaluation.objects, evaluation.detections))
    new_object[there], new_detection[found] = np.arange(len(there)), np.arange(len(found))
    pairs = evaluation.pairs.take(np.flatnonzero(new_detection[evaluation.pairs.detection] >= 0))
    part = dataclasses.replace(
        evaluation,
        images=evaluation.images.take(np.flatnonzero(np.isin(evaluation.images.id, ids))),
        objects=evaluation.objects.take(there),
        detections=evaluation.detections.take(found),
        pairs=pairs.replace(detection=new_detection[pairs.detection], object=new_object[pairs.object]),
        masks=evaluation.masks.take(there),
        notes=(*evaluation.plain_notes, *_restriction(len(ids), len(evaluation.images))),
    )
    return (part.rematched() if "pdq" in part.measures else part).noted()


def _restriction(part: int, whole: int) -> tuple[str, ...]:
    if part == whole:
        return ()
    return (f"restricted to {part:,} of {whole:,} images; counts in other notes are of all {whole:,}",)
