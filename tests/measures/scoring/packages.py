"""Twelve small images with what other packages say of them, as arrays and as tables."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from probox import Detections, GroundTruth
from probox.measures import registry
from probox.measures.boxes.box_definition import match_greedily, overlaps

FILE = Path(__file__).resolve().parents[2] / "golden" / "uncertainty" / "packages.json"
EDGES = ("x1", "y1", "x2", "y2")

Floats = npt.NDArray[np.float64]


@cache
def packages() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return content


def oracle(package: str) -> dict[str, Any]:
    """Return what the package with this name says, whatever its version."""
    (found,) = (numbers for name, numbers in packages()["oracles"].items() if name.startswith(package))
    return found


def pairs() -> tuple[Floats, Floats, Floats, npt.NDArray[np.int64]]:
    """Return residuals (K, 4), covariances (K, 2, 2, 2), label probabilities (K, C) and true classes of the pairs."""
    rows = packages()["pairs"]
    residuals = np.array([np.subtract(row["truth"], row["box"]) for row in rows])
    variances = np.array([row["variance"] for row in rows]).reshape(-1, 2, 2)
    probs = np.array([row["label_probs"] for row in rows])
    return residuals, variances[..., None] * np.eye(2), probs, np.array([row["truth_label"] for row in rows])


def extents(boxes: Any) -> Floats:
    """Return boxes as x, y, width, height."""
    corners = np.asarray(boxes, np.float64).reshape(-1, 4)
    return np.concatenate([corners[:, :2], corners[:, 2:] - corners[:, :2]], axis=1)


def shared(image: dict[str, Any]) -> Floats:
    """Return the overlaps of an image's detections (rows) and objects."""
    found, there = extents(image["boxes"]), extents(image["truth_boxes"])
    return overlaps(found, there, np.zeros(len(there), bool))


def matched(
    threshold: float, *, alone: bool = False
) -> tuple[Floats, npt.NDArray[np.int64], npt.NDArray[np.bool_], Floats]:
    """Return scores, named classes, hits and IoUs (0 without a hit) of all detections.

    COCO's greedy matching; `alone` lets every detection take the best object of its class, whoever has it already.
    """
    columns: list[tuple[float, int, bool, float]] = []
    for image in packages()["images"]:
        probs = np.asarray(image["label_probs"]).reshape(-1, 3)
        named, scores = probs.argmax(axis=1) if len(probs) else np.zeros(0, int), probs.max(axis=1, initial=0.0)
        labels, ious = np.array(image["truth_labels"], int), shared(image)
        for label in range(3):
            rows = np.flatnonzero(named == label)
            rows = rows[np.argsort(-scores[rows], kind="stable")]
            part = ious[np.ix_(rows, np.flatnonzero(labels == label))]
            if alone:
                best = part.max(axis=1, initial=0.0)
                hit = best > threshold
            else:
                none = np.zeros(part.shape[1], bool)
                match = match_greedily(part, threshold, none, none)
                hit = match >= 0
                best = np.array([part[row, column] if column >= 0 else 0.0 for row, column in enumerate(match)])
            columns += [(scores[r], label, bool(h), float(b * h)) for r, h, b in zip(rows, hit, best, strict=True)]
    scores, named, hits, overlap = zip(*columns, strict=True)
    return np.array(scores), np.array(named), np.array(hits, bool), np.array(overlap)


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
