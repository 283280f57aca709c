"""Constant-variance baseline: boxes without covariance, with one standard deviation, and with the detector's own.

PDQ rewards predicted corner covariances. This experiment measures how much of the reward needs informative standard
deviations. The baseline is one standard deviation for all corners of all boxes, in pixels or as a fraction of the box
side. It is fitted on one half of the images and used on the other.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from probox.analysis.baseline import SHARES, make_pixel_covariances, minimize_by_golden_section, split_in_halves
from probox.errors import InputError
from probox.fusion.gaussian import keep_inside
from probox.tables.detections import Detections
from probox.tables.geometry import constant_covariances
from probox.tables.groundtruth import GroundTruth
from probox_experiments.claims import Claim, Floats, Mean, ResultTable, column_of, not_measured, presets_in
from probox_experiments.experiment import Experiment, TooFewImagesError
from probox_experiments.figures import BLUE, GREEN, GREY, ORANGE, VERMILION, Axes, Figure, new_figure
from probox_experiments.running import Run
from probox_experiments.synthetic import (
    classes_within_images,
    edge_covariances,
    fingerprint,
    first_images,
    order_corners,
    synthetic_truth,
)

# --- Simulated detectors with calibrated corner errors ---


ALIKE, SIZE, TWO, HEAVY = "all alike", "by size", "two kinds", "heavy tails"

SIGMA = 4.0
SIDE_SHARE, LEAST = 0.06, 0.5
SHARP, BLURRED = 2.0, 8.0
SCALE, FREEDOM = 3.0, 3.0


KINDS = (ALIKE, SIZE, TWO, HEAVY)
"""Standard deviations of 4 pixels; of 0.06 of the side; of 2 or 8 pixels at random; errors of Student's t with 3
degrees of freedom and scale 3 pixels, with a standard deviation of 5.2 pixels."""


def draw_errors(kind: str, sides: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return errors and standard deviations of x1, y1, x2, y2, (N, 4) each, of boxes with these sides, (N, 2)."""
    shape = (len(sides), 4)
    if kind == HEAVY:  # the reported standard deviation is correct, but errors are not Gaussian
        return SCALE * rng.standard_t(FREEDOM, shape), np.full(shape, SCALE * np.sqrt(FREEDOM / (FREEDOM - 2.0)))
    if kind == SIZE:
        sigmas = np.maximum(SIDE_SHARE * np.tile(sides, 2), LEAST)
    elif kind == TWO:
        sigmas = np.tile(np.where(rng.random(len(sides)) < 0.5, SHARP, BLURRED)[:, None], 4)
    else:
        sigmas = np.full(shape, SIGMA)
    return sigmas * rng.standard_normal(shape), sigmas


def drawn_with(kind: str, truth: GroundTruth, rng: np.random.Generator) -> Detections:
    """Return one detection of every object with class probability 1 and calibrated corner errors of one kind."""
    rows = np.flatnonzero(~truth.crowd)
    corners = truth.masks.boxes[rows].astype(np.float64)
    errors, sigmas = draw_errors(kind, corners[:, 2:] - corners[:, :2] + 1.0, rng)
    return Detections(
        classes=truth.classes,
        image_ids=truth.image_ids[truth.image_rows[rows]],
        boxes=order_corners(corners + errors),
        label_probs=np.eye(len(truth.classes), dtype=np.float32)[truth.labels[rows]],
        covariances=edge_covariances(sigmas),
    )


# --- Claims on the constant, with standard errors ---

NONE, PIXELS, FRACTION, OWN, SHUFFLED = "none", "pixels", "fraction", "own", "shuffled"
MIN_ERRORS = 2.0
"""A difference counts if it exceeds this number of standard errors."""
MOST = 0.5
"""Fraction of the gain that the constant must reach."""

Contrast = Callable[[Mapping[str, float]], float]


