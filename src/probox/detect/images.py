"""Photos for detectors: finding them, naming them, reading them, and placing them on a network's input."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.files.photos import UNREADABLE
from probox.support.optional import require

__all__ = ["ImageFile", "Placement", "find_images", "place_image", "read_image"]

Pixels = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]

SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm"})


@dataclasses.dataclass(frozen=True)
class ImageFile:
    """An image to look at, and the id its detections get."""

    image_id: int
    path: Path


def find_images(folder: str | Path, truth: str | Path | None = None) -> list[ImageFile]:
    """Return the images of a folder in order of their ids.

    Ids are those of `truth` (a COCO annotation file; its images, found by file name) where it is given; otherwise the
    number that every file name is (``000000000139.jpg`` is 139), or, if one is no number, 0, 1, 2... in order of name.
    """
    root = Path(folder)
    if not root.is_dir():
        raise InputError("expected a folder of images", file=str(folder))
    found = sorted(path for path in root.iterdir() if path.suffix.lower() in SUFFIXES and path.is_file())
    if not found:
        raise InputError("no images in this folder", file=str(folder), remedy=f"expected {', '.join(sorted(SUFFIXES))}")
    if truth is not None:
        return _by_truth(found, Path(truth))
    numbers = [int(path.stem) if re.fullmatch(r"[0-9]{1,18}", path.stem) else None for path in found]
    if None in numbers or len(set(numbers)) < len(numbers):
        return [ImageFile(number, path) for number, path in enumerate(found)]
    return sorted((ImageFile(int(number or 0), path) for number, path in zip(numbers, found, strict=True)), key=_by_id)


def _by_id(image: ImageFile) -> int:
    return image.image_id


def _by_truth(found: list[Path], truth: Path) -> list[ImageFile]:
    by_name = {path.name: path for path in found}
    images: list[ImageFile] = []
    for entry in _coco_images(truth):
        name = Path(str(entry.get("file_name", ""))).name
        if name in by_name and isinstance(entry.get("id"), int):
            images.append(ImageFile(entry["id"], by_name[name]))
    if not images:
        raise InputError("none of its images is in the folder", file=str(truth), remedy="check the folder and the file")
    return sorted(images, key=_by_id)


def _coco_images(truth: Path) -> Iterator[dict[str, Any]]:
    try:
        content = json.loads(truth.read_bytes())
        entries = content["images"]
        yield from (entry for entry in entries if isinstance(entry, dict))
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"expected COCO annotations with a list of images ({error!r})", file=str(truth)) from None


def read_image(path: Path) -> Pixels:
    """Return an image as (H, W, 3) RGB; raise `InputError` if it can't be read.

    The orientation that a camera may note beside the pixels is not applied: annotations of COCO and its kin count
    stored pixels.
    """
    pillow = require("PIL.Image", extra="detect", purpose="reading photos needs")

    try:
        with pillow.open(path) as image:
            return np.asarray(image.convert("RGB"))
    except (pillow.UnidentifiedImageError, ImportError):
        raise InputError("not an image that can be read", file=str(path)) from None
    except (*UNREADABLE, pillow.DecompressionBombError) as error:
        raise InputError(f"can't read this image: {error}", file=str(path)) from None


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
    pixels = image.astype(np.float32)
    rows = pixels[above]
    rows += (pixels[below] - rows) * y[:, None, None]
    values = rows[:, left]
    values += (rows[:, right] - values) * x[None, :, None]
    return np.asarray(np.rint(values), np.uint8)


def _neighbours(
    old: int, new: int, from_origin: bool
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Return for each new pixel the old ones before and after it, and how far it lies from the first to the second."""
    at = np.arange(new) * (old / new) if from_origin else (np.arange(new) + 0.5) * (old / new) - 0.5
    at = np.clip(at, 0.0, old - 1.0)
    before = np.floor(at).astype(np.int64)
    return before, np.minimum(before + 1, old - 1), (at - before).astype(np.float32)
