"""Detections of a folder of images into the file that was asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from probox.detect.classes import COCO_CATEGORY_IDS, COCO_CLASSES
from probox.detect.images import ImageFile
from probox.detections import Detections
from probox.errors import InputError
from probox.groundtruth import GroundTruth
from probox.masks import Masks

__all__ = ["check_output", "save_detections"]

_COCO = (".coco.json", ".coco.json.gz", ".bbox.json", ".bbox.json.gz")


def check_output(path: str | Path) -> None:
    """Raise if `save_detections` could not write this file, before any work is done."""
    _format_of(Path(path))
    if not Path(path).resolve().parent.is_dir():
        raise InputError("the folder of this file does not exist", file=str(path), remedy="make it first")


def save_detections(
    path: str | Path,
    found: Detections,
    images: Sequence[ImageFile],
    sizes: Mapping[int, tuple[int, int]] | None = None,
) -> None:
    """Write detections of `images`, in the format that the file name asks for.

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
    from probox.formats import write_coco_results, write_parquet, write_rvc1

    wanted = _format_of(Path(path))
    if wanted == "parquet":
        write_parquet(path, found)
        return
    table = _image_table(found.classes, images, sizes or {})
    (write_coco_results if wanted == "coco" else write_rvc1)(path, found, table)


def _format_of(path: Path) -> str:
    name = path.name.lower()
    if name.endswith(_COCO):
        return "coco"
    if name.endswith((".json", ".json.gz")):
        return "rvc1"
    if name.endswith(".parquet"):
        return "parquet"
    raise InputError(
        "can't tell a format from this file name", file=str(path), remedy="use .json, .coco.json or .parquet"
    )


def _image_table(
    classes: Sequence[str], images: Sequence[ImageFile], sizes: Mapping[int, tuple[int, int]]
) -> GroundTruth:
    """Return the images as ground truth without objects: what writers need to know of them."""
    known = [sizes.get(image.image_id, (1, 1)) for image in images]
    coco = tuple(classes) == COCO_CLASSES
    return GroundTruth(
        classes=tuple(classes),
        image_ids=np.array([image.image_id for image in images], np.int64),
        widths=np.array([width for width, _ in known], np.int32),
        heights=np.array([height for _, height in known], np.int32),
        object_image=np.zeros(0, np.int64),
        object_class=np.zeros(0, np.int32),
        boxes=np.zeros((0, 4)),
        masks=Masks.from_boxes(np.zeros((0, 4), np.int32)),
        file_names=tuple(image.path.name for image in images),
        category_ids=np.array(COCO_CATEGORY_IDS if coco else range(1, len(classes) + 1), np.int64),
    )
