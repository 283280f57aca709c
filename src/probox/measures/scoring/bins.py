"""Bins of equal width or equal mass, under the names that results carry: ``10w`` and ``15m``."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
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
        """Return the edges between bins, (R, B - 1).

        Parameters
        ----------
        values : (K,) float64, ascending
            What is put into bins; at least one.
        counts : (R, K) float64
            How often each value is there in each of R resamplings, whole numbers.
        ends : (float, float), optional
            Of bins of equal width. Default: the least and the greatest value that is there.
        """
        if self.kind == "mass":
            return counted_quantiles(values, counts, self.number)
        steps = np.arange(1, self.number) / self.number
        if ends is not None:
            low, high = np.full((len(counts), 1), ends[0]), np.full((len(counts), 1), ends[1])
        else:
            there = counts > 0
            low = values[there.argmax(axis=1)][:, None]
            high = values[len(values) - 1 - there[:, ::-1].argmax(axis=1)][:, None]
        edges: FloatArray = low + (high - low) * steps
        return edges


class Sorted:
    """Values in ascending order with other columns beside them, so that bins are runs of rows.

    A bin holds its lower edge; the last one holds its upper edge too.

    Parameters
    ----------
    values : (K,) float64
        What bins are made of.
    columns : sequence of (K,) float64
        What is summed in each bin.
    ends : (float, float), optional
        Of bins of equal width. Default: the least and the greatest value.
    """

    def __init__(
        self, values: FloatArray, columns: Sequence[FloatArray], ends: tuple[float, float] | None = None
    ) -> None:
        self.order = np.argsort(values, kind="stable")
        self.values, self.ends = values[self.order], ends
        self.columns = [np.ones(len(values)), *(column[self.order] for column in columns)]

    def sums(self, bins: Bins, counts: FloatArray | None = None) -> list[FloatArray]:
        """Return how many values each bin has, then the sum of each column in it, each (R, B).

        `counts` (R, K) says how often each value is there in each resampling, in the order in which values were given;
        default: once, in one.
        """
        counts = np.ones((1, len(self.values))) if counts is None else counts[:, self.order]
        r, k = counts.shape
        if not r or not k:
            return [np.zeros((r, bins.number)) for _ in self.columns]
        inner = np.searchsorted(self.values, bins.inner_edges(self.values, counts, self.ends), side="left")
        starts = np.concatenate([np.zeros((r, 1), np.int64), inner], axis=1)
        empty = np.diff(starts, axis=1, append=k) == 0
        # All resamplings one after the other; a 0 behind each, where a bin may start that lies above all values.
        flat = (starts + np.arange(r)[:, None] * (k + 1)).ravel()
        padded = np.zeros((r, k + 1))
        sums = []
        for column in self.columns:
            np.multiply(counts, column, out=padded[:, :-1])
            total = np.add.reduceat(padded.ravel(), flat).reshape(r, bins.number)
            sums.append(np.where(empty, 0.0, total))
        return sums


def counted_quantiles(values: FloatArray, counts: FloatArray, parts: int) -> FloatArray:
    """Return the quantiles k / parts, k = 1 .. parts - 1, as `np.quantile` has them, (R, parts - 1).

    `values` (K,) are ascending, and each is there `counts` (R, K) times; where none is, any value will do.
    """
    until = np.cumsum(counts, axis=1)
    # In whole numbers: a quantile that falls on a value must be that value, since the value goes into the upper bin.
    last = np.maximum(until[:, -1:].astype(np.int64) - 1, 0)
    below, rest = np.divmod(np.arange(1, parts) * last, parts)
    # All resamplings in one ascending column, each above the one before.
    step = until[:, -1].max(initial=0.0) + 1.0
    above = step * np.arange(len(counts))[:, None]
    flat = (until + above).ravel()

    def value(ranks: IntArray) -> FloatArray:
        rows = np.searchsorted(flat, ranks + above, side="right") - np.arange(len(counts))[:, None] * len(values)
        found: FloatArray = values[np.minimum(rows, len(values) - 1)]
        return found

    low, high = value(below), value(below + (rest > 0))
    quantiles: FloatArray = low + (high - low) * (rest / parts)
    return quantiles
