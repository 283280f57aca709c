"""Isotonic regression: the non-decreasing curve that is nearest in squares, by pooling adjacent violators."""

from __future__ import annotations

import dataclasses

import numpy as np

from probox.measures.matched import FEW_PAIRS
from probox.support.types import Floats

__all__ = ["Curve", "fit_curve", "pool_adjacent_violators"]


def pool_adjacent_violators(values: Floats, weights: Floats) -> Floats:
    """Return the non-decreasing values that minimise sum of weight * (value - given)^2.

    >>> pool_adjacent_violators(np.array([1.0, 3.0, 2.0]), np.array([1.0, 1.0, 3.0])).tolist()
    [1.0, 2.25, 2.25]
    """
    blocks: list[tuple[float, float, int]] = []  # mean, weight, how many values
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        block = (value, weight, 1)
        while blocks and blocks[-1][0] >= block[0]:
            mean, mass, count = blocks.pop()
            total = mass + block[1]
            block = ((mean * mass + block[0] * block[1]) / total, total, count + block[2])
        blocks.append(block)
    return np.repeat([mean for mean, _, _ in blocks], [count for _, _, count in blocks]).astype(np.float64)


@dataclasses.dataclass(frozen=True)
class Curve:
    """A non-decreasing curve through knots, straight between them and level beyond the first and the last."""

    x: tuple[float, ...]
    y: tuple[float, ...]

    def __call__(self, values: Floats) -> Floats:
        return np.interp(values, self.x, self.y)

    def scaled(self, factor: float) -> Curve:
        """Return the curve that is `factor` times as high."""
        return Curve(self.x, tuple(factor * y for y in self.y))


def fit_curve(x: Floats, y: Floats, *, least: int = FEW_PAIRS) -> Curve:
    """Return the isotonic curve of the mean of y given x.

    Neighbours in x are averaged first, `least` of them or more, equal x always together; their means are pooled until
    none violates the order; so no end of the curve hangs on a single value. At least one value is needed.
    """
    order = np.argsort(x, kind="stable")
    xs, ys = x[order], y[order]
    groups = max(1, len(xs) // least)
    number = (np.searchsorted(xs, xs, side="left") * groups) // len(xs)
    _, number = np.unique(number, return_inverse=True)
    counts = np.bincount(number).astype(np.float64)
    knots = np.bincount(number, xs) / counts
    heights = pool_adjacent_violators(np.bincount(number, ys) / counts, counts)
    # Of knots of equal height the first and the last say all.
    level = np.concatenate([[False], (heights[1:-1] == heights[:-2]) & (heights[1:-1] == heights[2:]), [False]])
    level = level[: len(heights)]
    return Curve(tuple(knots[~level].tolist()), tuple(heights[~level].tolist()))
