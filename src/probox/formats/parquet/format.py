"""Parquet's two formats: detections and ground truth."""

from __future__ import annotations

from probox.files.reading import Paths
from probox.files.source import Source
from probox.formats.draft import Draft
from probox.formats.format import Copied, DetectionFormat, Notes, TruthFormat
from probox.formats.parquet.reading import parquet_draft, read_parquet, read_parquet_truth
from probox.formats.parquet.sets import is_parquet_source, open_detections
from probox.formats.parquet.writing import DETECTIONS_FILE, TRUTH_FILE, write_parquet
from probox.formats.problems import Problems
from probox.tables.dataset import Dataset
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

__all__ = ["PARQUET_DETECTIONS", "PARQUET_TRUTH"]


def _sniff(source: Source) -> bool:
    return is_parquet_source(source.path)


def _read_truth(source: Source, problems: Problems) -> GroundTruth:
    return read_parquet_truth(source.path)


def _write_truth(path: Paths, truth: GroundTruth) -> Notes:
    write_parquet(path, truth)
    return ()


def _read_detections(source: Source, dataset: Dataset, problems: Problems) -> Draft:
    return parquet_draft(source.path, dataset, problems)


def _write_detections(path: Paths, found: Detections, dataset: Dataset) -> Notes:
    write_parquet(path, found)
    return ()


def _check(source: Source) -> None:
    open_detections(source.path)


def _copy(source: Source, target: Paths, repair: bool) -> Copied:
    found = read_parquet(source.path, repair=repair)
    write_parquet(target, found)
    return len(found), found.notes


PARQUET_DETECTIONS = DetectionFormat(
    name="parquet",
    title="Parquet",
    suffixes=(".parquet",),
    sniff=_sniff,
    read=_read_detections,
    write=_write_detections,
    check=_check,
    copy=_copy,
    kind=DETECTIONS_FILE,
    urls=True,
)

PARQUET_TRUTH = TruthFormat(
    name="parquet",
    title="Parquet",
    suffixes=(".parquet",),
    sniff=_sniff,
    read=_read_truth,
    write=_write_truth,
    kind=TRUTH_FILE,
    urls=True,
)
