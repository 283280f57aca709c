"""Mutants of mAP and moLRP."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.mutants.mutant import Broken, Mutant
from probox.measures.boxes import box_definition as boxes
from probox.measures.boxes.box_definition import BoxOutcome
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

__all__ = ["OF_BOXES"]

Floats = npt.NDArray[Any]


def _read(read: Callable[[Floats, Floats], float]) -> Broken:
    """Change the area of a curve: `read` gets recall and raw precision, detection by detection."""

    def area_under(outcome: BoxOutcome) -> float:
        if outcome.objects == 0:
            return float("nan")
        tp, fp = np.cumsum(outcome.right), np.cumsum(outcome.wrong)
        return float(read(tp / outcome.objects, tp / np.maximum(tp + fp, 1)))

    return lambda true: area_under


def _best_from(recall: Floats, precision: Floats, levels: Floats) -> float:
    return float(np.mean([precision[recall >= level].max(initial=0.0) for level in levels]))


def _unsmoothed(recall: Floats, precision: Floats) -> float:
    values = []
    for level in np.linspace(0.0, 1.0, 101):
        reached = precision[recall >= level]
        values.append(reached[0] if len(reached) else 0.0)
    return float(np.mean(values))


def _exact_area(recall: Floats, precision: Floats) -> float:
    smooth = np.maximum.accumulate(precision[::-1])[::-1]
    return float((np.diff(recall, prepend=0.0) * smooth).sum())


def _reached_only(recall: Floats, precision: Floats) -> float:
    levels = np.linspace(0.0, 1.0, 101)
    return _best_from(recall, precision, levels[levels <= recall.max(initial=0.0)])


def _matching(able: Callable[[Floats, float], Floats], once: bool = True) -> Broken:
    """Change the overlaps that suffice for a match, or allow several matches per object."""

    def match_greedily(ious: Floats, threshold: float, ignored: Floats, crowd: Floats) -> npt.NDArray[np.int64]:
        taken = np.zeros(ious.shape[1], bool)
        match = np.full(ious.shape[0], -1)
        for row in range(ious.shape[0]):
            fits = able(ious[row], threshold) & ~taken
            if fits.any():
                match[row] = int(np.where(fits, ious[row], -1.0).argmax())
                taken[match[row]] = once
        return match

    return lambda true: match_greedily


def _outcome(change: Callable[[BoxOutcome], BoxOutcome]) -> Broken:
    """Change a class's outcome: detections by descending score, and the number of objects."""
    return lambda true: lambda *given: change(true(*given))


def _all_take_part(true: Any) -> Any:
    """Match all detections of an image and class; for ground truth without crowds, and objects of all sizes."""

    def class_outcome(
        truth: GroundTruth, found: Detections, label: int, size: str, threshold: float, limit: int = 0
    ) -> BoxOutcome:
        named, scores = found.named_classes(truth.classes)
        columns = [np.zeros((4, 0))]
        of_class = truth.labels == label
        for image, image_id in enumerate(truth.image_ids):
            there = np.flatnonzero(of_class & (truth.image_rows == image))
            rows = np.flatnonzero((found.image_ids == image_id) & (named == label))
            rows = rows[np.argsort(-scores[rows], kind="stable")]
            none = np.zeros(len(there), bool)
            ious = boxes.overlaps(
                np.concatenate([found.boxes[rows, :2], found.extents[rows]], axis=1),
                np.concatenate([truth.boxes[there, :2], truth.extents[there]], axis=1),
                none,
            )
            match = boxes.match_greedily(ious, threshold, none, none)
            iou = np.append(ious, np.full((len(rows), 1), np.nan), axis=1)[np.arange(len(rows)), match]
            columns.append(np.stack([scores[rows], match >= 0, match < 0, iou]))
        score, right, wrong, iou = np.concatenate(columns, axis=1)
        order = np.argsort(-score, kind="stable")
        return BoxOutcome(score[order], right[order] > 0, wrong[order] > 0, iou[order], int(of_class.sum()))

    return class_outcome


def _weighted(name: str) -> Broken:
    """Multiply a column of the outcome by the scores."""
    return lambda true: (
        lambda outcome, *rest: true(
            dataclasses.replace(outcome, **{name: getattr(outcome, name) * outcome.score}), *rest
        )
    )


def _reversed(outcome: BoxOutcome) -> BoxOutcome:
    """Reverse the order of detections with equal scores."""
    backwards = np.arange(len(outcome.score))[::-1]
    order = backwards[np.argsort(-outcome.score[backwards], kind="stable")]
    columns = {name: getattr(outcome, name)[order] for name in ("score", "right", "wrong", "iou")}
    return dataclasses.replace(outcome, **columns)


def _lrp(error: Callable[[Floats, int, int], float], choose: Callable[[list[float]], float] = min) -> Broken:
    """Change the error at a threshold, given 1 - IoU of the TP, FP and FN; or the choice of the threshold."""

    def broken(true: Any) -> Any:
        def optimal_lrp(outcome: BoxOutcome, thresholds: Floats) -> tuple[float, dict[float, float]]:
            if outcome.objects == 0:
                return float("nan"), {}
            errors: dict[float, float] = {}
            for threshold in thresholds.tolist():
                kept = outcome.score >= threshold
                right = outcome.right & kept
                wrong = int((outcome.wrong & kept).sum())
                errors[threshold] = error(1 - outcome.iou[right], wrong, outcome.objects - int(right.sum()))
            return choose(list(errors.values())), errors

        return optimal_lrp

    return broken


