"""A photo that its camera marked to be turned is turned alike by detectors, pictures and pages."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from probox.detect import read_image
from probox.explorer.page import embed_photos
from probox.files.photos import load_photo
from probox.pictures.standalone import read_standalone


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    """A photo of 60 x 40 stored pixels, its left half white, to be turned clockwise."""
    pixels = np.zeros((40, 60, 3), np.uint8)
    pixels[:, :30] = 255
    exif = Image.Exif()
    exif[0x0112] = 6
    path = tmp_path / "photos" / "7.jpg"
    path.parent.mkdir()
    Image.fromarray(pixels).save(path, exif=exif, quality=95)
    return path


@pytest.mark.parametrize(("size", "shape"), [((40, 60), (60, 40, 3)), ((60, 40), (40, 60, 3))])
def test_the_truth_s_size_decides_for_all(photo: Path, size: tuple[int, int], shape: tuple[int, int, int]) -> None:
    (address,), failures = embed_photos([photo], [size])
    assert failures == []
    page = np.asarray(Image.open(io.BytesIO(base64.b64decode(address.split(",")[1]))))
    for seen in (read_image(photo, size), load_photo(photo, size), page):
        assert seen.shape == shape
        assert seen[0, 0].min() > 200
        assert seen[-1, -1].max() < 50


def test_without_truth_it_is_upright_for_all(photo: Path, tmp_path: Path) -> None:
    found = tmp_path / "found.coco.json"
    found.write_text('[{"image_id": 7, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5}]')
    assert read_image(photo).shape == load_photo(photo).shape == (60, 40, 3)
    assert read_standalone(str(found), photo.parent).sizes == {7: (40, 60)}
