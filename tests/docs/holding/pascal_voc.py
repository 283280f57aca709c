"""VOCdevkit with annotations and a list of the images of a part; detections by class."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from tests.docs.holding.label_files import agree
from tests.formats.labels import world


def hold(folder: Path) -> dict[str, Any]:
    scene = world.make_scene()
    root, found = world.voc(scene, folder / "made")
    shutil.move(root, folder / "VOCdevkit" / "VOC2007")
    shutil.move(found, folder / "results" / "VOC2007" / "Main")
    world.put(folder / "VOCdevkit/VOC2007/ImageSets/Main/test.txt", "\n".join(scene.images) + "\n")
    return {"check": lambda space: agree(scene, folder, "VOCdevkit/VOC2007:test", "results/VOC2007/Main")}
