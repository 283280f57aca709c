"""Which cells of the detector's grid learn what."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from probox_experiments.training.scenes import SIDE, Scenes

__all__ = ["Targets", "make_targets"]

NEAR, FAR = 6.0, 10.0
"""A cell speaks for an object whose centre is at most `NEAR` pixels away along x and y, and for nothing if every centre
is more than `FAR` away; between, nothing is asked of it."""

NOTHING, UNASKED = -1, -2


class Targets(NamedTuple):
    """What the cells of some images have to say.

    `owner` (images, cells) is the row of the object that a cell speaks for, `NOTHING` or `UNASKED`; `begin`
    (images + 1,) is where each image's objects begin.
    """

    owner: npt.NDArray[np.int64]
    begin: npt.NDArray[np.int64]


def make_targets(scenes: Scenes, stride: int) -> Targets:
    """Return what the cells of these images have to say; the centre of an object is that of its true box."""
    along = (np.arange(SIDE // stride) + 0.5) * stride
    y, x = (axis.ravel() for axis in np.meshgrid(along, along, indexing="ij"))
    centres = (scenes.boxes[:, :2] + scenes.boxes[:, 2:] + 1.0) / 2
    distance = np.maximum(np.abs(x - centres[:, :1]), np.abs(y - centres[:, 1:]))
    owner = np.full((scenes.count, len(x)), NOTHING)
    for limit, value in ((FAR, np.full(len(scenes), UNASKED)), (NEAR, np.arange(len(scenes)))):
        row, cell = np.nonzero(distance <= limit)
        owner[scenes.image_rows[row], cell] = value[row]
    begin = np.searchsorted(scenes.image_rows, np.arange(scenes.count + 1))
    return Targets(owner, begin)
