"""Average precision and LRP of resampled images: of each image as often as a replicate says.

Matches are made image by image, so a replicate changes only how often each detection and object counts. Copies of an
image are images of their own that stand side by side, as if they had neighbouring ids; `definition.copied_images` makes
such copies, and what is here gives the same numbers without making any.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.measures.boxes.matching import IOU_THRESHOLDS, BoxMatches
from probox.support.parallel import thread_count

__all__ = ["EVERY_THRESHOLD", "mean_over_classes", "resampled_lrp", "resampled_precision"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

EVERY_THRESHOLD = np.uint16(2 ** len(IOU_THRESHOLDS) - 1)
"""A bit for each."""


def resampled_precision(
    matches: BoxMatches, object_images: Ints, weights: Ints, recall_points: Floats, *, threads: int | None = None
) -> Floats:
    """Return each replicate's average precision by IoU threshold and class, (R, 10, C), objects of all sizes counting.

    Parameters
    ----------
    matches : BoxMatches
        What became of detections and objects.
    object_images : (M,) int64
        The row of each object's image.
    weights : (R, I) int64
        How often each image counts in each replicate.
    recall_points : array of float
        Where precision is read off, ascending.
    threads : int, optional
        Default: as many as the process may use. The result is the same to the bit for any number.
    """
    return _core.resampled_precision(
        **_by_class(matches, object_images, threads),
        weights=np.ascontiguousarray(weights, np.int64),
        thresholds=len(IOU_THRESHOLDS),
        recall_points=recall_points,
        threads=thread_count(threads),
    )


def resampled_lrp(
    matches: BoxMatches, object_images: Ints, weights: Ints, score_thresholds: Floats, *, threads: int | None = None
) -> Floats:
    """Return each replicate's optimal LRP of each class and its components loc, fp and fn, (R, C, 4).

    Parameters are those of `resampled_precision`; the optimum is sought among `score_thresholds`, which ascend.
    """
    columns = _by_class(matches, object_images, threads)
    right = columns["right"] & 1 == 1  # at the first IoU threshold
    return _core.resampled_lrp(
        **columns,
        weights=np.ascontiguousarray(weights, np.int64),
        errors=np.where(right, 1.0 - matches.ious[:, 0], 0.0),
        score_thresholds=score_thresholds,
        slack=1.0 - float(IOU_THRESHOLDS[0]),
        threads=thread_count(threads),
    )


def mean_over_classes(values: Floats) -> Floats:
    """Return the mean over the last axis of what is not NaN; NaN where nothing is left."""
    defined = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        mean: Floats = np.where(defined, values, 0.0).sum(axis=-1) / defined.sum(axis=-1)
    return mean


def _by_class(matches: BoxMatches, object_images: Ints, threads: int | None) -> dict[str, Any]:
    """Return what the kernel reads, objects of all sizes counting: detections by score, and the images of objects."""
    order, offsets = matches.by_score(threads)
    matched, ignored = matches.matched[:, 0], matches.ignored[:, 0]
    counted = np.flatnonzero(matches.object_counts & 1)
    counted = counted[np.argsort(matches.object_labels[counted], kind="stable")]
    per_class = np.bincount(matches.object_labels[counted], minlength=len(matches.classes))
    return {
        "order": order,
        "offsets": offsets,
        "image_rows": matches.image_rows,
        "scores": matches.scores,
        "right": matched & ~ignored,
        "wrong": ~(matched | ignored) & EVERY_THRESHOLD,
        "object_offsets": np.concatenate([[0], np.cumsum(per_class)]).astype(np.int64),
        "object_images": object_images[counted].astype(np.int32),
    }
