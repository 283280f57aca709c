"""Which pairs of a detection and an object match."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.support.parallel import thread_count
from probox.tables.results import PairTable

__all__ = ["assign"]


def assign(
    pair_image: npt.NDArray[np.int64], pairs: PairTable, how: str, rows: npt.NDArray[np.int64] | None = None
) -> npt.NDArray[np.bool_]:
    """Return which pairs are matches.

    Parameters
    ----------
    pair_image : (K,) int64
        The image of each pair, ascending.
    pairs : PairTable
        Their qualities.
    how : {"optimal", "greedy"}
        Largest total pPDQ, or the best remaining pair again and again.
    rows : (K,) int64, optional
        Rows of the pairs to choose from, each as often as it takes part. Default: all, once.
    """
    chosen: slice | npt.NDArray[np.int64] = slice(None) if rows is None else rows
    changes = np.flatnonzero(pair_image[1:] != pair_image[:-1]) + 1
    edges = ([0], changes, [len(pair_image)]) if len(pair_image) else ([0],)
    matched: npt.NDArray[np.bool_] = _core.assign_pairs(
        offsets=np.concatenate(edges),
        detections=pairs.detections[chosen],
        objects=pairs.objects[chosen],
        qualities=np.ascontiguousarray(pairs.qualities[chosen, 0]),
        greedy=how == "greedy",
        threads=thread_count(None),
    )
    return matched
