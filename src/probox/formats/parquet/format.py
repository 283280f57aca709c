"""Parquet's two formats: detections and ground truth."""

from __future__ import annotations

import dataclasses
from functools import partial

from probox.files.reading import Paths
from probox.files.source import Source
from probox.formats.draft import Draft
from probox.formats.format import Copied, DetectionFormat, Notes, TruthFormat
from probox.formats.parquet.output import write_parquet
from probox.formats.parquet.reading import parquet_draft, read_parquet, read_parquet_truth
from probox.formats.parquet.sets import is_parquet_source, open_detections
from probox.formats.parquet.writing import DETECTIONS_FILE, TRUTH_FILE
from probox.formats.problems import Problems
from probox.tables.dataset import Dataset
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

__all__ = ["PARQUET_DETECTIONS", "PARQUET_TRUTH", "in_shards"]


def _sniff(source: Source) -> bool:
    return is_parquet_source(source.path)


def _read_truth(source: Source, problems: Problems) -> GroundTruth:
    return read_parquet_truth(source.path)


def _write_truth(path: Paths, truth: GroundTruth) -> Notes:
    return write_parquet(path, truth)


def _read_detections(source: Source, dataset: Dataset, problems: Problems) -> Draft:
    return parquet_draft(source.path, dataset, problems)


def _write_detections(path: Paths, found: Detections, dataset: Dataset) -> Notes:
    return write_parquet(path, found)


def _check(source: Source) -> None:
    open_detections(source.path)


def _copy(source: Source, target: Paths, repair: bool, shards: int | None = None) -> Copied:
    found = read_parquet(source.path, repair=repair)
    return len(found), found.notes + write_parquet(target, found, shards=shards)


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


def in_shards(shards: int | None) -> tuple[DetectionFormat, TruthFormat]:
    """Return the formats of detections and of ground truth that write sets of so many files; None: single files."""
    if shards is None:
        return PARQUET_DETECTIONS, PARQUET_TRUTH
    return (
        dataclasses.replace(
            PARQUET_DETECTIONS,
            write=lambda path, found, dataset: write_parquet(path, found, shards=shards),
            copy=partial(_copy, shards=shards),
        ),
        dataclasses.replace(PARQUET_TRUTH, write=lambda path, truth: write_parquet(path, truth, shards=shards)),
    )
