"""The measure in plain NumPy: slow, short and meant to be read beside the paper.

Nothing here is tuned. Every pixel of every map is computed, every pair of an object and a detection
is looked at. The fast kernel is tested against this module, and this module against the reference.

Hall et al., "Probabilistic Object Detection: Definition and Evaluation", WACV 2020: the spatial probability of a
pixel is its section 4, the rest its section 5. Under ``reference`` the arithmetic of heatmaps is that of the reference
to the last bit of float32, wherever that was observed: distributions are evaluated in float64 and stored as float32,
everything after that (taking mass away, the product) is float32, and cuts compare in float32.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from probox.convention import Convention
from probox.support.optional import require
from probox.support.types import Array, Bools
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.labels import BACKGROUND_NAMES, align_labels

__all__ = [
    "ImageScore",
    "Match",
    "Score",
    "assign",
    "bivariate_cdf",
    "corner_map",
    "evaluate",
    "gaussian_cdf",
    "heatmap",
    "is_plain",
    "losses",
    "pair_tables",
    "plain_heatmap",
    "qualities",
    "region_of_interest",
    "score_image",
]


# --- the spatial probability of every pixel ---------------------------------------------------------------------------

EDGE = 1e-14
"""How far before an edge a corner's distribution is read: a corner without variance that lies exactly on an edge
belongs to the pixel after it, and at 0 to the image. (From 128 pixels on, float64 rounds it away.)"""


def heatmap(
    box: npt.ArrayLike, covariances: npt.ArrayLike | None, width: int, height: int, convention: Convention
) -> Array:
    """Return P(x in S) of every pixel: how likely the detected box covers it.

    Of a box with Gaussian corners (X1, Y1) and (X2, Y2), pixel (x, y), the square from x to x + 1 and y to y + 1,
    is part with probability

        P(x, y) = Pr(0 <= X1 <= x + 1, 0 <= Y1 <= y + 1) * Pr(x <= X2 + 1 <= W, y <= Y2 + 1 <= H):

    the box begins before the pixel ends and ends after the pixel begins, and does both in the image. (A box ends
    with its last pixel, hence X2 + 1.) A box without covariances covers each pixel fully, partly or not at all.

    A corner that surely lies outside the image covers nothing, wherever it lies: to the left or above, because
    its mass lies outside; to the right or below, because no pixel has it up and left of it. So P tends to 0
    as a corner moves away, and is 0 where the corner's region of interest is empty.

    Parameters
    ----------
    box : (4,) floats
        ``x1, y1, x2, y2``.
    covariances : (2, 2, 2) floats, or None
        Of the top-left and the bottom-right corner.
    width, height : int
        The image's size.
    convention : Convention
        Region of interest, cut and precision.

    Returns
    -------
    (H, W) array
        float32 under `convention.single_precision`, else float64.
    """
    x1, y1, x2, y2 = np.asarray(box, dtype=np.float64)
    if is_plain(covariances, convention):
        return plain_heatmap((x1, y1, x2, y2), width, height, convention)
    first, second = np.asarray(covariances, dtype=np.float64)
    top_left = corner_map((x1, y1), first, width, height, convention)
    # The bottom-right corner is the top-left one of the image turned by half a turn; a point keeps its
    # covariance when both axes change sign.
    turned = corner_map((width - (x2 + 1), height - (y2 + 1)), second, width, height, convention)
    product: Array = np.minimum(top_left * turned[::-1, ::-1], 1)
    product[product < product.dtype.type(convention.min_probability)] = 0
    return product


def is_plain(covariances: npt.ArrayLike | None, convention: Convention) -> bool:
    """Return whether a box has no spatial uncertainty at all: no covariances, or such that count as zero."""
    if covariances is None:
        return True
    values = np.asarray(covariances, dtype=np.float64)
    return not values.any() if convention.sum_zero_is_plain is False else bool(values.sum() == 0)


def plain_heatmap(box: tuple[float, float, float, float], width: int, height: int, convention: Convention) -> Array:
    """Return the heatmap of a box without covariances: an outer product of what it covers per axis, never cut."""
    x1, y1, x2, y2 = box
    kind = precision(convention)
    rows, columns = plain_cover(y1, y2, height).astype(kind), plain_cover(x1, x2, width).astype(kind)
    cover: Array = np.multiply.outer(rows, columns)
    return cover


def plain_cover(low: float, high: float, size: int) -> Array:
    """Return how much of each pixel of one axis the interval covers.

    Pixels ceil(low)..floor(high) count as covered, one pixel on either side as the fraction that sticks
    out: a box from 5 to 20 covers 16 pixels, one from 5.25 to 20 covers 15 pixels and 3/4 of pixel 5.
    """
    pixels = np.arange(size)
    first, last = np.ceil(low), np.floor(high)
    cover: Array = ((pixels >= first) & (pixels <= last)).astype(np.float64)
    cover[pixels == first - 1] = first - low
    cover[pixels == last + 1] = high - last
    return cover


def precision(convention: Convention) -> type[np.floating[Any]]:
    """Return the type that maps are rounded to."""
    return np.float32 if convention.single_precision else np.float64


def corner_map(
    mean: tuple[float, float], covariance: npt.ArrayLike, width: int, height: int, convention: Convention
) -> Array:
    """Return, for every pixel, how likely a Gaussian corner lies in the image, left of and above its far corner.

        P1(x, y) = Pr(0 <= X < x + 1, 0 <= Y < y + 1)

    is the cumulative distribution F minus what lies left of the image and above it,

        P1(x, y) = F(x + 1, y + 1) - F(0, y + 1) - F(x + 1, 0) + F(0, 0).

    With a region of interest, F is computed inside it only. To its right and below it, F keeps the value of
    the last column or row; right and below at once it is 1; left of and above it, 0. What lies outside the
    image is taken away only where the region touches that side, with the same rule for rows and columns
    beyond the region. Farther than about 3.4 sigma outside, the region is a single row or column, and what
    it says about the pixels beyond is not the equation's answer any more; those numbers are kept.
    """
    kind = precision(convention)
    matrix = np.asarray(covariance, dtype=np.float64)
    if not convention.region_of_interest:
        right, below = np.arange(1, width + 1) - EDGE, np.arange(1, height + 1)[:, None] - EDGE
        outside = 0.0 - EDGE
        whole = gaussian_cdf(right, below, mean, matrix) - gaussian_cdf(outside, below, mean, matrix)
        whole -= gaussian_cdf(right, outside, mean, matrix) - gaussian_cdf(outside, outside, mean, matrix)
        return cut(np.maximum(whole, 0.0).astype(kind), convention)
    region = region_of_interest(mean, matrix, width, height, convention)
    if region is None:
        return np.zeros((height, width), kind)
    x0, y0, x1, y1 = region
    right, below = np.arange(x0 + 1, x1 + 2) - EDGE, np.arange(y0 + 1, y1 + 2)[:, None] - EDGE

    result = np.zeros((height, width), kind)
    result[y0 : y1 + 1, x0 : x1 + 1] = gaussian_cdf(right, below, mean, matrix)
    result[y0 : y1 + 1, x1 + 1 :] = result[y0 : y1 + 1, x1 : x1 + 1]
    result[y1 + 1 :, x0 : x1 + 1] = result[y1, x0 : x1 + 1]
    result[y1 + 1 :, x1 + 1 :] = 1
    if x0 == 0:
        left = np.zeros((height, 1), kind)
        left[y0 : y1 + 1] = gaussian_cdf(0.0 - EDGE, below, mean, matrix)
        left[y1 + 1 :] = left[y1]
        result -= left
    if y0 == 0:
        above = np.zeros((1, width), kind)
        above[:, x0 : x1 + 1] = gaussian_cdf(right, 0.0 - EDGE, mean, matrix)
        above[:, x1 + 1 :] = above[:, x1 : x1 + 1]
        result -= above
    if x0 == 0 and y0 == 0:
        result += kind(gaussian_cdf(0.0 - EDGE, 0.0 - EDGE, mean, matrix))
    return cut(result, convention)


def cut(values: Array, convention: Convention) -> Array:
    """Return the map with probabilities below the convention's smallest one set to 0."""
    return np.where(values < values.dtype.type(convention.min_probability), values.dtype.type(0), values)


