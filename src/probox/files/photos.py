"""Photos of images: which file of a folder shows which image, and its pixels, the same for whoever asks."""

from __future__ import annotations

import dataclasses
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.files.image_size import name_content
from probox.files.reading import open_regular
from probox.support.optional import require

__all__ = [
    "ENDINGS",
    "EXTRACT_FRAMES",
    "OTHER_PICTURES",
    "UNREADABLE",
    "VIDEOS",
    "Photo",
    "find_photo",
    "is_photo_name",
    "load_photo",
    "orientation_of",
    "photo_size",
    "read_photo",
    "rgb_of",
    "to_8_bits",
    "turned",
    "turns",
]

UNREADABLE = (OSError, ValueError, SyntaxError, ImportError)
"""What Pillow raises for a damaged photo. The last is of ultralytics, which puts a function of its own in the place of
Pillow's `open`: for files that are no images it asks for one more package."""

ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".gif", ".ppm", ".pgm", ".avif")
VIDEOS = (".mp4", ".avi", ".mov", ".mkv", ".webm", ".m4v", ".mpg", ".mpeg", ".wmv")
OTHER_PICTURES = (".heic", ".heif", ".jxl")
"""Pictures that Pillow does not read."""
EXTRACT_FRAMES = "extract the frames first, for example: ffmpeg -i VIDEO frames/%06d.png"

_ORIENTATION = 0x0112
"""EXIF's tag."""
_ON_ITS_SIDE = range(5, 9)
"""EXIF's orientations of photos that are shown with width and height exchanged."""

_ALL_16_BITS = 65535
_NEARLY_BLACK = 16
"""What 12 bits come to that lie in 16, of 255."""
_FRAMES = frozenset({"GIF", "PNG", "TIFF", "WEBP"})
"""Formats whose files may hold one picture after another."""

Pixels = npt.NDArray[np.uint8]
Size = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class Photo:
    """The pixels of a photo, and what is to be said of how they were read."""

    pixels: Pixels
    """(H, W, 3), RGB."""
    remarks: tuple[str, ...] = ()
    """Any of ``turned``, ``as stored``, ``other size``, ``frames``, ``dark``."""


def is_photo_name(path: Path) -> bool:
    """Return whether a file is called as photos are."""
    return path.suffix.lower() in ENDINGS


def find_photo(folder: Path, image_id: int, file_name: str = "") -> Path | None:
    """Return the file of `folder` that shows an image, or None.

    Looked for by the truth's file name, with and without its folders, then by the image's number, plain or
    with leading zeros as COCO writes it; without a file name also by the number that a photo's name ends in.
    Names that lead out of the folder are not followed; a photo in it may be a link to a file elsewhere.
    """
    names = []
    if file_name:
        plain = file_name.replace("\\", "/")
        names += [plain, plain.rsplit("/", 1)[-1]]
    for stem in (str(image_id), f"{image_id:012d}", f"{image_id:06d}"):
        names += [stem + ending for ending in ENDINGS]
    if not file_name:
        names += _numbered(folder).get(image_id, [])
    base = folder.resolve()
    for name in names:
        path = folder / name
        try:
            if path.is_file() and _is_within(path.parent.resolve(), base):
                return path
        except (OSError, ValueError):  # a name that no file system would take
            continue
    return None


def _is_within(folder: Path, base: Path) -> bool:
    return folder == base or base in folder.parents


@lru_cache(maxsize=4)
def _numbered(folder: Path) -> dict[int, list[str]]:
    """Return the photos of a folder whose names end in a number that no other ends in, by that number."""
    by_number: dict[int, list[str]] = {}
    for path in folder.iterdir():
        digits = re.search(r"(\d{1,18})$", path.stem)
        if digits and is_photo_name(path):
            by_number.setdefault(int(digits[1]), []).append(path.name)
    return {number: names for number, names in by_number.items() if len(names) == 1}


def load_photo(path: Path, size: Size | None = None) -> Pixels:
    """Return a photo as an (H, W, 3) RGB array; see `read_photo`."""
    return read_photo(path, size).pixels


def read_photo(path: Path, size: Size | None = None) -> Photo:
    """Return a photo's pixels as people see them, whoever asks: detectors, pictures and pages.

    A photo that its camera marked as lying on its side or upside down (EXIF) is turned upright, unless the truth's
    `size` fits the stored pixels and not the turned ones. Grey photos of more than 8 bits are scaled, see `to_8_bits`.
    Transparency is dropped, of several frames the first is taken.

    Parameters
    ----------
    path : path
        The photo.
    size : (width, height), optional
        What the ground truth says.
    """
    pillow = require("PIL.Image", extra="report")
    try:
        with pillow.open(path) as image:
            remarks = []
            if image.format in _FRAMES and getattr(image, "n_frames", 1) > 1:
                remarks.append("frames")
            marked = orientation_of(image) != 1
            upright = turned(image, size)
            if marked:
                remarks.append("turned" if upright is not image or image.format == "TIFF" else "as stored")
            shown, dark = rgb_of(upright)
            if dark:
                remarks.append("dark")
            if size is not None and shown.size != size:
                remarks.append("other size")
            return Photo(np.asarray(shown), tuple(remarks))
    except (*UNREADABLE, pillow.DecompressionBombError) as error:
        with open_regular(path) as file:
            content = name_content(file.read(32))
        problem, remedy = f"cannot be read as an image ({error})", None
        if isinstance(error, pillow.UnidentifiedImageError | ImportError):
            problem = f"expected an image that Pillow reads, but got {content}"
            remedy = EXTRACT_FRAMES if content == "a video" else "save it as PNG or JPEG"
        raise InputError(problem, file=str(path), remedy=remedy) from None


