"""What sections about label files share: the PDQ that the same scene has in COCO's files, and a command's PDQ."""

from __future__ import annotations

from pathlib import Path

from tests.formats.labels import world

import probox

__all__ = ["agree", "expected"]


def expected(scene: world.Scene, folder: Path) -> float:
    """Return the PDQ of COCO's files."""
    truth_file, found = world.coco(scene, folder / "coco")
    truth = probox.read_truth(truth_file)
    return probox.evaluate(truth, probox.read_detections(found, truth)).pdq


def agree(scene: world.Scene, folder: Path, truth: str, found: str) -> None:
    """Raise unless the files that a snippet names have the PDQ of COCO's."""
    table = probox.read_truth(folder / truth)
    assert probox.evaluate(table, probox.read_detections(folder / found, table)).pdq == expected(scene, folder)
