"""COCO results as a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.errors import InputError
from probox.files.kinds import check_replaceable
from probox.files.output import json_bytes, write_files
from probox.files.reading import Paths
from probox.formats.json_detections import JSON_DETECTIONS, covariances_to_write
from probox.notes import Note
from probox.support.words import some_names
from probox.tables.arguments import dataset_of
from probox.tables.dataset import Dataset
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.labels import align_labels, column_of_each, unknown_classes

__all__ = ["coco_results_text", "write_coco_results"]

Floats = npt.NDArray[np.float64]


def write_coco_results(path: Paths, found: Detections, truth: GroundTruth | Dataset) -> tuple[Note, ...]:
    """Write COCO results to a ``.json`` or ``.json.gz`` file.

    ``all_scores`` is written where the label probabilities say more than the score, ``covars`` where corners
    have a covariance. Boxes, scores, label probabilities (of the truth's classes) and covariances come back
    exactly when the file is read.

    Parameters
    ----------
    path : path
        The file; its folder is made if it is missing. A file that is there is replaced if it holds detections.
    found : Detections
        What to write. Heatmaps cannot be held by this format.
    truth : GroundTruth or Dataset
        Gives the category ids.

    Returns
    -------
    tuple of str
        What the file cannot hold, one sentence each.

    Examples
    --------
    >>> from probox.formats import write_coco_results
    >>> write_coco_results("detections.json", found, truth)  # doctest: +SKIP
    """
    check_replaceable(path, JSON_DETECTIONS)
    dataset = dataset_of(truth, "the order is write_coco_results(path, found, truth)")
    text, notes = coco_results_text(found, dataset, str(path))
    target = Path(path)
    write_files({target: json_bytes(target, text)})
    return notes


def coco_results_text(found: Detections, dataset: Dataset, file: str) -> tuple[bytes, tuple[Note, ...]]:
    """Return COCO results as JSON, and what they cannot hold; `file` is named in errors."""
    if found.has_heatmap.any():
        raise InputError("COCO results cannot hold heatmaps", file=file, remedy="write RVC1 instead ({option:to=rvc1})")
    notes: list[Note] = []
    probs = align_labels(found.label_probs, found.classes, dataset.classes)
    labels, scores = _stated(found, probs, dataset, notes)
    covariances, has_covariances = covariances_to_write(found)
    sizes = _sizes_that_add_up(found.boxes, found.extents)
    text = _core.format_coco_results(
        image_ids=found.image_ids,
        labels=labels,
        category_ids=dataset.category_ids,
        boxes=np.concatenate([found.boxes[:, :2], sizes], axis=1),
        scores=scores,
        label_probs=probs,
        covariances=covariances,
        has_covariances=has_covariances,
    )
    return text, tuple(notes)


def _stated(
    found: Detections, probs: npt.NDArray[np.float32], dataset: Dataset, notes: list[Note]
) -> tuple[npt.NDArray[np.int32], Floats]:
    """Return class and score as stated in the file; a class that it cannot name gives way to the most probable one."""
    if len(found) and not len(dataset.classes):
        raise InputError("the ground truth has no classes", file=dataset.source or None)
    labels, scores = found.named_classes(dataset.classes)
    own = column_of_each(dataset.classes, found.classes)
    other = own[labels] != found.labels if len(labels) else np.zeros(0, bool)
    if other.any():
        notes.append(Note("stated-class-replaced", other.sum()))
    unknown = [found.classes[column] for column in unknown_classes(found.classes, dataset.classes)]
    if unknown:
        notes.append(Note("lost-classes", len(unknown), total=len(found.classes), names=some_names(unknown)))
    nameless = labels < 0
    if nameless.any():
        labels = np.where(nameless, probs.argmax(axis=1), labels)
    return labels.astype(np.int32), scores


def _sizes_that_add_up(boxes: Floats, sizes: Floats) -> Floats:
    """Return widths and heights w with x1 + w = x2 to the last bit, the stated ones where they do."""
    start, end = boxes[:, :2], boxes[:, 2:]
    plain = end - start
    best = sizes
    for candidate in (plain, np.nextafter(plain, np.inf), np.nextafter(plain, -np.inf)):
        best = np.where((start + best != end) & (start + candidate == end), candidate, best)
    return np.where(start + best == end, best, plain)
