"""Graphs that suppress candidates themselves: boxes with one label and one score, in each exporter's way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from detect_graphs import any_graph, fixed_outputs
from onnx import TensorProto, helper, numpy_helper

from probox.detect import Detector, Options, detect
from probox.detect.graph import COCO_CLASSES
from probox.errors import InputError

CLASSES = ("cup", "dog", "car")
IMAGE = np.full((100, 200, 3), 90, np.uint8)  # 200 wide, 100 high
CORNERS = np.array([[20, 10, 120, 50], [100, 40, 180, 90]], np.float32)
SCORES = np.array([0.9, 0.4], np.float32)


def _refuses_clusters(detector: Detector) -> None:
    """Nothing is left to cluster; what is advised instead works."""
    with pytest.raises(InputError, match="use constant or flip-scale"):
        detect(detector, [IMAGE], [1], Options(uncertainty="nms-clusters"))
    for works in ("constant", "flip-scale"):
        assert len(detect(detector, [IMAGE], [1], Options(uncertainty=works))[0]) > 0


@pytest.mark.parametrize("swapped", [False, True])
def test_mmdeploy(tmp_path: Path, swapped: bool) -> None:
    # The image fills 64 x 32 of the input, from the upper left corner; the third row is what fills up.
    dets = np.concatenate([CORNERS * 64 / 200, SCORES[:, None]], axis=1)
    dets = np.concatenate([dets, np.zeros((1, 5), np.float32)])[None]
    outputs = {"dets": dets, "labels": np.array([[2, 0, -1]], np.int64)}
    outputs = dict(reversed(outputs.items())) if swapped else outputs
    detector = Detector(fixed_outputs(tmp_path / "m.onnx", {"input": [1, 3, 64, 64]}, outputs), classes=CLASSES)
    assert detector.family.name == "mmdeploy"
    found = detector.candidates([IMAGE])[0]
    np.testing.assert_allclose(found.boxes, CORNERS, rtol=1e-5)
    assert found.labels.tolist() == [2, 0]
    np.testing.assert_allclose(found.scores[0], [0.05, 0.05, 0.9], atol=1e-6)
    assert detect(detector, [IMAGE], [1], Options())[0].labels.tolist() == [2, 0]
    _refuses_clusters(detector)
    fed, _ = detector.family.prepare(IMAGE)
    expected = (90 - np.array([103.53, 116.28, 123.675])) / np.array([57.375, 57.12, 58.395])
    np.testing.assert_allclose(fed["input"][0, :, 5, 5], expected, rtol=1e-5)
    np.testing.assert_allclose(fed["input"][0, 0, 60, 5], (114 - 103.53) / 57.375, rtol=1e-5)


@pytest.mark.parametrize(
    ("stem", "pixel"), [((7, 2), (90 - 123.675) / 58.395), ((3, 2), (90 - 103.53) / 57.375), ((3, 1), 90.0)]
)
def test_mmdeploy_s_pixels_follow_from_the_stem(tmp_path: Path, stem: tuple[int, int], pixel: float) -> None:
    kernel, step = stem
    weights = np.zeros((1, 3, kernel, kernel), np.float32)
    path = fixed_outputs(
        tmp_path / "m.onnx", {"input": [1, 3, 64, 64]},
        {"dets": np.zeros((1, 2, 5), np.float32), "labels": np.zeros((1, 2), np.int64)},
    )  # fmt: skip
    model = onnx.load(str(path))
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    conv = helper.make_node("Conv", ["input", "w"], ["stem"], kernel_shape=[kernel, kernel], strides=[step, step])
    model.graph.node.insert(0, conv)
    onnx.save(model, str(path))
    fed, _ = Detector(path, classes=CLASSES).family.prepare(IMAGE)
    np.testing.assert_allclose(fed["input"][0, 0, 5, 5], pixel, rtol=1e-5)


ORDERS = (
    ("num_detections:0", "detection_boxes:0", "detection_scores:0", "detection_classes:0"),
    ("detection_boxes", "detection_classes", "detection_scores", "num_detections"),
    ("a", "b", "c", "d"),  # boxes, classes, scores, number, as TFLite has them
)


@pytest.mark.parametrize("names", ORDERS)
def test_tensorflow(tmp_path: Path, names: tuple[str, ...]) -> None:
    boxes = (CORNERS[:, [1, 0, 3, 2]] / np.array([100, 200, 100, 200]))[None].astype(np.float32)
    boxes = np.concatenate([boxes, np.zeros((1, 1, 4), np.float32)], axis=1)
    parts = {
        "boxes": boxes,
        "scores": np.array([[0.9, 0.4, 0.0]], np.float32),
        "classes": np.array([[3, 1, 1]], np.float32),
        "num": np.array([2], np.float32),
    }
    plain = dict(zip("abcd", (parts["boxes"], parts["classes"], parts["scores"], parts["num"]), strict=True))
    outputs = [
        (name, plain[name] if name in plain else next(part for word, part in parts.items() if word in name), None)
        for name in names
    ]
    outputs = [(name, values, values.shape) for name, values, _ in outputs]
    path = any_graph(tmp_path / "m.onnx", [("image", TensorProto.UINT8, [1, "h", "w", 3])], outputs)
    detector = Detector(path, classes=CLASSES)
    assert detector.family.name == "tensorflow"
    fed, _ = detector.family.prepare(IMAGE)
    assert (fed["image"].shape, fed["image"].dtype) == ((1, 100, 200, 3), np.uint8)  # as it is
    found = detector.candidates([IMAGE])[0]
    np.testing.assert_allclose(found.boxes, CORNERS, rtol=1e-5)
    assert found.labels.tolist() == [2, 0]
    np.testing.assert_allclose(found.scores.max(axis=1), [0.9, 0.4])
    _refuses_clusters(detector)


def test_tensorflow_s_coco_has_ids(tmp_path: Path) -> None:
    parts = [
        ("detection_boxes", np.array([[[0.1, 0.1, 0.5, 0.5]] * 3], np.float32)),
        ("detection_scores", np.array([[0.9, 0.8, 0.7]], np.float32)),
        ("detection_classes", np.array([[72, 1, 12]], np.float32)),  # 12 stands for nothing
        ("num_detections", np.array([3], np.float32)),
    ]
    outputs = [(name, values, values.shape) for name, values in parts]
    path = any_graph(tmp_path / "m.onnx", [("image", TensorProto.UINT8, [1, "h", "w", 3])], outputs)
    found = Detector(path).candidates([IMAGE])[0]
    assert [COCO_CLASSES[label] for label in found.labels] == ["tv", "person"]
    # COCO's names written out are the same as none: 72 is the television, not the 72nd of 80 names.
    assert Detector(path, classes=COCO_CLASSES).candidates([IMAGE])[0].labels.tolist() == found.labels.tolist()
    with pytest.raises(InputError, match=r"gives the label 72, but its classes are 1 to 3 .*; give the names"):
        Detector(path, classes=CLASSES).candidates([IMAGE])


@pytest.mark.parametrize("labels_first", [True, False])
def test_rt_detr_of_its_authors(tmp_path: Path, labels_first: bool) -> None:
    parts = {
        "labels": np.array([[2, 0]], np.int64),
        "boxes": CORNERS[None],
        "scores": SCORES[None],
    }
    order = ("labels", "boxes", "scores") if labels_first else ("boxes", "scores", "labels")
    outputs = [(name, parts[name], ["n", *parts[name].shape[1:]]) for name in order]
    inputs = [("images", TensorProto.FLOAT, ["n", 3, 640, 640]), ("orig_target_sizes", TensorProto.INT64, ["n", 2])]
    detector = Detector(any_graph(tmp_path / "m.onnx", inputs, outputs), classes=CLASSES)
    assert detector.family.name == "rt-detr-top"
    fed, _ = detector.family.prepare(IMAGE)
    assert fed["orig_target_sizes"].tolist() == [[200, 100]]
    np.testing.assert_allclose(fed["images"], 90 / 255, rtol=1e-6)
    found = detector.candidates([IMAGE])[0]
    np.testing.assert_allclose(found.boxes, CORNERS)
    assert found.labels.tolist() == [2, 0]
    # 366 classes of Objects365 are not COCO's: a label beyond says so.
    for label in (79, 80, 200):
        parts["labels"][0, 1] = label
        path = any_graph(tmp_path / "o.onnx", inputs, [(name, parts[name], parts[name].shape) for name in order])
        if label == 79:
            assert Detector(path).candidates([IMAGE])[0].labels.tolist() == [2, 79]
            continue
        with pytest.raises(InputError, match=f"the label {label}, but its classes are 0 to 79"):
            Detector(path).candidates([IMAGE])


def _boxes_labels_scores(path: Path, first: str, order: tuple[str, ...], shape: list) -> Path:
    """A graph whose first step is subtracting a mean, as torchvision's, or nothing of the kind."""
    parts = {"boxes": CORNERS, "labels": np.array([3, 1], np.int64), "scores": SCORES}
    nodes = [helper.make_node(first, ["image", "mean"], ["normal"])]
    weights = [numpy_helper.from_array(np.zeros((3, 1, 1), np.float32), "mean")]
    outs = []
    for name in order:
        kind = helper.np_dtype_to_tensor_dtype(parts[name].dtype)
        weights.append(numpy_helper.from_array(parts[name], f"{name}_c"))
        nodes.append(helper.make_node("Identity", [f"{name}_c"], [name]))
        outs.append(helper.make_tensor_value_info(name, kind, ["n", *parts[name].shape[1:]]))
    ins = [helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)]
    graph = helper.make_graph(nodes, "g", ins, outs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize("order", [("boxes", "labels", "scores"), ("boxes", "scores", "labels")])
@pytest.mark.parametrize("shape", [[3, "h", "w"], [1, 3, "h", "w"]])
def test_torchvision(tmp_path: Path, order: tuple[str, ...], shape: list) -> None:
    detector = Detector(_boxes_labels_scores(tmp_path / "m.onnx", "Sub", order, shape), classes=CLASSES)
    assert detector.family.name == "torchvision"
    fed, _ = detector.family.prepare(IMAGE)
    assert fed["image"].shape == (3, 100, 200) if len(shape) == 3 else (1, 3, 100, 200)
    np.testing.assert_allclose(fed["image"], 90 / 255, rtol=1e-6)
    found = detector.candidates([IMAGE])[0]
    np.testing.assert_allclose(found.boxes, CORNERS)
    assert found.labels.tolist() == [2, 0]
    _refuses_clusters(detector)


def test_torchvision_of_fixed_size(tmp_path: Path) -> None:
    order = ("boxes", "labels", "scores")
    detector = Detector(_boxes_labels_scores(tmp_path / "m.onnx", "Sub", order, [3, 50, 100]), classes=CLASSES)
    np.testing.assert_allclose(detector.candidates([IMAGE])[0].boxes, CORNERS * 2)


def test_the_zoo_s_faster_rcnn_is_another(tmp_path: Path) -> None:
    path = _boxes_labels_scores(tmp_path / "m.onnx", "Mul", ("boxes", "labels", "scores"), [3, "h", "w"])
    assert Detector(path, classes=CLASSES).family.name == "faster-rcnn"
