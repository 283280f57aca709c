"""A graph that segments, and photos."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from tests.docs.holding.files import small_photos


def hold(folder: Path) -> dict[str, Any]:
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
