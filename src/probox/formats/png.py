"""PNG images as arrays of whole numbers: enough of the format for masks, without an image library."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.errors import InputError

__all__ = ["decode_png"]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_PALETTE = 3
_MAX_PIXELS = 1 << 28


def decode_png(data: bytes, file: str) -> npt.NDArray[np.uint16]:
    """Return the pixels of a PNG as (H, W, channels): grey, grey + alpha, RGB or RGBA; a palette is looked up.

    Parameters
    ----------
    data : bytes
        The content of the file.
    file : str
        Its name, for messages.
    """
    if not data.startswith(_SIGNATURE):
        raise InputError("expected a PNG image", file=file, remedy="save the mask as PNG")
    chunks = _chunks(data, file)
    header = chunks.get(b"IHDR", b"")
    if len(header) != 13 or b"IDAT" not in chunks:
        raise InputError("the PNG image has no header or no pixels", file=file, remedy="save the mask again")
    width, height, depth, color, compression, method, interlace = struct.unpack(">IIBBBBB", header)
    if depth not in _DEPTHS.get(color, ()) or compression != 0 or method != 0:
        raise InputError(f"expected a PNG image, but got colour type {color} with {depth} bits", file=file)
    if interlace != 0:
        raise InputError(
            "interlaced PNG images are not supported", file=file, remedy="save the mask without interlacing"
        )
    if width == 0 or height == 0 or width * height > _MAX_PIXELS:
        raise InputError(f"expected a mask of up to {_MAX_PIXELS:,} pixels, but got {width} x {height}", file=file)
    channels = _CHANNELS[color]
    row_bytes = (width * channels * depth + 7) // 8
    packed = _inflate(chunks[b"IDAT"], height * (row_bytes + 1), file)
    try:
        rows = _core.png_unfilter(packed, height, row_bytes, max(1, channels * depth // 8))
    except ValueError as error:
        raise InputError(f"the PNG image is damaged ({error})", file=file, remedy="save the mask again") from None
    samples = _samples(rows, depth)[:, : width * channels].reshape(height, width, channels)
    if color == _PALETTE:
        return _look_up(samples[:, :, 0], chunks.get(b"PLTE", b""), file)
    # Grey of few bits is spread over 0..255, as image libraries do.
    return samples * np.uint16(255 // ((1 << depth) - 1)) if depth < 8 else samples


def _chunks(data: bytes, file: str) -> dict[bytes, bytes]:
    parts: dict[bytes, list[bytes]] = {}
    at = len(_SIGNATURE)
    while at + 12 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        body = data[at + 8 : at + 8 + size]
        checksum = data[at + 8 + size : at + 12 + size]
        if len(checksum) < 4 or zlib.crc32(kind + body) != int.from_bytes(checksum, "big"):
            raise InputError("the PNG image is damaged", file=file, remedy="save or download it again")
        parts.setdefault(kind, []).append(body)
        at += 12 + size
        if kind == b"IEND":
            return {kind: b"".join(bodies) for kind, bodies in parts.items()}
    raise InputError("the PNG image is cut short", file=file, remedy="save or download it again")


def _inflate(packed: bytes, size: int, file: str) -> bytes:
    try:
        pixels = zlib.decompressobj().decompress(packed, size + 1)
    except zlib.error:
        pixels = b""
    if len(pixels) != size:
        raise InputError("the PNG image has the wrong amount of pixels", file=file, remedy="save or download it again")
    return pixels


def _samples(rows: npt.NDArray[np.uint8], depth: int) -> npt.NDArray[np.uint16]:
    if depth == 16:
        return rows.view(">u2").astype(np.uint16)
    if depth == 8:
        return rows.astype(np.uint16)
    bits = np.unpackbits(rows, axis=1).reshape(len(rows), -1, depth)
    weights = (1 << np.arange(depth - 1, -1, -1)).astype(np.uint16)
    samples: npt.NDArray[np.uint16] = (bits * weights).sum(axis=2, dtype=np.uint16)
    return samples


def _look_up(indices: npt.NDArray[np.uint16], palette: bytes, file: str) -> npt.NDArray[np.uint16]:
    colors = np.frombuffer(palette[: len(palette) // 3 * 3], np.uint8).reshape(-1, 3).astype(np.uint16)
    if indices.max() >= len(colors):
        raise InputError("a pixel names a colour that the palette lacks", file=file, remedy="save the mask again")
    return colors[indices]
