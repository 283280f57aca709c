"""Cells of a network's input at several strides: which strides make so many candidates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from probox.detect.families.base import grid

__all__ = ["centres", "count_cells", "strides_of"]

Floats = npt.NDArray[np.float64]

LEVELS: tuple[tuple[int, ...], ...] = (
    (8, 16, 32),
    (8, 16, 32, 64),
    (4, 8, 16, 32),
    (4, 8, 16, 32, 64),
    (16, 32),
    (8, 16),
    (8, 16, 32, 64, 128),
)
"""Strides that heads are built with: the usual, P6, P2, both, and fewer or more levels."""


def count_cells(size: tuple[int, int], strides: Sequence[int]) -> int:
    """Return how many cells an input of `size` (width, height) has.

    >>> count_cells((640, 640), (8, 16, 32))
    8400
    """
    return sum(-(-size[0] // stride) * -(-size[1] // stride) for stride in strides)


def strides_of(size: tuple[int, int] | None, cells: int | None, largest: int | None = None) -> tuple[int, ...] | None:
    """Return the strides whose cells are so many; None if there are none, or several.

    `largest` is the largest stride, where an export says it.

    >>> strides_of((640, 640), 8400), strides_of((1280, 1280), 34000), strides_of((640, 640), 25200)
    ((8, 16, 32), (8, 16, 32, 64), None)
    """
    if size is None or cells is None:
        return None
    fitting = [levels for levels in LEVELS if count_cells(size, levels) == cells]
    if len(fitting) > 1:
        fitting = [levels for levels in fitting if levels[-1] == largest]
    return fitting[0] if len(fitting) == 1 else None


@lru_cache(maxsize=8)
def centres(size: tuple[int, int], strides: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Return the middle of every cell in pixels of the input, and each cell's stride."""
    cells, scale = grid(size, strides)
    return (cells + 0.5) * scale[:, None], scale
