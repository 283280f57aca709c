"""Exports of Ultralytics that end in their detections: v10 and 26 end to end, and RT-DETR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.detect.families.base import Candidates, Given, Labels, Signature, channels_first, corners_of_centres
from probox.detect.families.dfl import find_edges
from probox.detect.families.exported import Exported, check_scores, only_output
from probox.detect.families.topk import Chosen, find_chosen
from probox.detect.families.yolov8 import has_cells
from probox.detect.graph import Graph
from probox.detect.images import Pixels, Placement, place_image
from probox.detect.prototypes import PrototypeMasks
from probox.errors import InputError

__all__ = ["EndToEnd", "UltralyticsRtDetr"]

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

QUERIES = 300
"""How many rows the usual exports choose."""
DECODER = "RTDETRDecoder"
"""How exports name the head of RT-DETR."""


class _Choosing(Exported):
    """A graph whose rows are detections: box, score and class, perhaps mask coefficients.

    Where the tensors can be found that it chooses them from, these are read instead: all scores of every candidate.
    """

    labels: Labels = "best"
    suppresses = True

    def __init__(self, given: Given) -> None:
        signature, graph = given.signature, given.graph
        super().__init__(given)
        self.chosen: Chosen | None = None if self.has_all_scores() else find_chosen(graph, signature.outputs[0].name)
        if self.chosen is not None or self.has_all_scores():
            self.labels = "all"  # a row for each class of a box, as the graph itself chooses
        if self.chosen is not None:
            self.edges = find_edges(graph, self.chosen.boxes)
            self.has_edges = bool(self.edges)

    def has_all_scores(self) -> bool:
        """Return whether the rows themselves have the scores of all classes."""
        return False

    def count_columns(self) -> int:
        # A row names one class and says nothing of how many there are.
        return 80 if self._named is None else len(self._named)

    def taps(self) -> tuple[str, ...]:
        return () if self.chosen is None else (*self.chosen.names, *(edge.tensor for edge in self.edges))

    def read(self, outputs: Sequence[Array]) -> tuple[Array, Array, Array | None]:
        """Return boxes, all scores and mask coefficients: of every candidate, or of the chosen rows."""
        rows = outputs[0][0]
        labels = self._labels_of(rows)
        if self.chosen is not None:
            boxes, scores = (self.tapped(outputs, name) for name in (self.chosen.boxes, self.chosen.scores))
            if boxes is not None and scores is not None:
                self._check_source(rows, labels, boxes, scores)
                more = None if self.chosen.coefficients is None else self.tapped(outputs, self.chosen.coefficients)
                return boxes[0], scores[0], None if more is None else more[0]
        there = rows[:, 4] > 0  # a graph that suppresses fills up with rows of zeros
        rows, labels = rows[there], labels[there]
        scores = np.zeros((len(rows), len(self.classes)), np.float32)
        scores[np.arange(len(rows)), labels] = rows[:, 4]
        return rows[:, :4], scores, rows[:, 6:] if rows.shape[1] > 6 else None

    def _labels_of(self, rows: Array) -> npt.NDArray[np.int64]:
        """Return the classes of rows; raise if they are none."""
        check_scores(rows[:, 4], self.name)
        labels = np.rint(rows[:, 5])
        if not (np.abs(labels - rows[:, 5]) <= 1e-3).all() or (len(labels) and labels.min() < 0):
            raise InputError(
                f"expected numbers of classes in the last column of {self.signature.describe()}, "
                f"but got {float(rows[:, 5].min()):.4g} to {float(rows[:, 5].max()):.4g}",
                remedy="name another family",
            )
        if len(labels) and labels.max() >= len(self.classes):
            raise InputError(
                f"the model found class {int(labels.max())}, but only {len(self.classes)} classes have names",
                remedy="give the names of its classes in the order of its outputs",
            )
        return labels.astype(np.int64)

    def _check_source(self, rows: Array, labels: npt.NDArray[np.int64], boxes: Array, scores: Array) -> None:
        """Raise if the graph's best row is not among the candidates that it is said to be chosen from."""
        fits = boxes.ndim == 3 and scores.ndim == 3 and boxes.shape[2] == 4 and boxes.shape[1] == scores.shape[1]
        if fits and scores.shape[2] != len(self.classes):
            raise InputError(
                f"expected {scores.shape[2]} class names for the model's {scores.shape[2]} scores, "
                f"but got {len(self.classes)}",
                remedy="give the names of its classes in the order of its outputs",
            )
        if fits and len(rows):
            best = int(rows[:, 4].argmax())
            near = np.abs(scores[0, :, labels[best]] - rows[best, 4]) <= 1e-3
            apart = np.abs(boxes[0, near] - rows[best, :4]).max(axis=1)
            fits = bool((apart <= 1e-3 * max(1.0, float(np.abs(rows[best, :4]).max()))).any())
        if not fits:
            raise InputError(
                f"can't find the candidates that {self.signature.describe()} are chosen from: "
                f"{', '.join(self.taps())} are others",
                remedy="export the model anew, without choosing",
            )


