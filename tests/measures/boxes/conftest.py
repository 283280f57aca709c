"""The field's own tool as an oracle, on the same tables, and a small truth to measure by hand."""

from __future__ import annotations

import contextlib
import dataclasses
import io
from collections.abc import Callable

import numpy as np
import pytest
from pycocotools import mask as coco_mask
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from probox import Detections, GroundTruth, Masks
from probox.measures.boxes.matching import COCO_RULES, SIZES, BoxRules, Geometry

CLASSES = ("cup", "dog", "tv")


def truth_of(boxes, labels=None, images=None, classes=CLASSES, **columns):
    """Return the truth of two images: all boxes are cups in the first unless others are named."""
    sizes = dict.fromkeys((1, 2), (900, 900))
    truth = GroundTruth.from_boxes(classes, sizes, images or [1] * len(boxes), boxes, labels or [0] * len(boxes))
    return dataclasses.replace(truth, **columns)


def found_of(boxes, scores=None, labels=None, images=None, classes=CLASSES):
    return Detections(
        classes=classes,
        image_ids=images or [1] * len(boxes),
        boxes=np.asarray(boxes, float).reshape(-1, 4),
        label_probs=np.zeros((len(boxes), len(classes))),
        labels=labels or [0] * len(boxes),
        scores=[0.5] * len(boxes) if scores is None else scores,
    )


def coco_runs(masks: Masks, row: int, shape: np.ndarray) -> dict:
    """Return a mask as run lengths of pycocotools."""
    return coco_mask.encode(np.asfortranarray(masks.to_array(row, int(shape[1]), int(shape[0])), dtype=np.uint8))


def coco_evaluation(
    truth: GroundTruth, found: Detections, rules: BoxRules = COCO_RULES, geometry: Geometry = "box"
) -> COCOeval:
    """Run pycocotools on the tables; classes of the two must be the same. Its summary is for COCO's rules only."""
    assert truth.classes == found.classes
    annotations = [
        {
            "id": row + 1,
            "image_id": int(truth.image_ids[truth.image_rows[row]]),
            "category_id": int(truth.labels[row]) + 1,
            "bbox": [*truth.boxes[row, :2].tolist(), *truth.extents[row].tolist()],
            "area": float(truth.areas[row]),
            "iscrowd": int(truth.crowd[row]),
        }
        for row in range(len(truth))
    ]
    results = [
        {
            "id": row + 1,
            "image_id": int(found.image_ids[row]),
            "category_id": int(found.labels[row]) + 1,
            "bbox": [*found.boxes[row, :2].tolist(), *found.extents[row].tolist()],
            "area": float(found.extents[row, 0] * found.extents[row, 1]),
            "iscrowd": 0,
            "score": float(found.scores[row]),
        }
        for row in range(len(found))
    ]
    if geometry == "mask":  # without a mask: what its loadRes makes of a box
        shapes, rows = truth.dataset.shapes, truth.dataset.rows_of(found.image_ids)
        for row, entry in enumerate(annotations):
            entry["segmentation"] = coco_runs(truth.masks, row, shapes[truth.image_rows[row]])
        for row, entry in enumerate(results):
            x1, y1, x2, y2 = found.boxes[row].tolist()
            box = [[x1, y1, x1, y2, x2, y2, x2, y1]]
            entry["segmentation"] = coco_runs(found.masks, row, shapes[rows[row]]) if found.has_mask[row] else box
            entry["area"] = float(found.areas[row])
    images = [
        {"id": int(image_id), "width": int(width), "height": int(height)}
        for image_id, (width, height) in zip(truth.image_ids, truth.dataset.shapes, strict=True)
    ]
    categories = [{"id": column + 1, "name": name} for column, name in enumerate(truth.classes)]
    sides = []
    with contextlib.redirect_stdout(io.StringIO()):
        for rows in (annotations, results):
            side = COCO()
            side.dataset = {"images": images, "categories": categories, "annotations": rows}
            side.createIndex()
            sides.append(side)
        evaluation = COCOeval(*sides, "bbox" if geometry == "box" else "segm")
        evaluation.params.iouThrs = np.array(rules.iou_thresholds)
        evaluation.params.maxDets = list(rules.max_detections)
        evaluation.params.areaRng = [[0, 1e5**2], *map(list, rules.area_ranges)]
        evaluation.evaluate()
        evaluation.accumulate()
        if rules == COCO_RULES:
            evaluation.summarize()
    return evaluation


def coco_numbers(
    truth: GroundTruth, found: Detections, rules: BoxRules, geometry: Geometry = "box"
) -> dict[str, float]:
    """Return pycocotools' means of precision and recall with these parameters, NaN where it says -1."""
    result = coco_evaluation(truth, found, rules, geometry).eval
    precision, recall = (np.asarray(result[name]) for name in ("precision", "recall"))  # (T, R, K, A, M), (T, K, A, M)
    ious, limits = np.array(rules.iou_thresholds), rules.max_detections

    def mean(values: np.ndarray) -> float:
        defined = values[values > -1]
        return float(np.mean(defined)) if len(defined) else float("nan")

    return {
        "mAP": mean(precision[..., 0, -1]),
        "AP50": mean(precision[ious == 0.5][..., 0, -1]),
        "AP75": mean(precision[ious == 0.75][..., 0, -1]),
        **{f"AP_{size}": mean(precision[..., 1 + row, -1]) for row, size in enumerate(SIZES[1:])},
        **{f"AR_{limit}": mean(recall[..., 0, column]) for column, limit in enumerate(limits)},
        **{f"AR_{size}": mean(recall[..., 1 + row, -1]) for row, size in enumerate(SIZES[1:])},
    }


@pytest.fixture(scope="session")
def coco_twelve() -> Callable[[GroundTruth, Detections], np.ndarray]:
    """Return a function that gives pycocotools' twelve numbers, NaN where it says -1."""

    def twelve(truth: GroundTruth, found: Detections) -> np.ndarray:
        stats = coco_evaluation(truth, found).stats
        return np.where(stats == -1, np.nan, stats)

    return twelve


@pytest.fixture(scope="session")
def coco_evaluate() -> Callable[[GroundTruth, Detections], COCOeval]:
    """Return a function that gives pycocotools' whole evaluation."""
    return coco_evaluation


@pytest.fixture
def truth():
    """Two cups, a dog, no television."""
    return truth_of([[0, 0, 100, 100], [200, 0, 300, 100], [0, 200, 20, 220]], [0, 0, 1])
