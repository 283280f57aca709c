"""Covariances that can hardly be meant as they stand: judged by the image, and by how wrong corners really are."""

from __future__ import annotations

import numpy as np

from probox.evaluation.oddities.columns import Columns, Floats, Oddity, median
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
ORDERS = {
    "x1, x2, y1, y2": [0, 2, 1, 3],
    "y1, x1, y2, x2": [1, 0, 3, 2],
}
"""Other orders of coordinates, and where in them the variances of x1, y1, x2 and y2 stand."""
MIN_ORDERED, ORDER_GAIN, ORDER_SURE = 50, 0.01, 5.0
"""Matches that it takes to tell an order; how much better, in nats per coordinate, and by how many standard errors."""


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
    squares, given = _errors_and_variances(columns, sample)
    known = given > 0
    return _check_powers(squares[known], given[known]) or _check_order(squares, given)


def _errors_and_variances(columns: Columns, sample: Sample) -> tuple[Floats, Floats]:
    """Return squared errors of x1, y1, x2 and y2, and what was given as their variances, a row for each match.

    Each object is matched with the surest detection of its class that overlaps it by half.
    """
    there = sample.objects[sample.object]
    good = (sample.overlaps() >= HALF) & columns.probabilistic[sample.detection]
    good &= columns.labels[sample.detection] == columns.object_labels[there]
    pairs = sample.best_pairs(good, columns.scores[sample.detection])
    given = columns.variances[sample.detection[pairs]]
    errors = columns.boxes[sample.detection[pairs]] - columns.object_boxes[there[pairs]]
    return errors**2, given


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
    x = np.log([median(given[rows]) for rows in bins])
    y = np.log([max(median(squares[rows]), 1e-12) for rows in bins])
    x = x - x.mean()
    spread = float((x**2).sum())
    return float((x * y).sum() / spread) if spread > 0 else 0.0


def _check_order(squares: Floats, given: Floats) -> list[Oddity]:
    """Say if errors follow the variances far better when those are read in another order of coordinates."""
    rows = (given > 0).all(axis=1)
    squares, given = squares[rows], given[rows]
    if len(given) < MIN_ORDERED or not squares.any():
        return []
    gains = {order: _cost(squares, given) - _cost(squares, given[:, places]) for order, places in ORDERS.items()}
    order, gain = max(gains.items(), key=lambda entry: float(entry[1].mean()))
    if gain.mean() <= max(ORDER_GAIN, ORDER_SURE * float(gain.std() / np.sqrt(len(gain)))):
        return []
    text = (
        f"errors of corners follow their variances better if these are read as {order}, by {gain.mean():.2g} nats per "
        f"coordinate over {len(gain):,} matches"
    )
    return [Oddity("variances in another order", text, "give covariances in the order x1, y1, x2, y2")]


def _cost(squares: Floats, variances: Floats) -> Floats:
    """Return how badly errors follow variances, in nats per coordinate of each match, whatever their common scale.

    That of a heavy-tailed distribution, so that a few wild errors do not decide.
    """
    ratio = squares / variances
    typical = max(median(ratio), float(np.finfo(np.float64).tiny))
    return np.asarray(np.log1p(ratio / typical).mean(axis=1))