def region_of_interest(
    mean: tuple[float, float], covariance: Array, width: int, height: int, convention: Convention
) -> tuple[int, int, int, int] | None:
    """Return the inclusive pixels ``x0, y0, x1, y1`` where a corner's map is computed; None if there are none.

    First, per axis, the pixels within `rough_sigmas` standard deviations of the mean, in the image; none if
    the corner lies farther outside. A covariance that is not singular has the region shrunk to the
    smallest one that holds the mean's pixel (or the region's nearest to it) and all pixels whose corner
    nearest to the mean lies within the Mahalanobis distance

        d(p)^2 = (p - mean)^T covariance^-1 (p - mean) <= mahalanobis^2,

    with one exception that the reference makes: if the mean's pixel is the first of the region or has a number
    of height - 1 (width - 1) in it, all pixels of that axis are judged by their upper (left) corner.
    """
    lows, highs = [], []
    for centre, sigma, size in zip(mean, deviations(covariance), (width, height), strict=True):
        reach = convention.rough_sigmas * sigma
        lows.append(int(max(centre - reach, 0)))
        highs.append(int(min(centre + reach, size - 1)))
        if highs[-1] < lows[-1]:
            return None
    (x0, y0), (x1, y1) = lows, highs
    if abs(np.linalg.det(covariance)) < convention.min_determinant:
        return x0, y0, x1, y1

    inverse = np.linalg.inv(covariance)
    dx, dy = np.arange(x0, x1 + 1) - mean[0], np.arange(y0, y1 + 1)[:, None] - mean[1]
    squared = inverse[0, 0] * dx * dx + 2 * inverse[0, 1] * dx * dy + inverse[1, 1] * dy * dy
    distances = np.sqrt(np.maximum(squared, 0.0))  # rounding can leave a nearly singular form below 0
    column = max(min(int(mean[0] - x0), x1 - x0), 0)
    row = max(min(int(mean[1] - y0), y1 - y0), 0)
    # Above and left of the mean, the corner of a pixel that is nearest to the mean is the next pixel's own.
    if 0 < row < height - 1:
        distances[:row] = distances[1 : row + 1]
    if 0 < column < width - 1:
        distances[:, :column] = distances[:, 1 : column + 1]
    kept = distances <= convention.mahalanobis
    kept[row, column] = True
    columns, rows = np.flatnonzero(kept.any(axis=0)), np.flatnonzero(kept.any(axis=1))
    return x0 + int(columns[0]), y0 + int(rows[0]), x0 + int(columns[-1]), y0 + int(rows[-1])


