"""Reading ground truth and detections, whatever their format: the content decides who reads a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.files.reading import Paths
from probox.files.source import Source
from probox.formats.draft import Draft
from probox.formats.format import Format
from probox.formats.problems import Problems
from probox.formats.registry import (
    SomeFormat,
    detection_formats,
    format_of_detections,
    format_of_truth,
    truth_formats,
)
from probox.formats.yolo.order import Order
from probox.tables.arguments import dataset_of, expect_path
from probox.tables.dataset import Dataset
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

__all__ = ["load_detections", "load_truth", "read_detections", "read_detections_of_part", "read_truth"]


def read_truth(
    path: Paths, format: str | None = None, *, split: str | None = None, image_ids: npt.ArrayLike | None = None
) -> GroundTruth:
    """Read ground truth: COCO, Parquet, a challenge folder, YOLO, Pascal VOC, KITTI or Open Images.

    Parameters
    ----------
    path : path
        The file or folder; of Parquet also a URL. A part of a YOLO or Pascal VOC data set may stand behind a colon:
        ``data.yaml:test``, ``VOC2007:val``.
    format : {"coco", "parquet", "rvc1", "yolo", "voc", "kitti", "openimages"}, optional
        The format. Default: told by the content.
    split : str, optional
        YOLO and Pascal VOC: the part, such as ``"test"``.
    image_ids : sequence of int, optional
        Parquet: read these images alone. Row groups without any of them are not read.

    Raises
    ------
    InputError
        What is wrong, and where: file, image and entry.

    Examples
    --------
    >>> import probox
    >>> truth = probox.read_truth("instances_val2017.json")  # doctest: +SKIP
    """
    expect_path(path)
    source = Source(path)
    form = format_of_truth(source) if format is None else _named(format, truth_formats())
    return form.read(source, Problems(), **_options(form, truth_formats(), split=split, image_ids=image_ids))


def read_detections(
    path: Paths,
    truth: GroundTruth | Dataset | None = None,
    format: str | None = None,
    *,
    repair: bool = False,
    order: Order | None = None,
    image_ids: npt.ArrayLike | None = None,
) -> Detections:
    """Read detections: COCO results, RVC1, Parquet, YOLO, Pascal VOC, KITTI or Open Images.

    Parameters
    ----------
    path : path
        A ``.json`` or ``.json.gz`` file with a list (COCO results) or an object (RVC1), a Parquet file, a CSV file of
        Open Images, or a folder: of sequences (RVC1), of text files (YOLO, Pascal VOC, KITTI) or of Parquet files.
    truth : GroundTruth or Dataset
        What the detector was run on: tells images, their order and the classes. Parquet can be read without.
    format : {"coco", "rvc1", "parquet", "yolo", "voc", "kitti", "openimages"}, optional
        The format. Default: told by the content.
    repair : bool
        Replace covariances that are not symmetric or not positive semi-definite by the nearest that are.
    order : {"score-last", "score-first"}, optional
        YOLO: whether lines are ``class cx cy w h score``, as ultralytics writes, or ``class score cx cy w h``. Default:
        told by the boxes.
    image_ids : sequence of int, optional
        Parquet: read the detections of these images alone. Row groups without any of them are not read.

    Raises
    ------
    InputError
        What is wrong, and where: file, image and entry.

    Examples
    --------
    >>> import probox
    >>> truth = probox.read_truth("instances_val2017.json")  # doctest: +SKIP
    >>> found = probox.read_detections("detections.json", truth)  # doctest: +SKIP
    """
    call = "the order is read_detections(path, truth)"
    expect_path(path, remedy=call)
    dataset = None if truth is None else dataset_of(truth, call)
    source = Source(path)
    form = format_of_detections(source) if format is None else _named(format, detection_formats())
    if dataset is None and not form.standalone:
        raise InputError(
            f"{form.title} need the ground truth, which tells images and classes",
            file=source.name,
            remedy="read_detections(path, truth)",
        )
    options = _options(form, detection_formats(), order=order, image_ids=image_ids)
    draft: Draft = form.read(source, dataset, Problems(), **options)
    return draft.to_table(repair=repair)


def _named(name: str, formats: Sequence[SomeFormat]) -> SomeFormat:
    """Return the format of a name."""
    known = {form.name: form for form in formats}
    if name not in known:
        raise InputError(f"unknown format {name!r:.40}", remedy=f"use one of {', '.join(sorted(known))}")
    return known[name]


def _options(form: Format, formats: Sequence[Format], **given: object) -> dict[str, Any]:
    """Return the keywords that were given; raise for one that the format does not have."""
    options = {name: value for name, value in given.items() if value is not None}
    for name in options:
        if name not in form.options:
            able = " and ".join(other.title for other in formats if name in other.options)
            raise InputError(f"argument `{name}` is for {able}, but this is {form.title}", remedy="leave it out")
    return options


def read_detections_of_part(path: Paths, truth: GroundTruth, part: GroundTruth, *, repair: bool = False) -> Detections:
    """Read detections in a part of the truth's images, from a file that may be of the whole or of the part."""
    if part is truth:
        return read_detections(path, truth, repair=repair)
    source = Source(path)
    form = format_of_detections(source)
    if form.read_part is None:
        draft = form.read(source, truth.dataset, Problems())
    else:
        draft = form.read_part(source, truth.dataset, part.dataset, Problems())
    found = draft.to_table(repair=repair)
    return found.select(np.isin(found.image_ids, part.image_ids))


def load_truth(path: Paths, problems: Problems) -> GroundTruth:
    """Return the table of a file or folder of ground truth; problems go where they are told."""
    source = Source(path)
    return format_of_truth(source).read(source, problems)


def load_detections(path: Paths, dataset: Dataset, problems: Problems) -> Draft:
    """Return the draft of a file or folder of detections; problems go where they are told."""
    source = Source(path)
    return format_of_detections(source).read(source, dataset, problems)