def estimate_contrast(table: ResultTable, detector: str, preset: str, contrast: Contrast, *needed: str) -> Mean | None:
    """Return a contrast of PDQ values with its jackknife standard error; None if data are missing.

    PDQ of all repeats, or of all parts of the images, is the sum of their pPDQ over the sum of their TP, FP and FN.
    Each repeat is left out in turn. For repeats of equal size this gives the mean and its standard error with ddof 1.
    The standard error of a single repeat is NaN.

    Parameters
    ----------
    table : ResultTable
        Result of `constant_sigma`.
    detector, preset : str
        Detector and preset of PDQ.
    contrast : callable
        Maps PDQ by version of the standard deviations to a number.
    needed : str
        The versions that it needs.
    """
    sums: dict[str, tuple[Floats, Floats]] = {}
    of = table.where(detector=detector)
    column = column_of("PDQ", preset)
    for sigmas in needed:
        rows = of.where(sigmas=sigmas)
        counted = sum(rows[column_of(key, preset)] for key in ("TP", "FP", "FN")) if len(rows) else np.zeros(0)
        counted = np.asarray(counted, np.float64)
        if not counted.sum() > 0:
            return None
        sums[sigmas] = np.where(counted > 0, np.nan_to_num(rows[column]), 0.0) * counted, counted
    count = len(next(iter(sums.values()))[0])
    if any(len(quality) != count for quality, _ in sums.values()):
        return None

    def without(row: int | None) -> float:
        kept = np.arange(count) != (-1 if row is None else row)
        return contrast({name: float(q[kept].sum() / n[kept].sum()) for name, (q, n) in sums.items()})

    if count < 2:
        return Mean(without(None), math.nan)
    left_out = np.array([without(row) for row in range(count)])
    spread = np.square(left_out - left_out.mean()).sum()
    return Mean(without(None), math.sqrt((count - 1) / count * spread))


def _fraction_of_gain(pdq: Mapping[str, float]) -> float:
    gain = pdq[OWN] - pdq[NONE]
    return (pdq[PIXELS] - pdq[NONE]) / gain if gain else math.nan


class Statement(NamedTuple):
    """A claim on PDQ with two versions of the standard deviations, for some simulated detectors."""

    words: str
    one: str
    other: str
    above: bool = True
    """Whether the difference is significantly above 0, or not."""
    kinds: Collection[str] = KINDS
    why: str = ""


OF_KINDS = (
    Statement("One constant std has a higher PDQ than no covariance, for all kinds of errors", PIXELS, NONE),
    Statement("If all errors have the same std, own std do not exceed the constant", OWN, PIXELS, False, (ALIKE,)),
    Statement(
        "If errors grow with size, or have two std, own std exceed the constant",
        OWN,
        PIXELS,
        True,
        (SIZE, TWO),
    ),
    Statement(
        "If errors grow with size, own std do not exceed one fraction of the side",
        OWN,
        FRACTION,
        False,
        (SIZE,),
        "The simulated detector uses the true side of an object, the fraction the predicted side.",
    ),
    Statement(
        "If errors have heavy tails, the constant with the highest PDQ exceeds the true std",
        PIXELS,
        OWN,
        kinds=(HEAVY,),
    ),
    Statement("Shuffled own std do not exceed the constant", SHUFFLED, PIXELS, False),
)
ABOVE_NONE = Statement("one constant std has a higher PDQ than no covariance", PIXELS, NONE)
OF_OWN = (
    Statement("own std exceed the constant", OWN, PIXELS),
    Statement("own std exceed one fraction of the side", OWN, FRACTION),
    Statement("shuffled own std do not exceed the constant", SHUFFLED, PIXELS, False),
)


def claims_of_constant_sigma(table: ResultTable) -> list[Claim]:
    """Return the claims on the constant: predictions for simulated errors, requirements for given detectors."""
    names = list(dict.fromkeys(table["detector"].tolist())) if len(table) else []
    kinds = [name for name in names if name in KINDS]
    claims: list[Claim] = []
    if kinds or not names:
        claims = [_compare(table, [kind for kind in kinds if kind in one.kinds], one) for one in OF_KINDS]
        claims.append(_most_of_the_gain("One constant", ", for all kinds of errors", table, kinds))
    for name in names:
        if name in KINDS:
            continue
        claims.append(_compare(table, [name], ABOVE_NONE, f"{name}: "))
        if len(table.where(detector=name, sigmas=OWN)):
            claims += [_compare(table, [name], one, f"{name}: ") for one in OF_OWN]
            claims.append(_most_of_the_gain(f"{name}: one constant", "", table, [name]))
    return claims


def _estimates(
    table: ResultTable, names: Sequence[str], contrast: Contrast, *needed: str
) -> dict[tuple[str, str], Mean]:
    found = {
        (name, preset): estimate_contrast(table, name, preset, contrast, *needed)
        for name in names
        for preset in presets_in(table)
    }
    return {key: one for key, one in found.items() if one is not None and not math.isnan(one.error)}


