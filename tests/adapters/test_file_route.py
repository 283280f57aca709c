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

from probox import PDQ, Detections, GroundTruth, adapters, evaluate, read_detections, write_parquet

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


def ids(found: Detections) -> list[int]:
    return [image for image, _ in images(found)]


def columns(part: Detections, more: Any, boxes: str, scores: str, labels: str, **named: str) -> dict[str, Any]:
    """Return the columns of an image by the names of a framework."""
    given = {boxes: part.boxes, scores: part.scores, labels: part.labels}
    return given | {named.get(name, name): getattr(part, name) for name in more}


def torchvision(found: Detections, **more: Any) -> Detections:
    parts = [columns(part, more, "boxes", "scores", "labels") for _, part in images(found)]
    parts = [part | {"labels": part["labels"] + 1} for part in parts]
    return adapters.from_torchvision(parts, classes=["__background__", *found.classes], image_ids=ids(found))


def detectron2(found: Detections, **more: Any) -> Detections:
    names = ("pred_boxes", "scores", "pred_classes")
    parts = [columns(part, more, *names, label_probs="pred_cls_probs") for _, part in images(found)]
    held = [Instances((340, 440), **part | {"pred_boxes": Boxes(part["pred_boxes"])}) for part in parts]
    return adapters.from_detectron2(held, classes=found.classes, image_ids=ids(found))


def mmdet(found: Detections, **more: Any) -> Detections:
    parts = [
        DetDataSample(SimpleNamespace(**columns(part, more, "bboxes", "scores", "labels")), img_id=image)
        for image, part in images(found)
    ]
    return adapters.from_mmdet(parts, classes=found.classes)


def supervision(found: Detections, **more: Any) -> Detections:
    parts = [
        SimpleNamespace(
            **columns(part, (), "xyxy", "confidence", "class_id"),
            data={name.replace("covariances", "covariance"): getattr(part, name) for name in more},
        )
        for _, part in images(found)
    ]
    return adapters.from_supervision(parts, classes=found.classes, image_ids=ids(found))


def entries(found: Detections, truth: GroundTruth, **more: Any) -> list[dict[str, Any]]:
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


def through_scores(found: Detections, **_: Any) -> Detections:
    made = Detections.from_scores(found.boxes, found.label_probs, classes=found.classes, image_ids=found.image_ids)
    return made.replace(labels=found.labels, scores=found.scores)


def through_file(found: Detections, folder: Path, form: str) -> Detections:
    if form == "parquet":
        pytest.importorskip("pyarrow")
        write_parquet(folder / "found.parquet", found)
        return read_detections(folder / "found.parquet", TRUTH)
    if form == "rvc1":
        lists = {image: [] for image in TRUTH.image_ids.tolist()}
        for image, box, probs in zip(found.image_ids, found.boxes, found.label_probs, strict=True):
            lists[int(image)].append({"bbox": box.tolist(), "label_probs": probs.tolist()})
        content: Any = {"classes": list(found.classes), "detections": list(lists.values())}
    else:
        content = entries(found, TRUTH, label_probs=True)
        content = [{form if key == "all_scores" else key: value for key, value in row.items()} for row in content]
    path = folder / "found.json"
    path.write_text(json.dumps(content))
    return read_detections(path, TRUTH)


def softmax_of_single_precision() -> Detections:
    """Return detections whose label probabilities are as a softmax in single precision leaves them."""
    found = unsure()
    logits = np.random.default_rng(3).normal(0, 2, (len(found), 2)).astype(np.float32)
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert probs.dtype == np.float32
    assert 0 < (probs.sum(axis=1, dtype=np.float64) > 1).sum() < len(found)
    labels = probs.argmax(axis=1).astype(np.int32)
    return found.replace(
        label_probs=probs, labels=labels, scores=probs.max(axis=1).astype(np.float64), covariances=None
    )


def through_metric(found: Detections, **_: Any) -> Detections:
    metric = PDQ(classes=found.classes, image_size=(440, 340))
    for image, part in images(found):
        target = {"boxes": [[10, 10, 30, 30]], "labels": [0], "image_id": image}
        metric.update([{"boxes": part.boxes, "label_probs": part.label_probs}], [target])
    table = metric.result().detections
    return found.replace(label_probs=table.label_probs, scores=table.scores)


HOLDERS = [torchvision, detectron2, mmdet, supervision, through_scores, through_metric]


@pytest.mark.parametrize("form", ["all_scores", "cls_prob", "rvc1", "parquet"])
def test_rounding_of_a_softmax_changes_nothing_in_files(form: str, tmp_path: Path) -> None:
    found = softmax_of_single_precision()
    of_file = through_file(found, tmp_path, form)
    np.testing.assert_array_equal(of_file.label_probs, found.label_probs)
    assert evaluate(TRUTH, of_file).pdq == evaluate(TRUTH, found).pdq
    assert not of_file.notes


@pytest.mark.parametrize("hold", HOLDERS, ids=lambda hold: hold.__name__)
def test_rounding_of_a_softmax_changes_nothing_in_memory(hold: Any) -> None:
    found = softmax_of_single_precision()
    held = hold(found, label_probs=True)
    np.testing.assert_array_equal(held.label_probs, found.label_probs)
    assert evaluate(TRUTH, held).pdq == evaluate(TRUTH, found).pdq
