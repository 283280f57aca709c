"""Heatmaps that are expanded on use: windows of an image, and masks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from probox.support.types import Array
from probox.tables.masks import Masks
from probox.tables.table import LazyArray

if TYPE_CHECKING:
    from probox.tables.detections import Detections

LEAST = 2.0**-11
"""Probabilities of predicted masks are from LEAST to 1 - LEAST inside their box: a wrong probability of exactly 1 makes
the pair's quality nearly 0."""


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


def to_bytes(heatmap: Any) -> npt.NDArray[np.uint8]:
    """Return probabilities in units of 1/255.

    Those below `LEAST` become 0. Others become neither 0 nor 1 unless they are, because PDQ depends on the logarithms
    of P and 1 - P.

    >>> to_bytes(np.array([[0.0, 0.0001, 0.001, 0.5, 0.999, 1.0]])).tolist()
    [[0, 0, 1, 128, 254, 255]]
    """
    values = np.asarray(heatmap)
    if values.dtype == np.uint8:
        return values
    rounded = np.clip(np.rint(values * 255.0), values >= LEAST, np.where(values < 1.0, 254, 255))
    return rounded.astype(np.uint8)


def crop(values: npt.NDArray[Any]) -> tuple[tuple[int, int], npt.NDArray[Any]]:
    """Return the row and column of the smallest block with all values above 0, and the block.

    >>> crop(np.array([[0, 0, 0], [0, 7, 0]]))
    ((1, 1), array([[7]]))
    """
    rows, columns = np.flatnonzero(values.any(axis=1)), np.flatnonzero(values.any(axis=0))
    if not len(rows):
        return (0, 0), values[:0, :0]
    top, left = int(rows[0]), int(columns[0])
    return (top, left), values[top : int(rows[-1]) + 1, left : int(columns[-1]) + 1]


class MaskHeatmap(LazyArray):
    """A mask as a uint8 heatmap: 255 inside, which stands for probability 1, and 0 outside.

    >>> heatmap = MaskHeatmap(Masks.from_boxes(np.array([[1, 0, 2, 0]])), 0, (2, 4))
    >>> np.asarray(heatmap).tolist()
    [[0, 255, 255, 0], [0, 0, 0, 0]]
    """

    dtype = np.dtype(np.uint8)

    def __init__(self, masks: Masks, row: int, shape: tuple[int, int]) -> None:
        self.masks, self.row, self.shape = masks, row, shape
        self.size = self.nbytes = shape[0] * shape[1]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        values = np.zeros(self.shape, self.dtype if dtype is None else dtype)
        left, top, inside = self.masks.in_box(self.row)
        values[top : top + inside.shape[0], left : left + inside.shape[1]][inside] = 255
        return values


def pixel_maps(found: Detections, shapes: npt.NDArray[np.int32]) -> Sequence[npt.NDArray[np.generic] | None]:
    """Return the heatmap of each detection, or that of its mask; empty if no detection has any.

    `shapes` are width and height of each detection's image.
    """
    if found.masks is None or found.has_mask is None:
        return found.heatmaps or ()
    found.check_masks(shapes)
    maps: list[Any] = [*(found.heatmaps or [None] * len(found))]
    for row in np.flatnonzero(found.has_mask & ~found.has_heatmap).tolist():
        width, height = shapes[row].tolist()
        maps[row] = MaskHeatmap(found.masks, row, (height, width))
    return maps


def crop_heatmap(heatmap: npt.NDArray[np.generic]) -> WindowHeatmap:
    """Return an H x W array of uint8, or of floats from 0 to 1, as an 8-bit heatmap without its zeros around.

    >>> crop_heatmap(np.array([[0.0, 0.0], [0.0, 0.8]]))
    WindowHeatmap(2 x 2 uint8, 1 x 1 at (1, 1))
    """
    values, (top, left) = window_of(heatmap)
    (y, x), window = crop(to_bytes(values))
    return WindowHeatmap(heatmap.shape, (top + y, left + x), window.copy())  # a view would keep the whole array


def threshold_heatmaps(heatmaps: Sequence[npt.NDArray[np.generic]], threshold: float = 0.5) -> Masks:
    """Return the masks of pixels with a probability above a threshold.

    >>> threshold_heatmaps([np.array([[127, 128]], np.uint8), np.array([[0.5, 0.6]])]).boxes.tolist()
    [[1, 0, 1, 0], [1, 0, 1, 0]]
    """
    masks = []
    for heatmap in heatmaps:  # one at a time: files may hold gigabytes of them
        values, (top, left) = window_of(heatmap)
        flags = values > (255.0 * threshold if values.dtype == np.uint8 else threshold)
        masks.append(Masks.from_arrays([flags], [(left, top)]))
    return Masks.concatenate(masks)


def window_of(heatmap: npt.NDArray[np.generic] | WindowHeatmap) -> tuple[Array, tuple[int, int]]:
    """Return the array that has all values above 0, and its row and column in the image."""
    if isinstance(heatmap, WindowHeatmap):
        return heatmap.window, heatmap.corner
    return np.asarray(heatmap), (0, 0)


def count_stored(heatmap: npt.NDArray[np.generic] | WindowHeatmap | None) -> int:
    """Return the number of values of a heatmap that are stored; files are not read."""
    return 0 if heatmap is None else int(getattr(heatmap, "window", heatmap).size)
