"""YOLO in older ONNX dialects: v3 as in the model zoo, v5, and YOLOX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.detect.families.base import Candidates, Family, Signature, channels_first, corners_of_centres, grid
from probox.detect.families.cells import count_cells
from probox.detect.families.exported import Exported, check_scores, only_output
from probox.detect.families.yolov8 import has_cells
from probox.detect.images import Pixels, Placement, place_image
from probox.errors import InputError

__all__ = ["YoloV3", "YoloV5", "YoloX"]

Array = npt.NDArray[Any]

STRIDES = (8, 16, 32)
ANCHORS = 3
"""Boxes of YOLOv5 for each cell."""


class YoloV3(Family):
    """The ONNX model zoo's YOLOv3: image and image shape in; boxes, scores and the indices it would keep out.

    The indices are left aside: boxes and scores are everything before suppression, in pixels of the image.
    """

    name = "yolov3"
    nms_iou = 0.5
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


class YoloV5(Exported):
    """YOLOv5 (and v7 exported alike): [1, N, 5 + C] with centre, size, objectness and class scores.

    Exports to TensorFlow have channels last, and boxes in 0..1.
    """

    name = "yolov5"
    labels = "best"
    nms_iou = 0.45

    @classmethod
    def matches(cls, signature: Signature) -> bool:
        """One output [1, N, 5 + C] with three anchors for each cell."""
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

    @classmethod
    def matches(cls, signature: Signature) -> bool:
        """One output [1, N, 5 + C] with one row for each cell; exports of Ultralytics are none."""
        shape, size = only_output(signature), signature.image_size()
        if shape is None or size is None or signature.metadata.task is not None:
            return False
        return shape[1] == count_cells(size, STRIDES) and (shape[2] or 0) > 5

    def count_columns(self) -> int:
        columns = self.signature.shape(0)[2]
        return self.last_dimension(0) - 5 if columns is None else columns - 5

    def prepare(self, image: Pixels) -> tuple[dict[str, Array], Placement]:
        placed, placement = place_image(image, self.input_size(), keep_aspect=True, fill=114, round_down=True)
        return {self.signature.inputs[0].name: channels_first(placed, bgr=True)}, placement

    def decode(self, outputs: Sequence[Array], placement: Placement) -> Candidates:
        rows = outputs[0][0]
        check_scores(rows[:, 4:], self.name)
        cells, strides = grid(self.input_size(), STRIDES)
        if self._decoded(rows, cells, strides):
            centres, sizes = rows[:, :2].astype(np.float64), rows[:, 2:4].astype(np.float64)
        else:
            centres = (rows[:, :2] + cells) * strides[:, None]
            # A raw size of 20 is already wider than any image; more would overflow.
            sizes = np.exp(np.minimum(rows[:, 2:4].astype(np.float64), 20.0)) * strides[:, None]
        boxes = placement.boxes_to_image(corners_of_centres(np.concatenate([centres, sizes], axis=1)))
        return Candidates(boxes, self.columns.select(rows[:, 4:5] * rows[:, 5:]))

    def _decoded(self, rows: Array, cells: Array, strides: Array) -> bool:
        """Return whether the graph has decoded its boxes itself: centres lie at their cells, not near 0."""
        from_cell = np.median(np.abs(rows[:, :2] / strides[:, None] - cells))
        from_zero = np.median(np.abs(rows[:, :2]))
        if not from_cell < from_zero:
            return False
        if (rows[:, 4] == 1.0).all():
            raise InputError(
                f"{self.signature.describe()} looks like YOLOv6, whose objectness is always 1, not like YOLOX",
                remedy="export a family that is known",
            )
        if (rows[:, 2:4] < 0).any():
            raise InputError(f"the boxes of {self.signature.describe()} have no size", remedy="name another family")
        return True
