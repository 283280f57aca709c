"""Two images' dictionaries, as torchvision's detectors give and take them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.worlds import boxes_truth, simulated

import probox


def hold(folder: Path) -> dict[str, Any]:
    truth = boxes_truth(2)
    found = simulated(truth)
    ids = truth.image_ids.tolist()
    objects = [truth.image_ids[truth.image_rows] == image_id for image_id in ids]
    rows = [found.image_ids == image_id for image_id in ids]
    return {
        "probox": probox,
        "categories": ["__background__", *truth.classes],
        "image_ids": ids,
        "image_sizes": dict.fromkeys(ids, (440, 340)),
        "targets": [
            {"boxes": truth.boxes[of], "labels": truth.labels[of] + 1, "image_id": image_id}
            for image_id, of in zip(ids, objects, strict=True)
        ],
        "outputs": [
            {"boxes": found.boxes[of], "labels": found.labels[of] + 1, "scores": found.scores[of]} for of in rows
        ],
        "check": lambda space: _check(space, truth),
    }


def _check(space: dict[str, Any], truth: probox.GroundTruth) -> None:
    assert space["truth"].labels.tolist() == truth.labels.tolist()
    assert probox.evaluate(space["truth"], space["found"]).summary()["mAP"] > 0.3
