from .class_hierarchy import expand_classes
from .coco import write_coco_results
from .parquet.format import write_parquet
from .registry import read_detections, read_truth
from .rvc1_detections import write_rvc1

__all__ = ["expand_classes", "read_detections", "read_truth", "write_coco_results", "write_parquet", "write_rvc1"]
