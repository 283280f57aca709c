"""Checks of columns: missing detections, duplicates, masks, scores, classes, boxes and corners outside the image."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from probox.evaluation.input_checks.columns import HALF, Columns, Rows, Sample, iou, median
from probox.notes import InputWarning
from probox.support.types import Floats
from probox.tables.results import Verdict

if TYPE_CHECKING:
    from probox.evaluation.result import Evaluation

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


def check_coverage(columns: Columns) -> list[InputWarning]:
    """Warn if there are no detections, or none in many images while the others have several.

    A detector that is rarely sure leaves images empty too, but then even more images have a single detection.
    """
    has_objects = np.zeros(len(columns.shapes), bool)
    has_objects[columns.object_rows] = True
    total = int(has_objects.sum())
    if not total:
        return []
    if not len(columns.boxes):
        return [InputWarning("no-detections")]
    counts = np.bincount(columns.image_rows, minlength=len(columns.shapes))[has_objects]
    empty, single = int((counts == 0).sum()), int((counts == 1).sum())
    several = median(counts[counts > 0]) >= 2 if empty < total else False
    if empty < max(MIN_EMPTY, EMPTY_SHARE * total) or empty <= 2 * single or not several:
        return []
    return [InputWarning("images-without-detections", empty, total=total)]


def check_duplicates(columns: Columns) -> list[InputWarning]:
    """Warn of objects and of detections that are present more than once: same image, class, box (and score)."""
    warnings: list[InputWarning] = []
    objects = _repeats(_hash(columns.object_rows, columns.object_labels, *columns.object_boxes.T))
    total = len(columns.object_rows)
    if len(objects) >= max(MIN_DUPLICATES, DUPLICATE_OBJECTS * total):
        warnings.append(InputWarning("duplicate-objects", len(objects), total=total))
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
        warnings.append(InputWarning("duplicate-detections", len(rows), rows, total=len(columns.boxes)))
    return warnings


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


def check_masks(columns: Columns) -> list[InputWarning]:
    """Warn of masks that lie elsewhere than the boxes of their objects."""
    sides = np.tile(columns.shapes[columns.object_rows], 2)
    boxes, masks = np.clip(columns.object_boxes, 0.0, sides), columns.mask_boxes

    def miss(boxes: Floats) -> npt.NDArray[np.bool_]:
        return (iou(boxes, masks) < HALF) & (np.abs(boxes - masks) > MASK_PIXELS).any(axis=1)

    judged = ~columns.crowd & (boxes[:, 2:] > boxes[:, :2]).all(axis=1)
    missed = miss(boxes) & judged
    count, total = int(missed.sum()), int(judged.sum())
    if count < max(MIN_MASKS, MASK_SHARE * total):
        return []
    turned = miss(np.clip(columns.object_boxes[:, [1, 0, 3, 2]], 0.0, sides))
    if (missed & ~turned).sum() >= MASK_SHARE * count:
        return [InputWarning("swapped-masks", count, total=total)]
    some = missed & (masks[:, 2] > 0)
    if not some.any():
        return [InputWarning("misplaced-masks", count, total=total)]
    wide = (masks[:, 2:] - masks[:, :2])[some] / (boxes[:, 2:] - boxes[:, :2])[some]
    return [InputWarning("scaled-masks", count, total=total, times=median(wide))]


def check_scores(columns: Columns, sample: Sample) -> list[InputWarning]:
    """Warn of scores that are all tiny, and of a constant that is much higher than the fraction of right detections."""
    scores = columns.scores[columns.labels >= 0]  # detections of unknown classes have none
    if len(scores) < MIN_SCORES:
        return []
    low, high = float(scores.min()), float(scores.max())
    if high <= LOW_SCORE:
        return [InputWarning("tiny-scores", len(scores), highest=high)]
    if high - low > 1e-6:
        return []
    # Not numpy.unique, which loads masked arrays: see `median`.
    some = len(set(sample.detection.tolist()))
    there = sample.objects[sample.object]
    same = columns.labels[sample.detection] == columns.object_labels[there]
    right = len(set(sample.detection[(sample.overlaps() >= HALF) & same].tolist())) / max(some, 1)
    if some < MIN_CONSTANT or right >= high - UNFIT:
        return []
    return [InputWarning("constant-scores", len(scores), score=high, right=right)]


def check_objects(columns: Columns) -> list[InputWarning]:
    """Warn if there is nothing to be found."""
    if len(columns.object_rows) or not len(columns.boxes):
        return []
    return [InputWarning("no-objects")]


def check_classes(columns: Columns) -> list[InputWarning]:
    """Warn if most detections name a class that the truth does not have."""
    unknown = np.flatnonzero(columns.labels < 0)
    if not len(unknown) or len(unknown) < UNKNOWN_SHARE * len(columns.boxes):
        return []
    total = len(columns.boxes)
    if len(unknown) == total:
        return [InputWarning("all-classes-unknown", total, unknown)]
    return [InputWarning("classes-unknown", len(unknown), unknown, known=total - len(unknown), total=total)]


def check_agreement(columns: Columns, sample: Sample) -> list[InputWarning]:
    """Warn if detections overlap objects but name other classes: nearly all, or those of some classes."""
    overlaps = sample.overlaps()
    known = columns.labels[sample.detection] >= 0
    pairs = sample.best_pairs((overlaps >= HALF) & known, overlaps)
    if len(pairs) < MIN_AGREEMENT:
        return []
    named = columns.labels[sample.detection[pairs]]
    labels = columns.object_labels[sample.objects[sample.object[pairs]]]
    share = float((named == labels).mean())
    if share < AGREEMENT:
        return [InputWarning("classes-disagree", fraction=share)]
    return _check_shift(columns.classes, labels, named)


def _check_shift(
    classes: tuple[str, ...], labels: npt.NDArray[np.int32], named: npt.NDArray[np.int32]
) -> list[InputWarning]:
    """Warn if several classes go by the names of others, all of later ones or all of earlier ones."""
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
        return [InputWarning("classes-shifted", len(chosen), total=total, there=there, name=name)]
    return []


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


def check_outside(columns: Columns) -> list[InputWarning]:
    """Warn if many boxes or Gaussian corners lie outside the image."""
    warnings: list[InputWarning] = []
    total = len(columns.boxes)
    # Boxes of COCO end on the far edge: in tiny images that is more than a standard deviation beyond the last pixel.
    misses, corners = boxes_outside(columns), corners_outside(columns, last=0.0)
    if len(misses) >= max(MIN_OUTSIDE, OUTSIDE_SHARE * total):
        warnings.append(InputWarning("box-outside-image", len(misses), misses, total=total))
    if len(corners) >= max(MIN_OUTSIDE, CORNER_SHARE * total):
        warnings.append(InputWarning("corner-outside-image", len(corners), corners, total=total))
    return warnings


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
