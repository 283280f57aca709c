"""Checks of single columns: images without detections, duplicates, classes, boxes and corners outside the image."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from probox.evaluation.oddities.columns import Columns, Floats, Oddity, Rows, median
from probox.evaluation.oddities.overlaps import HALF, Sample

__all__ = [
    "boxes_outside",
    "check_agreement",
    "check_classes",
    "check_coverage",
    "check_duplicates",
    "check_objects",
    "check_outside",
    "corners_outside",
    "describe_corner",
]

MIN_EMPTY, EMPTY_SHARE = 10, 0.1
"""Images with objects but without detections: so many, and this share of all images with objects."""
DUPLICATE_SHARE, MIN_DUPLICATES = 0.01, 10
UNKNOWN_SHARE = 0.5
AGREEMENT, MIN_AGREEMENT = 0.2, 50
"""Detections that overlap an object by half and name its class: below this share, of at least so many."""
OUTSIDE_SHARE, CORNER_SHARE = 0.01, 0.05
MIN_OUTSIDE = 10

OUTSIDE = "box outside the image"
CORNER = "corner outside the image by more than 1 sigma"
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
    remedy = "if the detector saw a part of the images, evaluate it on these: truth.select_images(ids), result.on(ids)"
    return [Oddity("images without detections", text, remedy)]


def check_duplicates(columns: Columns) -> list[Oddity]:
    """Say if detections stand there more than once: same image, class and box."""
    known = np.flatnonzero(columns.labels >= 0)  # unknown classes cannot be told apart
    key = _mixed(columns)[known]
    in_order = np.sort(key)
    if (in_order[1:] != in_order[:-1]).all():  # the usual case; finding rows takes longer
        return []
    order = np.argsort(key, kind="stable")
    rows = known[np.sort(order[1:][key[order[1:]] == key[order[:-1]]])]
    if len(rows) < max(MIN_DUPLICATES, DUPLICATE_SHARE * len(columns.boxes)):
        return []
    text = f"{len(rows):,} of {len(columns.boxes):,} detections repeat another one of the same image, class and box"
    return [Oddity("duplicate detections", text, "leave out the copies (files joined twice, or no suppression)", rows)]


def _mixed(columns: Columns) -> npt.NDArray[np.uint64]:
    """Return a number for each detection that differs, as good as surely, where image, class or box do."""
    box = (columns.boxes + 0.0).view(np.uint64)  # -0.0 + 0.0 is 0.0
    parts = [columns.image_rows.astype(np.uint64), columns.labels.astype(np.int64).view(np.uint64), *box.T]
    key = np.zeros(len(columns.boxes), np.uint64)
    for part in parts:
        key = (key ^ part) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(29)
    return key


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
    """Say if detections overlap objects but hardly ever name their class."""
    overlaps = sample.overlaps()
    known = columns.labels[sample.detection] >= 0
    pairs = sample.best_pairs((overlaps >= HALF) & known, overlaps)
    if len(pairs) < MIN_AGREEMENT:
        return []
    named = columns.labels[sample.detection[pairs]]
    share = float((named == columns.object_labels[sample.objects[sample.object[pairs]]]).mean())
    if share >= AGREEMENT:
        return []
    text = f"only {share:.0%} of the detections that overlap an object by half name its class"
    remedy = "check the order of classes and the category ids (COCO's go to 90 and leave some out)"
    return [Oddity("classes disagree", text, remedy)]


def boxes_outside(columns: Columns) -> Rows:
    """Return the detections whose box has no pixel in the image."""
    shapes = columns.shapes[columns.image_rows]
    return np.flatnonzero(((columns.boxes[:, 2:] < 0) | (columns.boxes[:, :2] >= shapes)).any(axis=1))


def _beyond(columns: Columns) -> Floats:
    shapes = columns.shapes[columns.image_rows]
    return np.concatenate([-columns.boxes[:, :2], columns.boxes[:, 2:] - (shapes - 1)], axis=1)


def corners_outside(columns: Columns) -> Rows:
    """Return the detections with a Gaussian corner outside the image by more than a sigma: what lies there is lost."""
    if columns.covariances is None or columns.clipped:
        return np.zeros(0, np.int64)
    beyond = _beyond(columns)
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
    misses, corners = boxes_outside(columns), corners_outside(columns)
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
