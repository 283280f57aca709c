"""What `probox detect` reads besides photos: ONNX files and what they say of themselves, and interrupted runs."""

from __future__ import annotations

import io
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from probox import InputError
from probox.detect.graph import read_metadata

from . import seeds
from .checks import check_detections, check_error
from .hostile import hostile_archive, hostile_array
from .mutate import NUMBERS, dump, mutate_bytes, mutate_json, parse

__all__ = ["interrupted_run", "metadata_entries", "onnx_file", "use_interrupted_run", "use_metadata", "use_onnx"]

Files = dict[str, bytes]

ENTRIES = {
    "names": "{0: 'cup', 1: 'dog', 2: 'cat'}", "imgsz": "[64, 64]", "task": "detect", "stride": "32",
    "head": "Detect", "character": "cup\ndog\ncat", "batch": "1",
}  # fmt: skip

LITERALS = (
    "", "None", "[]", "{}", "{0: 'cup'}", "['cup', 'dog', 'cat']", "{1: 'a'}", "{0: 1, 1: 2}", "{0: {}}", "b'x'", "1j",
    "-1", "True", "[True, 64]", "[0, 0]", "[64]", "[64, 64, 64]", "1e999", "set()", "x", "__import__('os')",
    "(" * 90 + ")" * 90, "(" * 9000, "[" * 9000, "-" * 9000 + "1", "{0:" * 90, "'" + "x" * 9000 + "'", "9" * 9000,
    "{0: '\\x1b[2J', 1: '\\ud800', 2: ''}", "{0: 'a', 0: 'b'}", "{0.0: 'a', True: 'b', 2: 'c'}", "\0", "\n" * 50,
    "{" + ", ".join(f"{k}: 'x'" for k in range(500)) + "}",
)  # fmt: skip


# --- what an ONNX file says of itself ---


def _entries(rng: Random) -> dict[str, str]:
    entries = dict(ENTRIES)
    for _ in range(rng.choice((1, 1, 2, 3))):
        name = rng.choice(list(entries))
        kind = rng.randrange(4)
        if kind == 0:
            entries[name] = rng.choice(LITERALS)
        elif kind == 1:
            entries[name] = str([rng.choice(NUMBERS) for _ in range(rng.choice((1, 2, 2, 3)))])
        elif kind == 2:
            entries[name] = mutate_bytes(rng, entries[name].encode()).decode(errors="replace")
        elif len(entries) > 1:
            del entries[name]
    return entries


def metadata_entries(rng: Random) -> Files:
    """Return the entries of an export as JSON."""
    return {"file": json.dumps(_entries(rng)).encode()}


def use_metadata(path: Path) -> None:
    """Read them: names are text, sizes and strides are positive."""
    try:
        said = read_metadata(json.loads(path.read_bytes()))
    except InputError as error:  # the file is added where the graph is opened
        raise InputError(error.problem, file=str(path), entry=error.entry, remedy=error.remedy) from None
    assert said.names is None or (said.names and all(isinstance(name, str) for name in said.names))
    assert said.size is None or min(said.size) > 0
    assert said.stride is None or said.stride > 0


# --- ONNX files ---


