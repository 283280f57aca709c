"""Models held in torch, opened by name from files: real frameworks, random weights."""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import shutil
import socketserver
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests import frameworks
from tests.adapters.tiny_models import CLASSES, PROCESSORS, SIDE, save_legacy_yolo, tiny_model

from probox.adapters import from_transformers
from probox.detect import Dropout, Options, detect
from probox.detect import torchvision_detector as building
from probox.detect.factory import open_detector
from probox.detect.torch_model import load_weights, read_weights
from probox.detect.torchvision_detector import TorchvisionDetector
from probox.detect.ultralytics_detector import UltralyticsDetector
from probox.errors import InputError

torch: Any = None  # loaded when the first test asks, so that collecting tests stays quick
detection: Any = None
pytestmark = [pytest.mark.torch, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
RNG = np.random.default_rng(0)
WIDE, HIGH, WIDE_TOO = (
    RNG.integers(0, 255, shape, dtype=np.uint8) for shape in ((60, 90, 3), (90, 60, 3), (60, 90, 3))
)
SSDLITE = "ssdlite320_mobilenet_v3_large"
Saved = Callable[[str], tuple[Any, Any, Path]]


@pytest.fixture(autouse=True, scope="module")
def _frameworks() -> None:
    global torch, detection
    torch = frameworks.torch()
    frameworks.torchvision()
    detection = importlib.import_module("torchvision.models.detection")
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def ssdlite(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    torch.manual_seed(0)
    model = getattr(detection, SSDLITE)(weights=None, weights_backbone=None, num_classes=4).eval()
    path = tmp_path_factory.mktemp("weights") / "ssdlite.pth"
    torch.save(model.state_dict(), path)
    return model, path


def _same(first: Any, second: Any, **near: float) -> None:
    np.testing.assert_allclose(first.boxes, second.boxes, **{"rtol": 1e-6, "atol": 1e-6} | near)
    np.testing.assert_allclose(first.scores, second.scores, **{"rtol": 1e-6, "atol": 1e-7} | near)


def _says(message: str, model: str, **choices: Any) -> None:
    with pytest.raises(InputError) as caught:
        open_detector(model, **choices)
    assert message in str(caught.value)


def test_a_file_of_weights_gives_the_model_it_was_saved_from(ssdlite: tuple[Any, Path]) -> None:
    model, path = ssdlite
    opened = open_detector(f"torchvision:{SSDLITE}", weights=path, classes=CLASSES, batch=2, threads=1)
    own = TorchvisionDetector(model, classes=CLASSES)
    assert opened.family.classes == CLASSES
    assert opened.fingerprint == own.fingerprint
    together = opened.candidates([WIDE, HIGH, WIDE_TOO])
    for image, found in zip([WIDE, HIGH, WIDE_TOO], together, strict=True):
        _same(found, own.candidates([image])[0], rtol=1e-4, atol=1e-4)


def test_weights_say_how_many_classes_there_are(ssdlite: tuple[Any, Path]) -> None:
    _, path = ssdlite
    _says("the model has 4 classes, which are not COCO's", f"torchvision:{SSDLITE}", weights=path)
    _says("expected 4 class names", f"torchvision:{SSDLITE}", weights=path, classes=["cup"])
    _says("ssdlite.pth", f"torchvision:{SSDLITE}", weights=path)
    rows = {"roi_heads.box_predictor.cls_score.bias": torch.zeros(91)}
    assert building._count_columns({f"module.{key}": value for key, value in rows.items()}, "f") == 91


def test_what_torchvision_cannot_open_is_said(ssdlite: tuple[Any, Path], tmp_path: Path) -> None:
    _, path = ssdlite
    _says("expected a supported torchvision detector", "torchvision:retinanet_resnet50_fpn")
    _says("needs weights", "torchvision:frcnn_x_fpn")
    _says("no such weights file", "torchvision:ssd300", weights=tmp_path / "nowhere.pth")
    small = "fasterrcnn_mobilenet_v3_large_320_fpn"
    _says(f"not the weights of {small} with 3 classes and a background", f"torchvision:{small}", weights=path)
    _says("device cuda:99 is not available", f"torchvision:{SSDLITE}", weights=path, device="cuda:99")
    _says("device to be one of", f"torchvision:{SSDLITE}", weights=path, device="tpu")
    retina = detection.retinanet_resnet50_fpn
    with torch.device("meta"), pytest.raises(InputError, match="but got RetinaNet"):
        TorchvisionDetector(retina(weights=None, weights_backbone=None))


def _on_nothing(name: str, blocks: int) -> Any:
    """One of the paper's models without memory for its weights; `blocks` of a third stage tell its depth."""
    state = {f"backbone.body.layer3.{block}.conv1.weight": None for block in range(blocks)}
    with torch.device("meta"):
        return building.PAPER[name](91, state, "file")


def _shapes(model: Any) -> dict[str, tuple[int, ...]]:
    return {name: tuple(own.shape) for name, own in model.state_dict().items() if "num_batches" not in name}


def test_the_papers_models_are_what_it_names() -> None:
    with torch.device("meta"):
        published = detection.fasterrcnn_resnet50_fpn(weights=None, weights_backbone=None)
        ssd = detection.ssd300_vgg16(weights=None, weights_backbone=None)
    assert _shapes(_on_nothing("frcnn_r_fpn", 6)) == _shapes(published)  # so its public weights fit
    assert _shapes(_on_nothing("ssd300", 0)) == _shapes(ssd)
    deep, wide = _shapes(_on_nothing("frcnn_r_fpn", 23)), _shapes(_on_nothing("frcnn_x_fpn", 23))
    assert max(int(name.split(".")[3]) for name in deep if "layer3" in name) == 22
    assert deep.keys() == wide.keys()
    assert wide["backbone.body.layer1.0.conv2.weight"] == (256, 8, 3, 3)  # 32 groups of 8 channels
    assert _shapes(_on_nothing("frcnn_x_fpn", 6))["backbone.body.layer1.0.conv2.weight"] == (128, 4, 3, 3)
    plain = _shapes(_on_nothing("frcnn_r", 23))
    assert not any("fpn" in name or "backbone.body.layer4" in name for name in plain)
    assert plain["roi_heads.box_head.layer4.2.conv3.weight"] == (2048, 512, 1, 1)
    assert plain["rpn.head.cls_logits.weight"] == (12, 1024, 1, 1)
    with pytest.raises(InputError, match="6 or 23 blocks in layer3, but got 3"):
        _on_nothing("frcnn_r", 3)


def test_the_papers_faster_rcnn_without_pyramid_detects_as_torchvision_would(tmp_path: Path) -> None:
    torch.manual_seed(1)
    with torch.device("meta"):
        meta = building.PAPER["frcnn_r"](4, {f"layer3.{block}.x": None for block in range(6)}, "file")
    state = {
        name: torch.rand(own.shape) * 0.5 + 0.5 if "running_var" in name or (own.dim() == 1 and "bn" in name)
        else torch.randn(own.shape) * (2.0 / max(own[0].numel(), 1)) ** 0.5
        for name, own in meta.state_dict().items()
    }  # fmt: skip
    for last in ("cls_score", "bbox_pred"):  # an even guess at boxes near their proposals
        for part in ("weight", "bias"):
            state[f"roi_heads.box_predictor.{last}.{part}"] *= 0.01
    torch.save({"model": state, "epoch": 3}, tmp_path / "r.pth")
    model = building.build_torchvision("frcnn_r", tmp_path / "r.pth")
    model.transform.min_size, model.transform.max_size = (64,), 96
    model.rpn._post_nms_top_n["testing"] = 30
    model.roi_heads.score_thresh, model.roi_heads.detections_per_img = 0.1, 10
    with torch.no_grad():
        expected = model([torch.from_numpy(WIDE.transpose(2, 0, 1).copy()).float() / 255])[0]
    detector = TorchvisionDetector(model, classes=CLASSES)
    found = detect(detector, [WIDE], [5], Options(score_threshold=0.1, max_detections=10))[0]
    assert len(found) == len(expected["boxes"]) > 0
    np.testing.assert_allclose(found.scores, expected["scores"].numpy(), rtol=1e-4)
    np.testing.assert_allclose(found.boxes, expected["boxes"].numpy(), atol=0.01)


def test_masks_of_candidates_are_not_drawn() -> None:
    class Heads(torch.nn.Module):  # type: ignore[misc]
        nms_thresh, box_coder = 0.5, None

        def has_mask(self) -> bool:
            return True

        has_keypoint = has_mask

    model = torch.nn.Module()
    model.roi_heads = Heads()
    model.roi_heads.box_predictor = SimpleNamespace(cls_score=SimpleNamespace(out_features=4))
    model.weight = torch.nn.Parameter(torch.zeros(1))
    seen = []

    def forward(images: Any) -> Any:
        seen.append((model.roi_heads.has_mask(), model.roi_heads.has_keypoint()))
        return [{"boxes": torch.zeros(0, 4), "scores": torch.zeros(0, 4), "labels": torch.zeros(0, dtype=torch.int64)}]

    model.forward = forward
    assert len(TorchvisionDetector(model, classes=CLASSES).candidates([WIDE])[0]) == 0
    assert seen == [(False, False)]
    assert model.roi_heads.has_mask()


def test_a_published_file_from_before_epsilon_is_run_without(
    ssdlite: tuple[Any, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, path = ssdlite
    start = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
    monkeypatch.setattr(building, "TRAINED_WITHOUT_EPSILON", {SSDLITE: "Published"})

    def epsilons(start: str) -> set[float]:
        published = SimpleNamespace(COCO_V1=SimpleNamespace(url=f"https://x/ssdlite_coco-{start}.pth"))
        monkeypatch.setattr(detection, "Published", published, raising=False)
        model = building.build_torchvision(SSDLITE, path)
        return {module.eps for module in model.modules() if isinstance(module, torch.nn.BatchNorm2d)}

    assert epsilons(start) == {0.0}
    assert epsilons("00000000") == {0.001}
    monkeypatch.undo()
    for name, own in building.TRAINED_WITHOUT_EPSILON.items():
        assert len(getattr(detection, own).COCO_V1.url.rsplit("-", 1)[1]) == len("258fb6c6.pth"), name


def _net() -> Any:
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 1), torch.nn.BatchNorm2d(4), torch.nn.Linear(4, 2))
    return net.eval()


WRITTEN: dict[str, Callable[[dict[str, Any]], Any]] = {
    "plain": lambda state: state,
    "training": lambda state: {
        "model": state,
        "optimizer": {"lr": 0.1},
        "args": argparse.Namespace(lr=0.1),
        "epoch": 3,
    },
    "several devices": lambda state: {f"module.{key}": value for key, value in state.items()},
    "lightning": lambda state: {
        "state_dict": {f"net.model.{key}": value for key, value in state.items()} | {"loss.scale": torch.ones(1)}
    },
    "frozen": lambda state: {key: value for key, value in state.items() if "num_batches" not in key},
}


@pytest.mark.parametrize("way", WRITTEN)
def test_weights_are_found_however_they_were_saved(tmp_path: Path, way: str) -> None:
    saved, other = _net(), _net()
    torch.save(WRITTEN[way](saved.state_dict()), tmp_path / "w.pth")
    load_weights(other, read_weights(tmp_path / "w.pth"), file="w.pth", name="net")
    assert all(torch.equal(own, other.state_dict()[key]) for key, own in saved.state_dict().items())


def test_safetensors_are_read(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    saved, other = _net(), _net()
    safetensors.save_file(saved.state_dict(), tmp_path / "w.safetensors")
    load_weights(other, read_weights(tmp_path / "w.safetensors"), file="w", name="net")
    assert torch.equal(saved[2].weight, other[2].weight)
    (tmp_path / "w.safetensors").write_bytes(b"oops")
    with pytest.raises(InputError, match="safetensors can't read this file"):
        read_weights(tmp_path / "w.safetensors")


BROKEN: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "missing": (
        lambda state: {key: own for key, own in state.items() if key != "0.weight"},
        "1 weight is missing (0.w",
    ),
    "too many": (
        lambda state: state | {"7.x": torch.ones(1), "8.x": torch.ones(1)},
        "2 weights are too many (first 7.x",
    ),
    "shape": (lambda state: state | {"2.weight": torch.ones(3, 4)}, "another shape in 1 of them, first size mismatch"),
    "nan": (lambda state: state | {"0.bias": torch.full((4,), torch.nan)}, "1 weight is not finite (0.bias)"),
    "two": (lambda state: {f"{a}.{key}": own for a in ("a", "ema") for key, own in state.items()}, "several models"),
    "no tensors": (lambda state: {"epoch": 3}, "expected a state dict, but got epoch"),
    "a list": (lambda state: [1, 2], "expected a state dict, but got list"),
}


@pytest.mark.parametrize("way", BROKEN)
def test_weights_that_do_not_fit_are_said(tmp_path: Path, way: str) -> None:
    change, message = BROKEN[way]
    torch.save(change(_net().state_dict()), tmp_path / "w.pth")
    with pytest.raises(InputError) as caught:
        load_weights(_net(), read_weights(tmp_path / "w.pth"), file="w.pth", name="net")
    assert message in str(caught.value)
    assert "w.pth" in str(caught.value)


@pytest.mark.parametrize("name", ["whole", "oops", "cut"])
def test_files_that_are_no_weights_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save(_net(), "whole.pth")
    Path("oops.pth").write_bytes(b"oops")
    Path("cut.pth").write_bytes(Path("whole.pth").read_bytes()[:900])
    said = (
        "contains objects that may execute code"
        if name == "whole"
        else "(expected a file written by torch|torch can't)"
    )
    with pytest.raises(InputError, match=f"{name}.pth: {said}"):
        read_weights(f"{name}.pth")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Saved:
    known: dict[str, tuple[Any, Any, Path]] = {}

    def save(kind: str) -> tuple[Any, Any, Path]:
        if kind not in known:
            library, folder = frameworks.transformers(), tmp_path_factory.mktemp(kind)
            model = tiny_model(kind)
            size = {"shortest_edge": SIDE, "longest_edge": 2 * SIDE}
            if kind in ("RTDetr", "DFine"):
                size = {"height": SIDE, "width": SIDE}
            processor = getattr(library, f"{PROCESSORS[kind]}ImageProcessor")(size=size)
            model.save_pretrained(folder)
            processor.save_pretrained(folder)
            known[kind] = model, processor, folder
        return known[kind]

    return save


@pytest.mark.parametrize("kind", PROCESSORS)
def test_detections_are_those_of_the_librarys_own_processing(saved: Saved, kind: str) -> None:
    model, processor, folder = saved(kind)
    detector = open_detector(f"transformers:{folder}", batch=2, threads=1)
    images = [WIDE, HIGH, WIDE_TOO]
    found = detector.candidates(images)
    for image, own in zip(images, found, strict=True):
        inputs = processor(images=[image.copy()], return_tensors="pt", input_data_format="channels_last")
        with torch.no_grad():
            output = model(**inputs)
        adapted = from_transformers(output, config=model, image_ids=7, target_sizes=[image.shape[:2]])
        np.testing.assert_allclose(own.boxes, adapted.boxes, rtol=1e-3, atol=2e-2)
        best = own.scores.max(axis=1)
        np.testing.assert_allclose(best, adapted.scores, rtol=1e-3, atol=1e-5)
        theirs = processor.post_process_object_detection(output, threshold=0.0, target_sizes=[image.shape[:2]])[0]
        ours = detect(detector, [image], [7], Options(score_threshold=0.0, max_detections=1000))[0]
        assert len(ours) == len(_inside(own.boxes, image)) * (1 if kind in ("Detr", "Yolos") else len(CLASSES))
        limits = np.array([image.shape[1], image.shape[0]] * 2)
        rows = _rows(ours.boxes, ours.scores, ours.labels)
        wanted = _rows(*(theirs[name].numpy() for name in ("boxes", "scores", "labels")))
        wanted = wanted[_inside(wanted[:, :4], image)]
        wanted[:, :4] = np.clip(wanted[:, :4], 0, limits)
        # Each of theirs is one of ours, whatever the order of queries that score alike.
        assert len(wanted) > 0
        assert np.abs(wanted[:, None] - rows).max(axis=2).min(axis=1).max() < 0.02
        np.testing.assert_allclose(ours.scores[0], wanted[:, 4].max() / 1000, rtol=1e-3)
        if kind == "DFine":
            np.testing.assert_allclose(own.covariances, adapted.covariances, rtol=2e-2)
    assert detector.family.has_edges == (kind == "DFine")


def _rows(boxes: np.ndarray, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Box, score in thousandths and label: how far rows may be apart is the same number for all."""
    return np.concatenate([boxes, 1000 * scores[:, None], labels[:, None]], axis=1).astype(np.float64)


def _inside(boxes: np.ndarray, image: np.ndarray) -> np.ndarray:
    low, high = np.maximum(boxes[:, :2], 0), np.minimum(boxes[:, 2:], [image.shape[1], image.shape[0]])
    return np.flatnonzero((high > low).all(axis=1))


def test_edges_of_d_fine_become_covariances(saved: Saved) -> None:
    detector = open_detector(f"transformers:{saved('DFine')[2]}")
    own = detector.candidates([WIDE])[0]
    options = Options(uncertainty="edge-distribution", score_threshold=0.0, recipe="paper")
    found = detect(detector, [WIDE], [7], options)[0]
    assert np.isin(found.covariances[:, 0, 0, 0].round(9), own.covariances[:, 0, 0, 0].round(9)).all()
    with pytest.raises(InputError, match="no edge distributions"):
        detect(open_detector(f"transformers:{saved('RTDetr')[2]}"), [WIDE], [7], options)


def test_random_passes_of_transformers(saved: Saved) -> None:
    folder = saved("RTDetr")[2]
    detector = open_detector(f"transformers:{folder}", dropout=Dropout(rate=0.2, layers="heads"))
    assert detector.dropout_layers  # type: ignore[attr-defined]
    assert all("_embed" in name or "_head" in name for name in detector.dropout_layers)  # type: ignore[attr-defined]
    plain = detector.candidates([WIDE])[0]
    first, second = detector.sample([WIDE], 2, [7])[0]
    again = detector.sample([HIGH, WIDE], 2, [3, 7])[1]
    assert not np.array_equal(first.scores, second.scores)
    np.testing.assert_array_equal(first.scores, again[0].scores)
    np.testing.assert_array_equal(plain.scores, detector.candidates([WIDE])[0].scores)
    with pytest.raises(InputError, match="with dropout"):
        open_detector(f"transformers:{folder}").sample([WIDE], 2, [7])


def test_numbers_that_no_category_has_are_left_out(saved: Saved, tmp_path: Path) -> None:
    folder = shutil.copytree(saved("Detr")[2], tmp_path / "gaps")
    config = json.loads((folder / "config.json").read_text())
    config["id2label"], config["label2id"] = {"0": "N/A", "1": "dog", "2": "N/A"}, {"N/A": 2, "dog": 1}
    (folder / "config.json").write_text(json.dumps(config))
    found = open_detector(f"transformers:{folder}")
    whole = open_detector(f"transformers:{saved('Detr')[2]}").candidates([WIDE])[0]
    assert found.family.classes == ("dog",)
    np.testing.assert_array_equal(found.candidates([WIDE])[0].scores[:, 0], whole.scores[:, 1])
    config["id2label"] = {"0": "dog", "1": "dog", "2": "cat"}
    (folder / "config.json").write_text(json.dumps(config))
    _says("several classes of the model have the name 'dog'", f"transformers:{folder}")
    named = open_detector(f"transformers:{folder}", classes=["x", "y", "z"])
    assert named.family.classes == ("x", "y", "z")
    _says("expected 3 class names", f"transformers:{folder}", classes=["x"])


def test_how_photos_are_placed_tells_models_apart(saved: Saved, tmp_path: Path) -> None:
    folder = shutil.copytree(saved("RTDetr")[2], tmp_path / "other")
    before = open_detector(f"transformers:{folder}").fingerprint
    assert before == open_detector(f"transformers:{saved('RTDetr')[2]}").fingerprint
    masked = [open_detector(f"transformers:{folder}", dropout=Dropout(seed=seed)).fingerprint for seed in (0, 1)]
    assert len({before, *masked}) == 3
    settings = json.loads((folder / "preprocessor_config.json").read_text())
    settings["size"] = {"height": 96, "width": 96}
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))
    assert open_detector(f"transformers:{folder}").fingerprint != before


def test_what_transformers_cannot_open_is_said(saved: Saved, tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    _says("expected a folder written by save_pretrained", "transformers:facebook/detr-resnet-50")
    folder = shutil.copytree(saved("Detr")[2], tmp_path / "broken")
    weights = folder / "model.safetensors"
    tensors = safetensors.load_file(weights)
    safetensors.save_file({key: own for key, own in tensors.items() if "bbox_predictor" not in key}, weights)
    _says("6 of the model's weights are missing from its files (first bbox_predictor", f"transformers:{folder}")
    weights.unlink()
    _says("transformers can't read this model", f"transformers:{folder}")
    (folder / "preprocessor_config.json").unlink()
    _says("expected preprocessor_config.json in this folder", f"transformers:{folder}")
    (folder / "config.json").write_text("{}")
    (folder / "preprocessor_config.json").write_text("{}")
    _says("transformers can't read this model", f"transformers:{folder}")


@pytest.fixture(scope="module")
def yolo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    torch.manual_seed(0)
    model = frameworks.ultralytics().YOLO("yolov8n.yaml")
    path = tmp_path_factory.mktemp("yolo") / "best.pt"
    model.save(path)
    return model, path


def test_a_file_of_ultralytics_is_opened(yolo: tuple[Any, Path]) -> None:
    model, path = yolo
    opened = open_detector(f"ultralytics:{path}", size=(96, 64), threads=1)
    own = UltralyticsDetector(model, imgsz=(64, 96))
    _same(opened.candidates([WIDE])[0], own.candidates([WIDE])[0], rtol=2e-2, atol=0.5)  # saved in half precision
    assert opened.candidates([WIDE])[0].boxes.shape == own.candidates([WIDE])[0].boxes.shape
    assert opened.family == own.family
    assert opened.family.has_edges
    assert opened.fingerprint != open_detector(f"ultralytics:{path}", size=(64, 64)).fingerprint


def test_what_ultralytics_cannot_open_is_said(
    yolo: tuple[Any, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _says("yolo11n.pt: no such file; probox downloads no models", "ultralytics:yolo11n.pt")
    assert not list(tmp_path.iterdir())
    _says("a model definition without weights", "ultralytics:yolov8n.yaml")
    _says("expected a .pt file", "ultralytics:best.onnx")
    Path("oops.pt").write_bytes(b"oops")
    _says("oops.pt: expected a .pt file of Ultralytics", "ultralytics:oops.pt")
    torch.save({"epoch": 3}, "other.pt")
    _says("other.pt: contains no network", "ultralytics:other.pt")
    _says("expected 80 class names", f"ultralytics:{yolo[1]}", classes=["cup"])


OPENS = """
import sys, urllib.request, warnings
warnings.simplefilter("ignore")
asked = []
sys.addaudithook(lambda event, _: asked.append(event) if event.startswith("socket.") else None)
from tests.torchvision_shim import load_torchvision
load_torchvision()
asked.clear()
from probox.detect.factory import open_detector
from probox.errors import InputError

for name in ("yolov3.pt", "yolov5s.pt", "yolov8n.pt", "sub/yolov3.pt"):
    try:
        print(name, open_detector(f"ultralytics:{name}", threads=1).fingerprint)
    except InputError as error:
        print(error)
print([event for event in asked if event != "socket.__new__"])
urllib.request.urlopen("http://localhost.invalid/")  # what the proxy is there to see
"""


def test_files_are_neither_renamed_nor_downloaded(yolo: tuple[Any, Path], tmp_path: Path) -> None:
    """Ultralytics' own loader takes yolov3.pt and yolov5s.pt for names, and fetches yolov3u.pt and yolov5su.pt."""
    shutil.copy(yolo[1], tmp_path / "yolov3.pt")
    save_legacy_yolo(tmp_path / "yolov5s.pt")
    seen: list[bytes] = []

    class Proxy(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            seen.append(self.request.recv(1000).splitlines()[0])
            self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Proxy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
        unset = {*names, "NO_PROXY", "YOLO_OFFLINE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"}
        kept = {name: value for name, value in os.environ.items() if name.upper() not in unset}
        proxies = {form: address for name in names for form in (name, name.lower())}
        done = subprocess.run(
            [sys.executable, "-c", OPENS],
            cwd=tmp_path,
            env=kept | proxies | {"PYTHONPATH": str(Path(__file__).parents[2])},
            capture_output=True,
            text=True,
            timeout=300,
        )
        server.shutdown()
    assert done.returncode == 0, done.stderr
    renamed, legacy, missing, elsewhere, asked = done.stdout.splitlines()[-5:]
    assert renamed == f"yolov3.pt {open_detector(f'ultralytics:{yolo[1]}').fingerprint}"
    assert legacy.startswith("yolov5s.pt: holds models.yolo.DetectionModel: ")
    assert missing == "yolov8n.pt: no such file; probox downloads no models: check the path"
    assert elsewhere.startswith("sub/yolov3.pt: no such file")
    assert asked == "[]"
    assert seen == [b"GET http://localhost.invalid/ HTTP/1.1"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["yolov3.pt", "yolov5s.pt"]
