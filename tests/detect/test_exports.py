"""Exports of Ultralytics, as small graphs made by hand: what they are taken for, their edges, their rows, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from detect_graphs import choosing_detector, dfl_detector, dfl_logits, fixed_outputs, joined_detector, with_metadata
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from probox.detect import Candidates, Detector, Options, choose_family, detect
from probox.detect.families import Signature, Tensor
from probox.detect.families.base import LEVELS, count_cells, grid, match_strides
from probox.detect.families.graph_inspection import TopKSource, find_edges, find_top_k
from probox.detect.graph import Graph, Metadata
from probox.detect.uncertainty import detections_from
from probox.errors import InputError

from .conftest import Run

CLASSES = ("cup", "dog", "car")
SAYS = {"names": str(dict(enumerate(CLASSES))), "imgsz": "[64, 64]", "task": "detect", "stride": "32"}
SQUARE = np.full((64, 64, 3), 90, np.uint8)
WIDE = np.full((100, 200, 3), 90, np.uint8)  # 0.32 of it on an input of 64 x 64, 16 pixels above
INPUT = {"images": [1, 3, 64, 64]}


def _grid(strides: tuple[int, ...] = (8, 16, 32), size: tuple[int, int] = (64, 64)) -> tuple[np.ndarray, np.ndarray]:
    cells, scale = grid(size, strides)
    return (cells + 0.5) * scale[:, None], scale


def _scores(count: int, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.1, 0.3, (count, 3)).astype(np.float32)


def _head(path: Path, *, strides: tuple[int, ...] = (8, 16, 32), bins: int = 16, **how: object) -> tuple[Path, dict]:
    points, scale = _grid(strides)
    logits, scores = dfl_logits(len(scale), bins), _scores(len(scale))
    graph = with_metadata(dfl_detector(path, logits, scores, points, scale, **how), SAYS)
    probs = np.exp(logits.astype(np.float64))
    probs /= probs.sum(axis=1, keepdims=True)
    # The definition, edge by edge: a distance is a bin times the stride.
    mean = np.einsum("ebn,b->ne", probs, np.arange(bins))
    var = np.stack([np.einsum("bn,bn->n", probs[e], (np.arange(bins)[:, None] - mean[:, e]) ** 2) for e in range(4)], 1)
    sign = np.array([-1, -1, 1, 1])
    boxes = np.concatenate([points, points], axis=1) + sign * mean * scale[:, None]
    return graph, {"boxes": boxes, "variances": var * scale[:, None] ** 2, "scores": scores}


def _variances(covariances: np.ndarray) -> np.ndarray:
    assert not covariances[:, :, 0, 1].any()
    return np.diagonal(covariances, axis1=2, axis2=3).reshape(-1, 4)


@pytest.mark.parametrize(
    ("form", "weights", "how"),
    [
        ("conv", "initializer", {}),
        ("conv", "constant", {"dynamic": True}),
        ("conv", "range", {"strides": (8, 16, 32, 64)}),
        ("late", "initializer", {"opset": 13, "strides": (4, 8, 16, 32)}),
        ("matmul", "constant", {"bins": 8}),
        ("sum", "range", {"bins": 33}),
    ],
)
def test_edge_distributions_are_found_however_the_mean_is_taken(
    tmp_path: Path, form: str, weights: str, how: dict
) -> None:
    graph, expected = _head(tmp_path / "head.onnx", form=form, weights=weights, **how)
    detector = Detector(graph)
    assert (detector.family.name, detector.family.has_edges) == ("yolov8", True)
    assert detector.family.classes == CLASSES
    found = detector.candidates([WIDE])[0]
    scale = 200 / 64
    np.testing.assert_allclose(found.boxes, (expected["boxes"] - [0, 16, 0, 16]) * scale, atol=1e-3)
    np.testing.assert_allclose(found.scores, expected["scores"], atol=1e-6)
    np.testing.assert_allclose(_variances(found.covariances[:]), expected["variances"] * scale**2, rtol=1e-4, atol=1e-3)
    some = np.array([7, 3])
    np.testing.assert_array_equal(found.covariances[some], found.covariances[:][some])
    assert found.select(some).covariances.shape == (2, 2, 2, 2)


def test_half_precision_runs_and_its_variances_are_near(tmp_path: Path) -> None:
    graph, expected = _head(tmp_path / "half.onnx", half=True)
    detector = Detector(graph)
    found = detector.candidates([SQUARE])[0]
    assert found.scores.dtype == np.float32
    np.testing.assert_allclose(found.boxes, expected["boxes"], atol=0.5)
    # float16 has three digits, and a variance is a difference of squares of bins.
    np.testing.assert_allclose(_variances(found.covariances[:]), expected["variances"], rtol=0.02, atol=1.0)


@pytest.mark.parametrize("how", [{"first_bin": 0.5}, {"first_bin": 1.0}])
def test_a_softmax_that_is_weighed_otherwise_is_no_edge_distribution(tmp_path: Path, how: dict) -> None:
    graph, _ = _head(tmp_path / "other.onnx", **how)
    detector = Detector(graph)
    assert not detector.family.has_edges
    with pytest.raises(InputError, match="predicts no edge distributions"):
        detect(detector, [SQUARE], [1], Options(uncertainty="edge-distribution"))


@pytest.mark.parametrize(("stretch", "half"), [(1.3, False), (1.3, True), (1.0003, False)])
def test_distributions_that_are_not_those_of_the_boxes_are_refused(tmp_path: Path, stretch: float, half: bool) -> None:
    graph, _ = _head(tmp_path / "stretched.onnx", stretch=stretch, half=half)
    detector = Detector(graph)
    assert len(detect(detector, [SQUARE], [1], Options())[0]) > 0
    with pytest.raises(InputError, match=r"edge distributions .*distributions.* do not belong to its boxes"):
        detect(detector, [SQUARE], [1], Options(uncertainty="edge-distribution"))


def test_distributions_that_cannot_be_counted_out_are_refused(tmp_path: Path) -> None:
    """The input is 96 x 96, but the head has the cells of 64 x 64: which box belongs to which cell?"""
    points, scale = _grid()
    graph = dfl_detector(tmp_path / "odd.onnx", dfl_logits(84), _scores(84), points, scale, size=(96, 96))
    with pytest.raises(InputError, match="name the detector's family"):
        Detector(graph, classes=CLASSES)
    detector = Detector(graph, family="yolov8", classes=CLASSES)
    with pytest.raises(InputError, match="can't assign 84 edge distributions"):
        detect(detector, [SQUARE], [1], Options(uncertainty="edge-distribution"))


def test_distributions_that_the_output_is_not_made_from_are_others(tmp_path: Path) -> None:
    model = onnx.load(str(_head(tmp_path / "head.onnx", form="sum")[0]))
    model.graph.node.extend(
        [
            helper.make_node("Softmax", ["edges"], ["auxiliary"], axis=2),
            helper.make_node("Mul", ["auxiliary", "bins"], ["unused"]),
        ]
    )
    assert [edge.tensor for edge in find_edges(Graph(model), "output0")] == ["distributions"]
    assert [edge.tensor for edge in find_edges(Graph(model), "unused")] == ["auxiliary"]


class SomeTraits:
    name, classes, labels, nms_iou = "some", ("cup",), "best", 0.6
    has_edges, suppresses, clips_first = True, False, True


def test_covariances_are_worked_out_for_survivors_only() -> None:
    asked = []

    class Recorded:
        def __getitem__(self, rows: np.ndarray) -> np.ndarray:
            asked.append(rows)
            return np.broadcast_to(np.eye(2), (len(rows), 2, 2, 2)) * (1.0 + np.asarray(rows))[:, None, None, None]

    boxes = np.array([[10, 10, 20, 20], [40, 40, 60, 60], [40, 40, 60, 61], [1, 1, 5, 5]], float)
    scores = np.array([[0.3], [0.5], [0.9], [0.01]], np.float32)
    options = Options(uncertainty="edge-distribution", score_threshold=0.05)
    found = detections_from(Candidates(boxes, scores, Recorded()), SomeTraits(), (64, 64), 1, options)
    assert [rows.tolist() for rows in asked] == [[2, 0]]  # best first; 1 is suppressed, 3 scores too little
    assert found.covariances[:, 0, 0, 0].tolist() == [3.0, 1.0]


def test_edges_that_fail_to_come_are_said() -> None:
    found = Candidates(np.array([[1.0, 1, 5, 5]]), np.array([[0.9]], np.float32))
    with pytest.raises(InputError, match="returned no edge distributions"):
        detections_from(found, SomeTraits(), (64, 64), 1, Options(uncertainty="edge-distribution"))


@given(st.integers(1, 40), st.integers(1, 40), st.sampled_from(LEVELS))
def test_strides_are_those_that_make_so_many_cells_or_none(wide: int, high: int, levels: tuple[int, ...]) -> None:
    size = (32 * wide, 32 * high)
    cells = len(grid(size, levels)[0])
    assert cells == count_cells(size, levels)
    assert match_strides(size, cells, levels[-1]) in (levels, None)
    told = match_strides(size, cells)
    assert told is None or len(grid(size, told)[0]) == cells


def test_usual_heads_are_told_apart() -> None:
    for size in ((320, 320), (640, 640), (640, 384), (1280, 1280)):
        for levels in LEVELS[:4]:
            assert match_strides(size, count_cells(size, levels)) == levels
    assert match_strides((8, 8), 2) is None  # 8 and 16, or 16 and 32?
    assert match_strides((8, 8), 2, 32) == (16, 32)


def _signature(outputs: list[tuple], *, size: tuple[int, int] | None = (640, 640), **says: object) -> Signature:
    wide, high = size or (None, None)
    return Signature(
        (Tensor("images", (1, 3, high, wide)),),
        tuple(Tensor(f"output{k}", shape) for k, shape in enumerate(outputs)),
        Metadata(**says),
    )


EIGHTY = tuple(f"class {number}" for number in range(80))
FIXED = {
    "yolov8": [(1, 84, 8400)],
    "yolov8 transposed": [(1, 8400, 84)],
    "yolov8 P6": [(1, 84, 8500)],
    "yolov8 P2": [(1, 84, 34000)],
    "yolov8-seg": [(1, 116, 8400), (1, 32, 160, 160)],
    "end-to-end": [(1, 300, 6)],
    "end-to-end seg": [(1, 300, 38), (1, 32, 160, 160)],
    "rtdetr-ultralytics": [(1, 300, 84)],
    "yolov5": [(1, 25200, 85)],
    "yolov5 P6": [(1, 25500, 85)],
    "yolox": [(1, 8400, 85)],
}


@pytest.mark.parametrize("name", FIXED)
def test_fixed_shapes_are_recognised(name: str) -> None:
    assert choose_family(_signature(FIXED[name])).name == name.split()[0]


@pytest.mark.parametrize("name", FIXED)
def test_open_shapes_are_recognised_by_a_trial(tmp_path: Path, name: str) -> None:
    """The graph says nothing of its outputs but how many dimensions they have."""
    small = {8400: 126, 8500: 128, 34000: 510, 25200: 378, 25500: 384}
    shapes = [[small.get(side, side) for side in shape] for shape in FIXED[name]]
    outputs = {f"output{k}": np.zeros(shape, np.float32) for k, shape in enumerate(shapes)}
    open_axes = {key: [f"{key}_{k}" for k in range(value.ndim)] for key, value in outputs.items()}
    path = fixed_outputs(tmp_path / "m.onnx", {"images": ["batch", 3, "height", "width"]}, outputs, open_axes)
    if name == "yolox":
        says = {"imgsz": "[64, 96]"}
    elif name == "rtdetr-ultralytics":
        says = {"imgsz": "[64, 96]", "head": "RTDETRDecoder"}
    else:
        says = {"imgsz": "[64, 96]", "names": str(dict(enumerate(EIGHTY)))}
    family = Detector(with_metadata(path, says)).family
    assert (family.name, family.input_size(), len(family.classes)) == (name.split()[0], (96, 64), 80)


def test_what_an_export_says_of_its_head_decides() -> None:
    """RT-DETR chooses rows of six as v10 does, but in other units."""
    square = [(1, 84, 84)]
    assert choose_family(_signature(square, size=(64, 64))).name == "yolov8"  # of 80 classes, YOLOX would have 79
    assert choose_family(_signature(square, size=(64, 64), task="detect", head="Detect")).name == "yolov8"
    rows = [(1, 300, 6)]
    assert choose_family(_signature(rows, task="detect", head="v10Detect", names=("a", "b"))).name == "end-to-end"
    assert choose_family(_signature(rows, task="detect", head="RTDETRDecoder")).name == "rtdetr-ultralytics"
    with pytest.raises(InputError, match="end-to-end or rtdetr-ultralytics would fit"):
        choose_family(_signature(rows, task="detect", names=("a", "b")))  # 4 + 2 scores?


@pytest.mark.parametrize(
    ("task", "words"), [("pose", "key points"), ("obb", "oriented"), ("classify", "classifies"), ("depth", "no boxes")]
)
@pytest.mark.parametrize("family", ["auto", "yolov8"])
def test_other_tasks_are_refused_in_words(task: str, words: str, family: str) -> None:
    with pytest.raises(InputError, match=words) as raised:
        choose_family(_signature([(1, 56, 8400)], task=task, names=("person",)), family)
    assert "output0 [1, 56, 8400]" in str(raised.value)


def test_every_column_needs_a_name_of_its_own() -> None:
    """One column more than names is no background here: it is a key point, an angle or a mistake."""
    with pytest.raises(InputError, match="expected 4 class names"):
        choose_family(_signature([(1, 8, 8400)], names=CLASSES))
    with pytest.raises(InputError, match="81 classes, which are not COCO's"):
        choose_family(_signature([(1, 85, 8400)]))
    with pytest.raises(InputError, match="number of classes is not fixed"):
        choose_family(_signature([(1, None, 8400)]))
    with pytest.raises(InputError, match="name the detector's family"):
        choose_family(_signature([(1, 4, 8400)]))  # boxes, and nothing else
    assert choose_family(_signature([(1, None, 8400)], names=CLASSES)).classes == CLASSES
    assert choose_family(_signature([(1, 7, 8400)], names=("a", "b", "c")), classes=CLASSES).classes == CLASSES
    with pytest.raises(InputError, match="multiples of 32"):
        choose_family(_signature([(1, 7, None)], size=None, names=CLASSES, stride=32), "yolov8", size=(100, 64))


BOXES = np.array([[4, 4, 20, 20], [30, 8, 60, 40], [2, 30, 30, 62], [40, 44, 62, 63]], np.float32)
FOUR = np.array([[0.9, 0.05, 0.6], [0.1, 0.7, 0.1], [0.2, 0.2, 0.2], [0.01, 0.02, 0.3]], np.float32)


def test_candidates_are_read_from_before_the_choice(tmp_path: Path) -> None:
    graph = with_metadata(choosing_detector(tmp_path / "e2e.onnx", BOXES, FOUR, rows=4), SAYS)
    detector = Detector(graph)
    assert detector.family.name == "end-to-end"
    found = detect(detector, [SQUARE], [1], Options(score_threshold=0.25))[0]
    assert found.scores.tolist() == pytest.approx([0.9, 0.7, 0.6, 0.3])
    assert found.labels.tolist() == [0, 1, 2, 2]
    np.testing.assert_allclose(found.boxes, BOXES[[0, 1, 0, 3]])
    np.testing.assert_allclose(found.label_probs[1], FOUR[1])  # all scores, not only the best
    with pytest.raises(InputError, match="no suppressed candidates to cluster"):
        detect(detector, [SQUARE], [1], Options(uncertainty="nms-clusters"))


def test_a_choice_that_is_not_understood_is_refused(tmp_path: Path) -> None:
    for rows in (3, 4):
        graph = with_metadata(
            choosing_detector(tmp_path / f"{rows}.onnx", BOXES[::-1], FOUR[::-1], rows=rows, wrong=True), SAYS
        )
        with pytest.raises(InputError, match="can't find the candidates"):
            Detector(graph).candidates([SQUARE])


@pytest.mark.parametrize("top", [True, False])
def test_what_rows_are_chosen_from_ends_where_values_are_made(top: bool) -> None:
    """Scores that were gathered, but not the best of all, were suppressed: that is another choice."""
    picked = ("TopK", ["flat", "k"], ["picked", "at"]) if top else ("Gather", ["flat", "k"], ["picked"])
    nodes = [
        ("Squeeze", ["made"], ["boxes"]),
        ("GatherElements", ["boxes", "rows"], ["box"]),
        ("Sigmoid", ["logits"], ["scores"]),
        ("Flatten", ["scores"], ["flat"]),
        picked,
        ("Unsqueeze", ["picked", "axes"], ["score"]),
        ("Concat", ["box", "score", "class"], ["output0"]),
    ]
    made = [helper.make_node(kind, ins, outs) for kind, ins, outs in nodes]
    graph = Graph(helper.make_model(helper.make_graph(made, "rows", [], [])))
    assert find_top_k(graph, "output0") == (TopKSource("boxes", "scores") if top else None)
    assert find_top_k(graph, "score") is None
    assert find_top_k(None, "output0") is None


def _rows(path: Path, rows: list[list[float]], **says: str) -> Path:
    return with_metadata(fixed_outputs(path, INPUT, {"output0": np.array([rows], np.float32)}), SAYS | says)


def test_rows_of_zeros_are_no_detections(tmp_path: Path) -> None:
    """A graph that suppresses says "nothing" with as many rows as ever."""
    path = _rows(tmp_path / "rows.onnx", [[0.0] * 6] * 300)
    detector = Detector(path)
    assert len(detector.candidates([WIDE])[0]) == 0
    assert len(detect(detector, [WIDE], [1], Options())[0]) == 0


def test_rows_without_their_source_have_one_label(tmp_path: Path) -> None:
    path = _rows(tmp_path / "rows.onnx", [[4, 4, 20, 20, 0.9, 2], [30, 8, 60, 40, 0.5, 0], [0, 0, 0, 0, 0, 0]])
    found = detect(Detector(path), [WIDE], [1], Options())[0]
    assert found.labels.tolist() == [2, 0]
    np.testing.assert_allclose(found.boxes[1], np.array([30, 8 - 16, 60, 40 - 16]).clip(0) * 3.125, atol=1e-4)
    np.testing.assert_allclose(found.label_probs, [[0, 0, 0.9], [0.5, 0, 0]], atol=1e-6)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ([4, 4, 20, 20, 0.9, 3], "returned class 3, but only 3 classes"),
        ([4, 4, 20, 20, 0.9, 0.5], "expected numbers of classes"),
        ([4, 4, 20, 20, 0.9, -1], "expected numbers of classes"),
        ([4, 4, 20, 20, 7.5, 1], "expected scores between 0 and 1"),
        ([4, 4, 20, 20, float("nan"), 1], "expected scores between 0 and 1"),
        ([0.1, 0.1, 0.5, 0.5, 0.9, 1], "expected boxes in pixels"),
    ],
)
def test_rows_that_are_something_else_are_refused(tmp_path: Path, row: list[float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Detector(_rows(tmp_path / "odd.onnx", [row])).candidates([SQUARE])


def test_rtdetr_is_stretched_and_suppresses_nothing(tmp_path: Path) -> None:
    rows = np.zeros((1, 300, 7), np.float32)
    rows[0, 0] = [0.5, 0.5, 0.2, 0.4, 0.9, 0.3, 0.0]
    rows[0, 1] = [0.5, 0.5, 0.2, 0.4, 0.8, 0.0, 0.0]
    path = with_metadata(fixed_outputs(tmp_path / "rtdetr.onnx", INPUT, {"output0": rows}), SAYS)
    detector = Detector(path)
    assert detector.family.name == "rtdetr-ultralytics"
    feeds, _ = detector.family.prepare(np.dstack([np.tile(np.arange(128, dtype=np.uint8), (64, 1))] * 3))
    assert feeds["images"][0, 0, 32].max() > 125 / 255  # nothing around it
    found = detect(detector, [WIDE], [1], Options(score_threshold=0.2))[0]
    assert found.scores.tolist() == pytest.approx([0.9, 0.8, 0.3])
    np.testing.assert_allclose(found.boxes[0], [80, 30, 120, 70], atol=1e-3)
    rows[0, 0, :4] = [30, 30, 10, 10]
    pixels = with_metadata(fixed_outputs(tmp_path / "pixels.onnx", INPUT, {"output0": rows}), SAYS)
    with pytest.raises(InputError, match="between 0 and 1"):
        Detector(pixels).candidates([WIDE])


def test_rtdetr_may_choose_its_best_rows(tmp_path: Path) -> None:
    centres = np.array([[0.5, 0.5, 0.2, 0.4], [0.2, 0.2, 0.1, 0.1], [0.7, 0.7, 0.1, 0.1], [0.3, 0.7, 0.1, 0.1]])
    path = choosing_detector(tmp_path / "best.onnx", centres, FOUR, rows=4)
    found = Detector(with_metadata(path, SAYS | {"head": "RTDETRDecoder"})).candidates([WIDE])[0]
    np.testing.assert_allclose(found.boxes[0], [80, 30, 120, 70], atol=1e-3)
    np.testing.assert_allclose(found.scores, FOUR)


def _yolox(decoded: bool, objectness: float | None = None) -> np.ndarray:
    rng = np.random.default_rng(5)
    cells, scale = grid((64, 64), (8, 16, 32))
    raw = rng.normal(0, 0.5, (84, 4))
    rows = np.concatenate([raw, rng.uniform(0, 1, (84, 4))], axis=1)
    if decoded:
        rows[:, :2] = (raw[:, :2] + cells) * scale[:, None]
        rows[:, 2:4] = np.exp(raw[:, 2:]) * scale[:, None]
    rows[7, 4] = 1.0
    if objectness is not None:
        rows[:, 4] = objectness
    return rows[None].astype(np.float32)


def test_decoded_yolox_gives_the_boxes_of_raw_yolox(tmp_path: Path) -> None:
    found = []
    for decoded in (False, True):
        path = fixed_outputs(tmp_path / f"{decoded}.onnx", INPUT, {"output": _yolox(decoded)})
        detector = Detector(path, classes=CLASSES)
        assert detector.family.name == "yolox"
        found.append(detector.candidates([SQUARE])[0])
    np.testing.assert_allclose(found[0].boxes, found[1].boxes, atol=1e-3)
    np.testing.assert_array_equal(found[0].scores, found[1].scores)


def test_what_only_looks_like_yolox_is_refused(tmp_path: Path) -> None:
    six = fixed_outputs(tmp_path / "six.onnx", INPUT, {"output": _yolox(True, 1.0)})
    with pytest.raises(InputError, match="looks like YOLOv6"):
        Detector(six, classes=CLASSES).candidates([SQUARE])
    logits = fixed_outputs(tmp_path / "logits.onnx", INPUT, {"output": _yolox(False, -4.0)})
    with pytest.raises(InputError, match="expected scores between 0 and 1"):
        Detector(logits, classes=CLASSES).candidates([SQUARE])


@pytest.mark.parametrize("score", [-3.0, 1.5, float("nan")])
def test_scores_of_a_yolov8_are_probabilities(tmp_path: Path, score: float) -> None:
    rows = np.zeros((1, 7, 84), np.float32)
    rows[0, 5, 3] = score
    path = with_metadata(fixed_outputs(tmp_path / "logits.onnx", INPUT, {"output0": rows}), SAYS)
    with pytest.raises(InputError, match=r"scores (are not numbers|go from)"):
        Detector(path).candidates([SQUARE])


def test_a_batch_gives_each_image_its_own_variances(tmp_path: Path) -> None:
    graph, _ = _head(tmp_path / "head.onnx", dynamic=True)
    pair = Detector(graph, batch=1).candidates([SQUARE, WIDE])
    np.testing.assert_allclose(_variances(pair[1].covariances[:]), _variances(pair[0].covariances[:]) * 3.125**2)


def test_the_command_line_names_classes_and_finds_edges(tmp_path: Path, photos: Path, run: Run) -> None:
    graph, _ = _head(tmp_path / "head.onnx", dynamic=True)
    out = tmp_path / "found.coco.json"
    asked = ["--images", photos, "--out", out, "--uncertainty", "edge-distribution", "--json"]
    status, printed, _ = run(graph, *asked)
    assert status == 0
    assert json.loads(printed)["family"] == "yolov8"
    entries = json.loads(out.read_bytes())
    assert entries
    assert all(np.trace(entry["covars"][0]) > 0 for entry in entries)
    assert {entry["category_id"] for entry in entries} <= {1, 2, 3}


def test_a_size_that_a_graph_cannot_take_is_said(tmp_path: Path) -> None:
    """Nothing is known of the graph but that it fails."""
    points, scale = _grid()
    path = dfl_detector(tmp_path / "m.onnx", dfl_logits(84), _scores(84), points, scale, dynamic=True, demand=64)
    assert Detector(path, classes=CLASSES, size=(64, 64)).family.input_size() == (64, 64)
    with pytest.raises(InputError, match="does not run on an input of 96 x 64") as raised:
        Detector(path, classes=CLASSES, size=(96, 64))
    assert str(path) in str(raised.value)


def test_six_numbers_of_a_graph_without_a_head_are_told_apart_inside(tmp_path: Path) -> None:
    """An older export of two classes: RT-DETR joins boxes with a sigmoid, v10 chooses."""
    says = {"names": "{0: 'cup', 1: 'dog'}", "imgsz": "64", "task": "detect"}
    rng = np.random.default_rng(0)
    boxes = rng.uniform(0.2, 0.6, (1, 300, 4)).astype(np.float32)
    path = joined_detector(tmp_path / "rtdetr.onnx", boxes, rng.normal(0, 1, (1, 300, 2)).astype(np.float32))
    detector = Detector(with_metadata(path, says))
    assert (detector.family.name, detector.family.classes) == ("rtdetr-ultralytics", ("cup", "dog"))
    assert detector.candidates([WIDE])[0].scores.shape == (300, 2)
    pixels = np.tile(BOXES, (75, 1))
    path = choosing_detector(tmp_path / "v10.onnx", pixels, rng.uniform(0, 1, (300, 2)), rows=300)
    assert Detector(with_metadata(path, says)).family.name == "end-to-end"


def _yolov5_rows() -> np.ndarray:
    cells, strides = grid((64, 64), (8, 16, 32))
    rng = np.random.default_rng(3)
    rows = np.empty((252, 8), np.float32)
    rows[:, :2] = np.repeat((cells + 0.5) * strides[:, None], 3, axis=0)
    rows[:, 2:4] = rng.uniform(4, 30, (252, 2))
    rows[:, 4:] = rng.uniform(0, 0.9, (252, 4))
    return rows


def _same(first: Candidates, second: Candidates) -> None:
    np.testing.assert_allclose(first.boxes, second.boxes, rtol=1e-5, atol=1e-3)
    np.testing.assert_array_equal(first.scores, second.scores)


@pytest.mark.parametrize("shape", [[1, 64, 64, 3], [1, "height", "width", 3], [1, 3, 64, 64]])
def test_yolov5_of_tensorflow_gives_the_boxes_of_yolov5(tmp_path: Path, shape: list) -> None:
    rows = _yolov5_rows()
    usual = fixed_outputs(tmp_path / "usual.onnx", INPUT, {"output": rows[None]})
    fractions = rows / np.array([64] * 4 + [1] * 4, np.float32)
    other = fixed_outputs(tmp_path / "other.onnx", {"x": shape}, {"Identity": fractions[None]})
    detector = Detector(other, classes=CLASSES, size=(64, 64), threads=1)
    assert (detector.family.name, detector.family.input_size()) == ("yolov5", (64, 64))
    _same(detector.candidates([WIDE])[0], Detector(usual, classes=CLASSES, threads=1).candidates([WIDE])[0])


def test_channels_last_get_the_pixels_that_channels_first_get() -> None:
    feeds = []
    for shape in ((1, 3, 64, 96), (1, 64, 96, 3)):
        signature = Signature((Tensor("in", shape),), (Tensor("out", (1, 126, 84)),))
        feeds.append(choose_family(signature).prepare(WIDE)[0]["in"])
    np.testing.assert_array_equal(feeds[0].transpose(0, 2, 3, 1), feeds[1])


@pytest.mark.parametrize("open_axes", [False, True])
def test_transposed_yolov8_gives_the_boxes_of_yolov8(tmp_path: Path, open_axes: bool) -> None:
    usual, _ = _head(tmp_path / "usual.onnx")
    model = onnx.load(str(usual))
    model.graph.node.append(helper.make_node("Transpose", ["output0"], ["rows"], perm=[0, 2, 1]))
    del model.graph.output[:]
    shape = ["batch", "cells", "columns"] if open_axes else [1, 84, 7]
    model.graph.output.append(helper.make_tensor_value_info("rows", onnx.TensorProto.FLOAT, shape))
    onnx.save(model, str(tmp_path / "transposed.onnx"))
    found = {}
    for name in ("usual", "transposed"):
        detector = Detector(tmp_path / f"{name}.onnx", classes=CLASSES, threads=1)
        assert (detector.family.name, detector.family.has_edges) == ("yolov8", True)
        found[name] = detector.candidates([WIDE])[0]
    _same(found["transposed"], found["usual"])
    np.testing.assert_array_equal(found["transposed"].covariances[:], found["usual"].covariances[:])


def test_the_number_of_names_tells_transposed_yolov8_from_yolox() -> None:
    rows = _signature([(1, 8400, 8)])
    assert choose_family(rows, classes=CLASSES).name == "yolox"
    assert choose_family(rows, classes=(*CLASSES, "bus")).name == "yolov8"
    with pytest.raises(InputError) as caught:
        choose_family(rows)
    assert "yolov8 (the model has 4 classes, which are not COCO's) or yolox (the model has 3" in str(caught.value)
    assert "name the detector's family, or give the names of its classes" in str(caught.value)


def test_a_family_without_channels_last_says_so() -> None:
    signature = Signature((Tensor("in", (1, 640, 640, 3)),), (Tensor("out", (1, 8400, 85)),))
    with pytest.raises(
        InputError, match=r"do not fit the family yolox; .*export the model with channels first, \[1, 3, H, W\]"
    ):
        choose_family(signature, "yolox")


def test_a_wrong_family_names_the_one_that_fits() -> None:
    with pytest.raises(InputError, match=r"those of yolov5, not of yolov8 \(.*\); leave out the family"):
        choose_family(_signature([(1, 25200, 85)]), "yolov8")
