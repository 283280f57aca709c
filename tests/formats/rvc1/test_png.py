"""PNG decoding, against images made here byte by byte and against Pillow where it is installed."""

from __future__ import annotations

import contextlib
import io
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.amounts import examples

from probox import InputError
from probox.formats.rvc1_truth import decode_png

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def encode(pixels: np.ndarray, color: int, depth: int, filters: list[int], interlace: int = 0) -> bytes:
    """Return a PNG of (H, W, channels) samples with the given filter for each row, by the format's definition."""
    height, width, channels = pixels.shape
    if depth == 16:
        rows = pixels.astype(">u2").reshape(height, -1).view(np.uint8).astype(int)
    elif depth == 8:
        rows = pixels.reshape(height, -1).astype(int)
    else:
        bits = (pixels.reshape(height, -1, 1) >> np.arange(depth - 1, -1, -1)) & 1
        rows = np.packbits(bits.reshape(height, -1).astype(np.uint8), axis=1).astype(int)
    step = max(1, channels * depth // 8)
    above = np.zeros(rows.shape[1], int)
    data = b""
    for row, number in zip(rows, filters, strict=True):
        left = np.concatenate([np.zeros(step, int), row[:-step] if step < len(row) else row[:0]])[: len(row)]
        corner = np.concatenate([np.zeros(step, int), above[:-step] if step < len(row) else row[:0]])[: len(row)]
        estimate = left + above - corner
        distances = np.stack([abs(estimate - left), abs(estimate - above), abs(estimate - corner)])
        paeth = np.choose(distances.argmin(axis=0), [left, above, corner])
        guess = [0, left, above, (left + above) // 2, paeth][number]
        data += bytes([number]) + ((row - guess) % 256).astype(np.uint8).tobytes()
        above = row
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlace)
    body = zlib.compress(data)
    half = len(body) // 2
    return (
        SIGNATURE
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", body[:half])
        + chunk(b"IDAT", body[half:])
        + chunk(b"IEND", b"")
    )


@given(
    st.data(),
    st.integers(1, 12),
    st.integers(1, 12),
    st.sampled_from(
        [(0, 1, 8), (2, 3, 8), (4, 2, 8), (6, 4, 8), (0, 1, 16), (2, 3, 16), (6, 4, 16), (0, 1, 4), (0, 1, 1)]
    ),
)
@examples(200)
def test_all_filters_and_colours(data: st.DataObject, height: int, width: int, form: tuple[int, int, int]) -> None:
    color, channels, depth = form
    size = height * width * channels
    drawn = np.frombuffer(data.draw(st.binary(min_size=2 * size, max_size=2 * size)), np.uint16)
    samples = drawn & np.uint16((1 << depth) - 1)
    pixels = samples.reshape(height, width, channels)
    filters = data.draw(st.lists(st.integers(0, 4), min_size=height, max_size=height))
    expected = pixels * (255 // ((1 << depth) - 1)) if depth < 8 else pixels
    np.testing.assert_array_equal(decode_png(encode(pixels, color, depth, filters), "x.png"), expected)


@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA", "P", "1", "I;16"])
def test_against_pillow(mode: str) -> None:
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(7)
    smooth = rng.integers(0, 60, (33, 47, 4)).cumsum(axis=1).astype(np.uint8)
    if mode == "I;16":
        picture = image.fromarray(rng.integers(0, 65536, (33, 47)).astype(np.uint16))
        expected = np.asarray(picture)
    else:
        picture = image.fromarray(smooth).convert("RGB").convert(mode)
        shown = picture.convert("RGB") if mode == "P" else picture.convert("L") if mode == "1" else picture
        expected = np.asarray(shown)
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    decoded = decode_png(buffer.getvalue(), "x.png")
    np.testing.assert_array_equal(decoded.squeeze(), expected)


def raw(width: int, height: int, rows: bytes) -> bytes:
    """Return a grey PNG whose header and rows may disagree."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return SIGNATURE + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


good = encode(np.arange(12, dtype=np.uint16).reshape(3, 4, 1), 0, 8, [0, 1, 4])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "expected a PNG image"),
        (b"\xff\xd8\xff", "expected a PNG image"),
        (SIGNATURE, "cut short"),
        (good[:-4], "cut short"),
        (good[:-20], "damaged|cut short"),
        (good[:30] + b"\x00" + good[31:], "damaged"),
        (SIGNATURE + chunk(b"IEND", b""), "no header or no pixels"),
        (good.replace(b"IDAT", b"IDAX"), "damaged"),
        (encode(np.zeros((2, 2, 1), np.uint16), 0, 8, [0, 0], interlace=1), "interlaced"),
        (encode(np.zeros((2, 2, 1), np.uint16), 3, 8, [0, 0]), "outside the palette"),
        (encode(np.zeros((2, 2, 1), np.uint16), 5, 8, [0, 0]), "colour type 5"),
        (raw(1 << 30, 1 << 30, b""), "per side, but got"),
        (raw(4, 4, b"\0" * 9), "wrong amount of pixels"),
        (raw(4, 1, b"\x07" * 5), "unknown filter"),
    ],
)
def test_damaged_images(data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        decode_png(data, "x.png")


@given(st.data())
def test_any_change_is_an_error_or_an_image(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(good) - 1))
    changed = good[:at] + data.draw(st.binary(max_size=3)) + good[at + data.draw(st.integers(0, 3)) :]
    with contextlib.suppress(InputError):
        decode_png(changed, "x.png")


def test_of_equally_near_neighbours_left_goes_first_then_up() -> None:
    # Every way in which three neighbours can lie, ties included; what the format says, written out.
    for corner in range(6):
        for up in range(6):
            for left in range(6):
                estimate = left + up - corner
                nearest = corner
                if abs(estimate - up) <= abs(estimate - corner):
                    nearest = up
                if abs(estimate - left) <= min(abs(estimate - up), abs(estimate - corner)):
                    nearest = left
                # Row 0 as it is; in row 1 the first pixel's guess is the one above it.
                data = bytes([0, corner, up, 4, (left - corner) % 256, 100])
                header = struct.pack(">IIBBBBB", 2, 2, 8, 0, 0, 0, 0)
                png = SIGNATURE + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")
                assert decode_png(png, "x.png")[:, :, 0].tolist() == [[corner, up], [left, 100 + nearest]]


def test_an_average_is_rounded_down() -> None:
    data = bytes([0, 3, 4, 3, 10, 20])
    header = struct.pack(">IIBBBBB", 2, 2, 8, 0, 0, 0, 0)
    png = SIGNATURE + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")
    assert decode_png(png, "x.png")[1, :, 0].tolist() == [10 + 3 // 2, 20 + (11 + 4) // 2]
