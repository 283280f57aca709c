"""Images, objects and detections to cut into parts."""

from __future__ import annotations

import numpy as np

from probox import Detections, GroundTruth

CLASSES = ("cup", "dog", "sky")


def many_images(seed: int = 0, images: int = 70, *, single: bool = False) -> tuple[GroundTruth, Detections]:
    """Return boxes of all of COCO's sizes in images of which some have no objects, some no detections.

    Detections have full covariances, scores that tie, and stray images; with `single` their scores are float32 numbers.
    """
    rng = np.random.default_rng(seed)
    ids = np.sort(rng.choice(10_000, images, replace=False))
    there = rng.integers(0, 5, images)
    size = np.exp(rng.uniform(np.log(6.0), np.log(160.0), (there.sum(), 2)))
    low = np.floor(rng.random((there.sum(), 2)) * (np.array([320.0, 240.0]) - size))
    boxes = np.concatenate([low, np.floor(low + size)], axis=1)
    labels = rng.integers(0, len(CLASSES), there.sum())
    truth = GroundTruth.from_boxes(
        CLASSES,
        {int(i): (320, 240) for i in ids},
        np.repeat(ids, there),
        boxes,
        labels,
    ).replace(areas=rng.uniform(100, 15_000, there.sum()), crowd=rng.random(there.sum()) < 0.05)
    object_ids = np.repeat(ids, there)
    chosen = rng.integers(0, len(boxes), 6 * len(boxes))
    jitter = rng.normal(0, 4.0, (len(chosen), 4))
    found = np.sort((boxes[chosen] + jitter).reshape(-1, 2, 2), axis=1).reshape(-1, 4)
    spread = rng.normal(0, 2.0, (len(chosen), 2, 2, 2))
    probs = rng.dirichlet(np.full(len(CLASSES), 0.4), len(chosen)).astype(np.float32)
    right = rng.random(len(chosen)) < 0.6
    probs[right] = 0.05
    probs[right, labels[chosen[right]]] = np.round(rng.random(right.sum()) * 0.9, 1)
    scores = None if single else np.round(rng.random(len(chosen)), 3)
    elsewhere = rng.random(len(chosen)) < 0.02
    return truth, Detections(
        classes=CLASSES,
        image_ids=np.where(elsewhere, 20_000, object_ids[chosen]),
        boxes=found,
        covariances=np.einsum("ncij,nckj->ncik", spread, spread),
        label_probs=probs,
        scores=scores,
        source="found.json",
        notes=("of a detector",),
    )