def gaussian_cdf(x: npt.ArrayLike, y: npt.ArrayLike, mean: tuple[float, float], covariance: Array) -> Array:
    """Return Pr(X <= x, Y <= y) of a Gaussian with any positive semi-definite covariance.

    An axis without variance is a step at its mean.
    """
    sigma_x, sigma_y = deviations(covariance)
    h, k = standardise(x, mean[0], sigma_x), standardise(y, mean[1], sigma_y)
    rho = covariance[0, 1] / (sigma_x * sigma_y) if sigma_x > 0 and sigma_y > 0 else 0.0
    return bivariate_cdf(h, k, float(np.clip(rho, -1.0, 1.0)))


def deviations(covariance: Array) -> tuple[float, float]:
    """Return the standard deviations of both axes; a variance that rounding left below 0 counts as 0."""
    x, y = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return float(x), float(y)


def standardise(values: npt.ArrayLike, mean: float, sigma: float) -> Array:
    """Return (values - mean) / sigma, and plus or minus infinity where sigma is 0."""
    offset = np.asarray(values, dtype=np.float64) - mean
    return offset / sigma if sigma > 0 else np.where(offset >= 0, np.inf, -np.inf)


def bivariate_cdf(h: npt.ArrayLike, k: npt.ArrayLike, rho: float) -> Array:
    """Return Pr(X <= h, Y <= k) of two standard normal variables with correlation `rho`.

    With Owen's T function and a(u, v) = (v - rho u) / (u sqrt(1 - rho^2)),

        F(h, k) = (Phi(h) + Phi(k)) / 2 - T(h, a(h, k)) - T(k, a(k, h)) - (0 or 1/2),

    the half being taken off when h and k differ in sign (Owen, 1956). At rho = 1 both variables are one,
    at rho = -1 one is the other's mirror image:

        F(h, k) = Phi(min(h, k)),    F(h, k) = max(Phi(h) - Phi(-k), 0).

    Examples
    --------
    >>> float(bivariate_cdf(0.0, 0.0, 0.5).round(12))  # 1/4 + asin(1/2) / (2 pi)
    0.333333333333
    """
    special = require("scipy.special", extra="test", purpose="the slow definition needs")
    ndtr, owens_t = special.ndtr, special.owens_t
    h, k = np.broadcast_arrays(np.asarray(h, np.float64), np.asarray(k, np.float64))
    if rho == 0.0:
        return np.asarray(ndtr(h) * ndtr(k))
    if rho >= 1.0:
        return np.asarray(ndtr(np.minimum(h, k)))
    if rho <= -1.0:
        return np.asarray(np.maximum(ndtr(h) - ndtr(-k), 0.0))
    finite = np.isfinite(h) & np.isfinite(k)
    hf, kf = np.where(finite, h, 1.0), np.where(finite, k, 1.0)
    # Below 1e-150 the products and quotients of both lose their sign or their meaning; 0 is as good.
    hf, kf = np.where(np.abs(hf) < 1e-150, 0.0, hf), np.where(np.abs(kf) < 1e-150, 0.0, kf)
    root = np.sqrt((1.0 - rho) * (1.0 + rho))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        of_h = np.where(hf == 0, np.copysign(np.inf, kf), (kf - rho * hf) / (hf * root))
        of_k = np.where(kf == 0, np.copysign(np.inf, hf), (hf - rho * kf) / (kf * root))
    both_zero = (hf == 0) & (kf == 0)
    signs = np.sign(hf) * np.sign(kf)  # the product itself may underflow
    apart = (signs < 0) | ((signs == 0) & (hf + kf < 0))
    general = (ndtr(hf) + ndtr(kf)) / 2 - owens_t(hf, of_h) - owens_t(kf, of_k) - np.where(apart, 0.5, 0.0)
    general = np.where(both_zero, 0.25 + np.arcsin(rho) / (2 * np.pi), general)
    # A variable that is surely below its bound drops out; one that is surely above it leaves nothing.
    limits = np.minimum(ndtr(h), ndtr(k))
    return np.asarray(np.clip(np.where(finite, general, limits), 0.0, limits))


