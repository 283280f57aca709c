"""What sigmas are learned from: numbers of each edge that a frozen detector gives anyway."""

from __future__ import annotations

import numpy as np

from probox.calibration.given import Given
from probox.support.types import Floats

__all__ = ["BOX_FEATURES", "SIGMA_FEATURES", "edge_features", "feature_names"]

BOX_FEATURES = ("score", "side along", "side across")
"""Of every detection: the log odds of its score, and the logarithms of the box's side that the edge is measured by and
of the other one. Together these two say size and aspect."""

SIGMA_FEATURES = ("own sigma", "other edges' sigma")
"""Of detections with covariances: the logarithms of the edge's own sigma over its side, and of the mean of the other
three."""

LEAST_ODDS = 1e-3
"""Scores nearer to 0 or 1 than this say no more."""

LEAST = 1e-6
"""Sides and relative sigmas below this count as this, so that they have a logarithm."""


def feature_names(own_sigmas: bool) -> tuple[str, ...]:
    """Return what the columns of `edge_features` are called."""
    return BOX_FEATURES + (SIGMA_FEATURES if own_sigmas else ())


def edge_features(given: Given, own_sigmas: bool) -> Floats:
    """Return the features of the four edges, (N, 4, F).

    >>> given = Given(sigmas=np.array([[1.0, 2, 1, 2]]), sides=np.array([[10.0, 20, 10, 20]]),
    ...               classes=np.array(["cup"]), scores=np.array([0.5]))
    >>> np.exp(edge_features(given, own_sigmas=True))[0, 0].round(3).tolist()
    [1.0, 10.0, 20.0, 0.1, 0.1]
    """
    score = np.clip(given.scores, LEAST_ODDS, 1.0 - LEAST_ODDS)
    along = np.log(np.maximum(given.sides, LEAST))
    columns = [np.repeat(np.log(score / (1.0 - score))[:, None], 4, axis=1), along, along[:, [1, 0, 3, 2]]]
    if own_sigmas:
        relative = np.maximum(given.sigmas / np.maximum(given.sides, LEAST), LEAST)
        # The mean of sigmas, not of logarithms: one edge at the border, whose sigma is next to 0, moves it little.
        others = (relative.sum(axis=1, keepdims=True) - relative) / 3.0
        columns += [np.log(relative), np.log(np.maximum(others, LEAST))]
    return np.stack(columns, axis=2)
