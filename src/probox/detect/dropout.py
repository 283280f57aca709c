"""Monte Carlo dropout for any ONNX graph: masks before chosen layers, as further inputs of the graph.

ONNX Runtime removes Dropout nodes when it loads a graph, and a detector trained without dropout has none. So the mask
is written out: the layer's input times a tensor that whoever runs the graph feeds, see `probox.detect.masks`.

Masks are drawn for every element of a layer's input, as a Dropout layer does; or for whole channels of feature maps
(and single features of dense layers), shared by all cells: one pass is then one network, the same everywhere.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from probox.detect.graph import constants_of, downstream, inputs_of
from probox.detect.layers import Layer, choose_layers, find_dropout_nodes, find_layers, tensor_types
from probox.detect.masks import DEFAULT_MASKS, DEFAULT_RATE, Dropout
from probox.errors import InputError
from probox.files.replacing import GRAPH_MARK

if TYPE_CHECKING:
    import onnx

__all__ = ["MaskInput", "insert_dropout", "split_masked"]


@dataclasses.dataclass(frozen=True)
class MaskInput:
    """An input of a graph with masks: what to feed."""

    name: str
    """Of the input."""
    layer: str
    """What is masked by it."""
    key: str
    """What the mask is drawn for; masks of equal keys are equal."""
    rate: float
    shape: tuple[int, ...] | None
    """None: as an output of the graph says, which is called `shape_output`."""
    axes: int | None
    """How many axes it has, if that can be told without running."""
    by_channel: bool
    """Whether a mask whose shape only a run tells is one number for each channel."""
    dtype: npt.DTypeLike
    shape_output: str | None


def insert_dropout(model: onnx.ModelProto, dropout: Dropout) -> tuple[onnx.ModelProto, tuple[MaskInput, ...]]:
    """Return a copy of the graph that takes a mask for each chosen layer as a further input, and these inputs.

    Parameters
    ----------
    model : onnx.ModelProto
        The detector; not changed.
    dropout : Dropout
        Which layers, at which rate.

    Returns
    -------
    model : onnx.ModelProto
        The layers' inputs times the masks. The graph's own Dropout nodes hand on what they get. Where the shape of a
        mask is that of the layer's input, a further output tells it; until then a mask of one number will do.
    inputs : tuple of MaskInput
        What to feed: `probox.detect.draw_mask`, or ones for the network as it is.
    """
    import onnx

    chosen, own = _choose(model, dropout)
    if not chosen:
        raise InputError(
            f"the graph has no layers that count as {dropout.layers}", remedy="name some by a regular expression"
        )
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    types = {} if (dropout.masks == "channels" and not own) else tensor_types(model)
    by_node = {layer.node: number for number, layer in enumerate(chosen)}
    nodes: list[onnx.NodeProto] = []
    inputs: list[MaskInput] = []
    for index, node in enumerate(changed.graph.node):
        if index in by_node:
            number = by_node[index]
            masked = f"{GRAPH_MARK}_{number}_masked"
            data = node.input[chosen[number].data_input]
            entry = _mask_input(number, chosen[number], dropout, own, types.get(data, (0, None))[1])
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


def _choose(model: onnx.ModelProto, dropout: Dropout) -> tuple[list[Layer], bool]:
    """Return the layers that get masks, and whether they are Dropout nodes of the graph's own."""
    existing = find_dropout_nodes(model) if dropout.layers in ("auto", "existing") else []
    if existing:
        return existing, True
    if dropout.layers == "existing":
        raise InputError(
            "the graph has no Dropout nodes: exporting removes them",
            remedy="choose heads, backbone or a regular expression, or keep them (torch.onnx: training=PRESERVE)",
        )
    return choose_layers(find_layers(model), "heads" if dropout.layers == "auto" else dropout.layers), False


def _mask_input(number: int, layer: Layer, dropout: Dropout, own: bool, axes: int | None) -> MaskInput:
    import onnx

    kind = dropout.masks or ("elements" if own else DEFAULT_MASKS)
    rate = dropout.rate or layer.ratio or DEFAULT_RATE
    shape = layer.mask_shape if kind == "channels" else None
    return MaskInput(
        name=f"{GRAPH_MARK}_{number}_mask",
        layer=layer.name,
        # Elements lie in one place; channels are those of the weights, wherever these are used.
        key=layer.key if kind == "channels" else layer.aliases[1],
        rate=rate,
        shape=shape,
        axes=axes if shape is None else len(shape),
        by_channel=kind == "channels",
        dtype=onnx.helper.tensor_dtype_to_np_dtype(layer.element_type),
        shape_output=None if shape is not None else f"{GRAPH_MARK}_{number}_shape",
    )


def _declare(model: onnx.ModelProto, inputs: Sequence[MaskInput]) -> None:
    """Write down what the masks are: inputs with a sentence each, and outputs that tell shapes."""
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
    """Return what stands for a Dropout node: its input handed on, and a mask that keeps all, if someone reads it."""
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
    """Return the part of a graph before any mask, the part after, and the tensors between them.

    Passes differ only in the second part: the first needs to run once for an image. The tensors between are the
    outputs of the first; their types, as inputs of the second, are still to be filled in.
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
    own = [tensor for tensor in before.graph.input if tensor.name not in random]
    del before.graph.input[:]
    before.graph.input.extend(own)
    inputs = {tensor.name for tensor in graph.input}
    del before.graph.output[:]
    before.graph.output.extend(onnx.ValueInfoProto(name=name) for name in between if name not in inputs)
    return before, after, between
