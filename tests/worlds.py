"""Truth of many boxes and detectors that err exactly as told."""

from __future__ import annotations

import numpy as np

from probox import Detections, GroundTruth
from probox_experiments.synthetic import SimulatedDetector

__all__ = ["CLASSES", "boxes_truth", "simulated"]

CLASSES = ("cup", "dog")


def boxes_truth(images: int = 60, seed: int = 0, per_image: int = 6) -> GroundTruth:
    """Return images of 440 x 340 with boxes of many sizes in cells of their own, none at the border."""
    rng = np.random.default_rng(seed)
    boxes, image_ids, labels = [], [], []
    for image in range(images):
        for cell in range(per_image):
            corner = np.array([130 * (cell % 3), 145 * (cell // 3)])
            low = corner + rng.integers(25, 45, 2)
            boxes.append(np.concatenate([low, low + rng.integers(60, 95, 2)]))
            image_ids.append(100 + 7 * image)
            labels.append(int(rng.integers(0, len(CLASSES))))
    sizes = {100 + 7 * image: (440, 340) for image in range(images)}
    return GroundTruth.from_boxes(CLASSES, sizes, image_ids, np.array(boxes), labels)


def simulated(
    truth: GroundTruth, seed: int = 1, *, sigma: float = 4.0, reported: float = 2.0, **more: float
) -> Detections:
    """Return detections whose corners err by `sigma` pixels and that report another."""
    detector = SimulatedDetector(corner_variance=sigma**2, reported_variance=reported**2, label_probability=0.9, **more)
    return detector.detect(truth, seed=seed)
