"""Boxes and covariances that make sense in another layout, scale, order or unit than the one they are given in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from probox.notes import InputWarning
from probox.support.types import Floats

if TYPE_CHECKING:
    from probox.evaluation.input_checks import Columns, Sample

HALF = 0.5
"""An overlap (IoU) from which on a detection is about that object."""
RIGHT_ENOUGH = 0.7
"""Where the surest detection of so many images overlaps an object, no other reading is tried."""
MIN_OBJECTS = 5
"""Objects that another reading must find: fewer may be chance."""
TIMES_BETTER, SHARE_BETTER = 2.0, 0.15
"""Another reading must find so many times as many objects, and so much more of all of them."""
HALF_RIGHT, RIGHT_BETTER = 0.5, 0.3
"""Or: the surest detection is right in fewer images than this share, and by another reading in so much more of them."""
HARDLY_RIGHT, MIN_IMAGES = 0.12, 20
"""Below this share, in at least so many images, boxes have nothing to do with the objects."""

INPUTS = (224, 256, 300, 320, 384, 416, 512, 608, 640, 768, 800, 1024, 1280)
"""Sides of detectors' inputs, in pixels."""

Reading = tuple[str, dict[str, int], Floats]
"""The code of a warning and its fields, and the boxes of a sample's pairs when they are read that way."""

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


def check_readings(columns: Columns, sample: Sample) -> list[InputWarning]:
    """Warn if another reading of the boxes overlaps the objects far better, or if they overlap hardly any."""
    overlaps = sample.overlaps()
    right, images = sample.surest_right(overlaps)
    if right >= RIGHT_ENOUGH or not images:
        return []
    as_is = best = sample.found(overlaps)
    chosen = None
    few = right < HALF_RIGHT and images >= MIN_IMAGES
    # No reading can find twice as many objects where more than half are found as they stand.
    for reading in _readings(columns, sample) if few or TIMES_BETTER * as_is <= 1.0 else ():
        read = sample.overlaps(reading[-1])
        found = sample.found(read)
        if found > best:
            best, chosen, better = found, reading, sample.surest_right(read)[0]
    if chosen is not None:
        code, fields, _ = chosen
        enough = best * len(sample.objects) >= MIN_OBJECTS
        if enough and best >= TIMES_BETTER * as_is and best - as_is >= SHARE_BETTER:
            return [InputWarning(code, unit="the objects", after=best, before=as_is, **fields)]
        if few and better - right >= RIGHT_BETTER:  # above a high label threshold detections overlap few objects
            unit = "the highest-scoring detections per image"
            return [InputWarning(code, unit=unit, after=better, before=right, **fields)]
    if right < HARDLY_RIGHT and images >= MIN_IMAGES:
        return [InputWarning("boxes-far-from-objects", right=right)]
    return []


def _readings(columns: Columns, sample: Sample) -> Iterator[Reading]:
    box = columns.boxes[sample.detection]
    shape = columns.shapes[columns.image_rows[sample.detection]]
    low, high = box[:, :2], box[:, 2:]
    size = high - low
    yield "corners-as-width-and-height", {}, np.concatenate([low, size], axis=1)
    yield "width-and-height-as-corners", {}, np.concatenate([low, low + high], axis=1)
    yield "centres-as-corners", {}, np.concatenate([low - size / 2, high - size / 2], axis=1)
    mirror = np.concatenate([shape - high, shape - low], axis=1)
    for code, places in (("mirrored-left-to-right", [0, 2]), ("mirrored-upside-down", [1, 3])):
        mirrored = box.copy()
        mirrored[:, places] = mirror[:, places]
        yield code, {}, mirrored
    yield "axes-swapped", {}, box[:, [1, 0, 3, 2]]
    yield "normalised-boxes", {}, box * np.tile(shape, 2)
    normalised = np.concatenate([low, size], axis=1) * np.tile(shape, 2)
    yield "normalised-corners-as-width-and-height", {}, normalised
    longer = shape.max(axis=1, keepdims=True)
    padding = np.tile((longer - shape) / 2, 2)
    for side in INPUTS:  # boxes in pixels of a detector's square input: stretched, or padded in two ways
        fields = {"side": side}
        yield "input-pixels", fields, box * np.tile(shape / side, 2)
        yield "input-pixels-padded-at-end", fields, box * (longer / side)
        yield "input-pixels-padded-around", fields, box * (longer / side) - padding


