"""Heads with scores per anchor or cell: SSD, YOLOv3, v5 and YOLOX, NanoDet and PicoDet."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from probox.detect.candidates import Candidates, Pixels, Placement, place_image
from probox.detect.families.base import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    Family,
    Signature,
    channels_first,
    corners_of_centres,
    count_cells,
    grid,
)
from probox.detect.families.detr import are_logits
from probox.detect.families.graph_inspection import score_kind
from probox.detect.families.ultralytics_exports import Exported, check_scores, has_cells, only_output
from probox.detect.graph import Graph, expect_names
from probox.errors import InputError
from probox.fusion.fuse import edge_corners, edge_moments
from probox.support.types import Array, Floats
from probox.tables.labels import COCO_CLASSES, softmax


class Ssd(Family):
    """SSD with all its anchors: boxes [1, N, 4] (or [1, N, 1, 4]) in 0..1 and scores [1, N, C].

    As TensorFlow's postprocessor returns them: RGB 0..255 in, stretched to the input, channels last or first; boxes are
    y1, x1, y2, x2. A graph with channels first and without "postprocessor" in its names has x1, y1, x2, y2.
    """

    name = "ssd"
    background = True
    default_size = (300, 300)

    def inspect(self) -> None:
        signature = self.signature
        found = _boxes_and_scores(signature)
        if found is None:
            raise InputError(f"expected outputs boxes [1, N, 4] and scores [1, N, C], but got {signature.describe()}")
        self._boxes, self._scores = found
        self._y_first = signature.channels_last or "postprocessor" in signature.outputs[self._boxes].name.lower()

    @classmethod
    def matches(cls, signature: Signature) -> bool:
        """Return whether there is one image input, and outputs are boxes [1, N, 4] and scores [1, N, C]."""
        one = len(signature.inputs) == 1 and len(signature.inputs[0].shape) == 4
        return one and _boxes_and_scores(signature) is not None

    @classmethod
    def recognises(cls, signature: Signature, graph: Graph | None) -> bool:
        """Return whether the scores are not logits: those belong to DETR and its variants."""
        return cls.matches(signature) and not are_logits(signature, graph)

    def count_columns(self) -> int:
        return self.last_dimension(self._scores)

    def prepare(self, image: Pixels) -> tuple[dict[str, Array], Placement]:
        placed, placement = place_image(image, self.input_size(), keep_aspect=False, from_origin=self._y_first)
        name, kind = self.signature.inputs[0].name, self.signature.inputs[0].type
        if not self.signature.channels_last:
            return {name: channels_first(placed, bgr=False)}, placement
        return {name: placed[None].astype(np.uint8 if "uint8" in kind else np.float32)}, placement

    def decode(self, outputs: Sequence[Array], placement: Placement) -> Candidates:
        boxes = outputs[self._boxes].reshape(-1, 4).astype(np.float64)
        boxes = boxes[:, [1, 0, 3, 2]] if self._y_first else boxes
        scores = self.columns.select(outputs[self._scores].reshape(len(boxes), -1))
        return Candidates(boxes * np.array(placement.image_size * 2, np.float64), scores)


def _boxes_and_scores(signature: Signature) -> tuple[int, int] | None:
    """Return the indices of the outputs with boxes and scores."""
    if len(signature.outputs) != 2:
        return None
    shapes = [signature.shape(0), signature.shape(1)]
    for boxes, scores in ((0, 1), (1, 0)):
        is_boxes = len(shapes[boxes]) in (3, 4) and shapes[boxes][-1] == 4
        is_boxes = is_boxes and (len(shapes[boxes]) == 3 or shapes[boxes][2] == 1)
        if is_boxes and len(shapes[scores]) == 3 and shapes[scores][1] == shapes[boxes][1]:
            return boxes, scores
    return None


MAP_STRIDES = (4, 8, 16, 32, 64, 128)
"""Possible strides of a map."""
FIRST_STRIDE = 8
"""Smallest stride if the graph does not fix the number of cells; each further stride doubles."""


class Maps(NamedTuple):
    """Indices of the score maps and edge maps, smallest stride first."""

    scores: tuple[int, ...]
    edges: tuple[int, ...]


class EdgeSpread:
    """Corner covariances of cells, computed for requested rows only."""

    def __init__(self, edges: Array, points: Floats, strides: Floats, placement: Placement) -> None:
        self._edges, self._points, self._strides, self._placement = edges, points, strides, placement

    def __len__(self) -> int:
        return len(self._edges)

    def __getitem__(self, rows: Any) -> Floats:
        moments = edge_moments(self._edges[rows])
        return self._placement.covariances_to_image(edge_corners(self._points[rows], self._strides[rows], *moments)[1])


class EdgeMaps(Family):
    """Heads of generalised focal loss: per cell scores, and for each edge a distribution over 0, 1, 2... strides.

    Subclasses define the reference point of a cell and the placement of images in training.
    """

    has_edges = True
    offset: ClassVar[tuple[float, float]] = (0.0, 0.0)
    """A cell's point is ``cell * stride + a * stride + b`` with these a and b."""

    def points(self, strides: Sequence[int]) -> tuple[Floats, Floats]:
        """Return the reference point and stride of each cell."""
        cells, scale = grid(self.input_size(), strides)
        share, shift = self.offset
        return cells * scale[:, None] + (share * scale[:, None] + shift), scale

    def from_maps(self, scores: Array, logits: Array, strides: Sequence[int], placement: Placement) -> Candidates:
        """Return candidates from scores (N, C) and edge logits (N, 4 * bins) of all cells."""
        points, scale = self.points(strides)
        if len(points) != len(scores):
            raise ValueError(f"{len(scores)} cells, but strides {', '.join(map(str, strides))} make {len(points)}")
        edges = softmax(logits.reshape(len(scores), 4, -1))
        mean = (edges @ np.arange(edges.shape[2], dtype=edges.dtype)).astype(np.float64)
        distance = mean * scale[:, None]
        boxes = np.concatenate([points - distance[:, :2], points + distance[:, 2:]], axis=1)
        return Candidates(
            placement.boxes_to_image(boxes), self.columns.select(scores), EdgeSpread(edges, points, scale, placement)
        )


