"""Average precision and LRP in plain NumPy: slow, readable, and the reference for tests of the kernel.

Every function follows its definition for one class, one area range and one IoU threshold, and starts from the boxes
each time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from probox.measures.boxes.mask_overlaps import masks_of_detections
from probox.measures.boxes.matching import COCO_RULES, SIZES, BoxMatches, BoxRules, Geometry
from probox.support.types import Bools, Floats, Ints
from probox.tables.dataset import FREQUENCIES
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

__all__ = [
    "BoxOutcome",
    "class_outcome",
    "coco_numbers",
    "copied_images",
    "mask_overlaps",
    "match_greedily",
    "optimal_lrp",
    "overlaps",
]


def overlaps(found: Floats, truth: Floats, crowd: Bools) -> Floats:
    """Return the IoU of boxes ``x, y, w, h``, detections in rows, objects in columns.

    For a crowd: the fraction of the detection inside it.
    """
    d, g = found[:, None, :], truth[None, :, :]
    sides = np.minimum(d[..., 2:] + d[..., :2], g[..., 2:] + g[..., :2]) - np.maximum(d[..., :2], g[..., :2])
    meet = (sides > 0).all(axis=2)
    both = np.where(meet, sides[..., 0] * sides[..., 1], 0.0)
    found_area, truth_area = d[..., 2] * d[..., 3], g[..., 2] * g[..., 3]
    either = np.where(crowd, found_area, found_area + truth_area - both)
    return np.divide(both, either, out=np.zeros_like(both), where=meet)


def mask_overlaps(found: Bools, truth: Bools, crowd: Bools) -> Floats:
    """Return the IoU of masks, (D, H, W) and (G, H, W), detections in rows, objects in columns.

    For a crowd: the fraction of the detection inside it. 0 for empty masks.
    """
    both = (found[:, None] & truth[None]).sum(axis=(2, 3))
    either = np.where(crowd, found.sum(axis=(1, 2))[:, None], (found[:, None] | truth[None]).sum(axis=(2, 3)))
    return np.asarray(np.divide(both, either, out=np.zeros(both.shape), where=both > 0))


def match_greedily(ious: Floats, threshold: float, ignored: Bools, crowd: Bools) -> Ints:
    """Return the matched object of each detection, or -1; detections (rows) are ordered by descending score."""
    taken = np.zeros(ious.shape[1], bool)
    match = np.full(ious.shape[0], -1)
    for row in range(ious.shape[0]):
        able = (ious[row] >= min(threshold, 1 - 1e-10)) & (~taken | crowd)
        for wanted in (able & ~ignored, able & ignored):
            if wanted.any():
                best = ious[row][wanted].max()
                match[row] = np.flatnonzero(wanted & (ious[row] == best))[-1]
                taken[match[row]] = True
                break
    return match


@dataclasses.dataclass(frozen=True)
class BoxOutcome:
    """Detections of one class by descending score, as right, wrong or neither (ignored), IoU, and the object count."""

    score: Floats
    right: Bools
    wrong: Bools
    iou: Floats
    objects: int


def class_outcome(
    truth: GroundTruth,
    found: Detections,
    label: int,
    size: str,
    threshold: float,
    limit: int | None = None,
    rules: BoxRules = COCO_RULES,
    geometry: Geometry = "box",
) -> BoxOutcome:
    """Match the detections of one class in every image, and concatenate the outcomes of the images.

    The last of the rules' `max_detections` take part in matching; the first `limit` of them are returned.
    """
    low, high = dict(zip(SIZES, rules.areas.tolist(), strict=True))[size]
    columns: list[tuple[Floats, Bools, Bools, Floats]] = []
    objects = 0
    named, scores = found.named_classes(truth.classes)
    for row, in_truth, in_found in _images(truth, found, label, named, scores, rules.most):
        in_found = in_found[np.argsort(-scores[in_found], kind="stable")][: rules.max_detections[-1]]
        d = np.concatenate([found.boxes[in_found, :2], found.extents[in_found]], axis=1)
        g = np.concatenate([truth.boxes[in_truth, :2], truth.extents[in_truth]], axis=1)
        crowd = truth.crowd[in_truth]
        ignored = crowd | (truth.areas[in_truth] < low) | (truth.areas[in_truth] > high)
        ious = overlaps(d, g, crowd) if geometry == "box" else _mask_ious(truth, found, row, in_truth, in_found)
        match = match_greedily(ious, threshold, ignored, crowd)
        matched = match >= 0
        area = d[:, 2] * d[:, 3] if geometry == "box" or found.areas is None else found.areas[in_found]
        lenient = label in truth.dataset.not_exhaustive[row] if truth.dataset.not_exhaustive else False
        neither = np.where(matched, np.append(ignored, False)[match], (area < low) | (area > high) | lenient)
        iou = np.append(ious, np.full((len(ious), 1), np.nan), axis=1)[np.arange(len(match)), match]
        columns.append(
            (scores[in_found][:limit], (matched & ~neither)[:limit], (~matched & ~neither)[:limit], iou[:limit])
        )
        objects += int((~ignored).sum())
    if not columns:
        empty = np.zeros(0)
        return BoxOutcome(empty, empty.astype(bool), empty.astype(bool), empty, 0)
    score, right, wrong, iou = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    order = np.argsort(-score, kind="stable")
    return BoxOutcome(score[order], right[order], wrong[order], iou[order], objects)


def _mask_ious(truth: GroundTruth, found: Detections, image: int, in_truth: Ints, in_found: Ints) -> Floats:
    """Return the IoU of masks of some detections and objects of an image."""
    width, height = truth.dataset.shapes[image].tolist()
    masks = masks_of_detections(found.take(in_found), np.array([[width, height]]))
    mine = [masks.to_array(row, height, width) for row in range(len(in_found))]
    theirs = [truth.masks.to_array(row, height, width) for row in in_truth]
    d, g = (np.array(own, bool).reshape(-1, height, width) for own in (mine, theirs))
    return mask_overlaps(d, g, truth.crowd[in_truth])


def _images(
    truth: GroundTruth, found: Detections, label: int, named: npt.NDArray[np.int32], scores: Floats, most: int
) -> Iterator[tuple[int, Ints, Ints]]:
    """Yield each image, the rows of the class's objects, and of the detections predicted as this class.

    LVIS considers the best detections of an image, and like Open Images classes with an object or verified as absent.
    """
    for row, image_id in enumerate(truth.image_ids):
        in_truth = np.flatnonzero((truth.image_rows == row) & (truth.labels == label))
        in_found = np.flatnonzero(found.image_ids == image_id)
        if truth.dataset.rules == "lvis":
            in_found = in_found[np.argsort(-scores[in_found], kind="stable")][:most]
        if truth.dataset.partly_annotated:
            checked = len(in_truth) > 0 or label in truth.dataset.negatives[row]
            in_found = np.sort(in_found) if checked else in_found[:0]
        yield row, in_truth, in_found[named[in_found] == label]


def coco_numbers(
    truth: GroundTruth, found: Detections, rules: BoxRules = COCO_RULES, geometry: Geometry = "box"
) -> dict[str, float]:
    """Return COCO's values by name, twelve by default; AP50 and AP75 are NaN without their thresholds."""
    ious, limits = rules.iou_thresholds, rules.max_detections
    classes = range(len(truth.classes))

    def outcomes(size: str, thresholds: Sequence[float], limit: int) -> list[BoxOutcome]:
        return [class_outcome(truth, found, c, size, t, limit, rules, geometry) for c in classes for t in thresholds]

    def ap(size: str, thresholds: Sequence[float]) -> float:
        return _mean([_area_under(outcome) for outcome in outcomes(size, thresholds, limits[-1])])

    def ap_of(frequency: str) -> float:
        chosen = [c for c in classes if rules.frequencies[c] == frequency]
        return _mean(
            [_area_under(class_outcome(truth, found, c, "all", t, None, rules, geometry)) for c in chosen for t in ious]
        )

    def ar(size: str, limit: int) -> float:
        return _mean([_final_recall(outcome) for outcome in outcomes(size, ious, limit)])

    return {
        "mAP": ap("all", ious),
        "AP50": ap("all", [iou for iou in ious if iou == 0.5]),
        "AP75": ap("all", [iou for iou in ious if iou == 0.75]),
        **{f"AP_{size}": ap(size, ious) for size in ("small", "medium", "large")},
        **{f"AR_{limit}": ar("all", limit) for limit in limits},
        **{f"AR_{size}": ar(size, limits[-1]) for size in ("small", "medium", "large")},
        **{f"AP{frequency}": ap_of(frequency) for frequency in FREQUENCIES if rules.frequencies},
    }


