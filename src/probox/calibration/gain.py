"""What a calibration is worth on images that it was not fitted on, with bootstrap intervals over images."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Literal

import numpy as np

from probox.analysis.resampling import compute_interval, draw_images
from probox.calibration.corner_fit import FittingPairs
from probox.calibration.corner_maps import box_reach, edge_reach
from probox.measures.measure import Weights, weighted_quantile, weighted_sums
from probox.measures.scoring.calibration_metrics import ONE_STD, error_factor
from probox.measures.scoring.scores import energy_scores, negative_log_likelihoods
from probox.support.types import Floats

LEVELS = (0.68, 0.9)
"""Central intervals of single edges whose coverage is told."""

Z68 = "z68"
"""The key of the error factor of edges, whose parts are not sums but |z| of each edge with its image."""


@dataclasses.dataclass(frozen=True)
class NumberColumn:
    """A number that is told before and after: its name, what is better, and how it is written."""

    key: str
    words: str
    better: Literal["high", "low", "nominal"]
    nominal: float | None = None
    per_cent: bool = True

    def gain(self, before: Floats | float, after: Floats | float) -> Floats:
        """Return how much better `after` is: above 0 is better, whichever way the number goes."""
        if self.nominal is not None:
            return np.asarray(np.abs(np.asarray(before) - self.nominal) - np.abs(np.asarray(after) - self.nominal))
        return np.asarray(after) - before if self.better == "high" else before - np.asarray(after)


def columns(alpha: float = 0.1) -> tuple[NumberColumn, ...]:
    """Return the numbers that are told; the box coverage is that of probability 1 - alpha."""
    return (
        NumberColumn("PDQ", "PDQ", "high"),
        NumberColumn("NLL", "NLL of matched boxes", "low", per_cent=False),
        NumberColumn("energy", "energy score, pixels", "low", per_cent=False),
        NumberColumn(Z68, "error/std (68% |z|)", "nominal", 1.0, per_cent=False),
        *(NumberColumn(f"coverage{100 * q:.0f}", f"edges in their {100 * q:.0f} %", "nominal", q) for q in LEVELS),
        NumberColumn("box_coverage", f"boxes in their {100 * (1 - alpha):g} %", "nominal", 1 - alpha),
        NumberColumn("ignorance", "ignorance of labels", "low", per_cent=False),
    )


COLUMNS = columns()
"""With the usual alpha."""


@dataclasses.dataclass(frozen=True)
class Change:
    """A number on held-out images: before, after, and how much better.

    Parameters
    ----------
    before, after : float
        The number.
    gain : float
        Above 0 where after is better. For a coverage it is how much nearer it is to what it should be.
    low, high : float
        The ends of the 95 % interval of the gain; NaN where there is none.
    """

    before: float
    after: float
    gain: float
    low: float
    high: float

    @property
    def is_sure(self) -> bool:
        """Return whether the interval leaves out 0."""
        return self.low > 0 or self.high < 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Gain:
    """Held-out numbers before and after calibration, by key (``PDQ``, ``NLL``, ``coverage68`` ...), and of the control.

    Parameters
    ----------
    changes : mapping of str to Change
        From the detections as they are to the calibrated ones.
    over_constant : mapping of str to Change
        From the best constant sigma, fitted and held out in the same way, to the calibrated ones; empty if the
        constant is what was fitted.
    columns : tuple of NumberColumn
        What the keys mean.
    folds, images, pairs : int
        How it was found out.
    """

    changes: Mapping[str, Change]
    over_constant: Mapping[str, Change]
    columns: tuple[NumberColumn, ...]
    folds: int
    images: int
    pairs: int


def corner_parts(pairs: FittingPairs, images: int, alpha: float) -> dict[str, Floats]:
    """Return for each number of corners its sum and its count in each image, (I, 2); of `Z68` images and z, (E, 2).

    NLL and energy score are those of all four edges, as `probox evaluate` has them; coverages leave out truncated
    edges. Pairs whose covariances have no inverse count in the energy score alone.
    """
    use = pairs.take(pairs.usable)
    z = np.abs(use.z)
    free = use.free.sum(axis=1).astype(np.float64)

    def by_image(values: Floats, counts: Floats, of: FittingPairs = use) -> Floats:
        return np.stack([np.bincount(of.image_rows, part, images) for part in (values, counts)], axis=1)

    parts = {
        "NLL": by_image(negative_log_likelihoods(use.residuals, use.covariances), np.ones(len(use))),
        "energy": by_image(energy_scores(pairs.residuals, pairs.covariances), np.ones(len(pairs)), pairs),
    }
    parts[Z68] = np.stack([np.repeat(use.image_rows, 4).reshape(z.shape)[use.free], z[use.free]], axis=1)
    for level in LEVELS:
        inside = ((z <= edge_reach(level)) & use.free).sum(axis=1)
        parts[f"coverage{100 * level:.0f}"] = by_image(inside.astype(np.float64), free)
    held = ((z <= box_reach(1 - alpha)) | ~use.free).all(axis=1) & (free > 0)
    parts["box_coverage"] = by_image(held.astype(np.float64), (free > 0).astype(np.float64))
    return parts


def compare(
    before: Mapping[str, Floats],
    after: Mapping[str, Floats],
    columns: tuple[NumberColumn, ...],
    *,
    resamples: int,
    seed: int,
) -> dict[str, Change]:
    """Return the changes from one set of parts to another, images being drawn anew for the intervals."""
    images = len(next(iter(after.values())))
    told = [column for column in columns if column.key in after]
    draws: dict[str, list[Floats]] = {column.key: [] for column in told}
    for weights in draw_images(images, resamples, seed):
        for column in told:
            old, new = (_resample_number(column, parts[column.key], weights) for parts in (before, after))
            draws[column.key].append(column.gain(old, new))
    changes = {}
    for column in told:
        first, last = (_number(column, parts[column.key]) for parts in (before, after))
        gain = compute_interval(float(column.gain(first, last)), np.concatenate(draws[column.key]), images, 0.95)
        changes[column.key] = Change(first, last, gain.value, gain.low, gain.high)
    return changes


def _number(column: NumberColumn, part: Floats) -> float:
    return error_factor(part[:, 1]) if column.key == Z68 else float(_ratio(part.sum(axis=0)))


def _resample_number(column: NumberColumn, part: Floats, weights: Weights) -> Floats:
    """Return the number of each draw of images."""
    if column.key == Z68:
        return weighted_quantile(weights, part[:, 0].astype(np.int64), part[:, 1], ONE_STD)
    return _ratio(weighted_sums(weights, part.T).T)


def _ratio(parts: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(parts[..., 0] / parts[..., 1])
