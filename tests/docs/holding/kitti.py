"""KITTI's training folder, and a folder of results."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from tests.docs.holding.label_files import agree
from tests.formats.labels import world


def hold(folder: Path) -> dict[str, Any]:
    scene = world.make_scene()
    root, found = world.kitti(scene, folder / "made")
    shutil.move(root, folder / "kitti" / "training")
    shutil.move(found, folder / "results" / "data")
    return {"check": lambda space: agree(scene, folder, "kitti/training", "results/data")}
