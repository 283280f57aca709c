"""Masks of one image's detections, from arrays of any framework."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from probox.errors import InputError
from probox.support.types import Array, Ints
from probox.tables.heatmaps import WindowHeatmap, crop_heatmap
from probox.tables.masks import Masks
from probox.tables.table import to_numpy

HALF = 0.5
"""Pixels above this belong to a binary mask that is stored as floats."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImageMasks:
    """One image's masks, one per detection: binary, or probabilities of pixels."""

    size: tuple[int, int]
    """Width and height of the image."""
    binary: Masks | None = None
    heatmaps: tuple[WindowHeatmap, ...] | None = None

    def __len__(self) -> int:
        return len(self.binary if self.heatmaps is None else self.heatmaps)  # type: ignore[arg-type]

    def take(self, rows: Ints) -> ImageMasks:
        """Return the masks of these rows."""
        if self.binary is not None:
            return dataclasses.replace(self, binary=self.binary.take(rows))
        return dataclasses.replace(self, heatmaps=tuple((self.heatmaps or ())[row] for row in rows.tolist()))


def mask_arrays(given: Any, rows: int) -> Array:
    """Return masks of shape (n, H, W) or (n, 1, H, W) as (n, H, W)."""
    # mmdet's types of masks have this method.
    arrays = given.to_ndarray() if hasattr(given, "to_ndarray") else to_numpy(given, "masks")
    if arrays.ndim == 4 and arrays.shape[1] == 1:
        arrays = arrays[:, 0]
    if rows == 0 and arrays.size == 0:
        return arrays if arrays.ndim == 3 else np.zeros((0, 0, 0), bool)
    if arrays.ndim != 3 or len(arrays) != rows:
        got = " x ".join(map(str, arrays.shape))
        raise InputError(f"expected masks of shape {rows} x H x W, but got {got}", remedy="one mask for each box")
    return arrays


def as_flags(arrays: Array) -> Array:
    """Return arrays of True and False, or of 0 and 1, as booleans."""
    if arrays.dtype != bool and not np.isin(arrays, (0, 1)).all():
        raise InputError(
            "expected masks of True and False, or of 0 and 1", remedy="compare with a threshold or an id first"
        )
    return arrays.astype(bool)


def check_size(masks: tuple[int, int], size: Sequence[int] | None) -> None:
    """Raise if width and height of masks are not those of the image, whose `size` is height and width."""
    if size is not None and masks != (int(size[1]), int(size[0])):
        raise InputError(
            f"the image is {int(size[1])} x {int(size[0])}, but its masks are {masks[0]} x {masks[1]}",
            remedy="scale masks to the original image, as the post-processing of the framework does",
        )


def read_masks(given: Any, rows: int, *, size: Sequence[int] | None = None) -> ImageMasks | None:
    """Return the masks of one image's `rows` detections; floats are probabilities of pixels.

    Raise if they differ from the `size` of the image, its height and width.

    >>> read_masks(np.array([[[0.0, 0.25], [0.5, 1.0]]]), 1).heatmaps
    (WindowHeatmap(2 x 2 uint8, 2 x 2 at (0, 0)),)
    >>> read_masks(np.array([[[False, True], [True, True]]]), 1).binary
    Masks(1 masks, 3 pixels)
    """
    if given is None or rows == 0:
        return None
    arrays = mask_arrays(given, rows)
    height, width = arrays.shape[1:]
    check_size((width, height), size)
    if arrays.dtype.kind != "f":
        return ImageMasks(size=(width, height), binary=Masks.from_arrays(list(as_flags(arrays))))
    low, high = arrays.min(initial=0.0), arrays.max(initial=0.0)
    if not (low >= 0.0 and high <= 1.0):  # NaN fails both comparisons
        raise InputError(
            f"expected masks with probabilities from 0 to 1, but got {low:g} to {high:g}",
            remedy="apply a sigmoid to logits, or compare with a threshold",
        )
    return ImageMasks(size=(width, height), heatmaps=tuple(crop_heatmap(each) for each in arrays))