def _compare(table: ResultTable, names: Sequence[str], statement: Statement, prefix: str = "") -> Claim:
    """Return the claim that a difference of PDQ is significantly above 0, or, without `above`, that it is not."""
    what = f"{statement.one} - {statement.other}"
    required = f"{what} {'above' if statement.above else 'at most'} {MIN_ERRORS:g} standard errors"
    contrast = lambda pdq: pdq[statement.one] - pdq[statement.other]  # noqa: E731
    found = _estimates(table, names, contrast, statement.one, statement.other)
    if not found:
        return not_measured(prefix + statement.words, required)
    return Claim(
        prefix + statement.words,
        all(estimate.is_above() == statement.above for estimate in found.values()),
        f"{what}: " + ", ".join(f"{name} `{preset}` {estimate:+.4f}" for (name, preset), estimate in found.items()),
        required,
        {f"{name}, {preset}": estimate.value for (name, preset), estimate in found.items()},
        statement.why,
    )


def _most_of_the_gain(subject: str, condition: str, table: ResultTable, names: Sequence[str]) -> Claim:
    claim = f"{subject} reaches at least half of the gain of own std over no covariance{condition}"
    required = f"fraction of the gain minus {MIN_ERRORS:g} standard errors at least {MOST:g}"
    found = _estimates(table, names, _fraction_of_gain, NONE, PIXELS, OWN)
    if not found:
        return not_measured(claim, required)
    return Claim(
        claim,
        all(estimate.value - MIN_ERRORS * estimate.error >= MOST for estimate in found.values()),
        "(pixels - none) / (own - none): "
        + ", ".join(f"{name} `{preset}` {e:.3f}" for (name, preset), e in found.items()),
        required,
        {f"{name}, {preset}": estimate.value for (name, preset), estimate in found.items()},
    )


# --- Figure: PDQ of the same boxes with different standard deviations ---

LOOKS: Mapping[str, tuple[str, str, str]] = {
    NONE: ("no covariance", GREY, "s"),
    SHUFFLED: ("own std, shuffled", VERMILION, "x"),
    PIXELS: ("constant std in pixels", ORANGE, "D"),
    FRACTION: ("constant fraction of the side", GREEN, "^"),
    OWN: ("own std", BLUE, "o"),
}
"""Label, colour and marker of each version."""


def draw_constant_sigma(table: ResultTable) -> Figure:
    """Draw PDQ of each detector and version with two standard errors, one panel per preset."""
    names = list(dict.fromkeys(table["detector"].tolist()))
    presets = presets_in(table)
    figure = new_figure(max(4.4 * len(presets), 5.0), 1.5 + 0.62 * len(names))
    panels = figure.subplots(1, max(len(presets), 1), sharey=True, squeeze=False)[0]
    for axes, preset in zip(panels, presets or {"reference": ""}, strict=True):
        _panel(axes, table, names, preset)
    drawn: dict[str, Any] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        drawn |= dict(zip(labels, handles, strict=True))
    figure.legend(
        drawn.values(), drawn.keys(), loc="outside lower center", ncols=5, columnspacing=1.2, handlelength=1.2
    )
    return figure


def _panel(axes: Axes, table: ResultTable, names: list[str], preset: str) -> None:
    for place, (sigmas, (label, colour, marker)) in enumerate(LOOKS.items()):
        estimates = [estimate_contrast(table, name, preset, itemgetter(sigmas), sigmas) for name in names]
        found = {row + 0.13 * (place - 2): one for row, one in enumerate(estimates) if one is not None}
        if found:
            means = [one.value for one in found.values()]
            errors = np.nan_to_num([2.0 * one.error for one in found.values()])
            looks: dict[str, Any] = {"color": colour, "ms": 5.0, "mew": 1.4, "lw": 1.2, "label": label}
            axes.errorbar(means, list(found), xerr=errors, fmt=marker, **looks)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(left=0.0)
    axes.set_xlabel("PDQ")
    axes.set_title(f"PDQ by std, preset {preset}")


# --- The experiment ---

PIXEL_RANGE = (0.5, 64.0)
"""Search range of the constant in pixels."""

Baseline = Callable[[Floats, Any], Floats]

