"""What the inside of a graph says of its outputs: logits or probabilities, and how its network begins."""

from __future__ import annotations

from typing import Literal

from probox.detect.graph import Graph

__all__ = ["Stem", "first_operations", "first_step", "has_operation", "score_kind", "stem_of"]

MOVES = frozenset(
    {"Cast", "Concat", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Reshape", "Slice"}
    | {"Split", "Squeeze", "Transpose", "Unsqueeze"}
)
"""Operations that move values and leave them as they are."""
LINEAR = frozenset({"Conv", "FusedConv", "Gemm", "FusedGemm", "MatMul", "FusedMatMul"})
BOUNDED = frozenset({"HardSigmoid", "Sigmoid", "Softmax"})
"""Operations whose values lie between 0 and 1."""
DEPTH = 40
"""How far to look back: graphs may be as deep as they like."""

Stem = Literal["patches", "large", "small", "packed"]


def has_operation(graph: Graph | None, *kinds: str) -> bool:
    """Return whether a graph has an operation of one of these kinds."""
    return graph is not None and any(node.op_type in kinds for node in graph.nodes)


def first_operations(graph: Graph, name: str, depth: int = DEPTH) -> frozenset[str]:
    """Return the kinds of operations that make an output's values, beyond those that only move them."""
    node = graph.maker(name)
    if node is None or depth == 0:
        return frozenset()
    if node.op_type not in MOVES:
        return frozenset({"linear" if _is_linear(graph, name) else node.op_type})
    sources = node.input if node.op_type == "Concat" else node.input[:1]
    return frozenset().union(*(first_operations(graph, source, depth - 1) for source in sources))


def _is_linear(graph: Graph, name: str, depth: int = 4) -> bool:
    """Return whether a tensor comes from a linear layer, whose bias may be added apart."""
    node = graph.maker(name)
    if node is None or depth == 0:
        return False
    if node.op_type in LINEAR:
        return True
    return node.op_type in ("Add", "Identity") and any(_is_linear(graph, source, depth - 1) for source in node.input)


def score_kind(graph: Graph | None, name: str) -> Literal["logits", "probabilities"] | None:
    """Return whether an output comes from a linear layer, or from a sigmoid or softmax; None if from neither."""
    kinds = frozenset() if graph is None else first_operations(graph, name)
    if kinds == {"linear"}:
        return "logits"
    return "probabilities" if kinds and kinds <= BOUNDED else None


def first_step(graph: Graph | None, name: str, depth: int = DEPTH) -> str | None:
    """Return the kind of the first operation that computes something of an input."""
    if graph is None or depth == 0:
        return None
    for node in graph.users(name):
        if node.op_type in ("Shape", "Size", "Constant"):
            continue
        return first_step(graph, node.output[0], depth - 1) if node.op_type in MOVES else node.op_type
    return None


def stem_of(graph: Graph | None) -> Stem | None:
    """Return how a network's first convolution looks at the image.

    ``patches``: a vision transformer's, as wide as its step. ``large``: a ResNet's, 7 x 7. ``small``: 3 x 3 at every
    second pixel (the "D" ResNets, HGNet, CSPNeXt). ``packed``: at every pixel, after pixels were packed into channels
    (YOLOX's focus). None for anything else.
    """
    first = next((node for node in graph.nodes if node.op_type == "Conv"), None) if graph is not None else None
    if first is None:
        return None
    ints = {entry.name: tuple(entry.ints) for entry in first.attribute}
    kernel, strides = ints.get("kernel_shape", ()), ints.get("strides", (1, 1))
    if len(kernel) != 2 or len(strides) != 2:
        return None
    if kernel == strides and kernel[0] >= 8:
        return "patches"
    shapes: dict[tuple[tuple[int, ...], tuple[int, ...]], Stem] = {
        ((7, 7), (2, 2)): "large", ((3, 3), (2, 2)): "small", ((3, 3), (1, 1)): "packed",
    }  # fmt: skip
    return shapes.get((kernel, strides))
