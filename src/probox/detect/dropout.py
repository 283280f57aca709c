"""Monte Carlo dropout for any ONNX graph: random masks inserted before chosen layers.

ONNX Runtime removes Dropout nodes when it loads a graph, and a detector trained without dropout has none. So the mask
is written out: a uniform random number for each channel, compared with the rate, scaled, multiplied onto the layer's
input. Such nodes are never folded into constants, and draw anew on every run.

Masks are drawn for whole channels of feature maps (and single features of dense layers), shared by all cells and images
of a run: one pass is one network, the same everywhere, and neighbouring pixels of a channel, which say much the same,
don't average the mask away. Or, on request, for every element of the layer's input, as a Dropout layer does.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from probox.detect.graph import constants_of, downstream, inputs_of
from probox.errors import InputError
from probox.files.replacing import GRAPH_MARK

if TYPE_CHECKING:
    import onnx

__all__ = ["Layer", "find_layers", "insert_dropout", "split_random"]

HEAD_DEPTH = 2
"""How many layers before each output are a head: depthwise and pointwise, or hidden and last."""

MASKS = ("channels", "elements")
"""What one random number may decide about."""

_LAYER_TYPES = ("Conv", "ConvTranspose", "Gemm", "MatMul")


@dataclasses.dataclass(frozen=True)
class Layer:
    """A weighted layer of a graph: where its node and its data input are, and the shape of a mask for it."""

    name: str
    aliases: tuple[str, ...]
    node: int
    data_input: int
    mask_shape: tuple[int, ...]
    element_type: int
    depth: int
    """Weighted layers between it and the nearest output, itself included; 1 is the last."""
    first: bool
    """Whether it reads the image itself."""


def find_layers(model: onnx.ModelProto) -> list[Layer]:
    """Return the layers with constant weights, in the graph's order."""
    graph = model.graph
    constants = constants_of(graph)
    depths = _depths(graph, constants)
    fed_by_layer = downstream(graph, {name for index in depths for name in graph.node[index].output})
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
            )
        )
    return layers


def choose_layers(layers: Iterable[Layer], which: str) -> list[Layer]:
    """Return the layers that `which` names: ``heads``, ``backbone`` or a regular expression on their names.

    ``heads`` are the last two layers before each output, ``backbone`` all others but the first, whose input is the
    image. An expression is searched for in the names of a layer, its output and its weights.
    """
    every = list(layers)
    if not every:
        raise InputError("the graph has no layer with float weights to put dropout before")
    if which == "heads":
        return [layer for layer in every if layer.depth <= HEAD_DEPTH and not layer.first]
    if which == "backbone":
        return [layer for layer in every if layer.depth > HEAD_DEPTH and not layer.first]
    try:
        pattern = re.compile(which)
    except re.error as error:
        raise InputError(f"expected dropout layers to be heads, backbone or a regular expression: {error}") from None
    chosen = [layer for layer in every if any(pattern.search(alias) for alias in layer.aliases)]
    if not chosen:
        names = ", ".join(layer.name for layer in every[-4:])
        raise InputError(f"no layer matches {which!r}", remedy=f"names are like {names}")
    return chosen


def insert_dropout(
    model: onnx.ModelProto, *, rate: float, layers: str = "heads", masks: str = "channels", seed: int = 0
) -> tuple[onnx.ModelProto, tuple[str, ...]]:
    """Return a copy of the graph with random masks before the chosen layers, and the names of these layers.

    Each mask is ``(u > rate) / (1 - rate)`` with uniform ``u``, so the expected input of a layer stays the same. Every
    run of a session draws new masks; a new session with the same seed draws the same sequence.

    Parameters
    ----------
    model : onnx.ModelProto
        The detector; not changed.
    rate : float
        Probability that a channel is dropped.
    layers : str
        ``heads``, ``backbone`` or a regular expression, see `choose_layers`.
    masks : {"channels", "elements"}
        What one random number decides about.
    seed : int
        Seed of the masks.
    """
    import onnx

    if not 0.0 < rate < 1.0:
        raise InputError(f"expected a dropout rate between 0 and 1, but got {rate!r}")
    if masks not in MASKS:
        raise InputError(f"expected masks to be 'channels' or 'elements', but got {masks!r}")
    chosen = choose_layers(find_layers(model), layers)
    if not chosen:
        raise InputError(f"the graph has no layers that count as {layers}", remedy="name some by a regular expression")
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    # The runtime's generator is a simple one: neighbouring seeds would start with nearly equal numbers.
    seeds = np.random.default_rng(seed).integers(1, 2**31 - 2**8, len(chosen))
    by_node = {layer.node: number for number, layer in enumerate(chosen)}
    nodes: list[onnx.NodeProto] = []
    for index, node in enumerate(changed.graph.node):
        if index in by_node:
            number = by_node[index]
            layer = chosen[number]
            masked = f"{GRAPH_MARK}_{number}_masked"
            nodes.extend(
                _mask_nodes(number, layer, node.input[layer.data_input], masked, rate, masks, float(seeds[number]))
            )
            node.input[layer.data_input] = masked
        nodes.append(node)
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del changed.graph.node[:]
    changed.graph.node.extend(copies)
    return changed, tuple(layer.name for layer in chosen)


