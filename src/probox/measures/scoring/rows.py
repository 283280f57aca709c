"""Measures of rows: things of images, each there once, or as often as its image in a resampling.

A measure says which rows it looks at and how its numbers follow from how often each is there. The summary, classes,
sizes and resamplings all come from these two.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.measures.boxes.matching import AREA_RANGES, SIZES
from probox.measures.measure import (
    Column,
    Evaluated,
    Groups,
    Measure,
    Need,
    Resampled,
    Summary,
    Weights,
    groups_by_label,
)

__all__ = ["Numbers", "Rows", "counted_mean", "measure_of_rows"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

AT_ONCE = 500_000
"""How many counts are held at once: resamplings times rows."""


@dataclasses.dataclass(frozen=True, eq=False)
class Rows:
    """Things of images.

    Parameters
    ----------
    image_rows : (K,) int64
        Each one's image.
    labels : (K,) int
        The class by which it is grouped.
    areas : (K,) float64
        The area by which it is grouped.
    columns : dict of (K, ...) arrays
        What the measure knows of them.
    """

    image_rows: IntArray
    labels: npt.NDArray[np.int32] | IntArray
    areas: FloatArray
    columns: Mapping[str, npt.NDArray[Any]]

    def __len__(self) -> int:
        return len(self.image_rows)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.columns[name]

    def take(self, rows: IntArray | Flags) -> Rows:
        """Return some of the rows."""
        columns = {name: values[rows] for name, values in self.columns.items()}
        return Rows(self.image_rows[rows], self.labels[rows], self.areas[rows], columns)


Numbers = Callable[[Rows, FloatArray], Resampled]
"""A measure's numbers, (R,) each, of rows and how often each is there, (R, K), in whole numbers."""


def measure_of_rows(
    name: str,
    columns: Sequence[Column],
    rows: Callable[[Evaluated], Rows],
    numbers: Numbers,
    *,
    needs: Collection[Need],
    remarks: Callable[[Evaluated], Sequence[str]],
) -> Measure:
    """Return a measure of rows, which nobody takes unless it is asked for."""
    columns = tuple(columns)

    def summarised(some: Rows) -> Summary:
        values = numbers(some, np.ones((1, len(some))))
        return {c.key: int(values[c.key][0]) if c.unit == "count" else float(values[c.key][0]) for c in columns}

    def per_class(evaluated: Evaluated) -> Groups:
        every = rows(evaluated)
        labels = every.labels
        return groups_by_label(evaluated.classes, labels, lambda label: summarised(every.take(labels == label)))

    def per_size(evaluated: Evaluated) -> Groups:
        every = rows(evaluated)
        ranges = zip(SIZES[1:], AREA_RANGES[1:], strict=True)
        return {size: summarised(every.take((every.areas >= a) & (every.areas <= b))) for size, (a, b) in ranges}

    def some_numbers(every: Rows, weights: Weights) -> Resampled:
        if len(weights) == 1:  # NumPy adds up the only row in another order than one of several
            return {key: values[:1] for key, values in some_numbers(every, np.repeat(weights, 2, axis=0)).items()}
        return numbers(every, weights[:, every.image_rows].astype(np.float64))

    def resampled(evaluated: Evaluated, weights: Weights) -> Resampled:
        every = rows(evaluated)
        step = max(2, AT_ONCE // max(1, len(every)))
        parts = [some_numbers(every, weights[start : start + step]) for start in range(0, len(weights), step)]
        return {c.key: np.concatenate([np.zeros(0), *(part[c.key] for part in parts)]) for c in columns}

    return Measure(
        name=name,
        columns=columns,
        summary=lambda evaluated: summarised(rows(evaluated)),
        needs=frozenset(needs),
        per_class=per_class,
        per_size=per_size,
        standard=False,
        resampled=resampled,
        remarks=remarks,
    )


def counted_mean(counts: FloatArray, values: FloatArray, present: Flags | None = None) -> FloatArray:
    """Return the mean of each column of values, (R, M), where row k is there counts[r, k] times; NaN of nothing.

    Parameters
    ----------
    counts : (R, K) float64
        How often each row is there.
    values : (K, M) float64
        What to average.
    present : (K, M) bool, optional
        Which of the values count. Default: all.
    """
    there = np.ones(values.shape, bool) if present is None else present
    # Not by a matrix product: its last bits would depend on how many threads the machine has.
    sums = np.einsum("rk,km->rm", counts, np.where(there, values, 0.0))
    n = np.einsum("rk,km->rm", counts, there.astype(np.float64))
    with np.errstate(invalid="ignore", divide="ignore"):
        means: FloatArray = sums / n
    return means
