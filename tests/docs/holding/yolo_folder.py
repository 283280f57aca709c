"""A data set as ultralytics wants it, and what its predict wrote."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from tests.docs.holding.label_files import expected
from tests.formats.labels import world


def hold(folder: Path) -> dict[str, Any]:
    scene = world.make_scene()
    truth, found = world.yolo(scene, folder / "made")
    shutil.copytree(truth.parent, folder, dirs_exist_ok=True)
    shutil.copytree(found, folder / "runs" / "detect" / "predict" / "labels")

    def check(space: dict[str, Any]) -> None:
        assert space["probox"].evaluate(space["truth"], space["found"]).pdq == expected(scene, folder)

    return {"check": check}
