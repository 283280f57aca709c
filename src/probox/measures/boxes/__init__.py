"""Metrics of boxes without covariance, on the same tables: COCO's average precision and LRP."""

from probox.measures.boxes.matching import BoxMatches, match_boxes
from probox.measures.boxes.mean_ap import AveragePrecisionResult, PrecisionRecallCurve, average_precision
from probox.measures.boxes.optimal_lrp import LRPCurve, LRPResult, lrp, lrp_curve

__all__ = [
    "AveragePrecisionResult",
    "BoxMatches",
    "LRPCurve",
    "LRPResult",
    "PrecisionRecallCurve",
    "average_precision",
    "lrp",
    "lrp_curve",
    "match_boxes",
]
