"""PDQ in plain NumPy: slow, short, and meant to be read beside the paper.

Every pixel of every heatmap is computed, and every pair of an object and a detection is compared, without
optimization. Tests compare the fast kernel with this module, and this module with the reference implementation.

Hall et al., "Probabilistic Object Detection: Definition and Evaluation", WACV 2020: section 4 defines the spatial
probability of a pixel, section 5 the rest. Under preset ``reference``, heatmaps are bit-identical to those of the
reference in float32 wherever the two were compared: distributions are evaluated in float64 and stored as float32,
later steps (subtraction of mass outside the image, product of corners) are float32, and cuts compare in float32.
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
"""Distance before an edge at which a corner's distribution is evaluated: a corner without variance exactly on an edge
belongs to the pixel after it, and at 0 to the image. From 128 pixels on, float64 rounds this distance away."""


def heatmap(
    box: npt.ArrayLike, covariances: npt.ArrayLike | None, width: int, height: int, convention: Convention
) -> Array:
    """Return P(x in S) for every pixel: the probability that the detected box covers it.

    For a box with Gaussian corners (X1, Y1) and (X2, Y2), the box covers pixel (x, y), the square from x to x + 1 and
    y to y + 1, with probability

        P(x, y) = Pr(0 <= X1 <= x + 1, 0 <= Y1 <= y + 1) * Pr(x <= X2 + 1 <= W, y <= Y2 + 1 <= H):

    the box begins before the pixel ends, ends after the pixel begins, and both corners are in the image. X2 is the last
    pixel of the box, which ends at X2 + 1. A box without covariances covers each pixel fully, partly or not at all.

    A corner far outside the image leads to P = 0 on every side. To the left or above, its mass is outside the image; to
    the right or below, no pixel is to the right of and below it. P tends to 0 as a corner moves away, and is 0 if the
    corner's region of interest is empty.

    Parameters
    ----------
    box : (4,) floats
        ``x1, y1, x2, y2``.
    covariances : (2, 2, 2) floats, or None
        Covariances of the top-left and the bottom-right corner, in square pixels.
    width, height : int
        The image's size in pixels.
    convention : Convention
        Region of interest, smallest probability and precision.

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
    # Rotated by 180 degrees, the bottom-right corner is a top-left one. The covariance of a point is unchanged when
    # both axes change sign.
    turned = corner_map((width - (x2 + 1), height - (y2 + 1)), second, width, height, convention)
    product: Array = np.minimum(top_left * turned[::-1, ::-1], 1)
    product[product < product.dtype.type(convention.min_probability)] = 0
    return product


def is_plain(covariances: npt.ArrayLike | None, convention: Convention) -> bool:
    """Return whether a box has no spatial uncertainty: no covariances, or covariances that count as zero."""
    if covariances is None:
        return True
    values = np.asarray(covariances, dtype=np.float64)
    return not values.any() if convention.sum_zero_is_plain is False else bool(values.sum() == 0)


def plain_heatmap(box: tuple[float, float, float, float], width: int, height: int, convention: Convention) -> Array:
    """Return the heatmap of a box without covariance: the outer product of the cover of both axes, never cut."""
    x1, y1, x2, y2 = box
    kind = precision(convention)
    rows, columns = plain_cover(y1, y2, height).astype(kind), plain_cover(x1, x2, width).astype(kind)
    cover: Array = np.multiply.outer(rows, columns)
    return cover


def plain_cover(low: float, high: float, size: int) -> Array:
    """Return the covered fraction of each pixel of one axis.

    Pixels ceil(low)..floor(high) count as covered, one further pixel on either side as the fraction beyond: a box from
    5 to 20 covers 16 pixels, one from 5.25 to 20 covers 15 pixels and 3/4 of pixel 5.
    """
    pixels = np.arange(size)
    first, last = np.ceil(low), np.floor(high)
    cover: Array = ((pixels >= first) & (pixels <= last)).astype(np.float64)
    cover[pixels == first - 1] = first - low
    cover[pixels == last + 1] = high - last
    return cover


def precision(convention: Convention) -> type[np.floating[Any]]:
    """Return the type to which maps are rounded."""
    return np.float32 if convention.single_precision else np.float64


