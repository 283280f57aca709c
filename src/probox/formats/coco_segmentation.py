"""Segmentations of COCO files, of ground truth and results: polygons and run lengths as masks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.errors import InputError
from probox.formats.problems import Problems
from probox.tables.dataset import MAX_SIDE
from probox.tables.masks import Masks
from probox.tables.table import rows_where_all

_MAX_MASK_NUMBERS = 1 << 23
"""Limit on the coordinates and run lengths of one mask. All masks of a file may have as many more as it has bytes:
COCO's compressed run lengths take about a byte each."""

_MAX_MASK_CROSSINGS = 1 << 23
"""Limit on the crossings of an object's edges with pixel columns."""

Ids = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Place = Callable[[int, str], dict[str, Any]]
"""Returns file, image and entry of a field of an entry's segmentation, for messages."""


class MaskLimits(TypedDict):
    """Limits of masks for the C++ readers."""

    max_side: int
    max_mask_numbers: int
    max_numbers: int


def mask_limits(data: bytes) -> MaskLimits:
    """Return the limits of masks for a file with this content."""
    return {
        "max_side": MAX_SIDE,
        "max_mask_numbers": _MAX_MASK_NUMBERS,
        "max_numbers": _MAX_MASK_NUMBERS + len(data),
    }


def fitting_run_lengths(
    given: _core._Segmentations, shapes: npt.NDArray[np.int32], usable: Flags, place: Place, problems: Problems
) -> Flags:
    """Return which segmentations are not run lengths of another size than their image, height and width."""
    sizes = given["rle_sizes"]
    wrong: Flags = usable & (given["kinds"] == _core.RUN_LENGTHS) & ~rows_where_all(sizes == shapes)
    problems.add("mask size", np.flatnonzero(wrong).tolist(), lambda at: InputError(
        f"expected run lengths of size {shapes[at].tolist()}, the image's height and width, "
        f"but got {sizes[at].tolist()}",
        **place(at, ".segmentation.size"), remedy="correct the size of the image or of the mask",
    ))  # fmt: skip
    return np.logical_not(wrong)


def rasterise(
    given: _core._Segmentations,
    order: Ids,
    shapes: npt.NDArray[np.int32],
    box_pixels: npt.NDArray[np.int32],
    place: Place,
    file_bytes: int,
) -> Masks:
    """Return the masks of the segmentations in this order; empty ones have 0 pixels.

    `box_pixels` are the masks of entries without segmentation.
    """
    rasterised = _core.rasterise(
        order=order,
        kinds=given["kinds"],
        piece_offsets=given["piece_offsets"],
        number_offsets=given["number_offsets"],
        numbers=given["numbers"],
        box_pixels=box_pixels,
        heights=np.ascontiguousarray(shapes[:, 0]),
        widths=np.ascontiguousarray(shapes[:, 1]),
        # A few bytes can describe a billion runs; masks of photos have about one run per four bytes.
        max_runs=(1 << 24) + file_bytes // 2,
        max_crossings=(1 << 27) + 32 * file_bytes,
        max_object_crossings=_MAX_MASK_CROSSINGS,
    )
    masks = Masks(*rasterised)
    if len(masks) < len(order):
        raise InputError(
            f"the masks up to this one need too much memory for a file of {file_bytes:,} bytes",
            **place(int(order[len(masks)]), ".segmentation"),
            remedy="check the size of the image and the mask, or split the file by images",
        )
    return masks
