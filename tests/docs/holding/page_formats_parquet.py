"""Files of COCO's names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.docs.holding.files import small_files


def hold(folder: Path) -> dict[str, Any]:
    small_files(folder, "instances_val2017.json", "detections.json")
    return {}
