"""Two synthetic detectors with equal boxes and labels; the second also predicts corner covariances."""

from __future__ import annotations

import dataclasses

import numpy as np

from probox.demo.synthetic_scene import DemoScene
from probox.support.types import Floats
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

_CONFUSED_WITH = {
    "star": "leaf",
    "ring": "pebble",
    "banana": "leaf",
    "pebble": "ring",
    "leaf": "banana",
    "bracket": "key",
    "key": "bracket",
}


def detect(truth: GroundTruth, visible: Floats, scenes: list[DemoScene], seed: int) -> dict[str, Detections]:
    """Return the detections of `deterministic` and `probabilistic`.

    Corner errors are Gaussian; their variance grows with shade and occlusion. `probabilistic` reports the covariances
    from which its errors were drawn.
    """
    random = np.random.default_rng(seed)
    rows: list[tuple[int, Floats, Floats, Floats]] = []  # image id, box, covariances, label probabilities
    for row in range(len(truth)):
        scene = scenes[int(truth.image_rows[row])]
        tight = truth.masks.boxes[row].astype(np.float64)
        trouble = _trouble(scene, tight, float(visible[row]))
        if random.uniform() < 0.45 * trouble**2:
            continue
        covariances = _covariances(tight, trouble, random)
        box, covariances = _observe(tight, covariances, scene, random)
        rows.append((scene.image_id, box, covariances, _labels(truth, row, trouble, random)))
        if random.uniform() < 0.04 + 0.1 * trouble:  # a duplicate of another class
            duplicate, covariances = _observe(tight, 2.5 * covariances, scene, random)
            rows.append(
                (
                    scene.image_id,
                    duplicate,
                    covariances,
                    _labels(truth, row, 1.0, random, top=random.uniform(0.3, 0.75)),
                )
            )
    for scene in scenes:
        for _ in range(int(random.integers(0, 3))):  # false positives
            centre = random.uniform(0.15, 0.85, 2) * (scene.width, scene.height)
            reach = random.uniform(18, 60, 2)
            box = np.concatenate([centre - reach, centre + reach])
            box, covariances = _observe(box, _covariances(box, 0.9, random), scene, random)
            thing = int(random.integers(len(truth)))
            rows.append(
                (scene.image_id, box, covariances, _labels(truth, thing, 1.0, random, top=random.uniform(0.3, 0.7)))
            )

    deterministic = Detections(
        classes=truth.classes,
        image_ids=np.array([image_id for image_id, _, _, _ in rows]),
        boxes=np.round([box for _, box, _, _ in rows], 2),
        label_probs=np.round([labels for _, _, _, labels in rows], 4).astype(np.float32),
    )
    covariances = np.round([covariance for _, _, covariance, _ in rows], 3)
    return {
        "deterministic": deterministic,
        "probabilistic": dataclasses.replace(deterministic, covariances=covariances),
    }


def _trouble(scene: DemoScene, box: Floats, visible: float) -> float:
    """Return the difficulty of an object from shade and occlusion, 0 to 1."""
    shade = float(scene.shade((box[0] + box[2]) / 2, (box[1] + box[3]) / 2))
    return min(1.0, 0.08 + 0.5 * shade + 0.6 * (1.0 - min(visible, 1.0)))


def _covariances(box: Floats, trouble: float, random: np.random.Generator) -> Floats:
    """Return anisotropic covariances of both corners that grow with the size and difficulty of the object."""
    size = np.sqrt(max(box[2] - box[0], 8.0) * max(box[3] - box[1], 8.0))
    covariances = np.zeros((2, 2, 2))
    for corner in range(2):
        long = size * (0.012 + 0.095 * trouble) * random.uniform(0.7, 1.3)
        short = long * random.uniform(0.3, 0.9)
        turn = random.uniform(0, np.pi)
        axes = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        covariances[corner] = axes @ np.diag([long**2, short**2]) @ axes.T
    return covariances


def _observe(box: Floats, covariances: Floats, scene: DemoScene, random: np.random.Generator) -> tuple[Floats, Floats]:
    """Return the box with errors drawn from the covariances, and the covariances.

    Edges at the image border get a small error and variance.
    """
    seen, spread = np.empty(4), covariances.copy()
    last = np.array([scene.width, scene.height]) - 1.0
    for corner, edge in ((0, np.zeros(2)), (1, last)):
        error = random.multivariate_normal(np.zeros(2), spread[corner])
        cut = np.abs(box[2 * corner : 2 * corner + 2] - edge) < 1.0
        inwards = 1.0 if corner == 0 else -1.0
        seen[2 * corner : 2 * corner + 2] = np.where(
            cut, edge + 1.2 * inwards, box[2 * corner : 2 * corner + 2] + error
        )
        for axis in np.flatnonzero(cut):
            spread[corner, axis, :] = 0.0
            spread[corner, :, axis] = 0.0
            spread[corner, axis, axis] = 0.25
    # Clip to the image; keep at least 4 pixels between opposite edges.
    low, high = np.minimum(seen[:2], seen[2:] - 4.0), np.maximum(seen[2:], seen[:2] + 4.0)
    return np.concatenate([np.clip(low, 0.0, last), np.clip(high, 0.0, last)]), spread


def _labels(
    truth: GroundTruth, row: int, trouble: float, random: np.random.Generator, top: float | None = None
) -> Floats:
    """Return label probabilities: most on the true class, some on the class it is often confused with."""
    own = int(truth.labels[row])
    other = truth.classes.index(_CONFUSED_WITH[truth.classes[own]])
    top = top if top is not None else float(np.clip(random.normal(0.96 - 0.3 * trouble, 0.08), 0.4, 0.99))
    if random.uniform() < 0.05 + 0.1 * trouble:
        own, other = other, own
    rest = np.full(len(truth.classes), 0.3 / (len(truth.classes) - 2))
    rest[own], rest[other] = 0.0, 0.7
    probabilities = (1.0 - top) * rest
    probabilities[own] = top
    return np.asarray(probabilities)
