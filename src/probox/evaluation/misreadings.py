"""Checks whether boxes and covariances fit better in another layout, scale, order or unit."""

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
"""IoU from which a detection overlaps an object by half."""
RIGHT_ENOUGH = 0.7
"""Fraction of images with an overlapping top-scoring detection from which no other reading is tried."""
MIN_OBJECTS = 5
"""Minimum number of objects that another reading must overlap: fewer may be chance."""
TIMES_BETTER, SHARE_BETTER = 2.0, 0.15
"""Another reading must overlap at least this multiple of objects, and this larger fraction of all of them."""
HALF_RIGHT, RIGHT_BETTER = 0.5, 0.3
"""Alternatively: maximum fraction of images with a right top-scoring detection, and its minimum increase."""
HARDLY_RIGHT, MIN_IMAGES = 0.12, 20
"""Fraction of images, and minimum number of them, below which boxes are unrelated to the objects."""

INPUTS = (224, 256, 300, 320, 384, 416, 512, 608, 640, 768, 800, 1024, 1280)
"""Common sides of detectors' inputs, in pixels."""

Reading = tuple[str, dict[str, int], Floats]
"""Code and fields of a warning, and the boxes of a sample's pairs in this reading."""

WIDE_SHARE = 0.05
"""Minimum fraction of detections with a std larger than the image; fewer may be outliers."""
MIN_NUMBERS = 100
"""Minimum number of coordinates of matched corners (four per match) for checks of variances."""
FAR_OFF, MIDDLE_OFF = 3.0, 1.5
"""Factors between mean squared errors and mean variances, and between medians, up to which the difference may be
miscalibration. Wrong matches have no effect on medians."""
LARGE, MIN_SIDE = 1000.0, 100
"""Minimum factor for variances in fractions of the image, and minimum median side: for tiny images, an overconfident
detector may reach this factor."""
NEAR, ABOUT = 3.0, 10.0
"""Maximum factors between errors and variances in the corrected reading: for powers; for scales and inverses."""
STEEP, FLAT, RISING, FALLING = 1.25, (0.2, 0.75), 0.4, -0.4
"""Limits of the power with which squared errors grow with the given numbers: 1 for variances, 2 for deviations, 1/2
for squared variances, -1 for inverses."""
MEDIAN = 0.455
"""Median of z^2 of a standard Gaussian."""
MIN_SPREAD = 0.2
"""Minimum standard deviation of the numbers' logarithm for an estimate of the power."""
ORDERS = {
    "x1, x2, y1, y2": [0, 2, 1, 3],
    "y1, x1, y2, x2": [1, 0, 3, 2],
}
"""Other orders of coordinates, and the positions of the variances of x1, y1, x2 and y2 in them."""
MIN_ORDERED, EXACT, ORDER_GAIN, ORDER_SURE = 50, 0.1, 0.01, 4.5
"""Minimum number of matches to detect an order; maximum fraction of errors of 0; minimum gain in nats per coordinate,
and in standard errors."""


def check_readings(columns: Columns, sample: Sample) -> list[InputWarning]:
    """Warn if another reading of the boxes overlaps the objects far better, or if they overlap hardly any."""
    overlaps = sample.overlaps()
    right, images = sample.top_precision(overlaps)
    if right >= RIGHT_ENOUGH or not images:
        return []
    as_is = best = sample.found(overlaps)
    chosen = None
    few = right < HALF_RIGHT and images >= MIN_IMAGES
    # No reading can double the overlapped objects if more than half are overlapped already.
    for reading in _readings(columns, sample) if few or TIMES_BETTER * as_is <= 1.0 else ():
        read = sample.overlaps(reading[-1])
        found = sample.found(read)
        if found > best:
            best, chosen, better = found, reading, sample.top_precision(read)[0]
    if chosen is not None:
        code, fields, _ = chosen
        enough = best * len(sample.objects) >= MIN_OBJECTS
        if enough and best >= TIMES_BETTER * as_is and best - as_is >= SHARE_BETTER:
            return [InputWarning(code, unit="the objects", after=best, before=as_is, **fields)]
        if few and better - right >= RIGHT_BETTER:  # with a high label threshold, detections overlap few objects anyway
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
    """Return squared errors of x1, y1, x2 and y2, the given variances, and image sides, per match.

    Each object is matched with the highest-scoring detection of its class that overlaps it by half and no other object
    more.
    """
    there, overlaps = sample.objects[sample.object], sample.overlaps()
    good = (overlaps >= HALF) & columns.probabilistic[sample.detection]
    good &= columns.labels[sample.detection] == columns.object_labels[there]
    nearest = np.zeros(len(good), bool)
    nearest[sample.best_pairs(good, overlaps, sample.detection)] = True
    pairs = sample.best_pairs(nearest, columns.scores[sample.detection])
    boxes = columns.boxes[sample.detection[pairs]]
    sides = np.tile(columns.shapes[columns.object_rows[there[pairs]]], 2)
    # Detectors clip boxes, so errors at the border are smaller than predicted: these variances are set to unknown.
    inside = (boxes > 0) & (boxes < sides - 1)
    given = np.where(inside, columns.variances[sample.detection[pairs]], 0.0)
    return (boxes - columns.object_boxes[there[pairs]]) ** 2, given, sides


