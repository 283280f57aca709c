"""Sums and quantiles over images that count as often as told: what measures are resampled by."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from probox.measures.measure import Weights

__all__ = ["weighted_quantile", "weighted_sums"]

Floats = npt.NDArray[np.float64]

AT_ONCE = 4_000_000
"""Counts of values that are held at a time."""


def weighted_sums(weights: Weights, columns: npt.ArrayLike) -> Floats:
    """Return the sum of each column over images, (K, R), for each row of weights.

    Not a product of matrices: what that gives may depend on the number of threads, and on what other rows there are.

    Parameters
    ----------
    weights : (R, images)
        How often each image counts.
    columns : (K, images)
        What to add up.

    >>> weighted_sums(np.array([[2, 0], [1, 1]]), [[1.0, 10.0]]).tolist()
    [[2.0, 11.0]]
    """
    # In the order of memory images come one after another: sums are over them, whatever rows there are.
    counts, numbers = (np.ascontiguousarray(values, dtype=np.float64) for values in (weights, columns))
    return np.asarray(np.einsum("ri,ki->kr", counts, numbers))


def weighted_quantile(weights: npt.NDArray[np.number], rows: npt.NDArray[np.int64], values: Floats, q: float) -> Floats:
    """Return the quantile of values at probability q, (R,), for each row of weights; NaN where nothing counts.

    It is the least value that at least a fraction q of the values does not exceed, ``numpy.quantile`` with
    ``method="inverted_cdf"``.

    Parameters
    ----------
    weights : (R, images)
        How often each image counts.
    rows : (K,)
        The image of each value.
    values : (K,)
        The values.
    q : float
        Between 0 and 1.

    >>> weighted_quantile(np.array([[2, 0], [1, 1], [0, 0]]), np.array([0, 0, 1]), np.array([3.0, 1, 2]), 0.6).tolist()
    [3.0, 2.0, nan]
    """
    order = np.argsort(values, kind="stable")
    rows, ordered = rows[order], np.append(values[order], np.nan)
    step = max(1, AT_ONCE // max(1, len(rows)))
    found = []
    for start in range(0, len(weights), step):
        counts = np.cumsum(weights[start : start + step][:, rows], axis=1)
        total = counts[:, -1:] if len(rows) else np.zeros((len(counts), 1))
        place = np.where(total[:, 0] > 0, (counts < q * total).sum(axis=1), len(rows))
        found.append(ordered[place])
    return np.concatenate([np.zeros(0), *found])