class EndToEnd(_Choosing):
    """End to end (v10, 26) or suppressed by the graph: [1, N, 6] with x1, y1, x2, y2, score, class.

    With prototypes [1, P, h, w] as a second output, rows go on with P mask coefficients.
    """

    name = "end-to-end"

    def __init__(self, given: Given) -> None:
        signature = given.signature
        super().__init__(given)
        self.has_masks = len(signature.outputs) == 2

    @classmethod
    def matches(cls, signature: Signature) -> bool:
        """Rows of six numbers, or of six and as many as there are prototypes."""
        if len(signature.inputs) != 1 or len(signature.inputs[0].shape) != 4 or signature.metadata.head == DECODER:
            return False
        shapes = [signature.shape(output) for output in range(len(signature.outputs))]
        if [len(shape) for shape in shapes] == [3, 4]:
            prototypes = shapes[1][1]
            return prototypes is not None and shapes[0][2] == 6 + prototypes
        if [len(shape) for shape in shapes] != [3] or shapes[0][2] != 6:
            return False
        # An export that says so little could be a YOLOv5 or YOLOX of one class.
        return signature.metadata.task is not None or shapes[0][1] == QUERIES

    @classmethod
    def recognises(cls, signature: Signature, graph: Graph | None) -> bool:
        """Two classes of RT-DETR make six numbers too."""
        return cls.matches(signature) and not _ends_in_scores(signature, graph)

    def decode(self, outputs: Sequence[Array], placement: Placement) -> Candidates:
        boxes, scores, coefficients = self.read(outputs)
        if len(boxes) and float(np.abs(outputs[0][0][:, :4]).max(initial=0.0)) <= 1.5 and outputs[0][0][:, 4].any():
            raise InputError(
                f"expected boxes in pixels of the input from {self.signature.describe()}, but all lie in 0..1",
                remedy="name another family",
            )
        corners = boxes.astype(np.float64)
        masks = None
        if self.has_masks and coefficients is not None:
            masks = PrototypeMasks(coefficients, outputs[1][0], self.input_size(), placement)
        return Candidates(
            placement.boxes_to_image(corners),
            np.ascontiguousarray(scores),
            self.edge_rows(outputs, corners, placement),
            heatmaps=masks,
        )


class UltralyticsRtDetr(_Choosing):
    """RT-DETR of Ultralytics: [1, N, 4 + C] with cx, cy, w, h in 0..1 and all scores, or [1, N, 6] with the best.

    The image is stretched to the input, and there is nothing to suppress.
    """

    name = "rtdetr-ultralytics"

    @classmethod
    def matches(cls, signature: Signature) -> bool:
        """One output of 300 rows, or an export that says it is one; the best scores only where it says so."""
        shape = only_output(signature)
        if shape is None:
            return False
        if signature.metadata.head is not None:
            return signature.metadata.head == DECODER
        names = signature.metadata.names
        if shape[1] != QUERIES or shape[2] is None or has_cells(signature, shape[2]):
            return False
        return shape[2] == 4 + len(names) if names is not None else shape[2] > 6

    @classmethod
    def recognises(cls, signature: Signature, graph: Graph | None) -> bool:
        """Six numbers are two classes if the graph joins boxes with a sigmoid of scores."""
        if not cls.matches(signature):
            return False
        unsaid = signature.metadata.head is None and signature.shape(0)[2] == 6 and graph is not None
        return _ends_in_scores(signature, graph) if unsaid else True

    def has_all_scores(self) -> bool:
        columns = self.signature.shape(0)[2]
        if columns == 6:
            return self.signature.metadata.head != DECODER and self._named is not None and len(self._named) == 2
        return True

    def count_columns(self) -> int:
        columns = self.signature.shape(0)[2]
        if not self.has_all_scores():
            return super().count_columns()
        return self.checked_columns(None if columns is None else columns - 4)

    def prepare(self, image: Pixels) -> tuple[dict[str, Array], Placement]:
        placed, placement = place_image(image, self.input_size(), keep_aspect=False)
        return {self.signature.inputs[0].name: channels_first(placed, bgr=False, std=255.0)}, placement

    def decode(self, outputs: Sequence[Array], placement: Placement) -> Candidates:
        rows = outputs[0][0]
        boxes, scores = (rows[:, :4], rows[:, 4:]) if self.has_all_scores() else self.read(outputs)[:2]
        if float(np.abs(boxes).max(initial=0.0)) > 1.5:
            raise InputError(
                f"expected cx, cy, w, h between 0 and 1 from {self.signature.describe()}, "
                f"but got up to {float(np.abs(boxes).max()):.4g}",
                remedy="name another family",
            )
        corners = corners_of_centres(boxes) * np.array(placement.image_size * 2, np.float64)
        return Candidates(corners, np.ascontiguousarray(scores))


def _ends_in_scores(signature: Signature, graph: Graph | None) -> bool:
    """Return whether the output is boxes joined with the sigmoid of all scores, nothing chosen."""
    node = None if graph is None else graph.maker(signature.outputs[0].name)
    if graph is None or node is None or node.op_type != "Concat":
        return False
    last = graph.maker(node.input[-1])
    return len(node.input) == 2 and last is not None and last.op_type == "Sigmoid"
