"""Checks of tables that can be evaluated: one set for `evaluate`, `validate` and the command line.

Every check has a threshold, so that the output of a detector that was stored as it should be stays silent; what is
seen only in a few rows is left to `probox validate`, which lists it.
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
    from probox.tables.groundtruth import GroundTruth, Masks
    from probox.tables.results import ObjectTable

Rows = npt.NDArray[np.int64]

MAX_IMAGES = 200
"""So many images, spread evenly, tell as much as all of them."""
MAX_PER_IMAGE = 10
"""The surest detections of an image; those below overlap something by chance."""
PIXEL = np.array([0.0, 0.0, 1.0, 1.0])
MIN_EMPTY, EMPTY_SHARE = 10, 0.1
"""Images with objects but without detections: so many, and this share of all images with objects."""
DUPLICATE_SHARE, DUPLICATE_OBJECTS, MIN_DUPLICATES = 0.01, 0.2, 10
UNKNOWN_SHARE = 0.5
AGREEMENT, MIN_AGREEMENT = 0.2, 50
"""Detections that overlap an object by half and name its class: below this share, of at least so many."""
RENAMED_SHARE, MIN_RENAMED, MIN_CLASSES, MIN_OF_CLASS = 0.05, 20, 3, 3
"""Pairs whose class goes by the name of a later one (or all by that of an earlier one): this share, so many, of so many
classes, each with so many pairs."""
MASK_SHARE, MIN_MASKS, MASK_PIXELS = 0.5, 5, 2.0
"""Masks that miss their box, by an IoU below one half and by more than so many pixels at one side."""
LOW_SCORE, MIN_SCORES = 0.01, 20
"""No score of at least so many is above this one."""
MIN_CONSTANT, UNFIT = 50, 0.05
"""So many detections of one score; how much smaller the fraction of right ones must be than this score."""
OUTSIDE_SHARE, CORNER_SHARE = 0.01, 0.05
MIN_OUTSIDE = 10

TIMES_HIGHER = 1.5
"""PDQ at the threshold must be so many times PDQ of all detections."""
NEAR = 0.75
"""The exact best threshold is sought from this fraction of the roughly best one on."""
LEVELS = (np.arange(100) / 100.0).astype(np.float32)

CLIP = "move such corners onto the border with {option:clip=corners}"


def check_columns(columns: Columns) -> list[InputWarning]:
    """Return all warnings about tables, the likeliest cause first."""
    checks = (check_objects, check_masks, check_classes, check_coverage, check_duplicates)
    warnings = [warning for check in checks for warning in check(columns)]
    sample = Sample.draw(columns)
    readings = check_readings(columns, sample)
    if readings:  # such boxes lie outside, far from objects and far from their variances: one warning is enough
        return warnings + readings
    uncertainty, outside = check_uncertainty(columns, sample), [*check_outside(columns)]
    if uncertainty:  # corners lie outside by more than a standard deviation because that one is wrong
        outside = [warning for warning in outside if warning.code != "corner-outside-image"]
    return [*warnings, *outside, *check_agreement(columns, sample), *check_scores(columns, sample), *uncertainty]


def check_tables(evaluation: Evaluation) -> list[InputWarning]:
    """Return warnings about the tables that were evaluated."""
    return check_columns(Columns.of_evaluation(evaluation))


def check_evaluation(evaluation: Evaluation) -> list[InputWarning]:
    """Return warnings about what was evaluated, and about false positives that dominate the result."""
    return [*check_tables(evaluation), *check_clutter(evaluation)]


# --- what is looked at ---


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Columns:
    """Images, objects and detections; objects and detections point at image rows.

    Parameters
    ----------
    shapes : (I, 2) float64
        Width and height of each image.
    classes : tuple of str
        The truth's classes.
    object_rows, object_labels, object_boxes, crowd
        One row per object: its image row, class and box.
    mask_boxes : (N, 4) float64
        The box around each object's pixels, x2 and y2 on the far edge of the last pixel.
    image_rows, labels, boxes, scores
        One row per detection; `labels` count in the truth's classes, -1: none of them.
    covariances : (M, 2, 2, 2) float64, optional
        Of the detections' corners.
    clipped : bool
        Whether corners outside the image are moved onto its border before they are scored.
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
        """Return the columns of what was scored."""
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
        """Return the columns of ground truth and of the rows of a draft that are fit to be scored."""
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
        """Return which detections have Gaussian corners."""
        if self.covariances is None:
            return np.zeros(len(self.boxes), bool)
        return np.asarray(self.covariances.any(axis=(1, 2, 3)))

    @property
    def variances(self) -> Floats:
        """Return the variances of ``x1, y1, x2, y2`` of each detection; 0 where there are none."""
        if self.covariances is None:
            return np.zeros((len(self.boxes), 4))
        return np.maximum(np.diagonal(self.covariances, axis1=2, axis2=3), 0.0).reshape(-1, 4)


