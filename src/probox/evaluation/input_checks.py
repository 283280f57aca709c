"""Input checks of valid tables, common to `evaluate`, `validate` and the command line.

Every check has a threshold, so that correct output of a detector gives no warning. Problems in a few rows are left to
`probox validate`, which lists them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from probox.evaluation.misreadings import HALF, check_readings, check_uncertainty, median
from probox.notes import InputWarning
from probox.support.types import Floats
from probox.tables.labels import named_classes
from probox.tables.results import Verdict

if TYPE_CHECKING:
    from probox.evaluation.result import Evaluation
    from probox.formats.format import Draft
    from probox.tables.dataset import Dataset
    from probox.tables.groundtruth import GroundTruth
    from probox.tables.masks import Masks
    from probox.tables.results import ObjectTable

Rows = npt.NDArray[np.int64]

MAX_IMAGES = 200
"""Number of images in a sample, spread evenly; more would not change the outcome of checks."""
MAX_PER_IMAGE = 10
"""Number of highest-scoring detections per image; those with lower scores overlap objects by chance."""
PIXEL = np.array([0.0, 0.0, 1.0, 1.0])
MIN_EMPTY, EMPTY_SHARE = 10, 0.1
"""Images with objects but without detections: minimum number, and minimum fraction of images with objects."""
DUPLICATE_SHARE, DUPLICATE_OBJECTS, MIN_DUPLICATES = 0.01, 0.2, 10
UNKNOWN_SHARE = 0.5
AGREEMENT, MIN_AGREEMENT = 0.2, 50
"""Of detections that overlap an object by half: minimum fraction with its class, and minimum number of them."""
RENAMED_SHARE, MIN_RENAMED, MIN_CLASSES, MIN_OF_CLASS = 0.05, 20, 3, 3
"""Pairs whose class has the name of a later one, or all of an earlier one: minimum fraction and number of pairs, number
of classes, and number of pairs per class."""
MASK_SHARE, MIN_MASKS, MASK_PIXELS = 0.5, 5, 2.0
"""Masks that miss their box, with an IoU below 0.5 and more than so many pixels at a side: fraction, number, pixels."""
LOW_SCORE, MIN_SCORES = 0.01, 20
"""Maximum score, of a minimum number of scores, that counts as tiny."""
MIN_CONSTANT, UNFIT = 50, 0.05
"""Minimum number of detections with one constant score; minimum excess of the score over their precision."""
OUTSIDE_SHARE, CORNER_SHARE = 0.01, 0.05
MIN_OUTSIDE = 10

TIMES_HIGHER = 1.5
"""Minimum ratio of PDQ at the threshold to PDQ of all detections."""
NEAR = 0.75
"""Fraction of the approximate best threshold at which the exact search begins."""
LEVELS = (np.arange(100) / 100.0).astype(np.float32)

CLIP = "move such corners onto the border with {option:clip=corners}"


def check_columns(columns: Columns) -> list[InputWarning]:
    """Return all warnings about tables, the most likely cause first."""
    checks = (check_objects, check_masks, check_classes, check_coverage, check_duplicates)
    warnings = [warning for check in checks for warning in check(columns)]
    sample = Sample.draw(columns)
    readings = check_readings(columns, sample)
    if readings:  # a wrong layout or scale also puts boxes outside the image, and off objects: one warning is enough
        return warnings + readings
    uncertainty, outside = check_uncertainty(columns, sample), [*check_outside(columns)]
    if uncertainty:  # wrong variances also put corners outside the image by more than a standard deviation
        outside = [warning for warning in outside if warning.code != "corner-outside-image"]
    return [*warnings, *outside, *check_agreement(columns, sample), *check_scores(columns, sample), *uncertainty]


def check_tables(evaluation: Evaluation) -> list[InputWarning]:
    """Return warnings about the tables of an evaluation."""
    return check_columns(Columns.of_evaluation(evaluation))


def check_evaluation(evaluation: Evaluation) -> list[InputWarning]:
    """Return warnings about the tables of an evaluation, and about false positives that dominate PDQ."""
    return [*check_tables(evaluation), *check_clutter(evaluation)]


# --- data ---


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Columns:
    """Images, objects and detections; objects and detections refer to image rows.

    Parameters
    ----------
    shapes : (I, 2) float64
        Width and height of each image.
    classes : tuple of str
        Classes of the ground truth.
    object_rows, object_labels, object_boxes, crowd
        One row per object: its image row, class and box.
    mask_boxes : (N, 4) float64
        The box around each object's pixels, x2 and y2 on the far edge of the last pixel.
    image_rows, labels, boxes, scores
        One row per detection; `labels` are indices of `classes`, or -1 for other classes.
    covariances : (M, 2, 2, 2) float64, optional
        Covariances of the detections' corners.
    clipped : bool
        Whether corners outside the image are moved to its border before scoring.
    """

    shapes: Floats
    classes: tuple[str, ...]
    object_rows: Rows
    object_labels: npt.NDArray[np.int32]
    object_boxes: Floats
    crowd: npt.NDArray[np.bool_]
    mask_boxes: Floats
    image_rows: Rows
    labels: npt.NDArray[np.int32]
    boxes: Floats
    scores: Floats
    covariances: Floats | None
    clipped: bool = False

    @classmethod
    def of_evaluation(cls, evaluation: Evaluation) -> Columns:
        """Return the columns of an evaluation."""
        objects, found = evaluation.objects, evaluation.detections
        own = evaluation.convention.fixed_variance is None and found.covariances.any()
        return cls(
            **_of_objects(evaluation.dataset, objects, evaluation.masks),
            image_rows=found.image_rows,
            labels=found.labels,
            boxes=found.boxes,
            scores=found.scores,
            covariances=found.covariances if own else None,
            clipped=evaluation.convention.clip == "corners",
        )

    @classmethod
    def of_draft(cls, truth: GroundTruth, draft: Draft, rows: Rows) -> Columns:
        """Return the columns of ground truth and of the valid rows of a draft."""
        part = draft.select(rows)
        named, scores = named_classes(part.label_probs, part.classes, truth.classes, part.labels, part.scores)
        return cls(
            **_of_objects(truth.dataset, truth, truth.masks),
            image_rows=truth.dataset.rows_of(part.image_ids),
            labels=named,
            boxes=part.boxes,
            scores=scores,
            covariances=None if part.covariances is None or not part.covariances.any() else part.covariances,
        )

    @property
    def probabilistic(self) -> npt.NDArray[np.bool_]:
        """Return whether each detection has Gaussian corners."""
        if self.covariances is None:
            return np.zeros(len(self.boxes), bool)
        return np.asarray(self.covariances.any(axis=(1, 2, 3)))

    @property
    def variances(self) -> Floats:
        """Return the variances of ``x1, y1, x2, y2`` of each detection; 0 without covariance."""
        if self.covariances is None:
            return np.zeros((len(self.boxes), 4))
        return np.maximum(np.diagonal(self.covariances, axis1=2, axis2=3), 0.0).reshape(-1, 4)


def _of_objects(dataset: Dataset, objects: ObjectTable | GroundTruth, masks: Masks) -> dict[str, Any]:
    """Return the columns of images and objects."""
    return {
        "shapes": dataset.shapes.astype(np.float64),
        "classes": dataset.classes,
        "object_rows": objects.image_rows,
        "object_labels": objects.labels,
        "object_boxes": objects.boxes,
        "crowd": objects.crowd,
        "mask_boxes": masks.boxes + np.array([0.0, 0.0, 1.0, 1.0]),
    }


@dataclasses.dataclass(frozen=True, eq=False)
class Sample:
    """Pairs of an object and a high-scoring detection of the same image, in a sample of images.

    Parameters
    ----------
    columns : Columns
        The tables.
    objects : rows
        Sampled objects, without crowds.
    object, detection : rows
        The pairs; `object` is an index of `objects`.
    """

    columns: Columns
    objects: Rows
    object: Rows
    detection: Rows

    @classmethod
    def draw(cls, columns: Columns) -> Sample:
        """Return the pairs of images that have both objects and detections."""
        plain = np.flatnonzero(~columns.crowd)
        there, found = (np.zeros(len(columns.shapes), bool) for _ in range(2))
        there[columns.object_rows[plain]] = True
        found[columns.image_rows] = True
        both = np.flatnonzero(there & found)
        if len(both) > MAX_IMAGES:
            both = both[np.linspace(0, len(both) - 1, MAX_IMAGES).astype(np.int64)]
        chosen = np.zeros(len(columns.shapes), bool)
        chosen[both] = True
        objects = plain[chosen[columns.object_rows[plain]]]
        top = _find_top_detections(columns, chosen)
        # Detections are sorted by image, so those of an object's image are one range.
        images = columns.image_rows[top]
        begin = np.searchsorted(images, columns.object_rows[objects], side="left")
        count = np.searchsorted(images, columns.object_rows[objects], side="right") - begin
        owner = np.repeat(np.arange(len(objects)), count)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
        return cls(columns, objects, owner, top[np.repeat(begin, count) + within])

    def overlaps(self, boxes: Floats | None = None) -> Floats:
        """Return the IoU of every pair, optionally with other boxes of the pairs' detections."""
        theirs = self.columns.boxes[self.detection] if boxes is None else boxes
        # Boxes may end on their last pixel; without the extra pixel, a box of one pixel would have no area.
        return iou(self.columns.object_boxes[self.objects[self.object]] + PIXEL, theirs + PIXEL)

    def found(self, overlaps: Floats) -> float:
        """Return the fraction of objects that a detection of any class overlaps by half."""
        return _share_hit(self.object[overlaps >= HALF], len(self.objects))

    def top_precision(self, overlaps: Floats) -> tuple[float, int]:
        """Return the fraction of images whose top-scoring detection overlaps an object by half, and their number."""
        pairs, images, count = self._top_pairs
        return _share_hit(images[overlaps[pairs] >= HALF], count), count

    @cached_property
    def _top_pairs(self) -> tuple[Rows, Rows, int]:
        """Return the pairs of each image's highest-scoring detection, their image numbers, and the number of images."""
        images, scores = self.columns.image_rows[self.detection], self.columns.scores[self.detection]
        order = np.lexsort((self.detection, -scores, images))
        _, first, number = np.unique(images[order], return_index=True, return_inverse=True)
        top = self.detection[order] == self.detection[order[first]][number]
        return order[top], number[top], len(first)

    def best_pairs(self, chosen: npt.NDArray[np.bool_], order: Floats, of: Rows | None = None) -> Rows:
        """Return the chosen pair of highest `order` for each object (or each of `of`) that has one."""
        pairs = np.flatnonzero(chosen)
        whose = (self.object if of is None else of)[pairs]
        by_order = np.lexsort((-order[pairs], whose))
        _, first = np.unique(whose[by_order], return_index=True)
        return pairs[by_order[first]]