def photo_size(path: Path) -> Size | None:
    """Return width and height of a photo as `load_photo` gives it, from its header; None if it can't be read."""
    pillow = require("PIL.Image", extra="report")
    try:
        with pillow.open(path) as image:
            width, height = image.size
            if image.format == "TIFF":  # whose size some releases of Pillow turn when it is opened, and others do not
                width, height = image.tag_v2[256], image.tag_v2[257]
            on_its_side = orientation_of(image) in _ON_ITS_SIDE
            return (int(height), int(width)) if on_its_side else (int(width), int(height))
    except (*UNREADABLE, pillow.DecompressionBombError):
        return None


def orientation_of(image: Any) -> int:
    """Return EXIF's orientation of a Pillow image: 1 for upright, also where it says nothing that can be."""
    found = image.getexif().get(_ORIENTATION, 1)
    return found if isinstance(found, int) and 1 < found <= 8 else 1


def turns(stored: Size, orientation: int, size: Size | None = None) -> bool:
    """Return whether a photo is to be turned as EXIF says.

    It is, unless the truth's size is upright where the stored pixels are and lies where the turned ones lie. A photo
    that is only upside down or mirrored has the same size either way and is always turned.

    >>> turns((640, 480), 6), turns((640, 480), 6, (480, 640)), turns((640, 480), 6, (640, 480))
    (True, True, False)
    """
    if orientation == 1:
        return False
    shown = stored[::-1] if orientation in _ON_ITS_SIDE else stored
    return size is None or _shape(shown) == _shape(size) or _shape(stored) != _shape(size)


def _shape(size: Size) -> int:
    """Return 1 for a size that lies, -1 for one that stands, 0 for a square."""
    return (size[0] > size[1]) - (size[0] < size[1])


def turned(image: Any, size: Size | None = None, *, longest: int | None = None) -> Any:
    """Return a Pillow image as people see it; `size` is the truth's, where it is known.

    With `longest` it may be smaller, but no side that was longer becomes shorter than this: JPEG files can be decoded
    so, much faster. Pillow turns TIFF files itself.
    """
    as_it_is = image.format == "TIFF" or not turns(image.size, orientation_of(image), size)
    if longest is not None:
        image.draft("RGB", (longest, longest))
    return image if as_it_is else require("PIL.ImageOps", extra="report").exif_transpose(image)


def rgb_of(image: Any) -> tuple[Any, bool]:
    """Return a Pillow image in RGB with 8 bits, and whether it has more bits and makes nearly no use of them."""
    mode = image.mode
    if mode == "F" or mode.startswith("I"):
        grey = to_8_bits(np.asarray(image))
        return require("PIL.Image", extra="report").fromarray(grey).convert("RGB"), int(grey.max()) <= _NEARLY_BLACK
    if mode in ("RGBa", "La") or (mode == "P" and "transparency" in image.info):
        image = image.convert("LA" if mode == "La" else "RGBA")
    return image.convert("RGB"), False


def to_8_bits(values: npt.NDArray[Any]) -> Pixels:
    """Return grey values of more than 8 bits in 0..255.

    Unsigned numbers of 16 bits are divided by 257, so that 65535 is white: the same for every photo, however dark.
    Other integers are taken for 0..255 or 0..65535, other numbers also for 0..1: the first of these ranges that holds
    the whole photo. Beyond them, or below 0, its darkest value becomes black and its brightest white.

    >>> to_8_bits(np.array([0, 257, 65535], np.uint16)).tolist()
    [0, 1, 255]
    >>> to_8_bits(np.array([0.0, 0.5, 1.0])).tolist(), to_8_bits(np.array([-10, 0, 10])).tolist()
    ([0, 128, 255], [0, 128, 255])
    """
    wide = values.astype(np.float64)
    if not np.isfinite(wide).all():
        raise ValueError("some values are not finite")
    low, high = (float(wide.min()), float(wide.max())) if wide.size else (0.0, 0.0)
    if values.dtype.kind == "u" and values.dtype.itemsize == 2:
        top: float | None = _ALL_16_BITS
    else:
        ranges = (1.0, 255.0, _ALL_16_BITS) if values.dtype.kind == "f" else (255.0, _ALL_16_BITS)
        top = next((float(end) for end in ranges if low >= 0.0 and high <= end), None)
    if top is None:
        wide = wide - low
        top = (high - low) or 1.0
    return np.floor(wide * (255.0 / top) + 0.5).astype(np.uint8)
