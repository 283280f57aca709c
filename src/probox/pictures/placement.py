"""Where labels go: next to what they name, not on each other, smaller or not at all where there is no room."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["Placed", "place_labels"]

Floats = npt.NDArray[np.float64]

_ALLOWED_OVERLAP = 0.01  # of a label's area: borders may touch
_CROWDED = 0.5  # of a label's area over things to see: a smaller label is better
_FILLED = 0.09  # of the picture under labels: the rest gets its shortest form
_FULL = 0.15  # of the picture under labels: no more of them
_COVER_COST = 12.0  # a label's whole area over things to see, in positions down the list


@dataclasses.dataclass(frozen=True)
class Placed:
    """A label's place: which of its variants, and its left and top."""

    variant: int
    left: float
    top: float


def place_labels(
    anchors: npt.ArrayLike,
    sizes: Sequence[Sequence[tuple[float, float]]],
    bounds: tuple[float, float],
    busy: npt.NDArray[np.bool_] | None = None,
) -> list[Placed | None]:
    """Place one label per box; None where there is no room for any variant.

    Parameters
    ----------
    anchors : (N, 4) array
        The boxes ``x1, y1, x2, y2`` that the labels belong to, most important first.
    sizes : list of lists of (width, height)
        Variants of each label, best first: large and wordy, then smaller and shorter.
    bounds : (width, height)
        Labels stay within ``0..width``, ``0..height``.
    busy : (H, W) bool, optional
        A map of the same area, in any resolution, of where things are that are better not covered.
    """
    boxes = np.asarray(anchors, dtype=np.float64).reshape(-1, 4)
    covered = _Coverage(np.zeros((1, 1), bool) if busy is None else busy, bounds)
    taken = np.zeros((0, 4))
    result: list[Placed | None] = []
    for box, variants in zip(boxes, sizes, strict=True):
        chosen, chosen_share = None, np.inf
        filled = np.prod(taken[:, 2:] - taken[:, :2], axis=1).sum() / (bounds[0] * bounds[1])
        first = 0 if filled < _FILLED else len(variants) - 1 if filled < _FULL else len(variants)
        for variant, (width, height) in enumerate(variants):
            if variant < first or width > bounds[0] or height > bounds[1] or chosen_share <= _CROWDED:
                continue
            places = _places(box, width, height, bounds)
            rectangles = np.concatenate([places, places + np.array([width, height])], axis=1)
            free = _overlaps(rectangles, taken).max(axis=1, initial=0.0) <= _ALLOWED_OVERLAP * width * height
            share = covered.share(rectangles)
            best = int(np.argmin(np.where(free, np.arange(len(places)) + _COVER_COST * share, np.inf)))
            # A shorter label must win something for what it leaves out.
            if free[best] and (chosen is None or share[best] < 0.7 * chosen_share):
                chosen, chosen_share = Placed(variant, float(places[best, 0]), float(places[best, 1])), share[best]
                rectangle = rectangles[best : best + 1]
        if chosen is not None:
            taken = np.concatenate([taken, rectangle])
        result.append(chosen)
    return result


class _Coverage:
    """How much of a rectangle lies on busy parts, by sums over all pixels left of and above each other."""

    def __init__(self, busy: npt.NDArray[np.bool_], bounds: tuple[float, float]) -> None:
        self.scale = np.array([busy.shape[1] / bounds[0], busy.shape[0] / bounds[1]])
        self.sums = np.zeros((busy.shape[0] + 1, busy.shape[1] + 1))
        self.sums[1:, 1:] = busy.cumsum(axis=0).cumsum(axis=1)

    def share(self, rectangles: Floats) -> Floats:
        """Return the busy share of each rectangle's area, 0 to 1."""
        corners = np.rint(rectangles.reshape(-1, 2, 2) * self.scale).astype(np.int64)
        corners = np.clip(corners, 0, np.array(self.sums.shape)[::-1] - 1)
        (x1, y1), (x2, y2) = corners[:, 0].T, corners[:, 1].T
        inside = self.sums[y2, x2] - self.sums[y1, x2] - self.sums[y2, x1] + self.sums[y1, x1]
        return np.asarray(inside / np.maximum((x2 - x1) * (y2 - y1), 1))


def _places(box: Floats, width: float, height: float, bounds: tuple[float, float]) -> Floats:
    """Return left and top of a label at a box, best first: above it, below, beside, inside; never out of bounds."""
    x1, y1, x2, y2 = box
    right, middle = x2 - width, (x1 + x2 - width) / 2
    places = np.array(
        [
            (x1, y1 - height),
            (right, y1 - height),
            (x1, y2),
            (right, y2),
            (x1, y1),
            (right, y1),
            (middle, y1 - height),
            (x1, y2 - height),
            (right, y2 - height),
            (x2, y1),
            (x1 - width, y1),
            (middle, y2),
            (x2, y2 - height),
            (x1 - width, y2 - height),
            (middle, y1),
            (middle, y2 - height),
            (middle, (y1 + y2 - height) / 2),
        ]
    )
    room = np.array([bounds[0] - width, bounds[1] - height])
    moved = np.clip(places, 0.0, room)
    # A label pushed back from the border still names its box while it stays at it.
    near = (np.abs(moved - places) <= (width, 1.5 * height)).all(axis=1)
    fallback: Floats = np.clip(np.array([[x1, y1]]), 0.0, room)
    return moved[near] if near.any() else fallback


def _overlaps(rectangles: Floats, others: Floats) -> Floats:
    """Return the shared area of each rectangle (rows) with each other one (columns)."""
    low = np.maximum(rectangles[:, None, :2], others[None, :, :2])
    high = np.minimum(rectangles[:, None, 2:], others[None, :, 2:])
    return np.asarray(np.prod(np.maximum(high - low, 0.0), axis=2))
