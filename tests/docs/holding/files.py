"""A truth file, detection files and photos under whatever names a page gives them; and small detectors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

__all__ = ["GOLDEN", "small_files", "small_photos", "small_ssd_of_coco", "small_yolox"]

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "mixed"
SHIFT = 39
"""Added to the ids of images, so that the first is 139."""


def small_files(folder: Path, truth: str, *found: str, photos: str | None = None, images: int = 40) -> None:
    """Write a truth file, detections of its images, of which the second file has fewer, and perhaps photos."""
    told = json.loads((GOLDEN / "ground_truth.json").read_text())
    told["images"] = sorted(told["images"], key=lambda image: image["id"])[:images]
    kept_ids = {image["id"] for image in told["images"]}
    told["annotations"] = [one for one in told["annotations"] if one["image_id"] in kept_ids]
    for image in told["images"]:
        image["id"] += SHIFT
        image["file_name"] = f"{image['id']:012d}.jpg"
    for annotation in told["annotations"]:
        annotation["image_id"] += SHIFT
    (folder / truth).write_text(json.dumps(told))
    detections = json.loads((GOLDEN / "detections.json").read_text())
    for number, name in enumerate(found):
        kept = [image[: None if number == 0 else 3] for image in detections["detections"][:images]]
        (folder / name).write_text(json.dumps(detections | {"detections": kept}))
    if photos is not None:
        small_photos(folder / photos, {image["id"]: (image["width"], image["height"]) for image in told["images"]})


def small_photos(folder: Path, sizes: dict[int, tuple[int, int]]) -> None:
    """Write a photo of each size, called as COCO calls its own."""
    from PIL import Image

    folder.mkdir()
    rng = np.random.default_rng(1)
    for number, size in sizes.items():
        coarse = Image.fromarray(rng.integers(0, 255, (6, 6, 3), dtype=np.uint8))
        coarse.resize(size, Image.Resampling.BICUBIC).save(folder / f"{number:012d}.jpg")


def small_yolox(path: Path) -> None:
    """Write a graph that says of every photo what a YOLOX of COCO's classes might."""
    from tests.detect.graphs import fixed_outputs

    rows = np.zeros((1, 189, 85), np.float32)  # 144 + 36 + 9 cells of strides 8, 16 and 32
    for cell, score in ((50, 0.9), (51, 0.8), (62, 0.7)):
        rows[0, cell, :4], rows[0, cell, 4], rows[0, cell, 5 + 16] = [0.5, 0.5, 1.2, 1.0], score, 1.0
    fixed_outputs(path, {"images": [1, 3, 96, 96]}, {"output": rows})


def small_ssd_of_coco(path: Path) -> None:
    """Write a tiny SSD of COCO's 80 classes, with random weights."""
    from tests.detect.graphs import small_ssd

    small_ssd(path, classes=80)
