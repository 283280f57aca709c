"""Detections of a folder of images into the file that was asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from probox.detect.classes import COCO_CATEGORY_IDS, COCO_CLASSES
from probox.detect.finding import ImageFile
from probox.formats.writing import write_detections
from probox.tables.dataset import Dataset
from probox.tables.detections import Detections

__all__ = ["save_detections"]


def save_detections(
    path: str | Path,
    found: Detections,
    images: Sequence[ImageFile],
    sizes: Mapping[int, tuple[int, int]] | None = None,
) -> tuple[str, ...]:
    """Write detections of `images`, in the format that the file name asks for, and return what it can't hold.

    ``*.coco.json`` and ``*.bbox.json`` are COCO results with ``all_scores`` and ``covars``, ``*.parquet`` is Parquet,
    any other ``*.json`` is RVC1 with one list for each image, in their order: an image without detections, or that
    could not be read, has an empty one. JSON may end in ``.gz``. The file appears only when it is complete.

    Parameters
    ----------
    path : path
        The file.
    found : Detections
        What to write, all in `images`.
    images : sequence of ImageFile
        The images, in order of their ids.
    sizes : dict of image id to (width, height), optional
        Sizes of the images, where known.
    """
    return write_detections(path, found, _dataset(found.classes, images, sizes or {}))


def _dataset(classes: Sequence[str], images: Sequence[ImageFile], sizes: Mapping[int, tuple[int, int]]) -> Dataset:
    """Return the data set of the images; sizes that nobody knows are 1 x 1, which no writer looks at."""
    known = [sizes.get(image.image_id, (1, 1)) for image in images]
    coco = tuple(classes) == COCO_CLASSES
    return Dataset(
        classes=tuple(classes),
        image_ids=np.array([image.image_id for image in images], np.int64),
        widths=np.array([width for width, _ in known], np.int32),
        heights=np.array([height for _, height in known], np.int32),
        file_names=tuple(image.path.name for image in images),
        category_ids=np.array(COCO_CATEGORY_IDS if coco else range(1, len(classes) + 1), np.int64),
    )
