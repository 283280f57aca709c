"""Evaluations of different images as one: what ``a + b`` and `Evaluator.result` return."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.evaluation.any_result import AnyResult
from probox.evaluation.notes import join_notes
from probox.evaluation.part import part_of_all
from probox.evaluation.result import Evaluation
from probox.evaluation.threshold_choice import join_choices
from probox.tables.columns import Table
from probox.tables.columns import joined as joined_tables
from probox.tables.masks import Masks

__all__ = ["first_image", "join_evaluations", "without_labels"]

_NO_IMAGE = 2**63
"""Where parts without images stand: after all others."""


def join_evaluations(parts: Sequence[Evaluation]) -> Evaluation:
    """Return the evaluation of all images of all parts, whatever their order.

    Parts must agree in convention and classes, be parts of one whole or of none, and must not share an image.
    """
    first = parts[0]
    for part in parts[1:]:
        if part.convention != first.convention:
            raise InputError("evaluations of different conventions do not add up", remedy="evaluate both alike")
        if part.classes != first.classes or part.measures != first.measures:
            raise InputError("evaluations of different classes or measures do not add up", remedy="evaluate both alike")
    records = [part.part for part in parts]
    if len({record and (record.of, record.whole, record.inputs) for record in records}) > 1:
        raise InputError("evaluations that are parts of different wholes do not add up", remedy="evaluate both alike")
    if first.part is not None:
        parts = sorted(parts, key=first_image)
    ids = np.concatenate([part.dataset.image_ids for part in parts])
    order = np.argsort(ids, kind="stable")
    again = np.flatnonzero(np.diff(ids[order]) == 0)
    if len(again):
        twice = int(ids[order][again[0]])
        raise InputError("the image is in more than one part", image=twice, remedy="evaluate each image once")
    row = np.empty(len(ids), np.int64)
    row[order] = np.arange(len(ids))

    if any(part.detections.label_probs is None for part in parts):  # what one of them has not kept, all have not
        parts = [without_labels(part) for part in parts]
    datasets, of_objects = [part.dataset for part in parts], [part.objects for part in parts]
    of_detections, of_pairs = [part.detections for part in parts], [part.pairs for part in parts]
    objects, detections, pairs = joined_tables(of_objects), joined_tables(of_detections), joined_tables(of_pairs)
    objects = objects.replace(image_rows=row[objects.image_rows + _shift(datasets, of_objects)])
    detections = detections.replace(image_rows=row[detections.image_rows + _shift(datasets, of_detections)])
    of_object = pairs.objects + _shift(of_objects, of_pairs)
    of_detection = pairs.detections + _shift(of_detections, of_pairs)

    pairs = pairs.replace(objects=of_object, detections=of_detection)
    masks = Masks.concatenate([part.masks for part in parts])
    if not np.array_equal(row, np.arange(len(row))):  # parts that follow each other are left as they are
        object_order = np.argsort(objects.image_rows, kind="stable")
        detection_order = np.argsort(detections.image_rows, kind="stable")
        new_object, new_detection = np.argsort(object_order), np.argsort(detection_order)
        pair_order = np.argsort(objects.image_rows[of_object], kind="stable")
        pairs = pairs.replace(objects=new_object[of_object], detections=new_detection[of_detection]).take(pair_order)
        objects, detections = objects.take(object_order), detections.take(detection_order)
        masks = masks.take(object_order)
    joined = dataclasses.replace(
        first,
        dataset=joined_tables(datasets, order),
        objects=objects,
        detections=detections,
        pairs=pairs,
        masks=masks,
        inputs=tuple(dict.fromkeys(name for part in parts for name in part.inputs)),
        plain_notes=join_notes([part.plain_notes for part in parts], of_one=first.part is not None),
        part=part_of_all(records),
        threshold_choice=join_choices([part.threshold_choice for part in parts], list(map(len, datasets)), order),
    )
    return joined.rematched() if joined.has_pairs else joined


def first_image(part: AnyResult) -> int:
    """Return by what parts of one whole are sorted, so that the order in which they are given makes no other result."""
    return int(part.dataset.image_ids[0]) if len(part.dataset) else _NO_IMAGE


def without_labels(evaluation: Evaluation) -> Evaluation:
    """Return the evaluation without the probabilities of all classes: what it measured stays."""
    return dataclasses.replace(evaluation, detections=evaluation.detections.replace(label_probs=None))


def _shift(tables: Sequence[Table], pointing: Sequence[Table]) -> npt.NDArray[np.int64]:
    """Return by how much each row of the parts `pointing` must point further down once `tables` are one table."""
    before = np.cumsum([0, *map(len, tables)])[:-1]
    return np.repeat(before, [len(table) for table in pointing])
