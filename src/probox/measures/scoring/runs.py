"""Rows of equal value as groups, in ascending order, summed for many resamplings at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Runs"]

FloatArray = npt.NDArray[np.float64]


class Runs:
    """Groups of equal values, from the least value up.

    Parameters
    ----------
    values : (K,) array
        What makes rows alike.

    Attributes
    ----------
    values : (G,) array
        The different values, ascending.
    groups : (K,) int64
        Each row's group.
    """

    def __init__(self, values: npt.NDArray[Any]) -> None:
        self.values, groups = np.unique(values, return_inverse=True)
        self.groups = groups.ravel()
        self._order = np.argsort(self.groups, kind="stable")
        self._starts = np.searchsorted(self.groups[self._order], np.arange(len(self.values)))

    def sums(self, numbers: FloatArray) -> FloatArray:
        """Return the sum of each group's numbers, (R, G), from (R, K)."""
        if not len(self.values):
            return np.zeros((len(numbers), 0))
        ordered = numbers[:, self._order]
        if len(self.values) == len(self.groups):
            return ordered
        sums: FloatArray = np.add.reduceat(ordered, self._starts, axis=1)
        return sums
