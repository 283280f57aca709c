"""Small ONNX graphs with the inputs and outputs of real detectors, and small networks to put dropout into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def save(path: Path, graph: onnx.GraphProto, opset: int = 13) -> Path:
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=7)
    onnx.checker.check_model(model)
    onnx.save(model, str(path))
    return path


def fixed_outputs(
    path: Path,
    inputs: Mapping[str, Sequence[int | str]],
    outputs: Mapping[str, np.ndarray],
    shapes: Mapping[str, Sequence[int | str]] | None = None,
) -> Path:
    """A graph that says the same whatever it sees: each output is a constant plus 0 times the sum of the first input.

    `shapes` declares outputs otherwise than they are, for graphs that leave dimensions open.
    """
    first = next(iter(inputs))
    nodes = [
        helper.make_node("ReduceSum", [first], ["sum"], keepdims=0),
        helper.make_node("Constant", [], ["zero"], value=numpy_helper.from_array(np.float32(0))),
        helper.make_node("Mul", ["sum", "zero"], ["nothing"]),
    ]
    values = []
    for name, array in outputs.items():
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        nodes.append(helper.make_node("Constant", [], [f"{name}_c"], value=numpy_helper.from_array(array, f"{name}_c")))
        nodes.append(helper.make_node("Cast", ["nothing"], [f"{name}_0"], to=kind))
        nodes.append(helper.make_node("Add", [f"{name}_c", f"{name}_0"], [name]))
        values.append(helper.make_tensor_value_info(name, kind, (shapes or {}).get(name, array.shape)))
    ins = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
    return save(path, helper.make_graph(nodes, "fixed", ins, values))


def small_yolo(
    path: Path,
    *,
    shape: Sequence[int | str] = ("n", 3, 64, 64),
    out_shape: Sequence[int | str] = ("n", 7, 84),
    keeps_batch: bool = True,
    half: bool = False,
) -> Path:
    """A real, tiny YOLOv8: one convolution for each stride, three classes; any batch, any size.

    With `keeps_batch` off it puts the candidates of all images into one list, as graphs do whose shapes were fixed
    for one image. `half` makes inputs, weights and outputs of half precision.
    """
    rng = np.random.default_rng(5)
    kind, number = (TensorProto.FLOAT16, np.float16) if half else (TensorProto.FLOAT, np.float32)
    centre = np.zeros(7, number)
    centre[:4], centre[4:] = [32, 32, 20, 14], -1.0
    spread = np.array([8, 8, 4, 4, 1, 1, 1], number)[None, :, None]
    constants = {"rows": np.array([0 if keeps_batch else 1, 7, -1], np.int64), "centre": centre[None, :, None]}
    nodes, maps = [], []
    for stride in (8, 16, 32):
        constants[f"w{stride}"] = rng.normal(0, 0.3, (7, 3, stride, stride)).astype(number)
        nodes.append(
            helper.make_node(
                "Conv", ["images", f"w{stride}"], [f"c{stride}"], f"conv{stride}", strides=[stride, stride]
            )
        )
        nodes.append(helper.make_node("Reshape", [f"c{stride}", "rows"], [f"r{stride}"]))
        maps.append(f"r{stride}")
    constants |= {"spread": spread, "parts": np.array([4, 3], np.int64)}
    nodes += [
        helper.make_node("Concat", maps, ["all"], axis=2),
        helper.make_node("Tanh", ["all"], ["between"]),
        helper.make_node("Mul", ["between", "spread"], ["moves"]),
        helper.make_node("Add", ["moves", "centre"], ["raw"]),
        helper.make_node("Split", ["raw", "parts"], ["boxes", "logits"], axis=1),
        helper.make_node("Sigmoid", ["logits"], ["scores"]),
        helper.make_node("Concat", ["boxes", "scores"], ["output0"], axis=1),
    ]
    weights = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    ins = [helper.make_tensor_value_info("images", kind, shape)]
    outs = [helper.make_tensor_value_info("output0", kind, out_shape)]
    return save(path, helper.make_graph(nodes, "small_yolo", ins, outs, weights))


def small_ssd(path: Path, classes: int = 3, seed: int = 0) -> Path:
    """A real, tiny SSD: two convolutions, then a box and a class predictor of two layers each, on a 4 x 4 map."""
    rng = np.random.default_rng(seed)
    weights: list[onnx.TensorProto] = []

    def weight(name: str, *shape: int) -> str:
        weights.append(numpy_helper.from_array(rng.normal(0, 0.3, shape).astype(np.float32), name))
        return name

    def conv(
        data: str, name: str, out: int, ins: int, size: int = 3, stride: int = 1, group: int = 1
    ) -> onnx.NodeProto:
        pad = size // 2
        return helper.make_node(
            "Conv", [data, weight(f"{name}.weight", out, ins // group, size, size)], [name], name,
            kernel_shape=[size, size], strides=[stride, stride], pads=[pad] * 4, group=group,
        )  # fmt: skip

    anchors = np.stack(np.meshgrid(np.arange(4), np.arange(4)), axis=-1).reshape(1, 16, 2) / 4.0
    boxes = np.concatenate([anchors[..., ::-1], anchors[..., ::-1] + 0.4], axis=-1).astype(np.float32)
    constants = {
        "std": np.float32(255),
        "anchors": boxes,
        "small": np.float32(0.02),
        "box_shape": np.array([1, -1, 4], np.int64),
        "class_shape": np.array([1, -1, classes], np.int64),
    }
    weights += [numpy_helper.from_array(value, name) for name, value in constants.items()]
    nodes = [
        helper.make_node("Div", ["image", "std"], ["scaled"]),
        helper.make_node("Transpose", ["scaled"], ["chw"], perm=[0, 3, 1, 2]),
        conv("chw", "stem", 8, 3, stride=4),
        helper.make_node("Relu", ["stem"], ["stem_r"]),
        conv("stem_r", "body", 16, 8, stride=2),
        helper.make_node("Relu", ["body"], ["feature"]),
        conv("feature", "box.depthwise", 16, 16, group=16),
        conv("box.depthwise", "box.point", 4, 16, size=1),
        conv("feature", "class.depthwise", 16, 16, group=16),
        conv("class.depthwise", "class.point", classes, 16, size=1),
        helper.make_node("Transpose", ["box.point"], ["box_hwc"], perm=[0, 2, 3, 1]),
        helper.make_node("Reshape", ["box_hwc", "box_shape"], ["deltas"]),
        helper.make_node("Mul", ["deltas", "small"], ["moves"]),
        helper.make_node("Add", ["anchors", "moves"], ["boxes"]),
        helper.make_node("Transpose", ["class.point"], ["class_hwc"], perm=[0, 2, 3, 1]),
        helper.make_node("Reshape", ["class_hwc", "class_shape"], ["logits"]),
        helper.make_node("Sigmoid", ["logits"], ["scores"]),
    ]
    ins = [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 32, 32, 3])]
    outs = [
        helper.make_tensor_value_info("boxes", TensorProto.FLOAT, [1, 16, 4]),
        helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 16, classes]),
    ]
    return save(path, helper.make_graph(nodes, "small_ssd", ins, outs, weights))
