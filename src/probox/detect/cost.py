"""What random masks change: detections with masks beside those without."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.measures.boxes.box_definition import match_greedily, overlaps
from probox.tables.detections import Detections

__all__ = ["Cost", "mask_cost", "pair_scores"]

LEVEL = 0.5
"""The score that detections are counted above."""

SAME_IOU = 0.5
"""The least IoU of two detections of one class that are taken for the same."""

LARGE = 0.3
"""The fraction of the detections above the level that may disappear, or appear, without a warning."""


@dataclasses.dataclass(frozen=True)
class Cost:
    """How many detections score above a level, and how high on average, without masks and with them."""

    level: float
    plain: int
    masked: int
    remain: int
    """Detections above the level in both; the others of `plain` disappear, the others of `masked` appear."""
    plain_mean: float
    masked_mean: float

    @property
    def disappear(self) -> int:
        """Return how many detections score above the level without masks only."""
        return self.plain - self.remain

    @property
    def appear(self) -> int:
        """Return how many detections score above the level with masks only."""
        return self.masked - self.remain

    @property
    def large(self) -> bool:
        """Return whether masks remove or add a large fraction of the detections."""
        return self.plain > 0 and max(self.disappear, self.appear) > LARGE * self.plain

    @property
    def notes(self) -> tuple[str, ...]:
        """Return sentences about both directions, and a warning if one is large."""
        which = f"detections above {self.level:g}" if self.level else "detections"
        if not self.plain:
            return (f"Without masks there are no {which}, with masks {self.masked:,}: probox can't compare them.",)
        means = f", with masks {self.masked_mean:.2f}" if self.masked else ""
        said = (
            f"With random masks, {self.remain:,} of {self.plain:,} {which} remain, {self.disappear:,} disappear and "
            f"{self.appear:,} appear{', which may be false positives' if self.appear else ''}. "
            f"Mean score without masks {self.plain_mean:.2f}{means}."
        )
        if not self.large:
            return (said,)
        removed, added = self.disappear / self.plain, self.appear / self.plain
        return (
            said,
            f"warning: masks remove {removed:.0%} and add {added:.0%} of the {which}: the network was not trained for "
            "such masks. Lower --dropout-rate, or mask other layers.",
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers by their names, None for a mean of nothing."""
        numbers = dataclasses.asdict(self)
        named = {name: None if value != value else value for name, value in numbers.items()}
        return named | {"disappear": self.disappear, "appear": self.appear, "large": self.large}


def pair_scores(
    boxes: npt.NDArray[np.float64],
    labels: npt.NDArray[np.integer[Any]],
    scores: npt.NDArray[np.float64],
    masked: Detections,
) -> npt.NDArray[np.float32]:
    """Return the score (N, 2) of each detection without masks, and of the same one with masks, 0 if there is none.

    Detections are the same if they have one class and an IoU of at least 0.5. Each detection with masks, the best
    first, gets the one without masks that it overlaps most among those that are left.
    """
    order = np.argsort(-masked.scores, kind="stable")
    with_masks, without = (
        np.concatenate([own[:, :2], own[:, 2:] - own[:, :2]], axis=1) for own in (masked.boxes[order], boxes)
    )
    nothing = np.zeros(len(boxes), bool)
    ious = overlaps(with_masks, without, nothing) * (masked.labels[order][:, None] == labels)
    match = match_greedily(ious, SAME_IOU, nothing, nothing)
    pairs = np.stack([scores, np.zeros(len(scores))], axis=1).astype(np.float32)
    pairs[match[match >= 0], 1] = masked.scores[order][match >= 0]
    return pairs


def mask_cost(masked: npt.ArrayLike, plain: npt.ArrayLike) -> Cost:
    """Return what masks change, from the scores of all detections with masks and the pairs of `pair_scores`.

    Detections are counted above 0.5; if no detection without masks scores so high, all are.

    >>> cost = mask_cost([0.9, 0.6, 0.4], [[0.9, 0.9], [0.8, 0.4], [0.7, 0.0], [0.3, 0.6]])
    >>> cost.remain, cost.disappear, cost.appear
    (1, 2, 1)
    """
    scores, pairs = np.asarray(masked, np.float64), np.asarray(plain, np.float64).reshape(-1, 2)
    level = LEVEL if (pairs[:, 0] > LEVEL).any() else 0.0
    before, after = pairs[pairs[:, 0] > level], scores[scores > level]
    return Cost(
        level=level,
        plain=len(before),
        masked=len(after),
        remain=int((before[:, 1] > level).sum()),
        plain_mean=float(before[:, 0].mean()) if len(before) else float("nan"),
        masked_mean=float(after.mean()) if len(after) else float("nan"),
    )
