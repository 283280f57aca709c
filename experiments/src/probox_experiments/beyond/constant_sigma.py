"""What is one constant sigma worth? Plain boxes, one sigma for all corners, and a detector's own.

PDQ rewards a detector for saying how far its corners may be off. How much of that reward is for knowing *which* corners
are off, and how much would any sigma of the right size have had? The control is one sigma for all corners of all boxes:
in pixels, or as a share of the box's side. It is found on one half of the images and used on the other.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.analysis.control import SHARES, halves
from probox.analysis.rescoring import golden_section, pixel_covariances
from probox.errors import InputError
from probox.fusion.gaussian import keep_inside
from probox.tables.covariances import constant_covariances
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox_experiments.beyond.constant_claims import CONSTANT, OWN, PLAIN, SHARE, SHUFFLED, claims_of_constant_sigma
from probox_experiments.beyond.constant_figure import draw_constant_sigma
from probox_experiments.beyond.error_kinds import KINDS, drawn_with
from probox_experiments.experiment import Experiment, TooFewImagesError
from probox_experiments.running import Run
from probox_experiments.scenes import classes_within_images, fingerprint, first_images, synthetic_truth
from probox_experiments.table import ResultTable, column_of

__all__ = ["CONSTANT_SIGMA", "constant_sigma"]

PIXELS = (0.5, 64.0)
"""Between these the best sigma in pixels is sought."""

Floats = npt.NDArray[np.float64]
Control = Callable[[Floats, Any], Floats]

CONTROLS: Mapping[str, tuple[Control, tuple[float, float]]] = {
    CONSTANT: (pixel_covariances, PIXELS),
    SHARE: (constant_covariances, SHARES),
}
"""How each control makes covariances of boxes, and between which numbers the best is sought."""


@dataclasses.dataclass(frozen=True, eq=False)
class Scene:
    """Detections and the images that they are of, those that are measured and those that a control is found on."""

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
    """Give the same boxes no sigma, one for all, their own, and those of others.

    Parameters
    ----------
    truth : GroundTruth, optional
        Default: `synthetic_truth`.
    detectors : mapping of str to Detections, optional
        Detections of the truth's images, with covariances or without. Default: simulated detectors whose corners err in
        known ways.
    kinds : sequence of str, optional
        Simulated detectors: some of the names of `KINDS`. Default: all.
    images : int
        Simulated detectors: the first so many images are used.
    repeats : int
        Simulated detectors: how often corners are drawn.
    parts : int
        Given detections: images are dealt into so many parts, an even number, whose numbers tell how sure the whole is.
    steps : int
        Of the search for the best constant. With 7 it ends within 15 % of the best, around which PDQ hardly changes.
    seed : int
        Of the draws, and of who gets whose sigmas.
    run : Run, optional
        Threads, progress, checkpoint.

    Returns
    -------
    ResultTable
        `detector`, `sigmas` (plain, constant, share, own, shuffled), `repeat` (of given detections: the part of the
        images); `PDQ`, `TP`, `FP`, `FN` and `chosen`, the constant, under every preset.
    """
    run = run or Run()
    objects = synthetic_truth() if truth is None else truth
    if detectors is None:
        objects = classes_within_images(first_images(objects, images))
        count, names = repeats, _known(kinds)
        scenes = partial(_simulated, objects, seed)
        given = {}
    else:
        count, names = _parts(objects, parts), list(detectors)
        scenes = partial(_given, objects, _checked(detectors, objects), count)
        given = {name: fingerprint(found) for name, found in detectors.items()}
    if len(objects.image_ids) < 4:
        raise TooFewImagesError(
            f"expected at least 4 images, half of them to choose on, but got {len(objects.image_ids)}"
        )
    known: dict[tuple[Any, ...], tuple[float, float]] = {}

    def point(detector: str, sigmas: str, repeat: int) -> dict[str, float]:
        scene = scenes(detector, repeat)
        numbers: dict[str, float] = {}
        for preset in run.presets:
            alone = dataclasses.replace(run, presets=[preset])
            chosen = (math.nan, math.nan)
            if sigmas in CONTROLS:
                # Parts of given images share what was found on each half.
                key = (detector, sigmas, preset, repeat if detectors is None else -1)
                if key not in known:
                    known[key] = _searched(alone, scene, sigmas, 0, steps), _searched(alone, scene, sigmas, 1, steps)
                chosen = known[key]
            found = _version(
                scene, sigmas, chosen, np.random.default_rng([seed, repeat if detectors is None else 0, 2])
            )
            part = objects.select_images(objects.image_ids[scene.measured])
            inside = np.isin(found.image_ids, part.image_ids)
            numbers |= alone.measure(part, found.select(inside), also=("TP", "FP", "FN"), measures=())
            numbers[column_of("chosen", preset)] = math.sqrt(chosen[0] * chosen[1])
        return numbers

    points = [
        {"detector": name, "sigmas": sigmas, "repeat": repeat}
        for name in names
        for repeat in range(count)
        for sigmas in (PLAIN, CONSTANT, SHARE, OWN, SHUFFLED)
        if sigmas not in (OWN, SHUFFLED) or detectors is None or _has_sigmas(detectors[name])
    ]
    return run.table(
        "constant-sigma",
        points,
        point,
        truth=fingerprint(objects),
        seed=seed,
        detectors=given,
        parts=count,
        steps=steps,
    )


def _simulated(truth: GroundTruth, seed: int, detector: str, repeat: int) -> Scene:
    found = drawn_with(KINDS[detector], truth, np.random.default_rng([seed, repeat]))
    return Scene(truth, found, found.covariances, np.arange(len(truth.image_ids)))


def _given(truth: GroundTruth, detectors: Mapping[str, Detections], parts: int, detector: str, repeat: int) -> Scene:
    found = detectors[detector]
    own = found.covariances if _has_sigmas(found) else None
    return Scene(truth, found, own, np.arange(repeat, len(truth.image_ids), parts))


def _has_sigmas(found: Detections) -> bool:
    return found.covariances is not None and bool(found.covariances.any())


def _known(kinds: Sequence[str] | None) -> list[str]:
    names = list(KINDS) if kinds is None else list(kinds)
    for name in names:
        if name not in KINDS:
            raise InputError(f"unknown kind of errors {name!r}", remedy=f"choose from: {', '.join(KINDS)}")
    return names


def _parts(truth: GroundTruth, parts: int) -> int:
    """Return how many parts images are dealt into: an even number, so that each part is in one half."""
    if parts < 2 or parts % 2:
        raise InputError(f"expected parts to be an even number, at least 2, but got {parts}")
    return max(min(parts, len(truth.image_ids) // 2 * 2), 2)


def _checked(detectors: Mapping[str, Detections], truth: GroundTruth) -> dict[str, Detections]:
    """Return the detections in the truth's images; raise if there are none, or heatmaps, which have no sigma."""
    kept = {}
    for name, found in detectors.items():
        inside = np.isin(found.image_ids, truth.image_ids)
        if not inside.any():
            raise InputError(
                f"none of the {len(found):,} detections of {name} is in one of the truth's images",
                file=found.source or None,
                remedy="give the truth that they are of",
            )
        if found.has_heatmap.any():
            raise InputError(f"{name} has heatmaps, which no sigma changes", file=found.source or None)
        kept[name] = found.select(inside)
    return kept


