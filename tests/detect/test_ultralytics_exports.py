"""Exports of small, randomly initialised models of Ultralytics, against what the same weights say in torch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.amounts import others_slow
from tests.frameworks import quiet, ultralytics

from probox.detect import Detector, Options, detect
from probox.detect.families.base import grid
from probox.detect.ultralytics_detector import UltralyticsDetector, dfl_corners

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

BACKBONE = """
nc: 3
backbone:
  - [-1, 1, Conv, [8, 3, 2]]
  - [-1, 1, Conv, [16, 3, 2]]
  - [-1, 1, Conv, [16, 3, 2]]
  - [-1, 1, Conv, [16, 3, 2]]
  - [-1, 1, Conv, [16, 3, 2]]
  - [-1, 1, Conv, [16, 3, 2]]
head:
  - [{head}]
"""
HEADS = {
    "p6": ("[2, 3, 4, 5], 1, Detect, [nc]", {"imgsz": 128}),
    "old": ("[2, 3, 4], 1, Detect, [nc]", {"imgsz": (96, 128), "opset": 12}),
    "seg": ("[2, 3, 4], 1, Segment, [nc, 8, 16]", {"imgsz": (96, 128), "dynamic": True}),
    "v10": ("[2, 3, 4], 1, v10Detect, [nc]", {"imgsz": (96, 128), "nms": False}),
    "rtdetr": ("[2, 3, 4], 1, RTDETRDecoder, [nc, 32, 30, 4, 4, 2, 64]", {"imgsz": 128}),
}


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[Any, Path]]]:
    pytest.importorskip("onnxruntime")
    library = ultralytics()
    import torch

    folder, before = tmp_path_factory.mktemp("exports"), Path.cwd()
    os.chdir(folder)
    made: dict[str, tuple[Any, Path]] = {}
    try:
        with quiet():
            torch.manual_seed(1)
            for name, (head, asked) in HEADS.items():
                Path(f"{name}.yaml").write_text(BACKBONE.format(head=head))
                model = (library.RTDETR if name == "rtdetr" else library.YOLO)(f"{name}.yaml")
                _sharpen(model.model)
                file = model.export(format="onnx", simplify=False, verbose=False, **asked)
                made[name] = (model, folder / file)
        yield made
    finally:
        os.chdir(before)


def _sharpen(network: Any) -> None:
    """Let a random model say something: its last layers are made to differ from cell to cell."""
    import torch

    head = network.model[-1]
    branches = [getattr(head, name, None) for name in ("cv2", "cv3", "cv4", "one2one_cv2", "one2one_cv3")]
    lasts = [branch[-1] for part in branches if part is not None for branch in part]
    lasts += list(getattr(head, "dec_score_head", ()))
    with torch.no_grad():
        for module in network.modules():  # weights of a network that has seen nothing are tiny
            if isinstance(module, torch.nn.BatchNorm2d):
                module.weight.mul_(2.5)
        for last in lasts:
            last.weight.copy_(torch.randn_like(last.weight) * 0.8)
            last.bias.copy_(torch.randn_like(last.bias) - (1.5 if len(last.bias) == 3 else 0.0))
            if len(last.bias) == 64:  # boxes smaller than the image
                last.bias.sub_(0.5 * torch.arange(16).repeat(4))
        if hasattr(head, "proto"):
            head.proto.cv3.bn.weight.mul_(20)


@pytest.fixture(scope="module")
def photo() -> np.ndarray:
    coarse = np.random.default_rng(4).integers(0, 255, (12, 16, 3), dtype=np.uint8)
    return np.kron(coarse, np.ones((8, 8, 1), np.uint8))


@pytest.mark.parametrize(
    ("name", "family"), others_slow([("old", "yolov8"), ("seg", "yolov8-seg"), ("p6", "yolov8")], 2, several=True)
)
def test_candidates_and_variances_are_those_of_torch(exports: dict, photo: np.ndarray, name: str, family: str) -> None:
    model, path = exports[name]
    # P6 sees 128 x 128 in the export; torch would pad to a multiple of 64 only, which is the same here.
    photo = np.pad(photo, ((16, 16), (0, 0), (0, 0)), constant_values=114) if name == "p6" else photo
    size = photo.shape[1], photo.shape[0]
    ours, theirs = Detector(path), UltralyticsDetector(model, imgsz=(size[1], size[0]))
    assert (ours.family.name, ours.family.input_size(), ours.family.has_edges) == (family, size, True)
    found, expected = ours.candidates([photo])[0], theirs.candidates([photo])[0]
    assert np.ptp(expected.scores) > 0.3
    np.testing.assert_allclose(found.scores, expected.scores, atol=2e-5)
    np.testing.assert_allclose(found.boxes, expected.boxes, atol=5e-3)
    variances = np.diagonal(expected.covariances, axis1=2, axis2=3)
    assert np.ptp(variances) > 1.0
    np.testing.assert_allclose(found.covariances[:], expected.covariances, rtol=1e-3, atol=1e-3)


def test_masks_are_those_of_ultralytics(exports: dict, photo: np.ndarray) -> None:
    model, path = exports["seg"]
    with quiet():
        result = model.predict(
            photo[:, :, ::-1], imgsz=(96, 128), conf=0.3, retina_masks=True, verbose=False, device="cpu"
        )[0]
    assert len(result) > 3
    candidates = Detector(path).candidates([photo])[0]
    agreed = compared = 0
    for box, mask in zip(result.boxes.xyxy.numpy(), result.masks.data.numpy(), strict=True):
        apart = np.abs(candidates.boxes - box).max(axis=1)
        row = apart.argmin()
        if apart[row] > 0.01:  # clipped to the image: which of them it was can't be told
            continue
        heat = np.asarray(candidates.heatmaps(np.array([row]), box[None].astype(np.float64))[0])
        assert ((heat >= 0.5) != (mask > 0)).sum() <= 0.01 * (heat > 0).sum()
        agreed += int((mask > 0).sum())
        compared += int((heat > 0).sum())
    assert 0.1 < agreed / compared < 0.9


def test_end_to_end_has_all_scores_and_edges(exports: dict, photo: np.ndarray) -> None:
    import torch

    model, path = exports["v10"]
    detector = Detector(path)
    assert (detector.family.name, detector.family.has_edges) == ("end-to-end", True)
    network = model.model.eval()
    pixels = torch.from_numpy(photo.transpose(2, 0, 1)[None].astype(np.float32) / 255)
    network.model[-1].end2end = True
    with torch.no_grad():
        rows, raw = network(pixels)
    rows = rows[0].numpy()
    found = detect(
        detector, [photo], [1], Options(score_threshold=0.3, max_detections=50, uncertainty="edge-distribution")
    )[0]
    rows = rows[rows[:, 4] > 0.3][:50]
    assert len(found) == len(rows) > 5
    np.testing.assert_allclose(found.scores, rows[:, 4], atol=1e-4)
    assert found.labels.tolist() == rows[:, 5].astype(int).tolist()
    raw = raw["one2one"]
    cells, strides = grid((128, 96), (8, 16, 32))
    logits = raw["boxes"][0].numpy().reshape(4, 16, -1).transpose(2, 0, 1)
    boxes, covariances = dfl_corners(logits, cells, strides)
    candidates = detector.candidates([photo])[0]
    np.testing.assert_allclose(candidates.boxes, boxes, atol=5e-3)
    np.testing.assert_allclose(candidates.covariances[:], covariances, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(candidates.scores, raw["scores"][0].sigmoid().numpy().T, atol=2e-5)


def test_rtdetr_gives_the_boxes_of_torch(exports: dict, photo: np.ndarray) -> None:
    model, path = exports["rtdetr"]
    detector = Detector(path)
    assert detector.family.name == "rtdetr-ultralytics"
    square = np.pad(photo, ((16, 16), (0, 0), (0, 0)))
    expected = UltralyticsDetector(model, imgsz=128).candidates([square])[0]
    found = detector.candidates([square])[0]
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-4)
    np.testing.assert_allclose(found.boxes, expected.boxes, atol=1e-2)


def test_a_batch_gives_what_each_image_gives(exports: dict, photo: np.ndarray) -> None:
    path = exports["seg"][1]
    other = np.ascontiguousarray(photo[::-1, ::-1])
    both = Detector(path, batch=2).candidates([photo, other])
    for found, image in zip(both, (photo, other), strict=True):
        alone = Detector(path).candidates([image])[0]
        np.testing.assert_allclose(found.boxes, alone.boxes, atol=1e-3)
        np.testing.assert_allclose(found.covariances[:], alone.covariances[:], rtol=1e-4, atol=1e-4)
        rows, boxes = np.array([5]), alone.boxes[[5]]
        np.testing.assert_allclose(
            np.asarray(found.heatmaps(rows, boxes)[0]), np.asarray(alone.heatmaps(rows, boxes)[0]), atol=1e-3
        )
    assert np.abs(both[0].boxes - both[1].boxes).max() > 1
