"""A small SSD, and photos."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.docs.holding.files import small_photos, small_ssd_of_coco


def hold(folder: Path) -> dict[str, Any]:
    small_ssd_of_coco(folder / "ssd.onnx")
    small_photos(folder / "photos", {139: (64, 48), 285: (40, 60)})
    return {}
