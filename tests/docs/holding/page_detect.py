"""A small YOLOX, and photos."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.docs.holding.files import small_photos, small_yolox


def hold(folder: Path) -> dict[str, Any]:
    small_yolox(folder / "yolox_nano.onnx")
    small_photos(folder / "photos", {139: (64, 48), 285: (40, 60)})
    return {}
