"""RT-DETR, and D-FINE, whose sides are distributions around a first box."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.detect.families.base import Given, Signature, corners_of_centres
from probox.detect.families.detr import Queries, boxes_and_logits, refines
from probox.detect.families.evidence import stem_of
from probox.detect.families.sides import find_edges
from probox.detect.graph import Graph
from probox.detect.images import Placement
from probox.errors import InputError
from probox.fusion.edges import edges_of

__all__ = ["DFine", "RtDetr"]

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

REACH = 0.5
"""a of the published models, for graphs that compute their bins."""

AGREEMENT = 0.02
"""How far the mean of sides may be from the box, in shares of the image: half precision loses so much."""


class RtDetr(Queries):
    """RT-DETR, its second version, and D-FINE without its edges: a sigmoid for each class.

    RGB from 0 to 1 without mean and deviation, stretched to 640 x 640, as its authors and transformers do.
    """

    name = "rt-detr"
    default_size = (640, 640)
    mean = (0.0, 0.0, 0.0)
    std = (255.0, 255.0, 255.0)

    @classmethod
    def is_inside(cls, signature: Signature, graph: Graph | None) -> bool:
        """Boxes moved from reference points, after a stem of small convolutions; no distributions of sides."""
        return is_rt_detr(graph) and not has_edges(signature, graph)


class DFine(RtDetr):
    """D-FINE (and DEIM exported alike): RT-DETR's images and scores, and each side a distribution over 33 bins.

    The last layer's logits of bins and the first boxes, which sides are counted from, are tensors inside the graph:
    ``x1 = cx - (b / 2 + d) w / b`` with ``d = sum p W``, so ``var(x1) = Var_p(W) (w / b)^2``.
    """

    name = "d-fine"
    has_edges = True

    def __init__(self, given: Given) -> None:
        signature, graph = given.signature, given.graph
        super().__init__(given)
        found = None if graph is None else find_edges(graph, signature.outputs[self._boxes].name)
        if found is None:
            raise InputError(
                "no distributions of sides are found in this graph", remedy="name another family: rt-detr does without"
            )
        self._edges = found

    @classmethod
    def is_inside(cls, signature: Signature, graph: Graph | None) -> bool:
        """RT-DETR's inside, with distributions of sides before the boxes."""
        return is_rt_detr(graph) and has_edges(signature, graph)

    def taps(self) -> tuple[str, ...]:
        return self._edges.logits, self._edges.reference

    def corner_covariances(self, outputs: Sequence[Array], placement: Placement) -> Floats | None:
        given = len(self.signature.outputs)
        if len(outputs) < given + 2:  # masked graphs have no taps
            return None
        logits, reference = (outputs[given + number][0] for number in range(2))
        mean, var = edges_of(logits, reference, REACH, self._edges.scale, self._edges.bins)
        away = float(np.abs(mean - corners_of_centres(outputs[self._boxes][0])).max(initial=0.0))
        if not away <= AGREEMENT:
            raise InputError(
                f"the mean of the sides' distributions is {away:.3g} of the image away from the boxes",
                remedy="name another family: rt-detr does without them",
            )
        width, height = placement.image_size
        covariances = np.zeros((len(logits), 2, 2, 2))
        pixels = np.array([width, height, width, height], np.float64)
        covariances[:, [0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 0, 1]] = var * pixels**2
        return covariances


def is_rt_detr(graph: Graph | None) -> bool:
    """Return whether boxes move from reference points, after a stem of small convolutions."""
    return refines(graph) and stem_of(graph) == "small"


def has_edges(signature: Signature, graph: Graph | None) -> bool:
    """Return whether distributions of sides stand before the boxes."""
    found = boxes_and_logits(signature)
    return graph is not None and found is not None and find_edges(graph, signature.outputs[found[0]].name) is not None
