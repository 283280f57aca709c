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
FAR_OFF, MIDDLE_OFF = 3.0, 1.5
"""Mean squared errors and mean variances that differ by less than this factor are a matter of calibration; medians, on
which wrong matches have no effect, must differ too."""
LARGE, MIN_SIDE = 1000.0, 100
"""The factor from which variances may be fractions of the image, and the median side: a detector of tiny images may be
overconfident by as much."""
NEAR, ABOUT = 3.0, 10.0
"""The factor by which they may differ when variances are read in the right way: powers, scales and inverses."""
STEEP, FLAT, RISING, FALLING = 1.25, (0.2, 0.75), 0.4, -0.4
"""How squared errors grow with the given numbers, as a power: 1 for variances, 2 for deviations, 1/2 for squares, -1
for inverses."""
MEDIAN = 0.455
"""The median of a squared error in units of its variance, of a Gaussian."""
MIN_SPREAD = 0.2
"""Deviation of the numbers' logarithm from which on a power can be told."""
ORDERS = {
    "x1, x2, y1, y2": [0, 2, 1, 3],
    "y1, x1, y2, x2": [1, 0, 3, 2],
}
"""Other orders of coordinates, and where in them the variances of x1, y1, x2 and y2 stand."""
MIN_ORDERED, EXACT, ORDER_GAIN, ORDER_SURE = 50, 0.1, 0.01, 4.5
"""Matches that it takes to tell an order; the fraction of errors that may be 0; how much better, in nats per
coordinate, and by how many standard errors."""


def check_uncertainty(columns: Columns, sample: Sample) -> list[Oddity]:
    """Warn if corners could be anywhere, or if variances look like deviations, squares, inverses or of other units."""
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
    squares, given, sides = _errors_and_variances(columns, sample)
    known = given > 0
    return _check_powers(squares[known], given[known], sides[known]) or _check_order(squares, given)


def _errors_and_variances(columns: Columns, sample: Sample) -> tuple[Floats, Floats, Floats]:
    """Return squared errors of x1, y1, x2 and y2, what was given as their variances, and sides of images, by match.

    Each object is matched with the surest detection of its class that overlaps it by half, and no other object more.
    """
    there, overlaps = sample.objects[sample.object], sample.overlaps()
    good = (overlaps >= HALF) & columns.probabilistic[sample.detection]
    good &= columns.labels[sample.detection] == columns.object_labels[there]
    nearest = np.zeros(len(good), bool)
    nearest[sample.best_pairs(good, overlaps, sample.detection)] = True
    pairs = sample.best_pairs(nearest, columns.scores[sample.detection])
    boxes = columns.boxes[sample.detection[pairs]]
    sides = np.tile(columns.shapes[columns.object_rows[there[pairs]]], 2)
    # Detectors clip boxes: an error on the border is smaller than its variance says, which is taken for unknown.
    inside = (boxes > 0) & (boxes < sides - 1)
    given = np.where(inside, columns.variances[sample.detection[pairs]], 0.0)
    return (boxes - columns.object_boxes[there[pairs]]) ** 2, given, sides


def _check_powers(squares: Floats, given: Floats, sides: Floats) -> list[Oddity]:
    """Warn if squared errors follow another function of what was given, in size and in how they grow."""
    if len(given) < MIN_NUMBERS or np.log(given).std() < MIN_SPREAD or not squares.any():
        return []
    power = _power(squares, given)

    def ratio(variances: Floats) -> float:
        return float(squares.mean() / variances.mean())

    def typical(variances: Floats) -> float:
        return median(squares / variances) / MEDIAN  # wrong matches do not count

    def warn(kind: str, other: float, whose: str, remedy: str) -> list[Oddity]:
        times = f"{float(f'{as_is:.3g}'):,g}"  # 263,000, not 2.63e+05
        text = (
            f"squared errors of corners are {times} times as large as their variances, but {other:.2g} times as large "
            f"as the variances' {whose}"
        )
        return [Oddity(kind, text, remedy)]

    # Around 1 square pixel a variance, its square and its root are too much alike for the size to tell.
    as_is, middle, square, root = ratio(given), typical(given), ratio(given**2), ratio(np.sqrt(given))
    small = as_is > FAR_OFF * max(1.0, square) and middle > MIDDLE_OFF
    large = as_is < min(1 / FAR_OFF, root / ABOUT) and middle < 1 / MIDDLE_OFF
    if small and 1 / NEAR < square < NEAR and power > STEEP:
        remedy = "these are likely standard deviations: square them"
        return warn("deviations given as variances", square, "squares", remedy)
    if large and 1 / NEAR < root < NEAR and FLAT[0] < power < FLAT[1]:
        remedy = "these are likely squares of variances: take the square root"
        return warn("squared variances", root, "roots", remedy)
    as_is, scaled, inverse = middle, typical(given * sides**2), typical(1 / given)
    if as_is > LARGE and median(sides) > MIN_SIDE and 1 / ABOUT < scaled < ABOUT and power > RISING:
        remedy = "covariances look divided by the image's size: give them in square pixels"
        return warn("normalised variances", scaled, "products with the squared sides of the image", remedy)
    if not 1 / FAR_OFF < as_is < FAR_OFF and 1 / ABOUT < inverse < ABOUT and power < FALLING:
        remedy = "these are likely precision matrices: invert them"
        return warn("inverse variances", inverse, "inverses", remedy)
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
    # Errors of boxes with integer corners are often 0, whatever the variance: their logarithms tell no order.
    if len(given) < MIN_ORDERED or (squares == 0).mean() > EXACT:
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
