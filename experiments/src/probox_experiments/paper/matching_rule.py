"""Which detections are right for mAP: Algorithm 1 as printed, and COCO's evaluator (appendix D)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from probox.measures.boxes.mean_ap import MEAN_AP
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox_experiments.claims import Claim, equals, not_measured
from probox_experiments.experiment import Experiment
from probox_experiments.figures import GREY, ORANGE, SKY, VERMILION, draw_box, new_figure
from probox_experiments.paper.crowds import CROWDS, crowded_truth
from probox_experiments.paper.plain_precision import (
    Hits,
    algorithm_1,
    coco_rule,
    find_hits,
    mean_precision,
    without_crowds,
)
from probox_experiments.peaks import mean_of
from probox_experiments.running import Run
from probox_experiments.scenes import boxes_in_one_image, fingerprint, pixel_aligned, synthetic_truth
from probox_experiments.simulate import SimulatedDetector
from probox_experiments.table import ResultTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["MATCHING_RULE", "matching_rule"]

ROUNDING = 1e-9
"""What two ways of computing the same mean precision may differ by: they add up in another order."""

FIRST, SECOND, BETWEEN = (20, 20, 119, 119), (50, 20, 149, 119), (30, 20, 129, 119)
"""Inclusive boxes 100 pixels wide: the third has IoU 9/11 with the first and 2/3 with the second."""

NOWHERE = (140, 125, 149, 134)
"""A box that meets none of them."""

SCENES: dict[str, tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]] = {
    # objects, and detections in their order
    "second best": ((FIRST, SECOND), (FIRST, BETWEEN)),
    "better one later": ((FIRST, SECOND), (FIRST, BETWEEN, SECOND)),
    "exactly half": ((FIRST,), ((20, 20, 119, 69),)),
    "hundredth": ((FIRST,), (NOWHERE,) * 99 + (FIRST,)),
    "after a hundred": ((FIRST,), (NOWHERE,) * 100 + (FIRST,)),
}
# Of the ten thresholds .50, .55 .. .95 four are at most 2/3; 51 of the 101 recalls are at most a half.
HALF = 51 / 101
LATE = (51 + 50 * 2 / 3) / 101
EXPECTED = {
    "second best": {
        "hits_coco": 2, "hits_algorithm_1": 1, "mAP": 0.4 + 0.6 * HALF, "mAP_algorithm_1": HALF,
    },
    "better one later": {
        "hits_coco": 2, "hits_algorithm_1": 2, "mAP": 0.4 + 0.6 * LATE, "mAP_algorithm_1": LATE,
    },
    "exactly half": {"hits_coco": 1, "hits_algorithm_1": 0, "mAP": 0.1, "mAP_algorithm_1": 0.0},
    "hundredth": {"hits_coco": 1, "mAP": 0.01},
    "after a hundred": {"hits_coco": 0, "mAP": 0.0},
}  # fmt: skip
SENTENCES = {
    "second best": "Of two detections that overlap one object most, the second hits its second best under COCO's rule, "
    "and nothing under Algorithm 1",
    "better one later": "COCO's rule gives an object to whoever comes first, Algorithm 1 to a better one that "
    "comes later: as many hits, other ranks",
    "exactly half": "An IoU of exactly 0.5 is a hit at 0.5 under COCO's rule, and none under Algorithm 1",
    "hundredth": "The hundredth detection of a class in an image still takes part under COCO's rule",
    "after a hundred": "What comes after a hundred detections of a class in an image takes no part under COCO's rule",
}


def matching_rule(
    truth: GroundTruth | None = None,
    *,
    crowds: Sequence[int] = CROWDS,
    detections: int = 2,
    corner_variance: float = 4.0,
    repeats: int = 6,
    seed: int = 0,
    run: Run | None = None,
) -> ResultTable:
    """Count the hits of Algorithm 1 and of COCO's rule: in small scenes, in crowds, and on the images of a truth.

    Parameters
    ----------
    truth : GroundTruth, optional
        Default: `synthetic_truth`; crowds are left out.
    crowds : sequence of int
        Objects per image, in the made-up images with many objects of one class.
    detections : int
        How often each object is detected.
    corner_variance : float
        Of the errors of the detections' corners, in square pixels. Made-up objects are 24 pixels wide.
    repeats, seed : int
        How often the errors are drawn, in crowds the objects too; where they start.
    run : Run, optional
        Threads, progress, checkpoint.

    Returns
    -------
    ResultTable
        `scene` (a small one, ``crowd`` or ``truth``), `objects` (per image), `repeat`; `mAP` as measured;
        `mAP_coco` and `mAP_algorithm_1`, computed plainly; `hits_coco` and `hits_algorithm_1` at IoU 0.5;
        `differ` (detections that only one rule calls right there); `ahead` (the most hits that Algorithm 1 has more
        than COCO's rule, after any number of detections of a class, at any threshold).
    """
    run = run or Run()
    # No number of PDQ is asked for, so one preset is enough.
    of_boxes = dataclasses.replace(run, presets=tuple(run.presets)[:1])
    objects = pixel_aligned(without_crowds(synthetic_truth() if truth is None else truth))
    detector = SimulatedDetector(corner_variance=corner_variance, detections_per_object=detections)

    def made(scene: str, objects_per_image: float, repeat: int) -> tuple[GroundTruth, Detections]:
        if scene in SCENES:
            return small_scene(scene)
        draws = [seed, repeat]
        there = objects
        if scene == "crowd":
            draws.append(int(objects_per_image))
            there = crowded_truth(int(objects_per_image), seed=[*draws, 1])
        return there, detector.detect(there, seed=draws)

    def point(scene: str, objects: float, repeat: int) -> dict[str, float]:
        there, found = made(scene, objects, repeat)
        coco, printed = (find_hits(there, found, rule) for rule in (coco_rule, algorithm_1))
        return {
            "mAP": of_boxes.measure(there, found, measures=[MEAN_AP.name])[MEAN_AP.headline.key],
            "mAP_coco": mean_precision(coco),
            "mAP_algorithm_1": mean_precision(printed),
            "hits_coco": float(coco.hits[0].sum()),
            "hits_algorithm_1": float(printed.hits[0].sum()),
            "differ": float((coco.hits[0] != printed.hits[0]).sum()),
            "ahead": float(_ahead(printed, coco)),
        }

    points: list[dict[str, Any]] = [
        {"scene": scene, "objects": float(len(there)), "repeat": 0} for scene, (there, _) in SCENES.items()
    ]
    each = len(objects) / max(len(objects.image_ids), 1)
    for repeat in range(repeats):
        points += [{"scene": "crowd", "objects": float(count), "repeat": repeat} for count in crowds]
        points.append({"scene": "truth", "objects": each, "repeat": repeat})
    circumstances: dict[str, Any] = {"detections": detections, "corner_variance": corner_variance, "seed": seed}
    return run.table("matching-rule", points, point, truth=fingerprint(objects), **circumstances)


def small_scene(name: str) -> tuple[GroundTruth, Detections]:
    """Return one or two objects of one class in one image, and sure detections of them."""
    there, boxes = SCENES[name]
    pixels = np.array(there, np.float64) + np.array([0, 0, 1, 1])
    truth = GroundTruth.from_boxes(["thing"], {1: (170, 140)}, [1] * len(there), pixels, [0] * len(there))
    return truth, boxes_in_one_image(truth, boxes, [1.0] * len(boxes))


def _ahead(one: Hits, other: Hits) -> int:
    """Return the most hits that `one` has more than `other`, after any number of detections of any class."""
    both = zip(one.by_class(), other.by_class(), strict=True)
    more = [np.cumsum(a.astype(int) - b.astype(int), axis=1).max(initial=0) for (a, _), (b, _) in both]
    return int(max(more, default=0))


def claims_of_matching_rule(table: ResultTable) -> list[Claim]:
    """Judge where the two rules differ, that mAP goes by COCO's, and that Algorithm 1 never has more hits."""
    small = [equals(SENTENCES[scene], table.where(scene=scene), EXPECTED[scene], ROUNDING) for scene in SCENES]
    many = table.take(~np.isin(table["scene"], list(SCENES)))
    return [
        *small,
        equals("mAP goes by COCO's rule", many, {"mAP": many["mAP_coco"]}, ROUNDING),
        _never_ahead(table),
        _below_in_crowds(table.where(scene="crowd"), table.where(scene="truth")),
    ]


def _never_ahead(table: ResultTable) -> Claim:
    claim = "Algorithm 1 never has more hits than COCO's rule, after any detection, nor more mAP"
    if not len(table):
        return not_measured(claim, "any scene")
    ahead = float(table["ahead"].max())
    more = float((table["mAP_algorithm_1"] - table["mAP_coco"]).max())
    counts = {name: float(table[f"hits_{name}"].sum()) for name in ("coco", "algorithm_1")}
    return Claim(
        claim,
        ahead <= 0 and more <= ROUNDING,
        f"at most {ahead:g} hits and {max(more, 0.0):.2g} mAP more; in all {counts['algorithm_1']:,.0f} hits "
        f"at IoU 0.5, {counts['coco']:,.0f} by COCO's rule",
        f"0 hits more, mAP to {ROUNDING:g}",
        {"most hits more": ahead, "most mAP more": more, **{f"hits, {name}": hits for name, hits in counts.items()}},
        "An object that Algorithm 1 gives away is the detection's best of all, so COCO's rule gives it away then or "
        "has done so before: whatever is taken under the one is taken under the other.",
    )


def _below_in_crowds(crowd: ResultTable, truth: ResultTable) -> Claim:
    claim = "Algorithm 1 would cost mAP where objects are close: more in the densest crowd than in the least"
    counts = np.unique(crowd["objects"]) if len(crowd) else np.zeros(0)
    means, errors = _losses(crowd)
    if len(counts) < 2 or np.isnan(errors[-1]):
        return not_measured(claim, "two crowds or more, two repeats or more")
    apart = crowd.where(objects=counts[-1])["mAP_coco"] - crowd.where(objects=counts[-1])["mAP_algorithm_1"]
    least = crowd.where(objects=counts[0])["mAP_coco"] - crowd.where(objects=counts[0])["mAP_algorithm_1"]
    growth, error = mean_of(apart - least)
    shown = [f"{count:g}: {mean:.2g} ± {e:.1g}" for count, mean, e in zip(counts, means, errors, strict=True)]
    shown += [f"{mean:.2g} ± {e:.1g} on the truth" for mean, e in zip(*_losses(truth), strict=True)]
    return Claim(
        claim,
        growth > 2 * error and growth > 0,
        f"mAP lost by objects per image: {', '.join(shown)}; from {counts[0]:g} to {counts[-1]:g} it grows by "
        f"{growth:.4f} ± {error:.4f}",
        "growth of more than two standard errors",
        {f"mAP lost, {count:g} objects": mean for count, mean in zip(counts, means, strict=True)}
        | {"growth": growth, "standard error": error},
    )


def _losses(rows: ResultTable) -> tuple[list[float], list[float]]:
    """Return what Algorithm 1 costs in mAP for each number of objects, and the standard errors over repeats."""
    parts = [rows.where(objects=count) for count in np.unique(rows["objects"])]
    lost = [mean_of(part["mAP_coco"] - part["mAP_algorithm_1"]) for part in parts]
    return [mean.value for mean in lost], [mean.error for mean in lost]


def draw_matching_rule(table: ResultTable) -> Figure:
    """Draw a small scene with both verdicts, and what Algorithm 1 costs in crowds and on the truth."""
    figure = new_figure(7.4, 3.3)
    left, right = figure.subplots(1, 2, width_ratios=(1.1, 1))
    _draw_scene(left, "second best")
    crowd, truth = table.where(scene="crowd"), table.where(scene="truth")
    means, errors = _losses(crowd)
    style = {"color": VERMILION, "marker": "s", "ms": 5, "lw": 1.6, "mfc": "white", "capsize": 2}
    right.errorbar(np.unique(crowd["objects"]), means, np.nan_to_num(errors), label="made-up crowds", **style)
    means, errors = _losses(truth)
    right.errorbar(
        np.unique(truth["objects"]), means, np.nan_to_num(errors), label="images of the truth",
        color=GREY, marker="D", ms=5, ls="none", capsize=2,
    )  # fmt: skip
    right.set_xscale("log")
    ticks = np.unique(crowd["objects"]).tolist()
    right.set_xticks(ticks, [f"{count:g}" for count in ticks])
    right.minorticks_off()
    right.set(xlabel="objects per image", ylabel="mAP lost", title="What Algorithm 1 would cost")
    right.legend(loc="upper left")
    return figure


def _draw_scene(axes: Axes, name: str) -> None:
    truth, found = small_scene(name)
    coco, printed = (find_hits(truth, found, rule).hits[0] for rule in (coco_rule, algorithm_1))
    for box in truth.boxes:
        draw_box(axes, box, "#1A1A1A", 3.0)
    corners = np.concatenate([found.boxes[:, :2], found.boxes[:, :2] + found.extents], axis=1)
    words = {True: "hit", False: "no hit"}
    for number, (box, a, b) in enumerate(zip(corners, coco.tolist(), printed.tolist(), strict=True), start=1):
        colour = SKY if a == b else ORANGE
        inside = 2.5 * number * np.array([1, 1, -1, -1])  # drawn a little smaller, so that no line lies on another
        draw_box(axes, box + inside, colour, 1.8)
        axes.text(box[0] + 2.5 * number + 2, 31, str(number), va="top", color=colour)
        verdict = f"{number}: {words[a]} by COCO's rule, {words[b]} by Algorithm 1"
        axes.text(20, 121 + 11 * number, verdict, fontsize=8.5, va="center", color="#333333")
    axes.set(xlim=(14, 156), ylim=(150, 14), title="Both overlap the left object most")
    axes.set_aspect("equal")
    axes.set_axis_off()


MATCHING_RULE = Experiment(
    name="matching-rule",
    section="D, algorithm 1",
    varied="the rule by which detections are right, in small scenes, in crowds and on many images",
    claim="mAP goes by COCO's rule; Algorithm 1 as printed never has more hits, and fewer in crowds",
    function=matching_rule,
    judge=claims_of_matching_rule,
    draw=draw_matching_rule,
    takes=("truth", "repeats", "seed"),
)
