"""Which images are worth a look."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox.measures.pdq.resampling import pdq_per_image

__all__ = ["CHOICES", "choose_images", "find_images"]

CHOICES = {
    "worst": "of lowest PDQ",
    "best": "of highest PDQ",
    "false-positives": "with most false positives",
    "missed": "with most missed objects",
    "crowded": "with most objects and detections",
}
"""Ways to choose images, and what each goes by."""


def choose_images(evaluation: Evaluation, choice: str, n: int) -> list[int]:
    """Return the ids of the `n` images that a choice puts first; ties go by id, images with nothing in them last."""
    table, image_ids = pdq_per_image(evaluation), evaluation.dataset.image_ids
    filled = ~np.isnan(table["PDQ"])
    key = {
        "worst": np.nan_to_num(table["PDQ"]),
        "best": -np.nan_to_num(table["PDQ"]),
        "false-positives": -table["FP"],
        "missed": -table["FN"],
        "crowded": -(2 * table["TP"] + table["FP"] + table["FN"]),
    }[choice]
    order = np.lexsort((image_ids, key, ~filled))
    return [int(image_id) for image_id in image_ids[order[:n]]]


def find_images(evaluation: Evaluation, wanted: Sequence[str]) -> list[int]:
    """Return the ids of images given by id or by file name."""
    by_name = {
        name: int(i) for i, name in zip(evaluation.dataset.image_ids, evaluation.dataset.file_names, strict=True)
    }
    by_name.update({name.rsplit("/", 1)[-1]: image_id for name, image_id in list(by_name.items())})
    ids = set(evaluation.dataset.image_ids.tolist())
    found = []
    for text in wanted:
        image_id = int(text) if text.lstrip("-").isdigit() else by_name.get(text)
        if image_id is None or image_id not in ids:
            some = ", ".join(map(str, evaluation.dataset.image_ids[:3].tolist()))
            raise InputError(
                f"no image {text!r} in the evaluation", remedy=f"give an id such as {some}, or a file name"
            )
        found.append(image_id)
    return found
