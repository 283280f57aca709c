"""supervision's detections of a photo, and a table of our own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from tests import frameworks

import probox


def hold(folder: Path) -> dict[str, Any]:
    library = frameworks.supervision()
    detections = library.Detections(
        xyxy=np.array([[10.0, 20, 50, 60]]), confidence=np.array([0.8]), class_id=np.array([1])
    )
    unsure = probox.Detections.from_scores(
        [[30, 30, 90, 70]], [0.8], ["dog"], classes=["cup", "dog"], image_ids=7, std=4
    )
    return {
        "detections": detections,
        "classes": ["cup", "dog"],
        "image": np.zeros((100, 120, 3), np.uint8),
        "unsure": unsure,
        "check": _check,
    }


def _check(space: dict[str, Any]) -> None:
    assert space["found"].labels.tolist() == [1]
    lit = space["scene"].any(axis=2)
    assert lit[70 - 12, 90]  # 3 sigma above the corner
    assert not lit[70 - 20, 90 + 3]
