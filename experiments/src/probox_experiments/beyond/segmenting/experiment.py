"""Probabilistic segmentation: the uncertainty of a mask against that of a box.

The paper's conclusion names probabilistic instance segmentation as what comes next: PDQ goes by the probability of
every pixel, and it does not matter to it whether a Gaussian box or a mask says so. Here a detector errs about where an
outline lies, by a sigma s that we know, and reports one of four things: the sure box around what it sees, a box with
Gaussian corners of sigma r, the sure mask, or for every pixel the probability that an outline that errs with sigma r
has it inside.

What was foreseen. Where everything outside an object's *mask* is background, every pixel is scored by the logarithm of
what it was given, so the true probabilities are the best report, but for the little that PDQ prefers smaller sigmas
(experiment `proper`); and whoever fills the empty part of a box pays 1e-14 to the power of its share. Where, as in the
paper, only what is outside the object's *box* is background, the empty part costs nothing. There a mask loses along its
outline, on the inside alone, and a Gaussian box along that of the box, on the outside alone: the shorter one wins.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from probox.errors import InputError
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox_experiments.beyond.segmenting.claims import claims_of_segmentation
from probox_experiments.beyond.segmenting.figure import draw_segmentation
from probox_experiments.beyond.segmenting.scenes import (
    BOXES,
    REPORTS,
    Scene,
    Shapes,
    blobs,
    combs,
    detections,
    empty_part,
    outline,
    shapes_of,
)
from probox_experiments.experiment import Experiment
from probox_experiments.running import Run
from probox_experiments.scenes import fingerprint, plane_scene, synthetic_truth
from probox_experiments.table import ResultTable

__all__ = ["SEGMENTATION", "segmentation"]

EPSILON = 1e-14
"""Added to every probability before its logarithm; a run that changes it is not what was foreseen."""
COMBS = 8
"""How many there are of shapes with long outlines."""
PERFECT = 10
"""So many objects of the truth, and the plane, are detected perfectly, each by itself."""
COLUMNS = ("foreground", "background")


def segmentation(
    truth: GroundTruth | None = None,
    *,
    error: float = 3.0,
    ratios: Sequence[float] = (0.6944, 0.8333, 1.0, 1.2, 1.44),
    wide_ratios: Sequence[float] = (1.8, 3.0, 5.0, 8.0),
    objects: int = 40,
    blob_count: int = 16,
    repeats: int = 8,
    seed: int = 0,
    run: Run | None = None,
) -> ResultTable:
    """Report boxes or masks, surely or not, of outlines that were seen in the wrong place.

    Parameters
    ----------
    truth : GroundTruth
        Whose masks are detected: the first that are 24 to 120 pixels wide and high and do not fill their boxes. Each is
        put into an image of its own. Default: `synthetic_truth`.
    error : float
        The sigma of errors, in pixels. Masks of the truth are moved as a whole, on both axes; made-up blobs err in
        every direction by themselves.
    ratios : sequence of float
        The sigmas that are reported, over the true one.
    wide_ratios : sequence of float
        More of them for Gaussian boxes.
    objects, blob_count : int
        How many masks of the truth, and how many blobs.
    repeats, seed : int
        How often errors are drawn, and where that begins; all reports are of the same errors.
    run : Run, optional
        Threads, progress, checkpoint. The experiment says itself what is background.

    Returns
    -------
    ResultTable
        `scene` ("moved", "jittered", "combs", which are made up and moved, or "perfect"), `number` of a perfectly
        detected object (0 is the plane), `repeat`, `report`, `ratio` (reported over true sigma, 0 if sure), `outside`
        (background is outside the "box" or the "mask"); `PDQ`, `foreground`, `background` under every preset;
        `outline`, how long outlines are against those of boxes; `empty`, the pixels of a box that are not the object's
        over those that are; `foreseen`, what background quality a sure perfect box has for it.
    """
    run = run or Run()
    if not 0 < error <= 10:
        raise InputError(f"expected error above 0 and at most 10 pixels, but got {error:g}")
    if any(ratio <= 0 for ratio in (*ratios, *wide_ratios)):
        raise InputError("expected ratios above 0", remedy="sure reports are measured anyway")
    given = synthetic_truth() if truth is None else truth
    shapes = shapes_of(given, objects)
    plane = plane_scene()
    perfect = [plane.masks.to_array(0, *plane.dataset.shapes[0][::-1].tolist()), *shapes[:PERFECT]]
    runs = {
        outside: dataclasses.replace(run, changes={**run.changes, "background": outside}) for outside in ("box", "mask")
    }

    masks = {"moved": shapes, "combs": combs(COMBS, seed)}
    fitting = {scene: Shapes(own, error) for scene, own in masks.items()}
    alone = [Shapes([mask], 1e-9) for mask in perfect]

    @lru_cache(maxsize=repeats + 1)
    def drawn(scene: str, repeat: int, number: int) -> Scene:
        if scene == "jittered":
            return blobs(blob_count, error, [seed, repeat])
        return (alone[number] if scene == "perfect" else fitting[scene]).moved([seed, repeat])

    @lru_cache(maxsize=1)  # for both kinds of background
    def found(scene: str, repeat: int, number: int, report: str, ratio: float) -> Detections:
        return detections(drawn(scene, repeat, number), report, ratio * error)

    @cache
    def length(scene: str) -> float:
        return math.nan if scene == "perfect" else outline(drawn(scene, 0, -1).truth, error)

    def point(scene: str, number: int, repeat: int, report: str, ratio: float, outside: str) -> dict[str, float]:
        truth, seen = drawn(scene, repeat, number).truth, found(scene, repeat, number, report, ratio)
        empty = empty_part(perfect[number]) if scene == "perfect" else math.nan
        return {
            **runs[outside].measure(truth, seen, also=COLUMNS, measures=()),
            "outline": length(scene),
            "empty": empty,
            "foreseen": EPSILON**empty,
        }

    sure: list[dict[str, Any]] = [{"report": report, "ratio": 0.0} for report in REPORTS[::2]]
    unsure = [
        {"report": report, "ratio": float(ratio)}
        for report in REPORTS[1::2]
        for ratio in (*ratios, *(wide_ratios if report in BOXES else ()))
    ]
    points = [
        {"scene": scene, "number": -1, "repeat": repeat, **what, "outside": outside}
        for scene, count in (("moved", len(shapes)), ("jittered", blob_count))
        for what in (*sure, *unsure)
        for repeat in range(repeats if count else 0)
        for outside in runs
    ]
    points += [
        {"scene": "combs", "number": -1, "repeat": repeat, "report": report, "ratio": float(ratio), "outside": "box"}
        for report in REPORTS[1::2]
        for ratio in ratios
        for repeat in range(repeats)
    ]
    points += [
        {"scene": "perfect", "number": number, "repeat": 0, **what, "outside": outside}
        for number in range(len(perfect))
        for what in sure
        for outside in runs
    ]
    return run.table(
        "segmentation",
        points,
        point,
        truth=fingerprint(given),
        seed=seed,
        error=error,
        objects=len(shapes),
        blobs=blob_count,
    )


SEGMENTATION = Experiment(
    name="segmentation",
    section="none: ours",
    varied="sure and unsure boxes and masks of outlines that were seen in the wrong place",
    claim="where background is outside the mask, honest probabilities of pixels beat every box; where it is outside "
    "the box, as in the paper, they gain far less",
    function=segmentation,
    judge=claims_of_segmentation,
    draw=draw_segmentation,
    takes=("truth", "repeats", "seed"),
)
