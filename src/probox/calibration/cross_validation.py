"""Fits that leave images out, and PDQ of detections calibrated by a fit that has not seen their image."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from probox.calibration.calibration import Calibration
from probox.calibration.corner_fit import CornerFit, FittingPairs, fit_corners, scales_sigmas
from probox.calibration.corner_maps import CornerMap, calibrate_corners
from probox.calibration.gain import corner_parts
from probox.calibration.label_maps import (
    LabelFit,
    background_columns,
    fit_labels,
    ignorances,
    label_targets,
    with_background,
)
from probox.convention import Convention
from probox.errors import InputError
from probox.evaluation.evaluate import evaluate
from probox.evaluation.result import Evaluation
from probox.fusion.gaussian import pinned_edges
from probox.measures.pdq.pdq_measure import sums_per_image
from probox.measures.scoring.score_rows import border_notes
from probox.measures.scoring.scores import edge_variances
from probox.notes import Note
from probox.support.types import Bools, Floats, Ints
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.labels import align_labels

PIECES = 3
"""Pieces of images for each that is worked on at once: images differ in what they take."""

PER_OBJECT = 2
"""How many detections of an object take part in a search: those that overlap it most, by box and label."""


def pdq_parts(evaluation: Evaluation) -> Floats:
    """Return for each image the sum of its pPDQ and its part of the denominator, (I, 2); PDQ is the ratio of sums."""
    sums = sums_per_image(evaluation)
    return np.stack([sums["pPDQ"], sums["TP"] + sums["cost"] + sums["FN"]], axis=1)


def pdq_by_image(
    truth: GroundTruth,
    found: Detections,
    convention: Convention,
    *,
    threads: int | None = None,
) -> Floats:
    """Return `pdq_parts` of detections."""
    return pdq_parts(evaluate(truth, found, convention=convention, measures=("pdq",), threads=threads))


class PdqCurve:
    """The parts of PDQ as a function of a map, measured when they are first asked for.

    A search looks at the few detections that an object may be matched with; all others are false positives whatever
    their sigmas. Numbers that are shown are measured on all of them.
    """

    def __init__(
        self,
        truth: GroundTruth,
        found: Detections,
        convention: Convention,
        *,
        threads: int | None = None,
        border: str = "keep",
    ) -> None:
        self._pinned_in = truth.dataset if border == "pin" else None
        rows = truth.dataset.rows_of(found.image_ids)
        taken = rows >= 0
        if convention.fixed_threshold is not None:
            taken &= found.label_probs.max(axis=1, initial=0.0) > np.float32(convention.fixed_threshold)
        listed = shortlist(truth, found, rows, taken)
        self._truth, self._found = truth, found.select(listed)
        self._convention, self._threads = convention, threads
        others = taken & ~listed
        real = np.ones(len(found.classes), bool)
        real[background_columns(found.classes)] = False
        costs = found.label_probs[others][:, real].max(axis=1, initial=0.0)
        weights = costs if convention.confidence_denominator else np.ones(int(others.sum()))
        self._others = np.bincount(rows[others], weights, len(truth.dataset))
        self._known: dict[CornerMap, Floats] = {}

    def parts(self, mapping: CornerMap) -> Floats:
        """Return the parts of PDQ of each image, (I, 2)."""
        if mapping not in self._known:
            changed = calibrate_corners(self._found, mapping, self._pinned_in)
            parts = pdq_by_image(self._truth, changed, self._convention, threads=self._threads)
            parts[:, 1] += self._others
            self._known[mapping] = parts
        return self._known[mapping]

    def pdq(self, mapping: CornerMap, images: Bools) -> float:
        """Return the PDQ of these images, 0 where there is nothing to score."""
        total, counted = self.parts(mapping)[images].sum(axis=0)
        return float(total / counted) if counted else 0.0


def shortlist(truth: GroundTruth, found: Detections, rows: Ints, taken: Bools) -> Bools:
    """Return which detections are among the `PER_OBJECT` of an object with the highest IoU times root of label.

    Parameters
    ----------
    truth, found : tables
        Objects and detections.
    rows : (N,) int64
        Image rows of the detections.
    taken : (N,) bool
        The detections to choose from.
    """
    listed = np.zeros(len(found), bool)
    order = np.flatnonzero(taken)[np.argsort(rows[taken], kind="stable")]
    starts = np.searchsorted(rows[order], np.arange(len(truth.dataset) + 1))
    offsets = truth.dataset.offsets(truth.image_rows)
    probs = align_labels(found.label_probs, found.classes, truth.classes)
    for image in range(len(truth.dataset)):
        here = order[starts[image] : starts[image + 1]]
        there = slice(offsets[image], offsets[image + 1])
        if len(here) <= PER_OBJECT or there.start == there.stop:
            listed[here] = True
            continue
        label = np.sqrt(np.clip(probs[here][:, truth.labels[there]].T, 0.0, 1.0))
        closeness = _ious(truth.boxes[there], found.boxes[here]) * label
        best = np.argpartition(-closeness, PER_OBJECT - 1, axis=1)[:, :PER_OBJECT]
        chosen = np.unique(best[np.take_along_axis(closeness, best, axis=1) > 0])
        listed[here[chosen]] = True
    return listed | (taken & found.has_heatmap)  # the boxes of heatmaps say little


def _ious(some: Floats, others: Floats) -> Floats:
    low = np.maximum(some[:, None, :2], others[None, :, :2])
    high = np.minimum(some[:, None, 2:], others[None, :, 2:])
    shared = np.prod(np.maximum(high - low, 0.0), axis=2)
    areas = [np.prod(np.maximum(boxes[:, 2:] - boxes[:, :2], 0.0), axis=1) for boxes in (some, others)]
    union = areas[0][:, None] + areas[1][None, :] - shared
    return np.asarray(np.divide(shared, union, out=np.zeros_like(shared), where=union > 0))


class FitTask:
    """What is fitted to what: done once for all images, and once for each fold without it."""

    curve: PdqCurve | None

    def __init__(
        self,
        truth: GroundTruth,
        found: Detections,
        method: str,
        labels: str,
        target: str,
        alpha: float,
        level: float,
        threads: int | None,
        border: str = "keep",
    ) -> None:
        self.border = border
        self.truth, self.found, self.threads = truth, found, threads
        self.method, self.labels, self.target = method, labels, target
        self.levels = {"alpha": alpha, "level": level}
        self.pairs = FittingPairs.of(truth, found, threads=threads)
        self.targets = label_targets(self.pairs, found, truth.classes)
        self.image_rows = truth.dataset.rows_of(found.image_ids)
        self.scales_sigmas = scales_sigmas(method, self.pairs)
        self._label_fits: dict[bytes, LabelFit] = {}

    def check_covariances(self) -> None:
        """Raise if sigmas are to be scaled and there are none."""
        covariances = self.found.covariances
        if (
            self.method in ("constant", "learned")
            or not len(self.found)
            or (covariances is not None and covariances.any())
        ):
            return
        raise InputError(
            "has no covariances",
            file=self.found.source or "the table of detections",
            remedy="use {option:method=constant} or {option:method=learned}",
        )

    def notes(self) -> list[Note]:
        """Return what does not take part in fitting corners."""
        pairs, notes = self.pairs, list[Note]()
        if self.scales_sigmas:
            plain = int((~pairs.covariances.any(axis=(1, 2, 3))).sum())
            flat = int((~pairs.usable).sum()) - plain
            if plain:
                notes.append(Note("plain-boxes-not-fitted", plain, total=len(pairs)))
            if flat:
                notes.append(Note("singular-boxes-not-fitted", flat, total=len(pairs)))
        notes += border_notes(pairs.residuals, edge_variances(pairs.covariances), ~pairs.free)
        pinned = int(pinned_edges(pairs.boxes, pairs.covariances, pairs.image_sizes).sum())
        if pinned and self.border == "keep":
            notes.append(Note("pinned-edges-fitted", pinned, total=4 * len(pairs)))
        return notes

    def origin(self) -> tuple[tuple[str, str | int], ...]:
        """Return what it was fitted on."""
        used = self.pairs.take(self.pairs.usable) if self.scales_sigmas else self.pairs
        return (
            ("truth", self.truth.source),
            ("detections", self.found.source),
            ("images", len(self.truth.dataset)),
            ("matched boxes", len(used)),
        )

    def fit_on(self, method: str, images: Bools) -> tuple[CornerFit, LabelFit]:
        """Return what suits these images best by a method for corners, and by the job's own for labels."""
        return self._corners(method, images), self._labels(images)

    def _labels(self, images: Bools) -> LabelFit:
        """Return what suits the labels in these images best, found once for a method and its control."""
        key = images.tobytes()
        if key not in self._label_fits:
            rows = np.flatnonzero((self.image_rows >= 0) & images[self.image_rows])
            self._label_fits[key] = fit_labels(self.pairs, self.found, self.targets, rows, self.labels)
        return self._label_fits[key]

    def _corners(self, method: str, images: Bools) -> CornerFit:
        here = images[self.pairs.image_rows]
        curve = self.curve

        def quality(mapping: CornerMap) -> float:
            assert curve is not None
            return curve.pdq(mapping, images)

        return fit_corners(
            self.pairs.take(here), method, self.target, quality=quality if curve else None, **self.levels
        )


