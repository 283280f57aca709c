"""Fit of a calibration, its side effects, and its gain on held-out images."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from probox.analysis.resampling import assign_folds, note_few_images
from probox.calibration.calibration import TARGETS, Calibration
from probox.calibration.corner_fit import CORNER_METHODS, FittingPairs
from probox.calibration.cross_validation import Change, Fit, FitTask, Gain, Numbers, columns, compare
from probox.calibration.label_maps import LABEL_METHODS
from probox.convention import Convention
from probox.errors import InputError
from probox.evaluation.inputs import Images, read_inputs
from probox.files.reading import Paths
from probox.fusion.gaussian import Border, check_border
from probox.measures.scoring.scores import negative_log_likelihoods
from probox.notes import Note
from probox.options import Settings, resolve_settings, takes_settings
from probox.support.types import Bools
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

if TYPE_CHECKING:
    from typing_extensions import Unpack


MUCH_NLL = 1.0
"""Increase of NLL, in nats, above which a note explains it."""


def notes_on_nll(target: str, before: FittingPairs, after: FittingPairs, border: str = "keep") -> tuple[Note, ...]:
    """Return a note on the cause if NLL increases by more than `MUCH_NLL`, from the same pairs before and after."""
    both = before.usable & after.usable
    if not both.any():
        return ()
    old, new = (
        negative_log_likelihoods(pairs.residuals[both], pairs.covariances[both]).mean() for pairs in (before, after)
    )
    worse = float(new - old)
    if not worse > MUCH_NLL:
        return ()
    if target == "nll":
        return (Note("nll-worse-held-out", by=worse),)
    code = "nll-worse-pinned" if border == "pin" else "nll-worse"
    return (Note(code, by=worse, target="PDQ" if target == "pdq" else target),)


def notes_on_threshold(before: Detections, after: Detections, threshold: float | None) -> tuple[Note, ...]:
    """Return a note on detections that fall below the label threshold because of new labels."""
    if threshold is None:
        return ()
    old, new = (found.label_probs.max(axis=1, initial=0.0) > np.float32(threshold) for found in (before, after))
    lost, there = int((old & ~new).sum()), int(old.sum())
    return (Note("fall-below-threshold", lost, total=there, threshold=threshold),) if lost else ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class CalibrationFit:
    """Result of `fit`.

    Parameters
    ----------
    calibration : Calibration
        Fitted on all images, to be applied to others.
    gain : Gain or None
        Held-out numbers before and after calibration; None with a single image.
    notes : tuple of Note
        Excluded data and too small samples.
    held_out : Detections or None
        The detections, each calibrated by a fit without its image; `gain` refers to them. None if `gain` is None.

    Examples
    --------
    >>> from probox.calibration import fit
    >>> from probox.demo import make_demo
    >>> demo = make_demo()
    >>> fitted = fit(demo.truth, demo.detectors["probabilistic"], target="nll", resamples=100)
    >>> change = fitted.gain.changes["NLL"]
    >>> change.after < change.before
    True
    """

    calibration: Calibration
    gain: Gain | None
    notes: tuple[Note, ...] = ()
    held_out: Detections | None = dataclasses.field(default=None, repr=False, compare=False)


@takes_settings
def fit(
    truth: GroundTruth | Paths,
    detections: Detections | Paths,
    *,
    method: str = "scale",
    label_method: str = "none",
    target: str | None = None,
    folds: int = 5,
    seed: int = 0,
    alpha: float = 0.1,
    level: float = 0.9,
    border: Border = "keep",
    convention: str | Convention | None = None,
    resamples: int = 1000,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    image_ids: Images | None = None,
    repair: bool = False,
    **settings: Unpack[Settings],
) -> CalibrationFit:
    """Fit a calibration of corners and labels, cross-validated by image.

    Parameters
    ----------
    truth : GroundTruth or path
        Ground truth: a table, or its file.
    detections : Detections or path
        Detections to fit to, or their file.
    method : {"scale", "edge-scale", "class-scale", "isotonic", "learned", "constant", "conformal"}
        Method for the std of corners: one factor for all, per edge, or per class; per edge, a curve from std to error;
        a regression on score, size and class; one fraction of the box sides for all (constant-variance baseline); or a
        conformal factor with guaranteed coverage. ``docs/calibration.md`` describes all of them.
    label_method : {"none", "temperature", "isotonic"}
        Method for label probabilities: none, one temperature, or curves from scores to precisions.
    target : {"pdq", "nll", "coverage"}, optional
        Objective of the fit of corners. Default: ``"pdq"``, and ``"coverage"`` for ``"conformal"``.
    folds : int
        Number of folds of images. The numbers of each fold come from a calibration fitted on the others.
    seed : int
        Random seed for folds and bootstrap.
    alpha : float
        Conformal: the fraction of objects that the central box may miss. Box coverage is reported at 1 - alpha.
    level : float
        For target ``"coverage"``: probability of the central interval of an edge.
    border : {"keep", "pin"}
        ``keep`` the calibrated std of edges at the image border, or for target ``"pdq"`` ``pin`` it
        (`probox.fusion.keep_inside`), which is PDQ-optimal and overconfident.
    convention : str or Convention, optional
        Convention of PDQ, as for `probox.evaluate`.
    resamples : int
        Number of bootstrap resamples of images for the 95% intervals.
    threads, image_ids, repair
        As for `probox.evaluate`.
    progress : callable, optional
        Called with the number of finished fits and of all fits.
    **settings
        ``preset``, ``label_threshold`` and other settings of PDQ, as for `probox.evaluate`. ``fixed_variance`` is
        rejected, because it replaces all covariances.

    Returns
    -------
    CalibrationFit
        The calibration, its held-out gain, and notes.

    Examples
    --------
    >>> from probox.calibration import fit
    >>> from probox.demo import make_demo
    >>> demo = make_demo()
    >>> fitted = fit(demo.truth, demo.detectors["probabilistic"], method="scale", target="nll")
    >>> print(fitted.calibration)
    std times 1.11
    """
    chosen = resolve_settings(fit, convention, settings)
    if chosen.fixed_variance is not None:
        raise InputError(
            f"a fixed variance of {chosen.fixed_variance:g} leaves no std to fit",
            remedy="omit fixed_variance",
        )
    target = _check_choices(method, label_method, target)
    check_border(border)
    if border == "pin" and target != "pdq":
        raise InputError(
            f"{{option:border=pin}} is only for target pdq, but the target is {target}",
            remedy="omit {option:border}, or use {option:target=pdq}",
        )
    _check_numbers(folds=folds, seed=seed, alpha=alpha, level=level, resamples=resamples)
    truth, found = read_inputs(truth, detections, "fit", image_ids=image_ids, repair=repair)
    task = FitTask(
        truth, found, chosen, method=method, labels=label_method, target=target, alpha=alpha, level=level,
        threads=threads, border=border,
    )  # fmt: skip
    images = len(truth.dataset)
    parts = min(folds, images)
    fold_of_image = assign_folds(images, max(parts, 1), seed)
    methods = [method] if method == "constant" else [method, "constant"]
    done, total = itertools.count(1), 1 + (parts * len(methods) if parts > 1 else 0)

    def fit_to(method: str, chosen: Bools) -> Fit:
        fitted = task.fit_on(method, chosen)
        if progress is not None:
            progress(next(done), total)
        return fitted

    (corners, corner_notes), (labels, label_notes) = fit_to(method, np.ones(images, bool))
    calibration = Calibration(
        corners=corners,
        labels=labels,
        target=target,
        border=border,
        classes=tuple(zip(truth.classes, truth.dataset.category_ids.tolist(), strict=True)),
        origin=task.origin(),
    )
    notes = [*task.notes(), *corner_notes, *label_notes]
    if parts < 2:
        notes.append(Note("no-gain"))
        return CalibrationFit(calibration=calibration, gain=None, notes=tuple(notes))
    if parts < folds:
        notes.append(Note("fewer-folds", parts, wanted=folds))
    reported = columns(alpha)
    try:
        calibrated, *control = [
            task.calibrate([fit_to(name, fold_of_image != fold) for fold in range(parts)], fold_of_image)
            for name in methods
        ]
        after, *constant = [task.measure(held_out) for held_out in (calibrated, *control)]
    except InputError as error:  # a fold may have too few pairs even if the whole has enough
        notes.append(Note("no-gain-of-folds", problem=error.problem))
        return CalibrationFit(calibration=calibration, gain=None, notes=tuple(notes))
    before = task.measure(found)

    def compare_with(first: Numbers) -> dict[str, Change]:
        return compare(*first.beside(after), reported, resamples=resamples, seed=seed)

    notes += note_few_images(images)
    notes += notes_on_nll(target, before.pairs, after.pairs, border)
    if label_method != "none":
        here = task.image_rows >= 0
        notes += notes_on_threshold(found.select(here), calibrated.select(here), chosen.fixed_threshold)
    gain = Gain(
        changes=compare_with(before),
        over_constant=compare_with(*constant) if constant else {},
        columns=reported,
        folds=parts,
        images=images,
        pairs=len(task.pairs),
    )
    return CalibrationFit(calibration=calibration, gain=gain, notes=tuple(notes), held_out=calibrated)


def _check_choices(method: str, label_method: str, target: str | None) -> str:
    if target is None:
        target = "coverage" if method == "conformal" else "pdq"
    given = {
        "method": (method, CORNER_METHODS),
        "label_method": (label_method, LABEL_METHODS),
        "target": (target, TARGETS),
    }
    for name, (value, known) in given.items():
        if not isinstance(value, str) or value not in known:
            raise InputError(f"expected {name} to be one of {', '.join(known)}, but got {value!r:.40}")
    if method == "conformal" and target != "coverage":
        raise InputError(
            f"expected target coverage for method conformal, but got {target}",
            remedy="omit {option:target}, or use another {option:method}",
        )
    return target


def _check_numbers(**given: float) -> None:
    for name, least in (("folds", 2), ("seed", 0), ("resamples", 1)):
        value = given[name]
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= 10**6:
            raise InputError(f"expected {name} to be a whole number from {least} to 1,000,000, but got {value!r:.40}")
    for name in ("alpha", "level"):
        value = given[name]
        if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 < value < 1:
            raise InputError(f"expected {name} to be a number between 0 and 1, but got {value!r:.40}")