def corner_map(
    mean: tuple[float, float], covariance: npt.ArrayLike, width: int, height: int, convention: Convention
) -> Array:
    """Return, for every pixel, the probability that a Gaussian corner is in the image and before the pixel's end.

        P1(x, y) = Pr(0 <= X < x + 1, 0 <= Y < y + 1)

    is the cumulative distribution F minus the mass left of the image and above it,

        P1(x, y) = F(x + 1, y + 1) - F(0, y + 1) - F(x + 1, 0) + F(0, 0).

    With a region of interest, F is computed only inside it. To its right, F keeps the value of the region's last
    column, and below it that of the last row; to the right and below it is 1; to the left or above it is 0. Mass
    outside the image is subtracted only where the region touches that side, with the same rule for rows and columns
    beyond the region. If the mean is more than about 3.4 standard deviations outside, the region is a single row or
    column. Values beyond it then deviate from the equation; the reference has the same values.
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
    """Return the map with probabilities below the convention's minimum set to 0."""
    return np.where(values < values.dtype.type(convention.min_probability), values.dtype.type(0), values)


def region_of_interest(
    mean: tuple[float, float], covariance: Array, width: int, height: int, convention: Convention
) -> tuple[int, int, int, int] | None:
    """Return the inclusive pixels ``x0, y0, x1, y1`` where a corner's map is computed; None if there are none.

    First, per axis, the region holds the pixels of the image within `rough_sigmas` standard deviations of the mean; it
    is empty for a corner farther outside. For a nonsingular covariance it then shrinks to the smallest region that
    contains the mean's pixel, or the region's nearest pixel, and all pixels whose corner nearest to the mean is within
    the Mahalanobis distance

        d(p)^2 = (p - mean)^T covariance^-1 (p - mean) <= mahalanobis^2.

    The reference has one exception, which is kept: if the mean's pixel is the first of the region, or its index in the
    region is height - 1 (width - 1), all pixels of that axis are tested by their upper (left) corner.
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
    distances = np.sqrt(np.maximum(squared, 0.0))  # rounding can make a nearly singular form negative
    column = max(min(int(mean[0] - x0), x1 - x0), 0)
    row = max(min(int(mean[1] - y0), y1 - y0), 0)
    # Before the mean, the nearest corner of a pixel is the first corner of the next pixel.
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

    An axis without variance is a step function at its mean.
    """
    sigma_x, sigma_y = deviations(covariance)
    h, k = standardise(x, mean[0], sigma_x), standardise(y, mean[1], sigma_y)
    rho = covariance[0, 1] / (sigma_x * sigma_y) if sigma_x > 0 and sigma_y > 0 else 0.0
    return bivariate_cdf(h, k, float(np.clip(rho, -1.0, 1.0)))


def deviations(covariance: Array) -> tuple[float, float]:
    """Return the standard deviations of both axes; a variance below 0 due to rounding counts as 0."""
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

    where 1/2 is subtracted if h and k differ in sign (Owen, 1956). At rho = 1 both variables are equal, at rho = -1
    they are opposite:

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
    # Below 1e-150 products underflow and quotients overflow; 0 has the same distribution to machine precision.
    hf, kf = np.where(np.abs(hf) < 1e-150, 0.0, hf), np.where(np.abs(kf) < 1e-150, 0.0, kf)
    root = np.sqrt((1.0 - rho) * (1.0 + rho))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        of_h = np.where(hf == 0, np.copysign(np.inf, kf), (kf - rho * hf) / (hf * root))
        of_k = np.where(kf == 0, np.copysign(np.inf, hf), (hf - rho * kf) / (kf * root))
    both_zero = (hf == 0) & (kf == 0)
    signs = np.sign(hf) * np.sign(kf)  # the product of hf and kf itself may underflow
    apart = (signs < 0) | ((signs == 0) & (hf + kf < 0))
    general = (ndtr(hf) + ndtr(kf)) / 2 - owens_t(hf, of_h) - owens_t(kf, of_k) - np.where(apart, 0.5, 0.0)
    general = np.where(both_zero, 0.25 + np.arcsin(rho) / (2 * np.pi), general)
    # An infinite bound on one side leaves the other variable's distribution, or 0.
    limits = np.minimum(ndtr(h), ndtr(k))
    return np.asarray(np.clip(np.where(finite, general, limits), 0.0, limits))


# --- the quality of a pair ------------------------------------------------------------------------------------------


