"""Files of COCO's names with photos, the same as tables, and a figure of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from tests.docs.holding.files import small_files

import probox


def hold(folder: Path) -> dict[str, Any]:
    from matplotlib.figure import Figure
    from PIL import Image

    small_files(folder, "instances_val2017.json", "detections.json", photos="val2017", images=4)
    truth = probox.read_truth(folder / "instances_val2017.json")
    found = probox.read_detections(folder / "detections.json", truth)
    with Image.open(folder / "val2017" / "000000000139.jpg") as image:
        photo = np.asarray(image)
    return {"truth": truth, "found": found, "photo": photo, "figure": Figure()}
