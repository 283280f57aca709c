"""A small ONNX detector in one file, with synthetic photos and their ground truth.

    python examples/tiny_detector.py FOLDER

writes FOLDER/photos, FOLDER/truth.parquet and FOLDER/tiny.onnx for trying `probox detect`. The network has two layers:
fixed filters for light, dark and edges, and a head that is fitted by least squares in seconds. Its output has the
format of YOLOv8, for images of 96 x 96 pixels.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

import probox
from probox_experiments.training.scenes import CLASSES, SIDE, Scenes, draw_scenes, render

Floats = npt.NDArray[np.float32]

STRIDE = 8
CELLS = SIDE // STRIDE
PATCH = 4
"""Width and stride of the fixed filters, which divide the image into SIDE / PATCH squares per side."""
REACH = 11
"""Width of the head's window around a cell's centre in squares."""
COARSER = (CELLS // 2) ** 2 + (CELLS // 4) ** 2
"""YOLOv8 also has cells of strides 16 and 32. Here they are empty."""
STEEP = 8.0
"""Slope of the sigmoid that maps the least-squares output, about 0 or 1, to a score."""
RIDGE = 30.0


def filters() -> tuple[Floats, Floats]:
    """Return weights (8, 3, PATCH, PATCH) and biases: lighter or darker than the ground, by much or little; edges."""
    mean = np.full((3, PATCH, PATCH), 1.0 / (3 * PATCH * PATCH))
    ramp = np.where(np.arange(PATCH) < PATCH // 2, -1.0, 1.0)
    across = mean * ramp
    down = mean * ramp[:, None]
    weights = np.stack([mean, mean, -mean, -mean, across, -across, down, -down])
    return weights.astype(np.float32), np.array([-0.5, -0.65, 0.4, 0.25, 0, 0, 0, 0], np.float32)


def squares(pictures: npt.NDArray[np.uint8]) -> Floats:
    """Return the first layer's output, (images, 8, SIDE / PATCH, SIDE / PATCH)."""
    weights, biases = filters()
    side = SIDE // PATCH
    patches = pictures.reshape(-1, 3, side, PATCH, side, PATCH).astype(np.float32) / 255.0
    return np.maximum(np.einsum("ncyixj,fcij->nfyx", patches, weights, optimize=True) + biases[:, None, None], 0.0)