# --- the quality of a pair ------------------------------------------------------------------------------------------


def losses(
    probability: Array, mask: Bools, box: tuple[int, int, int, int], convention: Convention
) -> tuple[float, float]:
    """Return the sums of log probabilities over an object's foreground and over its background.

    With the object's pixels S, its box B and e = `convention.epsilon`,

        foreground = sum over S of log(P + e),    background = sum over {P > 0} - B of log(1 - P + e).

    Divided by -|S| they are the paper's L_FG and L_BG. The box is inclusive, ``x0, y0, x1, y1``; with
    ``convention.background == "mask"`` the background is everything outside S instead.
    """
    probability = probability.astype(np.float64)
    background = probability > 0
    if convention.background == "mask":
        background &= ~mask
    else:
        x0, y0, x1, y1 = box
        background[y0 : y1 + 1, x0 : x1 + 1] = False
    foreground_sum = np.log(probability[mask] + convention.epsilon).sum()
    background_sum = np.log(1.0 - probability[background] + convention.epsilon).sum()
    return float(foreground_sum), float(background_sum)


def qualities(foreground: float, background: float, pixels: int, convention: Convention) -> tuple[float, float, float]:
    """Return Q_S, FG and BG from an object's two sums and its number of pixels.

        Q_S = exp((foreground + background) / |S|),   FG = exp(foreground / |S|),   BG = exp(background / |S|)

    each snapped to 0 or 1 where it is close.
    """
    sums = np.array([foreground + background, foreground, background])
    values = np.minimum(np.exp(sums / pixels), 1.0)  # log(1 + e) is a little above 0
    values[np.abs(values - 1.0) <= convention.snap_one] = 1.0
    values[values <= convention.snap_zero] = 0.0
    spatial, fg, bg = map(float, values)
    return spatial, fg, bg


