"""Average precision and LRP of each image alone, for all images at once.

Matches are made image by image, so those of an image alone are at hand, and in the order that its detections are ranked
in. The objects and detections of one class in one image are to the kernel what those of a class in all images are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.measures.boxes.matching import IOU_THRESHOLDS, BoxMatches
from probox.measures.boxes.resampling import EVERY_THRESHOLD

__all__ = ["image_lrp", "image_precision"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_GROUPS = 50_000  # at a time: each takes a number per score threshold


def image_precision(matches: BoxMatches, object_images: Ints, recall_points: Floats) -> Floats:
    """Return each image's average precision by IoU threshold, and in the last row of all, (11, I).

    Parameters
    ----------
    matches : BoxMatches
        What became of detections and objects.
    object_images : (M,) int64
        The row of each object's image.
    recall_points : array of float
        Where precision is read off, ascending.
    """
    groups = _groups(matches, object_images)
    parts = [
        _core.resampled_precision(
            **part.columns, thresholds=len(IOU_THRESHOLDS), recall_points=recall_points, threads=1
        )[0]
        for part in _parts(matches, groups)
    ]
    precision = np.concatenate([np.zeros((len(IOU_THRESHOLDS), 0)), *parts], axis=1)
    return _means(np.concatenate([precision, precision.mean(axis=0, keepdims=True)]), groups.images, matches.images)


def image_lrp(matches: BoxMatches, object_images: Ints, score_thresholds: Floats) -> Floats:
    """Return the mean over each image's classes of optimal LRP and its components loc, fp and fn, (4, I).

    Parameters are those of `image_precision`; the optimum of a class in an image is sought among `score_thresholds`.
    """
    groups = _groups(matches, object_images)
    parts = []
    for part in _parts(matches, groups):
        right = part.columns["right"] & 1 == 1  # at the first IoU threshold
        optimum = _core.resampled_lrp(
            **part.columns,
            errors=np.where(right, 1.0 - matches.ious[part.rows, 0], 0.0),
            score_thresholds=score_thresholds,
            slack=1.0 - float(IOU_THRESHOLDS[0]),
            threads=1,
        )
        parts.append(optimum[0].T)
    return _means(np.concatenate([np.zeros((4, 0)), *parts], axis=1), groups.images, matches.images)


class _Groups(NamedTuple):
    """The classes that have objects in an image, image by image; objects of all sizes count."""

    images: Ints
    objects: Ints
    """How many objects of the class the image has."""
    first: Ints
    """The first of its rows in the matches: those of an image and class stand together, from the highest score down."""
    last: Ints
    """The row after its last."""


def _groups(matches: BoxMatches, object_images: Ints) -> _Groups:
    classes = max(len(matches.classes), 1)
    counted = matches.object_counts & 1 == 1
    keys, objects = np.unique(
        object_images[counted].astype(np.int64) * classes + matches.object_labels[counted], return_counts=True
    )
    found = matches.image_rows.astype(np.int64) * classes + matches.labels
    first, last = (np.searchsorted(found, keys, side=side) for side in ("left", "right"))
    return _Groups(keys // classes, objects, first, last)


class _Part(NamedTuple):
    rows: Ints
    columns: dict[str, Any]


def _parts(matches: BoxMatches, groups: _Groups) -> list[_Part]:
    """Return what the kernel reads, some groups at a time: each group is a class, and all count once."""
    starts = range(0, len(groups.images), _GROUPS)
    return [_part(matches, _Groups(*(column[start : start + _GROUPS] for column in groups))) for start in starts]


def _part(matches: BoxMatches, groups: _Groups) -> _Part:
    lengths = groups.last - groups.first
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    rows = np.arange(offsets[-1]) + np.repeat(groups.first - offsets[:-1], lengths)
    matched, ignored = matches.matched[rows, 0], matches.ignored[rows, 0]
    columns = {
        "order": np.arange(len(rows)),
        "offsets": offsets,
        "image_rows": np.zeros(len(rows), np.int32),
        "scores": matches.scores[rows],
        "right": matched & ~ignored,
        "wrong": ~(matched | ignored) & EVERY_THRESHOLD,
        "object_offsets": np.concatenate([[0], np.cumsum(groups.objects)]),
        "object_images": np.zeros(groups.objects.sum(), np.int32),
        "weights": np.ones((1, 1), np.int64),
    }
    return _Part(rows, columns)


def _means(values: Floats, images: Ints, count: int) -> Floats:
    """Return the means over each image's groups of what is not NaN; NaN where nothing is left."""
    means = np.full((len(values), count), np.nan)
    for row, own in enumerate(values):
        defined = ~np.isnan(own)
        sums, numbers = np.bincount(images[defined], own[defined], count), np.bincount(images[defined], minlength=count)
        np.divide(sums, numbers, out=means[row], where=numbers > 0)
    return means
