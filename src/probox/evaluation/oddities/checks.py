"""Checks of columns: missing detections, duplicates, masks, scores, classes, boxes and corners outside the image."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from probox.evaluation.oddities.columns import Columns, Floats, Oddity, Rows, median
from probox.evaluation.oddities.overlaps import HALF, Sample, iou

__all__ = [
    "boxes_outside",
    "check_agreement",
    "check_classes",
    "check_coverage",
    "check_duplicates",
    "check_masks",
    "check_objects",
    "check_outside",
    "check_scores",
    "corners_outside",
    "describe_corner",
]

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

OUTSIDE = "box outside the image"
CORNER = "corner outside the image by more than 1 sigma"
OF_TRUTH = ("no objects", "duplicate objects", "masks apart from boxes")
"""Kinds that are about the ground truth."""
CLIP = 'move such corners onto the border with clip="corners"'


def check_coverage(columns: Columns) -> list[Oddity]:
    """Say if there are no detections, or none in many images while the others have several.

    A detector that is rarely sure leaves images empty too, but then even more images have a single detection.
    """
    has_objects = np.zeros(len(columns.shapes), bool)
    has_objects[columns.object_rows] = True
    total = int(has_objects.sum())
    if not total:
        return []
    if not len(columns.boxes):
        text = "there is not one detection to be scored"
        return [Oddity("no detections", text, "check image ids and the label threshold")]
    counts = np.bincount(columns.image_rows, minlength=len(columns.shapes))[has_objects]
    empty, single = int((counts == 0).sum()), int((counts == 1).sum())
    several = median(counts[counts > 0]) >= 2 if empty < total else False
    if empty < max(MIN_EMPTY, EMPTY_SHARE * total) or empty <= 2 * single or not several:
        return []
    text = f"{empty:,} of {total:,} images with objects have no detections, while the others have several"
    remedy = (
        "if the detector saw a part of the images, evaluate it on these: "
        "truth.select_images(ids), result.select_images(ids)"
    )
    return [Oddity("images without detections", text, remedy)]


def check_duplicates(columns: Columns) -> list[Oddity]:
    """Warn of objects and of detections that are present more than once: same image, class, box (and score)."""
    found: list[Oddity] = []
    objects = _repeats(_hash(columns.object_rows, columns.object_labels, *columns.object_boxes.T))
    total = len(columns.object_rows)
    if len(objects) >= max(MIN_DUPLICATES, DUPLICATE_OBJECTS * total):
        text = f"{len(objects):,} of {total:,} objects repeat another one of the same image, class and box"
        found.append(Oddity("duplicate objects", text, "remove the copies from the ground truth (files joined twice)"))
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
        text = f"{len(rows):,} of {len(columns.boxes):,} detections repeat another one of the same image, class and box"
        remedy = "leave out the copies (files joined twice, or no suppression)"
        found.append(Oddity("duplicate detections", text, remedy, rows))
    return found


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


def check_masks(columns: Columns) -> list[Oddity]:
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
    text = f"{count:,} of {total:,} masks overlap the box of their own object by less than half"
    turned = miss(np.clip(columns.object_boxes[:, [1, 0, 3, 2]], 0.0, sides))
    if (missed & ~turned).sum() >= MASK_SHARE * count:
        remedy = "x and y of the masks look exchanged: write x before y in polygons"
    else:
        some = missed & (masks[:, 2] > 0)
        wide = (masks[:, 2:] - masks[:, :2])[some] / (boxes[:, 2:] - boxes[:, :2])[some]
        size = f"; they are {median(wide):.2g} times as large (median)" if some.any() else ""
        text, remedy = text + size, "give masks and boxes in pixels of the same image: one of them looks scaled"
    return [Oddity("masks apart from boxes", text, remedy)]


def check_scores(columns: Columns, sample: Sample) -> list[Oddity]:
    """Warn of scores that are all tiny, and of a constant that is much higher than the fraction of right detections."""
    scores = columns.scores[columns.labels >= 0]  # detections of unknown classes have none
    if len(scores) < MIN_SCORES:
        return []
    low, high = float(scores.min()), float(scores.max())
    if high <= LOW_SCORE:
        text = f"no score of {len(scores):,} detections is above {high:.2g}"
        return [Oddity("tiny scores", text, "scores may have been divided by 100: give probabilities between 0 and 1")]
    if high - low > 1e-6:
        return []
    # Not numpy.unique, which loads masked arrays: see `median`.
    some = len(set(sample.detection.tolist()))
    there = sample.objects[sample.object]
    same = columns.labels[sample.detection] == columns.object_labels[there]
    right = len(set(sample.detection[(sample.overlaps() >= HALF) & same].tolist())) / max(some, 1)
    if some < MIN_CONSTANT or right >= high - UNFIT:
        return []
    text = (
        f"all {len(scores):,} detections have the score {high:.3g}, but only {right:.0%} overlap an object of their "
        "class by half"
    )
    return [Oddity("constant scores", text, "give the detector's own scores: PDQ and mAP go by them")]


def check_objects(columns: Columns) -> list[Oddity]:
    """Say if there is nothing to be found."""
    if len(columns.object_rows) or not len(columns.boxes):
        return []
    remedy = "check that it has annotations, and classes that are asked for"
    return [Oddity("no objects", "the ground truth has not one object: every detection is wrong", remedy)]


def check_classes(columns: Columns) -> list[Oddity]:
    """Say if most detections name a class that the truth does not have."""
    unknown = np.flatnonzero(columns.labels < 0)
    if not len(unknown) or len(unknown) < UNKNOWN_SHARE * len(columns.boxes):
        return []
    who = f"only {len(columns.boxes) - len(unknown):,} of {len(columns.boxes):,} detections name"
    if len(unknown) == len(columns.boxes):
        who = f"not one of {len(unknown):,} detections names"
    remedy = "give the detector's classes the names that the ground truth uses"
    return [Oddity("unknown classes", f"{who} a class that the ground truth has", remedy, unknown)]


def check_agreement(columns: Columns, sample: Sample) -> list[Oddity]:
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
        text = f"only {share:.0%} of the detections that overlap an object by half name its class"
        remedy = "check the order of classes and the category ids (COCO's go to 90 and leave some out)"
        return [Oddity("classes disagree", text, remedy)]
    return _check_shift(columns.classes, labels, named)


def _check_shift(classes: tuple[str, ...], labels: npt.NDArray[np.int32], named: npt.NDArray[np.int32]) -> list[Oddity]:
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
        text = (
            f"detections that overlap an object by half name another class in {len(chosen)} of {(totals > 0).sum()} "
            f"classes: {there!r:.40}, for example, is called {name!r:.40}"
        )
        remedy = "class ids look shifted from some id on: check the category ids (COCO's go to 90 and leave some out)"
        return [Oddity("classes shifted", text, remedy)]
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


def check_outside(columns: Columns) -> list[Oddity]:
    """Say if many boxes or Gaussian corners lie outside the image."""
    found: list[Oddity] = []
    # Boxes of COCO end on the far edge: in tiny images that is more than a standard deviation beyond the last pixel.
    misses, corners = boxes_outside(columns), corners_outside(columns, last=0.0)
    if len(misses) >= max(MIN_OUTSIDE, OUTSIDE_SHARE * len(columns.boxes)):
        text = f"{len(misses):,} of {len(columns.boxes):,} boxes lie outside their image"
        found.append(Oddity(OUTSIDE, text, "check the scale of boxes and the order of images", misses))
    if len(corners) >= max(MIN_OUTSIDE, CORNER_SHARE * len(columns.boxes)):
        text = (
            f"{len(corners):,} of {len(columns.boxes):,} detections have a corner outside the image by more than its "
            "sigma: the probability outside is lost"
        )
        found.append(Oddity(CORNER, text, CLIP, corners))
    return found
