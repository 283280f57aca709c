"""Exports of Ultralytics: YOLOv8 and later, with masks, end-to-end heads, and RT-DETR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from probox.detect.candidates import Candidates, Labels, Pixels, Placement, PrototypeMasks
from probox.detect.families.base import (
    LEVELS,
    Family,
    Signature,
    corners_of_centres,
    count_cells,
    match_strides,
)
from probox.detect.families.graph_inspection import EdgeRows, EdgeSoftmax, TopKSource, find_edges, find_top_k
from probox.detect.graph import Graph, expect_names
from probox.errors import InputError
from probox.support.types import Array, Floats, Ints
from probox.tables.labels import COCO_CLASSES

TASKS = ("detect", "segment")
"""Supported tasks of exports: those with axis-aligned boxes."""
LARGEST_FRACTION = 1.5
"""Upper limit of centres that are fractions of the input; in pixels, centres of the last cells exceed it."""
OTHER_TASKS = {
    "pose": "predicts key points",
    "obb": "predicts oriented boxes, which have no axis-aligned corners",
    "classify": "classifies whole images",
}


def check_task(signature: Signature) -> None:
    """Raise if an export's metadata names an unsupported task."""
    task = signature.metadata.task
    if task is not None and task not in TASKS:
        what = OTHER_TASKS.get(task, "predicts no boxes")
        raise InputError(
            f"the model {what} (its export says task {task!r}; outputs {signature.describe()})",
            remedy="use a model for the task detect or segment",
        )


def only_output(signature: Signature) -> tuple[int | None, ...] | None:
    """Return the shape of the only output of a graph with one image input, if it has three dimensions."""
    one = len(signature.inputs) == 1 and len(signature.outputs) == 1
    fits = one and len(signature.outputs[0].shape) == 3 and len(signature.inputs[0].shape) == 4
    return signature.shape(0) if fits else None


def check_scores(scores: Array, family: str) -> None:
    """Raise if scores are not probabilities."""
    if scores.size:
        low, high = float(scores.min()), float(scores.max())
        if not (low >= -1e-3 and high <= 1.0 + 1e-3):
            raise InputError(
                f"expected scores between 0 and 1 of {family}, but got {low:.4g} to {high:.4g}",
                remedy="name another family ({option:family}), or export the model with its sigmoid",
            )


class Exported(Family):
    """An export of Ultralytics or in the same layout: RGB in 0..1, letterboxed; each score column is a class."""

    edges: tuple[EdgeSoftmax, ...] = ()
    placing: ClassVar[Mapping[str, Any]] = {"keep_aspect": True, "centred": True, "fill": 114}

    def inspect(self) -> None:
        check_task(self.signature)
        wide, high = self.input_size()
        stride = self.signature.metadata.stride
        if stride is not None and None in self.open_size() and (wide % stride or high % stride):
            raise InputError(
                f"expected an input whose sides are multiples of {stride}, but got {wide} x {high}",
                remedy="choose another size",
            )

    def checked_columns(self, columns: int | None) -> int:
        """Return the number of classes; `columns` is the number in the outputs.

        There is no background column, and every class needs a name.
        """
        if columns is None and self.named is not None:
            return len(self.named)
        if columns is None or columns < 1:
            raise InputError(
                f"the number of classes is not fixed in the graph ({self.signature.describe()})",
                remedy="give the names of its classes in the order of its outputs ({option:classes})",
            )
        if self.named is not None:
            expect_names(self.named, columns, self.signature.describe())
        elif columns != len(COCO_CLASSES):
            raise InputError(
                f"the model has {columns} classes, which are not COCO's",
                remedy="give the names of its classes in the order of its outputs ({option:classes})",
            )
        return columns

    def prepare(self, image: Pixels) -> tuple[dict[str, Array], Placement]:
        """Return the image letterboxed on grey."""
        feeds, placement = super().prepare(image)
        if self.signature.channels_last:
            feeds = {name: planes.transpose(0, 2, 3, 1) for name, planes in feeds.items()}
        return feeds, placement

    def corners(self, centres: Array) -> Floats:
        """Return boxes in pixels of the input from centres and sizes, one row per cell.

        Exports to TensorFlow have fractions of the input: then no centre is more than one cell beyond 1.
        """
        fractions = bool(len(centres)) and float(np.abs(centres[:, :2]).max()) <= LARGEST_FRACTION
        return corners_of_centres(centres) * (np.array(self.input_size() * 2) if fractions else 1.0)

    def get_tap(self, outputs: Sequence[Array], name: str) -> Array | None:
        """Return a tensor from inside the graph, None if it was not requested (for example with dropout)."""
        names = [output.name for output in self.signature.outputs]
        names += [tap for tap in self.taps() if tap not in names]
        at = names.index(name)
        return outputs[at] if at < len(outputs) else None

    def edge_rows(self, outputs: Sequence[Array], boxes: Floats, placement: Placement) -> EdgeRows | None:
        """Return the corner covariances of boxes on the input from edge distributions, None without any."""
        values = [self.get_tap(outputs, edge.tensor) for edge in self.edges]
        there = [value for value in values if value is not None]
        if not values or len(there) < len(values):
            return None
        size = self.input_size()
        strides = match_strides(size, len(boxes), self.signature.metadata.stride)
        return EdgeRows(self.edges, there, boxes, size, strides, placement)