def pair_tables(
    truth_masks: list[Bools],
    heatmaps: list[Array],
    label_probs: npt.ArrayLike,
    classes: npt.ArrayLike,
    convention: Convention,
) -> dict[str, Array]:
    """Return the qualities of every object with every detection of an image.

    Parameters
    ----------
    truth_masks : list of (H, W) boolean arrays
        The objects' pixels.
    heatmaps : list of (H, W) arrays
        The detections' spatial probabilities.
    label_probs : (detections, C) floats
        The detections' label probabilities, one column per class of the truth.
    classes : (objects,) ints
        The objects' columns.
    convention : Convention
        Background, snapping, weight of the label, smallest quality.

    Returns
    -------
    dict of (objects, detections) arrays
        ``overall`` (pPDQ), ``spatial``, ``label``, ``fg``, ``bg``.
    """
    probs = np.asarray(label_probs, dtype=np.float64)
    columns = np.asarray(classes, dtype=np.int64)
    shape = (len(truth_masks), len(heatmaps))
    tables = {name: np.zeros(shape) for name in ("overall", "spatial", "label", "fg", "bg")}
    for row, mask in enumerate(truth_masks):
        box, pixels = tight_box(mask), int(mask.sum())
        for column, probability in enumerate(heatmaps):
            foreground, background = losses(probability, mask, box, convention)
            spatial, fg, bg = qualities(foreground, background, pixels, convention)
            label = min(max(float(probs[column, columns[row]]), 0.0), 1.0)  # rounding in a file may step over
            overall = geometric_mean(spatial, label, convention.label_weight)
            at = row, column
            tables["spatial"][at], tables["fg"][at], tables["bg"][at], tables["label"][at] = spatial, fg, bg, label
            tables["overall"][at] = overall if overall > convention.min_quality else 0.0
    return tables


def geometric_mean(spatial: float, label: float, label_weight: float) -> float:
    """Return pPDQ: sqrt(Q_S Q_L), or Q_S^(1 - w) Q_L^w for another weight; 0 without any spatial quality."""
    if spatial == 0.0:
        return 0.0
    if label_weight == 0.5:
        return float(np.sqrt(spatial * label))
    return float(spatial ** (1.0 - label_weight) * label**label_weight)


def tight_box(mask: Bools) -> tuple[int, int, int, int]:
    """Return the smallest inclusive box ``x0, y0, x1, y1`` around a mask's pixels."""
    columns, rows = np.flatnonzero(mask.any(axis=0)), np.flatnonzero(mask.any(axis=1))
    return int(columns[0]), int(rows[0]), int(columns[-1]), int(rows[-1])


# --- assignment and score -------------------------------------------------------------------------------------------


def assign(overall: Array, how: str = "optimal") -> list[tuple[int, int]]:
    """Return the (object, detection) pairs that are matched, all of quality above 0, by object.

    ``optimal`` makes the sum of their qualities as large as possible (Kuhn, 1955); ``greedy`` takes the
    best pair that is left, again and again.

    Examples
    --------
    >>> table = np.array([[0.9, 0.8], [0.8, 0.0]])
    >>> assign(table), assign(table, "greedy")
    ([(0, 1), (1, 0)], [(0, 0)])
    """
    if how == "optimal":
        optimize = require("scipy.optimize", extra="test", purpose="the slow definition needs")
        pairs = zip(*optimize.linear_sum_assignment(overall, maximize=True), strict=True)
        return [(int(row), int(column)) for row, column in pairs if overall[row, column] > 0]
    left, chosen = overall.copy(), []
    while left.size and left.max() > 0:
        row, column = np.unravel_index(int(left.argmax()), left.shape)
        chosen.append((int(row), int(column)))
        left[row, :] = left[:, column] = 0.0
    return sorted(chosen)


class Match(NamedTuple):
    """An object and a detection that were assigned to each other; numbers count within the image."""

    object: int
    detection: int
    overall: float
    spatial: float
    label: float
    fg: float
    bg: float


class ImageScore(NamedTuple):
    """What one image adds to the score.

    `matches` are the true positives, `passed_over` the matches with ignored objects, which count nowhere.
    """

    tables: dict[str, Array]
    matches: list[Match]
    passed_over: list[Match]
    false_positives: list[int]
    false_negatives: list[int]


class Score(NamedTuple):
    """The measure of a set of images; an average over nothing is NaN."""

    images: list[ImageScore]
    pdq: float
    tp: int
    fp: int
    fn: int
    overall: float
    spatial: float
    label: float
    fg: float
    bg: float


