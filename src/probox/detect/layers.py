"""The layers of an ONNX graph that random masks may stand before, and those where they must not.

Layers that only compute get no masks: the mean of a softmax over bins (the integral of DFL heads), products with
matrices of indices, fixed filters. A mask there breaks arithmetic, and says nothing of what the network has learnt.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Container, Iterable
from typing import TYPE_CHECKING

import numpy as np

from probox.detect.graph import Graph, constants_of, downstream, inputs_of
from probox.errors import InputError

if TYPE_CHECKING:
    import onnx

__all__ = ["Layer", "choose_layers", "find_dropout_nodes", "find_layers", "tensor_types"]

_FLOAT = 1
"""How ONNX numbers the type of 32-bit floats."""

HEAD_DEPTH = 2
"""How many layers before each output are a head: depthwise and pointwise, or hidden and last."""

_LAYER_TYPES = ("Conv", "ConvTranspose", "Gemm", "MatMul")

_MOVES = (
    "Cast", "Dropout", "Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Tile",
    "Transpose", "Unsqueeze",
)  # fmt: skip
"""Nodes that hand numbers on as they are, only elsewhere."""


@dataclasses.dataclass(frozen=True)
class Layer:
    """A place for a mask: a layer with constant weights, or a Dropout node of the graph's own."""

    name: str
    aliases: tuple[str, ...]
    node: int
    data_input: int
    mask_shape: tuple[int, ...] | None
    """Of a mask over its input's channels; None where only a run tells."""
    element_type: int
    depth: int
    """Weighted layers between it and the nearest output, itself included; 1 is the last."""
    first: bool
    """Whether it reads the image itself."""
    key: str
    """What its weights are called: layers that share them are one layer in several places."""
    computes: str | None = None
    """Why it gets no mask, in words, if it has learnt nothing."""
    ratio: float | None = None
    """The rate of a Dropout node."""


def find_layers(model: onnx.ModelProto) -> list[Layer]:
    """Return the layers with constant weights, in the graph's order, also those that only compute."""
    graph = model.graph
    constants = constants_of(graph)
    inside = Graph(model)
    computing = {
        index: why
        for index, node in enumerate(graph.node)
        if _is_layer(node, constants) and (why := _why_not_learnt(node, _data_input(node, constants), inside))
    }
    depths = _depths(graph, constants, computing)
    learnt = set(depths) - set(computing)
    fed_by_layer = downstream(graph, {name for index in learnt for name in graph.node[index].output})
    layers: list[Layer] = []
    for index in sorted(depths):
        node = graph.node[index]
        data = _data_input(node, constants)
        weight = constants[node.input[1 - data]]
        if weight is None:
            continue
        dims, element_type = weight
        layers.append(
            Layer(
                name=node.name or node.output[0],
                aliases=(node.name, node.output[0], node.input[1 - data]),
                node=index,
                data_input=data,
                mask_shape=_mask_shape(node, data, dims),
                element_type=element_type,
                depth=depths[index],
                first=node.input[data] not in fed_by_layer,
                key=node.input[1 - data],
                computes=computing.get(index),
            )
        )
    return layers


def find_dropout_nodes(model: onnx.ModelProto) -> list[Layer]:
    """Return the graph's own Dropout nodes that drop something, at their own ratio."""
    found = [(index, node) for index, node in enumerate(model.graph.node) if node.op_type == "Dropout"]
    if not found:
        return []
    inside = Graph(model)
    types = tensor_types(model)
    layers = []
    for index, node in found:
        ratio = _ratio_of(node, inside)
        if 0.0 < ratio < 1.0:
            name = node.name or node.output[0]
            kind = types.get(node.input[0], (_FLOAT, None))[0]
            aliases = (node.name, node.output[0])
            layers.append(Layer(name, aliases, index, 0, None, kind, 0, False, key=node.output[0], ratio=ratio))
    return layers


def tensor_types(model: onnx.ModelProto) -> dict[str, tuple[int, int | None]]:
    """Return the element type and the number of axes of tensors, as far as they can be told without running."""
    import onnx

    try:
        graph = onnx.shape_inference.infer_shapes(model).graph
    except Exception:  # a graph that it stumbles over may run all the same
        graph = model.graph
    known: dict[str, tuple[int, int | None]] = {}
    for value in [*graph.value_info, *graph.input, *graph.output]:
        tensor = value.type.tensor_type
        if tensor.elem_type:
            known[value.name] = (tensor.elem_type, len(tensor.shape.dim) if tensor.HasField("shape") else None)
    return known


