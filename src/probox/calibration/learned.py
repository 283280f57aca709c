"""Sigmas by a learned law, from what a frozen detector gives of each box."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import numpy as np

from probox.calibration.given import Given
from probox.calibration.spread_features import SIGMA_FEATURES, edge_features
from probox.calibration.spread_law import SpreadLaw
from probox.support.types import Floats
from probox.tables.labels import canonical_name

__all__ = ["Learned"]


@dataclasses.dataclass(frozen=True)
class Learned:
    """Sigmas that follow from score, size, class and, if the law has them, the detector's own sigmas.

    With own sigmas correlations stay; without, corners become uncorrelated.
    """

    method: ClassVar[str] = "learned"
    law: SpreadLaw

    @property
    def needs_covariances(self) -> bool:
        """Return whether the law looks at the detector's own sigmas."""
        return any(slope.name in SIGMA_FEATURES for slope in self.law.slopes)

    def sigmas(self, given: Given) -> Floats:
        """Return new standard deviations; an edge of a box without extent keeps its own."""
        features = edge_features(given, self.needs_covariances)
        new = self.law.relative_sigmas(features, given.classes) * given.sides
        return np.where(given.sides > 0, new, given.sigmas)

    def scaled(self, factor: float) -> Learned:
        """Return the map whose results are `factor` times as large."""
        return Learned(self.law.scaled(factor))

    def knows(self, name: str) -> bool:
        """Return whether a class was among those that it was learned from."""
        return canonical_name(name) in {canonical_name(own) for own, _ in self.law.classes}

    def __str__(self) -> str:
        steep = sorted(self.law.slopes, key=lambda own: -abs(own.slope))
        share = 100 * math.exp(self.law.level)
        factors = ", ".join(f"{own.name} x {math.exp(own.slope):.2f}" for own in steep)
        return f"sigmas are {share:.2g} % of the sides on average; a standard deviation more of {factors}"