Fit = tuple[CornerFit, LabelFit]


@dataclasses.dataclass(frozen=True, eq=False)
class Numbers:
    """Sums and counts of each number in each image, those of corners still to be made."""

    others: dict[str, Floats]
    pairs: FittingPairs
    images: int
    alpha: float

    def beside(self, after: Numbers) -> tuple[dict[str, Floats], dict[str, Floats]]:
        """Return own numbers and those of another calibration, on the pairs that have sigmas in both.

        Where plain boxes get sigmas there is no such pair, and each has the numbers of its own.
        """
        both = self.pairs.usable & after.pairs.usable
        rows = both if self.pairs.usable.any() else np.ones(len(both), bool)
        return (
            self.others | corner_parts(self.pairs.take(rows), self.images, self.alpha),
            after.others | corner_parts(after.pairs.take(rows), self.images, self.alpha),
        )


class HeldOut:
    """Numbers of detections each of which was calibrated by a fit that did not see its image."""

    def __init__(
        self,
        job: FitTask,
        convention: Convention,
        alpha: float,
        fold_of_image: Ints,
    ) -> None:
        self.job, self.convention, self.alpha = job, convention, alpha
        self.fold_of_image = fold_of_image

    def numbers(self, found: Detections) -> Numbers:
        """Return the numbers of detections, as they are or calibrated."""
        job = self.job
        images = len(job.truth.dataset)
        parts = {"PDQ": pdq_by_image(job.truth, found, self.convention, threads=job.threads)}
        if job.labels != "none":
            parts["ignorance"] = self._ignorance(found, images)
        return Numbers(parts, job.pairs.after(job.truth, found), images, self.alpha)

    def calibrate(self, fits: Sequence[Fit]) -> Detections:
        """Return the table of detections, each fold's calibrated by what was fitted on the others."""
        job = self.job
        found = job.found
        covariances = np.zeros((len(found), 2, 2, 2)) if found.covariances is None else found.covariances.copy()
        boxes, extents = found.boxes.copy(), found.extents.copy()
        probs, scores = found.label_probs.copy(), found.scores.copy()
        for fold, (corners, labels) in enumerate(fits):
            rows = np.flatnonzero((job.image_rows >= 0) & (self.fold_of_image[job.image_rows] == fold))
            fitted = Calibration(corners=corners.mapping, labels=labels.mapping, target=job.target, border=job.border)
            part = fitted.apply(found.select(rows), job.truth)
            if part.covariances is not None:
                covariances[rows] = part.covariances
            boxes[rows], extents[rows] = part.boxes, part.extents
            probs[rows], scores[rows] = part.label_probs, part.scores
        return found.replace(covariances=covariances, boxes=boxes, extents=extents, label_probs=probs, scores=scores)

    def _ignorance(self, found: Detections, images: int) -> Floats:
        rows = np.flatnonzero(self.job.targets >= 0)
        probs = with_background(found.label_probs[rows])
        lost = ignorances(probs, self.job.targets[rows], background_columns(found.classes))
        at = self.job.image_rows[rows]
        return np.stack([np.bincount(at, lost, images), np.bincount(at, minlength=images)], axis=1)
