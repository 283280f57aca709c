"""NanoDet, whose edges are distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.detect.families.base import Candidates, Family, Signature, channels_first, grid
from probox.detect.images import Pixels, Placement, place_image
from probox.fusion.edges import edge_corners, edge_moments

__all__ = ["NanoDet"]

Array = npt.NDArray[Any]


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
