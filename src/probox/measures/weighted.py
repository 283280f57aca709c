"""Sums over images that count as often as told: what measures that add up over images are resampled by."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from probox.measures.measure import Weights

__all__ = ["weighted_sums"]

Floats = npt.NDArray[np.float64]


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
