"""A truth file and detections."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.docs.holding.files import small_files


def hold(folder: Path) -> dict[str, Any]:
    small_files(folder, "truth.json", "detections.json")
    return {}
