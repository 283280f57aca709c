"""What people of the page `i-have.md` hold: a function per section returns the names of its snippets, and a check."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests import frameworks
from tests.adapters.shapes import Boxes, DetDataSample, Instances
from tests.docs.holding.files import GOLDEN
from tests.formats.labels import world
from tests.tensors import Tensor
from tests.worlds import boxes_truth, simulated

import probox
from probox.convention import Convention
from probox.formats import write_coco_results


def label_pdq(scene: world.Scene, folder: Path) -> float:
    """Return the PDQ of COCO's files."""
    truth_file, found = world.coco(scene, folder / "coco")
    truth = probox.read_truth(truth_file)
    return probox.evaluate(truth, probox.read_detections(found, truth)).pdq


def agree(scene: world.Scene, folder: Path, truth: str, found: str) -> None:
    """Raise unless the files that a snippet names have the PDQ of COCO's."""
    table = probox.read_truth(folder / truth)
    assert probox.evaluate(table, probox.read_detections(folder / found, table)).pdq == label_pdq(scene, folder)


def arrays(folder: Path) -> dict[str, Any]:
    """Three arrays, and the scores of all classes."""
    truth = boxes_truth(4)
    found = simulated(truth)
    return {
        "truth": truth,
        "boxes": found.boxes,
        "scores": found.scores,
        "labels": found.labels,
        "image_ids": found.image_ids,
        "std": np.full((len(found), 4), 2.0),
        "all_scores": found.label_probs,
        "check": lambda space: np.testing.assert_array_equal(space["detections"].covariances, found.covariances),
    }


def detectron2(folder: Path) -> dict[str, Any]:
    """What a predictor returns, in objects of the shape of detectron2's."""
    truth = boxes_truth(3)
    found = simulated(truth)
    outputs = [
        {
            "instances": Instances(
                (340, 440),
                pred_boxes=Boxes(Tensor(part.boxes)),
                scores=Tensor(part.scores),
                pred_classes=Tensor(part.labels),
            )
        }
        for _, part in found.by_image()
    ]
    return {
        "probox": probox,
        "outputs": outputs,
        "thing_classes": list(truth.classes),
        "image_ids": truth.image_ids.tolist(),
        "truth": truth,
        "check": lambda space: _check_detectron2(space, found),
    }


def _check_detectron2(space: dict[str, Any], found: probox.Detections) -> None:
    assert space["detections"].boxes.tolist() == found.boxes.tolist()


def kitti(folder: Path) -> dict[str, Any]:
    """KITTI's training folder, and a folder of results."""
    scene = world.make_scene()
    root, found = world.kitti(scene, folder / "made")
    shutil.move(root, folder / "kitti" / "training")
    shutil.move(found, folder / "results" / "data")
    return {"check": lambda space: agree(scene, folder, "kitti/training", "results/data")}


def mmdet(folder: Path) -> dict[str, Any]:
    """What mmdet's detectors return, in objects of the shape of its samples."""
    truth = boxes_truth(3)
    found = simulated(truth)
    samples = [
        DetDataSample(
            SimpleNamespace(bboxes=Tensor(part.boxes), scores=Tensor(part.scores), labels=Tensor(part.labels)),
            img_id=image_id,
            ori_shape=(340, 440),
        )
        for image_id, part in found.by_image()
    ]
    return {
        "probox": probox,
        "samples": samples,
        "model": SimpleNamespace(dataset_meta={"classes": truth.classes}),
        "truth": truth,
        "check": lambda space: _check_mmdet(space, found),
    }


def _check_mmdet(space: dict[str, Any], found: probox.Detections) -> None:
    assert space["detections"].image_ids.tolist() == sorted(found.image_ids.tolist())


def open_images(folder: Path) -> dict[str, Any]:
    """Open Images' boxes, classes and images, and a CSV file of detections."""
    scene = world.make_scene(empty=False)
    truth, found = world.open_images(scene, folder)
    return {"check": lambda space: agree(scene, folder, truth.name, found.name)}


def pascal_voc(folder: Path) -> dict[str, Any]:
    """VOCdevkit with annotations and a list of the images of a part; detections by class."""
    scene = world.make_scene()
    root, found = world.voc(scene, folder / "made")
    shutil.move(root, folder / "VOCdevkit" / "VOC2007")
    shutil.move(found, folder / "results" / "VOC2007" / "Main")
    world.put(folder / "VOCdevkit/VOC2007/ImageSets/Main/test.txt", "\n".join(scene.images) + "\n")
    return {"check": lambda space: agree(scene, folder, "VOCdevkit/VOC2007:test", "results/VOC2007/Main")}


