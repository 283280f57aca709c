"""Measures of plain boxes on the same tables: COCO's average precision and LRP."""

from probox.boxes.average_precision import AveragePrecision, PrecisionRecallCurve, average_precision
from probox.boxes.lrp import LRP, LRPCurve, lrp, lrp_curve
from probox.boxes.matching import BoxMatches, match_boxes

__all__ = [
    "LRP",
    "AveragePrecision",
    "BoxMatches",
    "LRPCurve",
    "PrecisionRecallCurve",
    "average_precision",
    "lrp",
    "lrp_curve",
    "match_boxes",
]
