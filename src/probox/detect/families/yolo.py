"""YOLO in its ONNX dialects: v3 as in the model zoo, v5, v8, and YOLOX with raw outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.detect.families.base import Candidates, Family, Signature, channels_first, corners_of_centres, grid
from probox.detect.images import Pixels, Placement, place_image

__all__ = ["YoloV3", "YoloV5", "YoloV8", "YoloX"]

Array = npt.NDArray[Any]

STRIDES = (8, 16, 32)


def _single_output(signature: Signature) -> tuple[int | None, ...] | None:
    """Return the shape of the only output of a graph with one image input, if it has three dimensions."""
    one = len(signature.inputs) == 1 and len(signature.outputs) == 1
    fits = one and len(signature.outputs[0].shape) == 3 and len(signature.inputs[0].shape) == 4
    return signature.outputs[0].shape if fits else None


def _cells(signature: Signature) -> int | None:
    if len(signature.inputs[0].shape) != 4:
        return None
    high, wide = signature.inputs[0].shape[-2:]
    return None if high is None or wide is None else len(grid((wide, high), STRIDES)[0])


class YoloV3(Family):
    """The ONNX model zoo's YOLOv3: image and image shape in; boxes, scores and the indices it would keep out.

    The indices are left aside: boxes and scores are everything before suppression, in pixels of the image.
    """

    name = "yolov3"
    batches = False
    default_size = (416, 416)

    @classmethod
    def matches(cls, signature: Signature) -> bool:
        """Two inputs, and outputs [1, N, 4], [1, C, N] and indices of three columns."""
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


class YoloV5(Family):
    """YOLOv5 (and v6, v7 exported alike): [1, N, 5 + C] with centre, size, objectness and class scores."""

    name = "yolov5"
    labels = "best"

    @classmethod
    def matches(cls, signature: Signature) -> bool:
        """One output [1, N, 5 + C] with three anchors for each cell."""
        shape, cells = _single_output(signature), _cells(signature)
        if shape is None or shape[1] is None or shape[2] is None or cells is None:
            return False
        return shape[1] == 3 * cells and shape[2] > 5

    def count_columns(self) -> int:
        return self.last_dimension(0) - 5

    def prepare(self, image: Pixels) -> tuple[dict[str, Array], Placement]:
        placed, placement = place_image(image, self.input_size(), keep_aspect=True, centred=True, fill=114)
        return {self.signature.inputs[0].name: channels_first(placed, bgr=False, std=255.0)}, placement

    def decode(self, outputs: Sequence[Array], placement: Placement) -> Candidates:
        rows = outputs[0][0]
        boxes = placement.boxes_to_image(corners_of_centres(rows[:, :4]))
        return Candidates(boxes, self.columns.select(rows[:, 4:5] * rows[:, 5:]))


class YoloV8(Family):
    """YOLOv8 (and those exported alike): [1, 4 + C, N] with centre, size and class scores."""

    name = "yolov8"
    labels = "best"

    @classmethod
    def matches(cls, signature: Signature) -> bool:
        """One output [1, 4 + C, N] with more candidates than rows."""
        shape = _single_output(signature)
        if shape is None or shape[1] is None or shape[1] <= 4:
            return False
        cells = _cells(signature)
        return shape[2] == cells if cells is not None and shape[2] is not None else (shape[2] or 0) > shape[1]

    def count_columns(self) -> int:
        return self.last_dimension(0, axis=1) - 4

    def prepare(self, image: Pixels) -> tuple[dict[str, Array], Placement]:
        placed, placement = place_image(image, self.input_size(), keep_aspect=True, centred=True, fill=114)
        return {self.signature.inputs[0].name: channels_first(placed, bgr=False, std=255.0)}, placement

    def decode(self, outputs: Sequence[Array], placement: Placement) -> Candidates:
        rows = outputs[0][0].T
        boxes = placement.boxes_to_image(corners_of_centres(rows[:, :4]))
        return Candidates(boxes, self.columns.select(rows[:, 4:]))


class YoloX(Family):
    """YOLOX without decoding in the graph: [1, N, 5 + C], offsets and log sizes in strides of 8, 16 and 32."""

    name = "yolox"
    labels = "best"
    nms_iou = 0.65

    @classmethod
    def matches(cls, signature: Signature) -> bool:
        """One output [1, N, 5 + C] with one row for each cell."""
        shape, cells = _single_output(signature), _cells(signature)
        return shape is not None and shape[1] is not None and shape[1] == cells and (shape[2] or 0) > 5

    def count_columns(self) -> int:
        return self.last_dimension(0) - 5

    def prepare(self, image: Pixels) -> tuple[dict[str, Array], Placement]:
        placed, placement = place_image(image, self.input_size(), keep_aspect=True, fill=114, round_down=True)
        return {self.signature.inputs[0].name: channels_first(placed, bgr=True)}, placement

    def decode(self, outputs: Sequence[Array], placement: Placement) -> Candidates:
        rows = outputs[0][0]
        cells, strides = grid(self.input_size(), STRIDES)
        centres = (rows[:, :2] + cells) * strides[:, None]
        # A raw size of 20 is already wider than any image; more would overflow.
        sizes = np.exp(np.minimum(rows[:, 2:4].astype(np.float64), 20.0)) * strides[:, None]
        boxes = placement.boxes_to_image(corners_of_centres(np.concatenate([centres, sizes], axis=1)))
        return Candidates(boxes, self.columns.select(rows[:, 4:5] * rows[:, 5:]))
