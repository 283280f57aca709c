"""A law of spread: the logarithm of an edge's relative sigma is linear in features of the edge."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import numpy.typing as npt

from probox.support.types import Floats
from probox.tables.labels import canonical_name

__all__ = ["LARGEST", "REACH", "Slope", "SpreadLaw"]

REACH = 2.0
"""Beyond so many standard deviations of what was seen a feature says no more: the law is level there."""

LARGEST = 1e6
"""No sigma is more than so many sides, or less than one over it."""


@dataclasses.dataclass(frozen=True)
class Slope:
    """What one feature does: a change by `scale`, its standard deviation, adds `slope` to the logarithm of sigma."""

    name: str
    mean: float
    scale: float
    slope: float


@dataclasses.dataclass(frozen=True)
class SpreadLaw:
    """ln(sigma / side) = level + edge + class + sum of slope * (feature - mean) / scale, each level beyond `REACH`.

    Parameters
    ----------
    level : float
        Of an edge all of whose features are at their means.
    edges : tuple of 4 floats
        What x1, y1, x2, y2 add.
    slopes : tuple of Slope
        What features add.
    classes : tuple of (str, float)
        What classes add; any other adds nothing.
    """

    level: float
    edges: tuple[float, float, float, float]
    slopes: tuple[Slope, ...]
    classes: tuple[tuple[str, float], ...] = ()

    def relative_sigmas(self, features: Floats, classes: npt.NDArray[np.str_] | None = None) -> Floats:
        """Return sigma / side of the four edges, (N, 4), from features (N, 4, F)."""
        logarithms = np.full(features.shape[:2], self.level) + np.array(self.edges)
        inputs = self.inputs(features)
        for column, own in enumerate(self.slopes):
            logarithms += own.slope * inputs[:, :, column]
        if classes is not None and self.classes:
            known = {canonical_name(name): value for name, value in self.classes}
            names, inverse = np.unique(classes, return_inverse=True)
            added = np.array([known.get(canonical_name(str(name)), 0.0) for name in names], np.float64)
            logarithms += added[inverse].reshape(-1, 1)
        bound = math.log(LARGEST)
        return np.asarray(np.exp(np.clip(logarithms, -bound, bound)))

    def inputs(self, features: Floats) -> Floats:
        """Return features (..., F) as the law sees them."""
        means, scales = (np.array([getattr(own, name) for own in self.slopes]) for name in ("mean", "scale"))
        return standardised(features, means, scales)

    def scaled(self, factor: float) -> SpreadLaw:
        """Return the law whose sigmas are `factor` times as large."""
        return dataclasses.replace(self, level=self.level + math.log(factor))


def standardised(values: Floats, mean: float | Floats, scale: float | Floats) -> Floats:
    """Return features as the law sees them.

    >>> standardised(np.array([1.0, 3.0, 99.0]), 1.0, 2.0).tolist()
    [0.0, 1.0, 2.0]
    """
    return np.clip((values - mean) / scale, -REACH, REACH)
