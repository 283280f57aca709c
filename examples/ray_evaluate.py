"""One evaluation by Ray: a task for each part, or the batches of a data set of predictions.

    python examples/ray_evaluate.py TRUTH FOUND [--parts 16] [--out DIR]

evaluates each part of the files in a task of its own. With --batches the detections come as Ray has them after
inference, as a data set with one row per image, and are evaluated a batch at a time. Both print what one process would,
to the bit.

Needs ray[data]. Where RAY_ADDRESS names a cluster, that cluster does it: probox must be installed on its machines, and
the files must lie where all of them see them.
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
    """Evaluate one part of the files, in a worker; Ray counts rows from 0."""
    part = f"{row['id'] + 1}/{parts}"
    result = probox.evaluate(truth, found, part=part, keep=keep, threads=1)
    return {"part": part, "result": result.to_bytes()}


def evaluate_files(asked: argparse.Namespace) -> Any:
    """Return the whole of two files: as many rows as there are parts, each a task, each of one processor."""
    given = {"truth": asked.truth, "found": asked.found, "parts": asked.parts, "keep": asked.keep}
    numbers = ray.data.range(asked.parts, override_num_blocks=asked.parts)
    rows = numbers.map(evaluate_part, fn_kwargs=given, num_cpus=1)
    return probox.merge([probox.from_bytes(row["result"]) for row in rows.iter_rows()])


class Judge:
    """Evaluates batches of predictions; a worker reads the ground truth once."""

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
    """Return the whole of a data set of predictions: one row per image, also of images where nothing was found."""
    truth = probox.read_truth(asked.truth)
    found = probox.read_detections(asked.found, truth)
    predictions = ray.data.from_items(rows_of(found, truth))  # in your pipeline: what the model's map_batches returns
    given, two = (asked.truth, found.classes), ray.data.ActorPoolStrategy(size=2)
    judged = predictions.map_batches(Judge, fn_constructor_args=given, batch_size=4, compute=two)
    result = probox.merge([probox.from_bytes(row["result"]) for row in judged.iter_rows()])
    # The join of parts knows which are missing. These are no parts: an image without a row would be no image at all.
    missing = set(truth.image_ids.tolist()) - set(result.dataset.image_ids.tolist())
    if missing:
        raise SystemExit(f"images without a row: {len(missing)}, the first is image {min(missing)}")
    return result


def rows_of(found: probox.Detections, truth: probox.GroundTruth) -> list[Batch]:
    """Return the detections of each image of the truth as a row."""
    rows = []
    for image_id in truth.image_ids.tolist():
        own = found[found.image_ids == image_id]
        row = {"image_id": image_id, "boxes": own.boxes, "label_probs": own.label_probs}
        rows.append(row if own.covariances is None else row | {"covariances": own.covariances})
    return rows


def main() -> None:
    """Evaluate, print and keep."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("truth", type=absolute, help="files of any format")
    options.add_argument("found", type=absolute)
    options.add_argument("--parts", type=int, default=16)
    options.add_argument("--batches", action="store_true", help="a data set of predictions instead of parts of files")
    options.add_argument("--keep", default="all", choices=("summary", "matches", "all"), help="what a part keeps")
    options.add_argument("--out", help="keep the joined result in this folder")
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
    """Return a path that means the same in workers, whose current folder may be another."""
    return path if "://" in path else str(Path(path).absolute())


if __name__ == "__main__":
    main()
