"""Open Images' boxes, classes and images, and a CSV file of detections."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.docs.holding.label_files import agree
from tests.formats.labels import world


def hold(folder: Path) -> dict[str, Any]:
    scene = world.make_scene(empty=False)
    truth, found = world.open_images(scene, folder)
    return {"check": lambda space: agree(scene, folder, truth.name, found.name)}
