"""DETR and its kin: told apart by the inside of their graphs, and decoded with what each was trained on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from detect_graphs import queries
from onnx import TensorProto

from probox.detect import Detector, Options, detect
from probox.detect.graph import COCO_CLASSES
from probox.detect.transformers_detector import edge_variances
from probox.errors import InputError
from probox.fusion.fuse import bin_values, edges_of

CLASSES = ("cup", "dog", "car")
IMAGE = np.random.default_rng(0).integers(0, 255, (100, 200, 3), dtype=np.uint8)
LOGITS = np.array([[2.0, -1.0, 0.5, 1.0], [-3.0, 4.0, 0.0, -2.0]])
BOXES = np.array([[0.5, 0.4, 0.2, 0.4], [0.25, 0.75, 0.1, 0.3]])
CORNERS = np.array([[80, 20, 120, 60], [40, 60, 60, 90]])  # of the image of 200 x 100
RESNET, DEEP, PATCHES = (7, 2), (3, 2), (16, 16)


def _sigmoid(values: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-values))


@pytest.mark.parametrize(
    ("stem", "refined", "family"),
    [
        (RESNET, False, "detr"),
        (PATCHES, False, "detr"),
        (RESNET, True, "deformable-detr"),
        (PATCHES, True, "rf-detr"),
        (DEEP, True, "rt-detr"),
    ],
)
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_inside_tells_the_family(
    tmp_path: Path, stem: tuple[int, int], refined: bool, family: str, order: tuple[int, int]
) -> None:
    names = CLASSES if family == "detr" else (*CLASSES, "bus")
    # Outputs without telling names are told by the linear layer before them.
    path = queries(
        tmp_path / "m.onnx", LOGITS, BOXES, stem=stem, refined=refined, order=order, names=("a", "some_boxes")
    )
    detector = Detector(path, classes=names)
    assert detector.family.name == family
    found = detector.candidates([IMAGE])[0]
    np.testing.assert_allclose(found.boxes, CORNERS, atol=1e-4)
    if family == "detr":
        shares = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(found.scores, shares[:, :3], atol=1e-6)
    else:
        np.testing.assert_allclose(found.scores, _sigmoid(LOGITS), atol=1e-6)


def test_what_cannot_be_told_is_asked_for(tmp_path: Path) -> None:
    # A small stem without reference points is none of the detectors that are known.
    path = queries(tmp_path / "m.onnx", LOGITS, BOXES, stem=DEEP, refined=False)
    with pytest.raises(InputError, match=r"logits \[1, 2, 4\].*detr or .*rt-detr.* would fit.*name the detector"):
        Detector(path, classes=CLASSES)
    assert Detector(path, classes=CLASSES, family="detr").family.name == "detr"


@pytest.mark.parametrize(
    ("scores", "own", "family"),
    [("Sigmoid", ("scores", "boxes"), "ssd"), ("Sigmoid", None, "ssd"), ("Relu", None, "rt-detr")],
)
def test_names_tell_only_what_the_graph_does_not(
    tmp_path: Path, scores: str, own: tuple[str, str] | None, family: str
) -> None:
    given = {"names": own} if own else {}
    path = queries(tmp_path / "m.onnx", LOGITS, BOXES, scores=scores, stem=DEEP, refined=True, **given)
    assert Detector(path, classes=(*CLASSES, "bus")).family.name == family


def test_names_must_fit_the_head(tmp_path: Path) -> None:
    soft = queries(tmp_path / "s.onnx", LOGITS, BOXES)
    with pytest.raises(InputError, match=r"4 class names do not fit 4 columns of logits.* and no object"):
        Detector(soft, classes=(*CLASSES, "bus"))
    # One name fewer than columns is no background here.
    with pytest.raises(InputError, match="3 class names do not fit 4 columns"):
        Detector(queries(tmp_path / "r.onnx", LOGITS, BOXES, stem=DEEP, refined=True), classes=CLASSES)


@pytest.mark.parametrize(("columns", "stem", "refined", "tv"), [(92, RESNET, False, 72), (81, RESNET, False, 62),
                                                             (91, RESNET, True, 72), (80, DEEP, True, 62)])  # fmt: skip
def test_coco_is_known_by_the_number_of_columns(
    tmp_path: Path, columns: int, stem: tuple[int, int], refined: bool, tv: int
) -> None:
    logits = np.full((2, columns), -4.0)
    logits[:, tv] = 5.0
    found = Detector(queries(tmp_path / "m.onnx", logits, BOXES, stem=stem, refined=refined)).candidates([IMAGE])[0]
    assert found.scores.shape == (2, 80)
    assert COCO_CLASSES[int(found.scores[0].argmax())] == "tv"


def test_images_are_given_as_in_training(tmp_path: Path) -> None:
    grey = np.full((64, 64, 3), 100, np.uint8)
    soft = Detector(queries(tmp_path / "s.onnx", LOGITS, BOXES), classes=CLASSES).family
    fed, _ = soft.prepare(grey)
    expected = (100 / 255 - np.array([0.485, 0.456, 0.406])) / np.array([0.229, 0.224, 0.225])
    np.testing.assert_allclose(fed["pixel_values"][0, :, 5, 5], expected, rtol=1e-5)
    fast = Detector(queries(tmp_path / "r.onnx", LOGITS[:, :3], BOXES, stem=DEEP, refined=True), classes=CLASSES).family
    fed, _ = fast.prepare(grey)
    np.testing.assert_allclose(fed["pixel_values"][0, :, 5, 5], 100 / 255, rtol=1e-6)


@pytest.mark.parametrize("image", [(100, 200), (200, 100), (300, 1000)])
def test_an_open_size_keeps_the_shape_of_images(tmp_path: Path, image: tuple[int, int]) -> None:
    path = queries(
        tmp_path / "m.onnx", LOGITS, BOXES, shape=["b", 3, "h", "w"], mask=(TensorProto.INT64, ["b", "mh", "mw"])
    )
    detector = Detector(path, classes=CLASSES, batch=4)
    assert detector.batch == 1  # each image has a size of its own
    pixels = np.zeros((*image, 3), np.uint8)
    fed, _ = detector.family.prepare(pixels)
    shape = fed["pixel_values"].shape[2:]
    expected = {(100, 200): (666, 1333), (200, 100): (1333, 666), (300, 1000): (400, 1333)}[image]
    assert np.abs(np.array(shape) - expected).max() <= 1
    assert fed["pixel_mask"].shape == (1, *shape)
    assert fed["pixel_mask"].dtype == np.int64
    assert fed["pixel_mask"].all()
    assert len(detector.candidates([pixels, IMAGE])) == 2
    sized = Detector(path, classes=CLASSES, size=(320, 256)).family.prepare(pixels)[0]
    assert sized["pixel_values"].shape == (1, 3, 256, 320)


def test_a_mask_of_fixed_size_is_filled(tmp_path: Path) -> None:
    path = queries(tmp_path / "m.onnx", LOGITS, BOXES, mask=(TensorProto.BOOL, [1, 8, 9]))
    detector = Detector(path, classes=CLASSES)
    fed, _ = detector.family.prepare(IMAGE)
    assert fed["pixel_mask"].shape == (1, 8, 9)
    assert fed["pixel_mask"].dtype == np.bool_
    assert len(detector.candidates([IMAGE])[0]) == 2


def test_queries_are_not_suppressed(tmp_path: Path) -> None:
    same = np.array([BOXES[0], BOXES[0]])
    logits = np.array([[3.0, -9, -9], [2.0, -9, -9]])
    detector = Detector(queries(tmp_path / "m.onnx", logits, same, stem=DEEP, refined=True), classes=CLASSES)
    assert len(detect(detector, [IMAGE], [1], Options())[0]) == 2
    with pytest.raises(InputError, match=r"boxes of rt-detr are final.*use constant or flip-scale"):
        detect(detector, [IMAGE], [1], Options(uncertainty="nms-clusters"))
    for works in ("constant", "flip-scale"):
        assert len(detect(detector, [IMAGE], [1], Options(uncertainty=works))[0]) > 0


SIDES = np.random.default_rng(5).normal(0, 2, (2, 4 * 33))


def _d_fine(path: Path, **changed: object) -> Path:
    given = {"stem": DEEP, "refined": True, "sides": SIDES, "bins": bin_values(33, 0.5, 4), **changed}
    return queries(path, LOGITS[:, :3], BOXES, **given)


@pytest.mark.parametrize("scale", [4, 8])  # the largest model's is 8
def test_d_fine_has_variances_of_its_sides(tmp_path: Path, scale: int) -> None:
    path = _d_fine(tmp_path / "m.onnx", bins=bin_values(33, 0.5, scale), scale=scale)
    detector = Detector(path, classes=CLASSES)
    assert (detector.family.name, detector.family.has_edges) == ("d-fine", True)
    found = detector.candidates([IMAGE])[0]
    mean, var = edges_of(SIDES, BOXES, 0.5, scale)
    size = np.array([200, 100, 200, 100])
    np.testing.assert_allclose(found.boxes, mean * size, atol=1e-3)
    np.testing.assert_allclose(found.covariances[:, [0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 0, 1]], var * size**2, rtol=1e-4)
    assert (found.covariances[:, :, 0, 1] == 0).all()
    sure = detect(detector, [IMAGE], [1], Options(uncertainty="edge-distribution"))[0]
    assert sure.covariances is not None
    with pytest.raises(InputError, match="use edge-distribution"):
        detect(detector, [IMAGE], [1], Options(uncertainty="nms-clusters"))


def test_rt_detr_has_no_edges_and_d_fine_is_not_taken_without_them(tmp_path: Path) -> None:
    plain = queries(tmp_path / "m.onnx", LOGITS[:, :3], BOXES, stem=DEEP, refined=True)
    with pytest.raises(InputError, match=r"predicts no edge distributions; use constant"):
        detect(Detector(plain, classes=CLASSES), [IMAGE], [1], Options(uncertainty="edge-distribution"))
    with pytest.raises(InputError, match="no edge distributions"):
        Detector(plain, classes=CLASSES, family="d-fine")
    assert (
        Detector(_d_fine(tmp_path / "d.onnx"), classes=CLASSES, family="rt-detr").candidates([IMAGE])[0].covariances
        is None
    )


def test_sides_that_are_not_the_boxes_are_refused(tmp_path: Path) -> None:
    # Bins that are not what the boxes were computed from can't be read as variances.
    path = _d_fine(tmp_path / "m.onnx")
    detector = Detector(path, classes=CLASSES)
    detector.family._edges = detector.family._edges._replace(bins=bin_values(33, 0.5, 4) * 2)
    with pytest.raises(InputError, match=r"m\.onnx: the mean of the edge distributions is .* away"):
        detector.candidates([IMAGE])


def test_masked_passes_do_without_edges(tmp_path: Path) -> None:
    family = Detector(_d_fine(tmp_path / "m.onnx"), classes=CLASSES).family
    _, placement = family.prepare(IMAGE)
    outputs = [LOGITS[None, :, :3].astype(np.float32), BOXES[None].astype(np.float32)]
    assert family.decode(outputs, placement).covariances is None


def test_sides_of_a_model_in_memory_are_the_last_layer_s() -> None:
    rng = np.random.default_rng(1)
    sides, reference = rng.normal(0, 2, (1, 2, 3, 4 * 33)), rng.uniform(0.2, 0.5, (1, 2, 3, 4))
    mean, var = edges_of(sides[0, 1], reference[0, 1], 0.5, 4)
    boxes = np.concatenate([(mean[:, :2] + mean[:, 2:]) / 2, mean[:, 2:] - mean[:, :2]], axis=1)
    output = {
        "logits": np.zeros((1, 3, 2)), "pred_boxes": boxes[None],
        "intermediate_predicted_corners": sides, "initial_reference_points": reference,
    }  # fmt: skip
    np.testing.assert_allclose(edge_variances(output, {}, "required")[0], var, rtol=1e-9)
    with pytest.raises(InputError, match="away from the box"):
        edge_variances(output, {"reg_scale": 8.0}, "required")
