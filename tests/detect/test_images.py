"""Reading and placing photos."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from probox.detect.families.base import channels_first
from probox.detect.network_input import place_image, read_image, resize
from probox.errors import InputError


@pytest.mark.parametrize("content", [b"", b"not an image", b"\xff\xd8\xff\xe0" + b"\0" * 40])
def test_a_bad_image_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.jpg"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"bad\.jpg"):
        read_image(path)


def test_a_truncated_image_is_named(tmp_path: Path, photos: Path) -> None:
    from PIL import Image

    path = tmp_path / "cut.jpg"
    Image.open(photos / "12.png").save(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(InputError, match=r"cut\.jpg"):
        read_image(path)


@pytest.mark.parametrize("from_origin", [False, True])
@pytest.mark.parametrize("size", [(7, 5), (30, 41), (13, 11)])
def test_resizing_is_bilinear_at_the_stated_points(size: tuple[int, int], from_origin: bool) -> None:
    image = np.random.default_rng(0).integers(0, 255, (17, 23, 3), dtype=np.uint8)
    resized = resize(image, size, from_origin=from_origin)

    def at(number: int, old: int, new: int) -> float:
        point = number * old / new if from_origin else (number + 0.5) * old / new - 0.5
        return min(max(point, 0.0), old - 1.0)

    for row in range(size[1]):
        for column in range(size[0]):
            y, x = at(row, 17, size[1]), at(column, 23, size[0])
            y0, x0 = int(y), int(x)
            y1, x1 = min(y0 + 1, 16), min(x0 + 1, 22)
            pixels = image.astype(float)
            above = pixels[y0, x0] * (1 - x + x0) + pixels[y0, x1] * (x - x0)
            below = pixels[y1, x0] * (1 - x + x0) + pixels[y1, x1] * (x - x0)
            assert np.abs(above * (1 - y + y0) + below * (y - y0) - resized[row, column]).max() <= 0.5 + 1e-3


@pytest.mark.parametrize("centred", [False, True])
def test_a_box_finds_its_way_back(centred: bool) -> None:
    image = np.full((100, 200, 3), 50, np.uint8)
    image[30:60, 40:120] = 250
    placed, placement = place_image(image, (64, 64), keep_aspect=True, centred=centred, fill=0)
    assert placed.shape == (64, 64, 3)
    bright = np.argwhere(placed[:, :, 0] > 200)
    (y1, x1), (y2, x2) = bright.min(axis=0), bright.max(axis=0) + 1
    box = placement.boxes_to_image(np.array([[x1, y1, x2, y2]]))[0]
    assert np.abs(box - [40, 30, 120, 60]).max() <= 200 / 64
    top = (64 - 32) // 2 if centred else 0
    assert (placed[:top] == 0).all()
    assert (placed[top + 32 :] == 0).all()


@pytest.mark.parametrize("round_down", [False, True])
def test_an_odd_pixel_is_below_and_scales_are_those_of_whole_pixels(round_down: bool) -> None:
    # 100 x 61 fits 64 x 64 at 0.64, as 64 x 39.04; 100 x 65 as 64 x 41.6.
    image = np.full((61, 100, 3), 50, np.uint8)
    placed, placement = place_image(image, (64, 64), keep_aspect=True, centred=True, fill=114, round_down=round_down)
    assert (placed[:, :, 0] == 50).any(axis=1).nonzero()[0].tolist() == list(range(12, 51))  # 12 above, 13 below
    assert placement.offset == (0.0, 12.0)
    assert placement.scale == ((0.64, 0.64) if round_down else (0.64, 39 / 61))
    higher, _ = place_image(np.full((65, 100, 3), 50, np.uint8), (64, 64), keep_aspect=True, round_down=round_down)
    assert (higher[:, 0, 0] == 50).sum() == (41 if round_down else 42)


@pytest.mark.parametrize("bgr", [False, True])
@pytest.mark.parametrize(("mean", "std"), [(0.0, 255.0), ((1.0, 2.0, 3.0), (4.0, 5.0, 7.0))])
def test_channels_come_first_by_their_definition(bgr: bool, mean: object, std: object) -> None:
    image = np.random.default_rng(4).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    found = channels_first(image, bgr=bgr, mean=mean, std=std)
    assert (found.shape, found.dtype) == ((1, 3, 5, 7), np.float32)
    pixels = ((image[:, :, ::-1] if bgr else image).astype(np.float32) - np.float32(mean)) / np.float32(std)
    np.testing.assert_array_equal(found[0], pixels.transpose(2, 0, 1))


def test_covariances_scale_with_the_square() -> None:
    image = np.zeros((50, 200, 3), np.uint8)
    _, placement = place_image(image, (100, 100), keep_aspect=False)  # x halves, y doubles
    covariances = placement.covariances_to_image(np.array([[[[4.0, 2.0], [2.0, 4.0]]] * 2]))
    np.testing.assert_allclose(covariances[0, 0], [[16.0, 2.0], [2.0, 1.0]])
