"""Edge distributions inside a graph (DFL): the softmax whose mean over bins 0, 1, 2... a graph takes itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from probox.detect.families.cells import centres
from probox.detect.graph import Graph
from probox.detect.images import Placement
from probox.errors import InputError
from probox.fusion.edges import edge_corners, edge_moments

if TYPE_CHECKING:
    import onnx

__all__ = ["EdgeRows", "Edges", "find_edges"]

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

PASSING = frozenset({"Transpose", "Reshape", "Cast", "Identity", "Squeeze", "Unsqueeze", "Flatten", "Expand"})
"""Operators that leave values as they are."""
WEIGHING = frozenset({"Conv", "MatMul", "Gemm", "Mul", "Einsum"})
"""Operators by which exporters take the mean over bins."""
LONGEST_CHAIN = 8
HALF_SHARE = 0.1
ROUNDING, HALF_ROUNDING = 2.0**-12, 2.0**-8
"""How far boxes may lie from the mean of their distributions, of the input's longer side: in float32, and in half
precision, which adds a share of the stride."""


@dataclasses.dataclass(frozen=True)
class Edges:
    """A softmax over bins 0, 1, 2... whose mean becomes the distance of a box's edges."""

    tensor: str
    axis: int
    bins: int
    half: bool
    """Whether the graph computes in half precision there."""

    def arrange(self, values: Array) -> Array:
        """Return the tensor's values for one image as (4, bins, N), whatever the order of its axes."""
        axis = self.axis % max(values.ndim, 1)
        others = [other for other in range(1, values.ndim) if other != axis]
        fours = [other for other in others if values.shape[other] == 4]
        if values.ndim < 4 or axis == 0 or values.shape[axis] != self.bins or values.shape[0] != 1 or not fours:
            raise InputError(
                f"the edge distributions {self.tensor} have the shape {list(values.shape)}, "
                f"where one axis of 4 edges and one of {self.bins} bins are expected",
                remedy="use another uncertainty, or export the model anew",
            )
        edge = fours[0]
        rest = [other for other in others if other != edge]
        return np.asarray(values.transpose([edge, axis, 0, *rest]).reshape(4, self.bins, -1))


def find_edges(graph: Graph | None, output: str) -> tuple[Edges, ...]:
    """Return the edge distributions that an output is made from, in the order of the graph; usually one, or none.

    What is looked for is a Softmax whose values go, moved and reshaped at most, into a convolution or product with the
    constant 0, 1, 2...
    """
    if graph is None:
        return ()
    above = _ancestors(graph, output)
    found = []
    for node in graph.nodes:
        if node.op_type == "Softmax" and node.output[0] in above:
            weights = _weights_after(graph, node.output[0])
            if weights is not None:
                axis = next((entry.i for entry in node.attribute if entry.name == "axis"), None)
                usual = -1 if graph.opset >= 13 else 1
                half = weights.dtype == np.float16
                found.append(Edges(node.output[0], usual if axis is None else axis, weights.size, half))
    return tuple(found)


def _ancestors(graph: Graph, output: str) -> set[str]:
    """Return every tensor that an output is computed from, and itself."""
    reached: set[str] = set()
    ahead = [output]
    while ahead:
        name = ahead.pop()
        if name in reached:
            continue
        reached.add(name)
        node = graph.maker(name)
        if node is not None:
            ahead.extend(node.input)
    return reached


def _weights_after(graph: Graph, name: str, depth: int = 0) -> Array | None:
    """Return the constant 0, 1, 2... that a tensor is weighed with, if it is."""
    if depth > LONGEST_CHAIN:
        return None
    for node in graph.users(name):
        weights = None
        if node.op_type in PASSING and node.input[0] == name:
            weights = _weights_after(graph, node.output[0], depth + 1)
        elif node.op_type in WEIGHING:
            others = [_constant(graph, other) for other in node.input if other != name]
            weights = next((value for value in others if value is not None and _counts(value)), None)
        if weights is not None:
            return weights
    return None


