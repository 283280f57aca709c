"""Readers and writers of files, one module per format; the content decides which one reads a file."""

from __future__ import annotations

from pathlib import Path

from probox.errors import InputError
from probox.files.reading import TRUTH_EXPANDS, Paths, first_character, is_folder, read_bytes
from probox.formats.coco.results import coco_results_from_bytes, read_coco_results
from probox.formats.coco.truth import coco_truth_from_bytes, read_coco
from probox.formats.draft import Draft
from probox.formats.parquet.columns import is_parquet
from probox.formats.parquet.detections import parquet_draft, read_parquet, read_parquet_truth, write_parquet
from probox.formats.problems import Problems
from probox.formats.rvc1.detections import read_rvc1, rvc1_from_bytes, rvc1_from_folder
from probox.formats.rvc1.truth import read_rvc1_truth, rvc1_truth_from_folder
from probox.formats.writers import write_coco_results, write_rvc1
from probox.tables.arguments import check_reading, expect_path
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

__all__ = [
    "read_coco",
    "read_coco_results",
    "read_detections",
    "read_parquet",
    "read_parquet_truth",
    "read_rvc1",
    "read_rvc1_truth",
    "read_truth",
    "write_coco_results",
    "write_parquet",
    "write_rvc1",
]


def read_truth(path: Paths) -> GroundTruth:
    """Read ground truth, whatever its format: a COCO file (``.json``, ``.json.gz``), Parquet, or a challenge folder.

    Examples
    --------
    >>> truth = read_truth("instances_val2017.json")  # doctest: +SKIP
    """
    expect_path(path)
    return load_truth(path, Problems())


def read_detections(path: Paths, truth: GroundTruth, *, repair: bool = False) -> Detections:
    """Read detections, whatever their format: COCO results, RVC1 (a file or a folder of sequences), Parquet.

    Parameters
    ----------
    path : path
        A ``.json`` or ``.json.gz`` file with a list (COCO results) or an object (RVC1), a Parquet file, or a folder.
    truth : GroundTruth
        What the detector was run on: tells images, their order and the classes.
    repair : bool
        Replace covariances that are not symmetric or not positive semi-definite by the nearest that are.
    """
    check_reading(path, truth, "read_detections")
    return load_detections(path, truth, Problems()).to_table(repair=repair)


def detection_format(path: Paths) -> str:
    """Return ``coco`` for a file with a list, ``rvc1`` for one with an object or for a folder, or ``parquet``."""
    if is_parquet(path):
        return "parquet"
    return "coco" if not is_folder(path) and first_character(read_bytes(path)) == "[" else "rvc1"


def load_truth(path: Paths, problems: Problems) -> GroundTruth:
    """Return the table of a file or folder of ground truth; problems go where they are told."""
    if is_folder(path):
        return rvc1_truth_from_folder(Path(path), problems)
    if is_parquet(path):
        return read_parquet_truth(path)
    data = read_bytes(path, expansion=TRUTH_EXPANDS)
    if first_character(data) == "[":
        raise InputError(
            "expected COCO ground truth, but got a list",
            file=str(path),
            remedy="this looks like COCO results: name the ground truth first, then the detections",
        )
    return coco_truth_from_bytes(data, str(path), problems)


def load_detections(path: Paths, truth: GroundTruth, problems: Problems) -> Draft:
    """Return the draft of a file or folder of detections; problems go where they are told."""
    if is_folder(path):
        return rvc1_from_folder(Path(path), truth, problems)
    if is_parquet(path):
        return parquet_draft(path, truth, problems)
    data = read_bytes(path)
    if first_character(data) == "[":
        return coco_results_from_bytes(data, str(path), truth, problems)
    return rvc1_from_bytes(data, path, truth, problems)
