"""PNG images as arrays of whole numbers: enough of the format for masks, without an image library."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.errors import InputError
from probox.tables.dataset import MAX_SIDE, is_image_size

__all__ = ["decode_png"]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_PALETTE = 3
_MAX_PIXELS = 1 << 28
_STRIP = 1 << 20
"""How many bytes of rows are decoded at a time, or as many as one row has."""
_PIECE = 1 << 16
"""How many packed bytes are unpacked at a time."""

Pixels = npt.NDArray[np.uint8] | npt.NDArray[np.uint16]


def decode_png(data: bytes, file: str, choose: Callable[[int], int] | None = None) -> Pixels:
    """Return the pixels of a PNG as (H, W, channels): grey, grey + alpha, RGB or RGBA; a palette is looked up.

    Parameters
    ----------
    data : bytes
        The content of the file.
    file : str
        Its name, for messages.
    choose : callable, optional
        Gets the number of channels and returns one of them, which is decoded alone, as (H, W).
    """
    if not data.startswith(_SIGNATURE):
        raise InputError("expected a PNG image", file=file, remedy="save the mask as PNG")
    chunks = _chunks(data, file)
    header = b"".join(chunks.get(b"IHDR", []))
    if len(header) != 13 or b"IDAT" not in chunks:
        raise InputError("the PNG image has no header or no pixels", file=file, remedy="save the mask again")
    width, height, depth, color, compression, method, interlace = struct.unpack(">IIBBBBB", header)
    if depth not in _DEPTHS.get(color, ()) or compression != 0 or method != 0:
        raise InputError(f"expected a PNG image, but got colour type {color} with {depth} bits", file=file)
    if interlace != 0:
        raise InputError(
            "interlaced PNG images are not supported", file=file, remedy="save the mask without interlacing"
        )
    if not is_image_size(width, height, _MAX_PIXELS):
        raise InputError(
            f"expected a mask of up to {_MAX_PIXELS:,} pixels and {MAX_SIDE:,} per side, but got {width} x {height}",
            file=file,
            remedy="cut the image into smaller ones",
        )
    palette = np.frombuffer(b"".join(chunks.get(b"PLTE", [])), np.uint8)
    colors = palette[: len(palette) // 3 * 3].reshape(-1, 3) if color == _PALETTE else None
    channels = _CHANNELS[color] if colors is None else 3
    chosen = slice(None) if choose is None else choose(channels)
    shape = (height, width, channels) if choose is None else (height, width)
    pixels: Pixels = np.empty(shape, np.uint16 if depth == 16 else np.uint8)
    first = 0
    for rows in _rows(chunks[b"IDAT"], height, width * _CHANNELS[color], depth, _CHANNELS[color], file):
        samples = rows.reshape(len(rows), width, _CHANNELS[color])
        if colors is not None:
            samples = _look_up(samples[:, :, 0], colors, file)
        pixels[first : first + len(rows)] = samples[:, :, chosen]
        first += len(rows)
    if depth < 8 and colors is None:
        pixels *= np.uint8(255 // ((1 << depth) - 1))  # grey of few bits is spread over 0..255, as image libraries do
    return pixels


def _rows(
    parts: list[memoryview], height: int, samples: int, depth: int, channels: int, file: str
) -> Iterator[npt.NDArray[Any]]:
    """Yield the samples of an image, some rows at a time."""
    row_bytes = (samples * depth + 7) // 8
    stream = _Inflater(parts)
    above = np.zeros(row_bytes, np.uint8)
    step = max(1, _STRIP // row_bytes)
    for first in range(0, height, step):
        size = min(step, height - first) * (row_bytes + 1)
        packed = stream.read(size)
        if len(packed) != size:
            raise _wrong_amount(file)
        try:
            rows = _core.png_unfilter(packed, above, max(1, channels * depth // 8))
        except ValueError as error:
            raise InputError(f"the PNG image is damaged ({error})", file=file, remedy="save the mask again") from None
        above = rows[-1].copy()
        yield _samples(rows, depth)[:, :samples]
    if stream.read(1):
        raise _wrong_amount(file)


def _wrong_amount(file: str) -> InputError:
    return InputError("the PNG image has the wrong amount of pixels", file=file, remedy="save or download it again")


class _Inflater:
    """The bytes that some parts hold, unpacked as they are asked for; damaged ones end early."""

    def __init__(self, parts: list[memoryview]) -> None:
        self._pieces = (part[at : at + _PIECE] for part in parts for at in range(0, len(part), _PIECE))
        self._unpack = zlib.decompressobj()

    def read(self, size: int) -> bytes:
        """Return so many bytes, or what is left."""
        found: list[bytes] = []
        try:
            while size > 0 and not self._unpack.eof:
                piece = self._unpack.unconsumed_tail or next(self._pieces, b"")
                part = self._unpack.decompress(piece, size)
                if not part and not piece:
                    break
                found.append(part)
                size -= len(part)
        except zlib.error:
            pass
        return b"".join(found)


def _chunks(data: bytes, file: str) -> dict[bytes, list[memoryview]]:
    view = memoryview(data)
    parts: dict[bytes, list[memoryview]] = {}
    at = len(_SIGNATURE)
    while at + 12 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        body = view[at + 8 : at + 8 + size]
        checksum = data[at + 8 + size : at + 12 + size]
        if len(checksum) < 4 or zlib.crc32(body, zlib.crc32(kind)) != int.from_bytes(checksum, "big"):
            raise InputError("the PNG image is damaged", file=file, remedy="save or download it again")
        parts.setdefault(kind, []).append(body)
        at += 12 + size
        if kind == b"IEND":
            return parts
    raise InputError("the PNG image is cut short", file=file, remedy="save or download it again")


def _samples(rows: npt.NDArray[np.uint8], depth: int) -> npt.NDArray[Any]:
    if depth == 16:
        return rows.view(">u2")
    if depth == 8:
        return rows
    bits = np.unpackbits(rows, axis=1).reshape(len(rows), -1, depth)
    weights = (1 << np.arange(depth - 1, -1, -1)).astype(np.uint8)
    samples: npt.NDArray[np.uint8] = (bits * weights).sum(axis=2, dtype=np.uint8)
    return samples


def _look_up(indices: npt.NDArray[np.uint8], colors: npt.NDArray[np.uint8], file: str) -> npt.NDArray[np.uint8]:
    if indices.max() >= len(colors):
        raise InputError("a pixel names a colour that the palette lacks", file=file, remedy="save the mask again")
    return colors[indices]
