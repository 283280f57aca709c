"""Monte Carlo dropout: random masks, and their insertion into ONNX graphs before chosen layers."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import re
from collections.abc import Container, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from probox.detect.graph import Graph, constants_of, downstream, inputs_of
from probox.errors import InputError
from probox.files.output import GRAPH_MARK
from probox.support.types import Array

if TYPE_CHECKING:
    import onnx

MASKS = ("channels", "elements")
"""Unit of dropout: whole channels or single elements."""
DEFAULT_RATE = 0.05
"""Default rate for networks trained without dropout; docs/detect.md has the measurements."""
DEFAULT_MASKS = "elements"
"""Default unit of dropout for these networks."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dropout:
    """Settings of Monte Carlo dropout: masked layers, rate, unit and seed.

    Parameters
    ----------
    rate : float, optional
        Probability of dropping a channel or element. Default: the rate of the network's own dropout layers where these
        are masked, else 0.05.
    layers : str
        ``heads``: the last layers before the outputs; ``backbone``: all others except the first; ``existing``: the
        network's own dropout layers; ``auto``: existing layers, or the heads if there are none; any other value: a
        regular expression on layer names.
    masks : {"channels", "elements"}, optional
        Unit of dropout: a whole channel, shared by all cells, or a single element. Default: elements; existing dropout
        layers keep their own unit.
    seed : int
        Seed of the masks.

    Examples
    --------
    >>> Dropout(rate=0.1, layers="backbone").seed
    0
    >>> Dropout(rate=1.5)
    Traceback (most recent call last):
    probox.errors.InputError: expected a dropout rate between 0 and 1, but got 1.5
    """

    rate: float | None = None
    layers: str = "auto"
    masks: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rate is not None and not 0.0 < self.rate < 1.0:
            raise InputError(f"expected a dropout rate between 0 and 1, but got {self.rate!r}")
        if not self.layers.strip():  # an empty expression would match every layer
            raise InputError(
                "expected dropout layers to be auto, heads, backbone, existing or a regular expression, but got nothing"
            )
        if self.masks is not None and self.masks not in MASKS:
            raise InputError(f"expected masks to be 'channels' or 'elements', but got {self.masks!r}")


