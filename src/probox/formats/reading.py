"""Reading ground truth and detections, whatever their format: the content decides who reads a file."""

from __future__ import annotations

import numpy as np

from probox.files.reading import Paths
from probox.files.source import Source
from probox.formats.draft import Draft
from probox.formats.problems import Problems
from probox.formats.registry import format_of_detections, format_of_truth
from probox.tables.arguments import check_reading, expect_path
from probox.tables.dataset import Dataset
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

__all__ = ["load_detections", "load_truth", "read_detections", "read_detections_of_part", "read_truth"]


def read_truth(path: Paths) -> GroundTruth:
    """Read ground truth, whatever its format: COCO, Parquet, a challenge folder, YOLO, Pascal VOC, KITTI, Open Images.

    Parameters
    ----------
    path : path
        The file or folder; of Parquet also a URL. A part of a data set of YOLO or Pascal VOC is named behind a colon:
        ``data.yaml:test``, ``VOC2007:val``.

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
    return load_truth(path, Problems())


def read_detections(path: Paths, truth: GroundTruth | Dataset, *, repair: bool = False) -> Detections:
    """Read detections, whatever their format: COCO results, RVC1, Parquet, YOLO, Pascal VOC, KITTI or Open Images.

    Parameters
    ----------
    path : path
        A ``.json`` or ``.json.gz`` file with a list (COCO results) or an object (RVC1), a Parquet file, a CSV file of
        Open Images, or a folder: of sequences (RVC1), of text files (YOLO, Pascal VOC, KITTI) or of Parquet files.
    truth : GroundTruth or Dataset
        What the detector was run on: tells images, their order and the classes.
    repair : bool
        Replace covariances that are not symmetric or not positive semi-definite by the nearest that are.

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
    dataset = check_reading(path, truth, "read_detections")
    return load_detections(path, dataset, Problems()).to_table(repair=repair)


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
