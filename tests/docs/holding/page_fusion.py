"""Three passes over an image, and what a head predicts in its own coordinates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


def hold(folder: Path) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    boxes = [np.array([[20.0, 30, 120, 200], [300, 100, 420, 260]]) + rng.normal(0, 2, (2, 4)) for _ in range(3)]
    return {
        "boxes": boxes,
        "label_probs": [np.array([[0.8, 0.1], [0.2, 0.6]])] * 3,
        "names": ["cup", "dog"],
        "predicted": np.array([[70.0, 115, np.log(100), np.log(170)]]),
        "predicted_std": np.array([[2.0, 3, 0.05, 0.04]]),
    }
