"""Each family: told from its outputs, and decoded to boxes of the image."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
from detect_graphs import fixed_outputs

from probox.cli import main
from probox.detect import Detector, Options, choose_family, detect
from probox.detect.families import FAMILIES, Signature, Tensor, describe_thresholds
from probox.detect.families.one_stage import YoloV5, YoloX
from probox.detect.families.ultralytics_exports import YoloV8, YoloV8Seg
from probox.detect.graph import COCO_CATEGORY_IDS, COCO_CLASSES, Metadata, name_columns, read_classes, read_metadata
from probox.errors import InputError

CLASSES = ("cup", "dog", "car")
IMAGE = np.full((100, 200, 3), 90, np.uint8)  # 200 wide, 100 high


def _signature(inputs: list[tuple], outputs: list[tuple]) -> Signature:
    return Signature(
        tuple(Tensor(f"in{k}", shape) for k, shape in enumerate(inputs)),
        tuple(Tensor(f"out{k}", shape) for k, shape in enumerate(outputs)),
    )


SIGNATURES = {
    "ssd": ([(1, 300, 300, 3)], [(1, 1917, 1, 4), (1, 1917, 90)]),
    "yolov3": ([(1, 3, None, None), (1, 2)], [(1, None, 4), (1, 80, None), (None, 3)]),
    "yolov5": ([(1, 3, 640, 640)], [(1, 25200, 85)]),
    "yolov8": ([(1, 3, 640, 640)], [(1, 84, 8400)]),
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
    assert family.name == name
    assert family.classes == COCO_CLASSES


@pytest.mark.parametrize("boxes_first", [True, False])
def test_ssd_outputs_may_come_in_any_order(boxes_first: bool) -> None:
    outputs = [(1, 50, 4), (1, 50, 80)]
    signature = _signature([(1, 3, 300, 300)], outputs if boxes_first else outputs[::-1])
    assert choose_family(signature).name == "ssd"


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
    with pytest.raises(InputError, match="several classes are called 'cup'; give names"):
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
    ("family", "outputs"),
    [("yolox", [(1, 3549, 5 + 4)]), ("yolov3", [(1, 100, 4), (1, 4, 100), (100, 3)])],
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


def _candidates(path: Path, **options: object) -> object:
    return Detector(path, classes=CLASSES, **options).candidates([IMAGE])[0]


def test_yolov8_decodes(tmp_path: Path) -> None:
    # The image fills 64 x 32 of the 64 x 64 input, from row 16: an input pixel is 3.125 image pixels.
    rows = np.zeros((1, 7, 84), np.float32)
    rows[0, :4, 5] = [32, 32, 16, 8]
    rows[0, 4:, 5] = [0.1, 0.7, 0.2]
    path = fixed_outputs(tmp_path / "m.onnx", {"images": [1, 3, 64, 64]}, {"output0": rows})
    found = _candidates(path)
    np.testing.assert_allclose(found.boxes[5], [24 * 3.125, (28 - 16) * 3.125, 40 * 3.125, (36 - 16) * 3.125])
    np.testing.assert_allclose(found.scores[5], [0.1, 0.7, 0.2])


def test_yolov5_multiplies_objectness(tmp_path: Path) -> None:
    rows = np.zeros((1, 252, 8), np.float32)
    rows[0, 3] = [32, 32, 16, 8, 0.5, 0.2, 0.8, 0.0]
    path = fixed_outputs(tmp_path / "m.onnx", {"images": [1, 3, 64, 64]}, {"output": rows})
    found = _candidates(path)
    np.testing.assert_allclose(found.boxes[3], [75, 37.5, 125, 62.5])
    np.testing.assert_allclose(found.scores[3], [0.1, 0.4, 0.0])


def test_yolox_decodes_cells_and_strides(tmp_path: Path) -> None:
    rows = np.zeros((1, 84, 8), np.float32)  # 64 + 16 + 4 cells
    rows[0, 8 * 2 + 5] = [0.5, 0.25, np.log(3), np.log(2), 0.9, 0.0, 0.0, 1.0]  # row 2, column 5, stride 8
    rows[0, 64 + 4 + 1] = [0, 0, 0, 0, 1.0, 0.5, 0.0, 0.0]  # row 1, column 1, stride 16
    rows[0, 83] = [0, 0, 300, 300, 1.0, 0.5, 0.0, 0.0]  # overflow in float32
    path = fixed_outputs(tmp_path / "m.onnx", {"images": [1, 3, 64, 64]}, {"output": rows})
    found = _candidates(path)
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
    found = _candidates(path)
    np.testing.assert_allclose(found.boxes[0], [20, 10, 120, 60])
    np.testing.assert_allclose(found.scores[0], [0.1, 0.8, 0.2])


@pytest.mark.parametrize("channels_last", [True, False])
def test_ssd_decodes(tmp_path: Path, channels_last: bool) -> None:
    boxes = np.array([[[0.1, 0.2, 0.5, 0.6]]], np.float32)
    scores = np.array([[[0.3, 0.6, 0.1]]], np.float32)
    shape = [1, 30, 30, 3] if channels_last else [1, 3, 30, 30]
    path = fixed_outputs(tmp_path / "m.onnx", {"image": shape}, {"boxes": boxes, "scores": scores})
    expected = [40, 10, 120, 50] if channels_last else [20, 20, 100, 60]
    found = _candidates(path)
    np.testing.assert_allclose(found.boxes[0], expected, rtol=1e-6)
    np.testing.assert_allclose(found.scores[0], [0.3, 0.6, 0.1])


def test_nanodet_has_edge_variances(tmp_path: Path) -> None:
    cells = (64, 16, 4)
    scores = [np.zeros((1, n, 3), np.float32) for n in cells]
    edges = [np.zeros((1, n, 16), np.float32) for n in cells]  # four bins
    scores[0][0, 8 * 3 + 4] = [0.1, 0.9, 0.0]
    logits = np.full((4, 4), -60.0)
    logits[0, 1] = 0  # left: certain, one stride
    logits[1, [1, 3]] = 0  # top: one or three
    logits[2, 2] = 0
    logits[3, [0, 2]] = 0
    edges[0][0, 8 * 3 + 4] = logits.ravel()
    outputs = {f"s{k}": part for k, part in enumerate(scores)} | {f"e{k}": part for k, part in enumerate(edges)}
    path = fixed_outputs(tmp_path / "m.onnx", {"input": [1, 3, 64, 64]}, outputs)
    found = _candidates(path)
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


def test_a_broken_model_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(b"nonsense")
    with pytest.raises(InputError, match=r"broken\.onnx: ONNX Runtime can't load"):
        Detector(path)
    with pytest.raises(InputError, match=r"missing\.onnx: no such file; check the path"):
        Detector(tmp_path / "missing.onnx")
    with pytest.raises(InputError, match="expected a file, but this is a folder"):
        Detector(tmp_path)


def test_a_family_that_does_not_fit_is_said(ssd: Path, tmp_path: Path) -> None:
    for wrong in ("yolov8", "yolox", "nanodet", "yolov3"):
        with pytest.raises(InputError, match=r"ssd\.onnx"):
            Detector(ssd, family=wrong, classes=CLASSES).candidates([IMAGE])
    rows = np.zeros((1, 60, 8), np.float32)  # not a row for each of the 84 cells
    path = fixed_outputs(tmp_path / "m.onnx", {"images": [1, 3, 64, 64]}, {"output": rows})
    with pytest.raises(InputError, match=r"not those of yolox .*name another family"):
        Detector(path, family="yolox", classes=CLASSES).candidates([IMAGE])


def test_pages_and_help_show_the_thresholds_of_the_code(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "families.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"^\| `([\w-]+)` \|.* \| (none|[\d.]+) \|$", page, re.M))
    assert shown == {name: "none" if family.suppresses else f"{family.nms_iou:g}" for name, family in FAMILIES.items()}
    with pytest.raises(SystemExit):
        main(["detect", "--help"])
    assert describe_thresholds() in " ".join(capsys.readouterr().out.split())


def test_yolov8_suppresses_as_ultralytics_does() -> None:
    assert (YoloV5.nms_iou, YoloV8.nms_iou, YoloV8Seg.nms_iou, YoloX.nms_iou) == (0.45, 0.7, 0.7, 0.65)
    spec = importlib.util.find_spec("ultralytics")  # which is not imported: that takes seconds
    if spec is None or spec.origin is None:
        pytest.skip("ultralytics is not installed")
    settings = (Path(spec.origin).parent / "cfg" / "default.yaml").read_text(encoding="utf-8")
    assert f"\niou: {YoloV8.nms_iou:g} " in settings
