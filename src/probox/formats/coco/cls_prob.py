"""Results with ``cls_prob``, as probdet and pod_compare write them: what can be wrong with these probabilities."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.tables.distributions import limit_to_distribution
from probox.tables.labels import best_classes
from probox.tables.row_problems import ROUNDING

__all__ = ["MIN_ROWS", "limited", "other_order"]

AGREE, MIN_ROWS = 0.5, 5
"""The largest probability must be that of the stated class in this share of the rows, if there are so many."""


def limited(label_probs: npt.NDArray[np.float32], rows: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.float32], int]:
    """Return label probabilities that add up to at most 1 in these rows, and how many had to change.

    Detectors with a sigmoid per class (RetinaNet) write what adds up to more. Values that are no probabilities are
    left for those who say so.

    >>> limited(np.array([[0.9, 0.3], [0.5, 0.5]], np.float32), np.array([0, 1]))[1]
    1
    """
    low, high, total = _core.row_ranges(label_probs)
    with np.errstate(invalid="ignore"):
        sound = (low >= -ROUNDING) & (high <= 1 + ROUNDING) & (total > 1 + ROUNDING)  # NaN is not
    above = rows[sound[rows]]
    if not len(above):
        return label_probs, 0
    result: npt.NDArray[np.float32] = label_probs.copy()
    result[above] = limit_to_distribution(label_probs[above])
    return result, len(above)


def other_order(
    label_probs: npt.NDArray[np.float32], labels: npt.NDArray[np.int32], rows: npt.NDArray[np.int64]
) -> str | None:
    """Return a sentence if the largest probability of these rows is hardly ever that of the class they state.

    Columns of ``cls_prob`` count in the classes that the detector was trained on, which nothing in the file names.

    >>> probs = np.tile(np.array([[0.1, 0.2, 0.7]], np.float32), (9, 1))
    >>> other_order(probs, np.zeros(9, np.int32), np.arange(9))
    'cls_prob seems to be in another order of classes: its largest is that of category_id in only 0 of 9 detections'
    """
    agree = int((best_classes(label_probs[rows]) == labels[rows]).sum())
    if len(rows) < MIN_ROWS or agree >= AGREE * len(rows):
        return None
    return (
        "cls_prob seems to be in another order of classes: its largest is that of category_id in only "
        f"{agree:,} of {len(rows):,} detections"
    )
