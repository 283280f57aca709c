"""A custom detector with probox's uncertainties: it finds coloured blobs with NumPy.

    python examples/own_detector.py [FOLDER]

draws photos into FOLDER, runs the detector on them and evaluates its detections. The same on the command line, with
progress and resumption after an interruption:

    probox detect python:examples/own_detector.py:make --images FOLDER/photos --out found.coco.json \
        --uncertainty nms-clusters
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

import probox
from probox.detect import Candidates, Dropout, Options, Traits, detect_images, find_images

COLOURS = {"red": (200, 40, 40), "blue": (40, 40, 200)}
LEVELS = (0.25, 0.35, 0.45, 0.55, 0.65)
"""Similarity thresholds of pixels in a blob: each level gives candidates, many for one object."""

NOISE = 10.0
"""Standard deviation of the noise in random passes, in grey levels."""

Image = npt.NDArray[np.uint8]


class BlobDetector:
    """Detect regions of known colours, with the attributes that `probox.detect` requires."""

    def __init__(self, *, batch: int = 1, dropout: Dropout | None = None) -> None:
        self.batch = batch
        self.seed = 0 if dropout is None else dropout.seed
        self.family = Traits(name="blobs", classes=tuple(COLOURS), labels="best", nms_iou=0.5)

    @property
    def fingerprint(self) -> str:
        """Identify the detector by its constants and version; a network would hash its weights."""
        return hashlib.sha256(repr((1, COLOURS, LEVELS, NOISE, self.seed)).encode()).hexdigest()

    def candidates(self, images: Sequence[Image]) -> list[Candidates]:
        """Return the boxes of each image before suppression, in pixels, with a probability per class."""
        return [_blobs(image.astype(np.float64)) for image in images]

    def sample(self, images: Sequence[Image], passes: int, image_ids: Sequence[int]) -> list[list[Candidates]]:
        """Return candidates of several passes with noise, seeded by image and pass."""
        found = []
        for image, image_id in zip(images, image_ids, strict=True):
            draws = [np.random.default_rng((self.seed, image_id, number)) for number in range(passes)]
            found.append([_blobs(image + NOISE * draw.standard_normal(image.shape)) for draw in draws])
        return found


def make(*, batch: int = 1, dropout: Dropout | None = None) -> BlobDetector:
    """Return the detector; `probox detect python:own_detector.py:make` calls this with its options."""
    return BlobDetector(batch=batch, dropout=dropout)


def _blobs(image: npt.NDArray[np.float64]) -> Candidates:
    colours = np.array(list(COLOURS.values()), np.float64)
    alike = np.exp(-(((image[:, :, None] - colours) / 60.0) ** 2).mean(axis=3))  # (H, W, classes), 1 is the colour
    boxes, scores = [], []
    for level in LEVELS:
        for column in range(len(COLOURS)):
            for rows, columns in _regions(alike[:, :, column] > level):
                # A pixel covers the unit square around its centre: the box ends where the last pixel does.
                box = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
                if len(rows) >= 16:
                    boxes.append(box)
                    scores.append(alike[rows, columns].mean(axis=0))
    return Candidates(
        np.array(boxes, np.float64).reshape(-1, 4), np.array(scores, np.float32).reshape(-1, len(COLOURS))
    )


def _regions(mask: npt.NDArray[np.bool_]) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Return rows and columns of the pixels of each region; empty columns or rows separate regions."""
    found = []
    for left, right in _runs(mask.any(axis=0)):
        for top, bottom in _runs(mask[:, left:right].any(axis=1)):
            rows, columns = np.nonzero(mask[top:bottom, left:right])
            found.append((rows + top, columns + left))
    return found


def _runs(line: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the starts and ends of runs of true values."""
    changes = np.flatnonzero(np.diff(np.concatenate([[0], line.astype(np.int8), [0]])))
    return list(zip(changes[::2].tolist(), changes[1::2].tolist(), strict=True))


def draw_photos(folder: Path, photos: int = 6) -> probox.GroundTruth:
    """Draw ellipses with soft edges on noisy background; return the ground truth."""
    from PIL import Image as Pillow

    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    sizes, object_image, boxes, labels = {}, [], [], []
    for image_id in range(1, photos + 1):
        pixels = rng.normal(130.0, 8.0, (80, 120, 3))
        y, x = np.mgrid[:80, :120]
        for label, left in enumerate((8, 66)):
            w, h = rng.integers(24, 44, 2)
            x1, y1 = left + int(rng.integers(0, 8)), int(rng.integers(4, 80 - h - 4))
            distance = np.hypot((x - x1 - w / 2 + 0.5) / (w / 2), (y - y1 - h / 2 + 0.5) / (h / 2))
            share = np.clip((1.0 - distance) * rng.uniform(0.8, 2.5) + 0.5, 0.0, 1.0)[:, :, None]
            pixels += share * (np.array(list(COLOURS.values())[label]) - pixels)
            object_image.append(image_id)
            boxes.append([x1, y1, x1 + w, y1 + h])
            labels.append(label)
        pixels *= rng.uniform(0.8, 1.2)  # the light
        Pillow.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(folder / f"{image_id:06d}.png")
        sizes[image_id] = (120, 80)
    return probox.GroundTruth.from_boxes(list(COLOURS), sizes, object_image, boxes, labels)


def main(folder: Path) -> dict[str, float]:
    """Run the detector over photos, with several uncertainties; return the PDQ of each."""
    truth = draw_photos(folder / "photos")
    scores = {}
    for uncertainty in ("none", "constant", "nms-clusters", "mc-dropout", "flip-scale"):
        out = folder / f"{uncertainty}.coco.json"
        options = Options(uncertainty=uncertainty, passes=10, score_threshold=0.3)
        detect_images(BlobDetector(), find_images(folder / "photos"), out, options)
        result = probox.evaluate(truth, probox.read_detections(out, truth))
        scores[uncertainty] = result.pdq
        print(f"{uncertainty:14} PDQ {100 * result.pdq:5.1f}%")
    return scores


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()))
