"""What is left of groups of rows above each of their confidences: the states in which they are matched anew."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["States", "state_sizes", "states_above"]

Ints = npt.NDArray[np.int64]


class States(NamedTuple):
    """Some states; a group's first has all of its rows, each later one those surer than its step.

    Parameters
    ----------
    row : (N,) int64
        Rows, state by state, ascending within a state.
    state : (N,) int64
        The state that each is in, counted from 0.
    step : (S,) float32
        The threshold from which on a state holds; 0 for first ones.
    first : (S,) bool
        Whether it is the first state of its group.
    """

    row: Ints
    state: Ints
    step: npt.NDArray[np.float32]
    first: npt.NDArray[np.bool_]


def states_above(confidence: npt.NDArray[np.float32], group: Ints, limit: int) -> Iterator[States]:
    """Yield the states of all groups, some groups at a time: about `limit` rows.

    Beyond the highest confidence of a group nothing is left, and there is no state.

    Parameters
    ----------
    confidence : (R,) float32
        The confidence of each row.
    group : (R,) int64
        Its group, ascending.
    limit : int
        When to begin a new part.

    Examples
    --------
    >>> confidence = np.array([0.5, 0.25, 0.5], np.float32)
    >>> (states,) = states_above(confidence, np.array([7, 7, 7]), 100)
    >>> states.row.tolist(), states.state.tolist(), states.step.tolist()
    ([0, 1, 2, 0, 2], [0, 0, 0, 1, 1], [0.0, 0.25])
    """
    if not len(group):
        return
    order, level, base = _levels(confidence, group)
    rank = np.empty(len(group), np.int64)
    rank[order] = level - base
    begins = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    ends = np.append(begins[1:], len(group))
    total = np.concatenate([[0], np.cumsum(rank + 1)])
    at = 0
    while at < len(begins):
        last = max(int(np.searchsorted(total[ends], total[begins[at]] + limit, side="right")), at + 1)
        yield _part(confidence, group, rank, int(begins[at]), int(ends[last - 1]))
        at = last


def state_sizes(confidence: npt.NDArray[np.float32], group: Ints) -> int:
    """Return how many rows all states of all groups have together."""
    if not len(group):
        return 0
    _, level, base = _levels(confidence, group)
    return int((level - base + 1).sum())


def _levels(confidence: npt.NDArray[np.float32], group: Ints) -> tuple[Ints, Ints, Ints]:
    """Return rows by group and confidence, the number of each one's pair of both, and that of its group's first."""
    order = np.lexsort((confidence, group))
    own, sure = group[order], confidence[order]
    starts = np.concatenate([[True], own[1:] != own[:-1]])
    level = np.cumsum(starts | np.concatenate([[True], sure[1:] != sure[:-1]])) - 1
    return order, level, level[starts][np.cumsum(starts) - 1]


def _part(confidence: npt.NDArray[np.float32], group: Ints, rank: Ints, begin: int, end: int) -> States:
    order, level, base = _levels(confidence[begin:end], group[begin:end])
    # The state of a group's k-th confidence keeps what is surer than the one before: rows of rank k and above.
    first = np.zeros(level[-1] + 1, bool)
    first[base] = True
    step = np.zeros(len(first), np.float32)
    step[level] = confidence[begin:end][order]
    step = np.where(first, np.float32(0), np.concatenate([[np.float32(0)], step[:-1]]))
    own = np.empty(end - begin, np.int64)
    own[order] = base
    times = rank[begin:end] + 1
    row = np.repeat(np.arange(begin, end), times)
    state = np.repeat(own - (np.cumsum(times) - times), times) + np.arange(len(row))
    by_state = np.argsort(state, kind="stable")
    return States(row[by_state], state[by_state], step, first)