def has_cells(signature: Signature, rows: int | None) -> bool:
    """Return whether the number of rows is that of the input's cells at usual strides."""
    size = signature.image_size()
    return size is not None and rows is not None and any(count_cells(size, levels) == rows for levels in LEVELS)


class YoloV8(Exported):
    """YOLOv8 (and later versions in the same layout): [1, 4 + C, N], or transposed, with centre, size and class scores.

    Exports to TensorFlow have channels last, and may have boxes in 0..1. Edge distributions inside the graph (v8, v9,
    11) are read as well.
    """

    name = "yolov8"
    labels = "best"
    nms_iou = 0.7

    def inspect(self) -> None:
        super().inspect()
        signature = self.signature
        shape = signature.shape(0)
        self._transposed = len(shape) == 3 and has_cells(signature, shape[1]) and not has_cells(signature, shape[2])
        self.edges = find_edges(self.graph, signature.outputs[0].name)
        self.has_edges = bool(self.edges)

    @classmethod
    def matches(cls, signature: Signature) -> bool:
        """Return whether the only output is [1, 4 + C, N] or [1, N, 4 + C] with one candidate per cell."""
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
        """Return whether the outputs are candidates with a column per cell, and prototypes."""
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


QUERIES = 300
"""Number of rows in usual exports."""
DECODER = "RTDETRDecoder"
"""Name of RT-DETR's head in metadata."""


class _Choosing(Exported):
    """A graph whose rows are detections: box, score and class, optionally mask coefficients.

    If the tensors before the selection are found, they are read instead: all scores of every candidate.
    """

    labels: Labels = "best"
    suppresses = True

    def inspect(self) -> None:
        super().inspect()
        output = self.signature.outputs[0].name
        self.chosen: TopKSource | None = None if self.has_all_scores() else find_top_k(self.graph, output)
        if self.chosen is not None or self.has_all_scores():
            self.labels = "all"  # one row for each class of a box, as the graph selects
        if self.chosen is not None:
            self.edges = find_edges(self.graph, self.chosen.boxes)
            self.has_edges = bool(self.edges)

    def has_all_scores(self) -> bool:
        """Return whether the rows have the scores of all classes."""
        return False

    def count_columns(self) -> int:
        # A row has one class; the number of classes is unknown.
        return len(COCO_CLASSES if self.named is None else self.named)

    def taps(self) -> tuple[str, ...]:
        return () if self.chosen is None else (*self.chosen.names, *(edge.tensor for edge in self.edges))

    def read(self, outputs: Sequence[Array]) -> tuple[Array, Array, Array | None]:
        """Return boxes, all scores and mask coefficients of every candidate, or of the selected rows."""
        rows = outputs[0][0]
        labels = self._labels_of(rows)
        if self.chosen is not None:
            boxes, scores = (self.get_tap(outputs, name) for name in (self.chosen.boxes, self.chosen.scores))
            if boxes is not None and scores is not None:
                self._check_source(rows, labels, boxes, scores)
                more = None if self.chosen.coefficients is None else self.get_tap(outputs, self.chosen.coefficients)
                return boxes[0], scores[0], None if more is None else more[0]
        there = rows[:, 4] > 0  # graphs with built-in NMS pad with rows of zeros
        rows, labels = rows[there], labels[there]
        scores = np.zeros((len(rows), len(self.classes)), np.float32)
        scores[np.arange(len(rows)), labels] = rows[:, 4]
        return rows[:, :4], scores, rows[:, 6:] if rows.shape[1] > 6 else None

    def _labels_of(self, rows: Array) -> Ints:
        """Return the classes of rows; raise if invalid."""
        check_scores(rows[:, 4], self.name)
        labels = np.rint(rows[:, 5])
        if not (np.abs(labels - rows[:, 5]) <= 1e-3).all() or (len(labels) and labels.min() < 0):
            raise InputError(
                f"expected numbers of classes in the last column of {self.signature.describe()}, "
                f"but got {float(rows[:, 5].min()):.4g} to {float(rows[:, 5].max()):.4g}",
                remedy="name another family ({option:family})",
            )
        if len(labels) and labels.max() >= len(self.classes):
            raise InputError(
                f"the model returned class {int(labels.max())}, but only {len(self.classes)} classes have names",
                remedy="give the names of its classes in the order of its outputs ({option:classes})",
            )
        return labels.astype(np.int64)

    def _check_source(self, rows: Array, labels: Ints, boxes: Array, scores: Array) -> None:
        """Raise if the graph's best row is not among the candidates it should be selected from."""
        fits = boxes.ndim == 3 and scores.ndim == 3 and boxes.shape[2] == 4 and boxes.shape[1] == scores.shape[1]
        if fits:
            expect_names(self.classes, scores.shape[2])
        if fits and len(rows):
            best = int(rows[:, 4].argmax())
            near = np.abs(scores[0, :, labels[best]] - rows[best, 4]) <= 1e-3
            apart = np.abs(boxes[0, near] - rows[best, :4]).max(axis=1)
            fits = bool((apart <= 1e-3 * max(1.0, float(np.abs(rows[best, :4]).max()))).any())
        if not fits:
            raise InputError(
                f"can't find the candidates that {self.signature.describe()} are selected from: "
                f"{', '.join(self.taps())} differ",
                remedy="export the model again, without selection of the top rows",
            )


