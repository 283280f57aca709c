"""Bins of equal width or equal mass, under the names that results carry: ``10w`` and ``15m``."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np
import numpy.typing as npt

__all__ = ["Bins", "Sorted", "counted_quantiles"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

Kind = Literal["width", "mass"]


@dataclasses.dataclass(frozen=True)
class Bins:
    """A number of bins between two ends.

    Parameters
    ----------
    number : int
        How many.
    kind : {"width", "mass"}
        Of equal width between the ends, or with edges at the quantiles of the values (linear between two of them),
        so that each holds about as many. Values that are equal are in the same bin.
    """

    number: int
    kind: Kind = "width"

    @property
    def name(self) -> str:
        """Return how keys of results call them: ``10w`` for ten of equal width, ``10m`` of equal mass."""
        return f"{self.number}{self.kind[0]}"

    @property
    def words(self) -> str:
        """Return what hints say of them."""
        return f"{self.number} bins of equal {self.kind}"

    def inner_edges(self, values: FloatArray, counts: FloatArray, ends: tuple[float, float] | None) -> FloatArray:
        """Return the edges between bins.

        Parameters
        ----------
        values : (K,) float64, ascending
            What is put into bins.
        counts : (K,) float64
            How often each value is there, whole numbers, not all 0.
        ends : (float, float), optional
            Of bins of equal width. Default: the least and the greatest value that is there.
        """
        if self.kind == "mass":
            return counted_quantiles(values, counts, self.number)
        if ends is None:
            there = np.flatnonzero(counts)
            ends = float(values[there[0]]), float(values[there[-1]])
        edges: FloatArray = ends[0] + (ends[1] - ends[0]) * (np.arange(1, self.number) / self.number)
        return edges


class Sorted:
    """Values in ascending order with other columns beside them, so that bins are runs of rows and sums are quick.

    A bin holds its lower edge; the last one holds its upper edge too.

    Parameters
    ----------
    values : (K,) float64
        What bins are made of.
    columns : (K, M) float64
        What is summed in each bin.
    ends : (float, float), optional
        Of bins of equal width. Default: the least and the greatest value.
    """

    def __init__(self, values: FloatArray, columns: FloatArray, ends: tuple[float, float] | None = None) -> None:
        self.order = np.argsort(values, kind="stable")
        self.values, self.columns, self.ends = values[self.order], columns[self.order], ends

    def sums(self, bins: Bins, counts: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Return how many values each bin has, (B,), and the sums of the columns in it, (B, M).

        `counts` (K,) says how often each value is there, in the order in which values were given; default: once.
        """
        n, m = self.columns.shape
        counts = np.ones(n) if counts is None else counts[self.order]
        if not counts.any():
            return np.zeros(bins.number), np.zeros((bins.number, m))
        rows = np.searchsorted(self.values, bins.inner_edges(self.values, counts, self.ends), side="left")
        bin_of_row = np.repeat(np.arange(bins.number), np.diff(rows, prepend=0, append=n))
        columns = (counts, *(counts * column for column in self.columns.T))
        sums: FloatArray = np.stack([np.bincount(bin_of_row, column, bins.number) for column in columns], axis=1)
        return sums[:, 0], sums[:, 1:]


def counted_quantiles(values: FloatArray, counts: FloatArray, parts: int) -> FloatArray:
    """Return the quantiles k / parts, k = 1 .. parts - 1, as `np.quantile` has them.

    `values` are ascending, and each is there `counts` times; not all of them 0 times.
    """
    until = np.cumsum(counts)
    # In whole numbers: a quantile that falls on a value must be that value, since the value goes into the upper bin.
    below, rest = np.divmod(np.arange(1, parts) * (int(until[-1]) - 1), parts)
    low, high = (values[np.searchsorted(until, rank, side="right")] for rank in (below, below + (rest > 0)))
    quantiles: FloatArray = low + (high - low) * (rest / parts)
    return quantiles
