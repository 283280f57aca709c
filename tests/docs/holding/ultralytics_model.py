"""An Ultralytics model with random weights, two photos and what is on them."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import probox


def load() -> Any:
    """Import ultralytics, quietly and without the network, or skip."""
    pytest.importorskip("torch")
    if any(importlib.util.find_spec(name) is None for name in ("torchvision", "ultralytics")):
        pytest.skip("ultralytics is not installed")
    os.environ.setdefault("YOLO_CONFIG_DIR", str(Path.cwd() / "settings"))
    os.environ["YOLO_OFFLINE"] = "true"
    from tests.torchvision_shim import load_torchvision

    load_torchvision()
    return importlib.import_module("ultralytics")


def hold(folder: Path) -> dict[str, Any]:
    from PIL import Image

    ultralytics = load()
    model = ultralytics.YOLO("yolo11n.yaml")
    model.overrides["imgsz"] = 64
    (folder / "photos").mkdir()
    rng = np.random.default_rng(0)
    for number in (139, 285):
        pixels = rng.integers(0, 255, (48, 64, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "photos" / f"{number:012d}.jpg")
    classes = [model.names[number] for number in range(len(model.names))]
    boxes = [[5, 5, 40, 40], [10, 5, 60, 40]]
    truth = probox.GroundTruth.from_boxes(classes, {139: (64, 48), 285: (64, 48)}, [139, 285], boxes, [0, 1])

    def check(space: dict[str, Any]) -> None:
        found = probox.read_detections(folder / "found.json", truth)
        assert len(found) == len(space["run"].found)
        assert space["run"].images == 2

    return {"model": model, "truth": truth, "check": check}
