"""Ground truth and detections, as tables and as files."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from tests.worlds import boxes_truth, simulated

import probox
from probox.formats import write_coco_results


def hold(folder: Path) -> dict[str, Any]:
    pytest.importorskip("pandas")
    truth = boxes_truth(4)
    found = simulated(truth, miss_rate=0.2, false_per_image=1)
    write_coco_results(folder / "detections.json", found, truth.dataset)
    _write_truth(folder / "truth.json", truth)

    def check(space: dict[str, Any]) -> None:
        result = space["result"]
        assert len(space["both"]) == result.tp > 0
        assert len(space["worst"]) > 0
        assert len(space["missed"]) <= result.fn
        assert (space["doubtful"]["sigma_x1"] > 3).all()
        with open(folder / "tables" / "detections.csv", newline="") as file:
            assert len(list(csv.DictReader(file))) == len(space["detections"])

    return {"probox": probox, "truth": truth, "found": found, "check": check}


def _write_truth(path: Path, truth: probox.GroundTruth) -> None:
    import json

    rows = zip(truth.image_rows.tolist(), truth.labels.tolist(), truth.boxes.tolist(), strict=True)
    data = {
        "images": [
            {"id": image_id, "width": width, "height": height}
            for image_id, (width, height) in zip(truth.image_ids.tolist(), truth.dataset.shapes.tolist(), strict=True)
        ],
        "categories": [{"id": number + 1, "name": name} for number, name in enumerate(truth.classes)],
        "annotations": [
            {
                "id": number + 1, "image_id": int(truth.image_ids[row]), "category_id": label + 1, "iscrowd": 0,
                "bbox": [x1, y1, x2 - x1, y2 - y1], "area": (x2 - x1) * (y2 - y1),
                "segmentation": [[x1, y1, x2, y1, x2, y2, x1, y2]],
            }
            for number, (row, label, (x1, y1, x2, y2)) in enumerate(rows)
        ],
    }  # fmt: skip
    path.write_text(json.dumps(data), encoding="utf-8")
