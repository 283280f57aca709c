"""Boxes ``x1, y1, x2, y2``, many at a time: how large they are, and which pixels they have."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from probox.tables.columns import rows_where_all

__all__ = ["extents_of", "pixels_of_boxes"]


def extents_of(boxes: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return width and height, (N, 2); corners that are no numbers give what they give, and are rejected elsewhere."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(boxes[:, 2:] - boxes[:, :2])


def pixels_of_boxes(boxes: npt.NDArray[np.float64], shapes: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return the pixels of boxes ``x1, y1, x2, y2`` in images of these widths and heights, as inclusive boxes.

    Pixels floor(x1)..ceil(x2) and floor(y1)..ceil(y2), as far as they lie in the image; a box that lies wholly
    outside has none, which is written ``0, 0, -1, -1``.
    """
    last = shapes.astype(np.float64) - 1.0
    low, high = np.floor(boxes[:, :2]), np.ceil(boxes[:, 2:])
    inside = rows_where_all((high >= 0) & (low <= last) & (low <= high))
    pixels = np.concatenate([np.clip(low, 0.0, last), np.clip(high, 0.0, last)], axis=1)
    return np.where(inside[:, None], pixels, [0.0, 0.0, -1.0, -1.0]).astype(np.int32)