def _of_objects(dataset: Dataset, objects: ObjectTable | GroundTruth, masks: Masks) -> dict[str, Any]:
    """Return the columns about what is there."""
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
    """Pairs of an object and a detection of the same image, in some images: all pairs of the surest detections.

    Parameters
    ----------
    columns : Columns
        The tables.
    objects : rows
        Objects that take part, none of them a crowd.
    object, detection : rows
        The pairs; `object` counts in `objects`.
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
        surest = _surest(columns, chosen)
        # Detections are sorted by image, so those of an object's image are one range.
        images = columns.image_rows[surest]
        begin = np.searchsorted(images, columns.object_rows[objects], side="left")
        count = np.searchsorted(images, columns.object_rows[objects], side="right") - begin
        owner = np.repeat(np.arange(len(objects)), count)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
        return cls(columns, objects, owner, surest[np.repeat(begin, count) + within])

    def overlaps(self, boxes: Floats | None = None) -> Floats:
        """Return the overlap (IoU) of every pair, with these boxes of the pairs' detections instead of their own."""
        theirs = self.columns.boxes[self.detection] if boxes is None else boxes
        # Boxes may end on their last pixel: without it, one of a single pixel overlaps nothing.
        return iou(self.columns.object_boxes[self.objects[self.object]] + PIXEL, theirs + PIXEL)

    def found(self, overlaps: Floats) -> float:
        """Return the share of objects that some detection, of whatever class, overlaps by half."""
        return _share_hit(self.object[overlaps >= HALF], len(self.objects))

    def surest_right(self, overlaps: Floats) -> tuple[float, int]:
        """Return in which share of how many images the surest detection overlaps an object by half."""
        pairs, images, count = self._surest_pairs
        return _share_hit(images[overlaps[pairs] >= HALF], count), count

    @cached_property
    def _surest_pairs(self) -> tuple[Rows, Rows, int]:
        """Return the pairs of each image's surest detection, the number of each one's image, and how many these are."""
        images, scores = self.columns.image_rows[self.detection], self.columns.scores[self.detection]
        order = np.lexsort((self.detection, -scores, images))
        _, first, number = np.unique(images[order], return_index=True, return_inverse=True)
        surest = self.detection[order] == self.detection[order[first]][number]
        return order[surest], number[surest], len(first)

    def best_pairs(self, chosen: npt.NDArray[np.bool_], order: Floats, of: Rows | None = None) -> Rows:
        """Return, for each object that has one (or each of `of`), the pair of highest `order` among the chosen."""
        pairs = np.flatnonzero(chosen)
        whose = (self.object if of is None else of)[pairs]
        by_order = np.lexsort((-order[pairs], whose))
        _, first = np.unique(whose[by_order], return_index=True)
        return pairs[by_order[first]]


def _share_hit(rows: Rows, count: int) -> float:
    """Return the share of so many rows that are among some, which may repeat."""
    hit = np.zeros(count, bool)
    hit[rows] = True
    return float(hit.mean()) if count else 0.0


