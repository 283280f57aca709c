"""Graphs that choose their best candidates themselves: the tensors they choose from."""

from __future__ import annotations

import dataclasses

from probox.detect.graph import Graph

__all__ = ["Chosen", "find_chosen"]

CHOOSING = frozenset({"GatherElements", "GatherND", "Gather"})
MOVING = frozenset({"Flatten", "Reshape", "Squeeze", "Unsqueeze", "Cast", "Identity"})
LONGEST_CHAIN = 12


@dataclasses.dataclass(frozen=True)
class Chosen:
    """What a graph takes its rows ``box, score, class`` from: boxes [1, N, 4] and scores [1, N, C] of all candidates.

    `coefficients` are those of masks [1, N, P], where rows go on with them.
    """

    boxes: str
    scores: str
    coefficients: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Return the tensors."""
        return tuple(name for name in (self.boxes, self.scores, self.coefficients) if name is not None)


def find_chosen(graph: Graph | None, output: str) -> Chosen | None:
    """Return the tensors that an output joined of boxes, scores and classes was chosen from by TopK.

    None if the output is made in another way; suppression inside the graph is one.
    """
    node = None if graph is None else graph.maker(output)
    if graph is None or node is None or node.op_type != "Concat" or len(node.input) not in (3, 4):
        return None
    boxes = _source(graph, node.input[0])
    scores = _source(graph, node.input[1], through_top=True)
    coefficients = _source(graph, node.input[3]) if len(node.input) == 4 else None
    if boxes is None or scores is None or (len(node.input) == 4 and coefficients is None):
        return None
    return Chosen(boxes, scores, coefficients)


def _source(graph: Graph, name: str, *, through_top: bool = False) -> str | None:
    """Return what a tensor was gathered from, or (through_top) chosen from by TopK; None if it was not."""
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
