"""What if? PDQ after each repair that one could think of, detections matched anew."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from probox.analysis.control import Fitted
from probox.analysis.rescoring import Scene
from probox.analysis.thresholds import BestThreshold
from probox.evaluation.result import Evaluation
from probox.measures.boxes.matching import IOU_THRESHOLDS
from probox.measures.matched import overlaps
from probox.tables.results import Verdict

__all__ = [
    "TITLES",
    "WhatIf",
    "duplicates",
    "labels_right",
    "truth_boxes",
    "what_if_matched",
    "with_constant",
    "with_factor",
    "with_pinned_edges",
    "with_scale",
    "with_truth_boxes",
    "would_be_duplicates",
]

TITLES = {
    "no_false_positives": "no false positives",
    "no_duplicates": "no duplicates",
    "best_threshold": "best threshold",
    "labels_right": "labels right",
    "best_scale": "best scale of sigma",
    "calibrating_scale": "std times the error factor",
    "best_constant": "best constant sigma",
    "kept_inside": "edges pinned at the border",
    "truth_boxes": "truth's boxes",
}
"""What each repair is called where results stand side by side."""


@dataclasses.dataclass(frozen=True)
class WhatIf:
    """PDQ after one repair.

    Parameters
    ----------
    key : str
        Its name in JSON.
    words : str
        What was repaired.
    pdq : float
        PDQ then.
    gain : float
        What that is more than now.
    """

    key: str
    words: str
    pdq: float
    gain: float


def what_if_matched(evaluation: Evaluation, best: BestThreshold | None) -> list[WhatIf]:
    """Return what can be told without looking at pixels: other detections left out, matched anew."""
    twice = duplicates(evaluation)
    right = evaluation.detections.verdicts != Verdict.FP
    without_false, without_twice = evaluation.keeping(right), evaluation.keeping(~twice)
    answers = [
        _answer(evaluation, "no_false_positives", "no false positives", without_false.pdq),
        _answer(
            evaluation,
            "no_duplicates",
            f"without duplicates of found objects ({int(twice.sum()):,})",
            without_twice.pdq,
        ),
    ]
    if best is not None:
        said = "no threshold is better"
        if best.threshold is not None:
            said = f"labels above {best.threshold:.3g} only (chosen on these images)"
        answers.append(_answer(evaluation, "best_threshold", said, best.value))
    return answers


def labels_right(evaluation: Evaluation, scene: Scene) -> WhatIf:
    """Return what right labels would bring."""
    return _answer(evaluation, "labels_right", "every label right and sure", scene.with_right_labels().pdq)


def with_scale(evaluation: Evaluation, scale: Fitted) -> WhatIf:
    """Return what the best scale of sigmas would bring."""
    words = f"std times {scale.value:.2g} (best for PDQ on other images)"
    return _answer(evaluation, "best_scale", words, scale.evaluation.pdq)


def with_factor(evaluation: Evaluation, scale: Fitted) -> WhatIf:
    """Return what the error factor would bring, by which the std would be calibrated."""
    words = f"std times {scale.value:.2f} (error factor, calibrated)"
    return _answer(evaluation, "calibrating_scale", words, scale.evaluation.pdq)


def with_constant(evaluation: Evaluation, constant: Fitted) -> WhatIf:
    """Return what the best constant sigma would bring."""
    words = f"a constant sigma of {100 * constant.value:.2g} % of the side (fitted on other images)"
    return _answer(evaluation, "best_constant", words, constant.evaluation.pdq)


def with_pinned_edges(evaluation: Evaluation, pinned: Evaluation) -> WhatIf:
    """Return what edges pinned at the image border would bring, at the price of their calibration."""
    return _answer(evaluation, "kept_inside", "edges pinned at the image border (overconfident)", pinned.pdq)


def with_truth_boxes(evaluation: Evaluation, scene: Scene) -> WhatIf:
    """Return what the truth's boxes would bring."""
    words = "true positives with the truth's boxes"
    return _answer(evaluation, "truth_boxes", words, truth_boxes(evaluation, scene))


def in_order(answers: Sequence[WhatIf]) -> list[WhatIf]:
    """Return answers from the largest gain down, equal ones in the order of `TITLES`."""
    order = {key: place for place, key in enumerate(TITLES)}
    placed = sorted(answers, key=lambda answer: order.get(answer.key, len(order)))
    return sorted(placed, key=lambda answer: -answer.gain)


def duplicates(evaluation: Evaluation) -> npt.NDArray[np.bool_]:
    """Return the false positives that repeat another detection.

    They name the class of an object that another detection was matched with, and overlap it by half or more.
    """
    found, there = evaluation.detections, evaluation.objects
    rows, objects = would_be_duplicates(evaluation)
    again = (found.verdicts[rows] == Verdict.FP) & (there.verdicts[objects] == Verdict.TP)
    twice = np.zeros(len(found), bool)
    twice[rows[again]] = True
    return twice


def would_be_duplicates(evaluation: Evaluation) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the rows of detections and objects whose pairs are duplicates if the one is false and the other found."""
    pairs, found, there = evaluation.pairs, evaluation.detections, evaluation.objects
    named = found.labels[pairs.detections] == there.labels[pairs.objects]
    rows, objects = pairs.detections[named], pairs.objects[named]
    near = overlaps(found, there, rows, objects) >= IOU_THRESHOLDS[0]
    return rows[near], objects[near]


def truth_boxes(evaluation: Evaluation, scene: Scene) -> float:
    """Return PDQ if each true positive were the box of its object's pixels, and sure of it."""
    found = evaluation.detections
    hit = np.asarray(found.verdicts == Verdict.TP)
    boxes = evaluation.objects.mask_boxes[found.partners[hit]]
    return scene.with_rows(evaluation, hit, boxes=boxes, covariances=None, extents=None).pdq


def _answer(evaluation: Evaluation, key: str, words: str, pdq: float) -> WhatIf:
    return WhatIf(key, words, pdq, pdq - evaluation.pdq)
