"""Photos: the file of an image, its pixels, and its size from the header alone."""

from __future__ import annotations

import dataclasses
import re
import struct
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.files.reading import Paths, open_regular
from probox.support.optional import require
from probox.tables.dataset import MAX_PIXELS, MAX_SIDE, is_image_size

UNREADABLE = (OSError, ValueError, SyntaxError, ImportError)
"""Errors that Pillow raises for a damaged photo. ImportError comes from ultralytics, which replaces Pillow's `open`:
for files that are not images it asks for another package."""

ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".gif", ".ppm", ".pgm", ".avif")
VIDEOS = (".mp4", ".avi", ".mov", ".mkv", ".webm", ".m4v", ".mpg", ".mpeg", ".wmv")
OTHER_PICTURES = (".heic", ".heif", ".jxl")
"""Image formats that Pillow does not read."""
EXTRACT_FRAMES = "extract the frames first, for example: ffmpeg -i VIDEO frames/%06d.png"

_ORIENTATION = 0x0112
"""EXIF tag of the orientation."""
_ON_ITS_SIDE = range(5, 9)
"""EXIF orientations whose photos are shown with width and height exchanged."""

_ALL_16_BITS = 65535
_NEARLY_BLACK = 16
"""Brightest 8-bit value of 12-bit data stored in 16 bits: 4095 / 257."""
_FRAMES = frozenset({"GIF", "PNG", "TIFF", "WEBP"})
"""Formats with several frames per file."""

Pixels = npt.NDArray[np.uint8]
Size = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class Photo:
    """Pixels of a photo, and how they were read."""

    pixels: Pixels
    """(H, W, 3), RGB."""
    traits: tuple[str, ...] = ()
    """Any of ``turned``, ``as stored``, ``other size``, ``frames``, ``dark``; each is reported as a note."""


def is_photo_name(path: Path) -> bool:
    """Return whether a file name has the ending of a photo."""
    return path.suffix.lower() in ENDINGS


def find_photo(folder: Path, image_id: int, file_name: str = "") -> Path | None:
    """Return the file in `folder` that shows an image, or None.

    The file name of the ground truth is tried first, with and without its folders, then the image id, with and
    without COCO's leading zeros. Without a file name, a photo whose name ends in the image id is accepted.
    Names that lead out of the folder are ignored; a photo may be a link to a file elsewhere.
    """
    names = []
    if file_name:
        plain = file_name.replace("\\", "/")
        names += [plain, plain.rsplit("/", 1)[-1]]
    for stem in (str(image_id), f"{image_id:012d}", f"{image_id:06d}"):
        names += [stem + ending for ending in ENDINGS]
    if not file_name:
        names += _find_numbered(folder).get(image_id, [])
    base = folder.resolve()
    for name in names:
        path = folder / name
        try:
            if path.is_file() and _is_within(path.parent.resolve(), base):
                return path
        except (OSError, ValueError):  # invalid as a file name
            continue
    return None


def _is_within(folder: Path, base: Path) -> bool:
    return folder == base or base in folder.parents


@lru_cache(maxsize=4)
def _find_numbered(folder: Path) -> dict[int, list[str]]:
    """Return the photos of a folder whose names end in a unique number, by that number."""
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
    """Return the pixels of a photo as viewers show it; used by detectors, pictures and pages alike.

    A photo that EXIF marks as rotated is turned upright, unless the ground truth's `size` fits the stored pixels
    and not the turned ones. Grey photos of more than 8 bits are scaled, see `to_8_bits`.
    Transparency is dropped; of several frames the first is used.

    Parameters
    ----------
    path : path
        The photo.
    size : (width, height), optional
        Size of the image in the ground truth.
    """
    pillow = require("PIL.Image", extra="report")
    try:
        with pillow.open(path) as image:
            traits = []
            if image.format in _FRAMES and getattr(image, "n_frames", 1) > 1:
                traits.append("frames")
            marked = orientation_of(image) != 1
            upright = turn_upright(image, size)
            if marked:
                traits.append("turned" if upright is not image or image.format == "TIFF" else "as stored")
            shown, dark = to_rgb(upright)
            if dark:
                traits.append("dark")
            if size is not None and shown.size != size:
                traits.append("other size")
            return Photo(np.asarray(shown), tuple(traits))
    except (*UNREADABLE, pillow.DecompressionBombError) as error:
        with open_regular(path) as file:
            content = name_content(file.read(32))
        problem, remedy = f"cannot be read as an image ({error})", None
        if isinstance(error, pillow.UnidentifiedImageError | ImportError):
            problem = f"expected an image that Pillow reads, but got {content}"
            remedy = EXTRACT_FRAMES if content == "a video" else "save it as PNG or JPEG"
        raise InputError(problem, file=str(path), remedy=remedy) from None


