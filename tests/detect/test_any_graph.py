"""Any graph whatever ends in detections or in one line that says why not; nothing is left behind."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from detect_graphs import any_graph
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto
from PIL import Image

from probox.cli import main
from probox.detect import FAMILIES


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
        assert len(text.strip().splitlines()) == 1 or status == 2, text
        assert text.startswith(("probox: ", "Usage: ")), text
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


@settings(max_examples=150, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(
    inputs=st.sampled_from(INPUTS),
    outputs=outputs(),
    family=st.sampled_from(["auto", "auto", *FAMILIES]),
    names=st.sampled_from(["a\nb\nc", "a\nb", None]),
)
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
def test_any_graph_ends_well(inputs: list, outputs: list, family: str, names: str | None) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        options = ["--family", family]
        if names is not None:
            (folder / "names.txt").write_text(names)
            options += ["--classes", str(folder / "names.txt")]
        _detect(folder, any_graph(folder / "m.onnx", inputs, outputs), *options)
