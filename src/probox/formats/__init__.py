"""Readers and writers of files: a package per format, all listed in `registry`; content decides who reads a file."""

from __future__ import annotations

from probox.formats.coco.results import read_coco_results
from probox.formats.coco.truth import read_coco
from probox.formats.coco.writing import write_coco_results
from probox.formats.parquet.detections import read_parquet
from probox.formats.parquet.truth import read_parquet_truth
from probox.formats.parquet.writing import write_parquet
from probox.formats.reading import read_detections, read_truth
from probox.formats.rvc1.detections import read_rvc1
from probox.formats.rvc1.truth import read_rvc1_truth
from probox.formats.rvc1.writing import write_rvc1

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
