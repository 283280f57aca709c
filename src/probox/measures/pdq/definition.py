"""The measure in plain NumPy: slow, short and meant to be read beside the paper.

Nothing here is tuned. Every pixel of every map is computed, every pair of an object and a detection
is looked at. The fast kernel is tested against this module, and this module against the reference.

Hall et al., "Probabilistic Object Detection: Definition and Evaluation", WACV 2020. The spatial
probability of a pixel, its section 4, is in `probox.measures.pdq.heatmap_definition`; the rest, section 5, is here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from probox.convention import Convention
from probox.measures.pdq.heatmap_definition import bivariate_cdf, heatmap, precision
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
    "evaluate",
    "heatmap",
    "losses",
    "pair_tables",
    "qualities",
    "score_image",
]


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