class SplitMaps(EdgeMaps):
    """Per stride a score map [1, n, C] and an edge map [1, n, 4 * bins], grouped or alternating."""

    def inspect(self) -> None:
        signature = self.signature
        found = arrangements(signature)
        if not found:
            raise InputError(
                f"expected a score map [1, n, C] and an edge map [1, n, 4 B] for each stride, "
                f"but got {signature.describe()}"
            )
        self.maps = _likeliest(found, signature, self.graph, COCO_CLASSES if self.named is None else self.named)
        self._raw = score_kind(self.graph, signature.outputs[self.maps.scores[0]].name) == "logits"
        cells = [signature.shape(number)[1] for number in self.maps.scores]
        self.strides = strides_of_maps(cells, signature.trial_size or self.input_size())

    def count_columns(self) -> int:
        columns = self.last_dimension(self.maps.scores[0])
        if self.named is not None:
            expect_names(self.named, columns)  # these heads have no background
        return columns

    def decode(self, outputs: Sequence[Array], placement: Placement) -> Candidates:
        scores = np.concatenate([outputs[number][0] for number in self.maps.scores])
        if self._raw:
            scores = 1.0 / (1.0 + np.exp(-np.clip(scores, -80.0, 80.0)))
        logits = np.concatenate([outputs[number][0] for number in self.maps.edges])
        return self.from_maps(scores, logits, self.strides, placement)


