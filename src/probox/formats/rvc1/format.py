"""RVC1's two formats: detections in a file or a folder of sequences, and ground truth in a folder."""

from __future__ import annotations

from pathlib import Path

from probox.files.source import Source
from probox.formats.draft import Draft
from probox.formats.format import DetectionFormat, TruthFormat
from probox.formats.json_detections import JSON_DETECTIONS, copier
from probox.formats.problems import Problems
from probox.formats.rvc1.detections import check_rvc1, rvc1_from_bytes, rvc1_from_folder
from probox.formats.rvc1.images import ImageCountError
from probox.formats.rvc1.truth import rvc1_truth_from_folder
from probox.formats.rvc1.writing import write_rvc1
from probox.tables.dataset import Dataset
from probox.tables.groundtruth import GroundTruth

__all__ = ["RVC1_DETECTIONS", "RVC1_TRUTH"]


def _read_truth(source: Source, problems: Problems) -> GroundTruth:
    return rvc1_truth_from_folder(Path(source.path), problems)


def _read(source: Source, dataset: Dataset, problems: Problems) -> Draft:
    if source.is_folder:
        return rvc1_from_folder(Path(source.path), dataset, problems)
    return rvc1_from_bytes(source.content(), source.path, dataset, problems)


def _read_part(source: Source, whole: Dataset, part: Dataset, problems: Problems) -> Draft:
    """Read a file without names, which pairs lists with images by position, for each image of the whole or of the part.

    A folder of sequences may lack those that the part does not have.
    """
    first, second = (part, whole) if source.is_folder else (whole, part)
    try:
        return _read(source, first, problems)
    except ImageCountError:
        return _read(source, second, problems)


RVC1_DETECTIONS = DetectionFormat(
    name="rvc1",
    title="RVC1",
    suffixes=(".json", ".rvc1.json"),
    gzip=True,
    sniff=lambda source: source.is_folder or source.first_character == "{",
    last=True,
    read=_read,
    read_part=_read_part,
    write=write_rvc1,
    check=lambda source: check_rvc1(source.content(), source.name),
    copy=copier(check_rvc1),
    kind=JSON_DETECTIONS,
    heatmaps=True,
)

RVC1_TRUTH = TruthFormat(
    name="rvc1",
    title="challenge ground truth",
    sniff=lambda source: source.is_folder,
    last=True,
    read=_read_truth,
)
