"""Some images of an evaluation: what `Evaluation.on` returns."""

from __future__ import annotations

import dataclasses
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from probox.evaluation.notes import empty_mask_note, notes_of_part
from probox.evaluation.result import Evaluation
from probox.tables.masks import Masks
from probox.tables.results import DetectionTable, ObjectTable

__all__ = ["evaluation_of_images"]

SomeTable = TypeVar("SomeTable", ObjectTable, DetectionTable)


def evaluation_of_images(evaluation: Evaluation, images: npt.ArrayLike) -> Evaluation:
    """Return the evaluation of these images alone; see `Evaluation.on`."""
    kept = evaluation.dataset.chosen_rows(images)
    there = np.flatnonzero(np.isin(evaluation.objects.image_rows, kept))
    found = np.flatnonzero(np.isin(evaluation.detections.image_rows, kept))
    new_object, new_detection = (np.full(len(table), -1) for table in (evaluation.objects, evaluation.detections))
    new_object[there], new_detection[found] = np.arange(len(there)), np.arange(len(found))
    pairs = evaluation.pairs.take(np.flatnonzero(new_detection[evaluation.pairs.detections] >= 0))
    masks = evaluation.masks.take(there)
    part = dataclasses.replace(
        evaluation,
        dataset=evaluation.dataset.take(kept),
        objects=_renumbered(evaluation.objects.take(there), kept),
        detections=_renumbered(evaluation.detections.take(found), kept),
        pairs=pairs.replace(detections=new_detection[pairs.detections], objects=new_object[pairs.objects]),
        masks=masks,
        part=None,
        threshold_choice=None if evaluation.threshold_choice is None else evaluation.threshold_choice.take(kept),
        plain_notes=_notes(evaluation, len(kept), masks, evaluation.objects.crowd[there]),
    )
    return part.rematched() if part.has_pairs else part


def _renumbered(table: SomeTable, kept: npt.NDArray[np.int64]) -> SomeTable:
    """Return a table whose image rows count in the kept images."""
    return table.replace(image_rows=np.searchsorted(kept, table.image_rows))


def _notes(evaluation: Evaluation, images: int, masks: Masks, crowd: npt.NDArray[np.bool_]) -> tuple[str, ...]:
    notes = notes_of_part(evaluation.plain_notes, images, len(evaluation.dataset))
    empty = int((~crowd & (masks.pixels == 0)).sum())
    if not empty or images == len(evaluation.dataset):
        return notes
    return (*notes, empty_mask_note(empty, box_truth=evaluation.convention.box_truth))