def _surest(columns: Columns, chosen: npt.NDArray[np.bool_]) -> Rows:
    """Return the surest detections of each chosen image, by image."""
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

    A detector that is rarely sure leaves images empty too, but then even more images have a single detection.
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
    """Warn of objects and of detections that are present more than once: same image, class, box (and score)."""
    objects = _repeats(_hash(columns.object_rows, columns.object_labels, *columns.object_boxes.T))
    total = len(columns.object_rows)
    if len(objects) >= max(MIN_DUPLICATES, DUPLICATE_OBJECTS * total):
        yield InputWarning("duplicate-objects", len(objects), total=total)
    known = np.flatnonzero(columns.labels >= 0)  # unknown classes cannot be told apart
    # Two objects of a tiny image may have equal integer boxes, but hardly the same score.
    key = _hash(columns.image_rows, columns.labels, *columns.boxes.T, columns.scores)
    rows = known[_repeats(key[known])]
    if len(rows):  # a right detector repeats a box as often as the ground truth does
        own = _hash(columns.image_rows, columns.labels, *columns.boxes.T)
        pixels = columns.mask_boxes - np.array([0.0, 0.0, 1.0, 1.0])  # ends on the last pixel
        there = [_hash(columns.object_rows, columns.object_labels, *b.T) for b in (columns.object_boxes, pixels)]
        rows = rows[_count(own[rows], own) > np.maximum(*(_count(own[rows], keys) for keys in there))]
    if len(rows) >= max(MIN_DUPLICATES, DUPLICATE_SHARE * len(columns.boxes)):
        yield InputWarning("duplicate-detections", len(rows), rows, total=len(columns.boxes))


