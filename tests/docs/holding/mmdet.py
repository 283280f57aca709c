"""What mmdet's detectors return, in objects of the shape of its samples."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.adapters.shapes import DetDataSample
from tests.tensors import Tensor
from tests.worlds import boxes_truth, simulated

import probox


def hold(folder: Path) -> dict[str, Any]:
    truth = boxes_truth(3)
    found = simulated(truth)
    samples = [
        DetDataSample(
            SimpleNamespace(bboxes=Tensor(part.boxes), scores=Tensor(part.scores), labels=Tensor(part.labels)),
            img_id=image_id,
            ori_shape=(340, 440),
        )
        for image_id, part in found.by_image()
    ]
    return {
        "probox": probox,
        "samples": samples,
        "model": SimpleNamespace(dataset_meta={"classes": truth.classes}),
        "truth": truth,
        "check": lambda space: _check(space, found),
    }


def _check(space: dict[str, Any], found: probox.Detections) -> None:
    assert space["found"].image_ids.tolist() == sorted(found.image_ids.tolist())