def score_image(
    truth_masks: list[Bools],
    heatmaps: list[Array],
    label_probs: npt.ArrayLike,
    classes: npt.ArrayLike,
    convention: Convention,
    *,
    ignore_small: bool = False,
) -> ImageScore:
    """Return the matches of one image, the detections that found nothing and the objects nobody found.

    With `ignore_small`, small objects take part in the assignment but are neither matches nor misses.
    """
    tables = pair_tables(truth_masks, heatmaps, label_probs, classes, convention)
    pairs = assign(tables["overall"], convention.assignment)
    ignored = [ignore_small and is_small(mask, convention) for mask in truth_masks]
    made = [Match(row, column, *(float(table[row, column]) for table in tables.values())) for row, column in pairs]
    objects, detections = {pair[0] for pair in pairs}, {pair[1] for pair in pairs}
    return ImageScore(
        tables=tables,
        matches=[match for match in made if not ignored[match.object]],
        passed_over=[match for match in made if ignored[match.object]],
        false_positives=[column for column in range(len(heatmaps)) if column not in detections],
        false_negatives=[row for row in range(len(truth_masks)) if row not in objects and not ignored[row]],
    )


def is_small(mask: Bools, convention: Convention) -> bool:
    """Return whether the object filter ignores an object; width and height are the box's x1 - x0 and y1 - y0."""
    x0, y0, x1, y1 = tight_box(mask)
    narrow, flat = x1 - x0 <= convention.min_width, y1 - y0 <= convention.min_height
    return bool(narrow or flat or mask.sum() <= convention.min_pixels)


def evaluate(truth: GroundTruth, found: Detections, convention: Convention) -> Score:
    """Return the PDQ of detections.

        PDQ = sum of pPDQ over true positives / (TP + FP + FN)

    The numbers in `Score.images` count an image's objects that have pixels, and its kept detections, in the tables'
    order.
    """
    if convention.fixed_threshold is not None:
        best = found.label_probs.max(axis=1, initial=0.0)
        found = found.select(best > np.float32(convention.fixed_threshold))
    convention = convention.for_rules(truth.dataset.rules)
    masks = truth.as_box_masks() if convention.box_truth else truth.masks
    label_probs = align_labels(found.label_probs, found.classes, truth.classes)
    foreground_names = [name.strip().lower() not in BACKGROUND_NAMES for name in found.classes]
    confidence = found.label_probs[:, foreground_names].max(axis=1, initial=0.0).astype(np.float64)

    images: list[ImageScore] = []
    false_positives = 0.0
    for image, image_id in enumerate(truth.image_ids):
        width, height = int(truth.dataset.widths[image]), int(truth.dataset.heights[image])
        objects = np.flatnonzero((truth.image_rows == image) & (masks.pixels > 0))
        rows = np.flatnonzero(found.image_ids == image_id)
        score = score_image(
            [masks.to_array(int(row), height, width) for row in objects],
            [detection_heatmap(found, int(row), width, height, convention) for row in rows],
            label_probs[rows],
            truth.labels[objects],
            convention,
            ignore_small=bool(convention.object_filter),
        )
        images.append(score)
        missed = rows[score.false_positives]
        false_positives += float(confidence[missed].sum()) if convention.confidence_denominator else len(missed)

    matches = [match for image_score in images for match in image_score.matches]
    tp, fn = len(matches), sum(len(image_score.false_negatives) for image_score in images)
    total = sum(match.overall for match in matches)
    counted = tp + false_positives + fn
    averages = np.mean([match[2:] for match in matches], axis=0) if matches else np.full(5, np.nan)
    return Score(
        images,
        total / counted if counted else float("nan"),
        tp,
        sum(len(image_score.false_positives) for image_score in images),
        fn,
        *map(float, averages),
    )


def detection_heatmap(found: Detections, row: int, width: int, height: int, convention: Convention) -> Array:
    """Return a detection's heatmap: the one it brings along, in the convention's precision, or that of its box."""
    given = None if found.heatmaps is None else found.heatmaps[row]
    if given is not None:
        shares = given / np.float64(255.0) if given.dtype == np.uint8 else np.asarray(given, dtype=np.float64)
        return shares.astype(precision(convention))
    box, covariances = found.boxes[row], None if found.covariances is None else found.covariances[row]
    if convention.clip == "corners":
        # The last pixel, not the image's width: a bottom-right corner there has the whole image up and left of it.
        box = np.clip(box, 0.0, [width - 1, height - 1, width - 1, height - 1])
    if convention.fixed_variance is not None:
        covariances = np.broadcast_to(convention.fixed_variance * np.eye(2), (2, 2, 2))
    return heatmap(box, covariances, width, height, convention)