BASELINES: Mapping[str, tuple[Baseline, tuple[float, float]]] = {
    PIXELS: (make_pixel_covariances, PIXEL_RANGE),
    FRACTION: (constant_covariances, SHARES),
}
"""Covariances of boxes for each baseline, and the search range of its constant."""


@dataclasses.dataclass(frozen=True, eq=False)
class MeasuredImages:
    """Detections, their images, and the images that are measured."""

    truth: GroundTruth
    found: Detections
    own: Floats | None
    measured: npt.NDArray[np.int64]
    """Rows of the images that are measured."""


def constant_sigma(
    truth: GroundTruth | None = None,
    *,
    detectors: Mapping[str, Detections] | None = None,
    kinds: Sequence[str] | None = None,
    images: int = 50,
    repeats: int = 4,
    parts: int = 10,
    steps: int = 7,
    seed: int = 0,
    run: Run | None = None,
) -> ResultTable:
    """Compare PDQ of the same boxes with no, constant, own and shuffled standard deviations.

    Parameters
    ----------
    truth : GroundTruth, optional
        Default: `synthetic_truth`.
    detectors : mapping of str to Detections, optional
        Detections in the images of `truth`, with or without covariances. Default: simulated detectors.
    kinds : sequence of str, optional
        Simulated detectors: some of the names of `KINDS`. Default: all.
    images : int
        Simulated detectors: number of images.
    repeats : int
        Simulated detectors: number of random draws of the corners.
    parts : int
        Given detections: number of parts of the images for the jackknife, an even number.
    steps : int
        Steps of the search for the best constant. With 7 it ends within 15% of the best, where PDQ hardly changes.
    seed : int
        Random seed of the corners and of the shuffled standard deviations.
    run : Run, optional
        Threads, progress, checkpoint.

    Returns
    -------
    ResultTable
        `detector`, `sigmas` (none, pixels, fraction, own, shuffled), `repeat` (for given detections: the part of the
        images); `PDQ`, `TP`, `FP`, `FN` and `chosen`, the constant, under every preset.
    """
    run = run or Run()
    objects = synthetic_truth() if truth is None else truth
    if detectors is None:
        objects = classes_within_images(first_images(objects, images))
        count, names = repeats, _known(kinds)
        scenes = partial(_simulate, objects, seed)
        given = {}
    else:
        count, names = _parts(objects, parts), list(detectors)
        scenes = partial(_given, objects, _check_detectors(detectors, objects), count)
        given = {name: fingerprint(found) for name, found in detectors.items()}
    if len(objects.image_ids) < 4:
        raise TooFewImagesError(
            f"expected at least 4 images, half of them for the fit, but got {len(objects.image_ids)}"
        )
    known: dict[tuple[Any, ...], Sequence[float]] = {}

    def point(detector: str, sigmas: str, repeat: int) -> dict[str, float]:
        scene = scenes(detector, repeat)
        numbers: dict[str, float] = {}
        for preset in run.presets:
            alone = dataclasses.replace(run, presets=[preset])
            chosen: Sequence[float] = (math.nan, math.nan)
            if sigmas in BASELINES:
                # Parts of given images share the constants of the two halves.
                key = (detector, sigmas, preset, repeat if detectors is None else -1)
                if key not in known:
                    known[key] = [_search_constant(alone, scene, sigmas, half, steps) for half in (0, 1)]
                chosen = known[key]
            rng = np.random.default_rng([seed, repeat if detectors is None else 0, 2])
            found = _version(scene, sigmas, chosen, rng)
            part = objects.select_images(objects.image_ids[scene.measured])
            inside = np.isin(found.image_ids, part.image_ids)
            numbers |= alone.measure(part, found.select(inside), also=("TP", "FP", "FN"), measures=())
            numbers[column_of("chosen", preset)] = math.sqrt(chosen[0] * chosen[1])
        return numbers

    points = [
        {"detector": name, "sigmas": sigmas, "repeat": repeat}
        for name in names
        for repeat in range(count)
        for sigmas in (NONE, PIXELS, FRACTION, OWN, SHUFFLED)
        if sigmas not in (OWN, SHUFFLED) or detectors is None or _has_sigmas(detectors[name])
    ]
    circumstances: dict[str, Any] = {"seed": seed, "detectors": given, "parts": count, "steps": steps}
    return run.table("constant-sigma", points, point, truth=fingerprint(objects), **circumstances)


