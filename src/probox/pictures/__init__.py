"""Images with ground truth, detections and the uncertainty of corners."""

from probox.pictures.drawing import draw

__all__ = ["draw"]