def photo_size(path: Path) -> Size | None:
    """Return width and height of a photo as `load_photo` returns it, from its header; None if it is unreadable."""
    pillow = require("PIL.Image", extra="report")
    try:
        with pillow.open(path) as image:
            width, height = image.size
            if image.format == "TIFF":  # only some releases of Pillow turn the size of a TIFF when opening it
                width, height = image.tag_v2[256], image.tag_v2[257]
            on_its_side = orientation_of(image) in _ON_ITS_SIDE
            return (int(height), int(width)) if on_its_side else (int(width), int(height))
    except (*UNREADABLE, pillow.DecompressionBombError):
        return None


def orientation_of(image: Any) -> int:
    """Return the EXIF orientation of a Pillow image; 1 (upright) if it is missing or invalid."""
    found = image.getexif().get(_ORIENTATION, 1)
    return found if isinstance(found, int) and 1 < found <= 8 else 1


def turns(stored: Size, orientation: int, size: Size | None = None) -> bool:
    """Return whether EXIF's orientation is to be applied to a photo.

    It is not if the ground truth's size has the same aspect (portrait or landscape) as the stored pixels, but not as
    the turned ones. Photos that are upside down or mirrored keep their size and are always turned.

    >>> turns((640, 480), 6), turns((640, 480), 6, (480, 640)), turns((640, 480), 6, (640, 480))
    (True, True, False)
    """
    if orientation == 1:
        return False
    shown = stored[::-1] if orientation in _ON_ITS_SIDE else stored
    return size is None or _shape(shown) == _shape(size) or _shape(stored) != _shape(size)


def _shape(size: Size) -> int:
    """Return 1 for landscape, -1 for portrait, 0 for square."""
    return (size[0] > size[1]) - (size[0] < size[1])


def turn_upright(image: Any, size: Size | None = None, *, longest: int | None = None) -> Any:
    """Return a Pillow image turned upright; `size` is that of the ground truth, if known.

    With `longest` the image may be decoded smaller, but no side that was longer gets shorter than this: JPEG decodes
    much faster at reduced size. Pillow turns TIFF files itself.
    """
    as_it_is = image.format == "TIFF" or not turns(image.size, orientation_of(image), size)
    if longest is not None:
        image.draft("RGB", (longest, longest))
    return image if as_it_is else require("PIL.ImageOps", extra="report").exif_transpose(image)


def to_rgb(image: Any) -> tuple[Any, bool]:
    """Return a Pillow image as 8-bit RGB, and whether it is stored with more bits but nearly black."""
    mode = image.mode
    if mode == "F" or mode.startswith("I"):
        grey = to_8_bits(np.asarray(image))
        return require("PIL.Image", extra="report").fromarray(grey).convert("RGB"), int(grey.max()) <= _NEARLY_BLACK
    if mode in ("RGBa", "La") or (mode == "P" and "transparency" in image.info):
        image = image.convert("LA" if mode == "La" else "RGBA")
    return image.convert("RGB"), False


