"""Detections read and written without their ground truth: what the file itself knows stands in for it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from probox import _core
from probox.errors import InputError
from probox.files.source import Source
from probox.formats.coco.format import COCO_RESULTS
from probox.formats.format import DetectionFormat
from probox.formats.parquet.format import PARQUET_DETECTIONS
from probox.formats.parquet.sets import open_detections
from probox.formats.problems import Problems
from probox.formats.rvc1.detections import check_rvc1
from probox.formats.rvc1.format import RVC1_DETECTIONS
from probox.formats.sharing import sharing
from probox.tables.dataset import Dataset

__all__ = ["dataset_alone"]

REMEDY = "give the ground truth of these images ({option:truth})"


def dataset_alone(source: Source, form: DetectionFormat, categories: Sequence[tuple[str, int]]) -> Dataset:
    """Return a data set of the images that a file of detections speaks of; their sizes are not known, and are 1 x 1.

    What was read with it can be written in the same format again, and means the same.

    Parameters
    ----------
    source, form
        The file and its format.
    categories : sequence of (str, int)
        Names and category ids, which COCO results do not say.
    """
    if form is RVC1_DETECTIONS and source.is_folder:
        raise InputError("folders of sequences go with challenge ground truth", file=source.name, remedy=REMEDY)
    if form is RVC1_DETECTIONS:
        return _rvc1(source)
    if form is COCO_RESULTS:
        return _coco(source, categories)
    if form is PARQUET_DETECTIONS:
        file = open_detections(source.path)
        return _stand_in(file.image_counts()[0], file.classes)
    raise InputError(
        f"{form.title} cannot be read alone: images, their sizes and classes come from the ground truth",
        file=source.name,
        remedy=REMEDY,
    )


def _rvc1(source: Source) -> Dataset:
    data = source.content()
    check_rvc1(data, source.name)
    columns, _ = _core.read_rvc1(data, lenient=False, max_examples=1, **sharing())
    names = tuple(columns["image_names"])
    named = len(names) == columns["images"] == len(set(names)) and all(names)
    return _stand_in(np.arange(columns["images"]), columns["classes"], names if named else ())


def _coco(source: Source, categories: Sequence[tuple[str, int]]) -> Dataset:
    columns, found = _core.read_coco_results(
        source.content(), image_ids=None, category_ids=None, lenient=False, max_examples=1, **sharing()
    )
    Problems().add_raw(found, source.name)
    named = np.flatnonzero(columns["name_has_id"] == 0)
    if len(named):
        raise InputError(
            f"expected the number of an image, but got the name {columns['names'][named[0]][:80]!r}",
            file=source.name,
            entry=f"[{columns['name_entries'][named[0]]}].image_id",
            remedy=REMEDY,
        )
    dataset = _stand_in(columns["image_ids"], [name for name, _ in categories])
    return dataset.replace(category_ids=np.array([number for _, number in categories], np.int64))


def _stand_in(image_ids: np.typing.NDArray[np.int64], classes: Sequence[str], names: tuple[str, ...] = ()) -> Dataset:
    ids = np.unique(image_ids)
    size = np.ones(len(ids), np.int32)
    return Dataset(classes=tuple(classes), image_ids=ids, widths=size, heights=size, file_names=names)
