"""Where labels go: next to what they name, not on each other, smaller or not at all where there is no room."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["Placed", "gap", "place_labels"]

Floats = npt.NDArray[np.float64]

_ALLOWED_OVERLAP = 0.01  # of a label's area: borders may touch
_CROWDED = 0.5  # of a label's area over things to see: a smaller label is better
_FILLED = 0.09  # of the picture under labels: the rest gets its shortest form
_FULL = 0.15  # of the picture under labels: no more of them
_COVER_COST = 12.0  # a label's whole area over things to see, in positions down the list

_AWAY_COST = 12.0  # a place that needs a line to its box, in positions down the list

_PLACES = (
    # at x1 (0), the middle (1) or x2 (2), the same for y, then back by so many widths and heights of the label
    (0, 0, 0, 1), (2, 0, 1, 1), (0, 2, 0, 0), (2, 2, 1, 0), (0, 0, 0, 0), (2, 0, 1, 0), (1, 0, 0.5, 1),
    (0, 2, 0, 1), (2, 2, 1, 1), (2, 0, 0, 0), (0, 0, 1, 0), (1, 2, 0.5, 0), (2, 2, 0, 1), (0, 2, 1, 1),
    (1, 0, 0.5, 0), (1, 2, 0.5, 1), (1, 1, 0.5, 0.5),
    # away from it
    (1, 0, 0.5, 2.5), (1, 2, 0.5, -1.5), (2, 1, -0.3, 0.5), (0, 1, 1.3, 0.5),
    (2, 0, -0.1, 2.2), (0, 0, 1.1, 2.2), (2, 2, -0.1, -1.2), (0, 2, 1.1, -1.2),
)  # fmt: skip
_ADJACENT = 17
_AT = np.array(_PLACES, np.float64)[:, :2].astype(np.int64)
_BACK = np.array(_PLACES, np.float64)[:, 2:]
_COSTS = np.arange(len(_PLACES)) + np.where(np.arange(len(_PLACES)) < _ADJACENT, 0.0, _AWAY_COST)


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
    taken: npt.ArrayLike | None = None,
) -> list[Placed | None]:
    """Place one label per box; None where there is no room for any variant.

    Parameters
    ----------
    anchors : (N, 4) array
        What each label is at: x1, y1, x2, y2 with y down. Earlier ones choose first.
    sizes : sequence of sequences of (width, height)
        How large each label is, the preferred variant first, the shortest last.
    bounds : (width, height)
        The area that labels must stay in, from 0, 0.
    busy : (H, W) bool, optional
        A map of the same area, in any resolution, of where things are that are better not covered.
    taken : (M, 4) array, optional
        Places that are not free: x1, y1, x2, y2.
    """
    boxes = np.asarray(anchors, dtype=np.float64).reshape(-1, 4)
    covered = _Coverage(np.zeros((1, 1), bool) if busy is None else busy, bounds)
    given = np.asarray([] if taken is None else taken, dtype=np.float64).reshape(-1, 4)
    used = np.zeros((len(given) + len(boxes), 4))
    used[: len(given)] = given
    count, filled = len(given), 0.0
    result: list[Placed | None] = []
    for box, variants in zip(boxes, sizes, strict=True):
        chosen, chosen_share, rectangle = None, np.inf, given[:0]
        first = 0 if filled < _FILLED else len(variants) - 1 if filled < _FULL else len(variants)
        for variant, (width, height) in enumerate(variants):
            if variant < first or width > bounds[0] or height > bounds[1] or chosen_share <= _CROWDED:
                continue
            places, costs = _places(box, width, height, bounds)
            rectangles = np.concatenate([places, places + np.array([width, height])], axis=1)
            free = _overlaps(rectangles, used[:count]).max(axis=1, initial=0.0) <= _ALLOWED_OVERLAP * width * height
            free &= ~_led_across(rectangles, costs, box, used[:count])
            share = covered.share(rectangles)
            best = int(np.argmin(np.where(free, costs + _COVER_COST * share, np.inf)))
            # A shorter label must win something for what it leaves out.
            if free[best] and (chosen is None or share[best] < 0.7 * chosen_share):
                chosen, chosen_share = Placed(variant, float(places[best, 0]), float(places[best, 1])), share[best]
                rectangle = rectangles[best]
        if chosen is not None:
            used[count] = rectangle
            count += 1
            filled += float(np.prod(rectangle[2:] - rectangle[:2])) / (bounds[0] * bounds[1])
        result.append(chosen)
    return result


def gap(one: Sequence[float], other: Sequence[float]) -> float:
    """Return how far two rectangles are apart: 0 if they touch.

    >>> gap((0, 0, 10, 10), (13, 14, 20, 20))
    5.0
    """
    across = max(one[0] - other[2], other[0] - one[2], 0.0)
    down = max(one[1] - other[3], other[1] - one[3], 0.0)
    return float(np.hypot(across, down))


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


def _places(box: Floats, width: float, height: float, bounds: tuple[float, float]) -> tuple[Floats, Floats]:
    """Return left and top of a label near a box, and what each place costs; never out of bounds.

    Best first: above it, below, beside, inside; then, at a price, a little away from it.
    """
    x1, y1, x2, y2 = box
    # From x1, (x1 + x2) / 2 and x2, and so for y; then back by as many widths and heights.
    corner = np.array([[x1, y1], [(x1 + x2) / 2, (y1 + y2) / 2], [x2, y2]])
    places = np.column_stack([corner[_AT[:, 0], 0], corner[_AT[:, 1], 1]]) - _BACK * np.array([width, height])
    room = np.array([bounds[0] - width, bounds[1] - height])
    moved = np.clip(places, 0.0, room)
    # A label pushed back from the border still names its box while it stays at it.
    near = (np.abs(moved - places) <= (width, 1.5 * height)).all(axis=1)
    if not near.any():
        return np.clip(np.array([[x1, y1]]), 0.0, room), np.zeros(1)
    return moved[near], _COSTS[near]


def _led_across(rectangles: Floats, costs: Floats, box: Floats, others: Floats) -> npt.NDArray[np.bool_]:
    """Return which places away from a box would need a line to it that runs under another label."""
    across = np.zeros(len(rectangles), bool)
    away = np.flatnonzero(costs >= _ADJACENT)
    if len(away) and len(others):
        centres = (rectangles[away, :2] + rectangles[away, 2:]) / 2.0
        ends = np.clip(centres, box[:2], box[2:])
        points = centres[:, None] + np.linspace(0.0, 1.0, 9)[:, None] * (ends - centres)[:, None]
        inside = (points[:, :, None] > others[:, :2]) & (points[:, :, None] < others[:, 2:])
        across[away] = np.any(np.all(inside, axis=3), axis=(1, 2))
    return across


def _overlaps(rectangles: Floats, others: Floats) -> Floats:
    """Return the shared area of each rectangle (rows) with each other one (columns)."""
    low = np.maximum(rectangles[:, None, :2], others[None, :, :2])
    high = np.minimum(rectangles[:, None, 2:], others[None, :, 2:])
    return np.asarray(np.prod(np.maximum(high - low, 0.0), axis=2))
