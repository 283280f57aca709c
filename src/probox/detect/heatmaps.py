"""Heatmaps that are 0 but in a window: they act as arrays of the image's size, and take the room of the window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.tables.lazy_arrays import LazyArray

__all__ = ["WindowHeatmap", "pack_heatmaps", "unpack_heatmaps"]

COLUMNS = ("windows", "heat")
"""What packed heatmaps are called."""


class WindowHeatmap(LazyArray):
    """An H x W array that is 0 outside a window, made when it is used, and not kept.

    >>> heatmap = WindowHeatmap((2, 4), (1, 1), np.array([[0.5, 1.0]], np.float16))
    >>> np.asarray(heatmap).tolist(), heatmap.shape
    ([[0.0, 0.0, 0.0, 0.0], [0.0, 0.5, 1.0, 0.0]], (2, 4))
    """

    def __init__(self, shape: tuple[int, int], corner: tuple[int, int], window: npt.NDArray[np.float16]) -> None:
        self.shape, self.corner, self.window = shape, corner, window
        self.dtype = window.dtype
        self.size = shape[0] * shape[1]
        self.nbytes = self.size * self.dtype.itemsize

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        values = np.zeros(self.shape, self.dtype if dtype is None else dtype)
        top, left = self.corner
        values[top : top + self.window.shape[0], left : left + self.window.shape[1]] = self.window
        return values

    def __repr__(self) -> str:
        high, wide = self.window.shape
        return f"WindowHeatmap({self.shape[0]} x {self.shape[1]} {self.dtype}, {high} x {wide} at {self.corner})"

    def min(self) -> Any:
        """Return the smallest value."""
        return self.window.min() if self.window.shape == self.shape else min(self.dtype.type(0), self.window.min())

    def max(self) -> Any:
        """Return the largest value."""
        return self.window.max()


def pack_heatmaps(heatmaps: Sequence[Any] | None) -> dict[str, npt.NDArray[Any]]:
    """Return the windows of one image's heatmaps as columns for `unpack_heatmaps`; none for no heatmaps."""
    if heatmaps is None:
        return {}
    windows = [(*heatmap.corner, *heatmap.window.shape) for heatmap in heatmaps]
    heat = [heatmap.window.ravel() for heatmap in heatmaps]
    return {
        "windows": np.array(windows, np.int64).reshape(-1, 4),
        "heat": np.concatenate(heat) if heat else np.zeros(0, np.float16),
    }


def unpack_heatmaps(columns: Mapping[str, npt.NDArray[Any]], size: tuple[int, int]) -> list[WindowHeatmap]:
    """Return the heatmaps of an image of `size` (width, height) from their columns; raise ValueError if they differ."""
    windows, heat = columns["windows"], columns["heat"]
    corners, extents, limit = windows[:, :2], windows[:, 2:], np.array(size[::-1])
    if not ((corners >= 0) & (extents > 0) & (corners <= limit) & (extents <= limit - corners)).all():
        raise ValueError("a window of a heatmap lies outside the image")
    if int(extents.prod(axis=1).sum()) != len(heat) or not ((heat >= 0) & (heat <= 1)).all():
        raise ValueError("the numbers of a heatmap are not those of its window")
    found, start = [], 0
    for top, left, high, wide in columns["windows"].tolist():
        window = columns["heat"][start : start + high * wide].reshape(high, wide)
        found.append(WindowHeatmap((size[1], size[0]), (top, left), window))
        start += high * wide
    return found
