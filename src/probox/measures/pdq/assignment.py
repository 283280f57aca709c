"""Which pairs of a detection and an object match."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.tables.results import PairTable

__all__ = ["assign"]


def assign(
    pair_image: npt.NDArray[np.int64], pairs: PairTable, how: str, kept: npt.NDArray[np.bool_] | None = None
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
    kept : (K,) bool, optional
        Pairs to choose from. Default: all.
    """
    rows = np.arange(len(pairs)) if kept is None else np.flatnonzero(kept)
    images = pair_image[rows]
    starts = np.flatnonzero(np.concatenate([[True], images[1:] != images[:-1]])) if len(rows) else np.zeros(0, int)
    offsets = np.concatenate([starts, [len(rows)]]).astype(np.int64)
    matched = np.zeros(len(pairs), dtype=bool)
    matched[rows] = _core.assign_pairs(
        offsets=offsets,
        detections=np.ascontiguousarray(pairs.detections[rows]),
        objects=np.ascontiguousarray(pairs.objects[rows]),
        qualities=np.ascontiguousarray(pairs.qualities[rows, 0]),
        greedy=how == "greedy",
    )
    return matched
