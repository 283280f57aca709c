"""A tiny D-FINE with random weights, and what it says of a batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests import frameworks
from tests.adapters.tiny_models import CLASSES, SIDE, tiny_model

import probox


def hold(folder: Path) -> dict[str, Any]:
    model, torch = tiny_model("DFine"), frameworks.torch()
    with torch.no_grad():
        outputs = model(pixel_values=torch.randn(2, 3, SIDE, SIDE))
    sizes = {7: (640, 480), 9: (500, 375)}
    truth = probox.GroundTruth.from_boxes(CLASSES, sizes, [7], [[10, 20, 50, 60]], [0])
    return {
        "probox": probox,
        "model": model,
        "outputs": outputs,
        "image_ids": [7, 9],
        "truth": truth,
        "check": lambda space: _check(space["found"]),
    }


def _check(found: probox.Detections) -> None:
    assert len(found) == 24
    assert found.covariances is not None
    assert found.classes == CLASSES
    assert found.boxes[:12, [0, 2]].max() > 64