def probdet(folder: Path) -> dict[str, Any]:
    """A results file as probdet writes it, the same in memory, and the truth."""
    truth = boxes_truth(3)
    found = simulated(truth)
    entries = [
        {
            "image_id": int(found.image_ids[row]),
            "category_id": int(found.labels[row]) + 1,
            "bbox": [*found.boxes[row, :2].tolist(), *found.extents[row].tolist()],
            "score": float(found.scores[row]),
            "cls_prob": [*found.label_probs[row].tolist(), 0.0],
            "bbox_covar": np.diag([4.0, 4.0, 5.0, 5.0]).tolist(),
        }
        for row in range(len(found))
    ]
    (folder / "coco_instances_results.json").write_text(json.dumps(entries))
    (folder / "truth.json").write_text(json.dumps(_coco_truth(truth)))
    return {"probox": probox, "entries": entries, "truth": truth, "check": _check_probdet}


def _coco_truth(truth: probox.GroundTruth) -> dict[str, Any]:
    sides = zip(truth.image_ids.tolist(), truth.dataset.shapes.tolist(), strict=True)
    return {
        "images": [{"id": image_id, "width": width, "height": height} for image_id, (width, height) in sides],
        "categories": [{"id": number + 1, "name": name} for number, name in enumerate(truth.classes)],
        "annotations": [
            {
                "id": row,
                "image_id": int(truth.image_ids[truth.image_rows[row]]),
                "category_id": int(truth.labels[row]) + 1,
                "bbox": [*truth.boxes[row, :2].tolist(), *truth.extents[row].tolist()],
            }
            for row in range(len(truth))
        ],
    }


def _check_probdet(space: dict[str, Any]) -> None:
    found = space["detections"]
    assert found.covariances[0].tolist() == [[[4, 0], [0, 4]], [[9, 0], [0, 9]]]
    assert found.notes == ()


def settings(folder: Path) -> dict[str, Any]:
    """Two files, and what a paper says of how they were measured."""
    shutil.copy(GOLDEN / "ground_truth.json", folder / "truth.json")
    shutil.copy(GOLDEN / "detections.json", folder / "detections.json")

    def check(space: dict[str, Any]) -> None:
        published, plain = space["published"], space["plain"]
        assert published.convention == Convention(label_threshold=0.5, fixed_variance=10)
        assert published.convention.describe() == "reference, fixed variance 10, label threshold 0.5"
        assert plain.convention == Convention.preset("paper", assignment="greedy")
        assert plain.measures == ("pdq", "map")

    return {"check": check}


def supervision(folder: Path) -> dict[str, Any]:
    """Supervision's detections of a photo, and a table of our own."""
    library = frameworks.supervision()
    detections = library.Detections(
        xyxy=np.array([[10.0, 20, 50, 60]]), confidence=np.array([0.8]), class_id=np.array([1])
    )
    probabilistic = probox.Detections.from_scores(
        [[30, 30, 90, 70]], [0.8], ["dog"], classes=["cup", "dog"], image_ids=7, std=4
    )
    return {
        "sv_detections": detections,
        "classes": ["cup", "dog"],
        "image": np.zeros((100, 120, 3), np.uint8),
        "probabilistic": probabilistic,
        "check": _check_supervision,
    }


def _check_supervision(space: dict[str, Any]) -> None:
    assert space["detections"].labels.tolist() == [1]
    lit = space["scene"].any(axis=2)
    assert lit[70 - 12, 90]  # 3 sigma above the corner
    assert not lit[70 - 20, 90 + 3]


def tables(folder: Path) -> dict[str, Any]:
    """Ground truth and detections, as tables and as files."""
    pytest.importorskip("pandas")
    truth = boxes_truth(4)
    found = simulated(truth, miss_rate=0.2, false_per_image=1)
    write_coco_results(folder / "detections.json", found, truth.dataset)
    _write_truth(folder / "truth.json", truth)

    def check(space: dict[str, Any]) -> None:
        result = space["result"]
        assert len(space["both"]) == result.tp > 0
        assert len(space["worst"]) > 0
        assert len(space["missed"]) <= result.fn
        assert (space["doubtful"]["sigma_x1"] > 3).all()
        with open(folder / "tables" / "detections.csv", newline="") as file:
            assert len(list(csv.DictReader(file))) == len(space["frame"])

    return {"probox": probox, "truth": truth, "detections": found, "check": check}


