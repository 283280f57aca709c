"""Covariances that can hardly be meant as they stand: judged by the image, and by how wrong corners really are."""

from __future__ import annotations

import numpy as np

from probox.evaluation.oddities.columns import Columns, Floats, Oddity
from probox.evaluation.oddities.overlaps import HALF, Sample

__all__ = ["check_uncertainty"]

WIDE_SHARE = 0.05
"""Detections with a corner that could be anywhere: below this share of all they may be outliers."""
MIN_NUMBERS = 100
"""Coordinates of matched corners (four per match) that it takes to tell how wrong corners really are."""
FAR_OFF = 3.0
"""Mean squared errors and mean variances that differ by less than this factor are a matter of calibration."""
NEAR = 3.0
"""The factor by which they may differ when variances are read in the right way."""
STEEP, FLAT = 1.25, (0.2, 0.75)
"""How squared errors grow with the given numbers, as a power: 1 for variances, 2 for deviations, 1/2 for squares."""
MIN_SPREAD = 0.2
"""Deviation of the numbers' logarithm from which on a power can be told."""


def check_uncertainty(columns: Columns, sample: Sample) -> list[Oddity]:
    """Say if corners could be anywhere, or if variances look like standard deviations or like squared variances."""
    probabilistic = int(columns.probabilistic.sum())
    if not probabilistic:
        return []
    sides = np.tile(columns.shapes[columns.image_rows], 2)
    wide = np.flatnonzero((columns.variances > sides**2).any(axis=1))
    if len(wide) >= WIDE_SHARE * probabilistic:
        text = (
            f"{len(wide):,} of {probabilistic:,} probabilistic detections have a corner whose standard deviation is "
            "larger than the image"
        )
        return [Oddity("variance larger than the image", text, "give covariances in square pixels of the image", wide)]
    return _check_powers(*_errors_and_variances(columns, sample))


def _errors_and_variances(columns: Columns, sample: Sample) -> tuple[Floats, Floats]:
    """Return squared errors of coordinates and what was given as their variances.

    Each object is matched with the surest detection of its class that overlaps it by half.
    """
    there = sample.objects[sample.object]
    good = (sample.overlaps() >= HALF) & columns.probabilistic[sample.detection]
    good &= columns.labels[sample.detection] == columns.object_labels[there]
    pairs = sample.best_pairs(good, columns.scores[sample.detection])
    given = columns.variances[sample.detection[pairs]]
    errors = columns.boxes[sample.detection[pairs]] - columns.object_boxes[there[pairs]]
    known = given > 0
    return errors[known] ** 2, given[known]


def _check_powers(squares: Floats, given: Floats) -> list[Oddity]:
    """Say if squared errors follow the square or the root of what was given, in size and in how they grow."""
    if len(given) < MIN_NUMBERS or np.log(given).std() < MIN_SPREAD or not squares.any():
        return []
    power = _power(squares, given)

    def ratio(variances: Floats) -> float:
        return float(squares.mean() / variances.mean())

    as_is = ratio(given)
    if as_is > FAR_OFF and 1 / NEAR < ratio(given**2) < NEAR and power > STEEP:
        text = (
            f"squared errors of corners are {as_is:.3g} times as large as their variances, but {ratio(given**2):.2g} "
            "times as large as the variances' squares"
        )
        return [Oddity("deviations given as variances", text, "these are likely standard deviations: square them")]
    if as_is < 1 / FAR_OFF and 1 / NEAR < ratio(np.sqrt(given)) < NEAR and FLAT[0] < power < FLAT[1]:
        text = (
            f"squared errors of corners are {as_is:.2g} times as large as their variances, but "
            f"{ratio(np.sqrt(given)):.2g} times as large as the variances' roots"
        )
        return [Oddity("squared variances", text, "these are likely squares of variances: take the square root")]
    return []


def _power(squares: Floats, given: Floats) -> float:
    """Return the power of `given` that squared errors grow with: the slope of logarithms over bins of equal size."""
    bins = np.array_split(np.argsort(given, kind="stable"), 8)
    x = np.log([np.median(given[rows]) for rows in bins])
    y = np.log([max(float(np.median(squares[rows])), 1e-12) for rows in bins])
    x = x - x.mean()
    spread = float((x**2).sum())
    return float((x * y).sum() / spread) if spread > 0 else 0.0
