"""What random masks cost a detector in score: its detections with masks beside those without."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Cost", "mask_cost"]

LEVEL = 0.5
"""The score that detections are counted above."""

LARGE = 0.3
"""The share of the detections above the level whose loss, or gain, is worth a warning."""


@dataclasses.dataclass(frozen=True)
class Cost:
    """How many detections score above a level, and how high on average, without masks and with them."""

    level: float
    plain: int
    masked: int
    plain_mean: float
    masked_mean: float

    @property
    def large(self) -> bool:
        """Return whether masks took a good part of what the detector was sure of, or made as much up."""
        return self.plain > 0 and not (1.0 - LARGE) * self.plain <= self.masked <= self.plain / (1.0 - LARGE)

    @property
    def _lower(self) -> bool:
        """Return whether scores above the level sum up to less: as many detections can each be less sure."""
        return not self.masked or self.masked * self.masked_mean < self.plain * self.plain_mean * (1.0 - 1e-6)

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what is to be said about it, a sentence or two."""
        if not self.plain:
            return ("No detection scores without masks either, so what they cost is not known.",)
        means = f", their mean score from {self.plain_mean:.2f} to {self.masked_mean:.2f}" if self.masked else ""
        verdict = "Masks cost score" if self.masked < self.plain or self._lower else "Masks cost no score"
        which = f" above {self.level:g}" if self.level else ""
        said = f"{verdict}: detections{which} went from {self.plain:,} to {self.masked:,}{means}."
        if not self.large:
            return (said,)
        lost = (self.plain - self.masked) / self.plain
        share = f"{lost:.0%} of what the detector is sure of" if lost > 0 else f"{-lost:.0%} more than without masks"
        return (
            said,
            f"warning: that is {share}: it was not trained for masks like these. Lower --dropout-rate, or mask other layers.",
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers by their names, None for a mean of nothing."""
        numbers = dataclasses.asdict(self)
        return {name: None if value != value else value for name, value in numbers.items()} | {"large": self.large}


def mask_cost(masked: npt.ArrayLike, plain: npt.ArrayLike) -> Cost:
    """Return what masks cost, from the scores of all detections with masks and without.

    Detections are counted above 0.5; for a detector that is never as sure as that, all are.

    >>> cost = mask_cost([0.9, 0.6, 0.4], [0.9, 0.8, 0.7, 0.3])
    >>> cost.notes
    ('Masks cost score: detections above 0.5 went from 3 to 2, their mean score from 0.80 to 0.75.', \
'warning: that is 33% of what the detector is sure of: it was not trained for masks like these. Lower --dropout-rate, \
or mask other layers.')
    """
    with_masks, without = np.asarray(masked, np.float64), np.asarray(plain, np.float64)
    level = LEVEL if (without > LEVEL).any() else 0.0
    before, after = without[without > level], with_masks[with_masks > level]
    return Cost(
        level=level,
        plain=len(before),
        masked=len(after),
        plain_mean=float(before.mean()) if len(before) else float("nan"),
        masked_mean=float(after.mean()) if len(after) else float("nan"),
    )