def losses(
    probability: Array, mask: Bools, box: tuple[int, int, int, int], convention: Convention
) -> tuple[float, float]:
    """Return the sums of log probabilities over an object's foreground and over its background.

    With the object's pixels S, its box B and e = `convention.epsilon`,

        foreground = sum over S of log(P + e),    background = sum over {P > 0} - B of log(1 - P + e).

    Divided by -|S| they are L_FG and L_BG of the paper. The box ``x0, y0, x1, y1`` is inclusive. With
    ``convention.background == "mask"`` the background is everything outside S.
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
    """Return Q_S, FG and BG, each from 0 to 1, from an object's two sums and its number of pixels.

        Q_S = exp((foreground + background) / |S|),   FG = exp(foreground / |S|),   BG = exp(background / |S|)

    Values close to 0 or 1 are snapped to it.
    """
    sums = np.array([foreground + background, foreground, background])
    values = np.minimum(np.exp(sums / pixels), 1.0)  # log(1 + e) is slightly above 0
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
    """Return the qualities of all pairs of an object and a detection of an image.

    Parameters
    ----------
    truth_masks : list of (H, W) boolean arrays
        The objects' pixels.
    heatmaps : list of (H, W) arrays
        The detections' pixel probabilities.
    label_probs : (detections, C) floats
        The detections' label probabilities, one column per class of the ground truth.
    classes : (objects,) ints
        The objects' classes, as columns of `label_probs`.
    convention : Convention
        Background, snapping, label weight and smallest quality.

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
            label = min(max(float(probs[column, columns[row]]), 0.0), 1.0)  # digits in a file may round above 1
            overall = geometric_mean(spatial, label, convention.label_weight)
            at = row, column
            tables["spatial"][at], tables["fg"][at], tables["bg"][at], tables["label"][at] = spatial, fg, bg, label
            tables["overall"][at] = overall if overall > convention.min_quality else 0.0
    return tables


def geometric_mean(spatial: float, label: float, label_weight: float) -> float:
    """Return pPDQ: sqrt(Q_S Q_L), or Q_S^(1 - w) Q_L^w for another label weight w; 0 if Q_S is 0."""
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
    """Return the matched (object, detection) pairs, all of quality above 0, ordered by object.

    ``optimal`` maximizes the sum of their qualities (Kuhn, 1955); ``greedy`` repeatedly takes the best remaining pair.

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
    """A matched object and detection, by their numbers within the image, with the qualities of the pair."""

    object: int
    detection: int
    overall: float
    spatial: float
    label: float
    fg: float
    bg: float


class ImageScore(NamedTuple):
    """Contribution of one image to the score.

    `matches` are the true positives; `passed_over` are matches with ignored objects, which do not count.
    """

    tables: dict[str, Array]
    matches: list[Match]
    passed_over: list[Match]
    false_positives: list[int]
    false_negatives: list[int]


class Score(NamedTuple):
    """PDQ of a set of images, its counts and mean qualities; the mean of no matches is NaN."""

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
    """Return the matches of one image, its unmatched detections and its unmatched objects.

    With `ignore_small`, small objects take part in the assignment but count neither as TP nor as FN.
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
    """Return whether the object filter ignores an object; its width and height are x1 - x0 and y1 - y0 of the box."""
    x0, y0, x1, y1 = tight_box(mask)
    narrow, flat = x1 - x0 <= convention.min_width, y1 - y0 <= convention.min_height
    return bool(narrow or flat or mask.sum() <= convention.min_pixels)


def evaluate(truth: GroundTruth, found: Detections, convention: Convention) -> Score:
    """Return the PDQ of detections, from 0 to 1; higher is better.

        PDQ = sum of pPDQ over true positives / (TP + FP + FN)

    Numbers in `Score.images` index the objects of an image that have pixels, and its kept detections, in table order.
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
    """Return a detection's heatmap in the convention's precision: the given one, that of its mask, or of its box.

    A mask is certain: P = 1 inside and P = 0 outside.
    """
    given = None if found.heatmaps is None else found.heatmaps[row]
    if given is not None:
        shares = given / np.float64(255.0) if given.dtype == np.uint8 else np.asarray(given, dtype=np.float64)
        return shares.astype(precision(convention))
    if found.masks is not None and found.has_mask is not None and found.has_mask[row]:
        return found.masks.to_array(row, height, width).astype(precision(convention))
    box, covariances = found.boxes[row], None if found.covariances is None else found.covariances[row]
    if convention.clip == "corners":
        # Clipped to the last pixel, not to the image's width: the box of a corner there extends over the whole image.
        box = np.clip(box, 0.0, [width - 1, height - 1, width - 1, height - 1])
    if convention.fixed_variance is not None:
        covariances = np.broadcast_to(convention.fixed_variance * np.eye(2), (2, 2, 2))
    return heatmap(box, covariances, width, height, convention)
