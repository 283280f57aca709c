"""Generated files of LVIS: ground truth and results by seed, the same with every version of Python and NumPy."""

from __future__ import annotations

import random
from typing import Any

MOST = 340
"""Detections in every fourth image, above LVIS' limit of 300."""


def lvis_world(seed: int, images: int = 12, classes: int = 6, most: int = MOST) -> tuple[dict[str, Any], list[Any]]:
    """Return ground truth and results in the format of LVIS, with ties, in shuffled order."""
    uniform = random.Random(seed).random  # the only method whose numbers Python guarantees

    def whole(low: int, high: int) -> int:
        return low + int(uniform() * (high - low))

    def shuffled(values: list[Any]) -> list[Any]:
        keys = [uniform() for _ in values]
        return [values[at] for at in sorted(range(len(values)), key=keys.__getitem__)]

    def category(kind: int) -> int:
        return 3 * kind + 5

    truth: dict[str, Any] = {"images": [], "annotations": [], "categories": []}
    results = []
    for image in shuffled(list(range(1, images + 1))):
        kinds = shuffled(list(range(classes)))
        present = kinds[: whole(0, 4)]
        absent = kinds[len(present) :][: whole(0, 3)]
        partly = shuffled(list(range(classes)))[: whole(0, 3)]
        truth["images"].append({
            "id": image, "width": 640, "height": 480, "neg_category_ids": list(map(category, absent)),
            "not_exhaustive_category_ids": list(map(category, partly)),
        })  # fmt: skip
        boxes = []
        for kind in present:
            for _ in range(whole(1, 5)):
                box = [float(whole(0, 300)), float(whole(0, 250)), float(whole(8, 200)), float(whole(8, 200))]
                boxes.append((box, kind))
                area = box[2] * box[3] * (0.3 + 0.7 * uniform())
                truth["annotations"].append({
                    "id": len(truth["annotations"]) + 1, "image_id": image, "category_id": category(kind), "bbox": box,
                    "area": area,
                })  # fmt: skip
        for _ in range(most if image % 4 == 0 else whole(0, 60)):
            box, kind = [float(whole(*limits)) for limits in [(0, 300)] * 2 + [(4, 200)] * 2], whole(0, classes)
            if boxes and uniform() < 0.4:
                near, kind = boxes[whole(0, len(boxes))]
                box = [max(side + whole(-6, 7), 1.0) for side in near]
                kind = whole(0, classes) if uniform() < 0.2 else kind
            score = whole(1, 60) / 60
            results.append({"image_id": image, "category_id": category(kind), "bbox": box, "score": score})
    truth["categories"] = [
        {"id": category(kind), "name": f"class {kind}", "frequency": "rcf"[kind % 3]}
        for kind in shuffled(list(range(classes)))
    ]
    return truth, shuffled(results)
