"""Which images are worth a look."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.evaluation.oddities.checks import check_coverage
from probox.evaluation.oddities.columns import Columns
from probox.evaluation.result import Evaluation
from probox.measures.pdq.pdq_measure import pdq_per_image

__all__ = ["CHOICES", "choose_images", "find_images", "lost_points", "seen_images"]

CHOICES = {
    "worst": "with most lost points",
    "best": "of highest PDQ",
    "false-positives": "with most false positives",
    "missed": "with most missed objects",
    "crowded": "with most objects and detections",
}
"""Ways to choose images, and what each goes by."""

_UNSEEN_TOO = "missed"
"""The choice that also has images that the detector did not see: all that is in them was missed."""

_LEAST = 1e-9
"""Lost points up to this are rounding of sums."""


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


def lost_points(evaluation: Evaluation) -> npt.NDArray[np.float64]:
    """Return the points of PDQ that each image lost: TP + FP + FN minus the sum of its pPDQ.

    Their sum over all images, divided by TP + FP + FN of all images, is 1 - PDQ (see `probox.analysis.budget`). A
    false positive counts as its confidence where the convention says so.
    """
    sums = evaluation.image_sums
    return np.asarray(sums["TP"] + sums["cost"] + sums["FN"] - sums["pPDQ"])


def choose_images(
    evaluation: Evaluation, choice: str, n: int, *, seen: npt.NDArray[np.bool_] | None = None
) -> list[int]:
    """Return the ids of the `n` images that a choice puts first; ties go by id.

    Images that have none of what the choice goes by, such as lost points, are left out.

    Parameters
    ----------
    evaluation : Evaluation
        What was measured.
    choice : str
        One of `CHOICES`.
    n : int
        How many images; fewer are returned if no others qualify.
    seen : (images,) bool, optional
        Images that the detector saw: others are no failures of it and are left out of every choice but ``missed``.
        Default: `seen_images`, of all detections that were evaluated.
    """
    if not evaluation.has_pairs:
        raise InputError(
            "PDQ was not measured, so no image is best or worst", remedy="evaluate with PDQ among the measures"
        )
    table, image_ids = pdq_per_image(evaluation), evaluation.dataset.image_ids
    key = {
        "worst": lost_points(evaluation),
        "best": table["PDQ"],
        "false-positives": table["FP"],
        "missed": table["FN"],
        "crowded": 2 * table["TP"] + table["FP"] + table["FN"],
    }[choice]
    usable = ~np.isnan(key) if choice == "best" else key > _LEAST
    if choice != _UNSEEN_TOO:
        usable &= seen_images(evaluation) if seen is None else seen
    rows = np.flatnonzero(usable)
    order = np.lexsort((image_ids[rows], -key[rows]))
    return [int(image_id) for image_id in image_ids[rows[order[:n]]]]


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