def _constant(graph: Graph, name: str, depth: int = 0) -> Array | None:
    """Return a constant, also one that is only moved, cast or counted out by the graph."""
    value = graph.value(name)
    node: onnx.NodeProto | None = graph.maker(name)
    if value is not None or node is None or depth > LONGEST_CHAIN:
        return value
    if node.op_type in PASSING - {"Expand"}:
        return _constant(graph, node.input[0], depth + 1)
    if node.op_type == "Range":
        start, limit, step = (_constant(graph, part, depth + 1) for part in node.input)
        if start is not None and limit is not None and step is not None and step.size == 1 and step.item() != 0:
            return np.arange(start.item(), min(limit.item(), start.item() + 4096 * abs(step.item())), step.item())
    return None


def _counts(values: Array) -> bool:
    """Return whether a constant is 0, 1, 2..."""
    flat = values.ravel()
    return flat.size > 1 and flat.dtype.kind in "fiu" and bool((flat == np.arange(flat.size)).all())


class EdgeRows:
    """Corner covariances of candidates, worked out for the rows that are asked for.

    Each time, the means of the distributions are held against the boxes that the graph itself made of them: if they
    differ, these are not the distributions of these boxes, and every variance would be wrong.

    Parameters
    ----------
    edges : sequence of Edges
        Where the distributions come from.
    values : sequence of arrays
        Their values for one image.
    boxes : (N, 4)
        The graph's own boxes ``x1, y1, x2, y2``, in pixels of the input.
    size : (width, height)
        Of the input.
    strides : sequence of int, optional
        The strides of the cells that the distances start from; None if they could not be told.
    placement : Placement
        Where the image lies on the input.
    """

    def __init__(
        self,
        edges: Sequence[Edges],
        values: Sequence[Array],
        boxes: Floats,
        size: tuple[int, int],
        strides: Sequence[int] | None,
        placement: Placement,
    ) -> None:
        self._edges, self._values = edges, values
        self._boxes, self._size, self._strides, self._placement = boxes, size, strides, placement

    def __len__(self) -> int:
        return len(self._boxes)

    def __getitem__(self, rows: Any) -> Floats:
        chosen = np.atleast_1d(np.arange(len(self._boxes))[rows])
        if not len(chosen):
            return np.zeros((0, 2, 2, 2))
        probs = self._probabilities()[:, :, chosen].transpose(2, 0, 1).astype(np.float64)
        points, strides = centres(self._size, tuple(self._strides or ()))
        boxes, covariances = edge_corners(points[chosen], strides[chosen], *edge_moments(probs))
        self._check(probs, boxes, self._boxes[chosen], strides[chosen])
        return self._placement.covariances_to_image(covariances)

    def _probabilities(self) -> Array:
        """Return the distributions as (4, bins, N)."""
        parts = [edge.arrange(value) for edge, value in zip(self._edges, self._values, strict=True)]
        joined = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=2)
        if self._strides is None or joined.shape[2] != len(self._boxes):
            raise InputError(
                f"can't tell which of {joined.shape[2]} edge distributions ({self._names}) belong to which of "
                f"{len(self._boxes)} boxes on an input of {self._size[0]} x {self._size[1]}",
                remedy="use another uncertainty",
            )
        return joined

    @property
    def _names(self) -> str:
        return ", ".join(edge.tensor for edge in self._edges)

    def _check(self, probs: Floats, boxes: Floats, own: Floats, strides: Floats) -> None:
        """Raise if the graph's boxes are not the means of these distributions."""
        half = any(edge.half for edge in self._edges)
        slack = max(self._size) * (HALF_ROUNDING if half else ROUNDING) + (HALF_SHARE * strides if half else 0.0)
        sums = np.abs(probs.sum(axis=2) - 1.0).max()
        apart = np.abs(boxes - own).max(axis=1)
        if not (sums <= (0.02 if half else 1e-3) and (apart <= slack).all()):  # NaN is not right either
            raise InputError(
                f"the edge distributions found in the graph ({self._names}) are not those of its boxes: "
                f"edges differ by up to {float(apart.max()):.3g} pixels of the input",
                remedy="use another uncertainty",
            )