def choose_layers(layers: Iterable[Layer], which: str) -> list[Layer]:
    """Return the layers that `which` names: ``heads``, ``backbone`` or a regular expression on their names.

    ``heads`` are the last two layers before each output, ``backbone`` all others but the first, whose input is the
    image. An expression is searched for in the names of a layer, its output and its weights.
    """
    given = list(layers)
    every = [layer for layer in given if layer.computes is None]
    if not every:
        raise InputError(
            "the graph has no layer with float weights to put dropout before",
            remedy="layers inside If, Loop or Scan and quantised ones get no masks: export the model without them",
        )
    if which == "heads":
        return [layer for layer in every if layer.depth <= HEAD_DEPTH and not layer.first]
    if which == "backbone":
        return [layer for layer in every if layer.depth > HEAD_DEPTH and not layer.first]
    try:
        pattern = re.compile(which)
    except re.error as error:
        raise InputError(
            f"expected dropout layers to be auto, heads, backbone, existing or a regular expression: {error}"
        ) from None
    chosen = [layer for layer in given if any(pattern.search(alias) for alias in layer.aliases)]
    names = ", ".join(layer.name for layer in every[-4:])
    if not chosen:
        raise InputError(f"no layer matches {which!r}", remedy=f"names are like {names}")
    learnt = [layer for layer in chosen if layer.computes is None]
    if not learnt:
        raise InputError(
            f"{which!r} names only {chosen[0].name}, which computes and has learnt nothing: {chosen[0].computes}",
            remedy=f"name others, like {names}",
        )
    return learnt


def _ratio_of(node: onnx.NodeProto, inside: Graph) -> float:
    """Return the ratio of a Dropout node, 0.5 where it does not say."""
    for attribute in node.attribute:
        if attribute.name == "ratio":
            return float(attribute.f)
    if len(node.input) > 1 and node.input[1]:
        value = inside.value(node.input[1])
        return 0.5 if value is None or value.size != 1 else float(value.reshape(()))
    return 0.5


def _why_not_learnt(node: onnx.NodeProto, data: int, inside: Graph) -> str | None:
    """Return in words why a layer only computes; None for one that was learnt."""
    source = inside.maker(node.input[data])
    while source is not None and source.op_type in _MOVES:
        source = inside.maker(source.input[0])
    if source is not None and source.op_type == "Softmax":
        return "it takes the mean of a distribution that a softmax makes"
    weight = inside.value(node.input[1 - data])
    if weight is None or not weight.size or not np.issubdtype(weight.dtype, np.floating):
        return None
    # Indices, grids, and matrices from one way of writing boxes to another; training leaves no round numbers.
    doubled = 2.0 * weight.astype(np.float64)
    if (doubled == np.round(doubled)).all():
        return "its weights are halves and whole numbers"
    if node.op_type == "Conv" and len(weight) > 1 and weight.shape[1] == 1 and (weight == weight[:1]).all():
        return "it is one filter for all channels"
    return None


def _data_input(node: onnx.NodeProto, constants: Container[str]) -> int:
    return 1 if node.op_type == "MatMul" and node.input[0] in constants else 0


def _is_layer(node: onnx.NodeProto, constants: Container[str]) -> bool:
    if node.op_type not in _LAYER_TYPES or len(node.input) < 2:
        return False
    first, second = (name in constants for name in node.input[:2])
    return first != second if node.op_type == "MatMul" else second and not first


def _depths(graph: onnx.GraphProto, constants: Container[str], computing: Container[int]) -> dict[int, int]:
    """Return for each layer that leads to an output how many learnt layers there are to the nearest, with itself."""
    to_output = {output.name: 0 for output in graph.output}
    depths: dict[int, int] = {}
    for index in range(len(graph.node) - 1, -1, -1):
        node = graph.node[index]
        steps = [to_output[name] for name in node.output if name in to_output]
        if not steps:
            continue
        nearest = min(steps)
        if _is_layer(node, constants):
            nearest += index not in computing
            depths[index] = nearest
        for name in inputs_of(node):
            to_output[name] = min(nearest, to_output.get(name, nearest))
    return depths


def _mask_shape(node: onnx.NodeProto, data: int, dims: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of a mask over a layer's input channels, such that it broadcasts over everything else."""
    attributes = {attribute.name: attribute.i for attribute in node.attribute}
    if node.op_type == "Conv":
        return (1, dims[1] * attributes.get("group", 1), *[1] * (len(dims) - 2))
    if node.op_type == "ConvTranspose":
        return (1, dims[0], *[1] * (len(dims) - 2))
    if node.op_type == "Gemm":
        features = dims[1] if attributes.get("transB", 0) else dims[0]
        return (features, 1) if attributes.get("transA", 0) else (1, features)
    # MatMul: the contracted axis is the last of the left operand and the last but one of the right.
    if data == 1:
        return (dims[-1], 1) if len(dims) > 1 else (dims[0], 1)
    return (dims[-2],) if len(dims) > 1 else (dims[0],)