def _write_truth(path: Path, truth: probox.GroundTruth) -> None:
    rows = zip(truth.image_rows.tolist(), truth.labels.tolist(), truth.boxes.tolist(), strict=True)
    data = {
        "images": [
            {"id": image_id, "width": width, "height": height}
            for image_id, (width, height) in zip(truth.image_ids.tolist(), truth.dataset.shapes.tolist(), strict=True)
        ],
        "categories": [{"id": number + 1, "name": name} for number, name in enumerate(truth.classes)],
        "annotations": [
            {
                "id": number + 1, "image_id": int(truth.image_ids[row]), "category_id": label + 1, "iscrowd": 0,
                "bbox": [x1, y1, x2 - x1, y2 - y1], "area": (x2 - x1) * (y2 - y1),
                "segmentation": [[x1, y1, x2, y1, x2, y2, x1, y2]],
            }
            for number, (row, label, (x1, y1, x2, y2)) in enumerate(rows)
        ],
    }  # fmt: skip
    path.write_text(json.dumps(data), encoding="utf-8")


def torchvision(folder: Path) -> dict[str, Any]:
    """Two images' dictionaries, as torchvision's detectors give and take them."""
    truth = boxes_truth(2)
    found = simulated(truth)
    ids = truth.image_ids.tolist()
    objects = [truth.image_ids[truth.image_rows] == image_id for image_id in ids]
    rows = [found.image_ids == image_id for image_id in ids]
    return {
        "probox": probox,
        "categories": ["__background__", *truth.classes],
        "image_ids": ids,
        "image_sizes": dict.fromkeys(ids, (440, 340)),
        "targets": [
            {"boxes": truth.boxes[of], "labels": truth.labels[of] + 1, "image_id": image_id}
            for image_id, of in zip(ids, objects, strict=True)
        ],
        "outputs": [
            {"boxes": found.boxes[of], "labels": found.labels[of] + 1, "scores": found.scores[of]} for of in rows
        ],
        "check": lambda space: _check_torchvision(space, truth),
    }


def _check_torchvision(space: dict[str, Any], truth: probox.GroundTruth) -> None:
    assert space["truth"].labels.tolist() == truth.labels.tolist()
    assert probox.evaluate(space["truth"], space["detections"]).summary()["mAP"] > 0.3


def training_loop(folder: Path) -> dict[str, Any]:
    """A model's predictions and targets in torchvision's dictionaries, an Ultralytics model, and a Lightning module."""
    from examples import lightning_callback, ultralytics_callback

    torch, ultralytics = frameworks.torch(), frameworks.ultralytics()
    with frameworks.quiet():
        lightning = pytest.importorskip("lightning")
    torch.set_num_threads(1)
    module = lightning_callback.make_module()
    images = lightning_callback.make_images(8, 1)
    loader = torch.utils.data.DataLoader(images, batch_size=4, collate_fn=lightning_callback.collate)

    def predict(pixels: Any) -> list[dict[str, Any]]:
        with torch.no_grad():
            return module.validation_step((pixels, None), 0)["preds"]

    ultralytics_callback.make_data(folder)
    yolo = ultralytics.YOLO("yolov8n.yaml")
    small = {"epochs": 1, "imgsz": 64, "workers": 0, "device": "cpu", "plots": False, "amp": False, "verbose": False}
    yolo.overrides.update(project=str(folder))
    train = yolo.train
    yolo.train = lambda **given: train(**(given | small))  # the same, in seconds

    def check(space: dict[str, Any]) -> None:
        assert 0.0 < space["metric"].compute()["PDQ"] < 1.0
        assert len(space["metric"]) == 8
        assert len(space["pdq"].history) == 2
        assert 0.0 < float(space["trainer"].callback_metrics["val_PDQ"]) < 1.0

    return {
        "classes": ["background", *lightning_callback.CLASSES],
        "val_loader": loader,
        "model": predict,
        "yolo": yolo,
        "module": module,
        "Trainer": lambda **given: lightning.Trainer(
            **given, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False
        ),
        "train_loader": loader,
        "check": check,
    }