def windows(seen: Floats) -> Floats:
    """Return the head's input for each cell, (images, CELLS, CELLS, 8, REACH, REACH)."""
    before = REACH // 2
    padded = np.pad(seen, ((0, 0), (0, 0), (before, before), (before, before)))
    all_of_them = np.lib.stride_tricks.sliding_window_view(padded, (REACH, REACH), axis=(2, 3))
    return all_of_them[:, :, :: STRIDE // PATCH, :: STRIDE // PATCH].transpose(0, 2, 3, 1, 4, 5)


def centres() -> Floats:
    """Return the middle of the square that each cell's window is centred on, (CELLS,), in pixels."""
    return (np.arange(CELLS) * STRIDE + PATCH / 2).astype(np.float32)


def fit(scenes: Scenes) -> tuple[Floats, Floats]:
    """Return the head's weights (7, 8, REACH, REACH) and biases: four distances to a box's edges, three classes."""
    seen = windows(squares(render(scenes)))
    boxes = scenes.pixel_boxes + np.array([0.0, 0.0, 1.0, 1.0])  # where the last pixel ends
    middle = (boxes[:, :2] + boxes[:, 2:]) / 2
    cell = np.rint((middle - PATCH / 2) / STRIDE).astype(int).clip(0, CELLS - 1)
    named = np.zeros((scenes.count, CELLS, CELLS, len(CLASSES)), np.float32)
    # Cells around an object's centre learn distances and class; an equal number of random cells are mostly negative.
    around = np.array([(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1)])
    at = (cell[:, None, ::-1] + around).reshape(-1, 2).clip(0, CELLS - 1)
    image = np.repeat(scenes.image_rows, len(around))
    place = centres()
    here = place[at[:, ::-1]]
    named[image, at[:, 0], at[:, 1], np.repeat(scenes.labels, len(around))] = 1.0
    edges = np.repeat(boxes, len(around), axis=0)
    distances = np.concatenate([here - edges[:, :2], edges[:, 2:] - here], axis=1)
    rng = np.random.default_rng(scenes.seed)
    other = rng.integers((scenes.count, CELLS, CELLS), size=(len(at), 3))
    rows = np.concatenate([np.stack([image, *at.T], axis=1), other])
    weights = np.empty((7, 8 * REACH * REACH + 1))
    features = _with_one(seen[rows[:, 0], rows[:, 1], rows[:, 2]])
    targets = named[rows[:, 0], rows[:, 1], rows[:, 2]].astype(np.float64)
    weights[:4] = _least_squares(features[: len(at)], distances).T
    weights[4:] = _least_squares(features, targets).T
    return (
        weights[:, :-1].reshape(7, 8, REACH, REACH).astype(np.float32),
        weights[:, -1].astype(np.float32),
    )


def _with_one(seen: Floats) -> npt.NDArray[np.float64]:
    flat = seen.reshape(len(seen), -1).astype(np.float64)
    return np.concatenate([flat, np.ones((len(flat), 1))], axis=1)


def _least_squares(features: npt.NDArray[np.float64], targets: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    normal = features.T @ features
    # A ridge against overfitting; filter outputs are small, so the ridge is in units of their mean square.
    normal[np.diag_indices(len(normal) - 1)] += RIDGE * normal.trace() / len(features)
    return np.linalg.solve(normal, features.T @ targets)


def save(path: Path, weights: Floats, biases: Floats) -> None:
    """Write the graph: two convolutions, then from distances and sums to boxes and scores."""
    first, shifts = filters()
    x, y = np.meshgrid(centres(), centres())
    middle = np.stack([x.ravel(), y.ravel()])[None].astype(np.float32)
    nothing = np.zeros((1, 7, COARSER), np.float32)
    nothing[:, 2:4] = 1.0
    constants = {
        "filters": first, "shifts": shifts, "boxes_w": weights[:4], "boxes_b": biases[:4],
        "classes_w": weights[4:], "classes_b": biases[4:], "middle": middle, "nothing": nothing,
        "half": np.float32(0.5), "steep": np.float32(STEEP),
        "box_rows": np.array([1, 4, -1], np.int64), "class_rows": np.array([1, 3, -1], np.int64),
    }  # fmt: skip
    reach = {"kernel_shape": [REACH, REACH], "strides": [STRIDE // PATCH] * 2, "pads": [REACH // 2] * 4}
    node = helper.make_node
    nodes = [
        node("Conv", ["images", "filters", "shifts"], ["squares"], "filters", strides=[PATCH, PATCH]),
        node("Relu", ["squares"], ["seen"]),
        node("Conv", ["seen", "boxes_w", "boxes_b"], ["sides"], "boxes", **reach),
        node("Conv", ["seen", "classes_w", "classes_b"], ["sums"], "classes", **reach),
        node("Reshape", ["sides", "box_rows"], ["distances"]),
        node("Split", ["distances"], ["before", "after"], axis=1),
        node("Sub", ["after", "before"], ["twice_aside"]),
        node("Mul", ["twice_aside", "half"], ["aside"]),
        node("Add", ["aside", "middle"], ["centre"]),
        node("Add", ["before", "after"], ["size"]),
        node("Reshape", ["sums", "class_rows"], ["named"]),
        node("Sub", ["named", "half"], ["above"]),
        node("Mul", ["above", "steep"], ["logits"]),
        node("Sigmoid", ["logits"], ["scores"]),
        node("Concat", ["centre", "size", "scores"], ["fine"], axis=1),
        node("Concat", ["fine", "nothing"], ["output0"], axis=2),
    ]  # fmt: skip
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, SIDE, SIDE])],
        [helper.make_tensor_value_info("output0", TensorProto.FLOAT, [1, 7, CELLS**2 + COARSER])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
    helper.set_model_props(model, {"names": str(dict(enumerate(CLASSES)))})
    onnx.checker.check_model(model)
    onnx.save(model, str(path))


def main() -> None:
    """Fit the detector, and draw test photos."""
    parser = argparse.ArgumentParser(description="Make a tiny detector, photos and their ground truth.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--photos", type=int, default=120, help="test photos [120]")
    parser.add_argument("--images", type=int, default=300, help="training images [300]")
    options = parser.parse_args()
    from PIL import Image

    (options.folder / "photos").mkdir(parents=True, exist_ok=True)
    save(options.folder / "tiny.onnx", *fit(draw_scenes(options.images, seed=0)))
    scenes = draw_scenes(options.photos, seed=1)
    for number, picture in enumerate(render(scenes), 1):
        Image.fromarray(picture.transpose(1, 2, 0)).save(options.folder / "photos" / f"{number:06d}.png")
    probox.write_parquet(options.folder / "truth.parquet", scenes.truth)
    print(f"wrote {options.photos} photos, ground truth and tiny.onnx to {options.folder}")


if __name__ == "__main__":
    main()
