"""Are scores honest? D-ECE, LaECE, LaACE and QGC of detections with what became of them.

`scores` are those of the named classes; `hits` says which detections were matched; `ious` is the overlap with the
match, 0 without one.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from probox.measures.scoring.bins import Bins, Sorted

__all__ = ["UNIT", "calibration_error", "d_ece", "laace", "laece", "qgc", "qgc_losses"]

FloatArray = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Labels = npt.NDArray[np.int32] | npt.NDArray[np.int64]

UNIT = (0.0, 1.0)
"""Between which bins of equal width lie, unless the least and the greatest score are asked for."""


def d_ece(scores: FloatArray, hits: Flags, bins: Bins, *, ends: tuple[float, float] | None = UNIT) -> float:
    """Return the detection calibration error: sum over bins of n_b/N |precision_b - mean score_b|.

    Parameters
    ----------
    scores, hits : (N,)
        Of all detections, ignored ones left out.
    bins : Bins
        Of scores.
    ends : (float, float), optional
        Of bins of equal width; None for the least and the greatest score.
    """
    return calibration_error(*Sorted(scores, np.stack([hits, scores], axis=1).astype(np.float64), ends).sums(bins))


def calibration_error(n: FloatArray, sums: FloatArray) -> float:
    """Return sum over bins of n_b/N |mean outcome - mean score|, given n and the sums of both; NaN of nothing."""
    return float(np.abs(sums[:, 0] - sums[:, 1]).sum() / n.sum()) if n.any() else math.nan


def laece(
    scores: FloatArray,
    ious: FloatArray,
    labels: Labels,
    bins: Bins,
    *,
    ends: tuple[float, float] | None = UNIT,
) -> float:
    """Return LaECE: per class sum over bins of n_b/n |mean score - mean IoU|; the mean over classes with detections."""
    columns = np.stack([ious, scores], axis=1)
    return _mean_over_classes(
        [
            calibration_error(*Sorted(scores[rows], columns[rows], ends).sums(bins))
            for rows in (np.flatnonzero(labels == label) for label in np.unique(labels))
        ]
    )


def laace(scores: FloatArray, ious: FloatArray, labels: Labels) -> float:
    """Return LaACE: per class the mean of |score - IoU|; the mean over classes with detections."""
    gaps = np.abs(scores - ious)
    return _mean_over_classes([float(gaps[labels == label].mean()) for label in np.unique(labels)])


def qgc_losses(scores: FloatArray, hits: Flags) -> FloatArray:
    """Return (1 - s)^2 of matched and s^2 of unmatched detections."""
    losses: FloatArray = np.square(np.where(hits, 1.0 - scores, scores))
    return losses


def qgc(scores: FloatArray, hits: Flags, missed: int) -> float:
    """Return QGC = [sum over TP (1 - s)^2 + sum over FP s^2 + FN] / (TP + FP + FN); NaN of nothing."""
    everything = len(scores) + missed
    return float((qgc_losses(scores, hits).sum() + missed) / everything) if everything else math.nan


def _mean_over_classes(values: list[float]) -> float:
    return float(np.mean(values)) if values else math.nan
