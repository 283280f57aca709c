"""Sizes from headers are those that Pillow gives, and every cut of a file ends in a size or a sentence."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import pytest
from PIL import Image, ImageOps

from probox.errors import InputError
from probox.files.photos import image_size


def saved(path: Path, kind: str, size: tuple[int, int] = (37, 21), mode: str = "RGB", **more: object) -> Path:
    Image.new(mode, size, 0).save(path, kind, **more)
    return path


KINDS = {
    "png": ("PNG", {}),
    "jpeg": ("JPEG", {}),
    "progressive": ("JPEG", {"progressive": True}),
    "bmp": ("BMP", {}),
    "gif": ("GIF", {}),
    "webp": ("WEBP", {}),
    "lossless": ("WEBP", {"lossless": True}),
    "extended": ("WEBP", {"exif": b"Exif\0\0II*\0", "lossless": True}),
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("size", [(37, 21), (1, 1), (300, 513), (16383, 2)])
def test_as_pillow(tmp_path: Path, name: str, size: tuple[int, int]) -> None:
    kind, more = KINDS[name]
    assert image_size(saved(tmp_path / "x", kind, size, **more)) == size


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_photos_are_turned_upright(tmp_path: Path, kind: str, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x010F] = "a maker"
    exif[0x0112] = orientation
    path = saved(tmp_path / "x", kind, exif=exif)
    with Image.open(path) as image:
        assert image_size(path) == ImageOps.exif_transpose(image).size
    assert image_size(path) == ((21, 37) if orientation > 4 else (37, 21))


def test_big_endian_exif_and_other_segments(tmp_path: Path) -> None:
    """An XMP segment, also APP1, stands before EXIF; a comment and fill bytes follow."""
    exif = b"Exif\0\0MM\0*" + struct.pack(">IH", 8, 1) + struct.pack(">HHIHH", 0x0112, 3, 1, 6, 0) + bytes(4)
    buffer = io.BytesIO()
    Image.new("RGB", (37, 21)).save(buffer, "JPEG")
    data = buffer.getvalue()

    def segment(marker: int, body: bytes) -> bytes:
        return bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2) + body

    xmp = segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + b"x" * 5000)
    path = tmp_path / "x.jpg"
    path.write_bytes(data[:2] + xmp + segment(0xE1, exif) + segment(0xFE, b"hi") + b"\xff\xff" + data[2:])
    assert image_size(path) == (21, 37)
    path.write_bytes(data[:2] + xmp + data[2:])
    assert image_size(path) == (37, 21)
    with Image.open(path) as image:
        assert image.size == (37, 21)


def test_old_and_upside_down_bitmaps(tmp_path: Path) -> None:
    path = tmp_path / "x.bmp"
    path.write_bytes(b"BM" + bytes(12) + struct.pack("<IHHHH", 12, 37, 21, 1, 24) + bytes(20))
    assert image_size(path) == (37, 21)
    path.write_bytes(b"BM" + bytes(12) + struct.pack("<IiiHH", 40, 37, -21, 1, 24) + bytes(20))
    assert image_size(path) == (37, 21)


@pytest.mark.parametrize("name", KINDS)
def test_cut_short(tmp_path: Path, name: str) -> None:
    kind, more = KINDS[name]
    data = saved(tmp_path / "x", kind, **more).read_bytes()
    path = tmp_path / "cut"
    refused = []
    for length in range(min(len(data), 700)):
        path.write_bytes(data[:length])
        try:
            assert image_size(path) == (37, 21)
        except InputError as error:
            refused.append(str(error))
    assert len(refused) > 9
    assert all("cut" in text for text in refused)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "an empty file"),
        (b"II*\0" + bytes(40), "a TIFF image"),
        (b"\0\0\0 ftypavif" + bytes(40), "an AVIF image"),
        (b"\0\0\0 ftypheic" + bytes(40), "a HEIC image"),
        (b"\0\0\0 ftypisom" + bytes(40), "a video"),
        (b"<html>" + bytes(40), "something else"),
        (b"RIFF\0\0\0\0WAVE" + bytes(40), "something else"),
        (b"GIF89a" + bytes(40), "this GIF image is 0 x 0"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 1 << 20, 1 << 20), "1048576 x 1048576"),
        (b"\xff\xd8\xff\xda" + bytes(40), "this JPEG image is damaged"),
    ],
)
def test_sentences(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "image"
    path.write_bytes(data)
    with pytest.raises(InputError, match=said) as caught:
        image_size(path)
    assert str(path) in str(caught.value)
    assert caught.value.remedy


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file; look again"):
        image_size(tmp_path / "none.png", remedy="look again")
    with pytest.raises(InputError, match="this is a folder"):
        image_size(tmp_path)
