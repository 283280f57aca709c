"""Cross-validation of a calibration: fits that leave images out, and metrics on held-out images."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal

import numpy as np

from probox.analysis.resampling import compute_interval, draw_images
from probox.calibration.calibration import Calibration
from probox.calibration.corner_fit import CornerFit, FittingPairs, fit_corners, scales_sigmas
from probox.calibration.corner_maps import CornerMap, box_reach, calibrate_corners, edge_reach
from probox.calibration.label_maps import (
    LabelFit,
    fit_labels,
    ignorances,
    label_targets,
    target_probs,
)
from probox.convention import Convention
from probox.errors import InputError
from probox.evaluation.evaluate import evaluate
from probox.fusion.gaussian import pinned_edges
from probox.measures.measure import Weights, weighted_quantile, weighted_sums
from probox.measures.pdq.pdq_measure import sums_per_image
from probox.measures.scoring.calibration_metrics import ONE_STD, error_factor
from probox.measures.scoring.score_rows import border_notes
from probox.measures.scoring.scores import edge_variances, energy_scores, negative_log_likelihoods
from probox.notes import Note
from probox.support.types import Bools, Floats, Ints
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.label_probs import LabelProbs
from probox.tables.labels import align_labels, background_classes

PER_OBJECT = 2
"""Number of detections per object in a search: those of highest IoU times root of label probability."""


LEVELS = (0.68, 0.9)
"""Probabilities of the central intervals of single edges whose coverage is reported."""

Z68 = "z68"
"""Key of the error factor of edges. Its parts are |z| and image of each edge, because a quantile is not a sum."""


@dataclasses.dataclass(frozen=True)
class NumberColumn:
    """A reported number: its name, its better direction, and its format."""

    key: str
    words: str
    better: Literal["high", "low", "nominal"]
    nominal: float | None = None
    per_cent: bool = True

    def gain(self, before: Floats | float, after: Floats | float) -> Floats:
        """Return the improvement from `before` to `after`; above 0 is better for every column."""
        if self.nominal is not None:
            return np.asarray(np.abs(np.asarray(before) - self.nominal) - np.abs(np.asarray(after) - self.nominal))
        return np.asarray(after) - before if self.better == "high" else before - np.asarray(after)


def columns(alpha: float = 0.1) -> tuple[NumberColumn, ...]:
    """Return the reported numbers; the box coverage is that of probability 1 - alpha."""
    return (
        NumberColumn("PDQ", "PDQ", "high"),
        NumberColumn("NLL", "NLL of matched boxes", "low", per_cent=False),
        NumberColumn("energy", "energy score [px]", "low", per_cent=False),
        NumberColumn(Z68, "error/std (68% |z|)", "nominal", 1.0, per_cent=False),
        *(NumberColumn(f"coverage{100 * q:.0f}", f"edge coverage {100 * q:.0f}%", "nominal", q) for q in LEVELS),
        NumberColumn("box_coverage", f"box coverage {100 * (1 - alpha):g}%", "nominal", 1 - alpha),
        NumberColumn("ignorance", "ignorance of labels", "low", per_cent=False),
    )


@dataclasses.dataclass(frozen=True)
class Change:
    """A number on held-out images: before, after, and improvement.

    Parameters
    ----------
    before, after : float
        The number.
    gain : float
        Improvement, above 0 if after is better. For a coverage: how much closer it is to its nominal value.
    low, high : float
        Limits of the 95% confidence interval of the gain; NaN if undefined.

    Examples
    --------
    >>> from probox.calibration import Change
    >>> Change(before=0.50, after=0.57, gain=0.07, low=0.05, high=0.09).gain
    0.07
    """

    before: float
    after: float
    gain: float
    low: float
    high: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Gain:
    """Held-out numbers before and after calibration by key (``PDQ``, ``NLL``, ``coverage68`` ...), and of the baseline.

    Parameters
    ----------
    changes : mapping of str to Change
        From the original detections to the calibrated ones.
    over_constant : mapping of str to Change
        From the constant-variance baseline, fitted and held out in the same way, to the calibrated detections; empty
        for ``method="constant"``.
    columns : tuple of NumberColumn
        Meaning of the keys.
    folds, images, pairs : int
        Number of folds, images and matched boxes.

    Examples
    --------
    >>> from probox.calibration import Change, Gain
    >>> change = Change(before=0.50, after=0.57, gain=0.07, low=0.05, high=0.09)
    >>> gain = Gain(changes={"PDQ": change}, over_constant={}, columns=(), folds=5, images=100, pairs=700)
    >>> gain.changes["PDQ"].after
    0.57
    """

    changes: Mapping[str, Change]
    over_constant: Mapping[str, Change]
    columns: tuple[NumberColumn, ...]
    folds: int
    images: int
    pairs: int


def corner_parts(pairs: FittingPairs, images: int, alpha: float) -> dict[str, Floats]:
    """Return for each number of corners its sum and its count per image, (I, 2); for `Z68` images and z, (E, 2).

    NLL and energy score use all four edges, as in `probox evaluate`; coverages exclude truncated edges. Pairs with
    singular covariances only count in the energy score.
    """
    use = pairs.take(pairs.usable)
    z = np.abs(use.z)
    free = use.free.sum(axis=1).astype(np.float64)

    def by_image(values: Floats, counts: Floats, of: FittingPairs = use) -> Floats:
        return np.stack([np.bincount(of.image_rows, part, images) for part in (values, counts)], axis=1)

    parts = {
        "NLL": by_image(negative_log_likelihoods(use.residuals, use.covariances), np.ones(len(use))),
        "energy": by_image(energy_scores(pairs.residuals, pairs.covariances), np.ones(len(pairs)), pairs),
    }
    parts[Z68] = np.stack([np.repeat(use.image_rows, 4).reshape(z.shape)[use.free], z[use.free]], axis=1)
    for level in LEVELS:
        inside = ((z <= edge_reach(level)) & use.free).sum(axis=1)
        parts[f"coverage{100 * level:.0f}"] = by_image(inside.astype(np.float64), free)
    held = ((z <= box_reach(1 - alpha)) | ~use.free).all(axis=1) & (free > 0)
    parts["box_coverage"] = by_image(held.astype(np.float64), (free > 0).astype(np.float64))
    return parts


def compare(
    before: Mapping[str, Floats],
    after: Mapping[str, Floats],
    columns: tuple[NumberColumn, ...],
    *,
    resamples: int,
    seed: int,
) -> dict[str, Change]:
    """Return the changes from one set of parts to another, with bootstrap intervals over images."""
    images = len(next(iter(after.values())))
    reported = [column for column in columns if column.key in after]
    draws: dict[str, list[Floats]] = {column.key: [] for column in reported}
    for weights in draw_images(images, resamples, seed):
        for column in reported:
            old, new = (_resample_number(column, parts[column.key], weights) for parts in (before, after))
            draws[column.key].append(column.gain(old, new))
    changes = {}
    for column in reported:
        first, last = (_number(column, parts[column.key]) for parts in (before, after))
        gain = compute_interval(float(column.gain(first, last)), np.concatenate(draws[column.key]), images, 0.95)
        changes[column.key] = Change(first, last, gain.value, gain.low, gain.high)
    return changes


def _number(column: NumberColumn, part: Floats) -> float:
    return error_factor(part[:, 1]) if column.key == Z68 else float(_ratio(part.sum(axis=0)))


def _resample_number(column: NumberColumn, part: Floats, weights: Weights) -> Floats:
    """Return the number for each bootstrap replicate."""
    if column.key == Z68:
        return weighted_quantile(weights, part[:, 0].astype(np.int64), part[:, 1], ONE_STD)
    return _ratio(weighted_sums(weights, part.T).T)


def _ratio(parts: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(parts[..., 0] / parts[..., 1])


def pdq_parts(truth: GroundTruth, found: Detections, convention: Convention, *, threads: int | None = None) -> Floats:
    """Return the sum of pPDQ and the denominator's part of each image, (I, 2); PDQ is the ratio of the sums."""
    sums = sums_per_image(evaluate(truth, found, convention=convention, measures=("pdq",), threads=threads))
    return np.stack([sums["pPDQ"], sums["TP"] + sums["cost"] + sums["FN"]], axis=1)


