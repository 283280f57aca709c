"""The part of an evaluation that is about one class, as an evaluation of its own: for measures of single classes."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from probox.evaluation.result import Evaluation
from probox.measures.measure import Measure

__all__ = ["ClassPart", "class_part"]


@dataclasses.dataclass(frozen=True, eq=False)
class ClassPart:
    """The objects and detections of one class, with the verdicts that they have, and the images that they are in."""

    evaluation: Evaluation
    images: npt.NDArray[np.int64]
    """Rows of the whole evaluation's images; the others hold nothing of the class."""


def class_part(evaluation: Evaluation, label: int, measure: Measure) -> ClassPart:
    """Return what a measure of the class reads, as `Measure.per_class` reads it.

    Measures of matches by pixels have an object's match under the object's class, whatever class the detection names,
    and what matches nothing under the class that it names. Those of matches by boxes have detections under the class
    that they name. Those that match nobody look at all that was found where the class has objects.
    """
    objects, detections = evaluation.objects, evaluation.detections
    of_object, of_detection = objects.labels == label, detections.labels == label
    if "pairs" in measure.needs:
        partners = detections.partners
        of_detection = np.where(partners >= 0, of_object[partners] if len(of_object) else False, of_detection)
    elif "boxes" not in measure.needs:
        of_detection = np.isin(detections.image_rows, objects.image_rows[of_object])
    there, found = np.flatnonzero(of_object), np.flatnonzero(of_detection)
    images = np.union1d(objects.image_rows[there], detections.image_rows[found])
    new_object, new_detection = np.full(len(objects), -1), np.full(len(detections), -1)
    new_object[there], new_detection[found] = np.arange(len(there)), np.arange(len(found))
    pairs = evaluation.pairs
    inside = (new_object[pairs.objects] >= 0) & (new_detection[pairs.detections] >= 0)
    pairs = pairs.take(np.flatnonzero(inside))
    part = dataclasses.replace(
        evaluation,
        dataset=evaluation.dataset.take(images),
        objects=objects.take(there).replace(
            image_rows=np.searchsorted(images, objects.image_rows[there]),
            partners=_renumbered(objects.partners[there], new_detection),
        ),
        detections=detections.take(found).replace(
            image_rows=np.searchsorted(images, detections.image_rows[found]),
            partners=_renumbered(detections.partners[found], new_object),
        ),
        pairs=pairs.replace(objects=new_object[pairs.objects], detections=new_detection[pairs.detections]),
        masks=evaluation.masks.take(there),
        plain_notes=(),
    )
    return ClassPart(part, images)


def _renumbered(partners: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return partners by their new numbers; -1 stays."""
    return np.where(partners >= 0, numbers[partners], -1) if len(numbers) else partners
