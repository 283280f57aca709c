"""A truth file, detections, and their evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.docs.holding.files import small_files

import probox


def hold(folder: Path) -> dict[str, Any]:
    small_files(folder, "truth.json", "detections.json")
    return {"result": probox.evaluate(str(folder / "truth.json"), str(folder / "detections.json"))}