def _hash(*columns: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Return a number for each row; rows that differ have different ones, but for a chance of 1 in 2^64."""
    key = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        key ^= (column + 0.0).view(np.uint64)  # integers are exact as floats, and -0.0 + 0.0 is 0.0
        key *= np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(29)
    return key


def _count(key: npt.NDArray[np.uint64], among: npt.NDArray[np.uint64]) -> Rows:
    """Return how often each key is among others."""
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
    """Warn of masks that lie elsewhere than the boxes of their objects."""
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
    """Warn of scores that are all tiny, and of a constant that is much higher than the fraction of right detections."""
    scores = columns.scores[columns.labels >= 0]  # detections of unknown classes have none
    if len(scores) < MIN_SCORES:
        return
    low, high = float(scores.min()), float(scores.max())
    if high <= LOW_SCORE:
        yield InputWarning("tiny-scores", len(scores), highest=high)
    if high <= LOW_SCORE or high - low > 1e-6:
        return
    # Not numpy.unique, which loads masked arrays: see `median`.
    some = len(set(sample.detection.tolist()))
    there = sample.objects[sample.object]
    same = columns.labels[sample.detection] == columns.object_labels[there]
    right = len(set(sample.detection[(sample.overlaps() >= HALF) & same].tolist())) / max(some, 1)
    if some >= MIN_CONSTANT and right < high - UNFIT:
        yield InputWarning("constant-scores", len(scores), score=high, right=right)


def check_objects(columns: Columns) -> Iterator[InputWarning]:
    """Warn if there is nothing to be found."""
    if len(columns.boxes) and not len(columns.object_rows):
        yield InputWarning("no-objects")


def check_classes(columns: Columns) -> Iterator[InputWarning]:
    """Warn if most detections name a class that the truth does not have."""
    unknown, total = np.flatnonzero(columns.labels < 0), len(columns.boxes)
    if len(unknown) == total > 0:
        yield InputWarning("all-classes-unknown", total, unknown)
    elif len(unknown) and len(unknown) >= UNKNOWN_SHARE * total:
        yield InputWarning("classes-unknown", len(unknown), unknown, known=total - len(unknown), total=total)


def check_agreement(columns: Columns, sample: Sample) -> Iterator[InputWarning]:
    """Warn if detections overlap objects but name other classes: nearly all, or those of some classes."""
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
    # Several classes may go by the names of others, all of later ones or all of earlier ones.
    classes = columns.classes
    pairs, counts = np.unique(np.stack([labels, named], axis=1), axis=0, return_counts=True)
    totals = np.bincount(labels, minlength=len(classes))
    # The name that most objects of a class get, if it is not their own: one such row per class at most.
    usual = (2 * counts > totals[pairs[:, 0]]) & (totals[pairs[:, 0]] >= MIN_OF_CLASS)
    renamed = pairs[usual & (pairs[:, 0] != pairs[:, 1])]
    for side in (renamed[:, 1] > renamed[:, 0], renamed[:, 1] < renamed[:, 0]):
        chosen = renamed[side]
        affected = int(totals[chosen[:, 0]].sum())
        distinct = len(set(chosen[:, 1].tolist()))  # hardly two classes get the same name, unless they are confused
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
    """Return the detections with a Gaussian corner outside the image by more than a sigma: what lies there is lost.

    The image ends at its last pixel; with `last` 0, on the far edge of that one.
    """
    if columns.covariances is None or columns.clipped:
        return np.zeros(0, np.int64)
    beyond = _beyond(columns, last)
    outside = columns.probabilistic[:, None] & (beyond > 0) & (beyond**2 > columns.variances)
    return np.flatnonzero(outside.any(axis=1))


def describe_corner(columns: Columns, row: int) -> str:
    """Say how far a corner of this detection lies outside."""
    beyond, sigmas = _beyond(columns)[row], np.sqrt(columns.variances[row])
    side = int(np.flatnonzero((beyond > 0) & (beyond > sigmas))[0])
    name = ("x1", "y1", "x2", "y2")[side]
    return (
        f"{name} lies {beyond[side]:.4g} px outside the image with a sigma of {sigmas[side]:.4g} px: "
        "the probability outside is lost"
    )


def check_outside(columns: Columns) -> Iterator[InputWarning]:
    """Warn if many boxes or Gaussian corners lie outside the image."""
    total = len(columns.boxes)
    # Boxes of COCO end on the far edge: in tiny images that is more than a standard deviation beyond the last pixel.
    misses, corners = boxes_outside(columns), corners_outside(columns, last=0.0)
    if len(misses) >= max(MIN_OUTSIDE, OUTSIDE_SHARE * total):
        yield InputWarning("box-outside-image", len(misses), misses, total=total)
    if len(corners) >= max(MIN_OUTSIDE, CORNER_SHARE * total):
        yield InputWarning("corner-outside-image", len(corners), corners, total=total)


def check_clutter(evaluation: Evaluation) -> list[InputWarning]:
    """Warn if false positives are most of PDQ's denominator TP + FP + FN and a label threshold raises PDQ much.

    The threshold is sought in steps of 0.01 with the matches of all detections, which takes no assignment; then exactly
    around the one found, where few detections are left to be matched anew.
    """
    if "pdq" not in evaluation.measures or evaluation.convention.label_threshold is not None:
        return []
    table, objects = evaluation.detections, evaluation.objects
    hit, wrong = table.verdicts == Verdict.TP, table.verdicts == Verdict.FP
    cost = np.where(wrong, table.costs if evaluation.convention.confidence_denominator else 1.0, 0.0)
    real = int((~objects.ignored).sum())
    if cost.sum() <= real or not real:  # TP + FN; where there are no objects, another check warns
        return []
    above = np.searchsorted(LEVELS, table.confidences, side="left")  # how many levels each is above

    def kept(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.asarray(np.bincount(above, values, len(LEVELS) + 1)[:0:-1].cumsum()[::-1])

    sums = kept(np.where(hit, table.quality("pPDQ"), 0.0))
    level = float(LEVELS[int(np.argmax(sums / (real + kept(cost))))])
    alone = dataclasses.replace(evaluation, measures=("pdq",))
    best = alone.keeping(table.confidences > np.float32(NEAR * level)).best_threshold()
    exact = NEAR * level if best.threshold is None else best.threshold
    return warn_of_clutter(evaluation.pdq, float(cost.sum()), real, exact, best.value)


def warn_of_clutter(pdq: float, false: float, real: int, level: float, there: float) -> list[InputWarning]:
    """Warn if `false` positives outweigh `real` objects and PDQ is much higher `there`, above the threshold `level`."""
    if false <= real or not there > TIMES_HIGHER * pdq:
        return []
    fields = {"fraction": false / (real + false), "pdq": 100 * pdq, "best": 100 * there, "threshold": level}
    return [InputWarning("false-positives-dominate", **fields)]
