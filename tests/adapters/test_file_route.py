"""The same detections, held in memory by a framework or written to a COCO results file, give the same numbers."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.adapters.shapes import Boxes, DetDataSample, Instances
from tests.worlds import boxes_truth, simulated

from probox import Detections, GroundTruth, adapters, evaluate, read_detections
from probox.formats.writing import write_detections

TRUTH = boxes_truth(12)
WITH = [(), ("covariances",), ("label_probs", "covariances")]


def unsure() -> Detections:
    """Return detections whose x + width is x2 to the last bit, so that a file can hold them, image by image."""
    found = simulated(TRUTH)
    boxes = np.round(found.boxes * 4) / 4
    scores = np.random.default_rng(0).uniform(0.3, 0.99, len(found)).astype(np.float32)
    probs = np.where(np.arange(2) == found.labels[:, None], scores[:, None], 0.5 * (1 - scores[:, None]))
    made = found.replace(
        boxes=boxes,
        extents=boxes[:, 2:] - boxes[:, :2],
        label_probs=probs.astype(np.float32),
        scores=scores.astype(np.float64),
    )
    return Detections.concatenate([part for _, part in made.by_image()])


def images(found: Detections) -> list[tuple[int, Detections]]:
    return list(found.by_image())


def torchvision(found: Detections, **more: Any) -> Detections:
    parts = [
        {"boxes": part.boxes, "labels": part.labels + 1, "scores": part.scores}
        | {name: getattr(part, name) for name in more}
        for _, part in images(found)
    ]
    return adapters.from_torchvision(parts, classes=["__background__", *found.classes], image_ids=ids(found))


def ids(found: Detections) -> list[int]:
    return [image for image, _ in images(found)]


def detectron2(found: Detections, **more: Any) -> Detections:
    names = {"label_probs": "pred_cls_probs", "covariances": "covariances"}
    parts = [
        Instances(
            (340, 440),
            pred_boxes=Boxes(part.boxes),
            scores=part.scores,
            pred_classes=part.labels,
            **{names[name]: getattr(part, name) for name in more},
        )
        for _, part in images(found)
    ]
    return adapters.from_detectron2(parts, classes=found.classes, image_ids=ids(found))


def mmdet(found: Detections, **more: Any) -> Detections:
    parts = [
        DetDataSample(
            SimpleNamespace(
                bboxes=part.boxes,
                scores=part.scores,
                labels=part.labels,
                **{name: getattr(part, name) for name in more},
            ),
            img_id=image,
        )
        for image, part in images(found)
    ]
    return adapters.from_mmdet(parts, classes=found.classes)


def supervision(found: Detections, **more: Any) -> Detections:
    names = {"label_probs": "label_probs", "covariances": "covariance"}
    parts = [
        SimpleNamespace(
            xyxy=part.boxes,
            confidence=part.scores,
            class_id=part.labels,
            data={names[name]: getattr(part, name) for name in more},
        )
        for _, part in images(found)
    ]
    return adapters.from_supervision(parts, classes=found.classes, image_ids=ids(found))


def entries(found: Detections, truth: GroundTruth, **more: Any) -> list[dict[str, Any]]:
    """Return COCO results as plain Python, written by hand."""
    rows = []
    for row in range(len(found)):
        x1, y1, x2, y2 = found.boxes[row].tolist()
        entry: dict[str, Any] = {
            "image_id": int(found.image_ids[row]),
            "category_id": int(truth.dataset.category_ids[found.labels[row]]),
            "bbox": [x1, y1, x2 - x1, y2 - y1],
            "score": float(found.scores[row]),
        }
        if "label_probs" in more:
            entry["all_scores"] = found.label_probs[row].tolist()
        if "covariances" in more:
            assert found.covariances is not None
            entry["covars"] = found.covariances[row].tolist()
        rows.append(entry)
    return rows


@pytest.mark.parametrize("more", WITH, ids=lambda more: "+".join(more))
@pytest.mark.parametrize("hold", [torchvision, detectron2, mmdet, supervision], ids=lambda hold: hold.__name__)
def test_the_numbers_are_those_of_the_file(hold: Any, more: tuple[str, ...], tmp_path: Path) -> None:
    found = unsure()
    held = hold(found, **dict.fromkeys(more, True))
    path = tmp_path / "results.json"
    path.write_text(json.dumps(entries(found, TRUTH, **dict.fromkeys(more, True))))
    of_file = read_detections(path, TRUTH)
    np.testing.assert_array_equal(held.label_probs, of_file.label_probs)
    one, other = evaluate(TRUTH, held), evaluate(TRUTH, of_file)
    assert one.summary() == other.summary()
    assert one.pdq > 0
    assert {"PDQ", "mAP", "moLRP"} <= set(one.summary())


def test_what_a_model_of_transformers_says_can_be_kept_in_a_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    shape = (2, 8, 2)
    boxes = np.concatenate([rng.uniform(0.2, 0.8, shape), rng.uniform(0.1, 0.3, shape)], axis=2)
    outputs = {"logits": rng.normal(0, 2, (2, 8, 2)), "pred_boxes": boxes}
    config = {"id2label": dict(enumerate(TRUTH.classes)), "model_type": "rt_detr"}
    held = adapters.from_transformers(outputs, config=config, image_ids=TRUTH.image_ids[:2], image_sizes=TRUTH)
    path = tmp_path / "results.coco.json"
    write_detections(path, held, TRUTH)
    kept = read_detections(path, TRUTH)
    np.testing.assert_array_equal(kept.label_probs, held.label_probs)
    assert evaluate(TRUTH, kept).summary() == pytest.approx(evaluate(TRUTH, held).summary(), rel=1e-9, nan_ok=True)
