"""Readers and writers of files, one module per format; the content decides which one reads a file."""

from __future__ import annotations

from probox.detections import Detections
from probox.errors import InputError
from probox.formats.coco import coco_truth_from_bytes, read_coco
from probox.formats.coco_results import coco_results_from_bytes, read_coco_results
from probox.formats.files import Paths, first_character, is_folder, read_bytes
from probox.formats.rvc1 import read_rvc1, rvc1_from_bytes
from probox.formats.rvc1_truth import read_rvc1_truth
from probox.groundtruth import GroundTruth

__all__ = [
    "read_coco",
    "read_coco_results",
    "read_detections",
    "read_rvc1",
    "read_rvc1_truth",
    "read_truth",
]


def read_truth(path: Paths) -> GroundTruth:
    """Read ground truth, whatever its format: a COCO file (``.json``, ``.json.gz``) or a challenge folder."""
    if is_folder(path):
        return read_rvc1_truth(path)
    data = read_bytes(path)
    if first_character(data) == "[":
        raise InputError(
            "expected COCO ground truth, but got a list",
            file=str(path),
            remedy="this looks like COCO results: name the ground truth first, then the detections",
        )
    return coco_truth_from_bytes(data, str(path))


def read_detections(path: Paths, truth: GroundTruth, *, repair: bool = False) -> Detections:
    """Read detections, whatever their format: COCO results, an RVC1 file, or a folder of RVC1 sequences.

    Parameters
    ----------
    path : path
        A ``.json`` or ``.json.gz`` file with a list (COCO results) or an object (RVC1), or a folder.
    truth : GroundTruth
        What the detector was run on: tells images, their order and the classes.
    repair : bool
        Replace covariances that are not symmetric or not positive semi-definite by the nearest that are.
    """
    if is_folder(path):
        return read_rvc1(path, truth, repair=repair)
    data = read_bytes(path)
    if first_character(data) == "[":
        return coco_results_from_bytes(data, str(path), truth, repair=repair)
    return rvc1_from_bytes(data, path, truth, repair=repair)
