"""Photos for detectors: reading them, and placing them on a network's input."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.files.photos import load_photo
from probox.support.optional import require

__all__ = ["Placement", "place_image", "read_image"]

Pixels = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]


def read_image(path: str | Path, size: tuple[int, int] | None = None) -> Pixels:
    """Return an image as (H, W, 3) RGB, as people see it; raise `InputError` if it can't be read.

    Parameters
    ----------
    path : path
        The photo.
    size : (width, height), optional
        What ground truth says. A photo that its camera marked to be turned (EXIF) is turned upright, unless this fits
        the pixels as they are stored.
    """
    require("PIL.Image", extra="detect", purpose="reading photos needs")
    return load_photo(Path(path), size)


@dataclasses.dataclass(frozen=True)
class Placement:
    """Where an image lies on a network's input: ``input = image * scale + offset``, for x and y."""

    scale: tuple[float, float]
    offset: tuple[float, float]
    image_size: tuple[int, int]
    """Width and height of the image."""

    def boxes_to_image(self, boxes: npt.NDArray[np.floating[Any]]) -> Floats:
        """Return boxes ``x1, y1, x2, y2`` of the input as pixels of the image."""
        moved = boxes.astype(np.float64) - np.array(self.offset * 2)
        return np.asarray(moved / np.array(self.scale * 2))

    def covariances_to_image(self, covariances: Floats) -> Floats:
        """Return corner covariances (N, 2, 2, 2) of the input in square pixels of the image."""
        shrink = 1.0 / np.array(self.scale)
        return np.asarray(covariances * np.outer(shrink, shrink))


def place_image(
    image: Pixels,
    size: tuple[int, int],
    *,
    keep_aspect: bool,
    centred: bool = False,
    fill: int = 0,
    round_down: bool = False,
    from_origin: bool = False,
) -> tuple[Pixels, Placement]:
    """Return the image resized to an input of `size` (width, height), and where it lies there.

    With `keep_aspect` the image is scaled to fit and the rest filled with `fill`, on both sides or (not `centred`)
    right and below; otherwise it is stretched. `round_down` takes the whole part of the new size and ignores the rest
    in the scale, `from_origin` is for `resize`: each detector has to see pixels placed as in its training.
    """
    height, width = image.shape[:2]
    wide, high = size
    if not keep_aspect:
        stretched = resize(image, size, from_origin=from_origin)
        return stretched, Placement((wide / width, high / height), (0.0, 0.0), (width, height))
    ratio = min(wide / width, high / height)
    whole = int if round_down else round
    new = max(1, min(wide, whole(width * ratio))), max(1, min(high, whole(height * ratio)))
    left, top = ((wide - new[0]) // 2, (high - new[1]) // 2) if centred else (0, 0)
    canvas = np.full((high, wide, 3), fill, np.uint8)
    canvas[top : top + new[1], left : left + new[0]] = resize(image, new, from_origin=from_origin)
    scale = (ratio, ratio) if round_down else (new[0] / width, new[1] / height)
    return canvas, Placement(scale, (float(left), float(top)), (width, height))


def resize(image: Pixels, size: tuple[int, int], *, from_origin: bool = False) -> Pixels:
    """Return an image resized to (width, height) by bilinear interpolation between two neighbours, not averaging.

    Samples lie at pixel centres, ``(i + 1/2) n / N - 1/2``, as in OpenCV, or with `from_origin` at ``i n / N``, as in
    TensorFlow 1. Detectors were trained on one of them, and half a pixel costs accuracy.
    """
    height, width = image.shape[:2]
    if (width, height) == size:
        return image
    left, right, x = _neighbours(width, size[0], from_origin)
    above, below, y = _neighbours(height, size[1], from_origin)
    resized = np.empty((size[1], size[0], 3), np.uint8)
    for channel in range(3):  # planes of one number per pixel are several times as fast as pixels of three
        plane = np.ascontiguousarray(image[:, :, channel])
        rows = plane[above].astype(np.float32)
        rows += (plane[below] - rows) * y[:, None]
        values = rows.take(left, axis=1)
        values += (rows.take(right, axis=1) - values) * x
        resized[:, :, channel] = np.rint(values, out=values)
    return resized


def _neighbours(
    old: int, new: int, from_origin: bool
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Return for each new pixel the old ones before and after it, and how far it lies from the first to the second."""
    at = np.arange(new) * (old / new) if from_origin else (np.arange(new) + 0.5) * (old / new) - 0.5
    at = np.clip(at, 0.0, old - 1.0)
    before = np.floor(at).astype(np.int64)
    return before, np.minimum(before + 1, old - 1), (at - before).astype(np.float32)