def _simulate(truth: GroundTruth, seed: int, detector: str, repeat: int) -> MeasuredImages:
    found = drawn_with(detector, truth, np.random.default_rng([seed, repeat]))
    return MeasuredImages(truth, found, found.covariances, np.arange(len(truth.image_ids)))


def _given(
    truth: GroundTruth, detectors: Mapping[str, Detections], parts: int, detector: str, repeat: int
) -> MeasuredImages:
    found = detectors[detector]
    own = found.covariances if _has_sigmas(found) else None
    return MeasuredImages(truth, found, own, np.arange(repeat, len(truth.image_ids), parts))


def _has_sigmas(found: Detections) -> bool:
    return found.covariances is not None and bool(found.covariances.any())


def _known(kinds: Sequence[str] | None) -> list[str]:
    names = list(KINDS) if kinds is None else list(kinds)
    for name in names:
        if name not in KINDS:
            raise InputError(f"unknown kind of errors {name!r}", remedy=f"choose from: {', '.join(KINDS)}")
    return names


def _parts(truth: GroundTruth, parts: int) -> int:
    """Return the number of parts of the images: even, so that each part lies in one half."""
    if parts < 2 or parts % 2:
        raise InputError(f"expected parts to be an even number, at least 2, but got {parts}")
    return max(min(parts, len(truth.image_ids) // 2 * 2), 2)


def _check_detectors(detectors: Mapping[str, Detections], truth: GroundTruth) -> dict[str, Detections]:
    """Return the detections in the images of the ground truth; raise if there are none, or for heatmaps."""
    kept = {}
    for name, found in detectors.items():
        inside = np.isin(found.image_ids, truth.image_ids)
        if not inside.any():
            raise InputError(
                f"none of the {len(found):,} detections of {name} is in an image of the ground truth",
                file=found.source or None,
                remedy="use the ground truth of these detections",
            )
        if found.has_heatmap.any():
            raise InputError(f"expected boxes, but {name} has heatmaps", file=found.source or None)
        kept[name] = found.select(inside)
    return kept


def _version(scene: MeasuredImages, sigmas: str, chosen: Sequence[float], rng: np.random.Generator) -> Detections:
    """Return the detections with one version of the standard deviations."""
    found = scene.found
    if sigmas == NONE:
        return found.replace(covariances=None)
    if sigmas in BASELINES:
        half = split_in_halves(scene.truth.dataset.rows_of(found.image_ids))
        return _inside(scene.truth, found, BASELINES[sigmas][0](found.boxes, np.asarray(chosen)[half]))
    assert scene.own is not None
    return _inside(scene.truth, found, scene.own if sigmas == OWN else scene.own[rng.permutation(len(found))])


def _inside(truth: GroundTruth, found: Detections, covariances: Floats) -> Detections:
    """Return detections with these covariances, with edges pinned at the image border."""
    spread = covariances.any(axis=(1, 2, 3))
    sizes = truth.dataset.shapes[truth.dataset.rows_of(found.image_ids)].astype(np.float64)
    boxes, kept = found.boxes.copy(), covariances.copy()
    boxes[spread], kept[spread] = keep_inside(boxes[spread], kept[spread], sizes[spread])
    return found.replace(boxes=boxes, covariances=kept, extents=None)


def _search_constant(run: Run, scene: MeasuredImages, baseline: str, half: int, steps: int) -> float:
    """Return the constant for one half of the images: the one with the highest PDQ on the other half."""
    (preset,) = run.presets
    make, (least, most) = BASELINES[baseline]
    others = scene.truth.image_ids[split_in_halves(np.arange(len(scene.truth.image_ids))) != half]
    truth, found = scene.truth.select_images(others), scene.found.select(np.isin(scene.found.image_ids, others))

    def lost(logarithm: float) -> float:
        changed = _inside(truth, found, make(found.boxes, math.exp(logarithm)))
        return -float(np.nan_to_num(run.measure(truth, changed, measures=())[column_of("PDQ", preset)]))

    return math.exp(minimize_by_golden_section(lost, math.log(least), math.log(most), steps=steps))


CONSTANT_SIGMA = Experiment(
    name="constant-sigma",
    section="none",
    varied="standard deviations of the same boxes: none, a constant fitted on other images, own, shuffled",
    claim="one constant has most of the gain in PDQ; own standard deviations exceed it if errors differ",
    function=constant_sigma,
    judge=claims_of_constant_sigma,
    draw=draw_constant_sigma,
)
