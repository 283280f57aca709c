"""A truth file and the detections of two detectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.docs.holding.files import small_files


def hold(folder: Path) -> dict[str, Any]:
    small_files(folder, "truth.json", "ssdlite.json", "yolox.json")
    return {}
