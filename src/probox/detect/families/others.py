"""SSD, NanoDet and the model zoo's Faster R-CNN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.detect.families.base import Candidates, Family, Signature, channels_first, grid
from probox.detect.images import Pixels, Placement, place_image
from probox.errors import InputError
from probox.fusion.edges import edge_corners, edge_moments

__all__ = ["FasterRCNN", "NanoDet", "Ssd"]

Array = npt.NDArray[Any]


class Ssd(Family):
    """SSD with all its anchors: boxes [1, N, 4] (or [1, N, 1, 4]) in 0..1 and scores [1, N, C].

    As TensorFlow's postprocessor gives them: RGB 0..255 in, stretched to the input, channels last or first; boxes are
    y1, x1, y2, x2. A graph with channels first and no postprocessor in its names has x1, y1, x2, y2.
    """

    name = "ssd"
    default_size = (300, 300)

    def __init__(self, signature: Signature, classes: Sequence[str] | None = None) -> None:
        found = _boxes_and_scores(signature)
        if found is None:
            raise InputError(f"expected outputs boxes [1, N, 4] and scores [1, N, C], but got {signature.describe()}")
        self._boxes, self._scores = found
        self._channels_last = signature.inputs[0].shape[-1] == 3
        self._y_first = self._channels_last or "postprocessor" in signature.outputs[self._boxes].name.lower()
        super().__init__(signature, classes)

    @classmethod
    def matches(cls, signature: Signature) -> bool:
        """One image input, two outputs: boxes [1, N, 4] and scores [1, N, C]."""
        return len(signature.inputs) == 1 and _boxes_and_scores(signature) is not None

    def count_columns(self) -> int:
        return self.last_dimension(self._scores)

    def input_size(self) -> tuple[int, int]:
        if not self._channels_last:
            return super().input_size()
        _, high, wide, _ = self.signature.inputs[0].shape
        return wide or self.default_size[0], high or self.default_size[1]

    def prepare(self, image: Pixels) -> tuple[dict[str, Array], Placement]:
        placed, placement = place_image(image, self.input_size(), keep_aspect=False, from_origin=self._y_first)
        name, kind = self.signature.inputs[0].name, self.signature.inputs[0].type
        if not self._channels_last:
            return {name: channels_first(placed, bgr=False)}, placement
        return {name: placed[None].astype(np.uint8 if "uint8" in kind else np.float32)}, placement

    def decode(self, outputs: Sequence[Array], placement: Placement) -> Candidates:
        boxes = outputs[self._boxes].reshape(-1, 4).astype(np.float64)
        boxes = boxes[:, [1, 0, 3, 2]] if self._y_first else boxes
        width, height = placement.image_size
        scores = self.columns.select(outputs[self._scores].reshape(len(boxes), -1))
        return Candidates(boxes * np.array([width, height, width, height], np.float64), scores)


def _boxes_and_scores(signature: Signature) -> tuple[int, int] | None:
    """Return which output holds boxes and which scores."""
    if len(signature.outputs) != 2:
        return None
    shapes = [output.shape for output in signature.outputs]
    for boxes, scores in ((0, 1), (1, 0)):
        is_boxes = len(shapes[boxes]) in (3, 4) and shapes[boxes][-1] == 4
        is_boxes &= len(shapes[boxes]) == 3 or shapes[boxes][2] == 1
        if is_boxes and len(shapes[scores]) == 3 and shapes[scores][1] == shapes[boxes][1]:
            return boxes, scores
    return None


class NanoDet(Family):
    """NanoDet: for each stride a score map [1, n, C], then for each stride an edge map [1, n, 4 * bins].

    Its edges are distributions (generalised focal loss), so every candidate comes with corner variances.
    """

    name = "nanodet"
    has_edges = True
    strides = (8, 16, 32)
    default_size = (416, 416)

    @classmethod
    def matches(cls, signature: Signature) -> bool:
        """Score maps and edge maps in two halves, with the same number of cells."""
        count = len(signature.outputs)
        if count != 2 * len(cls.strides) or len(signature.inputs) != 1:
            return False
        shapes = [output.shape for output in signature.outputs]
        halves = zip(shapes[: count // 2], shapes[count // 2 :], strict=True)
        return all(
            len(scores) == 3 and len(edges) == 3 and scores[1] == edges[1] and (edges[2] or 1) % 4 == 0
            for scores, edges in halves
        )

    def count_columns(self) -> int:
        return self.last_dimension(0)

    def prepare(self, image: Pixels) -> tuple[dict[str, Array], Placement]:
        placed, placement = place_image(image, self.input_size(), keep_aspect=True, centred=True)
        pixels = channels_first(placed, bgr=True, mean=(103.53, 116.28, 123.675), std=(57.375, 57.12, 58.395))
        return {self.signature.inputs[0].name: pixels}, placement

    def decode(self, outputs: Sequence[Array], placement: Placement) -> Candidates:
        half = len(self.strides)
        scores = np.concatenate([part[0] for part in outputs[:half]])
        edges = np.concatenate([part[0] for part in outputs[half:]]).reshape(len(scores), 4, -1)
        edges = np.exp(edges - edges.max(axis=2, keepdims=True))
        edges /= edges.sum(axis=2, keepdims=True)
        cells, strides = grid(self.input_size(), self.strides)
        points = cells * strides[:, None] + (strides[:, None] - 1) / 2
        boxes, covariances = edge_corners(points, strides, *edge_moments(edges))
        return Candidates(
            placement.boxes_to_image(boxes),
            self.columns.select(scores),
            placement.covariances_to_image(covariances),
        )


class FasterRCNN(Family):
    """The ONNX model zoo's Faster R-CNN: image [3, H, W] in; boxes, labels and scores out, after suppression.

    The graph gives one label and one score for each box, so there is no full distribution to be had: the label gets
    its score and the other classes share the rest evenly, none of them more than the label.
    """

    name = "faster-rcnn"
    batches = False
    suppresses = True
    labels = "best"
    classes_without_background = 80

    def __init__(self, signature: Signature, classes: Sequence[str] | None = None) -> None:
        self._given = None if classes is None else len(classes)
        super().__init__(signature, classes)

    @classmethod
    def matches(cls, signature: Signature) -> bool:
        """Outputs boxes [n, 4], labels [n] and scores [n]."""
        shapes = [output.shape for output in signature.outputs]
        ranks = [len(shape) for shape in shapes]
        return ranks[:3] == [2, 1, 1] and shapes[0][1] == 4 and len(signature.inputs) == 1

    def count_columns(self) -> int:
        return self._given or self.classes_without_background

    def prepare(self, image: Pixels) -> tuple[dict[str, Array], Placement]:
        height, width = image.shape[:2]
        ratio = min(800.0 / min(height, width), 1333.0 / max(height, width))
        new = max(1, round(width * ratio)), max(1, round(height * ratio))
        placed, placement = place_image(image, new, keep_aspect=False)
        pixels = channels_first(placed, bgr=True, mean=(102.9801, 115.9465, 122.7717))[0]
        padded = np.zeros((3, -(-new[1] // 32) * 32, -(-new[0] // 32) * 32), np.float32)
        padded[:, : new[1], : new[0]] = pixels
        feed = padded[None] if len(self.signature.inputs[0].shape) == 4 else padded
        return {self.signature.inputs[0].name: feed}, placement

    def decode(self, outputs: Sequence[Array], placement: Placement) -> Candidates:
        boxes = placement.boxes_to_image(outputs[0].reshape(-1, 4))
        labels = outputs[1].reshape(-1).astype(np.int64) - 1  # 0 is the background
        scores = outputs[2].reshape(-1).astype(np.float64)
        count = len(self.classes)
        keep = (labels >= 0) & (labels < count)
        labels, scores = labels[keep], scores[keep]
        share = np.minimum((1.0 - scores) / max(count - 1, 1), scores)
        probs = np.repeat(share[:, None], count, axis=1)
        probs[np.arange(len(labels)), labels] = scores
        return Candidates(boxes[keep], probs.astype(np.float32), labels=labels)
