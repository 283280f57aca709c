"""Files of COCO's names, and the built-in scene."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.docs.holding.files import small_files

from probox.demo import make_demo


def hold(folder: Path) -> dict[str, Any]:
    small_files(folder, "instances_val2017.json", "detections.json")
    make_demo().save(folder / "demo")
    return {}
