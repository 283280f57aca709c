"""From what the detector says of its cells to detections: peaks, and none twice. The same for every arm."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch

from probox.tables.detections import Detections
from probox_experiments.training.detector import CELLS, SmallDetector, as_seen
from probox_experiments.training.scenes import CLASSES, SIDE

__all__ = ["find", "with_sigma"]

TOGETHER = 100
"""So many images are looked at at once."""
LEAST_SCORE = 0.05
OVERLAP = 0.5
"""Of two detections of an image with more IoU than this, the one with the lower score goes."""

Floats = npt.NDArray[np.float64]


def find(detector: SmallDetector, pictures: npt.NDArray[np.uint8]) -> Detections:
    """Return the detections in pictures; the ids of images are 1, 2, ..."""
    detector.eval()
    parts: list[tuple[npt.NDArray[np.int64], Floats, Floats, Floats]] = []
    with torch.no_grad():
        for begin in range(0, len(pictures), TOGETHER):
            shown = as_seen(torch.from_numpy(pictures[begin : begin + TOGETHER]))
            said = detector(shown)
            scores = said.objectness.sigmoid()
            grid = scores.reshape(-1, 1, CELLS, CELLS)
            peak = (grid == torch.nn.functional.max_pool2d(grid, 3, 1, 1)).flatten() & (scores > LEAST_SCORE)
            rows = peak.nonzero()[:, 0]
            probs = scores[rows, None] * said.label_logits[rows].softmax(1)
            means, log_std = detector.refine(shown, rows // CELLS**2, said.boxes[rows])
            boxes, sigmas, label_probs = (values.double().numpy() for values in (means, log_std.exp(), probs))
            parts.append((begin + rows.numpy() // CELLS**2, boxes, sigmas, label_probs))
    detector.train()
    image, boxes, sigmas, probs = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    boxes = np.concatenate([np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])], axis=1)
    boxes = boxes.clip(0.0, SIDE - 1.0)
    kept = _best(image, boxes, probs.max(axis=1))
    return Detections(
        classes=CLASSES,
        image_ids=image[kept] + 1,
        boxes=boxes[kept],
        label_probs=probs[kept],
        covariances=_covariances(sigmas[kept]),
    )


def with_sigma(found: Detections, sigma: float | None) -> Detections:
    """Return the same boxes with one sigma for all edges; None makes them plain."""
    covariances = None if sigma is None else _covariances(np.full((len(found), 4), sigma))
    return found.replace(covariances=covariances)


def _covariances(sigmas: Floats) -> Floats:
    return (sigmas.reshape(-1, 2, 2) ** 2)[..., None] * np.eye(2)


def _best(image: npt.NDArray[np.int64], boxes: Floats, scores: Floats) -> npt.NDArray[np.int64]:
    """Return the rows that no better one of the same image overlaps much, in their order."""
    kept: list[int] = []
    of_image: dict[int, list[int]] = {}
    overlap: Callable[[int, int], float] = lambda a, b: _iou(boxes[a], boxes[b])  # noqa: E731
    for row in np.argsort(-scores, kind="stable").tolist():
        others = of_image.setdefault(int(image[row]), [])
        if all(overlap(row, other) <= OVERLAP for other in others):
            others.append(row)
            kept.append(row)
    return np.sort(np.array(kept, dtype=np.int64))


def _iou(first: Floats, second: Floats) -> float:
    low, high = np.maximum(first[:2], second[:2]), np.minimum(first[2:], second[2:])
    shared = float(np.prod(np.maximum(high - low, 0.0)))
    areas = float(np.prod(first[2:] - first[:2]) + np.prod(second[2:] - second[:2]))
    return shared / max(areas - shared, 1e-9)