class EndToEnd(_Choosing):
    """End-to-end head (v10, 26) or NMS in the graph: [1, N, 6] with x1, y1, x2, y2, score, class.

    With prototypes [1, P, h, w] as a second output, rows also have P mask coefficients.
    """

    name = "end-to-end"

    def inspect(self) -> None:
        super().inspect()
        self.has_masks = len(self.signature.outputs) == 2

    @classmethod
    def matches(cls, signature: Signature) -> bool:
        """Return whether rows have six numbers, or six and one per prototype."""
        if len(signature.inputs) != 1 or len(signature.inputs[0].shape) != 4 or signature.metadata.head == DECODER:
            return False
        shapes = [signature.shape(output) for output in range(len(signature.outputs))]
        if [len(shape) for shape in shapes] == [3, 4]:
            prototypes = shapes[1][1]
            return prototypes is not None and shapes[0][2] == 6 + prototypes
        if [len(shape) for shape in shapes] != [3] or shapes[0][2] != 6:
            return False
        # An export without metadata could be a YOLOv5 or YOLOX with one class.
        return signature.metadata.task is not None or shapes[0][1] == QUERIES

    @classmethod
    def recognises(cls, signature: Signature, graph: Graph | None) -> bool:
        """Return whether this is not RT-DETR with two classes, whose rows have six numbers, too."""
        return cls.matches(signature) and not _ends_in_scores(signature, graph)

    def decode(self, outputs: Sequence[Array], placement: Placement) -> Candidates:
        boxes, scores, coefficients = self.read(outputs)
        if len(boxes) and float(np.abs(outputs[0][0][:, :4]).max(initial=0.0)) <= 1.5 and outputs[0][0][:, 4].any():
            raise InputError(
                f"expected boxes in pixels of the input from {self.signature.describe()}, but all lie in 0..1",
                remedy="name another family ({option:family})",
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

    The image is stretched to the input; there is no suppression.
    """

    name = "rtdetr-ultralytics"
    placing: ClassVar = {"keep_aspect": False}

    @classmethod
    def matches(cls, signature: Signature) -> bool:
        """Return whether the only output has 300 rows, or metadata name this head; without metadata, all scores."""
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
        """Return whether rows of six numbers have two class scores: boxes concatenated with a sigmoid."""
        if not cls.matches(signature):
            return False
        unsaid = signature.metadata.head is None and signature.shape(0)[2] == 6 and graph is not None
        return _ends_in_scores(signature, graph) if unsaid else True

    def has_all_scores(self) -> bool:
        columns = self.signature.shape(0)[2]
        if columns == 6:
            return self.signature.metadata.head != DECODER and self.named is not None and len(self.named) == 2
        return True

    def count_columns(self) -> int:
        columns = self.signature.shape(0)[2]
        if not self.has_all_scores():
            return super().count_columns()
        return self.checked_columns(None if columns is None else columns - 4)

    def decode(self, outputs: Sequence[Array], placement: Placement) -> Candidates:
        rows = outputs[0][0]
        boxes, scores = (rows[:, :4], rows[:, 4:]) if self.has_all_scores() else self.read(outputs)[:2]
        if float(np.abs(boxes).max(initial=0.0)) > 1.5:
            raise InputError(
                f"expected cx, cy, w, h between 0 and 1 from {self.signature.describe()}, "
                f"but got up to {float(np.abs(boxes).max()):.4g}",
                remedy="name another family ({option:family})",
            )
        corners = corners_of_centres(boxes) * np.array(placement.image_size * 2, np.float64)
        return Candidates(corners, np.ascontiguousarray(scores))


def _ends_in_scores(signature: Signature, graph: Graph | None) -> bool:
    """Return whether the output is boxes concatenated with the sigmoid of all scores, without selection."""
    node = None if graph is None else graph.maker(signature.outputs[0].name)
    if graph is None or node is None or node.op_type != "Concat":
        return False
    last = graph.maker(node.input[-1])
    return len(node.input) == 2 and last is not None and last.op_type == "Sigmoid"
