"""What pages of the documentation need before their snippets run: files, and names of some pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.docs.holding.files import small_files, small_photos, small_ssd_of_coco, small_yolox

import probox

ROOT = Path(__file__).resolve().parents[3]
COCO_FILES = ("instances_val2017.json", "detections.json")
FILES = {
    "beyond": ("truth.json", "detections.json"),
    "boxes": COCO_FILES,
    "comparing": ("truth.json", "ssdlite.json", "yolox.json"),
    "diagnosis": ("truth.json", "detections.json"),
    "formats_parquet": COCO_FILES,
    "measures_index": ("truth.json", "detections.json"),
}
"""Ground truth, and files of detections."""
NEEDS = {"tutorials_train_with_ppdq": ("torch",),
         "tutorials_make_mc_dropout_work": ("onnx", "onnxruntime")}  # fmt: skip
"""Packages without which the test of a page is skipped."""
OF_A_CLONE = {"own_detector": "examples", "tutorials_make_mc_dropout_work": "examples"}
"""Folders of the repository."""


def hold(page: str, folder: Path) -> dict[str, Any]:
    """Put what a page needs into a folder; return the names that its snippets take as given."""
    name = re.sub(r"\W", "_", page)
    for package in NEEDS.get(name, ()):
        pytest.importorskip(package)
    if name in FILES:
        small_files(folder, *FILES[name])
    if name in OF_A_CLONE:
        place = folder / OF_A_CLONE[name]
        place.parent.mkdir(exist_ok=True)
        place.symlink_to(ROOT / OF_A_CLONE[name])
    more = {"detect": detect, "families": families, "fusion": fusion, "pictures": pictures}
    return more[name](folder) if name in more else {}


def detect(folder: Path) -> dict[str, Any]:
    small_yolox(folder / "yolox_nano.onnx")
    small_photos(folder / "photos", {139: (64, 48), 285: (40, 60)})
    small_ssd_of_coco(folder / "ssd.onnx")
    return {}


def families(folder: Path) -> dict[str, Any]:
    """A graph that segments, and photos."""
    from tests.detect.graphs import fixed_outputs, with_metadata

    columns = np.zeros((1, 4 + 3 + 4, 84), np.float32)
    columns[0, :4, 10], columns[0, 4:7, 10] = [24, 30, 32, 20], [0.9, 0.1, 0.0]
    columns[0, 7:] = 1.0
    prototypes = np.ones((1, 4, 16, 16), np.float32)
    path = folder / "yolov8n-seg.onnx"
    fixed_outputs(path, {"images": [1, 3, 64, 64]}, {"output0": columns, "output1": prototypes})
    with_metadata(path, {"names": str(dict(enumerate(("cup", "dog", "car")))), "imgsz": "[64, 64]", "task": "segment"})
    small_photos(folder / "photos", {139: (64, 48), 285: (40, 60)})
    return {}


def fusion(folder: Path) -> dict[str, Any]:
    """Three passes over an image, and what a head predicts in its own coordinates."""
    rng = np.random.default_rng(0)
    boxes = [np.array([[20.0, 30, 120, 200], [300, 100, 420, 260]]) + rng.normal(0, 2, (2, 4)) for _ in range(3)]
    return {
        "boxes": boxes,
        "label_probs": [np.array([[0.8, 0.1], [0.2, 0.6]])] * 3,
        "names": ["cup", "dog"],
        "predicted": np.array([[70.0, 115, np.log(100), np.log(170)]]),
        "predicted_std": np.array([[2.0, 3, 0.05, 0.04]]),
    }


def pictures(folder: Path) -> dict[str, Any]:
    """Files of COCO's names with photos, the same as tables, and a figure of one's own."""
    from matplotlib.figure import Figure
    from PIL import Image

    small_files(folder, *COCO_FILES, photos="val2017", images=4)
    truth = probox.read_truth(folder / "instances_val2017.json")
    found = probox.read_detections(folder / "detections.json", truth)
    with Image.open(folder / "val2017" / "000000000139.jpg") as image:
        photo = np.asarray(image)
    return {"truth": truth, "detections": found, "photo": photo, "figure": Figure()}