def draw_mask(
    shape: tuple[int, ...],
    rate: float,
    dtype: npt.DTypeLike,
    *,
    seed: int,
    image_id: int,
    number: int,
    layer: str,
) -> Array:
    """Return the mask of a layer's input for one pass over one image.

    Parameters
    ----------
    shape : tuple of int
        Shape of the mask, which broadcasts to the layer's input.
    rate : float
        Probability of a 0.
    dtype : dtype
        The layer's data type.
    seed, image_id, number, layer
        Seed of the run, image, pass and layer, which together determine the mask.

    Returns
    -------
    array
        0 with probability `rate`, else ``1 / (1 - rate)``.

    Examples
    --------
    >>> draw_mask((6,), 0.5, "float16", seed=1, image_id=139, number=0, layer="head.3").tolist()
    [2.0, 2.0, 2.0, 2.0, 0.0, 0.0]
    """
    who = hashlib.blake2b(f"{seed} {image_id} {number} {layer}".encode(), digest_size=16).digest()
    # A separate generator for each mask: results do not depend on the order of masks.
    generator = np.random.SFC64(int.from_bytes(who, "little"))
    count = math.prod(shape)
    # 16 bits per number keep drawing faster than the network; the rate is accurate to 0.00001.
    drawn = generator.random_raw(-(-count // 4)).astype("<u8").view("<u2")[:count]
    kept = drawn >= min(max(round(rate * 65536), 1), 65535)
    return np.multiply(kept, 1.0 / (1.0 - rate), dtype=np.dtype(dtype)).reshape(shape)


def layer_pattern(layers: str) -> re.Pattern[str]:
    """Return the regular expression for layer names; raise if it is invalid."""
    try:
        return re.compile(layers)
    except re.error as error:
        raise InputError(
            f"expected dropout layers to be auto, heads, backbone, existing or a regular expression: {error}"
        ) from None


_FLOAT = 1
"""Code of 32-bit floats in ONNX."""
HEAD_DEPTH = 2
"""Number of layers before each output that form a head: depthwise and pointwise, or hidden and last."""
_LAYER_TYPES = ("Conv", "ConvTranspose", "Gemm", "MatMul")
_MOVES = (
    "Cast", "Dropout", "Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Tile",
    "Transpose", "Unsqueeze",
)  # fmt: skip
"""Nodes that move values without changing them."""


@dataclasses.dataclass(frozen=True)
class MaskedLayer:
    """A layer that can be masked: one with constant weights, or a Dropout node of the graph."""

    name: str
    aliases: tuple[str, ...]
    node: int
    data_input: int
    mask_shape: tuple[int, ...] | None
    """Shape of a mask over the input channels; None if it is known at run time only."""
    element_type: int
    depth: int
    """Number of weighted layers from it to the nearest output, itself included; 1 is the last."""
    first: bool
    """Whether it reads the input image."""
    key: str
    """Name of its weights; nodes with the same weights are one layer used several times."""
    computes: str | None = None
    """Reason why it is not masked, if its weights are not learnt; None for learnt layers."""
    ratio: float | None = None
    """Rate of a Dropout node."""


def find_layers(model: onnx.ModelProto) -> list[MaskedLayer]:
    """Return the layers with constant weights in graph order, including those without learnt weights."""
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
    layers: list[MaskedLayer] = []
    for index in sorted(depths):
        node = graph.node[index]
        data = _data_input(node, constants)
        weight = constants[node.input[1 - data]]
        if weight is None:
            continue
        dims, element_type = weight
        layers.append(
            MaskedLayer(
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


def find_dropout_nodes(model: onnx.ModelProto) -> list[MaskedLayer]:
    """Return the graph's Dropout nodes with a positive rate."""
    found = [(index, node) for index, node in enumerate(model.graph.node) if node.op_type == "Dropout"]
    if not found:
        return []
    inside, types = Graph(model), tensor_types(model)
    layers = []
    for index, node in found:
        ratio, key = _ratio_of(node, inside), node.output[0]
        if 0.0 < ratio < 1.0:
            kind = types.get(node.input[0], (_FLOAT, None))[0]
            layers.append(
                MaskedLayer(node.name or key, (node.name, key), index, 0, None, kind, 0, False, key, ratio=ratio)
            )
    return layers


def tensor_types(model: onnx.ModelProto) -> dict[str, tuple[int, int | None]]:
    """Return the element type and number of axes of tensors, as far as shape inference determines them."""
    import onnx

    try:
        graph = onnx.shape_inference.infer_shapes(model).graph
    except Exception:  # ONNX Runtime may run a graph whose shape inference fails
        graph = model.graph
    known: dict[str, tuple[int, int | None]] = {}
    for value in [*graph.value_info, *graph.input, *graph.output]:
        tensor = value.type.tensor_type
        if tensor.elem_type:
            known[value.name] = (tensor.elem_type, len(tensor.shape.dim) if tensor.HasField("shape") else None)
    return known


def choose_layers(layers: Iterable[MaskedLayer], which: str) -> list[MaskedLayer]:
    """Return the layers selected by `which`: ``heads``, ``backbone`` or a regular expression on their names.

    ``heads`` are the last two layers before each output, ``backbone`` all others except the first, whose input is the
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
    pattern = layer_pattern(which)
    chosen = [layer for layer in given if any(pattern.search(alias) for alias in layer.aliases)]
    names = ", ".join(layer.name for layer in every[-4:])
    if not chosen:
        raise InputError(f"no layer matches {which!r}", remedy=f"names are like {names}")
    learnt = [layer for layer in chosen if layer.computes is None]
    if not learnt:
        raise InputError(
            f"{which!r} names only {chosen[0].name}, which has no learnt weights: {chosen[0].computes}",
            remedy=f"name other layers, like {names}",
        )
    return learnt


def _ratio_of(node: onnx.NodeProto, inside: Graph) -> float:
    """Return the rate of a Dropout node, 0.5 (ONNX's default) if it has none."""
    for attribute in node.attribute:
        if attribute.name == "ratio":
            return float(attribute.f)
    if len(node.input) > 1 and node.input[1]:
        value = inside.value(node.input[1])
        return 0.5 if value is None or value.size != 1 else float(value.reshape(()))
    return 0.5


def _why_not_learnt(node: onnx.NodeProto, data: int, inside: Graph) -> str | None:
    """Return the reason why a layer's weights are not learnt; None for learnt weights."""
    source = inside.maker(node.input[data])
    while source is not None and source.op_type in _MOVES:
        source = inside.maker(source.input[0])
    if source is not None and source.op_type == "Softmax":
        return "it computes the mean of a distribution that a softmax makes"
    weight = inside.value(node.input[1 - data])
    if weight is None or not weight.size or not np.issubdtype(weight.dtype, np.floating):
        return None
    # Indices, grids and conversions between box layouts; learnt weights are practically never round numbers.
    doubled = 2.0 * weight.astype(np.float64)
    if (doubled == np.round(doubled)).all():
        return "its weights are multiples of 0.5"
    if node.op_type == "Conv" and len(weight) > 1 and weight.shape[1] == 1 and (weight == weight[:1]).all():
        return "one filter is shared by all channels"
    return None


def _data_input(node: onnx.NodeProto, constants: Container[str]) -> int:
    return 1 if node.op_type == "MatMul" and node.input[0] in constants else 0


def _is_layer(node: onnx.NodeProto, constants: Container[str]) -> bool:
    if node.op_type not in _LAYER_TYPES or len(node.input) < 2:
        return False
    first, second = (name in constants for name in node.input[:2])
    return first != second if node.op_type == "MatMul" else second and not first


def _depths(graph: onnx.GraphProto, constants: Container[str], computing: Container[int]) -> dict[int, int]:
    """Return the number of learnt layers from each layer to the nearest output, itself included."""
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
    """Return the shape of a mask over a layer's input channels that broadcasts over all other axes."""
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


@dataclasses.dataclass(frozen=True)
class MaskInput:
    """A mask input of a graph with inserted dropout."""

    name: str
    """Name of the graph input."""
    layer: str
    """Name of the masked layer."""
    key: str
    """Key of the random generator; equal keys give equal masks."""
    rate: float
    shape: tuple[int, ...] | None
    """Shape of the mask; None if the graph output `shape_output` gives it at run time."""
    axes: int | None
    """Number of axes, if known without running the graph."""
    by_channel: bool
    """Whether a mask with a shape known at run time only has one number per channel."""
    dtype: npt.DTypeLike
    shape_output: str | None


def insert_dropout(model: onnx.ModelProto, dropout: Dropout) -> tuple[onnx.ModelProto, tuple[MaskInput, ...]]:
    """Return a copy of the graph with a mask input for each chosen layer, and these inputs.

    Parameters
    ----------
    model : onnx.ModelProto
        The detector; not changed.
    dropout : Dropout
        Masked layers and rate.

    Returns
    -------
    model : onnx.ModelProto
        Graph that multiplies the layers' inputs by the masks. Its own Dropout nodes become identities. Where the shape
        of a mask is unknown, an additional output returns it; until then a mask of one number can be used.
    inputs : tuple of MaskInput
        Mask inputs. Feed `probox.detect.draw_mask`, or ones to disable dropout.

    Examples
    --------
    >>> import onnx
    >>> graph, inputs = insert_dropout(onnx.load("yolox_nano.onnx"), Dropout())  # doctest: +SKIP
    """
    import onnx

    chosen = _choose(model, dropout)
    if not chosen:
        raise InputError(
            f"the graph has no layers of the kind {dropout.layers!r}", remedy="select layers with a regular expression"
        )
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    types = {} if dropout.masks == "channels" and chosen[0].ratio is None else tensor_types(model)
    by_node = {layer.node: number for number, layer in enumerate(chosen)}
    nodes: list[onnx.NodeProto] = []
    inputs: list[MaskInput] = []
    for index, node in enumerate(changed.graph.node):
        if index in by_node:
            number = by_node[index]
            masked = f"{GRAPH_MARK}_{number}_masked"
            data = node.input[chosen[number].data_input]
            entry = _mask_input(number, chosen[number], dropout, types.get(data, (0, None))[1])
            if entry.shape_output is not None:
                nodes.append(onnx.helper.make_node("Shape", [data], [entry.shape_output], entry.shape_output))
            nodes.append(onnx.helper.make_node("Mul", [data, entry.name], [masked], masked))
            node.input[chosen[number].data_input] = masked
            inputs.append(entry)
        if node.op_type == "Dropout":
            nodes.extend(_without_chance(node))
        else:
            nodes.append(node)
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del changed.graph.node[:]
    changed.graph.node.extend(copies)
    _declare(changed, inputs)
    return changed, tuple(inputs)


def _choose(model: onnx.ModelProto, dropout: Dropout) -> list[MaskedLayer]:
    """Return the layers to mask: Dropout nodes of the graph, or layers with constant weights."""
    existing = find_dropout_nodes(model) if dropout.layers in ("auto", "existing") else []
    if existing:
        return existing
    if dropout.layers == "existing":
        raise InputError(
            "the graph has no Dropout nodes: exporting removes them",
            remedy="choose heads, backbone or a regular expression, or keep them (torch.onnx: training=PRESERVE)",
        )
    return choose_layers(find_layers(model), "heads" if dropout.layers == "auto" else dropout.layers)


def _mask_input(number: int, layer: MaskedLayer, dropout: Dropout, axes: int | None) -> MaskInput:
    import onnx

    kind = dropout.masks or ("elements" if layer.ratio is not None else DEFAULT_MASKS)
    rate = dropout.rate or layer.ratio or DEFAULT_RATE
    shape = layer.mask_shape if kind == "channels" else None
    return MaskInput(
        name=f"{GRAPH_MARK}_{number}_mask",
        layer=layer.name,
        # An element mask belongs to one use of a layer; a channel mask belongs to the weights, shared by all their
        # uses.
        key=layer.key if kind == "channels" else layer.aliases[1],
        rate=rate,
        shape=shape,
        axes=axes if shape is None else len(shape),
        by_channel=kind == "channels",
        dtype=onnx.helper.tensor_dtype_to_np_dtype(layer.element_type),
        shape_output=None if shape is not None else f"{GRAPH_MARK}_{number}_shape",
    )


def _declare(model: onnx.ModelProto, inputs: Sequence[MaskInput]) -> None:
    """Declare the mask inputs with a description each, and the outputs that return their shapes."""
    from onnx import TensorProto, helper

    for entry in inputs:
        says = (
            f"0 with probability {entry.rate:g}, else {1 / (1 - entry.rate):.9g}; ones switch it off. "
            f"Multiplied onto the input of {entry.layer}"
        )
        if entry.shape_output is not None:
            says += f", whose shape is the output {entry.shape_output}"
            model.graph.output.append(helper.make_tensor_value_info(entry.shape_output, TensorProto.INT64, [None]))
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(entry.dtype))
        shape = entry.shape if entry.shape is not None or entry.axes is None else [None] * entry.axes
        model.graph.input.append(helper.make_tensor_value_info(entry.name, kind, shape, doc_string=says))


def _without_chance(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """Return identity nodes in place of a Dropout node, and an all-true mask output if it is used."""
    from onnx import TensorProto, helper

    nodes = [helper.make_node("Identity", [node.input[0]], [node.output[0]], node.name)]
    if len(node.output) > 1 and node.output[1]:
        shape = f"{node.output[1]}_{GRAPH_MARK}_shape"
        ones = helper.make_tensor("ones", TensorProto.BOOL, [1], [True])
        nodes.append(helper.make_node("Shape", [node.input[0]], [shape]))
        nodes.append(helper.make_node("ConstantOfShape", [shape], [node.output[1]], value=ones))
    return nodes


def split_masked(
    model: onnx.ModelProto, masks: Iterable[str]
) -> tuple[onnx.ModelProto, onnx.ModelProto, tuple[str, ...]]:
    """Return the part of a graph before all masks, the part after, and the tensors between them.

    The first part runs once per image, since passes differ in the second part only. The tensors between are outputs of
    the first part; the caller adds their types as inputs of the second.
    """
    import onnx

    graph = model.graph
    random = downstream(graph, masks)
    made_of_constants = set(constants_of(graph))
    first, second = [], []
    for node in graph.node:
        if not random.isdisjoint(node.output):
            second.append(node)
        elif made_of_constants.issuperset(node.output):
            first.append(node)  # cheap, and both parts may need it
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
    own = [tensor for tensor in before.graph.input if tensor.name not in random]
    del before.graph.input[:]
    before.graph.input.extend(own)
    inputs = {tensor.name for tensor in graph.input}
    del before.graph.output[:]
    before.graph.output.extend(onnx.ValueInfoProto(name=name) for name in between if name not in inputs)
    return before, after, between
