"""Readers and writers of files: a package per format, all listed in `registry`; content decides who reads a file."""

from __future__ import annotations

from probox.formats.coco.results import read_coco_results
from probox.formats.coco.truth import read_coco
from probox.formats.coco.writing import write_coco_results
from probox.formats.kitti.labels import read_kitti, read_kitti_truth
from probox.formats.openimages.detections import read_open_images
from probox.formats.openimages.truth import read_open_images_truth
from probox.formats.parquet.output import write_parquet
from probox.formats.parquet.reading import read_parquet, read_parquet_truth
from probox.formats.reading import read_detections, read_truth
from probox.formats.rvc1.detections import read_rvc1
from probox.formats.rvc1.truth import read_rvc1_truth
from probox.formats.rvc1.writing import write_rvc1
from probox.formats.voc.detections import read_voc
from probox.formats.voc.truth import read_voc_truth
from probox.formats.yolo.detections import read_yolo
from probox.formats.yolo.truth import read_yolo_truth

__all__ = [
    "read_coco",
    "read_coco_results",
    "read_detections",
    "read_kitti",
    "read_kitti_truth",
    "read_open_images",
    "read_open_images_truth",
    "read_parquet",
    "read_parquet_truth",
    "read_rvc1",
    "read_rvc1_truth",
    "read_truth",
    "read_voc",
    "read_voc_truth",
    "read_yolo",
    "read_yolo_truth",
    "write_coco_results",
    "write_parquet",
    "write_rvc1",
]
