"""The golden images as truth and detections, and the measures that are asked of them."""

from __future__ import annotations

import numpy as np
from tests.measures.scoring.packages import packages

from probox import Detections, GroundTruth
from probox.measures import registry

NAMES = [
    *("nll", "energy", "crps", "nees", "coverage", "pit", "mqce", "ence", "sharpness", "brier", "ignorance"),
    *("d-ece", "laece", "laace", "oce", "qgc", "mue", "ause", "spearman"),
]
OURS = [measure for measure in registry.MEASURES if measure.name in NAMES]
CLASSES = ("a", "b", "c")


def world(**changes: object) -> tuple[GroundTruth, Detections]:
    """Return the golden images as truth and detections."""
    images = packages()["images"]
    sizes = {image["image_id"]: (image["width"], image["height"]) for image in images}
    there = [
        (i["image_id"], box, c) for i in images for box, c in zip(i["truth_boxes"], i["truth_labels"], strict=True)
    ]
    truth = GroundTruth.from_boxes(CLASSES, sizes, [t[0] for t in there], [t[1] for t in there], [t[2] for t in there])
    seen = [
        (i["image_id"], *row) for i in images for row in zip(i["boxes"], i["label_probs"], i["variances"], strict=True)
    ]
    columns = {
        "classes": CLASSES,
        "image_ids": [row[0] for row in seen],
        "boxes": [row[1] for row in seen],
        "label_probs": np.array([row[2] for row in seen], np.float32),
        "covariances": np.array([row[3] for row in seen]).reshape(-1, 2, 2)[..., None] * np.eye(2),
    }
    return truth, Detections(**(columns | changes))
