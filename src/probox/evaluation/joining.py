"""Evaluations of different images as one: what ``a + b`` and `Evaluator.result` return."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.evaluation.notes import join_notes
from probox.evaluation.result import Evaluation
from probox.tables.masks import Masks
from probox.tables.results import DetectionTable, ImageTable, ObjectTable, PairTable

__all__ = ["join_evaluations"]


def join_evaluations(parts: Sequence[Evaluation]) -> Evaluation:
    """Return the evaluation of all images of all parts, whatever their order.

    Parts must agree in convention and classes and must not share an image.
    """
    first = parts[0]
    for part in parts[1:]:
        if part.convention != first.convention:
            raise InputError("evaluations of different conventions do not add up", remedy="evaluate both alike")
        if part.classes != first.classes or part.measures != first.measures:
            raise InputError("evaluations of different classes or measures do not add up", remedy="evaluate both alike")
    images = ImageTable.join([part.images for part in parts])
    order = np.argsort(images.id, kind="stable")
    ids = images.id[order]
    if np.any(ids[1:] == ids[:-1]):
        twice = int(ids[1:][ids[1:] == ids[:-1]][0])
        raise InputError("the image is in more than one part", image=twice, remedy="evaluate each image once")

    object_starts = np.cumsum([0] + [len(part.objects) for part in parts])
    detection_starts = np.cumsum([0] + [len(part.detections) for part in parts])
    objects = ObjectTable.join([part.objects for part in parts])
    detections = DetectionTable.join([part.detections for part in parts])
    pairs = PairTable.join([part.pairs for part in parts])
    counts = [len(part.pairs) for part in parts]
    of_object = pairs.object + np.repeat(object_starts[:-1], counts)
    of_detection = pairs.detection + np.repeat(detection_starts[:-1], counts)

    pairs = pairs.replace(object=of_object, detection=of_detection)
    masks = Masks.concatenate([part.masks for part in parts])
    if not _in_order(images.id):  # parts that follow each other, as those of a large file do, are left as they are
        object_order = np.argsort(objects.image_id, kind="stable")
        detection_order = np.argsort(detections.image_id, kind="stable")
        new_object, new_detection = np.argsort(object_order), np.argsort(detection_order)
        pair_order = np.argsort(objects.image_id[of_object], kind="stable")
        pairs = pairs.replace(object=new_object[of_object], detection=new_detection[of_detection]).take(pair_order)
        images, objects, detections = images.take(order), objects.take(object_order), detections.take(detection_order)
        masks = masks.take(object_order)
    joined = dataclasses.replace(
        first,
        images=images,
        objects=objects,
        detections=detections,
        pairs=pairs,
        masks=masks,
        inputs=tuple(dict.fromkeys(name for part in parts for name in part.inputs)),
        plain_notes=join_notes(part.plain_notes for part in parts),
    )
    return joined.rematched() if joined.has_pairs else joined


def _in_order(image_ids: npt.NDArray[np.int64]) -> bool:
    return bool((image_ids[1:] > image_ids[:-1]).all())
