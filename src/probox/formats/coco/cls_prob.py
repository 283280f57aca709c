"""Results with ``all_scores``, or ``cls_prob`` of probdet and pod_compare: what can be wrong with them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from probox.notes import InputWarning
from probox.tables.distributions import limit_to_distribution, rows_above_one
from probox.tables.labels import best_classes, probabilities_of

__all__ = ["MIN_ROWS", "limited", "other_order"]

AGREE, MIN_ROWS, HALF = 0.8, 5, 0.5
"""Probabilities must go with the stated class and score in this share of the rows with at least half of the highest
score, if there are so many. A class has at least half of its score as its probability."""


def limited(label_probs: npt.NDArray[np.float32], rows: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.float32], int]:
    """Return label probabilities that add up to at most 1 in these rows, and how many had to change.

    Detectors with a sigmoid per class (RetinaNet) write what adds up to more. Values that are no probabilities are
    left for those who say so.

    >>> limited(np.array([[0.9, 0.3], [0.5, 0.5]], np.float32), np.array([0, 1]))[1]
    1
    """
    if not len(rows):
        return label_probs, 0
    above = np.intersect1d(rows, rows_above_one(label_probs))
    if not len(above):
        return label_probs, 0
    result: npt.NDArray[np.float32] = label_probs.copy()
    result[above] = limit_to_distribution(label_probs[above])
    return result, len(above)


def other_order(
    label_probs: npt.NDArray[np.float32],
    labels: npt.NDArray[np.int32],
    scores: npt.NDArray[np.float64],
    rows: npt.NDArray[np.int64],
    key: str,
) -> InputWarning | None:
    """Return a warning if probabilities of too many of these rows do not go with the class and score stated.

    They do where the stated class has the largest probability, or about its score (of a box that is suppressed class
    by class, the second best class stays too; a score may be calibrated). Columns count in the classes that the
    detector was trained on, which nothing in the file names.

    >>> probs = np.tile(np.array([[0.1, 0.2, 0.7]], np.float32), (9, 1))
    >>> other_order(probs, np.zeros(9, np.int32), np.full(9, 0.7), np.arange(9), "all_scores").count
    0
    """
    least = HALF * scores[rows].max(initial=0.0)
    rows = rows[scores[rows] >= least]
    given, stated = label_probs[rows], labels[rows]
    near = probabilities_of(given, stated) >= HALF * scores[rows]
    agree = int(((best_classes(given) == stated) | near).sum())
    if len(rows) < MIN_ROWS or agree >= AGREE * len(rows):
        return None
    return InputWarning("probabilities-of-other-classes", agree, key=key, total=len(rows), least=float(least))