class NanoDet(SplitMaps):
    """NanoDet (its first versions, -m, -g and -t): maps of strides 8, 16 and 32.

    As in its project: a cell's point is the middle of its pixels, ``cell * stride + (stride - 1) / 2``; BGR with
    ImageNet's mean and std; the aspect ratio is kept and the image is centred on the input.
    """

    name = "nanodet"
    offset = (0.5, -0.5)
    default_size = (416, 416)
    placing: ClassVar = {"keep_aspect": True, "centred": True}
    pixels: ClassVar = {"bgr": True, "mean": IMAGENET_MEAN[::-1], "std": IMAGENET_STD[::-1]}

    @classmethod
    def matches(cls, signature: Signature) -> bool:
        """Return whether the outputs are score maps and edge maps of three strides."""
        return len(signature.outputs) == 6 and bool(arrangements(signature))


class PicoDet(SplitMaps):
    """PicoDet exported without its post-processing: maps of strides 8, 16, 32 and 64.

    As in PaddleDetection: a cell's point is its middle, ``(cell + 1/2) * stride`` (``cell_offset: 0.5``); the graph
    applies the sigmoid to scores; RGB with ImageNet's mean and std, stretched (``keep_ratio: False``).
    """

    name = "picodet"
    offset = (0.5, 0.0)
    default_size = (416, 416)
    pixels: ClassVar = {"bgr": False, "mean": IMAGENET_MEAN, "std": IMAGENET_STD}

    @classmethod
    def matches(cls, signature: Signature) -> bool:
        """Return whether the outputs are score maps and edge maps of four strides."""
        return len(signature.outputs) == 8 and bool(arrangements(signature))


class NanoDetPlus(EdgeMaps):
    """NanoDet-Plus: one output [1, N, C + 4 * bins] over the cells of strides 8, 16, 32 and 64.

    As in its project: a cell's point is its first pixel, ``cell * stride``; the graph applies the sigmoid to scores;
    BGR with ImageNet's mean and std, stretched (``keep_ratio: False``) by a matrix that maps the first pixel to the
    first. The graph does not store the number of classes: class names are required.
    """

    name = "nanodet-plus"
    strides = (8, 16, 32, 64)
    default_size = (416, 416)
    placing: ClassVar = {"keep_aspect": False, "from_origin": True}
    pixels: ClassVar = {"bgr": True, "mean": IMAGENET_MEAN[::-1], "std": IMAGENET_STD[::-1]}

    def inspect(self) -> None:
        self._count = len(COCO_CLASSES if self.named is None else self.named)

    @classmethod
    def matches(cls, signature: Signature) -> bool:
        """Return whether the only output is [1, N, C + 4 * bins] with a row for each cell of four strides."""
        if len(signature.inputs) != 1 or len(signature.outputs) != 1:
            return False
        shape = signature.shape(0)
        if len(signature.inputs[0].shape) != 4 or len(shape) != 3 or shape[1] is None:
            return False
        size = signature.trial_size or signature.open_size
        fixed = None not in size and shape[1] == count_cells((size[0] or 0, size[1] or 0), cls.strides)
        return fixed and (shape[2] or 0) > 8

    def count_columns(self) -> int:
        columns = self.last_dimension(0)
        rest = columns - self._count
        if rest < 8 or rest % 4:
            raise InputError(
                f"{columns} columns do not fit {self._count} classes and four edge distributions",
                remedy="give the names of its classes in the order of its outputs ({option:classes})",
            )
        return self._count

    def decode(self, outputs: Sequence[Array], placement: Placement) -> Candidates:
        rows = outputs[0][0]
        return self.from_maps(rows[:, : self._count], rows[:, self._count :], self.strides, placement)