class PdqCurve:
    """The parts of PDQ as a cached function of a map.

    For speed, a search only scores the few detections that an object may be matched with, and counts the others as
    false positives. Reported numbers use all detections.
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
        costs = found.label_probs[others][:, ~background_classes(found.classes)].max(axis=1, initial=0.0)
        weights = costs if convention.confidence_denominator else np.ones(int(others.sum()))
        self._others = np.bincount(rows[others], weights, len(truth.dataset))
        self._known: dict[CornerMap, Floats] = {}

    def parts(self, mapping: CornerMap) -> Floats:
        """Return the parts of PDQ of each image, (I, 2)."""
        if mapping not in self._known:
            changed = calibrate_corners(self._found, mapping, self._pinned_in)
            parts = pdq_parts(self._truth, changed, self._convention, threads=self._threads)
            parts[:, 1] += self._others
            self._known[mapping] = parts
        return self._known[mapping]

    def pdq(self, mapping: CornerMap, images: Bools) -> float:
        """Return the PDQ of some images; 0 if there is nothing to score."""
        total, counted = self.parts(mapping)[images].sum(axis=0)
        return float(total / counted) if counted else 0.0


def shortlist(truth: GroundTruth, found: Detections, rows: Ints, taken: Bools) -> Bools:
    """Return which of the detections `taken` are an object's `PER_OBJECT` of highest IoU times root of label.

    `rows` are the image rows of all detections.
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
        label = np.sqrt(np.clip(probs[here][np.arange(len(here)), truth.labels[there, None]], 0.0, 1.0))
        closeness = _ious(truth.boxes[there], found.boxes[here]) * label
        best = np.argpartition(-closeness, PER_OBJECT - 1, axis=1)[:, :PER_OBJECT]
        chosen = np.unique(best[np.take_along_axis(closeness, best, axis=1) > 0])
        listed[here[chosen]] = True
    pixels = found.has_heatmap if found.has_mask is None else found.has_heatmap | found.has_mask
    return listed | (taken & pixels)  # the boxes of heatmaps and masks need not fit them


