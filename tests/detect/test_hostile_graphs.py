"""Graphs that are damaged or made to do harm: one line that names the graph, nothing else, and no large allocation."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from detect_graphs import fixed_outputs, small_yolo, with_metadata
from PIL import Image

from probox.cli import main
from probox.detect.graph import LARGEST_SIDE, MOST_CHARACTERS, parse_names, read_classes, read_metadata
from probox.errors import InputError

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
    assert line.endswith(f"are not those of {family}; name another family with --family")


def test_a_second_input_that_is_missing_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    outputs = {"boxes": np.zeros((1, 24, 4), np.float32), "scores": np.zeros((1, 80, 24), np.float32)}
    graph = fixed_outputs(tmp_path / "m.onnx", INPUT, outputs)
    assert "are not those of yolov3; name another family" in _refusal(graph, capfd, "--family", "yolov3")


@pytest.mark.parametrize("wrong", ["logits", "pred_boxes"])
def test_outputs_that_are_not_finite_are_refused_without_warnings(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], wrong: str
) -> None:
    outputs = _queries()
    outputs[wrong][0, 3], outputs[wrong][0, 4] = np.nan, np.inf
    line = _refusal(fixed_outputs(tmp_path / "m.onnx", INPUT, outputs), capfd, "--family", "detr")
    assert ": image 7: taken for detr, but " in line
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


@pytest.mark.parametrize(
    ("content", "problem"), [(b"[" * 100000, "expected a JSON list of names"), (b"caf\xe9\n", "expected UTF-8 text")]
)
def test_a_damaged_file_of_class_names_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    (tmp_path / "names.txt").write_bytes(content)
    with pytest.raises(InputError, match=problem):
        read_classes(tmp_path / "names.txt")
