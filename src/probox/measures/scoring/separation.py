"""Does an uncertainty tell true from false positives? MUE, the minimum uncertainty error."""

from __future__ import annotations

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
    return float(prepared_mue(uncertainties, hits)(np.ones((1, len(hits))))[0])


def prepared_mue(uncertainties: FloatArray, hits: Flags) -> Callable[[FloatArray], FloatArray]:
    """Return MUE as a function of how often each detection is there, (R, K), for R numbers."""
    order = np.argsort(uncertainties, kind="stable")
    ranked, hit = uncertainties[order], hits[order]
    ends = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], np.ones(min(len(ranked), 1), bool)))

    def errors(counts: FloatArray) -> FloatArray:
        there = counts[:, order]
        right, wrong = ((there * flags).sum(axis=1, keepdims=True) for flags in (hit, ~hit))
        with np.errstate(invalid="ignore", divide="ignore"):
            # 1/2 + 1/2 [P(u <= d | FP) - P(u <= d | TP)], whose difference grows with wrong and falls with right ones.
            steps = there * np.where(hit, -1.0 / right, 1.0 / wrong)
        differences = np.cumsum(steps, axis=1)[:, ends]
        # Below the least u everything is rejected, and the difference is 0.
        least: FloatArray = 0.5 + 0.5 * differences.min(axis=1, initial=0.0)
        least[(right == 0)[:, 0] | (wrong == 0)[:, 0]] = np.nan
        return least

    return errors
