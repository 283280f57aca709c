"""Detections of photos into the file that was asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from probox.detect.classes import COCO_CATEGORY_IDS, COCO_CLASSES
from probox.detect.finding import ImageFile
from probox.errors import InputError
from probox.formats.coco.format import COCO_RESULTS
from probox.formats.parquet.format import PARQUET_DETECTIONS
from probox.formats.registry import format_of_name
from probox.formats.rvc1.format import RVC1_DETECTIONS
from probox.formats.writing import write_detections
from probox.support.words import some_names
from probox.tables.dataset import Dataset
from probox.tables.detections import Detections
from probox.tables.labels import unknown_classes

__all__ = ["check_ids", "save_detections"]


def check_ids(path: str | Path, images: Sequence[ImageFile], *, shards: int | None = None) -> None:
    """Raise if the file could not say which image a detection belongs to.

    Only RVC1 holds names of images. In any other format, ids that were made up would be taken for those of whatever
    truth the file is compared with.
    """
    seen: dict[int, ImageFile] = {}
    for image in images:
        if seen.setdefault(image.image_id, image) is not image:
            raise InputError(f"{seen[image.image_id].path} and {image.path} have the same id", image=image.image_id)
    form = format_of_name(path) if shards is None else PARQUET_DETECTIONS
    counted = [image for image in images if image.counted]
    if counted and form is not None and form is not RVC1_DETECTIONS:
        raise InputError(
            f"{form.title} would hold ids of images alone, and those of {len(counted)} photos are made up: their names "
            f"are no numbers of their own (the first: {counted[0].path.name})",
            file=str(path),
            remedy="give the ground truth, which knows their ids, or write .rvc1.json, which holds their names",
        )


def save_detections(
    path: str | Path,
    found: Detections,
    images: Sequence[ImageFile],
    sizes: Mapping[int, tuple[int, int]] | None = None,
    categories: Mapping[int, str] | None = None,
    *,
    shards: int | None = None,
) -> tuple[str, ...]:
    """Write detections of `images`, in the format that the file name asks for, and return what is to be said of it.

    ``*.coco.json`` and ``*.bbox.json`` are COCO results with ``all_scores`` and ``covars``, ``*.parquet`` is Parquet,
    any other ``*.json`` is RVC1 with the names of the images and one list for each, in their order: an image without
    detections, or that could not be read, has an empty one. JSON may end in ``.gz``. The file appears only when it is
    complete.

    Parameters
    ----------
    path : path
        The file.
    found : Detections
        What to write, all in `images`.
    images : sequence of ImageFile
        The images, in order of their ids. Those whose ids were made up can be written as RVC1 only.
    sizes : dict of image id to (width, height), optional
        Sizes of the images, where known.
    categories : dict of category id to name, optional
        The truth's, for COCO results, which name classes by number and list their probabilities in that order.
        Default: COCO's for its 80 classes, else 1, 2, ... in the order of the classes.
    shards : int, optional
        Write a folder of so many Parquet files instead, whatever it is called.
    """
    check_ids(path, images, shards=shards)
    dataset = _dataset(found.classes, images, sizes or {})
    notes: tuple[str, ...] = ()
    if shards is None and format_of_name(path) is COCO_RESULTS:
        dataset, notes = _with_categories(dataset, categories)
    return notes + write_detections(path, found, dataset, shards=shards)


def _dataset(classes: Sequence[str], images: Sequence[ImageFile], sizes: Mapping[int, tuple[int, int]]) -> Dataset:
    """Return the data set of the images; sizes that nobody knows are 1 x 1, which no writer looks at."""
    known = [sizes.get(image.image_id, (1, 1)) for image in images]
    coco = tuple(classes) == COCO_CLASSES
    return Dataset(
        classes=tuple(classes),
        image_ids=np.array([image.image_id for image in images], np.int64),
        widths=np.array([width for width, _ in known], np.int32),
        heights=np.array([height for _, height in known], np.int32),
        file_names=_names(images),
        category_ids=np.array(COCO_CATEGORY_IDS if coco else range(1, len(classes) + 1), np.int64),
    )


def _names(images: Sequence[ImageFile]) -> tuple[str, ...]:
    """Return a name for each image that no other has: the truth's, or the photo's, with its folders where needed."""
    names = tuple(image.name or image.path.name for image in images)
    if len(set(names)) == len(names):
        return names
    paths = [image.path.resolve() for image in images]
    root = os.path.commonpath([path.parent for path in paths])
    return tuple(path.relative_to(root).as_posix() for path in paths)


def _with_categories(dataset: Dataset, categories: Mapping[int, str] | None) -> tuple[Dataset, tuple[str, ...]]:
    """Return the data set with the truth's categories, by which COCO results are read."""
    if categories:
        wanted = dict(sorted(categories.items()))
        theirs = tuple(wanted.values())
        if len(unknown_classes(dataset.classes, theirs)) < len(dataset.classes):
            return dataset.replace(classes=theirs, category_ids=np.array(list(wanted), np.int64)), ()
        note = (
            f"warning: no class of the detector ({some_names(dataset.classes)}) is one of the truth's "
            f"({some_names(theirs)}): categories are numbered from 1 in the detector's order"
        )
        return dataset, (note,)
    if tuple(dataset.classes) == COCO_CLASSES:
        return dataset, ()
    note = (
        f"COCO results hold numbers of classes: 1 is {dataset.classes[0]}, and so on in the detector's order; "
        "give the ground truth to use its category ids"
    )
    return dataset, (note,)
