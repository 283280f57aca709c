"""Inspection of graphs: score activations, edge distributions, and the inputs of TopK."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from probox.detect.candidates import Placement
from probox.detect.families.base import centres
from probox.detect.graph import Graph
from probox.errors import InputError
from probox.fusion.fuse import edge_corners, edge_moments
from probox.support.types import Array, Floats

if TYPE_CHECKING:
    import onnx

MOVES = frozenset(
    {"Cast", "Concat", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Reshape", "Slice"}
    | {"Split", "Squeeze", "Transpose", "Unsqueeze"}
)
"""Operations that move values without changing them."""
LINEAR = frozenset({"Conv", "FusedConv", "Gemm", "FusedGemm", "MatMul", "FusedMatMul"})
BOUNDED = frozenset({"HardSigmoid", "Sigmoid", "Softmax"})
"""Operations whose values lie between 0 and 1."""
DEPTH = 40
"""Limit of the search depth; graphs can be arbitrarily deep."""
Stem = Literal["patches", "large", "small", "packed"]


def has_operation(graph: Graph | None, *kinds: str) -> bool:
    """Return whether a graph has an operation of one of these kinds."""
    return graph is not None and any(node.op_type in kinds for node in graph.nodes)


def first_operations(graph: Graph, name: str, depth: int = DEPTH) -> frozenset[str]:
    """Return the kinds of operations that compute an output's values, beyond those that only move them."""
    node = graph.maker(name)
    if node is None or depth == 0:
        return frozenset()
    if node.op_type not in MOVES:
        return frozenset({"linear" if _is_linear(graph, name) else node.op_type})
    sources = node.input if node.op_type == "Concat" else node.input[:1]
    return frozenset().union(*(first_operations(graph, source, depth - 1) for source in sources))


def _is_linear(graph: Graph, name: str, depth: int = 4) -> bool:
    """Return whether a tensor comes from a linear layer, with or without a separate bias."""
    node = graph.maker(name)
    if node is None or depth == 0:
        return False
    if node.op_type in LINEAR:
        return True
    return node.op_type in ("Add", "Identity") and any(_is_linear(graph, source, depth - 1) for source in node.input)


def score_kind(graph: Graph | None, name: str) -> Literal["logits", "probabilities"] | None:
    """Return whether an output comes from a linear layer, or from a sigmoid or softmax; None otherwise."""
    kinds = frozenset() if graph is None else first_operations(graph, name)
    if kinds == {"linear"}:
        return "logits"
    return "probabilities" if kinds and kinds <= BOUNDED else None


def first_step(graph: Graph | None, name: str, depth: int = DEPTH) -> str | None:
    """Return the kind of the first arithmetic operation on an input."""
    if graph is None or depth == 0:
        return None
    for node in graph.users(name):
        if node.op_type in ("Shape", "Size", "Constant"):
            continue
        return first_step(graph, node.output[0], depth - 1) if node.op_type in MOVES else node.op_type
    return None


def stem_of(graph: Graph | None) -> Stem | None:
    """Return the kind of a network's first convolution.

    ``patches``: a vision transformer's, as wide as its stride. ``large``: a ResNet's, 7 x 7. ``small``: 3 x 3 with
    stride 2 (the "D" ResNets, HGNet, CSPNeXt). ``packed``: stride 1, after pixels were packed into channels (YOLOX's
    focus). None: any other.
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


CHOOSING = frozenset({"GatherElements", "GatherND", "Gather"})
MOVING = frozenset({"Flatten", "Reshape", "Squeeze", "Unsqueeze", "Cast", "Identity"})
LONGEST_CHAIN = 12


@dataclasses.dataclass(frozen=True)
class TopKSource:
    """Inputs of TopK in a graph with rows ``box, score, class``: boxes [1, N, 4] and scores [1, N, C] of candidates.

    `coefficients` are mask coefficients [1, N, P], if the rows contain them.
    """

    boxes: str
    scores: str
    coefficients: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the tensors."""
        return tuple(name for name in (self.boxes, self.scores, self.coefficients) if name is not None)


def find_top_k(graph: Graph | None, output: str) -> TopKSource | None:
    """Return the TopK inputs behind an output concatenated from boxes, scores and classes.

    None if the output is computed in another way, such as NMS inside the graph.
    """
    node = None if graph is None else graph.maker(output)
    if graph is None or node is None or node.op_type != "Concat" or len(node.input) not in (3, 4):
        return None
    boxes = _source(graph, node.input[0])
    scores = _source(graph, node.input[1], through_top=True)
    coefficients = _source(graph, node.input[3]) if len(node.input) == 4 else None
    if boxes is None or scores is None or (len(node.input) == 4 and coefficients is None):
        return None
    return TopKSource(boxes, scores, coefficients)