def _share_hit(rows: Rows, count: int) -> float:
    """Return the fraction of `count` rows that occur in `rows`, which may repeat."""
    hit = np.zeros(count, bool)
    hit[rows] = True
    return float(hit.mean()) if count else 0.0


def _find_top_detections(columns: Columns, chosen: npt.NDArray[np.bool_]) -> Rows:
    """Return the highest-scoring detections of each chosen image, by image."""
    rows = np.flatnonzero(chosen[columns.image_rows])
    rows = rows[np.lexsort((-columns.scores[rows], columns.image_rows[rows]))]
    of = columns.image_rows[rows]
    starts = np.searchsorted(of, of, side="left")
    return rows[np.arange(len(rows)) - starts < MAX_PER_IMAGE]


def iou(one: Floats, other: Floats) -> Floats:
    """Return intersection over union of boxes, row by row; 0 for boxes without area."""
    low, high = np.maximum(one[:, :2], other[:, :2]), np.minimum(one[:, 2:], other[:, 2:])
    both = np.prod(np.maximum(high - low, 0.0), axis=1)
    areas = np.prod(one[:, 2:] - one[:, :2], axis=1) + np.prod(np.maximum(other[:, 2:] - other[:, :2], 0.0), axis=1)
    union = areas - both
    result: Floats = np.divide(both, union, out=np.zeros(len(both)), where=union > 0)
    return result


