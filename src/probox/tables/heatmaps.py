"""Heatmaps that are stored without their zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from probox.support.types import Array
from probox.tables.table import LazyArray


class WindowHeatmap(LazyArray):
    """An H x W array that is 0 outside a window; the full array is created on use and not cached.

    >>> heatmap = WindowHeatmap((2, 4), (1, 1), np.array([[0.5, 1.0]], np.float16))
    >>> np.asarray(heatmap).tolist(), heatmap.shape
    ([[0.0, 0.0, 0.0, 0.0], [0.0, 0.5, 1.0, 0.0]], (2, 4))
    """

    def __init__(self, shape: tuple[int, int], corner: tuple[int, int], window: npt.NDArray[np.generic]) -> None:
        self.shape, self.corner, self.window = shape, corner, window
        self.dtype = window.dtype
        self.size = shape[0] * shape[1]
        self.nbytes = self.size * self.dtype.itemsize

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        values = np.zeros(self.shape, self.dtype if dtype is None else dtype)
        top, left = self.corner
        values[top : top + self.window.shape[0], left : left + self.window.shape[1]] = self.window
        return values

    def __repr__(self) -> str:
        high, wide = self.window.shape
        return f"WindowHeatmap({self.shape[0]} x {self.shape[1]} {self.dtype}, {high} x {wide} at {self.corner})"

    def min(self) -> Any:
        """Return the smallest value."""
        whole = self.window.shape == self.shape
        return self.window.min() if whole else min(self.dtype.type(0), self.window.min(initial=0))

    def max(self) -> Any:
        """Return the largest value."""
        return self.window.max() if self.window.size else self.dtype.type(0)
