"""Evaluate with Ray: one task per part, or batches of a data set of predictions.

    python examples/ray_evaluate.py TRUTH DETECTIONS [--parts 16] [--out DIR]

evaluates each part of the files in its own task. --batches evaluates batches of a Ray data set with one row per image,
as inference in Ray Data returns it. Results are bit-identical to those of one process.

Requires ray[data]. RAY_ADDRESS selects a cluster: probox must be installed on its machines, and the files must have the
same path on all of them.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import ray

import probox

Batch = dict[str, Any]


def evaluate_part(row: Batch, truth: str, found: str, parts: int, keep: str) -> Batch:
    """Evaluate one part of the files in a worker; Ray numbers rows from 0."""
    part = f"{row['id'] + 1}/{parts}"
    result = probox.evaluate(truth, found, part=part, keep=keep, threads=1)
    return {"part": part, "result": result.to_bytes()}


def evaluate_files(asked: argparse.Namespace) -> Any:
    """Evaluate two files: one row and one task of one processor per part."""
    given = {"truth": asked.truth, "found": asked.detections, "parts": asked.parts, "keep": asked.keep}
    numbers = ray.data.range(asked.parts, override_num_blocks=asked.parts)
    rows = numbers.map(evaluate_part, fn_kwargs=given, num_cpus=1)
    return probox.merge([probox.from_bytes(row["result"]) for row in rows.iter_rows()])


class Judge:
    """Evaluates batches of predictions. Each worker reads the ground truth once."""

    def __init__(self, truth: str, classes: tuple[str, ...]) -> None:
        self.truth = probox.read_truth(truth)
        self.classes = classes

    def __call__(self, batch: Batch) -> Batch:
        counts = [len(boxes) for boxes in batch["boxes"]]
        columns = {name: np.concatenate(list(batch[name])) for name in batch if name != "image_id"}
        found = probox.Detections(classes=self.classes, image_ids=np.repeat(batch["image_id"], counts), **columns)
        result = probox.evaluate(self.truth.select_images(batch["image_id"].tolist()), found, threads=1)
        return {"result": [result.to_bytes()]}


def evaluate_batches(asked: argparse.Namespace) -> Any:
    """Evaluate a data set of predictions with one row per image, including images without detections."""
    truth = probox.read_truth(asked.truth)
    found = probox.read_detections(asked.detections, truth)
    predictions = ray.data.from_items(rows_of(found, truth))  # in your pipeline: the result of the model's map_batches
    given, two = (asked.truth, found.classes), ray.data.ActorPoolStrategy(size=2)
    judged = predictions.map_batches(Judge, fn_constructor_args=given, batch_size=4, compute=two)
    result = probox.merge([probox.from_bytes(row["result"]) for row in judged.iter_rows()])
    # Batches are not parts, so merge cannot detect missing ones: an image without a row would not be counted.
    missing = set(truth.image_ids.tolist()) - set(result.dataset.image_ids.tolist())
    if missing:
        raise SystemExit(f"images without a row: {len(missing)}, the first is image {min(missing)}")
    return result


def rows_of(found: probox.Detections, truth: probox.GroundTruth) -> list[Batch]:
    """Return one row with the detections of each image of the ground truth."""
    rows = []
    for image_id in truth.image_ids.tolist():
        own = found[found.image_ids == image_id]
        row = {"image_id": image_id, "boxes": own.boxes, "label_probs": own.label_probs}
        rows.append(row if own.covariances is None else row | {"covariances": own.covariances})
    return rows


def main() -> None:
    """Evaluate, print and save."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("truth", type=absolute, help="files of any format")
    options.add_argument("detections", type=absolute)
    options.add_argument("--parts", type=int, default=16)
    options.add_argument("--batches", action="store_true", help="evaluate a data set of predictions, not files")
    options.add_argument("--keep", default="all", choices=("summary", "matches", "all"), help="data stored per part")
    options.add_argument("--out", help="save the merged result in this folder")
    asked = options.parse_args()

    alone = {"num_cpus": 2, "include_dashboard": False}
    ray.init(log_to_driver=False, **({} if "RAY_ADDRESS" in os.environ else alone))
    try:
        result = evaluate_batches(asked) if asked.batches else evaluate_files(asked)
    finally:
        ray.shutdown()
    print(result)
    if asked.out:
        result.save(asked.out)


def absolute(path: str) -> str:
    """Return an absolute path: workers may have another current folder."""
    return path if "://" in path else str(Path(path).absolute())


if __name__ == "__main__":
    main()