# --- checks ---


def check_coverage(columns: Columns) -> Iterator[InputWarning]:
    """Warn if there are no detections, or none in many images while the others have several.

    A detector with few detections also leaves images empty, but then even more images have a single detection.
    """
    has_objects = np.zeros(len(columns.shapes), bool)
    has_objects[columns.object_rows] = True
    total = int(has_objects.sum())
    if not len(columns.boxes):
        if total:
            yield InputWarning("no-detections")
        return
    counts = np.bincount(columns.image_rows, minlength=len(columns.shapes))[has_objects]
    empty, single = int((counts == 0).sum()), int((counts == 1).sum())
    several = empty < total and median(counts[counts > 0]) >= 2
    if empty >= max(MIN_EMPTY, EMPTY_SHARE * total) and empty > 2 * single and several:
        yield InputWarning("images-without-detections", empty, total=total)


def check_duplicates(columns: Columns) -> Iterator[InputWarning]:
    """Warn about duplicate objects and detections: same image, class, box (and score)."""
    objects = _repeats(_hash(columns.object_rows, columns.object_labels, *columns.object_boxes.T))
    total = len(columns.object_rows)
    if len(objects) >= max(MIN_DUPLICATES, DUPLICATE_OBJECTS * total):
        yield InputWarning("duplicate-objects", len(objects), total=total)
    known = np.flatnonzero(columns.labels >= 0)  # unknown classes are indistinguishable here
    # Scores are compared too: two objects of a tiny image may have equal integer boxes.
    key = _hash(columns.image_rows, columns.labels, *columns.boxes.T, columns.scores)
    rows = known[_repeats(key[known])]
    if len(rows):  # correct detections repeat a box as often as the ground truth does
        own = _hash(columns.image_rows, columns.labels, *columns.boxes.T)
        pixels = columns.mask_boxes - np.array([0.0, 0.0, 1.0, 1.0])  # ends on the last pixel
        there = [_hash(columns.object_rows, columns.object_labels, *b.T) for b in (columns.object_boxes, pixels)]
        rows = rows[_count(own[rows], own) > np.maximum(*(_count(own[rows], keys) for keys in there))]
    if len(rows) >= max(MIN_DUPLICATES, DUPLICATE_SHARE * len(columns.boxes)):
        yield InputWarning("duplicate-detections", len(rows), rows, total=len(columns.boxes))


