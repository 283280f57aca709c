"""SSD with all its anchors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.detect.families.base import Candidates, Family, Given, Signature, channels_first
from probox.detect.families.detr import are_logits
from probox.detect.graph import Graph
from probox.detect.images import Pixels, Placement, place_image
from probox.errors import InputError

__all__ = ["Ssd"]

Array = npt.NDArray[Any]


class Ssd(Family):
    """SSD with all its anchors: boxes [1, N, 4] (or [1, N, 1, 4]) in 0..1 and scores [1, N, C].

    As TensorFlow's postprocessor gives them: RGB 0..255 in, stretched to the input, channels last or first; boxes are
    y1, x1, y2, x2. A graph with channels first and no postprocessor in its names has x1, y1, x2, y2.
    """

    name = "ssd"
    background = True
    default_size = (300, 300)

    def __init__(self, given: Given) -> None:
        signature = given.signature
        found = _boxes_and_scores(signature)
        if found is None:
            raise InputError(f"expected outputs boxes [1, N, 4] and scores [1, N, C], but got {signature.describe()}")
        self._boxes, self._scores = found
        self._y_first = signature.channels_last or "postprocessor" in signature.outputs[self._boxes].name.lower()
        super().__init__(given)

    @classmethod
    def matches(cls, signature: Signature) -> bool:
        """One image input, two outputs: boxes [1, N, 4] and scores [1, N, C]."""
        one = len(signature.inputs) == 1 and len(signature.inputs[0].shape) == 4
        return one and _boxes_and_scores(signature) is not None

    @classmethod
    def recognises(cls, signature: Signature, graph: Graph | None) -> bool:
        """Such outputs whose scores are no logits, as those of DETR and its kin are."""
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
        width, height = placement.image_size
        scores = self.columns.select(outputs[self._scores].reshape(len(boxes), -1))
        return Candidates(boxes * np.array([width, height, width, height], np.float64), scores)


def _boxes_and_scores(signature: Signature) -> tuple[int, int] | None:
    """Return which output holds boxes and which scores."""
    if len(signature.outputs) != 2:
        return None
    shapes = [signature.shape(number) for number in range(len(signature.outputs))]
    for boxes, scores in ((0, 1), (1, 0)):
        is_boxes = len(shapes[boxes]) in (3, 4) and shapes[boxes][-1] == 4
        is_boxes = is_boxes and (len(shapes[boxes]) == 3 or shapes[boxes][2] == 1)
        if is_boxes and len(shapes[scores]) == 3 and shapes[scores][1] == shapes[boxes][1]:
            return boxes, scores
    return None
