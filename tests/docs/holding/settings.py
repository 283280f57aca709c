"""Two files, and what a paper says of how they were measured."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from probox.convention import Convention

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "mixed"


def hold(folder: Path) -> dict[str, Any]:
    shutil.copy(GOLDEN / "ground_truth.json", folder / "truth.json")
    shutil.copy(GOLDEN / "detections.json", folder / "detections.json")

    def check(space: dict[str, Any]) -> None:
        published, plain = space["published"], space["plain"]
        assert published.convention == Convention(label_threshold=0.5, fixed_variance=10)
        assert published.convention.describe() == "reference, fixed variance 10, label threshold 0.5"
        assert plain.convention == Convention.preset("paper", assignment="greedy")
        assert plain.measures == ("pdq", "map")

    return {"check": check}