def _ious(some: Floats, others: Floats) -> Floats:
    low = np.maximum(some[:, None, :2], others[None, :, :2])
    high = np.minimum(some[:, None, 2:], others[None, :, 2:])
    shared = np.prod(np.maximum(high - low, 0.0), axis=2)
    areas = [np.prod(np.maximum(boxes[:, 2:] - boxes[:, :2], 0.0), axis=1) for boxes in (some, others)]
    union = areas[0][:, None] + areas[1][None, :] - shared
    return np.asarray(np.divide(shared, union, out=np.zeros_like(shared), where=union > 0))


class FitTask:
    """Data and options of a fit, which runs once on all images and once per fold."""

    def __init__(
        self,
        truth: GroundTruth,
        found: Detections,
        convention: Convention,
        *,
        method: str,
        labels: str,
        target: str,
        alpha: float,
        level: float,
        threads: int | None,
        border: str,
    ) -> None:
        self.truth, self.found, self.convention, self.threads = truth, found, convention, threads
        self.method, self.labels, self.target, self.border = method, labels, target, border
        self.alpha, self.level = alpha, level
        self.pairs = FittingPairs.of(truth, found, threads=threads)
        self.targets = label_targets(self.pairs, found, truth.classes)
        self.image_rows = truth.dataset.rows_of(found.image_ids)
        self.scales_sigmas = scales_sigmas(method, self.pairs)
        self._check_covariances()
        self.curve = PdqCurve(truth, found, convention, threads=threads, border=border) if target == "pdq" else None
        self._label_fits: dict[bytes, LabelFit] = {}

    def _check_covariances(self) -> None:
        """Raise if a method scales std and no detection has one."""
        covariances = self.found.covariances
        has_some = covariances is not None and covariances.any()
        if self.method in ("constant", "learned") or has_some or not len(self.found):
            return
        raise InputError(
            "expected covariances, but got none",
            file=self.found.source or "the table of detections",
            remedy="use {option:method=constant} or {option:method=learned}",
        )

    def notes(self) -> list[Note]:
        """Return notes on pairs and edges that the fit of corners excludes or that bias it."""
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
        """Return the data of the fit."""
        used = self.pairs.take(self.pairs.usable) if self.scales_sigmas else self.pairs
        return (
            ("truth", self.truth.source),
            ("detections", self.found.source),
            ("images", len(self.truth.dataset)),
            ("matched boxes", len(used)),
        )

    def fit_on(self, method: str, images: Bools) -> tuple[CornerFit, LabelFit]:
        """Return the best fit on these images: corners by a method, labels by the task's own."""
        return self._corners(method, images), self._labels(images)

    def _labels(self, images: Bools) -> LabelFit:
        """Return the best label map on these images, cached because a method and its baseline share it."""
        key = images.tobytes()
        if key not in self._label_fits:
            rows = np.flatnonzero((self.image_rows >= 0) & images[self.image_rows])
            self._label_fits[key] = fit_labels(self.pairs, self.found, self.targets, rows, self.labels)
        return self._label_fits[key]

    def _corners(self, method: str, images: Bools) -> CornerFit:
        here = images[self.pairs.image_rows]
        quality = None if self.curve is None else partial(self.curve.pdq, images=images)
        pairs = self.pairs.take(here)
        return fit_corners(pairs, method, self.target, quality=quality, level=self.level, alpha=self.alpha)

    def measure(self, found: Detections) -> Numbers:
        """Return the numbers of detections, original or calibrated."""
        parts = {"PDQ": pdq_parts(self.truth, found, self.convention, threads=self.threads)}
        images = len(self.truth.dataset)
        if self.labels != "none":
            rows = np.flatnonzero(self.targets >= 0)
            background = background_classes(found.classes)
            lost = ignorances(target_probs(found.label_probs[rows], self.targets[rows], background))
            at = self.image_rows[rows]
            parts["ignorance"] = np.stack([np.bincount(at, lost, images), np.bincount(at, minlength=images)], axis=1)
        return Numbers(parts, self.pairs.after(self.truth, found), images, self.alpha)

    def calibrate(self, fits: Sequence[Fit], fold_of_image: Ints) -> Detections:
        """Return all detections; those of each fold are calibrated by the fit on the other folds."""
        found = self.found
        covariances = np.zeros((len(found), 2, 2, 2)) if found.covariances is None else found.covariances.copy()
        boxes, extents = found.boxes.copy(), found.extents.copy()
        scores, parts = found.scores.copy(), [(np.arange(len(found)), found.label_probs)]
        for fold, ((corners, _), (labels, _)) in enumerate(fits):
            rows = np.flatnonzero((self.image_rows >= 0) & (fold_of_image[self.image_rows] == fold))
            fitted = Calibration(corners=corners, labels=labels, target=self.target, border=self.border)
            part = fitted.apply(found.select(rows), self.truth)
            if part.covariances is not None:
                covariances[rows] = part.covariances
            boxes[rows], extents[rows] = part.boxes, part.extents
            scores[rows] = part.scores
            parts.append((rows, part.label_probs))
        source = np.empty(len(found), np.int64)  # the last of the rows of each detection
        every = np.concatenate([rows for rows, _ in parts])
        source[every] = np.arange(len(every))
        probs = LabelProbs.concatenate([part for _, part in parts])[source]
        return found.replace(covariances=covariances, boxes=boxes, extents=extents, label_probs=probs, scores=scores)


Fit = tuple[CornerFit, LabelFit]


@dataclasses.dataclass(frozen=True, eq=False)
class Numbers:
    """Sums and counts of each number per image; those of corners follow from `pairs`."""

    others: dict[str, Floats]
    pairs: FittingPairs
    images: int
    alpha: float

    def beside(self, after: Numbers) -> tuple[dict[str, Floats], dict[str, Floats]]:
        """Return the numbers of this and another calibration, on the pairs with a std in both.

        If boxes only get a std by calibration, there are no such pairs, and each has the numbers of its own.
        """
        both = self.pairs.usable & after.pairs.usable
        rows = both if self.pairs.usable.any() else np.ones(len(both), bool)
        return (
            self.others | corner_parts(self.pairs.take(rows), self.images, self.alpha),
            after.others | corner_parts(after.pairs.take(rows), self.images, self.alpha),
        )