def _true_lrp(apart: Floats, fp: int, fn: int) -> float:
    return float((2 * apart.sum() + fp + fn) / (len(apart) + fp + fn))


OF_BOXES: tuple[Mutant, ...] = (
    Mutant("map-unsmoothed", "mAP reads the raw precision at each recall.", "boxes._area_under", _read(_unsmoothed)),
    Mutant(
        "map-11-recalls",
        "mAP reads precision at 11 recalls.",
        "boxes._area_under",
        _read(lambda recall, precision: _best_from(recall, precision, np.linspace(0.0, 1.0, 11))),
    ),
    Mutant("map-exact-area", "mAP is the area under the smoothed curve.", "boxes._area_under", _read(_exact_area)),
    Mutant(
        "map-reached-only", "mAP leaves out recalls that are not reached.", "boxes._area_under", _read(_reached_only)
    ),
    Mutant(
        "map-final-precision",
        "mAP is the precision of all detections.",
        "boxes._area_under",
        _read(lambda recall, precision: precision[-1] if len(precision) else 0.0),
    ),
    Mutant(
        "map-strict",
        "An overlap must be above the threshold, not at it.",
        "boxes.match_greedily",
        _matching(lambda ious, threshold: ious > threshold),
    ),
    Mutant(
        "map-any-overlap",
        "Any overlap is enough for a match.",
        "boxes.match_greedily",
        _matching(lambda ious, threshold: ious > 0),
    ),
    Mutant(
        "map-duplicates-right",
        "An object can be matched any number of times.",
        "boxes.match_greedily",
        _matching(lambda ious, threshold: ious >= min(threshold, 1 - 1e-10), once=False),
    ),
    Mutant(
        "map-at-half",
        "All overlaps of at least 0.5 match, at every threshold: AP50 instead of mAP.",
        "boxes.match_greedily",
        lambda true: lambda ious, threshold, *rest: true(ious, 0.5, *rest),
    ),
    Mutant(
        "map-at-three-quarters",
        "Overlaps must be at least 0.75 at every threshold: AP75 instead of mAP.",
        "boxes.match_greedily",
        lambda true: lambda ious, threshold, *rest: true(ious, 0.75, *rest),
    ),
    Mutant(
        "boxes-narrower",
        "Detections are one pixel narrower and lower, for mAP and moLRP.",
        "boxes.overlaps",
        lambda true: lambda found, *rest: true(found - np.array([0.0, 0.0, 1.0, 1.0]), *rest),
    ),
    Mutant(
        "map-weighted",
        "A true positive counts with its score as weight in precision and recall.",
        "boxes._area_under",
        _weighted("right"),
    ),
    Mutant(
        "map-one-per-image",
        "One detection of an image and class takes part.",
        "boxes.class_outcome",
        lambda true: lambda *given: true(*given, 1),
    ),
    Mutant(
        "map-all-take-part",
        "All detections of an image and class take part, not only the best 100.",
        "boxes.class_outcome",
        _all_take_part,
    ),
    Mutant("map-ties-reversed", "Ties of scores are in reverse order.", "boxes.class_outcome", _outcome(_reversed)),
    Mutant(
        "map-scores-ignored",
        "All detections have the same score.",
        "boxes.class_outcome",
        _outcome(lambda outcome: dataclasses.replace(_reversed(outcome), score=np.ones_like(outcome.score))),
    ),
    Mutant(
        "map-misses-free",
        "Recall is relative to the detections instead of the objects.",
        "boxes.class_outcome",
        _outcome(lambda outcome: dataclasses.replace(outcome, objects=max(int(outcome.right.sum()), 1))),
    ),
    Mutant(
        "map-best-class", "mAP is that of the best class instead of the mean.", "boxes._mean", lambda true: np.nanmax
    ),
    Mutant(
        "lrp-all-kept",
        "moLRP keeps all detections instead of choosing a threshold.",
        "boxes.optimal_lrp",
        _lrp(_true_lrp, lambda errors: errors[0]),
    ),
    Mutant(
        "lrp-above-half",
        "moLRP keeps detections of a score of at least 0.5 instead of choosing a threshold.",
        "boxes.optimal_lrp",
        _lrp(_true_lrp, lambda errors: errors[50]),
    ),
    Mutant(
        "lrp-weighted",
        "moLRP multiplies overlaps by scores.",
        "boxes.optimal_lrp",
        _weighted("iou"),
    ),
    Mutant("lrp-worst", "moLRP takes the worst threshold.", "boxes.optimal_lrp", _lrp(_true_lrp, max)),
    Mutant(
        "lrp-placing-free",
        "moLRP ignores overlaps.",
        "boxes.optimal_lrp",
        _lrp(lambda apart, fp, fn: (fp + fn) / (len(apart) + fp + fn)),
    ),
    Mutant(
        "lrp-placing-half",
        "moLRP has 1 - IoU not divided by 1 - 0.5.",
        "boxes.optimal_lrp",
        _lrp(lambda apart, fp, fn: (apart.sum() + fp + fn) / (len(apart) + fp + fn)),
    ),
    Mutant(
        "lrp-false-free",
        "moLRP does not count false positives.",
        "boxes.optimal_lrp",
        _lrp(lambda apart, fp, fn: _true_lrp(apart, 0, fn)),
    ),
    Mutant(
        "lrp-misses-free",
        "moLRP does not count missed objects.",
        "boxes.optimal_lrp",
        _lrp(lambda apart, fp, fn: _true_lrp(apart, fp, 0) if len(apart) + fp else 1.0),
    ),
)
