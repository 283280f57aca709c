"""YOLOv8 and those exported alike (v9, 11, 12, and v10 and 26 with candidates), and YOLOv8-seg."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.detect.families.base import Candidates, Given, Signature
from probox.detect.families.cells import LEVELS, count_cells
from probox.detect.families.dfl import find_edges
from probox.detect.families.exported import Exported, only_output
from probox.detect.images import Placement
from probox.detect.prototypes import PrototypeMasks

__all__ = ["YoloV8", "YoloV8Seg"]

Array = npt.NDArray[Any]


def has_cells(signature: Signature, rows: int | None) -> bool:
    """Return whether so many rows are the cells of the input at strides that heads are built with."""
    size = signature.image_size()
    return size is not None and rows is not None and any(count_cells(size, levels) == rows for levels in LEVELS)


class YoloV8(Exported):
    """YOLOv8 (and those exported alike): [1, 4 + C, N], or transposed, with centre, size and class scores.

    Exports to TensorFlow have channels last, and perhaps boxes in 0..1. Where the graph takes the mean of edge
    distributions (v8, v9, 11), these are read too.
    """

    name = "yolov8"
    labels = "best"
    nms_iou = 0.7

    def __init__(self, given: Given) -> None:
        signature, graph = given.signature, given.graph
        shape = signature.shape(0)
        self._transposed = len(shape) == 3 and has_cells(signature, shape[1]) and not has_cells(signature, shape[2])
        super().__init__(given)
        self.edges = find_edges(graph, signature.outputs[0].name)
        self.has_edges = bool(self.edges)

    @classmethod
    def matches(cls, signature: Signature) -> bool:
        """One output [1, 4 + C, N] with a column for each cell, or [1, N, 4 + C] with a row for each."""
        shape = only_output(signature)
        if shape is None:
            return False
        return any((shape[3 - axis] or 5) > 4 and has_cells(signature, shape[axis]) for axis in (1, 2))

    def count_columns(self) -> int:
        rows = self.signature.shape(0)[2 if self._transposed else 1]
        return self.checked_columns(None if rows is None else rows - 4)

    def taps(self) -> tuple[str, ...]:
        return tuple(edge.tensor for edge in self.edges)

    def decode(self, outputs: Sequence[Array], placement: Placement) -> Candidates:
        columns = outputs[0][0].T if self._transposed else outputs[0][0]
        scores = columns[4 : 4 + len(self.classes)]
        boxes = self.corners(columns[:4].T)
        return Candidates(
            placement.boxes_to_image(boxes),
            np.ascontiguousarray(scores.T),
            self.edge_rows(outputs, boxes, placement),
        )


class YoloV8Seg(YoloV8):
    """YOLOv8-seg: [1, 4 + C + P, N] with P mask coefficients after the scores, and P prototypes [1, P, h, w]."""

    name = "yolov8-seg"
    has_masks = True

    @classmethod
    def matches(cls, signature: Signature) -> bool:
        """Two outputs, candidates with a column for each cell, and prototypes."""
        if len(signature.inputs) != 1 or len(signature.outputs) != 2 or len(signature.inputs[0].shape) != 4:
            return False
        found, prototypes = signature.shape(0), signature.shape(1)
        if len(found) != 3 or len(prototypes) != 4 or not has_cells(signature, found[2]):
            return False
        return found[1] is None or prototypes[1] is None or found[1] > 4 + prototypes[1]

    def count_columns(self) -> int:
        rows, prototypes = self.signature.shape(0)[1], self.signature.shape(1)[1]
        return self.checked_columns(None if rows is None or prototypes is None else rows - 4 - prototypes)

    def decode(self, outputs: Sequence[Array], placement: Placement) -> Candidates:
        columns, prototypes = outputs[0][0], outputs[1][0]
        first = 4 + len(self.classes)
        if len(columns) != first + len(prototypes):
            raise ValueError(f"{len(columns)} rows for {len(self.classes)} classes and {len(prototypes)} prototypes")
        plain = super().decode(outputs, placement)
        masks = PrototypeMasks(columns[first:].T, prototypes, self.input_size(), placement)
        return Candidates(plain.boxes, plain.scores, plain.covariances, heatmaps=masks)
