"""Scores of a detection head as label distributions."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.errors import InputError
from probox.tables.row_problems import ROUNDING

__all__ = ["AboveOne", "check_above_one", "limit_to_distribution", "rows_above_one", "softmax", "to_distribution"]

AboveOne = Literal["limit", "normalise", "refuse"]
"""What to do about rows of scores that add up to more than 1, which one sigmoid per class gives."""


ROWS_AT_ONCE = 1 << 16
"""So many rows are made wide at a time: a million of 80 classes would take gigabytes."""


def softmax(logits: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return distributions ``e^x_k / sum_j e^x_j`` along the last axis, in the type of the logits.

    >>> softmax(np.array([[1000.0, 1000.0]])).tolist()
    [[0.5, 0.5]]
    """
    shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    return np.asarray(shares)


def check_above_one(value: Any) -> None:
    """Raise unless a value is one of the choices."""
    if value not in get_args(AboveOne):
        choices = ", ".join(map(repr, get_args(AboveOne)))
        raise InputError(f"expected above_one to be one of {choices}, but got {value!r:.40}")


def to_distribution(scores: npt.ArrayLike, above_one: AboveOne = "limit") -> npt.NDArray[np.float32]:
    """Return label probabilities (N, C) from scores of all classes.

    Parameters
    ----------
    scores : (N, C)
        Between 0 and 1.
    above_one : {"limit", "normalise", "refuse"}
        ``limit``: only rows above 1 are scaled down, see `limit_to_distribution`. ``normalise``: every row that is not
        all 0 is divided by its sum, so that a detector that is sure of nothing (0.1) becomes sure of it (0.99): PDQ
        falls. ``refuse``: rows stay as they are, and one above 1 is an error.

    >>> to_distribution([[0.9, 0.9], [0.1, 0.0]], "normalise").tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    check_above_one(above_one)
    if above_one == "limit":
        return limit_to_distribution(scores)
    given = np.asarray(scores, np.float32)
    if above_one == "refuse":
        return given
    total = given.sum(axis=1, dtype=np.float64, keepdims=True)
    return np.asarray(np.divide(given, total, out=np.zeros_like(given), where=total > 0, casting="same_kind"))


def rows_above_one(label_probs: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    """Return the rows of probabilities that add up to more than 1, allowing `ROUNDING`.

    >>> rows_above_one(np.array([[0.9, 0.3], [0.6, 0.4004], [3.0, 0.0]], np.float32)).tolist()
    [0]
    """
    low, high, total = _core.row_ranges(label_probs)
    with np.errstate(invalid="ignore"):
        return np.flatnonzero((low >= -ROUNDING) & (high <= 1 + ROUNDING) & (total > 1 + ROUNDING))  # NaN is not


def limit_to_distribution(scores: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Return label probabilities (N, C) that add up to at most 1 from scores in [0, 1], one sigmoid per class.

    A head with a sigmoid per class may give 0.9 to two classes at once, which no distribution can hold. The winning
    class keeps its score ``s``, the others are scaled down together so that they share what is left, ``1 - s``. So
    the winner, the order of detections and mAP stay as the detector wants them. Rows that add up to at most 1.001,
    which the rounding of a softmax explains, are not touched, nor are rows of values outside [0, 1].

    >>> limit_to_distribution([[0.9, 0.8, 0.2], [0.5, 0.3, 0.1]]).round(3).tolist()
    [[0.8999999761581421, 0.07999999821186066, 0.019999999552965164], [0.5, 0.30000001192092896, 0.10000000149011612]]
    """
    given = np.asarray(scores, np.float32)
    if given.size == 0:
        return np.array(given)
    rows = rows_above_one(given)
    limited: npt.NDArray[np.float32] = np.array(given)
    for start in range(0, len(rows), ROWS_AT_ONCE):
        part = rows[start : start + ROWS_AT_ONCE]
        wide = given[part].astype(np.float64)
        total = wide.sum(axis=1)
        winner = wide.argmax(axis=1)
        best = wide[np.arange(len(part)), winner]
        # A winner of exactly the whole sum leaves nothing to scale.
        others = np.maximum(total - best, np.finfo(np.float64).tiny)
        limited[part] = (wide * np.minimum(1.0, (1.0 - best) / others)[:, None]).astype(np.float32)
        limited[part, winner] = given[part, winner]
    return limited
