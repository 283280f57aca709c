"""A results file as probdet writes it, the same in memory, and the truth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from tests.worlds import boxes_truth, simulated

import probox


def hold(folder: Path) -> dict[str, Any]:
    truth = boxes_truth(3)
    found = simulated(truth)
    entries = [
        {
            "image_id": int(found.image_ids[row]),
            "category_id": int(found.labels[row]) + 1,
            "bbox": [*found.boxes[row, :2].tolist(), *found.extents[row].tolist()],
            "score": float(found.scores[row]),
            "cls_prob": [*found.label_probs[row].tolist(), 0.0],
            "bbox_covar": np.diag([4.0, 4.0, 5.0, 5.0]).tolist(),
        }
        for row in range(len(found))
    ]
    (folder / "coco_instances_results.json").write_text(json.dumps(entries))
    (folder / "truth.json").write_text(json.dumps(_coco(truth)))
    return {"probox": probox, "entries": entries, "truth": truth, "check": _check}


def _coco(truth: probox.GroundTruth) -> dict[str, Any]:
    sides = zip(truth.image_ids.tolist(), truth.dataset.shapes.tolist(), strict=True)
    return {
        "images": [{"id": image_id, "width": width, "height": height} for image_id, (width, height) in sides],
        "categories": [{"id": number + 1, "name": name} for number, name in enumerate(truth.classes)],
        "annotations": [
            {
                "id": row,
                "image_id": int(truth.image_ids[truth.image_rows[row]]),
                "category_id": int(truth.labels[row]) + 1,
                "bbox": [*truth.boxes[row, :2].tolist(), *truth.extents[row].tolist()],
            }
            for row in range(len(truth))
        ],
    }


def _check(space: dict[str, Any]) -> None:
    found = space["found"]
    assert found.covariances[0].tolist() == [[[4, 0], [0, 4]], [[9, 0], [0, 9]]]
    assert found.notes == ()