def _source(graph: Graph, name: str, *, through_top: bool = False) -> str | None:
    """Return the tensor that another was gathered from, or (through_top) selected from by TopK; None otherwise."""
    chosen = gathered = False
    for _ in range(LONGEST_CHAIN):
        node = graph.maker(name)
        if node is not None and node.op_type == "TopK" and through_top and node.output[0] == name:
            chosen = True
        elif node is not None and node.op_type in CHOOSING:
            gathered = True
            chosen = chosen or not through_top
        elif node is None or node.op_type not in MOVING or gathered:
            return name if chosen else None
        name = node.input[0]
    return None


PASSING = frozenset({"Transpose", "Reshape", "Cast", "Identity", "Squeeze", "Unsqueeze", "Flatten", "Expand"})
"""Operators that leave values unchanged."""
WEIGHING = frozenset({"Conv", "MatMul", "Gemm", "Mul", "Einsum"})
"""Operators that exporters use for the mean over bins."""
LONGEST_PATH = 8
HALF_SHARE = 0.1
ROUNDING, HALF_ROUNDING = 2.0**-12, 2.0**-8
"""Tolerance between boxes and means of distributions, relative to the longer input side: in float32, and in half
precision, which adds a fraction of the stride."""


@dataclasses.dataclass(frozen=True)
class EdgeSoftmax:
    """A softmax over bins 0, 1, 2... whose mean is the distance of a box's edge."""

    tensor: str
    axis: int
    bins: int
    half: bool
    """Whether the graph uses half precision there."""

    def arrange(self, values: Array) -> Array:
        """Return the tensor's values for one image as (4, bins, N), for any order of axes."""
        axis = self.axis % max(values.ndim, 1)
        others = [other for other in range(1, values.ndim) if other != axis]
        fours = [other for other in others if values.shape[other] == 4]
        if values.ndim < 4 or axis == 0 or values.shape[axis] != self.bins or values.shape[0] != 1 or not fours:
            raise InputError(
                f"the edge distributions {self.tensor} have the shape {list(values.shape)}, "
                f"where one axis of 4 edges and one of {self.bins} bins are expected",
                remedy="use another uncertainty, or export the model again",
            )
        edge = fours[0]
        rest = [other for other in others if other != edge]
        return np.asarray(values.transpose([edge, axis, 0, *rest]).reshape(4, self.bins, -1))


