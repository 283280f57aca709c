"""Which images are worth a look."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.evaluation.oddities.checks import check_coverage
from probox.evaluation.oddities.columns import Columns
from probox.evaluation.result import Evaluation
from probox.measures.pdq.resampling import pdq_per_image

__all__ = ["CHOICES", "choose_images", "find_images", "seen_images"]

CHOICES = {
    "worst": "of lowest PDQ",
    "best": "of highest PDQ",
    "false-positives": "with most false positives",
    "missed": "with most missed objects",
    "crowded": "with most objects and detections",
}
"""Ways to choose images, and what each goes by."""

_UNSEEN_TOO = "missed"
"""The choice that also has images that the detector did not see: all that is in them was missed."""


def seen_images(evaluation: Evaluation) -> npt.NDArray[np.bool_]:
    """Return which images of the data set the detector saw, one bool each.

    An image without any detection is taken for one that the detector was not run on if there are many of them while
    the others have several each: the rule by which `evaluate` warns of it. Otherwise all were seen: a detector that is
    rarely sure leaves images empty, too.
    """
    seen = np.ones(len(evaluation.dataset), bool)
    if any(oddity.kind == "images without detections" for oddity in check_coverage(Columns.of_evaluation(evaluation))):
        seen = np.bincount(evaluation.detections.image_rows, minlength=len(seen)) > 0
    return seen


def choose_images(
    evaluation: Evaluation, choice: str, n: int, *, seen: npt.NDArray[np.bool_] | None = None
) -> list[int]:
    """Return the ids of the `n` images that a choice puts first.

    Of the worst with the same PDQ, say 0, those with more mistakes come first; other ties go by id. Images with nothing
    in them come last.

    Parameters
    ----------
    evaluation : Evaluation
        What was measured.
    choice : str
        One of `CHOICES`.
    n : int
        How many; fewer if there are no more.
    seen : (images,) bool, optional
        Images that the detector saw: others are no failures of it and are left out of every choice but ``missed``.
        Default: `seen_images`, of all detections that were evaluated.
    """
    table, image_ids = pdq_per_image(evaluation), evaluation.dataset.image_ids
    filled = ~np.isnan(table["PDQ"])
    key = {
        "worst": np.nan_to_num(table["PDQ"]),
        "best": -np.nan_to_num(table["PDQ"]),
        "false-positives": -table["FP"],
        "missed": -table["FN"],
        "crowded": -(2 * table["TP"] + table["FP"] + table["FN"]),
    }[choice]
    mistakes = table["FP"] + table["FN"] if choice == "worst" else np.zeros(len(image_ids))
    order = np.lexsort((image_ids, -mistakes, key, ~filled))
    if choice != _UNSEEN_TOO:
        order = order[(seen_images(evaluation) if seen is None else seen)[order]]
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
