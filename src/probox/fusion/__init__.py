"""Fusion of samples, candidates or edge distributions into probabilistic detections.

>>> from probox.fusion import fuse_samples
>>> passes = [[[10, 10, 50, 50]], [[12, 10, 52, 50]]]
>>> fuse_samples(passes, [[[0.9, 0.1]], [[0.7, 0.1]]], classes=["cup", "dog"], image_id=7)
Detections(1 detection in 1 image, 2 classes, 1 probabilistic)
"""

from probox.fusion.fuse import from_edge_distributions, fuse_candidates, fuse_detections, fuse_samples
from probox.fusion.gaussian import Spread, convert_boxes, keep_inside
from probox.tables.geometry import corner_covariances
from probox.tables.labels import limit_to_distribution

__all__ = [
    "Spread",
    "convert_boxes",
    "corner_covariances",
    "from_edge_distributions",
    "fuse_candidates",
    "fuse_detections",
    "fuse_samples",
    "keep_inside",
    "limit_to_distribution",
]