def check_uncertainty(columns: Columns, sample: Sample) -> list[InputWarning]:
    """Warn if corners could be anywhere, or if variances look like deviations, squares, inverses or of other units."""
    probabilistic = int(columns.probabilistic.sum())
    if not probabilistic:
        return []
    sides = np.tile(columns.shapes[columns.image_rows], 2)
    wide = np.flatnonzero((columns.variances > sides**2).any(axis=1))
    if len(wide) >= WIDE_SHARE * probabilistic:
        return [InputWarning("variance-larger-than-image", len(wide), wide, total=probabilistic)]
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


def _check_powers(squares: Floats, given: Floats, sides: Floats) -> list[InputWarning]:
    """Warn if squared errors follow another function of what was given, in size and in how they grow."""
    if len(given) < MIN_NUMBERS or np.log(given).std() < MIN_SPREAD or not squares.any():
        return []
    power = _power(squares, given)

    def ratio(variances: Floats) -> float:
        return float(squares.mean() / variances.mean())

    def typical(variances: Floats) -> float:
        return median(squares / variances) / MEDIAN  # wrong matches do not count

    def warn(code: str, other: float) -> list[InputWarning]:
        return [InputWarning(code, times=float(f"{as_is:.3g}"), other=other)]  # 263,000, not 2.63e+05

    # Around 1 square pixel a variance, its square and its root are too much alike for the size to tell.
    as_is, middle, square, root = ratio(given), typical(given), ratio(given**2), ratio(np.sqrt(given))
    small = as_is > FAR_OFF * max(1.0, square) and middle > MIDDLE_OFF
    large = as_is < min(1 / FAR_OFF, root / ABOUT) and middle < 1 / MIDDLE_OFF
    if small and 1 / NEAR < square < NEAR and power > STEEP:
        return warn("deviations-as-variances", square)
    if large and 1 / NEAR < root < NEAR and FLAT[0] < power < FLAT[1]:
        return warn("squared-variances", root)
    as_is, scaled, inverse = middle, typical(given * sides**2), typical(1 / given)
    if as_is > LARGE and median(sides) > MIN_SIDE and 1 / ABOUT < scaled < ABOUT and power > RISING:
        return warn("normalised-variances", scaled)
    if not 1 / FAR_OFF < as_is < FAR_OFF and 1 / ABOUT < inverse < ABOUT and power < FALLING:
        return warn("inverse-variances", inverse)
    return []


def _power(squares: Floats, given: Floats) -> float:
    """Return the power of `given` that squared errors grow with: the slope of logarithms over bins of equal size."""
    bins = np.array_split(np.argsort(given, kind="stable"), 8)
    x = np.log([median(given[rows]) for rows in bins])
    y = np.log([max(median(squares[rows]), 1e-12) for rows in bins])
    x = x - x.mean()
    spread = float((x**2).sum())
    return float((x * y).sum() / spread) if spread > 0 else 0.0


def _check_order(squares: Floats, given: Floats) -> list[InputWarning]:
    """Warn if errors follow the variances far better when those are read in another order of coordinates."""
    rows = (given > 0).all(axis=1)
    squares, given = squares[rows], given[rows]
    # Errors of boxes with integer corners are often 0, whatever the variance: their logarithms tell no order.
    if len(given) < MIN_ORDERED or (squares == 0).mean() > EXACT:
        return []
    gains = {order: _cost(squares, given) - _cost(squares, given[:, places]) for order, places in ORDERS.items()}
    order, gain = max(gains.items(), key=lambda entry: float(entry[1].mean()))
    if gain.mean() <= max(ORDER_GAIN, ORDER_SURE * float(gain.std() / np.sqrt(len(gain)))):
        return []
    return [InputWarning("variances-in-other-order", len(gain), order=order, gain=float(gain.mean()))]


def _cost(squares: Floats, variances: Floats) -> Floats:
    """Return how badly errors follow variances, in nats per coordinate of each match, whatever their common scale.

    That of a heavy-tailed distribution, so that a few wild errors do not decide.
    """
    ratio = squares / variances
    typical = max(median(ratio), float(np.finfo(np.float64).tiny))
    return np.asarray(np.log1p(ratio / typical).mean(axis=1))


def median(values: npt.NDArray[Any]) -> float:
    """Return the median of all numbers, none of which is missing.

    As `numpy.median` has it, which loads NumPy's masked arrays when it is first called: as long as a small file takes.

    >>> median(np.array([5, 1, 4])), median(np.array([[4.0, 1.0], [2.0, 9.0]]))
    (4.0, 3.0)
    """
    ordered = np.sort(values, axis=None)
    middle = ordered[(len(ordered) - 1) // 2 : len(ordered) // 2 + 1]
    return float(middle.mean())