def _mask_nodes(
    number: int, layer: Layer, data: str, masked: str, rate: float, masks: str, seed: float
) -> list[onnx.NodeProto]:
    from onnx import helper

    def name(what: str) -> str:
        return f"{GRAPH_MARK}_{number}_{what}"

    def constant(what: str, value: float) -> onnx.NodeProto:
        tensor = helper.make_tensor(name(what), layer.element_type, [1], [value])
        return helper.make_node("Constant", [], [name(what)], name(what), value=tensor)

    drawn: dict[str, Any] = {"dtype": layer.element_type, "low": 0.0, "high": 1.0, "seed": seed}
    if masks == "channels":
        uniform = helper.make_node(
            "RandomUniform", [], [name("uniform")], name("uniform"), shape=layer.mask_shape, **drawn
        )
    else:
        uniform = helper.make_node("RandomUniformLike", [data], [name("uniform")], name("uniform"), **drawn)
    return [
        uniform,
        constant("rate", rate),
        constant("scale", 1.0 / (1.0 - rate)),
        helper.make_node("Less", [name("rate"), name("uniform")], [name("kept")], name("kept")),
        helper.make_node("Cast", [name("kept")], [name("ones")], name("ones"), to=layer.element_type),
        helper.make_node("Mul", [name("ones"), name("scale")], [name("mask")], name("mask")),
        helper.make_node("Mul", [data, name("mask")], [masked], masked),
    ]


def split_random(model: onnx.ModelProto) -> tuple[onnx.ModelProto, onnx.ModelProto, tuple[str, ...]]:
    """Return the part of a graph before any random mask, the part after, and the tensors between them.

    Passes differ only in the second part: the first needs to run once for an image. The tensors between are the
    outputs of the first; their types, as inputs of the second, are still to be filled in.
    """
    import onnx

    graph = model.graph
    drawn = {name for node in graph.node if node.op_type.startswith("RandomUniform") for name in node.output}
    random = downstream(graph, drawn) | drawn
    made_of_constants = set(constants_of(graph))
    first, second = [], []
    for node in graph.node:
        if not random.isdisjoint(node.output):
            second.append(node)
        elif made_of_constants.issuperset(node.output):
            first.append(node)  # cheap, and either part may need it
            second.append(node)
        else:
            first.append(node)
    outputs = {output.name for output in graph.output}
    known = made_of_constants | {name for node in second for name in node.output}
    needed = {name for node in second for name in inputs_of(node)} | outputs
    between = tuple(sorted(name for name in needed - known - random if name))
    before, after = onnx.ModelProto(), onnx.ModelProto()
    for part, nodes in ((before, first), (after, second)):
        part.CopyFrom(model)
        del part.graph.node[:]
        part.graph.node.extend(onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes)
        del part.graph.value_info[:]
    inputs = {tensor.name for tensor in graph.input}
    del before.graph.output[:]
    before.graph.output.extend(onnx.ValueInfoProto(name=name) for name in between if name not in inputs)
    return before, after, between


def _data_input(node: onnx.NodeProto, constants: Iterable[str]) -> int:
    return 1 if node.op_type == "MatMul" and node.input[0] in constants else 0


def _is_layer(node: onnx.NodeProto, constants: Iterable[str]) -> bool:
    if node.op_type not in _LAYER_TYPES or len(node.input) < 2:
        return False
    return (node.input[0] in constants) != (node.input[1] in constants)


def _depths(graph: onnx.GraphProto, constants: Iterable[str]) -> dict[int, int]:
    """Return for each layer that leads to an output how many layers there are to the nearest, itself included."""
    to_output = {output.name: 0 for output in graph.output}
    depths: dict[int, int] = {}
    for index in range(len(graph.node) - 1, -1, -1):
        node = graph.node[index]
        steps = [to_output[name] for name in node.output if name in to_output]
        if not steps:
            continue
        nearest = min(steps)
        if _is_layer(node, constants):
            nearest += 1
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
