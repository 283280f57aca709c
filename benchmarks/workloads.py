"""Workloads: tables of ground truth and detections, from COCO val2017 or real detectors."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from probox import Detections, GroundTruth, read_detections, read_truth
from probox.tables.masks import Masks

Tables = tuple[GroundTruth, Detections]


PER_IMAGE, OBJECTS = 100, 7
"""Detections and objects per image, similar to COCO."""


def simulated_truth(images: int, seed: int = 0, *, first: int = 1) -> GroundTruth:
    """Return images of 640 x 480, with ids from `first` on, with seven boxes of many sizes each, of ten classes."""
    rng = np.random.default_rng(seed)
    count = images * OBJECTS
    size = np.exp(rng.uniform(np.log(12.0), np.log(300.0), (count, 2)))
    low = rng.random((count, 2)) * (np.array([639.0, 479.0]) - size)
    boxes = np.floor(np.concatenate([low, low + size], axis=1))
    image_ids = np.repeat(np.arange(first, first + images), OBJECTS)
    sizes = dict.fromkeys(range(first, first + images), (640, 480))
    classes = [f"class {number}" for number in range(10)]
    return GroundTruth.from_boxes(classes, sizes, image_ids, boxes, rng.integers(0, len(classes), count))


def jittered(truth: GroundTruth, kind: str, per_image: int | None = None, seed: int = 0) -> Detections:
    """Return simulated detections of ground truth boxes.

    Parameters
    ----------
    truth : GroundTruth
        Objects; their boxes are jittered by the reported standard deviation, or by 2 px.
    kind : {"plain", "diagonal", "full"}
        Covariances: none, different per axis, correlated; std of corners from 1 to 15 px.
    per_image : int, optional
        Number of detections per image, of objects in turn (random boxes in images without objects).
        Default: one per object.
    """
    rng = np.random.default_rng(seed)
    if per_image is None:
        image, boxes, classes = truth.image_rows, truth.boxes, truth.labels
    else:
        image = np.repeat(np.arange(len(truth.image_ids)), per_image)
        offsets = truth.dataset.offsets(truth.image_rows)
        count = np.diff(offsets)[image]
        source = offsets[image] + np.tile(np.arange(per_image), len(truth.image_ids)) % np.maximum(count, 1)
        source = np.minimum(source, len(truth) - 1)
        boxes, classes = truth.boxes[source].copy(), truth.labels[source]
        size = truth.dataset.shapes[image].astype(float)
        ends = np.sort(rng.random((len(image), 2, 2)), axis=1) * size[:, None]
        boxes[count == 0] = ends.reshape(-1, 4)[count == 0]
    n = len(image)
    sigma = np.exp(rng.uniform(np.log(1.0), np.log(15.0), (n, 2, 2)))
    noise = rng.normal(size=(n, 2, 2)) * (sigma if kind != "plain" else 2.0)
    corners = np.sort((boxes.reshape(n, 2, 2) + noise), axis=1).reshape(n, 4)
    covariances = None
    if kind != "plain":
        covariances = np.zeros((n, 2, 2, 2))
        covariances[:, :, 0, 0], covariances[:, :, 1, 1] = sigma[..., 0] ** 2, sigma[..., 1] ** 2
        if kind == "full":
            covariances[:, :, 0, 1] = rng.uniform(-0.9, 0.9, (n, 2)) * sigma[..., 0] * sigma[..., 1]
            covariances[:, :, 1, 0] = covariances[:, :, 0, 1]
    score = rng.uniform(0.3, 1.0, n).astype(np.float32)
    probs = np.repeat(
        ((1.0 - score) / (len(truth.classes) - 1)).astype(np.float32)[:, None], len(truth.classes), axis=1
    )
    probs[np.arange(n), classes] = score
    return Detections(
        classes=truth.classes,
        image_ids=truth.image_ids[image],
        boxes=corners,
        covariances=covariances,
        label_probs=probs,
        labels=classes,
    )


def ellipses(boxes: np.ndarray, shapes: np.ndarray, seed: int) -> Masks:
    """Return masks of ellipses with wavy outlines in these boxes, within images of these widths and heights.

    Every third row of pixels has a gap, as in masks of photos.
    """
    rng = np.random.default_rng(seed)
    parts = [slice(begin, begin + 1000) for begin in range(0, len(boxes), 1000)]  # together they need more memory
    return Masks.concatenate([_ellipses(boxes[part], shapes[part], rng) for part in parts])


def _ellipses(boxes: np.ndarray, shapes: np.ndarray, rng: np.random.Generator) -> Masks:
    low = np.clip(np.floor(boxes[:, :2]), 0, shapes - 2).astype(np.int64)
    high = np.clip(np.ceil(boxes[:, 2:]), low + 2, shapes).astype(np.int64)
    heights = high[:, 1] - low[:, 1]
    owner = np.repeat(np.arange(len(boxes)), heights)
    row = np.arange(len(owner)) - np.repeat(np.cumsum(heights) - heights, heights)
    half = (high - low)[owner, 0] / 2
    waves = np.sin(row / rng.uniform(3, 9, len(boxes))[owner] + rng.uniform(0, 6, len(boxes))[owner])
    reach = half * np.sqrt(1 - ((2 * row + 1) / heights[owner] - 1) ** 2) * (0.9 + 0.1 * waves)
    first, last = low[owner, 0], high[owner, 0]
    begin = np.clip(np.floor(first + half - reach), first, last - 1).astype(np.int64)
    end = np.clip(np.ceil(first + half + reach), begin + 1, last).astype(np.int64)
    runs = np.stack([low[owner, 1] + row, begin, end], axis=1)
    split = np.flatnonzero((row % 3 == 0) & (end - begin >= 5))
    middle = (begin[split] + end[split]) // 2
    second = runs[split].copy()
    runs[split, 2], second[:, 1] = middle, middle + 1
    order = np.argsort(np.concatenate([np.arange(len(runs)), split + 0.5]), kind="stable")
    runs, owner = np.concatenate([runs, second])[order], np.concatenate([owner, owner[split]])[order]
    counts = np.bincount(owner, minlength=len(boxes))
    offsets = np.concatenate([[0], np.cumsum(counts)])
    tight = np.stack([np.minimum.reduceat(runs[:, 1], offsets[:-1]), low[:, 1],
                      np.maximum.reduceat(runs[:, 2], offsets[:-1]) - 1, high[:, 1] - 1], axis=1)  # fmt: skip
    pixels = np.add.reduceat(runs[:, 2] - runs[:, 1], offsets[:-1])
    return Masks(tight.astype(np.int32), pixels, offsets, runs.astype(np.int32))


def masked(truth: GroundTruth, seed: int = 0) -> Tables:
    """Return the ground truth with a mask per object, and one detection with a similar mask per object."""
    found = jittered(truth, "plain", seed=seed)
    shapes = truth.dataset.shapes[truth.image_rows]
    masks = ellipses(found.boxes, shapes, seed + 1)
    return truth.replace(masks=ellipses(truth.boxes, shapes, seed)), found.replace(masks=masks)


def _masked(data: Path) -> Tables:
    return masked(_val2017(data))


def _val2017(data: Path) -> GroundTruth:
    return read_truth(data / "coco" / "val2017_boxes.json")


def _part(tables: Tables, share: float) -> Tables:
    truth, found = tables
    ids = truth.image_ids[: int(len(truth.image_ids) * share)]
    return truth.select_images(ids), found.select(np.isin(found.image_ids, ids))


def _simulated(kind: str, per_image: int | None = None, share: float = 1.0) -> Callable[[Path], Tables]:
    def make(data: Path) -> Tables:
        truth = _val2017(data)
        return _part((truth, jittered(truth, kind, per_image)), share)

    return make


def _golden(name: str) -> Callable[[Path], Tables]:
    def make(data: Path) -> Tables:
        truth = read_truth(data / "golden" / name / "ground_truth.json")
        return truth, read_detections(data / "golden" / name / "detections.json", truth)

    return make


def _real(results: str, masks: bool, score: float = 0.0) -> Callable[[Path], Tables]:
    def make(data: Path) -> Tables:
        coco = data / "coco"
        if masks:
            truth = read_truth(coco / "val2017_masks_206.json")
        else:
            truth = _val2017(data).select_images(json.loads((coco / "subset_2881_image_ids.json").read_text()))
        found = read_detections(coco / "results" / results, truth)
        return truth, found.select(found.scores >= score) if score else found

    return make


WORKLOADS: dict[str, tuple[str, Callable[[Path], Tables]]] = {
    "speed_full": ("golden speed_full, 446 correlated boxes", _golden("speed_full")),
    "speed_bbox": ("golden speed_bbox, 422 boxes without covariance", _golden("speed_bbox")),
    "A": ("val2017, one box without covariance per object", _simulated("plain")),
    "B": ("val2017, one box with diagonal covariances per object", _simulated("diagonal")),
    "C": ("val2017, one box with full covariances per object", _simulated("full")),
    "D-ssdlite-206": ("SSDLite on 206 photos with masks", _real("ssdlite_mbv2_2881.json.gz", True, 0.05)),
    "D-nanodet-206": ("NanoDet, own variances, 206 photos", _real("nanodet_m_416_206.rvc1.json.gz", True)),
    "D-ssdlite-2881": ("SSDLite on 2,881 images", _real("ssdlite_mbv2_2881.json.gz", False, 0.05)),
    "D-nanodet-2881": ("NanoDet, own variances, 2,881 images", _real("nanodet_m_416_2881.rvc1.json.gz", False)),
    "E": ("val2017, 100 boxes with full covariances per image", _simulated("full", 100)),
    "M": ("val2017, one mask per object", _masked),
    "F-1/8": ("an eighth of E", _simulated("full", 100, 1 / 8)),
    "F-1/4": ("a quarter of E", _simulated("full", 100, 1 / 4)),
    "F-1/2": ("half of E", _simulated("full", 100, 1 / 2)),
}
"""Name, description, and function that creates the workload from the data folder."""


@dataclasses.dataclass(frozen=True)
class Regime:
    """Size of generated COCO files: numbers of images and classes, and of objects and detections per image.

    `sides` are the smallest and largest width and height of objects, as fractions of the image's.
    """

    images: int
    classes: int
    objects: int
    detections: int
    size: tuple[int, int] = (640, 480)
    sides: tuple[float, float] = (0.02, 0.6)


REGIMES = {
    "coco": Regime(images=3_000, classes=80, objects=7, detections=100),
    "objects365": Regime(images=3_000, classes=365, objects=15, detections=100),
    "lvis": Regime(images=2_000, classes=1_203, objects=12, detections=150),
    "openimages": Regime(images=4_000, classes=10_000, objects=8, detections=25),
    "crowded": Regime(images=600, classes=80, objects=60, detections=500),
    "8k": Regime(images=300, classes=80, objects=60, detections=300, size=(7680, 4320), sides=(0.004, 0.1)),
}
"""Stress regimes by name: many classes, many detections per image, large images."""


def write_regime(regime: Regime, truth_file: Path, detections_file: Path, seed: int = 0) -> None:
    """Write generated ground truth and detections as COCO files.

    Class frequencies have a long tail, and an image has objects of a few classes. Half of the detections are boxes of
    objects with noise, mostly of their class and with higher scores; the others are random. They are listed by score
    within an image, as detectors write them.
    """
    rng = np.random.default_rng(seed)
    scale = np.array(regime.size)
    frequency = 1.0 / (np.arange(regime.classes) + 10.0)
    pools = rng.choice(regime.classes, (regime.images, 5), p=frequency / frequency.sum())

    def random_boxes(count: int) -> np.ndarray:
        size = np.exp(rng.uniform(*np.log(regime.sides), (count, 2))) * scale
        return np.concatenate([rng.random((count, 2)) * (scale - size), size], axis=1)

    image = np.repeat(np.arange(regime.images), rng.negative_binomial(2, 2 / (2 + regime.objects), regime.images))
    boxes, labels = random_boxes(len(image)), pools[image, rng.integers(0, 5, len(image))]
    start, count = np.searchsorted(image, np.arange(regime.images)), np.bincount(image, minlength=regime.images)

    found_image = np.repeat(np.arange(regime.images), regime.detections)
    n = len(found_image)
    found_boxes, found_labels = random_boxes(n), pools[found_image, rng.integers(0, 5, n)]
    scores = rng.beta(0.6, 8.0, n)
    near = np.flatnonzero((rng.random(n) < 0.5) & (count[found_image] > 0))
    source = start[found_image[near]] + rng.integers(0, count[found_image[near]])
    noise = rng.exponential(0.08, (len(near), 1))
    found_boxes[near] = boxes[source] + rng.normal(size=(len(near), 4)) * noise * np.tile(boxes[source, 2:], 2)
    found_boxes[:, 2:] = np.maximum(found_boxes[:, 2:], 1.0)
    found_labels[near] = np.where(rng.random(len(near)) < 0.85, labels[source], found_labels[near])
    scores[near] = rng.beta(2.0, 2.0, len(near)) * np.exp(-4.0 * noise[:, 0])
    order = np.lexsort([-scores, found_image])

    def rows(image: np.ndarray, labels: np.ndarray, boxes: np.ndarray) -> list[dict[str, Any]]:
        columns = (image + 1).tolist(), (labels + 1).tolist(), boxes.round(2).tolist()
        return [{"image_id": i, "category_id": c, "bbox": box} for i, c, box in zip(*columns, strict=True)]

    annotations = rows(image, labels, boxes)
    crowd = (rng.random(len(annotations)) < 0.01).astype(int).tolist()
    for number, row in enumerate(annotations):
        area = round(0.7 * row["bbox"][2] * row["bbox"][3], 2)
        row |= {"id": number + 1, "area": area, "iscrowd": crowd[number]}
    names = [{"id": number + 1, "name": f"class {number + 1}"} for number in range(regime.classes)]
    width, height = regime.size
    images = [
        {"id": number + 1, "width": width, "height": height, "file_name": f"{number + 1:012}.jpg"}
        for number in range(regime.images)
    ]
    truth_file.write_text(json.dumps({"images": images, "annotations": annotations, "categories": names}))
    results = rows(found_image[order], found_labels[order], found_boxes[order])
    for row, score in zip(results, scores[order].round(5).tolist(), strict=True):
        row["score"] = score
    detections_file.write_text(json.dumps(results))
