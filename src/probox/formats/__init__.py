"""Readers and writers of files: a module or package per format, all listed in `registry`; content tells formats."""

from __future__ import annotations

from probox.formats.coco import write_coco_results
from probox.formats.parquet.format import write_parquet
from probox.formats.registry import read_detections, read_truth
from probox.formats.rvc1_detections import write_rvc1

__all__ = ["read_detections", "read_truth", "write_coco_results", "write_parquet", "write_rvc1"]
