"""Detections as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.worlds import boxes_truth, simulated

import probox


def hold(folder: Path) -> dict[str, Any]:
    return {"probox": probox, "found": simulated(boxes_truth(4))}
