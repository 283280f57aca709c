"""Small ONNX graphs with the inputs and outputs of real detectors, and small networks to put dropout into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

node = helper.make_node


def save(path: Path, model: onnx.ModelProto) -> Path:
    onnx.checker.check_model(model)
    onnx.save(model, str(path))
    return path


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sequence[int | str]],
    outputs: Mapping[str, Sequence[int | str] | None],
    weights: Mapping[str, np.ndarray] | None = None,
    *,
    kind: int = TensorProto.FLOAT,
    kinds: Mapping[str, int] | None = None,
    opset: int = 13,
) -> onnx.ModelProto:
    """A graph of these nodes, whose inputs and outputs have these shapes and are of one kind, but for `kinds`."""

    def declared(shapes: Mapping[str, Sequence[int | str] | None]) -> list[onnx.ValueInfoProto]:
        return [
            helper.make_tensor_value_info(name, (kinds or {}).get(name, kind), shape) for name, shape in shapes.items()
        ]

    held = [numpy_helper.from_array(np.asarray(value), name) for name, value in (weights or {}).items()]
    graph = helper.make_graph(nodes, "graph", declared(inputs), declared(outputs), held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=7)


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
        node("ReduceSum", [first], ["sum"], keepdims=0),
        node("Constant", [], ["zero"], value=numpy_helper.from_array(np.float32(0))),
        node("Mul", ["sum", "zero"], ["nothing"]),
    ]
    kinds = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in outputs.items()}
    for name, array in outputs.items():
        nodes.append(node("Constant", [], [f"{name}_c"], value=numpy_helper.from_array(array, f"{name}_c")))
        nodes.append(node("Cast", ["nothing"], [f"{name}_0"], to=kinds[name]))
        nodes.append(node("Add", [f"{name}_c", f"{name}_0"], [name]))
    shown = {name: (shapes or {}).get(name, array.shape) for name, array in outputs.items()}
    return save(path, model_of(nodes, inputs, shown, kinds=kinds))


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
        nodes.append(node("Conv", ["images", f"w{stride}"], [f"c{stride}"], f"conv{stride}", strides=[stride, stride]))
        nodes.append(node("Reshape", [f"c{stride}", "rows"], [f"r{stride}"]))
        maps.append(f"r{stride}")
    constants |= {"spread": spread, "parts": np.array([4, 3], np.int64)}
    nodes += [
        node("Concat", maps, ["all"], axis=2),
        node("Tanh", ["all"], ["between"]),
        node("Mul", ["between", "spread"], ["moves"]),
        node("Add", ["moves", "centre"], ["raw"]),
        node("Split", ["raw", "parts"], ["boxes", "logits"], axis=1),
        node("Sigmoid", ["logits"], ["scores"]),
        node("Concat", ["boxes", "scores"], ["output0"], axis=1),
    ]
    return save(path, model_of(nodes, {"images": shape}, {"output0": out_shape}, constants, kind=kind))


def any_graph(
    path: Path,
    inputs: Sequence[tuple[str, int, Sequence[int | str] | None]],
    outputs: Sequence[tuple[str, np.ndarray, Sequence[int | str] | None]],
    metadata: Mapping[str, str] | None = None,
) -> Path:
    """A graph of any signature whose outputs are constants: (name, type, shape) in, (name, array, shape) out.

    Nothing is checked; a shape of None declares none at all.
    """
    ins = [helper.make_tensor_value_info(*entry) for entry in inputs]
    nodes, outs = [], []
    for name, array, shape in outputs:
        kind = TensorProto.STRING if array.dtype.kind in "OU" else helper.np_dtype_to_tensor_dtype(array.dtype)
        value = numpy_helper.from_array(array, f"{name}_c")
        nodes.append(node("Constant", [], [f"{name}_c"], value=value))
        nodes.append(node("Identity", [f"{name}_c"], [name]))
        outs.append(helper.make_tensor_value_info(name, kind, shape))
    graph = helper.make_graph(nodes, "any", ins, outs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, dict(metadata or {}))
    path.write_bytes(model.SerializeToString())
    return path


def queries(
    path: Path,
    logits: np.ndarray,
    boxes: np.ndarray,
    *,
    stem: tuple[int, int] = (7, 2),
    refined: bool = False,
    sides: np.ndarray | None = None,
    bins: np.ndarray | None = None,
    scale: float = 4.0,
    shape: Sequence[int | str] = (1, 3, 64, 64),
    mask: tuple[int, Sequence[int | str]] | None = None,
    names: tuple[str, str] = ("logits", "pred_boxes"),
    scores: str | None = None,
    order: tuple[int, int] = (0, 1),
) -> Path:
    """A graph that ends as DETR's kin do: logits (N, C) of a linear layer, boxes (N, 4) of a sigmoid.

    `stem` is the first convolution's kernel and stride; `refined` boxes pass a logarithm, as reference points do.
    With `sides` (N, 4 * bins) boxes are D-FINE's: moved from `boxes` by distributions over `bins`, in shares of their
    size over `scale`. `scores` is an operation after the linear layer.
    """
    weights: dict[str, np.ndarray] = {}

    def const(name: str, value: np.ndarray) -> str:
        weights[name] = value
        return name

    kernel, step = stem
    nodes = [
        node("Conv", ["pixel_values", const("w", np.zeros((1, 3, kernel, kernel), np.float32))], ["stem"],
             kernel_shape=[kernel, kernel], strides=[step, step]),
        node("ReduceSum", ["stem"], ["nothing"], keepdims=0),
        node("Add", [const("logits_c", logits[None].astype(np.float32)), "nothing"], ["hidden"]),
        node("MatMul", ["hidden", const("eye", np.eye(logits.shape[1], dtype=np.float32))], ["product"]),
        node("Add", [const("bias", np.zeros(logits.shape[1], np.float32)), "product"], ["linear"]),
        node(scores or "Identity", ["linear"], [names[0]]),
        node("Add", [const("boxes_c", np.log(boxes / (1 - boxes))[None].astype(np.float32)), "nothing"], ["moved"]),
    ]  # fmt: skip
    if refined:
        nodes += [node("Exp", ["moved"], ["exp"]), node("Log", ["exp"], ["inverse"])]
    nodes.append(node("Sigmoid", ["inverse" if refined else "moved"], ["reference" if sides is not None else names[1]]))
    if sides is not None and bins is not None:
        nodes += [
            node("Add", [const("sides_c", sides[None].astype(np.float32)), "nothing"], ["sides"]),
            node("Reshape", ["sides", const("by_bin", np.array([-1, len(bins)]))], ["rows"]),
            node("Softmax", ["rows"], ["shares"], axis=1),
            node("MatMul", ["shares", const("project", bins.astype(np.float32))], ["mean"]),
            node("Reshape", ["mean", const("by_side", np.array([1, -1, 4]))], ["distance"]),
        ]
        const("two", np.float32(2))
        const("half", np.float32(scale / 2))
        const("scale", np.float32(scale))
        for side, sign in enumerate(("Sub", "Sub", "Add", "Add")):
            centre, extent = const(f"c{side}", np.int64(side % 2)), const(f"e{side}", np.int64(2 + side % 2))
            nodes += [
                node("Gather", ["distance", const(f"s{side}", np.int64(side))], [f"d{side}"], axis=2),
                node("Add", ["half", f"d{side}"], [f"far{side}"]),
                node("Gather", ["reference", extent], [f"long{side}"], axis=2),
                node("Div", [f"long{side}", "scale"], [f"unit{side}"]),
                node("Mul", [f"far{side}", f"unit{side}"], [f"way{side}"]),
                node("Gather", ["reference", centre], [f"at{side}"], axis=2),
                node(sign, [f"at{side}", f"way{side}"], [f"x{side}"]),
            ]
        for axis in (0, 1):
            nodes += [
                node("Add", [f"x{axis}", f"x{axis + 2}"], [f"sum{axis}"]),
                node("Div", [f"sum{axis}", "two"], [f"middle{axis}"]),
                node("Sub", [f"x{axis + 2}", f"x{axis}"], [f"extent{axis}"]),
            ]
        last = const("last", np.array([2]))
        parts = ["middle0", "middle1", "extent0", "extent1"]
        nodes += [node("Unsqueeze", [part, last], [f"{part}_u"]) for part in parts]
        nodes.append(node("Concat", [f"{part}_u" for part in parts], [names[1]], axis=2))
    kinds, inputs = {}, {"pixel_values": shape}
    if mask is not None:
        kinds["pixel_mask"], inputs["pixel_mask"] = mask
    sizes = {names[0]: [1, len(logits), logits.shape[1]], names[1]: [1, len(logits), 4]}
    outputs = {names[at]: sizes[names[at]] for at in order}
    return save(path, model_of(nodes, inputs, outputs, weights, kinds=kinds))


def small_ssd(path: Path, classes: int = 3, seed: int = 0) -> Path:
    """A real, tiny SSD: two convolutions, then a box and a class predictor of two layers each, on a 4 x 4 map."""
    rng = np.random.default_rng(seed)
    weights: dict[str, np.ndarray] = {}

    def weight(name: str, *shape: int) -> str:
        weights[name] = rng.normal(0, 0.3, shape).astype(np.float32)
        return name

    def conv(
        data: str, name: str, out: int, ins: int, size: int = 3, stride: int = 1, group: int = 1
    ) -> onnx.NodeProto:
        pad = size // 2
        return node(
            "Conv", [data, weight(f"{name}.weight", out, ins // group, size, size)], [name], name,
            kernel_shape=[size, size], strides=[stride, stride], pads=[pad] * 4, group=group,
        )  # fmt: skip

    anchors = np.stack(np.meshgrid(np.arange(4), np.arange(4)), axis=-1).reshape(1, 16, 2) / 4.0
    boxes = np.concatenate([anchors[..., ::-1], anchors[..., ::-1] + 0.4], axis=-1).astype(np.float32)
    weights |= {
        "std": np.float32(255),
        "anchors": boxes,
        "small": np.float32(0.02),
        "box_shape": np.array([1, -1, 4], np.int64),
        "class_shape": np.array([1, -1, classes], np.int64),
    }
    nodes = [
        node("Div", ["image", "std"], ["scaled"]),
        node("Transpose", ["scaled"], ["chw"], perm=[0, 3, 1, 2]),
        conv("chw", "stem", 8, 3, stride=4),
        node("Relu", ["stem"], ["stem_r"]),
        conv("stem_r", "body", 16, 8, stride=2),
        node("Relu", ["body"], ["feature"]),
        conv("feature", "box.depthwise", 16, 16, group=16),
        conv("box.depthwise", "box.point", 4, 16, size=1),
        conv("feature", "class.depthwise", 16, 16, group=16),
        conv("class.depthwise", "class.point", classes, 16, size=1),
        node("Transpose", ["box.point"], ["box_hwc"], perm=[0, 2, 3, 1]),
        node("Reshape", ["box_hwc", "box_shape"], ["deltas"]),
        node("Mul", ["deltas", "small"], ["moves"]),
        node("Add", ["anchors", "moves"], ["boxes"]),
        node("Transpose", ["class.point"], ["class_hwc"], perm=[0, 2, 3, 1]),
        node("Reshape", ["class_hwc", "class_shape"], ["logits"]),
        node("Sigmoid", ["logits"], ["scores"]),
    ]
    outputs = {"boxes": [1, 16, 4], "scores": [1, 16, classes]}
    return save(path, model_of(nodes, {"image": [1, 32, 32, 3]}, outputs, weights))


def with_metadata(path: Path, entries: Mapping[str, str]) -> Path:
    """The same graph, saying of itself what exports say."""
    model = onnx.load(str(path))
    helper.set_model_props(model, dict(entries))
    onnx.save(model, str(path))
    return path


def dfl_logits(cells: int, bins: int = 16, seed: int = 0) -> np.ndarray:
    """Logits (4, bins, N) of edge distances, some sure and some not."""
    rng = np.random.default_rng(seed)
    return (rng.normal(0, 1, (4, bins, cells)) * rng.uniform(0.3, 6, (1, 1, cells))).astype(np.float32)


def dfl_detector(
    path: Path,
    logits: np.ndarray,
    scores: np.ndarray,
    points: np.ndarray,
    strides: np.ndarray,
    *,
    size: tuple[int, int] = (64, 64),
    form: str = "conv",
    weights: str = "initializer",
    first_bin: float = 0.0,
    stretch: float = 1.0,
    half: bool = False,
    dynamic: bool = False,
    demand: int | None = None,
    opset: int = 17,
) -> Path:
    """A head that takes the means of edge distributions as YOLOv8's does: [1, 4 + C, N].

    `form` is how it takes them, `weights` where its bins come from; `first_bin` other than 0 or `stretch` other than 1
    are heads whose boxes are not these means. `demand` is the only side that an input with open axes may have.
    """
    kind, number = (TensorProto.FLOAT16, np.float16) if half else (TensorProto.FLOAT, np.float32)
    bins, cells = logits.shape[1:]
    shapes = {"conv": [1, bins, 1, 1], "late": [1, bins, 1, 1], "matmul": [bins], "sum": [1, 1, bins, 1]}
    counted = (np.arange(bins) + first_bin).astype(number)
    constants: dict[str, np.ndarray] = {
        "logits": logits[None].astype(number),
        "scores": scores.T[None].astype(number),
        "points": (points / strides[:, None]).T[None].astype(number),
        "strides": strides[None, None].astype(number),
        "zero": number(0),
        "two": number(2),
        "stretch": number(stretch),
        "edge_shape": np.array([1, 4, cells], np.int64),
        "axis": np.array([2], np.int64),
        "c0": np.array([0], np.int64),
        "c1": np.array([1], np.int64),
        "c2": np.array([2], np.int64),
        "c4": np.array([4], np.int64),
    }
    nodes = [
        node("ReduceSum", ["images"], ["sum"], keepdims=0),
        node("Mul", ["sum", "zero"], ["nothing"]),
        node("Add", ["logits", "nothing"], ["edges"]),  # [1, 4, bins, N]
    ]
    if demand is not None:
        nodes[0] = node("ReduceSum", ["demanded"], ["sum"], keepdims=0)
        constants["line"] = np.zeros((1, 1, demand, demand), number)
        nodes.insert(0, node("Add", ["images", "line"], ["demanded"]))
    if weights == "initializer":
        constants["bins"] = counted.reshape(shapes[form])
    elif weights == "constant":
        value = numpy_helper.from_array(counted.reshape(shapes[form]), "bins")
        nodes.append(node("Constant", [], ["bins"], value=value))
    else:  # counted out by the graph
        constants |= {"start": np.int64(0), "stop": np.int64(bins), "step": np.int64(1)}
        constants["bins_shape"] = np.array(shapes[form], np.int64)
        nodes += [
            node("Range", ["start", "stop", "step"], ["counted"]),
            node("Cast", ["counted"], ["cast"], to=kind),
            node("Reshape", ["cast", "bins_shape"], ["bins"]),
        ]
    if form == "conv":
        nodes += [
            node("Transpose", ["edges"], ["moved"], perm=[0, 2, 1, 3]),
            node("Softmax", ["moved"], ["distributions"], axis=1),
            node("Conv", ["distributions", "bins"], ["mean"]),
        ]
    elif form == "late":  # older exporters take softmax over the last axis only
        nodes += [
            node("Transpose", ["edges"], ["moved"], perm=[0, 3, 1, 2]),
            node("Softmax", ["moved"], ["distributions"], axis=3),
            node("Transpose", ["distributions"], ["back"], perm=[0, 3, 2, 1]),
            node("Conv", ["back", "bins"], ["mean"]),
        ]
    elif form == "matmul":
        nodes += [
            node("Transpose", ["edges"], ["moved"], perm=[0, 1, 3, 2]),
            node("Softmax", ["moved"], ["distributions"]),
            node("MatMul", ["distributions", "bins"], ["mean"]),
        ]
    else:
        nodes += [
            node("Softmax", ["edges"], ["distributions"], axis=2),
            node("Mul", ["distributions", "bins"], ["weighed"]),
            node("ReduceSum", ["weighed", "axis"], ["mean"], keepdims=0),
        ]
    nodes += [
        node("Reshape", ["mean", "edge_shape"], ["ltrb"]),
        node("Mul", ["ltrb", "stretch"], ["far"]),
        node("Slice", ["far", "c0", "c2", "c1"], ["lt"]),
        node("Slice", ["far", "c2", "c4", "c1"], ["rb"]),
        node("Sub", ["points", "lt"], ["low"]),
        node("Add", ["points", "rb"], ["high"]),
        node("Add", ["low", "high"], ["both"]),
        node("Div", ["both", "two"], ["centre"]),
        node("Sub", ["high", "low"], ["sides"]),
        node("Concat", ["centre", "sides"], ["box"], axis=1),
        node("Mul", ["box", "strides"], ["pixels"]),
        node("Concat", ["pixels", "scores"], ["output0"], axis=1),
    ]
    wide, high = ("width", "height") if dynamic else size
    shape = ["batch", "channels", "anchors"] if dynamic else [1, 4 + scores.shape[1], cells]
    inputs = {"images": ["batch" if dynamic else 1, 3, high, wide]}
    return save(path, model_of(nodes, inputs, {"output0": shape}, constants, kind=kind, opset=opset))


def choosing_detector(path: Path, boxes: np.ndarray, scores: np.ndarray, *, rows: int, wrong: bool = False) -> Path:
    """A graph that chooses its best rows as YOLOv10's does: [1, rows, 6].

    `wrong`: something happens to the scores between the two choices, so that they are not found in the first.
    """
    classes = scores.shape[1]
    constants = {
        "boxes": boxes[None].astype(np.float32),
        "scores": scores[None].astype(np.float32),
        "share": np.float32(0.5),
        "zero": np.float32(0),
        "k": np.array([rows], np.int64),
        "classes": np.int64(classes),
        "last": np.array([-1], np.int64),
        "four": np.array([1, rows, 4], np.int64),
        "every": np.array([1, rows, classes], np.int64),
    }
    nodes = [
        node("ReduceSum", ["images"], ["sum"], keepdims=0),
        node("Mul", ["sum", "zero"], ["nothing"]),
        node("Add", ["scores", "nothing"], ["all_scores"]),
        node("Add", ["boxes", "nothing"], ["all_boxes"]),
        node("ReduceMax", ["all_scores"], ["best"], axes=[2], keepdims=0),
        node("TopK", ["best", "k"], ["best_scores", "best_rows"], axis=1),
        node("Unsqueeze", ["best_rows", "last"], ["row_column"]),
        node("Expand", ["row_column", "every"], ["row_of_scores"]),
        node("GatherElements", ["all_scores", "row_of_scores"], ["kept"], axis=1),
        *([node("Mul", ["kept", "share"], ["lowered"])] if wrong else []),
        node("Flatten", ["lowered" if wrong else "kept"], ["flat"], axis=1),
        node("TopK", ["flat", "k"], ["top", "at"], axis=1),
        node("Unsqueeze", ["top", "last"], ["score"]),
        node("Mod", ["at", "classes"], ["label"]),
        node("Unsqueeze", ["label", "last"], ["label_column"]),
        node("Cast", ["label_column"], ["class"], to=TensorProto.FLOAT),
        node("Div", ["at", "classes"], ["among"]),
        node("GatherElements", ["best_rows", "among"], ["row"], axis=1),
        node("Unsqueeze", ["row", "last"], ["column"]),
        node("Expand", ["column", "four"], ["row_of_boxes"]),
        node("GatherElements", ["all_boxes", "row_of_boxes"], ["box"], axis=1),
        node("Concat", ["box", "score", "class"], ["output0"], axis=2),
    ]
    return save(path, model_of(nodes, {"images": [1, 3, 64, 64]}, {"output0": [1, rows, 6]}, constants, opset=17))


def joined_detector(path: Path, boxes: np.ndarray, logits: np.ndarray) -> Path:
    """A graph that joins boxes with the sigmoid of its logits as RT-DETR's does: [1, N, 4 + C]."""
    nodes = [
        node("ReduceSum", ["images"], ["sum"], keepdims=0),
        node("Mul", ["sum", "zero"], ["nothing"]),
        node("Add", ["logits", "nothing"], ["scores"]),
        node("Sigmoid", ["scores"], ["likely"]),
        node("Concat", ["boxes", "likely"], ["output0"], axis=2),
    ]
    held = {"boxes": boxes, "logits": logits, "zero": np.float32(0)}
    shape = [1, boxes.shape[1], 4 + logits.shape[2]]
    return save(path, model_of(nodes, {"images": [1, 3, 64, 64]}, {"output0": shape}, held))
