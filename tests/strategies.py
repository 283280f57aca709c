"""Small random worlds for Hypothesis: images with odd masks, and detections of every kind."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from probox import Detections, GroundTruth, Masks

CLASSES = ("person", "cup", "dog")


def random_mask(rng: np.random.Generator, height: int, width: int) -> np.ndarray:
    """Return a mask of one of several shapes, never empty."""
    mask = np.zeros((height, width), bool)
    x0, y0 = int(rng.integers(0, width)), int(rng.integers(0, height))
    x1, y1 = int(rng.integers(x0, width)) + 1, int(rng.integers(y0, height)) + 1
    shape = rng.integers(0, 4)
    if shape == 0:
        mask[y0:y1, x0:x1] = True
    elif shape == 1:
        ys, xs = np.mgrid[0:height, 0:width]
        cx, cy = (x0 + x1) / 2, (y0 + y1) / 2
        mask = ((xs - cx) / max((x1 - x0) / 2, 0.6)) ** 2 + ((ys - cy) / max((y1 - y0) / 2, 0.6)) ** 2 <= 1
    else:
        mask[y0:y1, x0:x1] = rng.random((y1 - y0, x1 - x0)) < (0.8 if shape == 2 else 0.1)
    mask[y0, x0] = True
    return mask


def random_covariance(rng: np.random.Generator) -> np.ndarray:
    """Return a positive semi-definite 2 x 2 matrix: plain, diagonal, correlated, singular, tiny or huge."""
    kind = rng.integers(0, 8)
    if kind == 0:
        return np.zeros((2, 2))
    sx, sy = np.exp(rng.uniform(np.log(0.02), np.log(60.0), 2))
    rho = {1: 0.0, 2: 1.0, 3: -1.0}.get(int(kind), float(np.tanh(rng.normal() * 1.5)))
    if kind == 4:
        return np.diag([0.0, sy * sy])
    if kind == 5:
        sx, sy = rng.uniform(0.5, 8.0, 2)
    return np.array([[sx * sx, rho * sx * sy], [rho * sx * sy, sy * sy]])


def random_world(seed: int, *, heatmaps: bool = True, max_images: int = 4) -> tuple[GroundTruth, Detections]:
    """Return truth and detections; some images have neither, some boxes lie outside."""
    rng = np.random.default_rng(seed)
    ids = sorted(rng.choice(1000, size=int(rng.integers(1, max_images + 1)), replace=False).tolist())
    shapes = {image_id: (int(rng.integers(1, 50)), int(rng.integers(1, 60))) for image_id in ids}
    masks = []
    image_ids, boxes, covariances, probs, maps = [], [], [], [], []
    for image_id, (height, width) in shapes.items():
        objects = [random_mask(rng, height, width) for _ in range(int(rng.integers(0, 4)))]
        masks.append((image_id, objects, rng.integers(0, len(CLASSES), len(objects)).tolist()))
        for _ in range(int(rng.integers(0, 6))):
            x = np.sort(rng.uniform(-0.3 * width - 2, 1.3 * width + 2, 2))
            y = np.sort(rng.uniform(-0.3 * height - 2, 1.3 * height + 2, 2))
            if objects and rng.random() < 0.7:
                ys, xs = np.nonzero(objects[int(rng.integers(len(objects)))])
                x = np.sort(np.array([xs.min(), xs.max()]) + rng.normal(0, 1.5, 2))
                y = np.sort(np.array([ys.min(), ys.max()]) + rng.normal(0, 1.5, 2))
            if rng.random() < 0.2:
                x, y = np.round(x), np.round(y)
            image_ids.append(image_id)
            boxes.append([x[0], y[0], x[1], y[1]])
            covariances.append(np.stack([random_covariance(rng), random_covariance(rng)]))
            probs.append(rng.dirichlet(np.full(len(CLASSES), 0.5)))
            maps.append(rng.random((height, width)).astype(np.float32) if heatmaps and rng.random() < 0.15 else None)
    truth = GroundTruth.from_masks(CLASSES, masks, shapes=shapes)
    n = len(image_ids)
    found = Detections(
        classes=CLASSES,
        image_ids=np.array(image_ids, np.int64),
        boxes=np.array(boxes).reshape(n, 4),
        covariances=np.array(covariances).reshape(n, 2, 2, 2),
        label_probs=np.array(probs, np.float32).reshape(n, len(CLASSES)),
        heatmaps=tuple(maps) if any(m is not None for m in maps) else None,
    )
    return truth, found


def with_box_masks(truth: GroundTruth, found: Detections) -> Detections:
    """Return detections whose masks are the pixels of their boxes, without every third pixel of a row."""
    rows = truth.dataset.rows_of(found.image_ids)
    masks = []
    for (width, height), box in zip(truth.dataset.shapes[rows].tolist(), found.boxes, strict=True):
        x1, y1, x2, y2 = np.clip(box, 0, [width - 1, height - 1] * 2).astype(int)
        mask = np.zeros((height, width), bool)
        mask[y1 : y2 + 1, x1 : x2 + 1] = True
        mask[y1 + 1 : y2 : 3, x1 : x2 + 1 : 3] = False
        masks.append(mask)
    return found.replace(masks=Masks.from_arrays(masks))


worlds = st.integers(0, 2**32 - 1).map(random_world)
"""Truth and detections; the seed is what Hypothesis shrinks and what a failure report names."""


def with_masks(world: tuple[GroundTruth, Detections], seed: int, *, fraction: float = 0.5) -> Detections:
    """Return the detections of a world with masks, some of them empty, some those of objects with a few changes."""
    truth, found = world
    rng = np.random.default_rng([seed, 1])
    masks = []
    for image_id in found.image_ids.tolist():
        image = int(np.searchsorted(truth.image_ids, image_id))
        width, height = truth.dataset.shapes[image].tolist()
        objects = np.flatnonzero(truth.image_rows == image)
        mask = random_mask(rng, height, width)
        if len(objects) and rng.random() < 0.7:
            mask = truth.masks.to_array(int(rng.choice(objects)), height, width) ^ (rng.random((height, width)) < 0.02)
        masks.append(mask & (rng.random() < 0.9))
    has_mask = rng.random(len(found)) < fraction
    return found.replace(
        masks=Masks.from_arrays([mask & has for mask, has in zip(masks, has_mask, strict=True)]), has_mask=has_mask
    )