def _mean(values: list[float]) -> float:
    defined = [value for value in values if not np.isnan(value)]
    return float(np.mean(defined)) if defined else float("nan")


def _area_under(outcome: BoxOutcome) -> float:
    """Return the mean over 101 recalls of the highest precision at that recall or above."""
    if outcome.objects == 0:
        return float("nan")
    tp, fp = np.cumsum(outcome.right), np.cumsum(outcome.wrong)
    recall = tp / outcome.objects
    precision = tp / (tp + fp + np.spacing(1.0))
    levels = np.linspace(0.0, 1.0, 101)
    return float(np.mean([precision[recall >= level].max(initial=0.0) for level in levels]))


def _final_recall(outcome: BoxOutcome) -> float:
    return float(outcome.right.sum() / outcome.objects) if outcome.objects else float("nan")


def optimal_lrp(outcome: BoxOutcome, thresholds: Floats) -> tuple[float, dict[float, float]]:
    """Return the lowest LRP, and LRP at every score threshold, each computed independently."""
    if outcome.objects == 0:
        return float("nan"), {}
    errors: dict[float, float] = {}
    for s in thresholds:
        kept = outcome.score >= s
        tp, fp = int((outcome.right & kept).sum()), int((outcome.wrong & kept).sum())
        fn = outcome.objects - tp
        placed = float(((1 - outcome.iou[outcome.right & kept]) / (1 - 0.5)).sum())
        errors[float(s)] = (placed + fp + fn) / (tp + fp + fn)
    return min(errors.values(), default=1.0), errors


def copied_images(matches: BoxMatches, object_images: Ints, counts: Ints) -> BoxMatches:
    """Return the matches of a dataset in which image i occurs ``counts[i]`` times.

    Copies are adjacent: different images keep their order, and so do equal scores of different images.
    """
    first_copy = np.cumsum(counts) - counts
    found: list[Ints] = []
    there: list[Ints] = []
    image_rows: list[Ints] = []
    for image, count in enumerate(counts.tolist()):
        of_image = np.flatnonzero(matches.image_rows == image)
        for copy in range(count):
            found.append(of_image)
            image_rows.append(np.full(len(of_image), first_copy[image] + copy))
            there.append(np.flatnonzero(object_images == image))
    rows, objects, images = (
        np.concatenate([np.zeros(0, np.int64), *parts]).astype(np.int64) for parts in (found, there, image_rows)
    )
    columns = {
        name: getattr(matches, name)[rows]
        for name in ("labels", "scores", "ranks", "numbers", "matched", "ignored", "ious", "matched_objects")
    }
    return BoxMatches(
        classes=matches.classes,
        images=int(counts.sum()),
        image_rows=images.astype(np.int32),
        object_labels=matches.object_labels[objects],
        object_counts=matches.object_counts[objects],
        **columns,
    )
