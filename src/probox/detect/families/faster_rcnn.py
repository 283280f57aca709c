"""The ONNX model zoo's Faster R-CNN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.detect.families.base import Candidates, Family, Given, Signature, channels_first, fitted_size
from probox.detect.families.suppressed import normalises, one_label_each
from probox.detect.graph import Graph
from probox.detect.images import Pixels, Placement, place_image

__all__ = ["FasterRCNN"]

Array = npt.NDArray[Any]


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

    def __init__(self, given: Given) -> None:
        self._given = None if given.classes is None else len(given.classes)
        super().__init__(given)

    @classmethod
    def matches(cls, signature: Signature) -> bool:
        """Outputs boxes [n, 4], labels [n] and scores [n]."""
        shapes = [output.shape for output in signature.outputs]
        ranks = [len(shape) for shape in shapes]
        return ranks[:3] == [2, 1, 1] and shapes[0][1] == 4 and len(signature.inputs) == 1

    @classmethod
    def recognises(cls, signature: Signature, graph: Graph | None) -> bool:
        """Such a graph that does not begin by subtracting a mean: torchvision's do."""
        return cls.matches(signature) and not normalises(signature, graph)

    def count_columns(self) -> int:
        return self._given or self.classes_without_background

    def prepare(self, image: Pixels) -> tuple[dict[str, Array], Placement]:
        new = fitted_size(image)
        placed, placement = place_image(image, new, keep_aspect=False)
        pixels = channels_first(placed, bgr=True, mean=(102.9801, 115.9465, 122.7717))[0]
        padded = np.zeros((3, -(-new[1] // 32) * 32, -(-new[0] // 32) * 32), np.float32)
        padded[:, : new[1], : new[0]] = pixels
        feed = padded[None] if len(self.signature.inputs[0].shape) == 4 else padded
        return {self.signature.inputs[0].name: feed}, placement

    def decode(self, outputs: Sequence[Array], placement: Placement) -> Candidates:
        boxes = placement.boxes_to_image(outputs[0].reshape(-1, 4))
        labels = outputs[1].reshape(-1).astype(np.int64) - 1  # 0 is the background
        scores = outputs[2].reshape(-1)
        keep = (labels >= 0) & (labels < len(self.classes))
        return one_label_each(boxes[keep], labels[keep], scores[keep], len(self.classes))
