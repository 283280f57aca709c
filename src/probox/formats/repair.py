"""Covariances made valid, when the user asks for it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from probox.detections import nearest_covariances

__all__ = ["repaired"]


def repaired(covariances: npt.NDArray[np.float64], notes: list[str]) -> npt.NDArray[np.float64]:
    """Return covariances that are symmetric and positive semi-definite, and say how many were not."""
    finite = np.isfinite(covariances).reshape(len(covariances), -1).all(axis=1)
    nearest: npt.NDArray[np.float64] = covariances.copy()
    nearest[finite] = nearest_covariances(covariances[finite])
    changed = int((nearest[finite] != covariances[finite]).reshape(int(finite.sum()), -1).any(axis=1).sum())
    if not changed:
        return covariances
    notes.append(f"{changed} detections had covariances that are not valid: replaced by the nearest that are")
    nearest.flags.writeable = False
    return nearest
