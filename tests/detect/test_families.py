"""Each family: told from its outputs, and decoded to boxes of the image."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from detect_graphs import any_graph, fixed_outputs, model_of
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from probox.detect import Candidates, Detector, Options, choose_family, detect
from probox.detect.families import FAMILIES, Signature, Tensor, describe_thresholds
from probox.detect.families.base import Plausibility, count_cells, grid
from probox.detect.families.one_stage import YoloV5, YoloX, strides_of_maps
from probox.detect.families.ultralytics_exports import YoloV8, YoloV8Seg
from probox.detect.graph import COCO_CATEGORY_IDS, COCO_CLASSES, Metadata, name_columns, read_classes, read_metadata
from probox.errors import InputError

from .conftest import Run

CLASSES = ("cup", "dog", "car")
IMAGE = np.full((100, 200, 3), 90, np.uint8)  # 200 wide, 100 high


def _signature(inputs: list[tuple], outputs: list[tuple]) -> Signature:
    return Signature(
        tuple(Tensor(f"in{k}", shape) for k, shape in enumerate(inputs)),
        tuple(Tensor(f"out{k}", shape) for k, shape in enumerate(outputs)),
    )


SIGNATURES = {
    "ssd": ([(1, 300, 300, 3)], [(1, 1917, 1, 4), (1, 1917, 90)]),
    "ssd scores first": ([(1, 3, 300, 300)], [(1, 50, 80), (1, 50, 4)]),
    "yolov3": ([(1, 3, None, None), (1, 2)], [(1, None, 4), (1, 80, None), (None, 3)]),
    "yolox": ([(1, 3, 416, 416)], [(1, 3549, 85)]),
    "nanodet": (
        [(1, 3, 416, 416)],
        [(1, 2704, 80), (1, 676, 80), (1, 169, 80), (1, 2704, 32), (1, 676, 32), (1, 169, 32)],
    ),
    "faster-rcnn": ([(3, None, None)], [(None, 4), (None,), (None,)]),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_auto_tells_the_family_from_the_outputs(name: str) -> None:
    family = choose_family(_signature(*SIGNATURES[name]))
    assert family.name == name.split()[0]
    assert family.classes == COCO_CLASSES


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        ([(1, 3, 416, 416)], [(1, 1000)]),  # a classifier
        ([(1, 3, None, None)], [(1, None, 85)]),  # YOLOv5 or YOLOX
        ([(1, 3, 416, 416)], [(1, 100, 85)]),
    ],
)
def test_what_cannot_be_told_asks_for_a_name(inputs: list, outputs: list) -> None:
    with pytest.raises(InputError, match="name the detector's family"):
        choose_family(_signature(inputs, outputs))


def test_a_named_family_is_taken_at_its_word() -> None:
    assert choose_family(_signature([(1, 3, None, None)], [(1, None, 85)]), "yolov5").name == "yolov5"
    with pytest.raises(InputError, match="one of ssd"):
        choose_family(_signature([(1, 3, 416, 416)], [(1, 3549, 85)]), "yolov99")


def test_score_columns_are_named() -> None:
    assert name_columns(80).names == COCO_CLASSES
    ninety = name_columns(90)
    scores = np.zeros((1, 90), np.float32)
    scores[0, 72 - 1] = 1.0  # category 72 is the television
    assert COCO_CLASSES[int(ninety.select(scores).argmax())] == "tv"
    with_background = np.zeros((1, 91), np.float32)
    with_background[0, 72] = 1.0
    assert COCO_CLASSES[int(name_columns(91).select(with_background).argmax())] == "tv"
    assert name_columns(81).take.tolist() == list(range(1, 81))
    assert name_columns(4, CLASSES).take.tolist() == [1, 2, 3]
    assert len(COCO_CATEGORY_IDS) == len(COCO_CLASSES) == 80
    with pytest.raises(InputError, match="81 classes, which are not COCO's"):
        name_columns(81, background=False)
    with pytest.raises(InputError, match="expected 4 class names"):
        name_columns(4, CLASSES, background=False)
    assert name_columns(3, CLASSES, background=False).take.tolist() == [0, 1, 2]
    with pytest.raises(InputError, match="give the names of its classes"):
        name_columns(20)
    with pytest.raises(InputError, match="expected 20 class names"):
        name_columns(20, CLASSES)


def test_names_of_an_export_that_are_not_unique_are_not_taken_for_coco_s() -> None:
    names = ("cup", "cup", *(f"class {number}" for number in range(78)))
    signature = dataclasses.replace(_signature([(1, 3, 64, 64)], [(1, 84, 84)]), metadata=Metadata(names=names))
    assert read_metadata({"names": str(dict(enumerate(names)))}).names == names
    with pytest.raises(InputError, match="several classes have the name 'cup'; give unique"):
        choose_family(signature, "yolov8")
    assert choose_family(signature, "yolov8", [str(number) for number in range(80)]).classes[1] == "1"


@pytest.mark.parametrize(
    ("family", "outputs", "above", "grey"),
    [
        ("yolov8", [(1, 84, 84)], 16, 114 / 255),
        ("yolov5", [(1, 252, 85)], 16, 114 / 255),
        ("yolox", [(1, 84, 85)], 0, 114),
    ],
)
def test_images_lie_on_the_grey_of_their_training(family: str, outputs: list, above: int, grey: float) -> None:
    fed, _ = choose_family(_signature([(1, 3, 64, 64)], outputs), family).prepare(IMAGE)
    ground = np.ones(64, bool)
    ground[above : above + 32] = False  # 200 x 100 at 64 x 32
    np.testing.assert_allclose(fed["in0"][0, :, ground], grey, rtol=1e-6)
    np.testing.assert_allclose(fed["in0"][0, :, ~ground], grey * 90 / 114, rtol=1e-6)


@pytest.mark.parametrize(
    ("family", "outputs"), [("yolox", [(1, 3549, 5 + 4)]), ("yolov3", [(1, 100, 4), (1, 4, 100), (100, 3)])]
)
def test_a_name_too_few_is_no_background(family: str, outputs: list) -> None:
    inputs = [(1, 3, 416, 416), (1, 2)] if family == "yolov3" else [(1, 3, 416, 416)]
    assert choose_family(_signature(inputs, outputs), family, (*CLASSES, "bus")).classes[-1] == "bus"
    with pytest.raises(InputError, match="expected 4 class names for the model's 4 scores, but got 3"):
        choose_family(_signature(inputs, outputs), family, CLASSES)


def test_class_names_are_read(tmp_path: Path) -> None:
    path = tmp_path / "names"
    path.write_text("cup\n\n traffic light \n")
    assert read_classes(path) == ("cup", "traffic light")
    path.write_text('["a", "b"]')
    assert read_classes(path) == ("a", "b")
    for text in ("\ufeffa\nb\n", '\ufeff["a", "b"]'):
        path.write_text(text, encoding="utf-8")
        assert read_classes(path) == ("a", "b")
    path.write_bytes(b"caf\xe9\n")
    with pytest.raises(InputError, match="line 1: expected UTF-8 text, but got byte 0xe9"):
        read_classes(path)
    for wrong in ("", "[1, 2]", "[oops", "[" * 100_000):
        path.write_text(wrong)
        with pytest.raises(InputError, match="names"):
            read_classes(path)


def test_yolov8_decodes(tmp_path: Path) -> None:
    # The image fills 64 x 32 of the 64 x 64 input, from row 16: an input pixel is 3.125 image pixels.
    rows = np.zeros((1, 7, 84), np.float32)
    rows[0, :4, 5] = [32, 32, 16, 8]
    rows[0, 4:, 5] = [0.1, 0.7, 0.2]
    path = fixed_outputs(tmp_path / "m.onnx", {"images": [1, 3, 64, 64]}, {"output0": rows})
    found = Detector(path, classes=CLASSES).candidates([IMAGE])[0]
    np.testing.assert_allclose(found.boxes[5], [24 * 3.125, (28 - 16) * 3.125, 40 * 3.125, (36 - 16) * 3.125])
    np.testing.assert_allclose(found.scores[5], [0.1, 0.7, 0.2])


def test_yolov5_multiplies_objectness(tmp_path: Path) -> None:
    rows = np.zeros((1, 252, 8), np.float32)
    rows[0, 3] = [32, 32, 16, 8, 0.5, 0.2, 0.8, 0.0]
    path = fixed_outputs(tmp_path / "m.onnx", {"images": [1, 3, 64, 64]}, {"output": rows})
    found = Detector(path, classes=CLASSES).candidates([IMAGE])[0]
    np.testing.assert_allclose(found.boxes[3], [75, 37.5, 125, 62.5])
    np.testing.assert_allclose(found.scores[3], [0.1, 0.4, 0.0])


def test_yolox_decodes_cells_and_strides(tmp_path: Path) -> None:
    rows = np.zeros((1, 84, 8), np.float32)  # 64 + 16 + 4 cells
    rows[0, 8 * 2 + 5] = [0.5, 0.25, np.log(3), np.log(2), 0.9, 0.0, 0.0, 1.0]  # row 2, column 5, stride 8
    rows[0, 64 + 4 + 1] = [0, 0, 0, 0, 1.0, 0.5, 0.0, 0.0]  # row 1, column 1, stride 16
    rows[0, 83] = [0, 0, 300, 300, 1.0, 0.5, 0.0, 0.0]  # overflow in float32
    path = fixed_outputs(tmp_path / "m.onnx", {"images": [1, 3, 64, 64]}, {"output": rows})
    found = Detector(path, classes=CLASSES).candidates([IMAGE])[0]
    centre, half = np.array([5.5 * 8, 2.25 * 8]), np.array([12.0, 8.0])
    scale = 200 / 64
    np.testing.assert_allclose(found.boxes[21], np.concatenate([centre - half, centre + half]) * scale, rtol=1e-6)
    np.testing.assert_allclose(found.boxes[69], np.array([8, 8, 24, 24]) * scale)
    np.testing.assert_allclose(found.scores[21], [0, 0, 0.9], rtol=1e-6)
    assert np.isfinite(found.boxes).all()


def test_yolov3_of_the_zoo(tmp_path: Path) -> None:
    boxes = np.array([[[10, 20, 60, 120], [0, 0, 5, 5]]], np.float32)  # y1, x1, y2, x2 in pixels of the image
    scores = np.array([[[0.1, 0.3], [0.8, 0.0], [0.2, 0.0]]], np.float32)
    path = fixed_outputs(
        tmp_path / "m.onnx",
        {"input_1": [1, 3, "h", "w"], "image_shape": [1, 2]},
        {"boxes": boxes, "scores": scores, "indices": np.array([[0, 1, 0]], np.int32)},
        {"boxes": [1, "n", 4], "scores": [1, 3, "n"], "indices": ["m", 3]},
    )
    found = Detector(path, classes=CLASSES).candidates([IMAGE])[0]
    np.testing.assert_allclose(found.boxes[0], [20, 10, 120, 60])
    np.testing.assert_allclose(found.scores[0], [0.1, 0.8, 0.2])


@pytest.mark.parametrize("channels_last", [True, False])
def test_ssd_decodes(tmp_path: Path, channels_last: bool) -> None:
    boxes = np.array([[[0.1, 0.2, 0.5, 0.6]]], np.float32)
    scores = np.array([[[0.3, 0.6, 0.1]]], np.float32)
    shape = [1, 30, 30, 3] if channels_last else [1, 3, 30, 30]
    path = fixed_outputs(tmp_path / "m.onnx", {"image": shape}, {"boxes": boxes, "scores": scores})
    expected = [40, 10, 120, 50] if channels_last else [20, 20, 100, 60]
    found = Detector(path, classes=CLASSES).candidates([IMAGE])[0]
    np.testing.assert_allclose(found.boxes[0], expected, rtol=1e-6)
    np.testing.assert_allclose(found.scores[0], [0.3, 0.6, 0.1])


@pytest.mark.parametrize("bins", [4, 17])
def test_nanodet_has_edge_variances(tmp_path: Path, bins: int) -> None:
    cells = (64, 16, 4)
    scores = [np.zeros((1, n, 3), np.float32) for n in cells]
    edges = [np.zeros((1, n, 4 * bins), np.float32) for n in cells]
    scores[0][0, 8 * 3 + 4] = [0.1, 0.9, 0.0]
    edges[0][0, 8 * 3 + 4] = _logits(bins)
    outputs = {f"s{k}": part for k, part in enumerate(scores)} | {f"e{k}": part for k, part in enumerate(edges)}
    path = fixed_outputs(tmp_path / "m.onnx", {"input": [1, 3, 64, 64]}, outputs)
    detector = Detector(path, classes=CLASSES)
    assert (detector.family.name, detector.family.strides) == ("nanodet", (8, 16, 32))
    found = detector.candidates([IMAGE])[0]
    point = np.array([4 * 8 + 3.5, 3 * 8 + 3.5])
    expected = np.array([point[0] - 8, point[1] - 16, point[0] + 16, point[1] + 8]) - [0, 16, 0, 16]
    np.testing.assert_allclose(found.boxes[28], expected * 3.125, rtol=1e-6)
    np.testing.assert_allclose(found.covariances[[28]][0, 0], np.diag([0, 64]) * 3.125**2, atol=1e-4)
    np.testing.assert_allclose(found.covariances[[28]][0, 1], np.diag([0, 64]) * 3.125**2, atol=1e-4)


def test_faster_rcnn_of_the_zoo_spreads_one_score(tmp_path: Path) -> None:
    # 100 x 200 is scaled by 1333 / 200: the longer side may not pass 1333.
    boxes = np.array([[66.65, 66.65, 666.5, 333.25], [0, 0, 60, 60], [0, 0, 9, 9]], np.float32)
    path = fixed_outputs(
        tmp_path / "m.onnx",
        {"image": [3, "h", "w"]},
        {"boxes": boxes, "labels": np.array([2, 3, 0], np.int64), "scores": np.array([0.8, 0.1, 0.9], np.float32)},
        {"boxes": ["n", 4], "labels": ["n"], "scores": ["n"]},
    )
    detector = Detector(path, classes=CLASSES)
    found = detector.candidates([IMAGE])[0]
    np.testing.assert_allclose(found.boxes[0], [10, 10, 100, 50], rtol=1e-3)
    # The background is left out; a class never gets less than the others.
    np.testing.assert_allclose(found.scores, [[0.1, 0.8, 0.1], [0.1, 0.1, 0.1]], atol=1e-6)
    plain = detect(detector, [IMAGE], [1], Options())[0]
    assert plain.labels.tolist() == [1, 2]
    with pytest.raises(InputError, match="no suppressed candidates to cluster"):
        detect(detector, [IMAGE], [1], Options(uncertainty="nms-clusters"))


def test_a_family_that_does_not_fit_is_said(ssd: Path, tmp_path: Path) -> None:
    for wrong in ("yolov8", "yolox", "nanodet", "yolov3"):
        with pytest.raises(InputError, match=r"ssd\.onnx"):
            Detector(ssd, family=wrong, classes=CLASSES).candidates([IMAGE])
    rows = np.zeros((1, 60, 8), np.float32)  # not a row for each of the 84 cells
    path = fixed_outputs(tmp_path / "m.onnx", {"images": [1, 3, 64, 64]}, {"output": rows})
    with pytest.raises(InputError, match=r"do not fit the family yolox .*name another family"):
        Detector(path, family="yolox", classes=CLASSES).candidates([IMAGE])


def test_pages_and_help_show_the_thresholds_of_the_code(run: Run) -> None:
    page = (Path(__file__).parents[2] / "docs" / "families.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"^\| `([\w-]+)` \|.* \| (none|[\d.]+) \|$", page, re.M))
    assert shown == {name: "none" if family.suppresses else f"{family.nms_iou:g}" for name, family in FAMILIES.items()}
    assert describe_thresholds() in " ".join(run("--help")[1].split())


def test_yolov8_suppresses_as_ultralytics_does() -> None:
    assert (YoloV5.nms_iou, YoloV8.nms_iou, YoloV8Seg.nms_iou, YoloX.nms_iou) == (0.45, 0.7, 0.7, 0.65)
    spec = importlib.util.find_spec("ultralytics")  # which is not imported: that takes seconds
    if spec is None or spec.origin is None:
        pytest.skip("ultralytics is not installed")
    settings = (Path(spec.origin).parent / "cfg" / "default.yaml").read_text(encoding="utf-8")
    assert f"\niou: {YoloV8.nms_iou:g} " in settings


STRIDES = (8, 16, 32, 64)
BINS = 6


def _logits(bins: int = BINS) -> np.ndarray:
    """Edges of one cell: left 1, top 1 or 3, right 2, bottom 0 or 2 strides."""
    logits = np.full((4, bins), -60.0)
    logits[0, 1] = logits[1, [1, 3]] = logits[2, 2] = logits[3, [0, 2]] = 0
    return logits.ravel()


def _maps(size: tuple[int, int], at: int, level: int, bins: int = BINS) -> tuple[list[np.ndarray], list[np.ndarray]]:
    cells = [count_cells(size, (stride,)) for stride in STRIDES]
    scores = [np.full((1, n, 3), 0.01, np.float32) for n in cells]
    edges = [np.zeros((1, n, 4 * bins), np.float32) for n in cells]
    scores[level][0, at] = [0.1, 0.8, 0.05]
    edges[level][0, at] = _logits(bins)
    return scores, edges


def _arranged(scores: list, edges: list, order: str) -> dict[str, np.ndarray]:
    turns = [part for pair in zip(scores, edges, strict=True) for part in pair]
    swapped = [part for pair in zip(edges, scores, strict=True) for part in pair]
    ways = {"halves": [*scores, *edges], "turns": turns, "edges first": [*edges, *scores], "edges in turn": swapped}
    return {f"out{number}": part for number, part in enumerate(ways[order])}


@pytest.mark.parametrize("order", ["halves", "turns", "edges first", "edges in turn"])
def test_picodet_decodes(tmp_path: Path, order: str) -> None:
    # The image is stretched to 96 x 64: stride 16 has 6 x 4 cells, and 64 rounds up to 2 x 1.
    size, level, column, row = (96, 64), 1, 4, 2
    outputs = _arranged(*_maps(size, 6 * row + column, level), order)
    path = fixed_outputs(tmp_path / "m.onnx", {"image": [1, 3, 64, 96]}, outputs)
    detector = Detector(path, classes=CLASSES)
    assert (detector.family.name, detector.family.strides) == ("picodet", STRIDES)
    found = detector.candidates([IMAGE])[0]
    best = 12 * 8 + 6 * row + column
    assert found.scores.argmax() == 3 * best + 1
    point = np.array([(column + 0.5) * 16, (row + 0.5) * 16])
    expected = np.array([point[0] - 16, point[1] - 32, point[0] + 32, point[1] + 16])
    scale = np.array([200 / 96, 100 / 64, 200 / 96, 100 / 64])
    np.testing.assert_allclose(found.boxes[best], expected * scale, rtol=1e-6)
    np.testing.assert_allclose(found.covariances[[best]][0, 0], np.diag([0, (16 * 100 / 64) ** 2]), atol=1e-3)
    np.testing.assert_allclose(found.covariances[[best]][0, 1], np.diag([0, (16 * 100 / 64) ** 2]), atol=1e-3)
    sure = detect(detector, [IMAGE], [1], Options(uncertainty="edge-distribution", score_threshold=0.5))[0]
    assert len(sure) == 1


def test_picodet_sees_rgb_with_imagenet_s_mean(tmp_path: Path) -> None:
    outputs = _arranged(*_maps((64, 64), 0, 0), "halves")
    family = Detector(fixed_outputs(tmp_path / "m.onnx", {"image": [1, 3, 64, 64]}, outputs), classes=CLASSES).family
    image = np.zeros((64, 64, 3), np.uint8)
    image[..., 0] = 255
    fed, _ = family.prepare(image)
    expected = (np.array([1, 0, 0]) - np.array([0.485, 0.456, 0.406])) / np.array([0.229, 0.224, 0.225])
    np.testing.assert_allclose(fed["image"][0, :, 3, 3], expected, rtol=1e-4)


def test_the_number_of_names_tells_scores_from_edges(tmp_path: Path) -> None:
    # 24 classes and two bins for each edge, or 8 classes and six bins.
    cells = [count_cells((64, 64), (stride,)) for stride in STRIDES]
    scores = [np.full((1, n, 24), 0.2, np.float32) for n in cells]
    edges = [np.zeros((1, n, 8), np.float32) for n in cells]
    for number, (order, names) in enumerate((("halves", 24), ("edges first", 24))):
        path = tmp_path / f"{number}.onnx"
        fixed_outputs(path, {"image": [1, 3, 64, 64]}, _arranged(scores, edges, order))
        found = Detector(path, classes=[f"c{k}" for k in range(names)]).candidates([IMAGE])[0]
        np.testing.assert_allclose(found.scores, 0.2)
    with pytest.raises(InputError, match=r"expected 24 class names"):
        Detector(tmp_path / "0.onnx", classes=[f"c{k}" for k in range(23)])  # there is no background to leave out


def test_nanodet_plus_decodes(tmp_path: Path) -> None:
    # One output over 64 + 16 + 4 + 1 cells of a 64 x 64 input: 3 classes, then 4 edges.
    scores, edges = _maps((64, 64), 2, 2)
    rows = np.concatenate([np.concatenate(scores, axis=1), np.concatenate(edges, axis=1)], axis=2)
    path = fixed_outputs(tmp_path / "m.onnx", {"data": [1, 3, 64, 64]}, {"output": rows})
    detector = Detector(path, classes=CLASSES)
    assert detector.family.name == "nanodet-plus"
    found = detector.candidates([IMAGE])[0]
    best = 64 + 16 + 2
    np.testing.assert_allclose(found.scores[best], [0.1, 0.8, 0.05], rtol=1e-6)
    # Column 0, row 1 of stride 32: the point is its first pixel.
    expected = np.array([0 - 32, 32 - 64, 0 + 64, 32 + 32]) * np.array([200 / 64, 100 / 64] * 2)
    np.testing.assert_allclose(found.boxes[best], expected, rtol=1e-6)
    np.testing.assert_allclose(found.covariances[[best]][0, 0], np.diag([0, (32 * 100 / 64) ** 2]), atol=1e-3)
    fed, _ = detector.family.prepare(IMAGE)
    expected = (90 - np.array([103.53, 116.28, 123.675])) / np.array([57.375, 57.12, 58.395])
    np.testing.assert_allclose(fed["data"][0, :, 9, 9], expected, rtol=1e-5)
    # Stretched from the first pixel: the second of 64 columns lies 200 / 64 pixels on, between the 4th and the 5th.
    ramp = np.repeat(np.arange(200, dtype=np.uint8)[None, :, None], 3, axis=2).repeat(100, axis=0)
    fed, _ = detector.family.prepare(ramp)
    np.testing.assert_allclose(fed["data"][0, 0, 5, :3] * 57.375 + 103.53, [0, 3, 6], atol=1e-4)


def _open(shapes: list[tuple[int, ...]]) -> Signature:
    tensors = tuple(Tensor(f"out{number}", (None, None, None)) for number in range(len(shapes)))
    return Signature((Tensor("image", (None, 3, None, None)),), tensors, trial=tuple(shapes), trial_size=(320, 640))


def test_open_axes_are_tried() -> None:
    cells = [count_cells((320, 640), (stride,)) for stride in STRIDES]
    maps = [shape for n in cells for shape in ((1, n, 3), (1, n, 24))]
    family = choose_family(_open(maps), classes=CLASSES, size=(96, 64))
    assert (family.name, family.strides, family.input_size()) == ("picodet", STRIDES, (96, 64))
    plus = choose_family(_open([(1, sum(cells), 35)]), classes=CLASSES)
    assert (plus.name, plus.classes) == ("nanodet-plus", CLASSES)


def test_nanodet_plus_needs_the_number_of_classes(tmp_path: Path) -> None:
    path = fixed_outputs(tmp_path / "m.onnx", {"data": [1, 3, 64, 64]}, {"output": np.zeros((1, 85, 35), np.float32)})
    with pytest.raises(InputError, match=r"35 columns do not fit 80 classes .*give the names of its classes"):
        Detector(path)
    with pytest.raises(InputError, match="35 columns do not fit 2 classes"):
        Detector(path, classes=CLASSES[:2])
    assert Detector(path, classes=CLASSES).family.classes == CLASSES


def test_maps_of_no_stride_are_refused(tmp_path: Path) -> None:
    scores, edges = _maps((64, 64), 0, 0)
    outputs = {f"out{k}": part for k, part in enumerate([*scores, *edges])}
    path = fixed_outputs(tmp_path / "m.onnx", {"image": [1, 3, 72, 72]}, outputs)
    with pytest.raises(InputError, match=r"no stride makes 64 cells of an input of 72 x 72"):
        Detector(path, classes=CLASSES)


@given(st.integers(32, 900), st.integers(32, 900))
def test_strides_are_told_from_cells(width: int, height: int) -> None:
    cells = [len(grid((width, height), (stride,))[0]) for stride in STRIDES]
    assert strides_of_maps(cells, (width, height)) == STRIDES or len(set(cells)) < len(cells)
    assert strides_of_maps([None, None], (width, height)) == (8, 16)
    assert sum(cells) == count_cells((width, height), STRIDES)


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
    with pytest.raises(InputError, match=r"returned the label 72, but its classes are 1 to 3 .*; give the names"):
        Detector(path, classes=CLASSES).candidates([IMAGE])


@pytest.mark.parametrize("labels_first", [True, False])
def test_rt_detr_of_its_authors(tmp_path: Path, labels_first: bool) -> None:
    parts = {"labels": np.array([[2, 0]], np.int64), "boxes": CORNERS[None], "scores": SCORES[None]}
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
    nodes += [helper.make_node("Identity", [f"{name}_c"], [name]) for name in order]
    weights = {"mean": np.zeros((3, 1, 1), np.float32)} | {f"{name}_c": value for name, value in parts.items()}
    outputs = {name: ["n", *parts[name].shape[1:]] for name in order}
    model = model_of(nodes, {"image": shape}, outputs, weights, kinds={"labels": TensorProto.INT64})
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


RNG = np.random.default_rng(7)


def _candidates(count: int = 120) -> Candidates:
    low = RNG.uniform(0, 80, (count, 2)) * [2, 1]
    boxes = np.concatenate([low, low + RNG.uniform(5, 40, (count, 2))], axis=1)
    return Candidates(boxes, RNG.uniform(0, 0.6, (count, 3)).astype(np.float32))


def _check(found: Candidates) -> tuple[str, ...]:
    judge = Plausibility("yolov8", ["output0"], "m.onnx")
    judge.check(found, [np.array([[-3.0, 5.0]])], (200, 100))
    return judge.notes


def _with(found: Candidates, **changed: np.ndarray) -> Candidates:
    return Candidates(
        changed.get("boxes", found.boxes), changed.get("scores", found.scores), None, changed.get("labels")
    )


def test_usual_and_weak_candidates_pass() -> None:
    assert _check(_candidates()) == ()
    weak = _with(_candidates(), scores=np.full((120, 3), 1e-4, np.float32))
    (said,) = _check(weak)  # a black photo: said, not refused
    assert "no candidate of 1 images scored above 0.05" in said
    assert _check(_candidates().select(np.arange(0))) != ()
    nothing = _with(weak, boxes=np.zeros((120, 4)) + np.arange(120)[:, None])  # fill of graphs that found nothing
    assert len(_check(nothing)) == 1


@pytest.mark.parametrize("count", [1, 9])
def test_few_boxes_may_be_as_large_as_the_image(count: int) -> None:
    whole = np.tile([0.0, 0.0, 200.0, 100.0], (count, 1))
    assert _check(_with(_candidates(count), boxes=whole)) == ()


def _scores(value: float) -> np.ndarray:
    scores = RNG.uniform(0, 0.6, (120, 3)).astype(np.float32)
    scores[17, 1] = value
    return scores


BAD_SCORES = {
    "not numbers": [_scores(np.nan), _scores(np.inf)],
    "expected 0 to 1": [_scores(1.01), _scores(-0.01), RNG.normal(0, 3, (120, 3)).astype(np.float32)],
    "sigmoid of a sigmoid": [RNG.uniform(0.5, 0.7, (120, 3)).astype(np.float32)],
}


@pytest.mark.parametrize(("sign", "number"), [(sign, k) for sign, bad in BAD_SCORES.items() for k in range(len(bad))])
def test_scores_that_are_none(sign: str, number: int) -> None:
    found = _with(_candidates(), scores=BAD_SCORES[sign][number])
    with pytest.raises(InputError, match=rf"m\.onnx: read as yolov8, but .*{sign}.*output0 \[1, 2\] -3 to 5.*famil"):
        _check(found)


@pytest.mark.parametrize("value", [1.0005, -0.0005])
def test_rounding_of_scores_passes(value: float) -> None:
    assert _check(_with(_candidates(), scores=_scores(value))) == ()


BAD_BOXES = {
    "not numbers": lambda usual: np.where(np.arange(120)[:, None] == 3, np.nan, usual),
    "100 times as large": lambda usual: (usual - 50) * 1000,
    "x2 < x1": lambda usual: usual[:, [2, 3, 0, 1]],
    "as large as the image": lambda usual: np.tile([-5.0, 0.0, 200.0, 130.0], (120, 1)),
    "no box overlaps the image": lambda usual: usual + 1000,
    "one hundredth of the image": lambda usual: usual / 300,
}


def _boxes(sign: str) -> np.ndarray:
    return BAD_BOXES[sign](_candidates().boxes)


@pytest.mark.parametrize("sign", BAD_BOXES)
def test_boxes_that_are_none(sign: str) -> None:
    scores = np.full((120, 3), 0.3, np.float32) - np.arange(120, dtype=np.float32)[:, None] / 1000
    with pytest.raises(InputError, match=sign):
        _check(_with(_candidates(), boxes=_boxes(sign), scores=scores))


def test_boxes_nobody_means_may_be_anywhere() -> None:
    weak = np.full((120, 3), 0.04, np.float32)
    for sign in ("not numbers", "no box overlaps the image"):
        _check(_with(_candidates(), boxes=_boxes(sign), scores=weak))


def test_half_of_the_boxes_may_be_odd() -> None:
    usual = _candidates().boxes
    for sign in ("100 times as large", "x2 < x1"):
        some = usual.copy()
        some[:59] = _boxes(sign)[:59]
        _check(_with(_candidates(), boxes=some))


def test_the_same_scores_everywhere_are_odd() -> None:
    (said,) = _check(_with(_candidates(), scores=np.tile(np.float32([0.1, 0.4, 0.2]), (120, 1))))
    assert said == "all 120 candidates of an image have the same scores"


def test_boxes_of_later_images_are_not_looked_at_but_scores_are() -> None:
    judge = Plausibility("yolov8", ["output0"], "m.onnx")
    for _ in range(8):
        judge.check(_candidates(), [], (200, 100))
    judge.check(_with(_candidates(), boxes=_boxes("no box overlaps the image")), [], (200, 100))
    with pytest.raises(InputError, match="not numbers"):
        judge.check(_with(_candidates(), scores=_scores(np.nan)), [], (200, 100))


def test_logits_are_no_scores(tmp_path: Path) -> None:
    rows = RNG.normal(0, 5, (1, 7, 84)).astype(np.float32)
    path = fixed_outputs(tmp_path / "m.onnx", {"images": [1, 3, 64, 64]}, {"output0": rows})
    with pytest.raises(InputError, match=r"scores .*-\d.* to \d.*output0 \[1, 7, 84\] -\d.* to \d"):
        Detector(path, classes=CLASSES, family="yolov8").candidates([IMAGE])


def test_cx_cy_w_h_are_no_corners(tmp_path: Path) -> None:
    boxes = np.concatenate([RNG.uniform(0.3, 0.9, (60, 2)), RNG.uniform(0.01, 0.2, (60, 2))], axis=1)
    scores = RNG.uniform(0, 0.9, (60, 3))
    path = fixed_outputs(
        tmp_path / "m.onnx", {"image": [1, 3, 30, 30]},
        {"boxes": boxes[None].astype(np.float32), "scores": scores[None].astype(np.float32)},
    )  # fmt: skip
    with pytest.raises(InputError, match=r"read as ssd, but most boxes have x2 < x1 or y2 < y1"):
        Detector(path, classes=CLASSES).candidates([IMAGE])
