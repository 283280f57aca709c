"""Some images of an evaluation: what `Evaluation.on` returns."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from probox.evaluation.notes import empty_mask_note, notes_of_part
from probox.evaluation.result import Evaluation
from probox.tables.columns import chosen_ids
from probox.tables.masks import Masks

__all__ = ["evaluation_of_images"]


def evaluation_of_images(evaluation: Evaluation, images: npt.ArrayLike) -> Evaluation:
    """Return the evaluation of these images alone; see `Evaluation.on`."""
    ids = chosen_ids(images, evaluation.images.id)
    there = np.flatnonzero(np.isin(evaluation.objects.image_id, ids))
    found = np.flatnonzero(np.isin(evaluation.detections.image_id, ids))
    new_object, new_detection = (np.full(len(table), -1) for table in (evaluation.objects, evaluation.detections))
    new_object[there], new_detection[found] = np.arange(len(there)), np.arange(len(found))
    pairs = evaluation.pairs.take(np.flatnonzero(new_detection[evaluation.pairs.detection] >= 0))
    masks = evaluation.masks.take(there)
    part = dataclasses.replace(
        evaluation,
        images=evaluation.images.take(np.flatnonzero(np.isin(evaluation.images.id, ids))),
        objects=evaluation.objects.take(there),
        detections=evaluation.detections.take(found),
        pairs=pairs.replace(detection=new_detection[pairs.detection], object=new_object[pairs.object]),
        masks=masks,
        plain_notes=_notes(evaluation, len(ids), masks),
    )
    return part.rematched() if part.has_pairs else part


def _notes(evaluation: Evaluation, images: int, masks: Masks) -> tuple[str, ...]:
    notes = notes_of_part(evaluation.plain_notes, images, len(evaluation.images))
    empty = int((masks.pixels == 0).sum())
    if not empty or images == len(evaluation.images):
        return notes
    return (*notes, empty_mask_note(empty, box_truth=evaluation.convention.box_truth))