def find_edges(graph: Graph | None, output: str) -> tuple[EdgeSoftmax, ...]:
    """Return the edge distributions that an output is computed from, in graph order; usually one, or none.

    An edge distribution is a Softmax whose values go, possibly moved and reshaped, into a convolution or product with
    the constant 0, 1, 2...
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
                found.append(EdgeSoftmax(node.output[0], usual if axis is None else axis, weights.size, half))
    return tuple(found)


def _ancestors(graph: Graph, output: str) -> set[str]:
    """Return the tensors that an output is computed from, and the output itself."""
    reached: set[str] = set()
    ahead = [output]
    while ahead:
        name = ahead.pop()
        node = None if name in reached else graph.maker(name)
        reached.add(name)
        ahead.extend(() if node is None else node.input)
    return reached


def _weights_after(graph: Graph, name: str, depth: int = 0) -> Array | None:
    """Return the constant 0, 1, 2... that a tensor is multiplied with, or None."""
    if depth > LONGEST_PATH:
        return None
    for node in graph.users(name):
        weights = None
        if node.op_type in PASSING and node.input[0] == name:
            weights = _weights_after(graph, node.output[0], depth + 1)
        elif node.op_type in WEIGHING:
            others = [_find_constant(graph, other) for other in node.input if other != name]
            weights = next((value for value in others if value is not None and _counts(value)), None)
        if weights is not None:
            return weights
    return None


def _find_constant(graph: Graph, name: str, depth: int = 0) -> Array | None:
    """Return a constant, possibly moved, cast or generated by a Range in the graph."""
    value = graph.value(name)
    node: onnx.NodeProto | None = graph.maker(name)
    if value is not None or node is None or depth > LONGEST_PATH:
        return value
    if node.op_type in PASSING - {"Expand"}:
        return _find_constant(graph, node.input[0], depth + 1)
    if node.op_type == "Range":
        start, limit, step = (_find_constant(graph, part, depth + 1) for part in node.input)
        if start is not None and limit is not None and step is not None and step.size == 1 and step.item() != 0:
            return np.arange(start.item(), min(limit.item(), start.item() + 4096 * abs(step.item())), step.item())
    return None


def _counts(values: Array) -> bool:
    """Return whether a constant is 0, 1, 2..."""
    flat = values.ravel()
    return flat.size > 1 and flat.dtype.kind in "fiu" and bool((flat == np.arange(flat.size)).all())


class EdgeRows:
    """Corner covariances of candidates, computed for requested rows only.

    Each access compares the means of the distributions with the graph's boxes, in pixels of the input. A difference
    means that the distributions belong to other boxes, and all variances would be wrong. `values` are the tensors of
    `edges` for one image. `strides` are those of the cells that distances refer to, None if unknown.
    """

    def __init__(
        self,
        edges: Sequence[EdgeSoftmax],
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
                f"can't assign {joined.shape[2]} edge distributions ({self._names}) to "
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
        if not (sums <= (0.02 if half else 1e-3) and (apart <= slack).all()):  # also raises for NaN
            raise InputError(
                f"the edge distributions found in the graph ({self._names}) do not belong to its boxes: "
                f"edges differ by up to {float(apart.max()):.3g} pixels of the input",
                remedy="use another uncertainty",
            )


SIDE_SCALE = 4.0
"""Scale b of the published models, for graphs that do not store it."""
SEARCHED = 400
"""Limit of tensors searched before the boxes."""


class SideBins(NamedTuple):
    """Tensors of the edge distributions in a graph."""

    logits: str
    """Logits [1, N, 4 * bins] of the last layer."""
    reference: str
    """Boxes [1, N, 4] that distances refer to."""
    bins: Floats | None
    """Bin values W, if stored."""
    scale: float


def find_sides(graph: Graph, boxes: str) -> SideBins | None:
    """Return the edge distributions nearest to the boxes: a softmax times constant bins, and its reference."""
    queue, seen = deque([boxes]), {boxes}
    while queue and len(seen) < SEARCHED:
        node = graph.maker(queue.popleft())
        if node is None:
            continue
        if node.op_type in ("MatMul", "Gemm") and len(node.input) >= 2:
            shares = graph.maker(node.input[0])
            if shares is not None and shares.op_type == "Softmax":
                found = _sides_at(graph, node, shares)
                if found is not None:
                    return found
        for source in node.input:
            if source and source not in seen:
                seen.add(source)
                queue.append(source)
    return None


def _sides_at(graph: Graph, project: Any, shares: Any) -> SideBins | None:
    """Return the edges of an integral, if boxes are computed from it as in D-FINE."""
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
                return SideBins(before.input[0], reference, values, scale)
    return None


def _parts(graph: Graph, name: str, depth: int = 6) -> list[str]:
    """Return the tensors with one edge's distances each."""
    found: list[str] = []
    for user in graph.users(name) if depth else ():
        if user.op_type in ("Gather", "Slice", "Split"):
            found.extend(user.output)
        elif user.op_type in MOVES:
            found.extend(_parts(graph, user.output[0], depth - 1))
    return found


def _products(graph: Graph, name: str, depth: int = 4) -> list[str]:
    """Return the tensors that one edge, plus half of the scale, is multiplied with."""
    found: list[str] = []
    for user in graph.users(name) if depth else ():
        if user.op_type == "Mul":
            found.extend(source for source in user.input if source != name)
        elif user.op_type == "Add" or user.op_type in MOVES:
            found.extend(_products(graph, user.output[0], depth - 1))
    return found


def _reference(graph: Graph, name: str, depth: int = 8) -> tuple[str, float] | None:
    """Return the boxes that a width or height divided by the scale comes from, and the scale."""
    scale: float | None = None
    taken = False
    for _ in range(depth):
        node = graph.maker(name)
        if node is None:
            return None
        if node.op_type == "Div" and scale is None:
            divisor = graph.maker(node.input[1])  # a scalar, possibly with the opposite sign
            value = graph.value(divisor.input[0] if divisor is not None and divisor.op_type == "Abs" else node.input[1])
            scale = None if value is None or value.size != 1 else abs(float(value.ravel()[0]))
        elif node.op_type in ("Gather", "Slice", "Split"):
            taken = True
        elif node.op_type not in MOVES:
            return (name, scale or SIDE_SCALE) if taken and node.op_type == "Sigmoid" else None
        name = node.input[0]
    return None
