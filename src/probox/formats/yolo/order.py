"""Whether predictions say ``class cx cy w h score`` or ``class score cx cy w h``: their boxes tell."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

__all__ = ["ORDERS", "Order", "find_order", "fitting", "in_order"]

Order = Literal["score-last", "score-first"]
ORDERS: tuple[Order, ...] = get_args(Order)

ROUNDING = 2e-3
"""How far a box may reach outside its image, in fractions of it, by rounding alone."""

CLEARLY = 4
"""An order is told if so many times more lines fit in it alone than in the other alone."""

FIRST, LAST = 0.15, 0.1
"""And if such lines are more than this share of all. They are about a third and more where the score is first, unless
all scores are about 0.5; boxes that lie outside their images are far fewer, and so decide nothing."""

MANY = 5
"""So many lines at least tell that the score is first, as ultralytics does not write."""

STEPS = 10
"""So many steps from line to line, all of them down, tell a score: other columns do not fall so often by chance."""

Numbers = npt.NDArray[np.float64]


def in_order(numbers: Numbers, order: Order) -> tuple[Numbers, Numbers]:
    """Return boxes cx, cy, w, h and scores of (N, 5) numbers that stand behind a class.

    >>> in_order(np.array([[0.9, 0.5, 0.5, 0.1, 0.2]]), "score-first")[1].tolist()
    [0.9]
    """
    if order == "score-first":
        return numbers[:, 1:], numbers[:, 0]
    return numbers[:, :4], numbers[:, 4]


def fitting(numbers: Numbers, order: Order) -> npt.NDArray[np.bool_]:
    """Return which lines, read in this order, have a box that lies in its image and a score from 0 to 1."""
    boxes, scores = in_order(numbers, order)
    low, high = boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2
    inside = (low >= -ROUNDING).all(axis=1) & (high <= 1 + ROUNDING).all(axis=1)
    return np.asarray(inside & (boxes[:, 2:] >= 0).all(axis=1) & (scores >= 0) & (scores <= 1))


def find_order(numbers: Numbers, files: npt.NDArray[np.int64]) -> Order | None:
    """Return the order of the numbers behind the class, or None if they do not tell.

    A detector's boxes lie in their images; read in the wrong order many do not. So the lines that fit in one order
    alone tell, if they are many and nearly all agree: single boxes outside their images do not. Where they do not
    tell, the column that falls from line to line in every file is the score, as detectors write their surest first.

    Parameters
    ----------
    numbers : (N, 5) array
        All lines of all files.
    files : (N,) array
        The file of each line; lines of a file stand together.
    """
    fits_last, fits_first = (fitting(numbers, order) for order in ORDERS)
    last, first = int((fits_last & ~fits_first).sum()), int((fits_first & ~fits_last).sum())
    if last > LAST * len(numbers) and last >= CLEARLY * first:
        return "score-last"
    if first > FIRST * len(numbers) and first >= CLEARLY * last and first >= MANY:
        return "score-first"
    same = files[1:] == files[:-1]
    if same.sum() >= STEPS:
        falls_last, falls_first = (bool((np.diff(numbers[:, column])[same] <= 0).all()) for column in (4, 0))
        if falls_last and not falls_first:
            return "score-last"
        if falls_first and not falls_last and first >= last:
            return "score-first"
    return None