def _hash(*columns: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Return a number for each row; different rows have different numbers, except with probability 2^-64."""
    key = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        key ^= (column + 0.0).view(np.uint64)  # integers are exact as floats, and -0.0 + 0.0 is 0.0
        key *= np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(29)
    return key


def _count(key: npt.NDArray[np.uint64], among: npt.NDArray[np.uint64]) -> Rows:
    """Return the number of occurrences of each key in `among`."""
    in_order = np.sort(among)
    return np.searchsorted(in_order, key, "right") - np.searchsorted(in_order, key, "left")


def _repeats(key: npt.NDArray[np.uint64]) -> Rows:
    """Return the rows whose key is that of an earlier row."""
    in_order = np.sort(key)
    if (in_order[1:] != in_order[:-1]).all():  # the usual case; finding rows takes longer
        return np.zeros(0, np.int64)
    order = np.argsort(key, kind="stable")
    return np.sort(order[1:][key[order[1:]] == key[order[:-1]]])


def check_masks(columns: Columns) -> Iterator[InputWarning]:
    """Warn about masks that do not match the boxes of their objects."""
    sides = np.tile(columns.shapes[columns.object_rows], 2)
    boxes, masks = np.clip(columns.object_boxes, 0.0, sides), columns.mask_boxes

    def miss(boxes: Floats) -> npt.NDArray[np.bool_]:
        return (iou(boxes, masks) < HALF) & (np.abs(boxes - masks) > MASK_PIXELS).any(axis=1)

    judged = ~columns.crowd & (boxes[:, 2:] > boxes[:, :2]).all(axis=1)
    missed = miss(boxes) & judged
    count, total = int(missed.sum()), int(judged.sum())
    if count < max(MIN_MASKS, MASK_SHARE * total):
        return
    turned = miss(np.clip(columns.object_boxes[:, [1, 0, 3, 2]], 0.0, sides))
    some = missed & (masks[:, 2] > 0)
    if (missed & ~turned).sum() >= MASK_SHARE * count:
        yield InputWarning("swapped-masks", count, total=total)
    elif not some.any():
        yield InputWarning("misplaced-masks", count, total=total)
    else:
        wide = (masks[:, 2:] - masks[:, :2])[some] / (boxes[:, 2:] - boxes[:, :2])[some]
        yield InputWarning("scaled-masks", count, total=total, times=median(wide))


def check_scores(columns: Columns, sample: Sample) -> Iterator[InputWarning]:
    """Warn about scores that are all tiny, and about a constant score that is much higher than the precision."""
    scores = columns.scores[columns.labels >= 0]  # detections of unknown classes have none
    if len(scores) < MIN_SCORES:
        return
    low, high = float(scores.min()), float(scores.max())
    if high <= LOW_SCORE:
        yield InputWarning("tiny-scores", len(scores), highest=high)
    if high <= LOW_SCORE or high - low > 1e-6:
        return
    # A set, not numpy.unique, which imports masked arrays; see `median`.
    some = len(set(sample.detection.tolist()))
    there = sample.objects[sample.object]
    same = columns.labels[sample.detection] == columns.object_labels[there]
    right = len(set(sample.detection[(sample.overlaps() >= HALF) & same].tolist())) / max(some, 1)
    if some >= MIN_CONSTANT and right < high - UNFIT:
        yield InputWarning("constant-scores", len(scores), score=high, right=right)


def check_objects(columns: Columns) -> Iterator[InputWarning]:
    """Warn if there are detections but no objects."""
    if len(columns.boxes) and not len(columns.object_rows):
        yield InputWarning("no-objects")


def check_classes(columns: Columns) -> Iterator[InputWarning]:
    """Warn if most detections have a class that the ground truth does not have."""
    unknown, total = np.flatnonzero(columns.labels < 0), len(columns.boxes)
    if len(unknown) == total > 0:
        yield InputWarning("all-classes-unknown", total, unknown)
    elif len(unknown) and len(unknown) >= UNKNOWN_SHARE * total:
        yield InputWarning("classes-unknown", len(unknown), unknown, known=total - len(unknown), total=total)


def check_agreement(columns: Columns, sample: Sample) -> Iterator[InputWarning]:
    """Warn if detections overlap objects but have other classes: nearly all of them, or those of some classes."""
    overlaps = sample.overlaps()
    known = columns.labels[sample.detection] >= 0
    pairs = sample.best_pairs((overlaps >= HALF) & known, overlaps)
    if len(pairs) < MIN_AGREEMENT:
        return
    named = columns.labels[sample.detection[pairs]]
    labels = columns.object_labels[sample.objects[sample.object[pairs]]]
    share = float((named == labels).mean())
    if share < AGREEMENT:
        yield InputWarning("classes-disagree", fraction=share)
        return
    # Shifted class names: several classes have the names of others, all of later ones or all of earlier ones.
    classes = columns.classes
    pairs, counts = np.unique(np.stack([labels, named], axis=1), axis=0, return_counts=True)
    totals = np.bincount(labels, minlength=len(classes))
    # The name that most objects of a class get, if it is another class: at most one row per class.
    usual = (2 * counts > totals[pairs[:, 0]]) & (totals[pairs[:, 0]] >= MIN_OF_CLASS)
    renamed = pairs[usual & (pairs[:, 0] != pairs[:, 1])]
    for side in (renamed[:, 1] > renamed[:, 0], renamed[:, 1] < renamed[:, 0]):
        chosen = renamed[side]
        affected = int(totals[chosen[:, 0]].sum())
        distinct = len(set(chosen[:, 1].tolist()))  # a shift keeps names distinct, a confusion of classes does not
        if affected < max(MIN_RENAMED, RENAMED_SHARE * len(labels)) or distinct < max(MIN_CLASSES, 0.8 * len(chosen)):
            continue
        there, name = (classes[label] for label in chosen[totals[chosen[:, 0]].argmax()])
        total = int((totals > 0).sum())
        yield InputWarning("classes-shifted", len(chosen), total=total, there=there, name=name)
        return


def boxes_outside(columns: Columns) -> Rows:
    """Return the detections whose box has no pixel in the image."""
    shapes = columns.shapes[columns.image_rows]
    return np.flatnonzero(((columns.boxes[:, 2:] < 0) | (columns.boxes[:, :2] >= shapes)).any(axis=1))


def _beyond(columns: Columns, last: float = 1.0) -> Floats:
    shapes = columns.shapes[columns.image_rows]
    return np.concatenate([-columns.boxes[:, :2], columns.boxes[:, 2:] - (shapes - last)], axis=1)


def corners_outside(columns: Columns, last: float = 1.0) -> Rows:
    """Return the detections with a Gaussian corner outside the image by more than a standard deviation.

    Their probability outside the image is lost. The image ends at its last pixel; with `last` 0, at that pixel's far
    edge.
    """
    if columns.covariances is None or columns.clipped:
        return np.zeros(0, np.int64)
    beyond = _beyond(columns, last)
    outside = columns.probabilistic[:, None] & (beyond > 0) & (beyond**2 > columns.variances)
    return np.flatnonzero(outside.any(axis=1))


def describe_corner(columns: Columns, row: int) -> str:
    """Return how far a corner of this detection lies outside the image."""
    beyond, sigmas = _beyond(columns)[row], np.sqrt(columns.variances[row])
    side = int(np.flatnonzero((beyond > 0) & (beyond > sigmas))[0])
    name = ("x1", "y1", "x2", "y2")[side]
    return (
        f"{name} lies {beyond[side]:.4g} px outside the image, with a std of {sigmas[side]:.4g} px: "
        "the probability outside is lost"
    )


def check_outside(columns: Columns) -> Iterator[InputWarning]:
    """Warn if many boxes or Gaussian corners lie outside the image."""
    total = len(columns.boxes)
    # COCO boxes end on the far edge: in tiny images, that is more than a standard deviation beyond the last pixel.
    misses, corners = boxes_outside(columns), corners_outside(columns, last=0.0)
    if len(misses) >= max(MIN_OUTSIDE, OUTSIDE_SHARE * total):
        yield InputWarning("box-outside-image", len(misses), misses, total=total)
    if len(corners) >= max(MIN_OUTSIDE, CORNER_SHARE * total):
        yield InputWarning("corner-outside-image", len(corners), corners, total=total)


def check_clutter(evaluation: Evaluation) -> list[InputWarning]:
    """Warn if most of PDQ's denominator TP + FP + FN are false positives and a label threshold raises PDQ much.

    The threshold is first searched in steps of 0.01 with the matches of all detections, without an assignment. The
    exact search then begins slightly below it, with only the few detections above.
    """
    if "pdq" not in evaluation.measures or evaluation.convention.label_threshold is not None:
        return []
    table, objects = evaluation.detections, evaluation.objects
    hit, wrong = table.verdicts == Verdict.TP, table.verdicts == Verdict.FP
    cost = np.where(wrong, table.costs if evaluation.convention.confidence_denominator else 1.0, 0.0)
    real = int((~objects.ignored).sum())
    if cost.sum() <= real or not real:  # real is TP + FN; another check warns if there are no objects
        return []
    above = np.searchsorted(LEVELS, table.confidences, side="left")  # number of levels below each confidence

    def kept(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.asarray(np.bincount(above, values, len(LEVELS) + 1)[:0:-1].cumsum()[::-1])

    sums = kept(np.where(hit, table.quality("pPDQ"), 0.0))
    level = float(LEVELS[int(np.argmax(sums / (real + kept(cost))))])
    near = table.confidences > np.float32(NEAR * level)
    if not near.any():  # all probabilities are 0
        return []
    best = dataclasses.replace(evaluation, measures=("pdq",)).keeping(near).best_threshold()
    exact = NEAR * level if best.threshold is None else best.threshold
    return warn_of_clutter(evaluation.pdq, float(cost.sum()), real, exact, best.value)


def warn_of_clutter(pdq: float, false: float, real: int, level: float, there: float) -> list[InputWarning]:
    """Warn if `false` positives outweigh `real` objects and PDQ is much higher `there`, above the threshold `level`."""
    if false <= real or not there > TIMES_HIGHER * pdq:
        return []
    fields = {"fraction": false / (real + false), "pdq": 100 * pdq, "best": 100 * there, "threshold": level}
    return [InputWarning("false-positives-dominate", **fields)]