def _check_powers(squares: Floats, given: Floats, sides: Floats) -> list[InputWarning]:
    """Warn if squared errors follow another function of the given numbers, in size and in growth."""
    if len(given) < MIN_NUMBERS or np.log(given).std() < MIN_SPREAD or not squares.any():
        return []
    power = _power(squares, given)

    def ratio(variances: Floats) -> float:
        return float(squares.mean() / variances.mean())

    def typical(variances: Floats) -> float:
        return median(squares / variances) / MEDIAN  # the median is robust to wrong matches

    def warn(code: str, other: float) -> list[InputWarning]:
        return [InputWarning(code, times=float(f"{as_is:.3g}"), other=other)]  # 263,000, not 2.63e+05

    # Around 1 square pixel, a variance, its square and its root are too similar to distinguish by size.
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
    """Return the power with which squared errors grow with `given`: the log-log slope over bins of equal size."""
    bins = np.array_split(np.argsort(given, kind="stable"), 8)
    x = np.log([median(given[rows]) for rows in bins])
    y = np.log([max(median(squares[rows]), 1e-12) for rows in bins])
    x = x - x.mean()
    spread = float((x**2).sum())
    return float((x * y).sum() / spread) if spread > 0 else 0.0


def _check_order(squares: Floats, given: Floats) -> list[InputWarning]:
    """Warn if errors follow the variances far better in another order of coordinates."""
    rows = (given > 0).all(axis=1)
    squares, given = squares[rows], given[rows]
    # Errors of boxes with integer corners are often 0, whatever the variance. Their logarithms carry no information.
    if len(given) < MIN_ORDERED or (squares == 0).mean() > EXACT:
        return []
    gains = {order: _cost(squares, given) - _cost(squares, given[:, places]) for order, places in ORDERS.items()}
    order, gain = max(gains.items(), key=lambda entry: float(entry[1].mean()))
    if gain.mean() <= max(ORDER_GAIN, ORDER_SURE * float(gain.std() / np.sqrt(len(gain)))):
        return []
    return [InputWarning("variances-in-other-order", len(gain), order=order, gain=float(gain.mean()))]


def _cost(squares: Floats, variances: Floats) -> Floats:
    """Return the misfit of errors and variances, in nats per coordinate of each match, for the best common scale.

    The score is that of a heavy-tailed distribution, so that outliers do not dominate.
    """
    ratio = squares / variances
    typical = max(median(ratio), float(np.finfo(np.float64).tiny))
    return np.asarray(np.log1p(ratio / typical).mean(axis=1))


def median(values: npt.NDArray[Any]) -> float:
    """Return the median of all numbers, none of which is NaN.

    Equals `numpy.median`, whose first call imports NumPy's masked arrays and takes as long as evaluating a small file.

    >>> median(np.array([5, 1, 4])), median(np.array([[4.0, 1.0], [2.0, 9.0]]))
    (4.0, 3.0)
    """
    ordered = np.sort(values, axis=None)
    middle = ordered[(len(ordered) - 1) // 2 : len(ordered) // 2 + 1]
    return float(middle.mean())
