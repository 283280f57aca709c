"""ONNX graphs as graphs: reading one, what feeds what, what is constant, and further tensors as outputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.support.optional import require

if TYPE_CHECKING:
    import onnx

__all__ = ["Graph", "constants_of", "downstream", "inputs_of", "load_model", "with_outputs"]


def load_model(path: Path, *, weights: bool = True) -> onnx.ModelProto:
    """Return the model of a file; without `weights`, those kept in files beside it are left there."""
    onnx_module = require("onnx", extra="detect", purpose="reading graphs needs")
    try:
        model: onnx.ModelProto = onnx_module.load(str(path), load_external_data=weights)
    except Exception as error:  # protobuf's own exception types differ between its versions
        raise InputError(f"can't read this graph: {error}", file=str(path)) from None
    return model


def with_outputs(model: onnx.ModelProto, names: Sequence[str]) -> onnx.ModelProto:
    """Return a copy of the model that also gives these tensors, after its own outputs; types are for the runtime."""
    import onnx

    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    given = {output.name for output in changed.graph.output}
    changed.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in given)
    return changed


class Graph:
    """What a family may ask of a graph to find tensors inside it."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.proto = model.graph
        self.opset = max((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), default=0)
        self.nodes: tuple[onnx.NodeProto, ...] = tuple(model.graph.node)
        self._makers = {name: node for node in self.nodes for name in node.output}
        self._users: dict[str, list[onnx.NodeProto]] = {}
        for node in self.nodes:
            for name in node.input:
                self._users.setdefault(name, []).append(node)
        self._tensors = {tensor.name: tensor for tensor in model.graph.initializer}
        for node in self.nodes:
            if node.op_type == "Constant":
                for entry in node.attribute:
                    if entry.name == "value":
                        self._tensors[node.output[0]] = entry.t

    def maker(self, name: str) -> onnx.NodeProto | None:
        """Return the node that makes a tensor."""
        return self._makers.get(name)

    def users(self, name: str) -> tuple[onnx.NodeProto, ...]:
        """Return the nodes that read a tensor."""
        return tuple(self._users.get(name, ()))

    def value(self, name: str) -> npt.NDArray[Any] | None:
        """Return a constant written down in the graph, None for anything computed or kept in another file."""
        from onnx import TensorProto, numpy_helper

        tensor = self._tensors.get(name)
        if tensor is None or tensor.data_location == TensorProto.EXTERNAL:
            return None
        try:
            return np.asarray(numpy_helper.to_array(tensor))
        except Exception:  # a tensor that lies about its size: the runtime will say so
            return None


def inputs_of(node: onnx.NodeProto) -> list[str]:
    """Return the tensors a node reads, those that its subgraphs take from outside included."""
    import onnx

    names = list(node.input)
    for attribute in node.attribute:
        graphs = [attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else list(attribute.graphs)
        for graph in graphs:
            own = {tensor.name for tensor in graph.input} | {tensor.name for tensor in graph.initializer}
            for inner in graph.node:
                names.extend(name for name in inputs_of(inner) if name not in own)
                own.update(inner.output)
            names.extend(tensor.name for tensor in graph.output if tensor.name not in own)
    return names


def constants_of(graph: onnx.GraphProto) -> dict[str, tuple[tuple[int, ...], int] | None]:
    """Return tensors that do not depend on the input, with dimensions and element type where they are written down."""
    known: dict[str, tuple[tuple[int, ...], int] | None] = {
        tensor.name: (tuple(tensor.dims), tensor.data_type) for tensor in graph.initializer
    }
    for node in graph.node:
        if node.op_type == "Constant":
            values = [attribute.t for attribute in node.attribute if attribute.name == "value"]
            known[node.output[0]] = (tuple(values[0].dims), values[0].data_type) if values else None
        elif node.op_type.startswith("Random"):
            continue
        elif node.input and all(name in known or not name for name in inputs_of(node)):
            known.update(dict.fromkeys(node.output))
    return known


def downstream(graph: onnx.GraphProto, names: Iterable[str]) -> set[str]:
    """Return everything computed from these tensors, and the tensors themselves."""
    reached = set(names)
    for node in graph.node:
        if not reached.isdisjoint(inputs_of(node)):
            reached.update(node.output)
    return reached
