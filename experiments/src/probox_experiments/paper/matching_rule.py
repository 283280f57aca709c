"""Matching rules of mAP, and its precision-recall curve: appendix D."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from probox.measures.boxes.matching import IOU_THRESHOLDS, MAX_DETECTIONS
from probox.measures.boxes.mean_ap import MEAN_AP, RECALL_POINTS
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox_experiments.claims import Claim, Floats, ResultTable, equals, mean_of, not_measured
from probox_experiments.experiment import Experiment
from probox_experiments.figures import GREY, ORANGE, SKY, VERMILION, Axes, Figure, draw_box, new_figure, set_log_ticks
from probox_experiments.paper.closed_form import sampled_precision
from probox_experiments.running import Run
from probox_experiments.synthetic import (
    CROWDS,
    SimulatedDetector,
    boxes_in_one_image,
    crowd_or_truth,
    crowd_points,
    fingerprint,
    pixel_aligned,
    synthetic_truth,
)

# --- Average precision in NumPy: matching and interpolation (appendix D) ---

Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]
Ties = Literal["images", "submission"]


# --- Matching ---------------------------------------------------------------------------------------------------------


def coco_rule(ious: Floats, thresholds: Floats = IOU_THRESHOLDS) -> Flags:
    """Return which detections match an object at each threshold, (T, D), as in COCO's evaluator.

    Each detection (row), in order of score, is compared with the objects (columns) that are still *free*. It matches
    the one with the highest IoU if that is *at least* the threshold; of equals the last one.

    >>> both_fit_the_first = np.array([[1.0, 0.54], [0.82, 0.67]])
    >>> coco_rule(both_fit_the_first, np.array([0.5])).tolist()
    [[True, True]]
    >>> algorithm_1(both_fit_the_first, np.array([0.5])).tolist()
    [[True, False]]
    """
    hits = np.zeros((len(thresholds), len(ious)), bool)
    free = np.ones((len(thresholds), ious.shape[1]), bool)
    each = np.arange(len(thresholds))
    for row, overlap in enumerate(ious):
        left = np.where(free, overlap, -1.0)
        best = _last_largest(left)
        hits[:, row] = left[each, best] >= thresholds
        free[each, best] &= ~hits[:, row]
    return hits


def algorithm_1(ious: Floats, thresholds: Floats = IOU_THRESHOLDS) -> Flags:
    """Return which detections match an object at each threshold, (T, D), as in the paper's Algorithm 1.

    Each detection (row), in order of score, is compared with *all* objects (columns). It matches the one with the
    highest IoU if that is *more* than the threshold and the object is still free; of equals the last one.
    """
    hits = np.zeros((len(thresholds), len(ious)), bool)
    free = np.ones((len(thresholds), ious.shape[1]), bool)
    for row, best in enumerate(_last_largest(ious)):
        hits[:, row] = (ious[row, best] > thresholds) & free[:, best]
        free[:, best] &= ~hits[:, row]
    return hits


def _last_largest(table: Floats) -> Rows:
    """Return the column of the largest number of each row, the last one of equals."""
    largest: Rows = table.shape[1] - 1 - table[:, ::-1].argmax(axis=1)
    return largest


def overlaps(found: Floats, there: Floats) -> Floats:
    """Return the IoU of boxes ``x, y, width, height``: detections in rows, objects in columns."""
    d, g = found[:, None, :], there[None, :, :]
    sides = np.minimum(d[..., :2] + d[..., 2:], g[..., :2] + g[..., 2:]) - np.maximum(d[..., :2], g[..., :2])
    both = np.maximum(sides, 0.0).prod(axis=2)
    either = d[..., 2:].prod(axis=2) + g[..., 2:].prod(axis=2) - both
    ious: Floats = np.divide(both, either, out=np.zeros_like(both), where=both > 0)
    return ious


@dataclasses.dataclass(frozen=True)
class Hits:
    """Matches of detections under a rule.

    Parameters
    ----------
    labels, scores, images : (N,) arrays
        Class, score and image row of each detection.
    ranks : (N,) int64
        Rank within its image and class.
    hits : (T, N) bool
        Whether it matches an object at each threshold.
    objects : (C,) int64
        Number of objects per class.
    """

    labels: npt.NDArray[np.int32]
    scores: Floats
    images: Rows
    ranks: Rows
    hits: Flags
    objects: npt.NDArray[np.int64]

    def by_class(self, ties: Ties = "images") -> Iterator[tuple[Flags, int]]:
        """Yield, for each class with objects, its hits by descending score, and the number of its objects.

        Equal scores are ordered by image, as in COCO's evaluator, or with ``ties="submission"`` by submission, as in
        the paper. At most 100 detections per image and class count.
        """
        submitted = np.arange(len(self.labels))
        earlier = (self.ranks, self.images) if ties == "images" else (submitted,)
        order = np.lexsort((*earlier, -self.scores, self.labels))
        order = order[self.ranks[order] < MAX_DETECTIONS]
        ends = np.searchsorted(self.labels[order], np.arange(len(self.objects) + 1))
        for label in np.flatnonzero(self.objects).tolist():
            yield self.hits[:, order[ends[label] : ends[label + 1]]], int(self.objects[label])


def find_hits(truth: GroundTruth, found: Detections, rule: Callable[[Floats], Flags]) -> Hits:
    """Return which detections match an object, separately for every image and class.

    The ground truth has no crowds. Detections of unknown images or classes are ignored.
    """
    labels, scores = found.named_classes(truth.classes)
    images = truth.dataset.rows_of(found.image_ids)
    boxes = np.concatenate([found.boxes[:, :2], found.extents], axis=1)
    there = np.concatenate([truth.boxes[:, :2], truth.extents], axis=1)
    known = (labels >= 0) & (images >= 0)
    labels, scores, images, boxes = labels[known], scores[known], images[known], boxes[known]
    count = len(truth.classes)
    group, group_there = images * count + labels, truth.image_rows * count + truth.labels
    by_score, by_group = np.lexsort((-scores, group)), np.argsort(group_there, kind="stable")
    ranks = np.zeros(len(labels), np.int64)
    hits = np.zeros((len(IOU_THRESHOLDS), len(labels)), bool)
    starts = np.flatnonzero(np.diff(group[by_score], prepend=-1))
    numbers = group[by_score][starts]
    first = np.searchsorted(group_there[by_group], numbers)
    last = np.searchsorted(group_there[by_group], numbers, side="right")
    for rows, begin, end in zip(np.split(by_score, starts)[1:], first, last, strict=True):
        ranks[rows] = np.arange(len(rows))
        if end > begin:  # otherwise the image has no objects of this class
            seen = rows[:MAX_DETECTIONS]
            hits[:, seen] = rule(overlaps(boxes[seen], there[by_group[begin:end]]))
    return Hits(labels, scores, images, ranks, hits, np.bincount(truth.labels, minlength=count))


# --- Interpolation ----------------------------------------------------------------------------------------------------


def highest_from_there(hits: Flags, objects: int) -> Floats:
    """Return precision at 101 recalls, (T, 101), as in mAP: the highest at that recall or a higher one.

    >>> two_of_each = np.array([[True, False, True, False, True, False]])
    >>> highest_from_there(two_of_each, 3)[0, [0, 50, 100]].round(4).tolist()
    [1.0, 0.6667, 0.6]
    >>> after_the_last(two_of_each, 3)[0, [0, 50, 100]].round(4).tolist()
    [0.5, 0.5, 0.5]
    """
    _, precision, at = _curve(hits, objects)
    highest = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
    return _read(highest, at)


def after_the_last(hits: Flags, objects: int) -> Floats:
    """Return precision at 101 recalls, (T, 101), after the last detection with that recall.

    False positives after a true positive count, so they are not hidden.
    """
    right, precision, at = _curve(hits, objects)
    last = np.array([np.searchsorted(row, row, side="right") - 1 for row in right]).reshape(right.shape)
    return _read(np.take_along_axis(precision, last, axis=1), at)


def _curve(hits: Flags, objects: int) -> tuple[Rows, Floats, Rows]:
    """Return cumulative true positives, precision, and the detection that reaches each recall (N if none does)."""
    right = np.cumsum(hits, axis=1, dtype=np.int64)
    precision = right / np.arange(1, hits.shape[1] + 1)
    at = np.array([np.searchsorted(row / objects, RECALL_POINTS) for row in right])
    return right, precision, at


def _read(precision: Floats, at: Rows) -> Floats:
    """Return the precision of these detections, 0 for recalls that are not reached."""
    return np.take_along_axis(np.pad(precision, ((0, 0), (0, 1))), at, axis=1)


def mean_precision(
    found: Hits, read: Callable[[Flags, int], Floats] = highest_from_there, ties: Ties = "images"
) -> float:
    """Return the mean over classes, thresholds and recalls, which is mAP with the default interpolation."""
    of_classes = [float(read(hits, objects).mean()) for hits, objects in found.by_class(ties)]
    return float(np.mean(of_classes)) if of_classes else float("nan")


def without_crowds(truth: GroundTruth) -> GroundTruth:
    """Return the ground truth without crowd regions, which COCO's evaluator ignores and the paper does not mention."""
    return truth.take(~truth.crowd)


