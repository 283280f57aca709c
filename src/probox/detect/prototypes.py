"""Masks of detectors that mix them from prototypes (YOLOv8-seg and its kin) as heatmaps of the image."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from probox.detect.heatmaps import WindowHeatmap
from probox.detect.images import Placement

__all__ = ["LEAST", "PrototypeMasks"]

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

LEAST = 2.0**-11
"""No pixel inside a box is surer than 1 - LEAST or less sure than LEAST: half precision would make it 1 otherwise, and
certainty, where it is wrong, costs PDQ everything."""


class PrototypeMasks:
    """Heatmaps ``sigmoid(coefficients @ prototypes)`` of candidates, worked out for the rows that are asked for.

    Between the prototypes' pixels logits are interpolated linearly, so that 0.5 is where Ultralytics' own masks end.
    Outside its box a heatmap is 0, as Ultralytics crops its masks: pixel i is inside if ``x1 <= i < x2``.

    Parameters
    ----------
    coefficients : (N, P)
        Of every candidate.
    prototypes : (P, h, w)
        They cover the whole input.
    size : (width, height)
        Of the network's input.
    placement : Placement
        Where the image lies on the input.
    """

    def __init__(self, coefficients: Array, prototypes: Array, size: tuple[int, int], placement: Placement) -> None:
        if coefficients.ndim != 2 or prototypes.ndim != 3 or coefficients.shape[1] != len(prototypes):
            raise ValueError(f"coefficients {coefficients.shape} for prototypes {prototypes.shape}")
        self._coefficients, self._prototypes = coefficients, prototypes
        self._size, self._placement = size, placement

    def __len__(self) -> int:
        return len(self._coefficients)

    def __getitem__(self, rows: Any) -> PrototypeMasks:
        return PrototypeMasks(self._coefficients[rows], self._prototypes, self._size, self._placement)

    def __call__(self, rows: npt.NDArray[Any], boxes: Floats) -> list[WindowHeatmap]:
        """Return the heatmaps of rows whose boxes lie like this in the image."""
        return [self._heatmap(int(row), box) for row, box in zip(rows, boxes, strict=True)]

    def _heatmap(self, row: int, box: Floats) -> WindowHeatmap:
        width, height = self._placement.image_size
        left, right = _pixels_between(box[0], box[2], width)
        top, bottom = _pixels_between(box[1], box[3], height)
        x0, x1, x = self._between(np.arange(left, right), 0)
        y0, y1, y = self._between(np.arange(top, bottom), 1)
        window = self._prototypes[:, y0[0] : y1[-1] + 1, x0[0] : x1[-1] + 1]
        logits = np.tensordot(self._coefficients[row].astype(np.float64), window.astype(np.float64), axes=1)
        rows = logits[y0 - y0[0]] * (1.0 - y)[:, None] + logits[y1 - y0[0]] * y[:, None]
        values = rows[:, x0 - x0[0]] * (1.0 - x) + rows[:, x1 - x0[0]] * x
        heat = np.clip(1.0 / (1.0 + np.exp(-np.clip(values, -60.0, 60.0))), LEAST, 1.0 - LEAST)
        return WindowHeatmap((height, width), (top, left), heat.astype(np.float16))

    def _between(self, pixels: npt.NDArray[np.int64], axis: int) -> tuple[Array, Array, Floats]:
        """Return for pixels of the image the prototype pixels before and after, and how far from the first to it."""
        count = self._prototypes.shape[2 - axis]
        on_input = (pixels + 0.5) * self._placement.scale[axis] + self._placement.offset[axis]
        at = np.clip(on_input * (count / self._size[axis]) - 0.5, 0.0, count - 1.0)
        before = np.floor(at).astype(np.int64)
        return before, np.minimum(before + 1, count - 1), at - before


def _pixels_between(low: float, high: float, count: int) -> tuple[int, int]:
    """Return the first pixel inside and the one after the last; at least one of the image's."""
    first = int(np.clip(np.ceil(low), 0, count - 1))
    return first, int(np.clip(np.ceil(high), first + 1, count))
