"""COCO's two formats."""

from __future__ import annotations

from probox.errors import InputError
from probox.files.reading import TRUTH_EXPANDS
from probox.files.source import Source
from probox.formats.coco.results import check_coco_results, coco_results_from_bytes
from probox.formats.coco.truth import coco_truth_from_bytes
from probox.formats.coco.writing import write_coco_results
from probox.formats.draft import Draft
from probox.formats.format import DetectionFormat, TruthFormat
from probox.formats.json_detections import JSON_DETECTIONS, copier
from probox.formats.problems import Problems
from probox.tables.dataset import Dataset
from probox.tables.groundtruth import GroundTruth

__all__ = ["COCO_RESULTS", "COCO_TRUTH"]


def _read_truth(source: Source, problems: Problems) -> GroundTruth:
    if source.first_character == "[":
        raise InputError(
            "expected COCO ground truth, but got a list",
            file=source.name,
            remedy="this looks like COCO results: name the ground truth first, then the detections",
        )
    return coco_truth_from_bytes(source.content(TRUTH_EXPANDS), source.name, problems)


def _read_results(source: Source, dataset: Dataset, problems: Problems) -> Draft:
    return coco_results_from_bytes(source.content(), source.name, dataset, problems)


COCO_TRUTH = TruthFormat(
    name="coco",
    title="COCO ground truth",
    sniff=lambda source: source.first_character in ("{", "["),  # a list is none, which its reader says
    read=_read_truth,
)

COCO_RESULTS = DetectionFormat(
    name="coco",
    title="COCO results",
    suffixes=(".coco.json", ".bbox.json"),
    gzip=True,
    sniff=lambda source: source.first_character == "[",
    read=_read_results,
    write=write_coco_results,
    check=lambda source: check_coco_results(source.content(), source.name),
    copy=copier(check_coco_results),
    kind=JSON_DETECTIONS,
)