def transformers(folder: Path) -> dict[str, Any]:
    """A tiny D-FINE with random weights, and what it says of a batch."""
    from tests.adapters.tiny_models import CLASSES, SIDE, tiny_model

    model, torch = tiny_model("DFine"), frameworks.torch()
    with torch.no_grad():
        outputs = model(pixel_values=torch.randn(2, 3, SIDE, SIDE))
    sizes = {7: (640, 480), 9: (500, 375)}
    truth = probox.GroundTruth.from_boxes(CLASSES, sizes, [7], [[10, 20, 50, 60]], [0])
    return {
        "probox": probox,
        "model": model,
        "outputs": outputs,
        "image_ids": [7, 9],
        "truth": truth,
        "check": lambda space: _check_transformers(space["detections"]),
    }


def _check_transformers(found: probox.Detections) -> None:
    assert len(found) == 24
    assert found.covariances is not None
    assert len(found.classes) == len(found.label_probs[0])
    assert found.boxes[:12, [0, 2]].max() > 64


def two_files(folder: Path) -> dict[str, Any]:
    """A truth file, and two files of detections in another folder, the second of fewer detections."""
    shutil.copy(GOLDEN / "ground_truth.json", folder / "truth.json")
    told = json.loads((GOLDEN / "detections.json").read_text())
    (folder / "runs").mkdir()
    (folder / "runs" / "17.json").write_text(json.dumps(told))
    fewer = [image[:2] for image in told["detections"]]
    (folder / "runs" / "18.json").write_text(json.dumps(told | {"detections": fewer}))

    def check(space: dict[str, Any]) -> None:
        for name, result in space["results"].items():
            assert probox.Evaluation.load(folder / "results" / name).pdq == result.pdq
        assert space["result"].pdq == space["results"]["SSD"].pdq != space["results"]["YOLO"].pdq

    return {"check": check}


def ultralytics_model(folder: Path) -> dict[str, Any]:
    """An Ultralytics model with random weights, two photos and what is on them."""
    from PIL import Image

    ultralytics = frameworks.ultralytics()
    model = ultralytics.YOLO("yolo11n.yaml")
    model.overrides["imgsz"] = 64
    (folder / "photos").mkdir()
    rng = np.random.default_rng(0)
    for number in (139, 285):
        pixels = rng.integers(0, 255, (48, 64, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "photos" / f"{number:012d}.jpg")
    classes = [model.names[number] for number in range(len(model.names))]
    boxes = [[5, 5, 40, 40], [10, 5, 60, 40]]
    truth = probox.GroundTruth.from_boxes(classes, {139: (64, 48), 285: (64, 48)}, [139, 285], boxes, [0, 1])

    def check(space: dict[str, Any]) -> None:
        found = probox.read_detections(folder / "detections.json", truth)
        assert len(found) == len(space["run"].found)
        assert space["run"].images == 2

    return {"model": model, "truth": truth, "check": check}


def ultralytics_results(folder: Path) -> dict[str, Any]:
    """Results as Ultralytics returns them, of two photos."""
    truth = boxes_truth(2)
    truth = truth.replace(dataset=truth.dataset.replace(file_names=("val/one.jpg", "val/two.jpg")))
    found = simulated(truth)
    results = []
    for image_id, name in zip(truth.image_ids, ("photos/one.jpg", "photos/two.jpg"), strict=True):
        rows = found.image_ids == image_id
        data = np.column_stack([found.boxes[rows], found.scores[rows], found.labels[rows]])
        results.append(
            SimpleNamespace(
                boxes=SimpleNamespace(data=data),
                names=dict(enumerate(truth.classes)),
                orig_shape=(340, 440),
                path=name,
                obb=None,
                probs=None,
            )
        )

    def check(space: dict[str, Any]) -> None:
        np.testing.assert_array_equal(space["detections"].boxes, found.boxes)
        np.testing.assert_array_equal(space["detections"].image_ids, found.image_ids)

    return {"truth": truth, "results": results, "check": check}


def yolo_folder(folder: Path) -> dict[str, Any]:
    """A data set as ultralytics wants it, and what its predict wrote."""
    scene = world.make_scene()
    truth, found = world.yolo(scene, folder / "made")
    shutil.copytree(truth.parent, folder, dirs_exist_ok=True)
    shutil.copytree(found, folder / "runs" / "detect" / "predict" / "labels")

    def check(space: dict[str, Any]) -> None:
        assert space["probox"].evaluate(space["truth"], space["detections"]).pdq == label_pdq(scene, folder)

    return {"check": check}
