"""Does an uncertainty tell true from false positives? MUE, the minimum uncertainty error."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

__all__ = ["minimum_uncertainty_error", "prepared_mue"]

FloatArray = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


def minimum_uncertainty_error(uncertainties: FloatArray, hits: Flags) -> float:
    """Return min over d of 1/2 P(u > d | TP) + 1/2 P(u <= d | FP); 0.5 says nothing, 0 tells all apart.

    NaN without true or without false positives.
    """
    return prepared_mue(uncertainties, hits)(np.ones(len(hits)))


def prepared_mue(uncertainties: FloatArray, hits: Flags) -> Callable[[FloatArray], float]:
    """Return MUE as a function of how often each detection is there."""
    order = np.argsort(uncertainties, kind="stable")
    ranked = uncertainties[order]
    ends = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True)) if len(ranked) else np.zeros(0, np.int64)
    hit = hits[order].astype(np.float64)

    def error(counts: FloatArray) -> float:
        there = counts[order]
        right = there * hit
        kept, wrong = np.cumsum(right), np.cumsum(there - right)
        if not len(kept) or kept[-1] == 0 or wrong[-1] == 0:
            return math.nan
        errors = 0.5 * (1.0 - kept[ends] / kept[-1]) + 0.5 * wrong[ends] / wrong[-1]
        return float(min(errors.min(), 0.5))  # below the least u everything is rejected: 1/2

    return error