# --- Matching rules: Algorithm 1 as printed, and COCO's evaluator (appendix D) ---

ROUNDING = 1e-9
"""Tolerance between two computations of the same mean precision, which sum in different order."""

FIRST, SECOND, BETWEEN = (20, 20, 119, 119), (50, 20, 149, 119), (30, 20, 129, 119)
"""Inclusive boxes 100 pixels wide: the third has IoU 9/11 with the first and 2/3 with the second."""

NOWHERE = (140, 125, 149, 134)
"""A box without overlap with the others."""

# Four of the ten thresholds .50, .55 .. .95 are at most 2/3; 51 of the 101 recalls are at most 1/2.
HALF = 51 / 101
LATE = (51 + 50 * 2 / 3) / 101


class SmallScene(NamedTuple):
    """Objects, ordered detections, a claim, and the expected numbers."""

    objects: Sequence[Sequence[int]]
    found: Sequence[Sequence[int]]
    claim: str
    expected: Mapping[str, float]


SCENES = {
    "second best": SmallScene(
        (FIRST, SECOND),
        (FIRST, BETWEEN),
        "If two detections overlap one object most, the second matches another object under COCO's rule, and none "
        "under Algorithm 1",
        {"hits_coco": 2, "hits_algorithm_1": 1, "mAP": 0.4 + 0.6 * HALF, "mAP_algorithm_1": HALF},
    ),
    "better one later": SmallScene(
        (FIRST, SECOND),
        (FIRST, BETWEEN, SECOND),
        "COCO's rule matches an object to the earlier detection, Algorithm 1 to a better later one: equal number of "
        "hits, other ranks",
        {"hits_coco": 2, "hits_algorithm_1": 2, "mAP": 0.4 + 0.6 * LATE, "mAP_algorithm_1": LATE},
    ),
    "exactly half": SmallScene(
        (FIRST,),
        ((20, 20, 119, 69),),
        "An IoU of exactly 0.5 is a hit at threshold 0.5 under COCO's rule, not under Algorithm 1",
        {"hits_coco": 1, "hits_algorithm_1": 0, "mAP": 0.1, "mAP_algorithm_1": 0.0},
    ),
    "hundredth": SmallScene(
        (FIRST,),
        (NOWHERE,) * 99 + (FIRST,),
        "The hundredth detection of a class in an image counts under COCO's rule",
        {"hits_coco": 1, "mAP": 0.01},
    ),
    "after a hundred": SmallScene(
        (FIRST,),
        (NOWHERE,) * 100 + (FIRST,),
        "Detections after the hundredth of a class in an image do not count under COCO's rule",
        {"hits_coco": 0, "mAP": 0.0},
    ),
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
    """Count the hits of Algorithm 1 and of COCO's rule: in small scenes, in crowds, and on images of a ground truth.

    Parameters
    ----------
    truth : GroundTruth, optional
        Default: `synthetic_truth`; crowds are excluded.
    crowds : sequence of int
        Objects per image, in synthetic images with many objects of one class.
    detections : int
        Detections of each object.
    corner_variance : float
        Variance of the detections' corner errors in square pixels. Synthetic objects are 24 pixels wide.
    repeats, seed : int
        Number of random draws of the errors, in crowds also of the objects; random seed.
    run : Run, optional
        Threads, progress, checkpoint.

    Returns
    -------
    ResultTable
        `scene` (a small one, ``crowd`` or ``truth``), `objects` (per image), `repeat`; `mAP` of probox; `mAP_coco` and
        `mAP_algorithm_1` in NumPy; `hits_coco` and `hits_algorithm_1` at IoU 0.5; `differ` (detections that only one
        rule counts as hits there); `ahead` (largest lead in hits of Algorithm 1 over COCO's rule, after any number of
        detections of a class, at any threshold).
    """
    run = run or Run()
    # One preset is enough, because PDQ is not used.
    of_boxes = dataclasses.replace(run, presets=tuple(run.presets)[:1])
    objects = pixel_aligned(without_crowds(synthetic_truth() if truth is None else truth))
    detector = SimulatedDetector(corner_variance=corner_variance, detections_per_object=detections)

    def made(scene: str, objects_per_image: float, repeat: int) -> tuple[GroundTruth, Detections]:
        if scene in SCENES:
            return small_scene(scene)
        there, draws = crowd_or_truth(scene, objects_per_image, objects, [seed, repeat])
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

    points = crowd_points({name: len(scene.objects) for name, scene in SCENES.items()}, crowds, objects, repeats)
    circumstances: dict[str, Any] = {"detections": detections, "corner_variance": corner_variance, "seed": seed}
    return run.table("matching-rule", points, point, truth=fingerprint(objects), **circumstances)


def small_scene(name: str) -> tuple[GroundTruth, Detections]:
    """Return one or two objects of one class in one image, and detections of them with probability 1."""
    there, boxes, *_ = SCENES[name]
    pixels = np.array(there, np.float64) + np.array([0, 0, 1, 1])
    truth = GroundTruth.from_boxes(["thing"], {1: (170, 140)}, [1] * len(there), pixels, [0] * len(there))
    return truth, boxes_in_one_image(truth, boxes, [1.0] * len(boxes))


def _ahead(one: Hits, other: Hits) -> int:
    """Return the largest lead in hits of `one` over `other`, after any number of detections of any class."""
    both = zip(one.by_class(), other.by_class(), strict=True)
    more = [np.cumsum(a.astype(int) - b.astype(int), axis=1).max(initial=0) for (a, _), (b, _) in both]
    return int(max(more, default=0))


def claims_of_matching_rule(table: ResultTable) -> list[Claim]:
    """Return the claims on differences of the rules, on mAP's use of COCO's, and on hits of Algorithm 1."""
    small = [equals(one.claim, table.where(scene=name), one.expected, ROUNDING) for name, one in SCENES.items()]
    many = table.take(~np.isin(table["scene"], list(SCENES)))
    return [
        *small,
        equals("mAP uses COCO's rule", many, {"mAP": many["mAP_coco"]}, ROUNDING),
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
        f"at most {ahead:g} hits and {max(more, 0.0):.2g} mAP more; in total {counts['algorithm_1']:,.0f} hits "
        f"at IoU 0.5, {counts['coco']:,.0f} by COCO's rule",
        f"0 hits more, mAP within {ROUNDING:g}",
        {"most hits more": ahead, "most mAP more": more, **{f"hits, {name}": hits for name, hits in counts.items()}},
        "Algorithm 1 matches an object only to a detection whose best object it is. COCO's rule matches that object to "
        "the same or an earlier detection, so its matched objects include those of Algorithm 1.",
    )


def _below_in_crowds(crowd: ResultTable, truth: ResultTable) -> Claim:
    claim = "Algorithm 1 would lower mAP if objects are close: more in the densest crowd than in the sparsest"
    counts = np.unique(crowd["objects"]) if len(crowd) else np.zeros(0)
    means, errors = _losses(crowd)
    if len(counts) < 2 or np.isnan(errors[-1]):
        return not_measured(claim, "two crowds or more, two repeats or more")
    apart = crowd.where(objects=counts[-1])["mAP_coco"] - crowd.where(objects=counts[-1])["mAP_algorithm_1"]
    least = crowd.where(objects=counts[0])["mAP_coco"] - crowd.where(objects=counts[0])["mAP_algorithm_1"]
    growth, error = mean_of(apart - least)
    shown = [f"{count:g}: {mean:.2g} ± {e:.1g}" for count, mean, e in zip(counts, means, errors, strict=True)]
    shown += [f"{mean:.2g} ± {e:.1g} on the ground truth" for mean, e in zip(*_losses(truth), strict=True)]
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
    """Return the loss of mAP by Algorithm 1 for each number of objects, and the standard errors over repeats."""
    parts = [rows.where(objects=count) for count in np.unique(rows["objects"])]
    lost = [mean_of(part["mAP_coco"] - part["mAP_algorithm_1"]) for part in parts]
    return [mean.value for mean in lost], [mean.error for mean in lost]


def draw_matching_rule(table: ResultTable) -> Figure:
    """Draw a small scene with both outcomes, and the loss by Algorithm 1 in crowds and on the ground truth."""
    figure = new_figure(7.4, 3.3)
    left, right = figure.subplots(1, 2, width_ratios=(1.1, 1))
    _draw_scene(left, "second best")
    crowd, truth = table.where(scene="crowd"), table.where(scene="truth")
    means, errors = _losses(crowd)
    style = {"color": VERMILION, "marker": "s", "ms": 5, "lw": 1.6, "mfc": "white", "capsize": 2}
    right.errorbar(np.unique(crowd["objects"]), means, np.nan_to_num(errors), label="synthetic crowds", **style)
    means, errors = _losses(truth)
    right.errorbar(
        np.unique(truth["objects"]), means, np.nan_to_num(errors), label="images of the ground truth",
        color=GREY, marker="D", ms=5, ls="none", capsize=2,
    )  # fmt: skip
    set_log_ticks(right, np.unique(crowd["objects"]))
    right.set(xlabel="objects per image", ylabel="mAP lost", title="Loss of mAP by Algorithm 1")
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
        inside = 2.5 * number * np.array([1, 1, -1, -1])  # slightly smaller, so that lines do not coincide
        draw_box(axes, box + inside, colour, 1.8)
        axes.text(box[0] + 2.5 * number + 2, 31, str(number), va="top", color=colour)
        outcome = f"{number}: {words[a]} by COCO's rule, {words[b]} by Algorithm 1"
        axes.text(20, 121 + 11 * number, outcome, fontsize=8.5, va="center", color="#333333")
    axes.set(xlim=(14, 156), ylim=(150, 14), title="Both overlap the left object most")
    axes.set_aspect("equal")
    axes.set_axis_off()


MATCHING_RULE = Experiment(
    name="matching-rule",
    section="D, algorithm 1",
    varied="matching rule, in small scenes, in crowds and on many images",
    claim="mAP uses COCO's rule; Algorithm 1 as printed never has more hits, and fewer in crowds",
    function=matching_rule,
    judge=claims_of_matching_rule,
    draw=draw_matching_rule,
)


OBJECTS = ((30, 40, 130, 140), (170, 30, 250, 150), (290, 50, 390, 130), (60, 190, 150, 280), (260, 180, 370, 290))
FOUND = (
    # x1, y1, x2, y2, confidence; the third, fifth and seventh are unmatched, the last object is missed
    (34, 44, 134, 140, 0.95),
    (174, 36, 252, 156, 0.90),
    (165, 214, 225, 289, 0.80),
    (286, 54, 384, 134, 0.70),
    (8, 158, 56, 202, 0.60),
    (64, 184, 152, 276, 0.45),
    (196, 164, 250, 204, 0.30),
)


def worked_example() -> tuple[GroundTruth, Detections]:
    """Return five objects of one class in one image, and seven detections, four of them correct."""
    truth = GroundTruth.from_boxes(
        ["thing"], {1: (420, 320)}, [1] * len(OBJECTS), np.array(OBJECTS), [0] * len(OBJECTS)
    )
    boxes = np.array(FOUND)[:, :4]
    found = Detections(
        classes=truth.classes,
        image_ids=np.ones(len(FOUND), np.int64),
        boxes=boxes,
        label_probs=np.array(FOUND, np.float32)[:, 4:],
        scores=np.array(FOUND)[:, 4],
    )
    return truth, found


def three_objects_twice() -> tuple[GroundTruth, Detections]:
    """Return three objects of one class, and two perfect detections of each with probability 1, object by object."""
    truth = GroundTruth.from_boxes(["thing"], {1: (420, 320)}, [1] * 3, np.array(OBJECTS[:3]), [0] * 3)
    return truth, SimulatedDetector(detections_per_object=2).detect(pixel_aligned(truth))


def precision_recall(*, run: Run | None = None) -> ResultTable:
    """Compute the precision-recall curve of the worked example in the three steps of the paper's figure.

    Returns
    -------
    ResultTable
        `curve`: `raw` (a row per detection, by confidence), `smoothed` (the highest precision from there on) and
        `sampled` (at 101 recalls), and `duplicates`: mAP's samples of three objects with two detections each (C.3);
        `rank` within a curve; `confidence` (NaN if sampled), `correct` (1, 0, or NaN if sampled), `recall`,
        `precision`.
    """
    from probox.measures.boxes import average_precision

    run = run or Run()
    truth, found = worked_example()
    order = np.argsort(-found.scores, kind="stable")
    boxes, there = (np.concatenate([table.boxes[:, :2], table.extents], axis=1) for table in (found, truth))
    correct = coco_rule(overlaps(boxes[order], there), np.array([0.5]))[0]
    hits = np.cumsum(correct)
    precision, recall = hits / np.arange(1, len(hits) + 1), hits / len(truth)
    smoothed = np.maximum.accumulate(precision[::-1])[::-1]
    levels = np.arange(101) / 100
    reached = np.searchsorted(recall, levels - 1e-12)
    sampled = np.append(smoothed, 0.0)[reached]
    twice = average_precision(*three_objects_twice(), threads=run.threads).curve("thing", 0.5).precision

    def point(curve: str, rank: int) -> dict[str, float]:
        if curve in ("sampled", "duplicates"):
            values = (np.nan, np.nan, levels[rank], (sampled if curve == "sampled" else twice)[rank])
        else:
            height = precision if curve == "raw" else smoothed
            values = (found.scores[order][rank], float(correct[rank]), recall[rank], height[rank])
        names = ("confidence", "correct", "recall", "precision")
        return dict(zip(names, map(float, values), strict=True))

    lengths = {"raw": len(order), "smoothed": len(order), "sampled": len(levels), "duplicates": len(levels)}
    points = [{"curve": curve, "rank": rank} for curve, length in lengths.items() for rank in range(length)]
    return run.table("precision-recall", points, point)


def claims_of_precision_recall(table: ResultTable) -> list[Claim]:
    """Return the claims that the three steps agree with the paper's text, and the result with mAP."""
    return [*_claims_of_steps(table), _claim_of_duplicates(table.where(curve="duplicates"))]


def _claims_of_steps(table: ResultTable) -> list[Claim]:
    from probox.measures.boxes import average_precision

    highest_claim = "Smoothing takes the highest precision at a recall or beyond"
    sampled_claim = "Precision is sampled at 101 recalls, and is 0 beyond the highest one reached"
    mean_claim = "The mean of the samples is the average precision used by mAP"
    raw, smoothed, sampled = (table.where(curve=name) for name in ("raw", "smoothed", "sampled"))
    if not len(raw) == len(smoothed) == len(FOUND) or not len(sampled):
        return [not_measured(claim, "all three curves") for claim in (highest_claim, sampled_claim, mean_claim)]
    truth, found = worked_example()
    library = average_precision(truth, found)
    highest = np.array([raw["precision"][row:].max() for row in range(len(raw))])
    read = library.curve("thing", 0.5).precision
    distance = float(np.abs(sampled["precision"] - read).max()) if len(read) == len(sampled) else np.inf
    average = float(sampled["precision"].mean())
    beyond = sampled["precision"][sampled["recall"] > raw["recall"].max()]
    return [
        Claim(
            highest_claim,
            bool(np.array_equal(smoothed["precision"], highest) and np.diff(smoothed["precision"]).max() <= 0),
            f"raised at {int((smoothed['precision'] > raw['precision']).sum())} of {len(raw)} detections, "
            f"by up to {(smoothed['precision'] - raw['precision']).max():.3f}",
            "equal to the highest raw precision from there on, and non-increasing",
        ),
        Claim(
            sampled_claim,
            len(sampled) == 101 and len(beyond) > 0 and bool((beyond == 0).all()),
            f"{len(sampled)} samples, {len(beyond)} of them beyond recall {raw['recall'].max():g}, all 0",
            "101 samples, 0 beyond",
        ),
        Claim(
            mean_claim,
            max(distance, abs(average - library.ap50)) <= 1e-12,
            f"mean {average:.6f}, AP50 {library.ap50:.6f}; samples differ by at most {distance:.1g}",
            "equal within 1e-12",
            {"mean": average, "AP50": library.ap50, "largest difference": distance},
        ),
    ]


def _claim_of_duplicates(table: ResultTable) -> Claim:
    """Return the claim on the worked number of C.3."""
    from probox.measures.boxes import average_precision

    claim = "With two detections per object the precision after three objects is 0.6, not 0.5"
    required = "1, 2/3 and 3/5 after the first, second and third object, within 1e-12"
    if len(table) != 101:
        return not_measured(claim, required)
    after = [float(table["precision"][table["recall"] <= share][-1]) for share in (1 / 3, 2 / 3, 1.0)]
    expected = sampled_precision([1, 2 / 3, 3 / 5], 3)
    average = average_precision(*three_objects_twice()).ap50
    distance = max(float(np.abs(table["precision"] - expected).max()), abs(average - float(expected.mean())))
    return Claim(
        claim,
        distance <= 1e-12,
        f"{', '.join(f'{value:.4f}' for value in after)}; the 101 samples and AP50, their mean, differ by at most "
        f"{distance:.1g}",
        required,
        {"after three objects": after[-1], "largest difference": distance},
        "The duplicate of the third object comes after it without raising recall, so its precision is not sampled.",
    )


def draw_precision_recall(table: ResultTable) -> Figure:
    """Draw the scene, the raw curve, the smoothed curve, and its 101 samples."""
    figure = new_figure(6.8, 5.4)
    scene, raw_axes, smooth_axes, sample_axes = figure.subplots(2, 2).flat
    raw, smoothed, sampled = (table.where(curve=name) for name in ("raw", "smoothed", "sampled"))
    _draw_example(scene, raw)

    raw_axes.plot(raw["recall"], raw["precision"], color=GREY, lw=1.4, zorder=2)
    for value, colour, label in ((1.0, SKY, "true positive"), (0.0, ORANGE, "false positive")):
        part = raw.where(correct=value)
        raw_axes.plot(part["recall"], part["precision"], "o", ms=7, mfc=colour, mec="#333333", mew=0.7, label=label)
    for row in raw.rows():
        right = row["correct"] == 1.0
        raw_axes.annotate(
            f"{row['confidence']:.2f}", (row["recall"], row["precision"]), textcoords="offset points",
            xytext=(7, 5) if right else (-7, -4), ha="left" if right else "right", va="center", fontsize=8,
        )  # fmt: skip
    raw_axes.legend(loc="lower left")

    smooth_axes.plot(raw["recall"], raw["precision"], color=GREY, lw=1.0, ls=(0, (4, 2)), label="raw")
    # Between recalls the curve has the precision of the next recall, so it is a step function.
    recall, first = np.unique(smoothed["recall"], return_index=True)
    height = smoothed["precision"][first]
    stairs_x, stairs_y = np.concatenate([[0.0], recall]), np.concatenate([height[:1], height])
    smooth_axes.plot(stairs_x, stairs_y, color=VERMILION, lw=2, drawstyle="steps-pre", label="smoothed")
    smooth_axes.legend(loc="lower left")

    sample_axes.vlines(sampled["recall"], 0, sampled["precision"], color=VERMILION, lw=0.6, alpha=0.55)
    sample_axes.plot(sampled["recall"], sampled["precision"], "o", ms=2.6, color=VERMILION)
    sample_axes.text(
        0.02, 0.06, f"mean of {len(sampled)} samples: {sampled['precision'].mean():.3f}", fontsize=9, color="#333333",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 2.5},
    )  # fmt: skip

    titles = (
        "Objects and detections",
        "Raw precision-recall curve",
        "Highest precision from there on",
        "Sampled at 101 recalls",
    )
    for axes, title in zip((scene, raw_axes, smooth_axes, sample_axes), titles, strict=True):
        axes.set_title(title)
    for axes in (raw_axes, smooth_axes, sample_axes):
        axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.1), xlabel="recall", ylabel="precision")
        axes.set_xticks(np.linspace(0, 1, 6))
        axes.set_yticks(np.linspace(0, 1, 6))
    return figure


def _draw_example(axes: Axes, raw: ResultTable) -> None:
    truth, found = worked_example()
    for box in truth.boxes:
        draw_box(axes, box, "#1A1A1A", 1.8)
    for box, row in zip(found.boxes, raw.rows(), strict=True):
        right = row["correct"] == 1.0
        draw_box(axes, box, SKY if right else ORANGE, 2.0)
        axes.text(
            (box[0] + box[2]) / 2, (box[1] + box[3]) / 2, f"{row['confidence']:.2f}",
            ha="center", va="center", fontsize=9, color="#1F78A8" if right else "#9A6A00",
        )  # fmt: skip
    axes.set_xlim(0, int(truth.dataset.widths[0]))
    axes.set_ylim(int(truth.dataset.heights[0]), 0)
    axes.set_aspect("equal")
    axes.grid(False)
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(True)


PRECISION_RECALL = Experiment(
    name="precision-recall",
    section="D",
    varied="the steps from detections to average precision, on a worked example",
    claim="raw curve, smoothed curve and 101 samples are as described; 0.6 after three objects detected twice",
    function=precision_recall,
    judge=claims_of_precision_recall,
    draw=draw_precision_recall,
)
