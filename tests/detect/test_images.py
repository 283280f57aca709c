"""Finding, reading and placing photos."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from probox.detect.finding import find_images
from probox.detect.images import place_image, read_image, resize
from probox.errors import InputError


def test_ids_are_the_numbers_in_the_names(photos: Path) -> None:
    found = find_images(photos)
    assert [image.image_id for image in found] == [3, 7, 12, 20]
    assert [image.path.name for image in found] == ["3.png", "7.png", "12.png", "20.png"]


def test_ids_run_when_a_name_is_no_number_or_two_are_the_same(photos: Path) -> None:
    (photos / "3.png").rename(photos / "cat.png")
    assert [(image.image_id, image.path.name) for image in find_images(photos)] == [
        (0, "12.png"), (1, "20.png"), (2, "7.png"), (3, "cat.png"),
    ]  # fmt: skip
    (photos / "cat.png").rename(photos / "007.png")
    assert [image.image_id for image in find_images(photos)] == [0, 1, 2, 3]


def test_ids_come_from_the_truth(photos: Path, tmp_path: Path) -> None:
    truth = tmp_path / "truth.json"
    entries = [
        {"id": 900, "file_name": "12.png"},
        {"id": 5, "file_name": "val/7.png"},
        {"id": 6, "file_name": "no.png"},
    ]
    truth.write_text(json.dumps({"images": entries}))
    assert [(image.image_id, image.path.name) for image in find_images(photos, truth)] == [
        (5, "7.png"),
        (900, "12.png"),
    ]
    truth.write_text(json.dumps({"images": entries[2:]}))
    with pytest.raises(InputError, match="none of its images"):
        find_images(photos, truth)
    truth.write_text("[]")
    with pytest.raises(InputError, match="expected COCO ground truth"):
        find_images(photos, truth)


def test_no_folder_and_no_images_are_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file or folder"):
        find_images(tmp_path / "nowhere")
    with pytest.raises(InputError, match="no images"):
        find_images(tmp_path)


def test_any_mode_becomes_rgb(tmp_path: Path) -> None:
    from PIL import Image

    grey = np.arange(12, dtype=np.uint8).reshape(3, 4) * 20
    for mode in ("L", "1", "P", "RGBA", "I;16"):
        path = tmp_path / f"{mode.replace(';', '')}.png"
        image = Image.fromarray(grey.astype(np.uint16) * 257) if mode == "I;16" else Image.fromarray(grey).convert(mode)
        image.save(path)
        assert read_image(path).shape == (3, 4, 3)


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


def test_covariances_scale_with_the_square() -> None:
    image = np.zeros((50, 200, 3), np.uint8)
    _, placement = place_image(image, (100, 100), keep_aspect=False)  # x halves, y doubles
    covariances = placement.covariances_to_image(np.array([[[[4.0, 2.0], [2.0, 4.0]]] * 2]))
    np.testing.assert_allclose(covariances[0, 0], [[16.0, 2.0], [2.0, 1.0]])
