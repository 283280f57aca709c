"""What a predictor returns, in objects of the shape of detectron2's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.adapters.shapes import Boxes, Instances
from tests.tensors import Tensor
from tests.worlds import boxes_truth, simulated

import probox


def hold(folder: Path) -> dict[str, Any]:
    truth = boxes_truth(3)
    found = simulated(truth)
    outputs = [
        {
            "instances": Instances(
                (340, 440),
                pred_boxes=Boxes(Tensor(part.boxes)),
                scores=Tensor(part.scores),
                pred_classes=Tensor(part.labels),
            )
        }
        for _, part in found.by_image()
    ]
    return {
        "probox": probox,
        "outputs": outputs,
        "thing_classes": list(truth.classes),
        "image_ids": truth.image_ids.tolist(),
        "truth": truth,
        "check": lambda space: _check(space, found),
    }


def _check(space: dict[str, Any], found: probox.Detections) -> None:
    assert space["found"].boxes.tolist() == found.boxes.tolist()
