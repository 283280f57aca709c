"""The public readers for one format each, so that tests say which one they are about."""

from __future__ import annotations

from functools import partial

from probox.formats import read_detections, read_truth

read_coco = partial(read_truth, format="coco")
read_coco_results = partial(read_detections, format="coco")
read_kitti = partial(read_detections, format="kitti")
read_parquet = partial(read_detections, format="parquet")
read_parquet_truth = partial(read_truth, format="parquet")
read_rvc1 = partial(read_detections, format="rvc1")
read_rvc1_truth = partial(read_truth, format="rvc1")
read_yolo = partial(read_detections, format="yolo")
read_yolo_truth = partial(read_truth, format="yolo")