def _version(scene: Scene, sigmas: str, chosen: tuple[float, float], rng: np.random.Generator) -> Detections:
    """Return the detections with the sigmas that are asked for."""
    found = scene.found
    if sigmas == PLAIN:
        return found.replace(covariances=None)
    if sigmas in CONTROLS:
        half = halves(scene.truth.dataset.rows_of(found.image_ids))
        return _inside(scene.truth, found, CONTROLS[sigmas][0](found.boxes, np.asarray(chosen)[half]))
    assert scene.own is not None
    return _inside(scene.truth, found, scene.own if sigmas == OWN else scene.own[rng.permutation(len(found))])


def _inside(truth: GroundTruth, found: Detections, covariances: Floats) -> Detections:
    """Return detections with these covariances, pinned at the image border: constant sigmas as own ones."""
    spread = covariances.any(axis=(1, 2, 3))
    sizes = truth.dataset.shapes[truth.dataset.rows_of(found.image_ids)].astype(np.float64)
    boxes, kept = found.boxes.copy(), covariances.copy()
    boxes[spread], kept[spread] = keep_inside(boxes[spread], kept[spread], sizes[spread])
    return found.replace(boxes=boxes, covariances=kept, extents=None)


def _searched(run: Run, scene: Scene, control: str, half: int, steps: int) -> float:
    """Return the constant for one half of the images: the one with the highest PDQ on the other half."""
    (preset,) = run.presets
    make, (least, most) = CONTROLS[control]
    others = scene.truth.image_ids[halves(np.arange(len(scene.truth.image_ids))) != half]
    truth, found = scene.truth.select_images(others), scene.found.select(np.isin(scene.found.image_ids, others))

    def lost(logarithm: float) -> float:
        changed = _inside(truth, found, make(found.boxes, math.exp(logarithm)))
        return -float(np.nan_to_num(run.measure(truth, changed, measures=())[column_of("PDQ", preset)]))

    return math.exp(golden_section(lost, math.log(least), math.log(most), steps=steps))


CONSTANT_SIGMA = Experiment(
    name="constant-sigma",
    section="none: ours",
    varied="sigmas of the same boxes: none, one for all that other images chose, their own, those of others",
    claim="one constant sigma has most of what PDQ pays for sigmas; own ones beat it where corners err unlike",
    function=constant_sigma,
    judge=claims_of_constant_sigma,
    draw=draw_constant_sigma,
    takes=("truth", "repeats", "seed", "detectors"),
)
