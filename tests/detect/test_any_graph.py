"""Any graph whatever ends in detections or in one line that says why not; nothing is left behind."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest
from detect_graphs import any_graph, fixed_outputs, small_yolo, with_metadata
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st
from onnx import TensorProto, helper
from PIL import Image
from tests.amounts import examples

from probox.cli import main
from probox.detect import FAMILIES, UNCERTAINTIES
from probox.detect.graph import LARGEST_SIDE, MOST_CHARACTERS, parse_names, read_metadata
from probox.errors import InputError


def _detect(folder: Path, model: Path, *options: str) -> tuple[int, str]:
    """Run the command; return its status and words, after looking at what is left in the folder."""
    photos = folder / "photos"
    if not photos.exists():
        photos.mkdir()
        rng = np.random.default_rng(3)
        Image.fromarray(rng.integers(0, 255, (30, 40, 3), dtype=np.uint8)).save(photos / "1.png")
    made = folder / "made"
    made.mkdir(exist_ok=True)
    out, words = made / "found.json", io.StringIO()
    arguments = ["detect", str(model), "--images", str(photos), "--out", str(out), "--threads", "1", *options]
    with contextlib.redirect_stderr(words), contextlib.redirect_stdout(io.StringIO()), pytest.raises(SystemExit) as end:
        main(arguments)
    status, text = int(end.value.code or 0), words.getvalue()
    if status:
        assert status in (1, 2), text
        assert list(made.iterdir()) == []
        assert "Traceback" not in text
        *before, last = text.strip().splitlines()
        assert last.startswith("probox: " if status == 1 else "Error: "), text
        assert status == 2 or all(line.startswith("The model takes batches of ") for line in before), text
    else:
        assert [path.name for path in made.iterdir()] == ["found.json"]
        assert len(json.loads(out.read_text())["detections"]) == 1
        out.unlink()
    return status, text


PLAUSIBLE = {
    "ssd": [(1, 24, 4), (1, 24, 3)],
    "yolov8": [(1, 7, 84)],
    "yolov5": [(1, 252, 8)],
    "nanodet": [(1, 64, 3), (1, 16, 3), (1, 4, 3), (1, 64, 32), (1, 16, 32), (1, 4, 32)],
    "picodet": [(1, 64, 3), (1, 64, 32), (1, 16, 3), (1, 16, 32), (1, 4, 3), (1, 4, 32), (1, 1, 3), (1, 1, 32)],
    "nanodet-plus": [(1, 85, 35)],
    "torchvision": [(24, 4), (24,), (24,)],
    "tensorflow": [(1,), (1, 24, 4), (1, 24), (1, 24)],
    "mmdeploy": [(1, 24, 5), (1, 24)],
    "end to end": [(1, 300, 6)],
    "classifier": [(1, 3)],
    "segmentation": [(1, 3, 64, 64)],
}
"""Outputs that look like those of detectors, to be made worse."""

INPUTS = [
    [("images", TensorProto.FLOAT, [1, 3, 64, 64])],
    [("images", TensorProto.FLOAT, [1, 64, 64, 3])],
    [("images", TensorProto.FLOAT, ["b", 3, "h", "w"])],
    [("images", TensorProto.FLOAT16, [1, 3, 64, 64])],
    [("images", TensorProto.UINT8, [1, 64, 64, 3])],
    [("images", TensorProto.UINT8, ["b", "h", "w", 3])],
    [("images", TensorProto.DOUBLE, [4, 3, 64, 64])],
    [("images", TensorProto.FLOAT, [3, "h", "w"])],
    [("images", TensorProto.FLOAT, [1, 1, 64, 64])],
    [("images", TensorProto.FLOAT, [1, 4, 64, 64])],
    [("images", TensorProto.FLOAT, [1, 3, 1 << 20, 1 << 20])],
    [("images", TensorProto.FLOAT, [])],
    [("images", TensorProto.FLOAT, None)],
    [("images", TensorProto.FLOAT, ["a", "b", "c", "d", "e"])],
    [("images", TensorProto.INT64, [1, 3, 64, 64])],
    [("images", TensorProto.STRING, [1])],
    [("images", TensorProto.FLOAT, [1, 3, 64, 64]), ("orig_target_sizes", TensorProto.INT64, [1, 2])],
    [("images", TensorProto.FLOAT, [1, 3, 64, 64]), ("pixel_mask", TensorProto.INT64, [1, "h", "w"])],
    [("a", TensorProto.FLOAT, [1]), ("b", TensorProto.FLOAT, [1, 3, 64, 64]), ("c", TensorProto.FLOAT, [2, 2])],
    [],
]

TYPES = [np.float32, np.float32, np.float32, np.float16, np.float64, np.int64, np.uint8, np.bool_, object]
VALUES = ["probabilities", "probabilities", "logits", "pixels", "zeros", "nan", "huge"]
NAMES = ["output", "boxes", "scores", "labels", "logits", "pred_boxes", "detection_classes:0", "num_detections", "dets"]


@st.composite
def outputs(draw: st.DrawFn) -> list[tuple[str, np.ndarray, list | None]]:
    """Outputs of a detector, or of anything, with a dimension, a type or values that do not fit."""
    likely = st.sampled_from(list(PLAUSIBLE.values()))
    strange = st.lists(st.lists(st.sampled_from([0, 1, 3, 4, 5, 7, 24]), max_size=5), max_size=4)
    shapes = [list(shape) for shape in draw(st.one_of(likely, likely, strange))]
    if shapes and draw(st.booleans()):
        shape = shapes[draw(st.integers(0, len(shapes) - 1))]
        if shape:
            shape[draw(st.integers(0, len(shape) - 1))] = draw(st.sampled_from([0, 1, 2, 4, 6, 25]))
    found = []
    used = draw(st.permutations(NAMES))
    for number, shape in enumerate(shapes):
        kind = draw(st.sampled_from(TYPES))
        values = _values(draw(st.sampled_from(VALUES)), tuple(shape), number)
        array = np.full(shape, "cup", object) if kind is object else np.nan_to_num(values, nan=np.nan).astype(kind)
        declared = [draw(st.sampled_from([size, size, f"d{number}_{at}"])) for at, size in enumerate(shape)]
        found.append((used[number], array, draw(st.sampled_from([declared, declared, None]))))
    return found


def _values(kind: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = {
        "probabilities": rng.uniform(0, 1, shape),
        "logits": rng.normal(0, 4, shape),
        "pixels": rng.uniform(0, 64, shape),
        "zeros": np.zeros(shape),
        "nan": np.full(shape, np.nan),
        "huge": np.full(shape, 3e4),
    }
    return values[kind]


def _found(shapes: list[tuple[int, ...]]) -> list[tuple[str, np.ndarray, tuple]]:
    """Outputs that were once too much."""
    return [
        (NAMES[at], _values("probabilities", shape, at).astype(np.float32), shape) for at, shape in enumerate(shapes)
    ]


@examples(80, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
@example(inputs=INPUTS[-2], outputs=_found(PLAUSIBLE["yolov8"]), family="auto", names="a\nb\nc", uncertainty="none")
@example(
    inputs=INPUTS[-2], outputs=_found(PLAUSIBLE["classifier"]), family="yolov8", names="a\nb\nc", uncertainty="none"
)
@example(inputs=INPUTS[7], outputs=_found(PLAUSIBLE["ssd"]), family="auto", names="a\nb\nc", uncertainty="none")
@example(inputs=INPUTS[0], outputs=_found([(), ()]), family="auto", names="a\nb\nc", uncertainty="none")
@given(
    inputs=st.sampled_from(INPUTS),
    outputs=outputs(),
    family=st.sampled_from(["auto", "auto", *FAMILIES]),
    names=st.sampled_from(["a\nb\nc", "a\nb", None]),
    uncertainty=st.sampled_from(["none", *UNCERTAINTIES]),
)
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
def test_any_graph_ends_well(inputs: list, outputs: list, family: str, names: str | None, uncertainty: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        options = ["--family", family, "--uncertainty", uncertainty]
        if names is not None:
            (folder / "names.txt").write_text(names)
            options += ["--classes", str(folder / "names.txt")]
        _detect(folder, any_graph(folder / "m.onnx", inputs, outputs), *options)


def test_files_that_are_no_graphs(tmp_path: Path, ssd: Path) -> None:
    whole = ssd.read_bytes()
    wrong = {
        "zero.onnx": b"",
        "text.onnx": b"# a model\n" * 30,
        "photo.onnx": b"\x89PNG\r\n\x1a\n" + bytes(200),
        "half.onnx": whole[: len(whole) // 2],
        "most.onnx": whole[:-20],
    }
    for name, content in wrong.items():
        (tmp_path / name).write_bytes(content)
        status, text = _detect(tmp_path, tmp_path / name)
        assert status == 1, name
        assert f"{name}: ONNX Runtime can't load this model: " in text
        assert "onnxruntime_src" not in text
    (tmp_path / "folder.onnx").mkdir()
    assert "expected a file, but this is a folder" in _detect(tmp_path, tmp_path / "folder.onnx")[1]
    assert "missing.onnx: no such file" in _detect(tmp_path, tmp_path / "missing.onnx")[1]


def _model(path: Path, nodes: list, outputs: list, opset: int = 17, ir: int = 8, weights: list | None = None) -> Path:
    image = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 64, 64])
    graph = helper.make_graph(nodes, "g", [image], outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)
    path.write_bytes(model.SerializeToString())
    return path


def test_graphs_that_cannot_be_run_are_said_in_one_line(tmp_path: Path) -> None:
    out = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3, 64, 64])]
    same = [helper.make_node("Identity", ["x"], ["y"])]
    cases = {
        "Frobnicate": _model(tmp_path / "op.onnx", [helper.make_node("Frobnicate", ["x"], ["y"])], out),
        "opset": _model(tmp_path / "opset.onnx", same, out, opset=99),
        "IR version": _model(tmp_path / "ir.onnx", same, out, ir=99),
        "no outputs": _model(tmp_path / "none.onnx", same, []),
        "can't tell the family from the outputs y [1, 3, 64, 64]": _model(tmp_path / "seg.onnx", same, out),
        "seq(tensor(float))": _model(
            tmp_path / "seq.onnx",
            [helper.make_node("SequenceConstruct", ["x"], ["s"])],
            [helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)],
        ),
    }
    for words, path in cases.items():
        status, text = _detect(tmp_path, path)
        assert status == 1
        assert words in text
        assert "onnxruntime_src" not in text


def test_weights_that_are_not_there(tmp_path: Path) -> None:
    weights = onnx.numpy_helper.from_array(np.zeros((8, 3, 3, 3), np.float32), "w")
    out = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8, 62, 62])]
    path = _model(tmp_path / "m.onnx", [helper.make_node("Conv", ["x", "w"], ["y"])], out, weights=[weights])
    model = onnx.load(str(path))
    onnx.save(model, str(path), save_as_external_data=True, location="m.data", size_threshold=0)
    (tmp_path / "m.data").unlink()
    status, text = _detect(tmp_path, path)
    assert status == 1
    assert "m.data" in text


@pytest.mark.parametrize(
    ("shape", "kind", "words"),
    [
        ([1, 1, 64, 64], TensorProto.FLOAT, "greyscale images"),
        ([1, 4, 64, 64], TensorProto.FLOAT, "four channels"),
        ([1, 3, 64, 64], TensorProto.INT8, "tensor(int8), expected a numeric type"),
        ([1, 3, 1 << 20, 64], TensorProto.FLOAT, "not a valid image size"),
        ([1, 10], TensorProto.FLOAT, "no input has the shape of an image"),
    ],
)
def test_inputs_that_take_no_photo(tmp_path: Path, shape: list, kind: int, words: str) -> None:
    rows = np.random.default_rng(0).uniform(0, 1, (1, 7, 84)).astype(np.float32)
    path = any_graph(tmp_path / "m.onnx", [("images", kind, shape)], [("output0", rows, rows.shape)])
    for family in ("auto", "yolov8"):
        status, text = _detect(tmp_path, path, "--family", family)
        assert status == 1
        assert words in text


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE])
def test_floats_of_any_width_are_fed(tmp_path: Path, names: Path, kind: int) -> None:
    rows = np.random.default_rng(0).uniform(0, 1, (1, 7, 84)).astype(np.float32)
    rows[:, :4] *= 60
    path = any_graph(tmp_path / "m.onnx", [("images", kind, [1, 3, 64, 64])], [("output0", rows, rows.shape)])
    assert _detect(tmp_path, path, "--classes", str(names))[0] == 0


INPUT = {"pixel_values": [1, 3, 64, 64]}


def _queries(columns: int = 92) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    logits, boxes = rng.normal(size=(1, 20, columns)), rng.uniform(0.2, 0.5, (1, 20, 4))
    return {"logits": logits.astype(np.float32), "pred_boxes": boxes.astype(np.float32)}


def _refusal(model: Path, capfd: pytest.CaptureFixture[str], *options: str) -> str:
    """Run the command, which must print one line on standard error and nothing else; return the line."""
    photo = model.with_name("7.png")
    Image.fromarray(np.full((64, 64, 3), 90, np.uint8)).save(photo)
    arguments = ["detect", str(model), str(photo), "--out", str(model.with_name("found.json")), *options]
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with pytest.raises(SystemExit) as end:
            main(arguments)
    out, words = capfd.readouterr()
    assert (end.value.code, out) == (1, "")
    (line,) = words.splitlines()
    assert line.startswith(f"probox: {model}: ")
    return line


@pytest.mark.parametrize("extra", [{"sizes": [1, 2]}, {"more": [1, 3, 64, 64]}, {"name": [1]}])
@pytest.mark.parametrize("family", ["detr", "rt-detr"])
def test_an_input_that_the_named_family_lacks_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], family: str, extra: dict[str, list[int]]
) -> None:
    graph = fixed_outputs(tmp_path / "m.onnx", INPUT | extra, _queries(92 if family == "detr" else 80))
    line = _refusal(graph, capfd, "--family", family)
    assert f"{next(iter(extra))} [" in line
    assert line.endswith(f"do not fit the family {family}; name another family (--family)")


def test_a_second_input_that_is_missing_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    outputs = {"boxes": np.zeros((1, 24, 4), np.float32), "scores": np.zeros((1, 80, 24), np.float32)}
    graph = fixed_outputs(tmp_path / "m.onnx", INPUT, outputs)
    assert "do not fit the family yolov3; name another family" in _refusal(graph, capfd, "--family", "yolov3")


@pytest.mark.parametrize("wrong", ["logits", "pred_boxes"])
def test_outputs_that_are_not_finite_are_refused_without_warnings(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], wrong: str
) -> None:
    outputs = _queries()
    outputs[wrong][0, 3], outputs[wrong][0, 4] = np.nan, np.inf
    line = _refusal(fixed_outputs(tmp_path / "m.onnx", INPUT, outputs), capfd, "--family", "detr")
    assert ": image 7: read as detr, but " in line
    assert "are not numbers (NaN or infinite)" in line


def test_onnx_runtime_announces_nothing_itself(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    graph = fixed_outputs(tmp_path / "m.onnx", INPUT, _queries())
    graph.write_bytes(graph.read_bytes().replace(b"ReduceSum", b"Reduce\xfbum"))
    assert "ONNX Runtime can't load this model: 'utf-8' codec" in _refusal(graph, capfd)
    graph.write_bytes(graph.read_bytes()[:300])
    assert "ONNX Runtime can't load this model: " in _refusal(graph, capfd)


@pytest.mark.parametrize("entry", ["names", "character", "imgsz", "task", "stride", "head"])
def test_metadata_have_a_limit(tmp_path: Path, capfd: pytest.CaptureFixture[str], entry: str) -> None:
    text = "[" + "1," * (MOST_CHARACTERS // 2) + "]"
    line = _refusal(with_metadata(small_yolo(tmp_path / "m.onnx"), {entry: text}), capfd)
    assert f"metadata {entry}: expected at most 262,144 characters, but got 262,146; export the model again" in line


def test_metadata_that_are_not_utf8_are_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    graph = with_metadata(small_yolo(tmp_path / "m.onnx"), {"names": "{0: 'MARK'}"})
    graph.write_bytes(graph.read_bytes().replace(b"MARK", b"MA\xffK"))
    line = _refusal(graph, capfd)
    assert "expected names of tensors and metadata in UTF-8, but got byte 0xff; export the model again" in line


def test_the_input_size_in_metadata_has_a_limit(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    graph = small_yolo(tmp_path / "m.onnx", shape=("n", 3, "h", "w"), out_shape=("n", 7, "cells"))
    line = _refusal(with_metadata(graph, {"imgsz": "[64, 1000000]"}), capfd)
    assert "metadata imgsz: expected at most 8,192 px, but got 1000000" in line
    assert read_metadata({"imgsz": f"[64, {LARGEST_SIDE}]"}).size == (LARGEST_SIDE, 64)
    with pytest.raises(InputError, match="expected at most 8,192 px, but got 1000"):
        read_metadata({"imgsz": f"{10**400}"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{0: 'cup', 1: \"dog's (small)\", 2: 'a\\'b, {c}: ['}", ("cup", "dog's (small)", "a'b, {c}: [")),
        (" ['cup', 7, 'd\\xf6g',] ", ("cup", "7", "d\xf6g")),
        ("{0: 'cup', 2: 'dog'}", None),
        ("{[]: 'cup'}", None),
        ("{0: ['cup']}", None),
        ("{0: 0x" + "f" * 20000 + "}", None),
        ("[" + "9" * 20000 + "]", None),
        ("{0: '\\ud800'}", None),
        ("{0: 'a\\", None),
        ("['a\\d']", ("a\\d",)),
        ("1" + "+1" * 100000, None),
        ("[" * 100000, None),
        ("['" + "a', '" * 100000, None),
        ("[" + "1," * 5000 + "]", ("1",) * 5000),
        ("[1" + " " * 200000, None),
        ("[]", None),
        ("", None),
    ],
    ids=range(17),
)
def test_names_are_a_flat_list_or_dictionary(text: str, expected: tuple[str, ...] | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert parse_names(text) == expected
