"""Where a graph has D-FINE's distributions of sides."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from probox.detect.families.evidence import MOVES
from probox.detect.graph import Graph

__all__ = ["Edges", "find_edges"]

Floats = npt.NDArray[np.float64]

SCALE = 4.0
"""b of the published models, for graphs that do not have it written down."""

SEARCHED = 400
"""How many tensors behind the boxes are looked at for their distributions."""


class Edges(NamedTuple):
    """Where a graph has the distributions of sides."""

    logits: str
    """[1, N, 4 * bins], the last layer's."""
    reference: str
    """[1, N, 4], the boxes that distances are counted from."""
    bins: Floats | None
    """W, where it is written down."""
    scale: float


def find_edges(graph: Graph, boxes: str) -> Edges | None:
    """Return the distributions of sides nearest to the boxes: a softmax times constant bins, and what it moves."""
    queue, seen = deque([boxes]), {boxes}
    while queue and len(seen) < SEARCHED:
        node = graph.maker(queue.popleft())
        if node is None:
            continue
        if node.op_type in ("MatMul", "Gemm") and len(node.input) >= 2:
            shares = graph.maker(node.input[0])
            if shares is not None and shares.op_type == "Softmax":
                found = _edges_at(graph, node, shares)
                if found is not None:
                    return found
        for source in node.input:
            if source and source not in seen:
                seen.add(source)
                queue.append(source)
    return None


def _edges_at(graph: Graph, project: Any, shares: Any) -> Edges | None:
    """Return the edges of an integral, if boxes are computed from it as D-FINE does."""
    before = graph.maker(shares.input[0])
    if before is None or before.op_type != "Reshape":
        return None
    bins = graph.value(project.input[1])
    if bins is not None and (bins.size < 5 or bins.size % 2 == 0):
        return None
    distance = project.output[0]
    for side in _parts(graph, distance):
        for product in _products(graph, side):
            found = _reference(graph, product)
            if found is not None:
                reference, scale = found
                values = None if bins is None else np.asarray(bins, np.float64).ravel()
                return Edges(before.input[0], reference, values, scale)
    return None


def _parts(graph: Graph, name: str, depth: int = 6) -> list[str]:
    """Return the tensors that hold one side of the distances."""
    found: list[str] = []
    for user in graph.users(name) if depth else ():
        if user.op_type in ("Gather", "Slice", "Split"):
            found.extend(user.output)
        elif user.op_type in MOVES:
            found.extend(_parts(graph, user.output[0], depth - 1))
    return found


def _products(graph: Graph, name: str, depth: int = 4) -> list[str]:
    """Return what one side, with half of the scale added, is multiplied with."""
    found: list[str] = []
    for user in graph.users(name) if depth else ():
        if user.op_type == "Mul":
            found.extend(source for source in user.input if source != name)
        elif user.op_type == "Add" or user.op_type in MOVES:
            found.extend(_products(graph, user.output[0], depth - 1))
    return found


def _reference(graph: Graph, name: str, depth: int = 8) -> tuple[str, float] | None:
    """Return the boxes that a width or height over the scale comes from, and the scale."""
    scale: float | None = None
    taken = False
    for _ in range(depth):
        node = graph.maker(name)
        if node is None:
            return None
        if node.op_type == "Div" and scale is None:
            scale = _constant(graph, node.input[1])
        elif node.op_type in ("Gather", "Slice", "Split"):
            taken = True
        elif node.op_type not in MOVES:
            return (name, scale or SCALE) if taken and node.op_type == "Sigmoid" else None
        name = node.input[0]
    return None


def _constant(graph: Graph, name: str) -> float | None:
    """Return a number written down in the graph, perhaps without its sign."""
    node = graph.maker(name)
    value = graph.value(node.input[0] if node is not None and node.op_type == "Abs" else name)
    return None if value is None or value.size != 1 else abs(float(value.ravel()[0]))
