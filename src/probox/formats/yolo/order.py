"""Whether predictions say ``class cx cy w h score`` or ``class score cx cy w h``: their boxes tell."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

__all__ = ["ORDERS", "Order", "boxes_outside", "find_order", "in_order"]

Order = Literal["score-last", "score-first"]
ORDERS: tuple[Order, ...] = get_args(Order)

ROUNDING = 2e-3
"""How far a box may reach outside its image, in fractions of it, by rounding alone."""

CLEARLY = 4
"""An order is told if it leaves so many times fewer boxes outside than the other."""

Numbers = npt.NDArray[np.float64]


def in_order(numbers: Numbers, order: Order) -> tuple[Numbers, Numbers]:
    """Return boxes cx, cy, w, h and scores of (N, 5) numbers that stand behind a class.

    >>> in_order(np.array([[0.9, 0.5, 0.5, 0.1, 0.2]]), "score-first")[1].tolist()
    [0.9]
    """
    if order == "score-first":
        return numbers[:, 1:], numbers[:, 0]
    return numbers[:, :4], numbers[:, 4]


def boxes_outside(numbers: Numbers, order: Order) -> int:
    """Return how many boxes would reach outside their image, or have a score that is none."""
    boxes, scores = in_order(numbers, order)
    low, high = boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2
    inside = (low >= -ROUNDING).all(axis=1) & (high <= 1 + ROUNDING).all(axis=1)
    inside &= (boxes[:, 2:] >= 0).all(axis=1) & (scores >= 0) & (scores <= 1)
    return int((~inside).sum())


def find_order(numbers: Numbers, files: npt.NDArray[np.int64]) -> Order | None:
    """Return the order of the numbers behind the class, or None if both fit.

    A detector's boxes lie in their images; read in the wrong order most do not. Where both orders leave equally many
    outside, the column that falls from line to line in every file is the score, as detectors write their surest first.

    Parameters
    ----------
    numbers : (N, 5) array
        All lines of all files.
    files : (N,) array
        The file of each line; lines of a file stand together.
    """
    last, first = (boxes_outside(numbers, order) for order in ORDERS)
    if CLEARLY * last < first:
        return "score-last"
    if CLEARLY * first < last:
        return "score-first"
    same = files[1:] == files[:-1]
    if same.any():
        falls = [bool((np.diff(numbers[:, column])[same] <= 0).all()) for column in (4, 0)]
        if falls[0] != falls[1]:
            return ORDERS[0] if falls[0] else ORDERS[1]
    return None
