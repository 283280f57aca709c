"""A truth file, and two files of detections in another folder, the second of fewer detections."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import probox

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "mixed"


def hold(folder: Path) -> dict[str, Any]:
    shutil.copy(GOLDEN / "ground_truth.json", folder / "truth.json")
    told = json.loads((GOLDEN / "detections.json").read_text())
    (folder / "runs").mkdir()
    (folder / "runs" / "17.json").write_text(json.dumps(told))
    fewer = [image[:2] for image in told["detections"]]
    (folder / "runs" / "18.json").write_text(json.dumps(told | {"detections": fewer}))

    def check(space: dict[str, Any]) -> None:
        for name, result in space["results"].items():
            assert probox.Evaluation.load(folder / "results" / name).pdq == result.pdq
        assert space["result"].pdq == space["results"]["SSD"].pdq != space["results"]["YOLO"].pdq

    return {"check": check}