def arrangements(signature: Signature) -> list[Maps]:
    """Return the possible assignments of outputs to score maps and edge maps, most common first."""
    shapes = [signature.shape(number) for number in range(len(signature.outputs))]
    count = len(shapes)
    if count < 4 or count % 2 or len(signature.inputs) != 1 or any(len(shape) != 3 for shape in shapes):
        return []
    first, second = tuple(range(count // 2)), tuple(range(count // 2, count))
    at_even, at_odd = tuple(range(0, count, 2)), tuple(range(1, count, 2))
    ways = [Maps(first, second), Maps(at_even, at_odd), Maps(second, first), Maps(at_odd, at_even)]
    return [way for way in ways if _fits(way, shapes)]


def _fits(way: Maps, shapes: Sequence[tuple[int | None, ...]]) -> bool:
    columns = {shapes[number][2] for number in way.scores}
    edges = {shapes[number][2] for number in way.edges}
    cells = [shapes[number][1] for number in way.scores]
    known = [count for count in cells if count is not None]
    width = edges.pop() or 0
    return (
        len(columns) == 1
        and not edges
        and width >= 8
        and width % 4 == 0
        and cells == [shapes[number][1] for number in way.edges]
        and all(one > other for one, other in pairwise(known))
    )


def _likeliest(found: Sequence[Maps], signature: Signature, graph: Graph | None, names: Sequence[str]) -> Maps:
    """Return the assignment whose scores have one column per class name, or come from a sigmoid."""
    shapes = [signature.shape(number) for number in range(len(signature.outputs))]
    fitting = [way for way in found if shapes[way.scores[0]][2] == len(names)] or list(found)
    likely = [way for way in fitting if score_kind(graph, signature.outputs[way.scores[0]].name) == "probabilities"]
    return (likely or fitting)[0]


def strides_of_maps(cells: Sequence[int | None], size: tuple[int, int]) -> tuple[int, ...]:
    """Return the stride of each map from its number of cells; raise if no stride fits.

    >>> strides_of_maps([2704, 676, 169, 49], (416, 416))
    (8, 16, 32, 64)
    """
    found: list[int] = []
    for number, count in enumerate(cells):
        fitting = [stride for stride in MAP_STRIDES if count_cells(size, (stride,)) == count]
        if count is not None and not fitting:
            raise InputError(
                f"no stride makes {count} cells of an input of {size[0]} x {size[1]}",
                remedy="name another family ({option:family}), or give the size that the model was exported for",
            )
        found.append(fitting[0] if fitting else FIRST_STRIDE * 2**number)
    return tuple(found)


STRIDES = (8, 16, 32)
ANCHORS = 3
"""Number of YOLOv5's boxes per cell."""


class YoloV3(Family):
    """The ONNX model zoo's YOLOv3: inputs image and image shape; outputs boxes, scores and NMS indices.

    The indices are ignored: boxes and scores are all candidates before suppression, in pixels of the image.
    """

    name = "yolov3"
    nms_iou = 0.5
    batches = False
    default_size = (416, 416)

    @classmethod
    def matches(cls, signature: Signature) -> bool:
        """Return whether there are two inputs, and outputs [1, N, 4], [1, C, N] and indices of three columns."""
        if len(signature.inputs) != 2 or len(signature.outputs) < 2:
            return False
        boxes, scores = signature.outputs[0].shape, signature.outputs[1].shape
        takes_size = len(signature.inputs[1].shape) == 2  # a mask of pixels has three dimensions
        return takes_size and len(boxes) == 3 and boxes[2] == 4 and len(scores) == 3

    def count_columns(self) -> int:
        return self.last_dimension(1, axis=1)

    def prepare(self, image: Pixels) -> tuple[dict[str, Array], Placement]:
        placed, placement = place_image(image, self.input_size(), keep_aspect=True, centred=True, fill=128)
        height, width = image.shape[:2]
        first, second = self.signature.inputs
        feeds = {
            first.name: channels_first(placed, bgr=False, std=255.0),
            second.name: np.array([[height, width]], np.float32),
        }
        return feeds, placement

    def decode(self, outputs: Sequence[Array], placement: Placement) -> Candidates:
        boxes = outputs[0][0][:, [1, 0, 3, 2]].astype(np.float64)  # y1, x1, y2, x2
        return Candidates(boxes, self.columns.select(outputs[1][0].T))


class YoloV5(Exported):
    """YOLOv5 (and v7 in the same layout): [1, N, 5 + C] with centre, size, objectness and class scores.

    Exports to TensorFlow have channels last, and boxes in 0..1.
    """

    name = "yolov5"
    labels = "best"
    nms_iou = 0.45

    @classmethod
    def matches(cls, signature: Signature) -> bool:
        """Return whether the only output is [1, N, 5 + C] with three anchors for each cell."""
        shape = only_output(signature)
        if shape is None or shape[1] is None or shape[2] is None or shape[1] % ANCHORS:
            return False
        return has_cells(signature, shape[1] // ANCHORS) and shape[2] > 5

    def count_columns(self) -> int:
        columns = self.signature.shape(0)[2]
        return self.checked_columns(None if columns is None else columns - 5)

    def decode(self, outputs: Sequence[Array], placement: Placement) -> Candidates:
        rows = outputs[0][0]
        check_scores(rows[:, 4:], self.name)
        boxes = placement.boxes_to_image(self.corners(rows[:, :4]))
        return Candidates(boxes, rows[:, 4:5] * rows[:, 5 : 5 + len(self.classes)])


class YoloX(Family):
    """YOLOX: [1, N, 5 + C], offsets and log sizes in strides of 8, 16 and 32, or decoded by the graph to pixels."""

    name = "yolox"
    labels = "best"
    nms_iou = 0.65
    placing: ClassVar = {"keep_aspect": True, "fill": 114, "round_down": True}
    pixels: ClassVar = {"bgr": True}

    @classmethod
    def matches(cls, signature: Signature) -> bool:
        """Return whether the only output is [1, N, 5 + C] with one row per cell, not exported by Ultralytics."""
        shape, size = only_output(signature), signature.image_size()
        if shape is None or size is None or signature.metadata.task is not None:
            return False
        return shape[1] == count_cells(size, STRIDES) and (shape[2] or 0) > 5

    def count_columns(self) -> int:
        columns = self.signature.shape(0)[2]
        return self.last_dimension(0) - 5 if columns is None else columns - 5

    def decode(self, outputs: Sequence[Array], placement: Placement) -> Candidates:
        rows = outputs[0][0]
        check_scores(rows[:, 4:], self.name)
        cells, strides = grid(self.input_size(), STRIDES)
        if self._is_decoded(rows, cells, strides):
            centres, sizes = rows[:, :2].astype(np.float64), rows[:, 2:4].astype(np.float64)
        else:
            centres = (rows[:, :2] + cells) * strides[:, None]
            # exp(20) is wider than any image; larger values would overflow
            sizes = np.exp(np.minimum(rows[:, 2:4].astype(np.float64), 20.0)) * strides[:, None]
        boxes = placement.boxes_to_image(corners_of_centres(np.concatenate([centres, sizes], axis=1)))
        return Candidates(boxes, self.columns.select(rows[:, 4:5] * rows[:, 5:]))

    def _is_decoded(self, rows: Array, cells: Array, strides: Array) -> bool:
        """Return whether the graph decodes its boxes: centres are then near their cells, not near 0."""
        from_cell = np.median(np.abs(rows[:, :2] / strides[:, None] - cells))
        from_zero = np.median(np.abs(rows[:, :2]))
        if not from_cell < from_zero:
            return False
        if (rows[:, 4] == 1.0).all():
            raise InputError(
                f"{self.signature.describe()} looks like YOLOv6, whose objectness is always 1, not like YOLOX",
                remedy="export a supported family",
            )
        if (rows[:, 2:4] < 0).any():
            raise InputError(
                f"boxes of {self.signature.describe()} have zero size", remedy="name another family ({option:family})"
            )
        return True
