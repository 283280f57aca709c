"""One reading of photos: EXIF, bits, palettes, transparency, frames."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from probox.errors import InputError
from probox.files.photos import load_photo, photo_size, read_photo, to_8_bits

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
GREY = np.arange(12, dtype=np.uint8).reshape(3, 4) * 20


def lying(path: Path, orientation: int, size: tuple[int, int] = (8, 4)) -> Path:
    """Save a photo whose left half is white, with a mark of how to turn it."""
    pixels = np.zeros((size[1], size[0], 3), np.uint8)
    pixels[:, : size[0] // 2] = 255
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(pixels).save(path, exif=exif)
    return path


@pytest.mark.parametrize("ending", [".png", ".webp", ".tif"])
def test_a_photo_on_its_side_is_turned_upright(tmp_path: Path, ending: str) -> None:
    path = lying(tmp_path / f"a{ending}", 6)  # to be turned by 90 degrees clockwise: what is left comes up
    photo = read_photo(path)
    assert photo.pixels.shape == (8, 4, 3)
    assert photo.pixels[0].min() > 200
    assert photo.pixels[-1].max() < 50
    assert photo.traits == ("turned",)
    assert photo_size(path) == (4, 8)


def test_the_truth_s_size_decides_whether_it_is_turned(tmp_path: Path) -> None:
    path = lying(tmp_path / "a.png", 6)
    stored = read_photo(path, (8, 4))
    assert stored.pixels.shape == (4, 8, 3)
    assert stored.traits == ("as stored",)
    assert read_photo(path, (4, 8)).traits == ("turned",)
    # Neither fits: turned, and said.
    assert read_photo(path, (50, 100)).traits == ("turned", "other size")
    assert read_photo(path, (100, 50)).traits == ("as stored", "other size")
    assert read_photo(path, (5, 5)).pixels.shape == (8, 4, 3)


def test_every_orientation_is_turned_as_pillow_does(tmp_path: Path) -> None:
    for orientation in range(12):
        path = lying(tmp_path / "a.png", orientation)
        with Image.open(path) as image:
            expected = np.asarray(ImageOps.exif_transpose(image))
        np.testing.assert_array_equal(load_photo(path), expected)
        assert photo_size(path) == expected.shape[1::-1]
        assert read_photo(path).traits == (("turned",) if 2 <= orientation <= 8 else ())


def test_16_bits_are_scaled_the_same_for_every_photo(tmp_path: Path) -> None:
    wide = GREY.astype(np.uint16) * 257 + 100
    for ending in ("png", "tif"):
        Image.fromarray(wide).save(tmp_path / f"a.{ending}")
        np.testing.assert_array_equal(load_photo(tmp_path / f"a.{ending}"), np.repeat(GREY[..., None], 3, axis=2))
    dark = np.minimum(wide, 4095)
    Image.fromarray(dark).save(tmp_path / "dark.png")
    photo = read_photo(tmp_path / "dark.png")
    assert photo.pixels.max() == 16
    assert photo.traits == ("dark",)
    Image.fromarray(np.full((3, 4), 4300, np.uint16)).save(tmp_path / "less.png")
    assert read_photo(tmp_path / "less.png").traits == ()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([0, 65535], np.uint16), [0, 255]),
        (np.array([0, 128, 129], np.uint16), [0, 0, 1]),
        (np.array([0, 10, 255], np.int32), [0, 10, 255]),
        (np.array([0, 256, 65535], np.int32), [0, 1, 255]),
        (np.array([0, 65536], np.int32), [0, 255]),
        (np.array([-5, 5, 15], np.int32), [0, 128, 255]),
        (np.array([70000, 70000], np.int32), [0, 0]),
        (np.array([0.0, 0.25, 1.0], np.float32), [0, 64, 255]),
        (np.array([0.0, 1.5, 200.0], np.float32), [0, 2, 200]),
        (np.array([0.0, 257.0, 65535.0], np.float32), [0, 1, 255]),
        (np.array([-1.0, 1.0], np.float32), [0, 255]),
    ],
)
def test_the_rule_for_more_than_8_bits(values: np.ndarray, expected: list[int]) -> None:
    assert to_8_bits(values).tolist() == expected


def test_float_and_32_bits_are_read_and_what_is_no_number_is_said(tmp_path: Path) -> None:
    for values in (GREY.astype(np.float32) / 220, GREY.astype(np.int32) * 257):
        Image.fromarray(values).save(tmp_path / "a.tif")
        found = load_photo(tmp_path / "a.tif")[..., 0].astype(int)
        assert np.abs(found - np.rint(values / values.max() * (255 if values.dtype == np.float32 else 220))).max() <= 1
    Image.fromarray(np.full((3, 4), np.nan, np.float32)).save(tmp_path / "a.tif")
    with pytest.raises(InputError, match=r"a\.tif: cannot be read as an image \(some values are not finite"):
        load_photo(tmp_path / "a.tif")


def test_transparency_is_dropped(tmp_path: Path) -> None:
    colour = np.stack([GREY, 255 - GREY, GREY // 2], axis=2)
    clear = Image.fromarray(np.concatenate([colour, np.zeros((3, 4, 1), np.uint8)], axis=2))
    clear.save(tmp_path / "rgba.png")
    np.testing.assert_array_equal(load_photo(tmp_path / "rgba.png"), colour)
    Image.fromarray(GREY).convert("LA").save(tmp_path / "la.png")
    np.testing.assert_array_equal(load_photo(tmp_path / "la.png")[..., 1], GREY)
    palette = Image.fromarray(colour).quantize(12)
    palette.save(tmp_path / "p.png", transparency=bytes(range(12)))
    np.testing.assert_array_equal(load_photo(tmp_path / "p.png"), np.asarray(palette.convert("RGB")))


def test_print_colours_and_black_and_white(tmp_path: Path) -> None:
    Image.fromarray(np.full((3, 4, 3), [250, 10, 10], np.uint8)).convert("CMYK").save(tmp_path / "a.tif")
    assert np.abs(load_photo(tmp_path / "a.tif").astype(int) - [250, 10, 10]).max() <= 3
    Image.fromarray(GREY > 100).save(tmp_path / "a.png")
    np.testing.assert_array_equal(load_photo(tmp_path / "a.png")[..., 2], np.where(GREY > 100, 255, 0))


@pytest.mark.parametrize("ending", ["gif", "tif", "webp", "png"])
def test_of_several_frames_the_first_is_taken(tmp_path: Path, ending: str) -> None:
    frames = [Image.fromarray(np.full((8, 8, 3), value, np.uint8)) for value in (200, 10)]
    path = tmp_path / f"a.{ending}"
    frames[0].save(path, save_all=True, append_images=frames[1:])
    photo = read_photo(path)
    assert photo.traits == ("frames",)
    assert photo.pixels.min() > 180


def test_what_is_no_photo_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_text("oops")
    with pytest.raises(
        InputError, match=r"a\.jpg: expected an image that Pillow reads, but got something else; save it"
    ):
        load_photo(tmp_path / "a.jpg")
    assert photo_size(tmp_path / "a.jpg") is None
    (tmp_path / "a.jpg").write_bytes(b"\x1aE\xdf\xa3" + bytes(40))
    with pytest.raises(InputError, match=r"but got a video; extract the frames first, for example: ffmpeg"):
        load_photo(tmp_path / "a.jpg")
    (tmp_path / "a.jpg").write_bytes(POINTER)
    with pytest.raises(
        InputError, match=r"a\.jpg: is a Git LFS pointer, not the file itself; fetch it with git lfs pull"
    ):
        load_photo(tmp_path / "a.jpg")
    with pytest.raises(InputError, match="no such file"):
        load_photo(tmp_path / "nowhere.jpg")
