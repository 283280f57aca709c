"""Measures of plain boxes on the same tables: COCO's average precision and LRP."""

from probox.measures.boxes.matching import BoxMatches, match_boxes
from probox.measures.boxes.mean_ap import AveragePrecision, PrecisionRecallCurve, average_precision
from probox.measures.boxes.optimal_lrp import LRP, LRPCurve, lrp, lrp_curve

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
