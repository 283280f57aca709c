"""The golden image, and small generated ones, as the kernel and the definition take them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np

from probox import _core
from probox.measures.pmb_definition import (
    ASSIGNMENTS,
    CLUTTER,
    MIN_DETERMINANT,
    MIN_PROBABILITY,
    ImageNLL,
    SetDensity,
    pmb_nll_of_image,
)
from probox.measures.pmb_nll import NUMBERS
from probox.tables.label_probs import LabelProbs


@dataclasses.dataclass
class Image:
    """One image: what was found, what is there, and the floor of the clutter."""

    boxes: np.ndarray
    covariances: np.ndarray
    label_probs: np.ndarray
    object_boxes: np.ndarray
    object_labels: np.ndarray
    log_floor: float = -np.inf

    def defined(self, assignments: int = ASSIGNMENTS) -> ImageNLL:
        density = SetDensity.of_detections(self.boxes, self.covariances, self.label_probs)
        return pmb_nll_of_image(
            density, self.object_boxes, self.object_labels, log_floor=self.log_floor, assignments=assignments
        )


def by_kernel(images: list[Image], assignments: int = ASSIGNMENTS, threads: int = 1) -> list[dict[str, float]]:
    """Return the kernel's numbers of each image."""
    probs = np.concatenate([image.label_probs for image in images])
    numbers = _core.pmb_nll(
        offsets=np.cumsum([0, *(len(image.boxes) for image in images)]),
        boxes=np.concatenate([image.boxes for image in images]),
        covariances=np.concatenate([image.covariances for image in images]),
        label_probs=probs if probs.dtype == np.float64 else LabelProbs(probs).table,
        object_offsets=np.cumsum([0, *(len(image.object_boxes) for image in images)]),
        object_boxes=np.concatenate([image.object_boxes for image in images]),
        object_labels=np.concatenate([image.object_labels for image in images]),
        log_floors=np.array([image.log_floor for image in images]),
        clutter=CLUTTER,
        min_probability=MIN_PROBABILITY,
        min_determinant=MIN_DETERMINANT,
        assignments=assignments,
        threads=threads,
    )
    return [dict(zip(NUMBERS, row, strict=True)) for row in numbers.tolist()]


def corners(matrices: Any) -> np.ndarray:
    """Return the two 2 x 2 blocks of 4 x 4 covariances."""
    full = np.array(matrices)
    assert not full[:, :2, 2:].any()
    return np.stack([full[:, :2, :2], full[:, 2:, 2:]], axis=1)


def golden_numbers(golden_dir: Path) -> dict[str, Any]:
    numbers: dict[str, Any] = json.loads((golden_dir / "uncertainty" / "pmb_nll.json").read_text())
    return numbers


def golden_image(golden: dict[str, Any], clutter: bool = True) -> Image:
    """Return the golden image as detections: its clutter is a detection of 0.06, with classes 5 : 2."""
    given, others = golden["input"], golden["input"]["clutter"]
    shares = np.array(others["class_probs"])
    # max p * p / sum p = weight * share where p = share * weight / max share.
    weights = np.array(others["weight"])[:, None] / shares.max(axis=1, keepdims=True)
    kept = slice(None) if clutter else slice(len(given["boxes"]))
    return Image(
        boxes=np.array(given["boxes"] + others["box"])[kept],
        covariances=np.concatenate([corners(given["covariances_4x4"]), corners(others["covariance"])])[kept],
        label_probs=np.concatenate([np.array(given["label_probs_with_background"])[:, :-1], shares * weights])[kept],
        object_boxes=np.array(given["truth_boxes"]),
        object_labels=np.array(given["truth_classes"], np.int32),
    )


def random_image(seed: int, *, single: bool = False, size: int = 4) -> Image:
    """Return an image of up to `size` objects: sure and unsure detections, some plain, some singular, some clutter."""
    rng = np.random.default_rng(seed)
    n, m, classes = int(rng.integers(0, size + 2)), int(rng.integers(0, size)), int(rng.integers(1, 4))
    object_boxes = rng.uniform(0, 60, (m, 4))
    object_boxes[:, 2:] += object_boxes[:, :2]
    boxes = rng.uniform(0, 60, (n, 4))
    boxes[:, 2:] += boxes[:, :2]
    near = rng.random(n) < 0.7
    if m:
        boxes[near] = object_boxes[rng.integers(0, m, near.sum())] + rng.normal(0, 3, (near.sum(), 4))
    deviations = np.exp(rng.uniform(-1, 3, (n, 2, 2)))
    rho = rng.choice([0.0, 0.5, -0.9, 1.0], (n, 2), p=[0.4, 0.3, 0.25, 0.05])
    covariances = deviations[..., :, None] * deviations[..., None, :]
    covariances[..., 0, 1] *= rho
    covariances[..., 1, 0] *= rho
    covariances[rng.random(n) < 0.1] = 0.0
    probs = rng.dirichlet(np.full(classes + 1, 0.4), n)[:, :classes] * np.where(rng.random(n) < 0.4, 0.1, 1.0)[:, None]
    probs[rng.random(n) < 0.05] = 0.0
    return Image(
        boxes=boxes,
        covariances=covariances,
        label_probs=probs.astype(np.float32 if single else np.float64),
        object_boxes=object_boxes,
        object_labels=rng.integers(0, classes, m).astype(np.int32),
        log_floor=float(rng.choice([-np.inf, -40.0, -15.0])),
    )
