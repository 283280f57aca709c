"""Results as Ultralytics returns them, of two photos."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from tests.worlds import boxes_truth, simulated


def hold(folder: Path) -> dict[str, Any]:
    truth = boxes_truth(2)
    truth = truth.replace(dataset=truth.dataset.replace(file_names=("val/one.jpg", "val/two.jpg")))
    found = simulated(truth)
    results = []
    for image_id, name in zip(truth.image_ids, ("photos/one.jpg", "photos/two.jpg"), strict=True):
        rows = found.image_ids == image_id
        data = np.column_stack([found.boxes[rows], found.scores[rows], found.labels[rows]])
        results.append(
            SimpleNamespace(
                boxes=SimpleNamespace(data=data),
                names=dict(enumerate(truth.classes)),
                orig_shape=(340, 440),
                path=name,
                obb=None,
                probs=None,
            )
        )

    def check(space: dict[str, Any]) -> None:
        np.testing.assert_array_equal(space["found"].boxes, found.boxes)
        np.testing.assert_array_equal(space["found"].image_ids, found.image_ids)

    return {"truth": truth, "results": results, "check": check}