@cache
def _models() -> tuple[bytes, ...]:
    """Return a YOLO graph of three classes, and the same with an open batch and size."""
    from onnx import TensorProto, helper, numpy_helper

    models = []
    for shape, out in (([1, 3, 64, 64], [1, 7, 84]), (["n", 3, "h", "w"], ["n", "rows", "cells"])):
        nodes = [
            helper.make_node("ReduceSum", ["images"], ["sum"], keepdims=0),
            helper.make_node("Constant", [], ["zero"], value=numpy_helper.from_array(np.float32(0))),
            helper.make_node("Mul", ["sum", "zero"], ["nothing"]),
            helper.make_node("Constant", [], ["said"], value=numpy_helper.from_array(np.ones((1, 7, 84), np.float32))),
            helper.make_node("Add", ["said", "nothing"], ["output0"]),
        ]
        graph = helper.make_graph(
            nodes, "fixed", [helper.make_tensor_value_info("images", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info("output0", TensorProto.FLOAT, out)],
        )  # fmt: skip
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
        helper.set_model_props(model, ENTRIES)
        models.append(model.SerializeToString())
    return tuple(models)


def onnx_file(rng: Random) -> Files:
    """Return a small detector that says hostile things of itself, or whose bytes are damaged."""
    import onnx

    data = rng.choice(_models())
    if rng.random() < 0.8:
        model = onnx.ModelProto.FromString(data)
        del model.metadata_props[:]
        onnx.helper.set_model_props(model, _entries(rng))
        data = model.SerializeToString()
    return {"file.onnx": mutate_bytes(rng, data, _models()) if rng.random() < 0.25 else data}


def use_onnx(folder: Path) -> None:
    """Open it as `probox detect` does, without running it."""
    from probox.detect.factory import open_detector

    detector = open_detector(str(folder / "file.onnx"), threads=1)
    assert detector.family.classes
    assert detector.fingerprint


# --- interrupted runs ---

PHOTOS = Path(tempfile.gettempdir()) / "probox-fuzz-photos"
"""In one place for all processes: results say where their photo lies and when it was written."""


class _Runner:
    """A detector that sees two boxes in every photo."""

    batch = 1
    fingerprint = "fuzz"

    def __init__(self) -> None:
        from probox.detect import Traits

        self.family = Traits("fuzz", ("cup", "dog"))

    def candidates(self, images: Sequence[Any]) -> list[Any]:
        from probox.detect import Candidates

        boxes = np.array([[1.0, 1, 9, 9], [4, 3, 14, 12]])
        return [Candidates(boxes, np.array([[0.75, 0.1], [0.2, 0.5]], np.float32)) for _ in images]

    def sample(self, images: Sequence[Any], passes: int, image_ids: Sequence[int]) -> list[list[Any]]:
        return [self.candidates([image] * passes) for image in images]


def _detect(out: Path, *, stop: bool = False) -> Any:
    from probox.detect import ImageFile, Options, detect_images

    def progress(done: int, total: int) -> None:
        if stop and done == total:
            raise KeyboardInterrupt

    images = [ImageFile(number, PHOTOS / f"{number}.png", (16, 12)) for number in (1, 2)]
    return detect_images(_Runner(), images, out, Options(), progress=progress)


@cache
def _kept() -> Files:
    """Return what a run leaves behind that is interrupted after its last photo."""
    PHOTOS.mkdir(exist_ok=True)
    for number in (1, 2):
        photo = PHOTOS / f"{number}.png"
        if not photo.exists():
            staged = PHOTOS / f"{number}.{os.getpid()}"
            rows = b"".join(b"\0" + bytes(16 * 3) for _ in range(12))
            staged.write_bytes(seeds.png(16, 12, 8, 2, rows))
            os.utime(staged, (10**9, 10**9))
            staged.replace(photo)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        try:
            _detect(out, stop=True)
        except KeyboardInterrupt:
            place = out.with_name("out.json.partial")
            return {f"{place.name}/{path.name}": path.read_bytes() for path in sorted(place.iterdir())}
    raise AssertionError("the run was not interrupted")


def interrupted_run(rng: Random) -> Files:
    """Return what an interrupted run left, tampered with."""
    files = dict(_kept())
    results = [name for name in files if name.endswith(".npz")]
    name = rng.choice(results)
    kind = rng.randrange(10)
    if kind == 0:
        name = rng.choice(list(files))
        files[name] = mutate_bytes(rng, files[name], list(files.values()))
    elif kind == 1:
        settings = next(name for name in files if name.endswith("settings.json"))
        files[settings] = dump(mutate_json(rng, parse(files[settings])))
    elif kind == 2:
        files[rng.choice(("out.json.partial/3.npz", "out.json.partial/x", name))] = rng.randbytes(rng.randrange(40))
    else:
        with np.load(io.BytesIO(files[name])) as archive:
            arrays = dict(archive)
        for _ in range(rng.choice((1, 1, 2))):
            column = rng.choice(list(arrays))
            arrays[column] = hostile_array(
                rng, arrays[column].reshape(-1) if not arrays[column].ndim else arrays[column]
            )
        if rng.random() < 0.2:
            arrays[rng.choice(("covariances", "plain_scores", "heatmap_boxes", "x"))] = arrays["boxes"]
        if rng.random() < 0.1:
            arrays.pop(rng.choice(list(arrays)))
        files[name] = hostile_archive(rng, arrays)
    return files


def use_interrupted_run(folder: Path) -> None:
    """Go on from there in a copy: the run ends in detections, or says in one line what is wrong."""
    place = folder.with_name(folder.name + "-copy")
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(folder, place)
    try:
        check_detections(_detect(place / "out.json").found)
    except InputError as error:
        check_error(error)
