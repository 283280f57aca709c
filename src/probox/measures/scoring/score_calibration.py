"""Are scores honest? D-ECE, LaECE, LaACE and QGC of detections with what became of them.

`scores` are those of the named classes; `hits` says which detections were matched; `ious` is the overlap with the
match, 0 without one.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from probox.measures.scoring.bins import Bins, Sorted

__all__ = ["UNIT", "calibration_errors", "d_ece", "laace", "laece", "qgc", "qgc_losses"]

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
    return float(calibration_errors(*Sorted(scores, [hits - scores], ends).sums(bins))[0])


def calibration_errors(n: FloatArray, gaps: FloatArray) -> FloatArray:
    """Return sum over bins of n_b/N |mean outcome - mean score|, (R,); NaN of nothing.

    Parameters
    ----------
    n : (R, B) float64
        How many detections are in each bin.
    gaps : (R, B) float64
        The sum of outcome minus score in each.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        errors: FloatArray = np.abs(gaps).sum(axis=1) / n.sum(axis=1)
    return errors


def laece(
    scores: FloatArray,
    ious: FloatArray,
    labels: Labels,
    bins: Bins,
    *,
    ends: tuple[float, float] | None = UNIT,
) -> float:
    """Return LaECE: per class sum over bins of n_b/n |mean score - mean IoU|; the mean over classes with detections."""
    errors = []
    for label in np.unique(labels):
        own = labels == label
        errors.append(float(calibration_errors(*Sorted(scores[own], [ious[own] - scores[own]], ends).sums(bins))[0]))
    return _mean_over_classes(errors)


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
