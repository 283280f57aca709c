"""P(x) of a detection: how probable it is for each pixel to belong to the detected object."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.convention import Convention
from probox.measures.pdq.settings import settings_of

__all__ = ["heatmap", "plain_rows"]


def heatmap(
    box: npt.ArrayLike,
    covariances: npt.ArrayLike | None,
    width: int,
    height: int,
    convention: Convention,
) -> npt.NDArray[np.float64]:
    """Return P(x in S), the probability of every pixel of a width x height image to belong to the detected object."""
    corners = np.ascontiguousarray(box, dtype=np.float64)
    given = np.zeros((0, 2, 2)) if covariances is None else np.ascontiguousarray(covariances, dtype=np.float64)
    if given.size and plain_rows(given[None], convention)[0]:
        given = np.zeros((0, 2, 2))
    return _core.heatmap(settings_of(convention), box=corners, covariances=given, width=width, height=height)


def plain_rows(covariances: npt.NDArray[np.float64], convention: Convention) -> npt.NDArray[np.bool_]:
    """Return which detections count as boxes without spatial uncertainty."""
    flat = covariances.reshape(len(covariances), 8)
    return np.asarray(~flat.any(axis=1) if convention.sum_zero_is_plain is False else flat.sum(axis=1) == 0.0)
