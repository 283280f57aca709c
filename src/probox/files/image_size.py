"""How large an image is, from the first bytes of its file: PNG, JPEG, BMP, GIF and WebP, without an image library."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import BinaryIO

from probox.errors import InputError
from probox.files.reading import Paths, open_regular
from probox.tables.dataset import MAX_PIXELS, MAX_SIDE, is_image_size

__all__ = ["image_size", "name_content"]

_ORIENTATION = 0x0112
_ON_ITS_SIDE = range(5, 9)
"""EXIF's orientations of images that are shown with width and height exchanged."""

_MOST_SEGMENTS = 4096
"""A header with more parts than this is none."""

Size = tuple[int, int]


class _BrokenError(Exception):
    """The file is of a known kind, but its header is damaged or cut short."""


def image_size(path: Paths, *, remedy: str | None = None) -> Size:
    """Return width and height of an image as programs show it: a photo on its side (EXIF) is turned upright.

    Parameters
    ----------
    path : path
        The image.
    remedy : str, optional
        What to do if there is no such file.

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
                    return _checked(read(file, start), name, path)
        except (_BrokenError, struct.error, OSError):
            raise InputError(
                f"the header of this {name} image is damaged or cut short",
                file=str(path),
                remedy="save or download the image again",
            ) from None
    raise InputError(
        f"expected a PNG, JPEG, BMP, GIF or WebP image, but got {name_content(start)}",
        file=str(path),
        remedy="save the image in one of these formats, or write COCO ground truth, which says sizes itself",
    )


def _checked(size: Size, name: str, path: Paths) -> Size:
    width, height = size
    if not is_image_size(width, height):
        raise InputError(
            f"expected an image of 1 to {MAX_SIDE:,} pixels per side and up to {MAX_PIXELS:,} in all, "
            f"but this {name} image says {width} x {height}",
            file=str(path),
            remedy="check the image, or cut it into smaller ones",
        )
    return size


def name_content(start: bytes) -> str:
    """Return what a file is whose first bytes these are, for a message: a video, say.

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
        if len(head) < 8:  # the size is known all the same
            break
        length, kind = struct.unpack(">I4s", head)
        if kind == b"eXIf":
            return _turned((width, height), file.read(min(length, 1 << 16)))
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
            continue  # these stand alone
        if marker in (0xD8, 0xD9, 0xDA):
            raise _BrokenError  # pixels, or the end, before a size
        (length,) = struct.unpack(">H", file.read(2))
        if length < 2:
            raise _BrokenError
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            _, height, width = struct.unpack(">BHH", file.read(5))
            return _turned((width, height), exif)
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


def _turned(size: Size, exif: bytes) -> Size:
    """Return a size with sides exchanged if EXIF says that the image lies on its side; damaged EXIF says nothing."""
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
    return width, abs(height)  # rows from top to bottom are said by a negative height


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
