"""A model's predictions and targets in torchvision's dictionaries, an Ultralytics model, and a Lightning module."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

import pytest
from examples import lightning_callback, ultralytics_callback
from tests.docs.holding.ultralytics_model import load


def hold(folder: Path) -> dict[str, Any]:
    ultralytics = load()
    if importlib.util.find_spec("lightning") is None:
        pytest.skip("lightning is not installed")
    torch, lightning = importlib.import_module("torch"), importlib.import_module("lightning")
    torch.set_num_threads(1)
    module = lightning_callback.make_module()
    images = lightning_callback.make_images(8, 1)
    loader = torch.utils.data.DataLoader(images, batch_size=4, collate_fn=lightning_callback.collate)

    def predict(pixels: Any) -> list[dict[str, Any]]:
        with torch.no_grad():
            return module.validation_step((pixels, None), 0)["preds"]

    ultralytics_callback.make_data(folder)
    yolo = ultralytics.YOLO("yolov8n.yaml")
    small = {"epochs": 1, "imgsz": 64, "workers": 0, "device": "cpu", "plots": False, "amp": False, "verbose": False}
    yolo.overrides.update(project=str(folder))
    train = yolo.train
    yolo.train = lambda **given: train(**(given | small))  # the same, in seconds

    def check(space: dict[str, Any]) -> None:
        assert 0.0 < space["metric"].compute()["PDQ"] < 1.0
        assert len(space["metric"]) == 8
        assert len(space["pdq"].history) == 2
        assert 0.0 < float(space["trainer"].callback_metrics["val_PDQ"]) < 1.0

    return {
        "classes": ["background", *lightning_callback.CLASSES],
        "val_loader": loader,
        "model": predict,
        "yolo": yolo,
        "module": module,
        "Trainer": lambda **given: lightning.Trainer(
            **given, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False
        ),
        "train_loader": loader,
        "check": check,
    }