def to_8_bits(values: npt.NDArray[Any]) -> Pixels:
    """Scale grey values of more than 8 bits to 0..255.

    Unsigned 16-bit values are divided by 257, so that 65535 is white in every photo, however dark it is. Other
    integers are assumed to be in 0..255 or 0..65535, floats also in 0..1: the first range that holds the whole photo.
    If none does, the darkest value becomes black and the brightest white.

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


# --- sizes from headers, without an image library ---

_MOST_SEGMENTS = 4096
"""Limit on the segments of a header; files with more are treated as broken."""


class _BrokenError(Exception):
    """The format is recognized, but the header is damaged or cut short."""


def image_size(path: Paths, *, remedy: str | None = None) -> Size:
    """Return width and height of an image as viewers show it: EXIF orientation is applied.

    Parameters
    ----------
    path : path
        The image.
    remedy : str, optional
        Fix shown in the error if the file is missing.

    Examples
    --------
    >>> image_size("000000000139.jpg")  # doctest: +SKIP
    (640, 426)
    """
    with open_regular(path, remedy=remedy) as file:
        try:
            start = file.read(32)
            for name, magic, read in _KINDS:
                if start.startswith(magic) and (name != "WebP" or start[8:12] == b"WEBP"):
                    return _check_size(read(file, start), name, path)
        except (_BrokenError, struct.error, OSError):
            raise InputError(
                f"the header of this {name} image is damaged or cut short",
                file=str(path),
                remedy="save or download the image again",
            ) from None
    raise InputError(
        f"expected a PNG, JPEG, BMP, GIF or WebP image, but got {name_content(start)}",
        file=str(path),
        remedy="save the image in one of these formats, or write COCO ground truth, which contains the sizes",
    )


def _check_size(size: Size, name: str, path: Paths) -> Size:
    width, height = size
    if not is_image_size(width, height):
        raise InputError(
            f"expected an image of 1 to {MAX_SIDE:,} pixels per side and up to {MAX_PIXELS:,} in all, "
            f"but this {name} image is {width} x {height}",
            file=str(path),
            remedy="check the image, or cut it into smaller ones",
        )
    return size


def name_content(start: bytes) -> str:
    """Return the kind of a file from its first bytes, as words for a message.

    >>> name_content(b"\\0\\0\\0\\x1cftypavif"), name_content(b"\\0\\0\\0\\x1cftypisom")
    ('an AVIF image', 'a video')
    """
    if start[:4] in (b"II*\0", b"MM\0*"):
        return "a TIFF image"
    if start[4:8] == b"ftyp":
        kinds = {b"avi": "an AVIF image", b"hei": "a HEIC image", b"hev": "a HEIC image", b"mif": "a HEIC image"}
        return kinds.get(start[8:11], "a video")
    if start[:4] == b"\x1aE\xdf\xa3" or start[8:12] == b"AVI ":
        return "a video"
    return "an empty file" if not start else "something else"


def _png(file: BinaryIO, start: bytes) -> Size:
    if start[12:16] != b"IHDR":
        raise _BrokenError
    width, height = struct.unpack(">II", start[16:24])
    file.seek(8)
    for _ in range(_MOST_SEGMENTS):
        head = file.read(8)
        if len(head) < 8:  # the size is known already
            break
        length, kind = struct.unpack(">I4s", head)
        if kind == b"eXIf":
            return _turn_size((width, height), file.read(min(length, 1 << 16)))
        if kind in (b"IDAT", b"IEND"):
            break
        file.seek(length + 4, 1)
    return width, height


def _jpeg(file: BinaryIO, start: bytes) -> Size:
    file.seek(2)
    exif = b""
    for _ in range(_MOST_SEGMENTS):
        marker = _next_marker(file)
        if 0xD0 <= marker <= 0xD7 or marker == 0x01:
            continue  # markers without a body
        if marker in (0xD8, 0xD9, 0xDA):
            raise _BrokenError  # pixels or end of the image before a size
        (length,) = struct.unpack(">H", file.read(2))
        if length < 2:
            raise _BrokenError
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            _, height, width = struct.unpack(">BHH", file.read(5))
            return _turn_size((width, height), exif)
        if marker == 0xE1 and not exif:
            body = file.read(length - 2)
            exif = body[6:] if body.startswith(b"Exif\0") else b""
        else:
            file.seek(length - 2, 1)
    raise _BrokenError


def _next_marker(file: BinaryIO) -> int:
    if file.read(1) != b"\xff":
        raise _BrokenError
    marker = file.read(1)
    while marker == b"\xff":  # fill bytes
        marker = file.read(1)
    if not marker or marker == b"\0":
        raise _BrokenError
    return marker[0]


def _turn_size(size: Size, exif: bytes) -> Size:
    """Return a size with sides exchanged if EXIF marks the image as lying on its side; damaged EXIF is ignored."""
    try:
        order = {b"II": "<", b"MM": ">"}[exif[:2]]
        (at,) = struct.unpack_from(order + "I", exif, 4)
        (entries,) = struct.unpack_from(order + "H", exif, at)
        for entry in range(entries):
            tag, kind, _, value = struct.unpack_from(order + "HHIH", exif, at + 2 + 12 * entry)
            if tag == _ORIENTATION:
                return size[::-1] if kind == 3 and value in _ON_ITS_SIDE else size
    except (KeyError, struct.error):
        pass
    return size


def _bmp(file: BinaryIO, start: bytes) -> Size:
    (header,) = struct.unpack("<I", start[14:18])
    if header == 12:
        width, height = struct.unpack("<HH", start[18:22])
    elif header >= 16:
        width, height = struct.unpack("<ii", start[18:26])
    else:
        raise _BrokenError
    return width, abs(height)  # a negative height means rows from top to bottom


def _gif(file: BinaryIO, start: bytes) -> Size:
    width, height = struct.unpack("<HH", start[6:10])
    return width, height


def _webp(file: BinaryIO, start: bytes) -> Size:
    kind = start[12:16]
    if kind == b"VP8X" and len(start) >= 30:
        return 1 + int.from_bytes(start[24:27], "little"), 1 + int.from_bytes(start[27:30], "little")
    if kind == b"VP8L" and len(start) >= 25 and start[20] == 0x2F:
        bits = int.from_bytes(start[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 " and len(start) >= 30 and start[23:26] == b"\x9d\x01\x2a":
        width, height = struct.unpack("<HH", start[26:30])
        return width & 0x3FFF, height & 0x3FFF
    raise _BrokenError


_KINDS: tuple[tuple[str, bytes, Callable[[BinaryIO, bytes], Size]], ...] = (
    ("JPEG", b"\xff\xd8", _jpeg),
    ("PNG", b"\x89PNG\r\n\x1a\n", _png),
    ("WebP", b"RIFF", _webp),
    ("BMP", b"BM", _bmp),
    ("GIF", b"GIF8", _gif),
)
