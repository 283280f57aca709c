"""Fitting a calibration, and finding out on held-out images what it is worth."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from probox.calibration.corners import CornerMap
from probox.calibration.fit_corners import CORNER_METHODS, CornerFit, fit_corners
from probox.calibration.fit_labels import LABEL_METHODS, LabelFit, fit_labels, ignorances, label_targets
from probox.calibration.gain import Change, Gain, columns, compare, corner_parts
from probox.calibration.labels import background_columns, with_background
from probox.calibration.pairs import FittingPairs
from probox.calibration.pdq_curve import PdqCurve, pdq_parts
from probox.calibration.record import TARGETS, Calibration
from probox.convention import Convention, resolve_convention
from probox.errors import InputError
from probox.evaluation.run import evaluate
from probox.tables.arguments import check_tables
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

__all__ = ["Fitted", "fit"]

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fitted:
    """What `fit` found.

    Parameters
    ----------
    calibration : Calibration
        Fitted on all images: what to apply to others.
    gain : Gain or None
        What such a calibration is worth on images it was not fitted on; None with a single image.
    notes : tuple of str
        What was left out or is too little, one sentence each.
    """

    calibration: Calibration
    gain: Gain | None
    notes: tuple[str, ...] = ()


def fit(
    truth: GroundTruth,
    found: Detections,
    *,
    method: str = "scale",
    labels: str = "none",
    target: str | None = None,
    folds: int = 5,
    seed: int = 0,
    alpha: float = 0.1,
    level: float = 0.9,
    convention: str | Convention = "reference",
    label_threshold: float | None = None,
    resamples: int = 1000,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Fitted:
    """Fit a calibration of corners and labels, cross-validated by image.

    Parameters
    ----------
    truth : GroundTruth
        What is there.
    found : Detections
        What the detector says; all of it is fitted to.
    method : {"scale", "edge-scale", "class-scale", "isotonic", "constant", "conformal"}
        What happens to the corners' standard deviations; see `probox.calibration.corners`.
    labels : {"none", "temperature", "isotonic"}
        What happens to label probabilities; see `probox.calibration.labels`.
    target : {"pdq", "nll", "coverage"}, optional
        What the corners are fitted for. Default: ``"pdq"``; a conformal factor is for coverage.
    folds : int
        Images are dealt into so many parts; the numbers of each come from a calibration fitted on the others.
    seed : int
        Of the dealing and of the intervals.
    alpha : float
        Conformal: the share of objects that the central box may miss. Also the level of the box coverage that is told.
    level : float
        For coverage: the central interval of an edge that is to hold its share.
    convention, label_threshold
        How PDQ is measured, as for `probox.evaluate`.
    resamples : int
        How often images are drawn anew for the 95 % intervals.
    threads : int, optional
        As for `probox.evaluate`.
    progress : callable, optional
        Called with the numbers of parts done and in all.

    Examples
    --------
    >>> from probox.calibration import fit
    >>> from probox.demo import make_demo
    >>> demo = make_demo()
    >>> fitted = fit(demo.truth, demo.detectors["unsure"], method="scale", target="nll")
    >>> print(fitted.calibration)
    sigmas times 1.11
    """
    check_tables(truth, found, "fit")
    target = _checked_choices(method, labels, target)
    _check_numbers(folds=folds, seed=seed, alpha=alpha, level=level, resamples=resamples)
    job = _Job(truth, found, method, labels, target, alpha, level, threads)
    job.check_covariances()
    chosen = resolve_convention(convention)
    if label_threshold is not None:
        chosen = chosen.replace(label_threshold=label_threshold)
    job.curve = PdqCurve(truth, found, chosen, threads=threads) if target == "pdq" else None
    everywhere = np.ones(len(truth.dataset), bool)
    corners, mapped = job.fit_on(everywhere)
    calibration = Calibration(
        corners=corners.mapping,
        labels=mapped.mapping,
        target=target,
        classes=tuple(zip(truth.classes, truth.dataset.category_ids.tolist(), strict=True)),
        origin=job.origin(),
    )
    notes = [*job.notes(), *corners.notes, *mapped.notes]
    parts = min(folds, len(truth.dataset))
    if parts < 2:
        notes.append("no gain can be told: of one image none can be held out")
        return Fitted(calibration=calibration, gain=None, notes=tuple(notes))
    if parts < folds:
        notes.append(f"{parts} images: {parts} folds instead of {folds}")
    fold_of_image = _dealt(len(truth.dataset), parts, seed)
    held_out = _HeldOut(job, chosen, alpha, fold_of_image, parts, progress)
    telling = columns(alpha)
    try:
        after = held_out.numbers(job.fit_on)
        control = None if method == "constant" else held_out.numbers(job.constant_on)
    except InputError as error:  # the whole suffices for a fit, but not its parts
        notes.append(f"no gain can be told: without the images of one fold, {error.problem}")
        return Fitted(calibration=calibration, gain=None, notes=tuple(notes))

    def compared(first: _Numbers) -> dict[str, Change]:
        return compare(*first.beside(after), telling, resamples=resamples, seed=seed)

    gain = Gain(
        changes=compared(held_out.numbers(None)),
        over_constant={} if control is None else compared(control),
        columns=telling,
        folds=parts,
        images=len(truth.dataset),
        pairs=len(job.pairs),
    )
    return Fitted(calibration=calibration, gain=gain, notes=tuple(notes))


def _checked_choices(method: str, labels: str, target: str | None) -> str:
    if target is None:
        target = "coverage" if method == "conformal" else "pdq"
    given = {"method": (method, CORNER_METHODS), "labels": (labels, LABEL_METHODS), "target": (target, TARGETS)}
    for name, (value, known) in given.items():
        if not isinstance(value, str) or value not in known:
            raise InputError(f"expected {name} to be one of {', '.join(known)}, but got {value!r:.40}")
    if method == "conformal" and target != "coverage":
        raise InputError(
            f"a conformal factor is for coverage, not for {target}",
            remedy="leave the target out, or use another method",
        )
    return target


def _check_numbers(**given: float) -> None:
    for name, least in (("folds", 2), ("seed", 0), ("resamples", 1)):
        value = given[name]
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= 10**6:
            raise InputError(f"expected {name} to be a whole number from {least} to 1000000, but got {value!r:.40}")
    for name in ("alpha", "level"):
        value = given[name]
        if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 < value < 1:
            raise InputError(f"expected {name} to be a number between 0 and 1, but got {value!r:.40}")


def _dealt(images: int, folds: int, seed: int) -> npt.NDArray[np.int64]:
    """Return the fold of each image; images are in ascending order of their ids, so their order in files is nothing."""
    fold = np.empty(images, np.int64)
    fold[np.random.default_rng(seed).permutation(images)] = np.arange(images) % folds
    return fold


class _Job:
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
    ) -> None:
        self.truth, self.found, self.threads = truth, found, threads
        self.method, self.labels, self.target = method, labels, target
        self.levels = {"alpha": alpha, "level": level}
        self.pairs = FittingPairs.of(truth, found, threads=threads)
        self.targets = label_targets(self.pairs, found, truth.classes)
        self.image_rows = truth.dataset.rows_of(found.image_ids)
        names = np.array(found.classes or ("",))
        self.names = names[found.labels[self.pairs.detections]]

    def check_covariances(self) -> None:
        """Raise if sigmas are to be scaled and there are none."""
        covariances = self.found.covariances
        if self.method == "constant" or not len(self.found) or (covariances is not None and covariances.any()):
            return
        raise InputError(
            "has no covariances", file=self.found.source or "the table of detections", remedy='use method="constant"'
        )

    def notes(self) -> list[str]:
        """Return what does not take part in fitting corners."""
        pairs, notes = self.pairs, list[str]()
        if self.method != "constant":
            plain = int((~pairs.covariances.any(axis=(1, 2, 3))).sum())
            flat = int((~pairs.usable).sum()) - plain
            if plain:
                notes.append(f"{plain:,} of {len(pairs):,} matched boxes are plain: left out of the fit")
            if flat:
                notes.append(
                    f"{flat:,} of {len(pairs):,} matched boxes have covariances without an inverse: left out of the fit"
                )
        truncated = int((~pairs.free).sum())
        if truncated:
            notes.append(f"{truncated:,} of {4 * len(pairs):,} edges end at the image's border: left out of the fit")
        return notes

    def origin(self) -> tuple[tuple[str, str | int], ...]:
        """Return what it was fitted on."""
        used = self.pairs.take(self.pairs.usable) if self.method != "constant" else self.pairs
        return (
            ("truth", self.truth.source),
            ("detections", self.found.source),
            ("images", len(self.truth.dataset)),
            ("matched boxes", len(used)),
        )

    def fit_on(self, images: Flags) -> tuple[CornerFit, LabelFit]:
        """Return what suits these images best."""
        rows = np.flatnonzero((self.image_rows >= 0) & images[self.image_rows])
        return self._corners(self.method, images), fit_labels(self.pairs, self.found, self.targets, rows, self.labels)

    def constant_on(self, images: Flags) -> tuple[CornerFit, LabelFit]:
        """Return the best constant sigma for these images, and the same labels."""
        rows = np.flatnonzero((self.image_rows >= 0) & images[self.image_rows])
        return self._corners("constant", images), fit_labels(self.pairs, self.found, self.targets, rows, self.labels)

    def _corners(self, method: str, images: Flags) -> CornerFit:
        here = images[self.pairs.image_rows]
        curve = self.curve

        def quality(mapping: CornerMap) -> float:
            assert curve is not None
            return curve.pdq(mapping, images)

        return fit_corners(
            self.pairs.take(here), self.names[here], method, self.target, quality=quality if curve else None,
            **self.levels,
        )  # fmt: skip


FitOn = Callable[[Flags], tuple[CornerFit, LabelFit]]


@dataclasses.dataclass(frozen=True, eq=False)
class _Numbers:
    """Sums and counts of each number in each image, those of corners still to be made."""

    others: dict[str, Floats]
    pairs: FittingPairs
    images: int
    alpha: float

    def beside(self, after: _Numbers) -> tuple[dict[str, Floats], dict[str, Floats]]:
        """Return own numbers and those of another calibration, on the pairs that have sigmas in both.

        Where plain boxes get sigmas there is no such pair, and each has the numbers of its own.
        """
        both = self.pairs.usable & after.pairs.usable
        rows = both if self.pairs.usable.any() else np.ones(len(both), bool)
        return (
            self.others | corner_parts(self.pairs.take(rows), self.images, self.alpha),
            after.others | corner_parts(after.pairs.take(rows), self.images, self.alpha),
        )


class _HeldOut:
    """Numbers of detections each of which was calibrated by a fit that did not see its image."""

    def __init__(
        self,
        job: _Job,
        convention: Convention,
        alpha: float,
        fold_of_image: npt.NDArray[np.int64],
        folds: int,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self.job, self.convention, self.alpha = job, convention, alpha
        self.fold_of_image, self.folds = fold_of_image, folds
        self.progress = progress

    def numbers(self, fit_on: FitOn | None) -> _Numbers:
        """Return the numbers of calibrated detections; of the detections as they are without a fit."""
        job = self.job
        found = job.found if fit_on is None else self._calibrated(fit_on)
        evaluation = evaluate(job.truth, found, convention=self.convention, measures=("pdq",), threads=job.threads)
        images = len(job.truth.dataset)
        parts = {"PDQ": pdq_parts(evaluation)}
        if job.labels != "none":
            parts["ignorance"] = self._ignorance(found, images)
        return _Numbers(parts, job.pairs.with_covariances(found), images, self.alpha)

    def _calibrated(self, fit_on: FitOn) -> Detections:
        """Return the table of detections, each fold's calibrated by what was fitted on the others."""
        job = self.job
        found = job.found
        covariances = np.zeros((len(found), 2, 2, 2)) if found.covariances is None else found.covariances.copy()
        probs, scores = found.label_probs.copy(), found.scores.copy()
        for fold in range(self.folds):
            corners, labels = fit_on(self.fold_of_image != fold)
            rows = np.flatnonzero((job.image_rows >= 0) & (self.fold_of_image[job.image_rows] == fold))
            part = Calibration(corners=corners.mapping, labels=labels.mapping).apply(found.select(rows))
            if part.covariances is not None:
                covariances[rows] = part.covariances
            probs[rows], scores[rows] = part.label_probs, part.scores
            if self.progress is not None:
                self.progress(fold + 1, self.folds)
        return found.replace(covariances=covariances, label_probs=probs, scores=scores)

    def _ignorance(self, found: Detections, images: int) -> Floats:
        rows = np.flatnonzero(self.job.targets >= 0)
        probs = with_background(found.label_probs[rows])
        lost = ignorances(probs, self.job.targets[rows], background_columns(found.classes))
        at = self.job.image_rows[rows]
        return np.stack([np.bincount(at, lost, images), np.bincount(at, minlength=images)], axis=1)
