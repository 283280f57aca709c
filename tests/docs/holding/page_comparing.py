"""A truth file, the detections of two detectors, and two evaluations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.docs.holding.files import small_files

import probox


def hold(folder: Path) -> dict[str, Any]:
    small_files(folder, "truth.json", "ssdlite.json", "yolox.json")
    a, b = (probox.evaluate(str(folder / "truth.json"), str(folder / name)) for name in ("ssdlite.json", "yolox.json"))
    return {"probox": probox, "result": a, "a": a, "b": b}
