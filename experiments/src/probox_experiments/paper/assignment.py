"""Assignment of detections to objects: optimal as in PDQ, greedy by pPDQ, or by confidence as in mAP (section 5.4)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.results import PairTable
from probox_experiments.claims import (
    Claim,
    Floats,
    Judgement,
    ResultTable,
    column_of,
    equals,
    judge_presets,
    mean_of,
    not_measured,
    presets_in,
)
from probox_experiments.experiment import Experiment
from probox_experiments.figures import BLUE, GREY, ORANGE, VERMILION, Axes, Figure, new_figure, set_log_ticks
from probox_experiments.running import Run
from probox_experiments.synthetic import (
    CROWDS,
    SimulatedDetector,
    crowd_or_truth,
    crowd_points,
    fingerprint,
    first_images,
    square_scene,
    synthetic_truth,
)

if TYPE_CHECKING:
    from probox.evaluation.result import Evaluation


WAYS = ("PDQ", "greedy", "confidence")
"""Optimal as in PDQ; repeatedly the best remaining pair; detections by confidence, each with its best object."""

COUNTS = ("TP", "FP", "FN")
ROUNDING = 1e-9

# Objects lie on the same pixels, one of each class from the first; a row per detection with its label probabilities.
# Spatial quality is 1, so pPDQ is the square root of the label probability.
LABELS = {
    "two or one": (2, ((0.51, 0.49, 0.0), (0.49, 0.0, 0.50))),
    "total or PDQ": (3, ((0.01, 0.2025, 0.0, 0.7875), (0.0, 0.36, 0.2025, 0.4375), (0.0, 0.0, 0.01, 0.99))),
}
# One object: a detection of label probability 1 with pixel probability 0.5, and a perfect box of label probability 0.9.
CONFIDENT = "confident or better"
EXPECTED: dict[str, dict[str, tuple[float, int, int, int]]] = {
    # PDQ, TP, FP, FN
    "two or one": {
        "PDQ": (0.7, 2, 0, 0),
        "greedy": (0.51**0.5 / 3, 1, 1, 1),
        "confidence": (0.51**0.5 / 3, 1, 1, 1),
    },
    CONFIDENT: {
        "PDQ": (0.9**0.5 / 2, 1, 1, 0),
        "greedy": (0.9**0.5 / 2, 1, 1, 0),
        "confidence": (0.5**0.5 / 2, 1, 1, 0),
    },
    "total or PDQ": {
        "PDQ": ((0.45 + 0.45) / 4, 2, 1, 1),
        "greedy": ((0.6 + 0.1 + 0.1) / 3, 3, 0, 0),
        "confidence": ((0.1 + 0.45) / 4, 2, 1, 1),
    },
}
SENTENCES = {
    "two or one": "If the best pair excludes all others, PDQ uses two pairs that are nearly as good: 0.7 with 2 TP; "
    "greedy has sqrt(0.51)/3 with 1 TP, 1 FP and 1 FN",
    CONFIDENT: "PDQ prefers a more accurate detection to a more confident one: sqrt(0.9)/2, by confidence sqrt(0.5)/2",
    "total or PDQ": "The assignment maximizes the total pPDQ, not PDQ: a total of 0.9 is PDQ 0.225 with 2 TP, and "
    "greedy's 0.8 is PDQ 0.267 with 3 TP",
}


def assignment(
    truth: GroundTruth | None = None,
    *,
    crowds: Sequence[int] = CROWDS,
    corner_variance: float = 100.0,
    images: int = 40,
    repeats: int = 5,
    seed: int = 0,
    run: Run | None = None,
) -> ResultTable:
    """Assign detections in three ways: in small scenes, in crowds, and on images of a ground truth.

    Parameters
    ----------
    truth : GroundTruth, optional
        Default: `synthetic_truth`.
    crowds : sequence of int
        Objects per image, in synthetic images with many objects of one class.
    corner_variance : float
        Variance of the detections' corners, true and reported, in square pixels. Objects in crowds are 24 pixels wide,
        so errors of 10 pixels reach halfway to the next object.
    images : int
        Number of images, the first of the ground truth.
    repeats, seed : int
        Number of random draws of errors, label probabilities and, in crowds, objects; random seed.
    run : Run, optional
        Threads, progress, checkpoint.

    Returns
    -------
    ResultTable
        `scene` (a small one, ``crowd`` or ``truth``), `objects` (per image), `repeat`, `assigned` (`WAYS`);
        `PDQ`, `pPDQ`, `TP`, `FP`, `FN` under every preset; under the first preset `other_matches` (detections whose
        match differs from PDQ's) in `other_images`.
    """
    run = run or Run()
    objects = first_images(synthetic_truth() if truth is None else truth, images)
    also = ("pPDQ", *COUNTS)
    keys = ("PDQ", *also)
    detector = SimulatedDetector(corner_variance=corner_variance, reported_variance=corner_variance)
    greedy = dataclasses.replace(run, changes={**run.changes, "assignment": "greedy"})

    def made(scene: str, count: float, repeat: int) -> tuple[GroundTruth, Detections]:
        if scene in EXPECTED:
            return small_scene(scene)
        there, draws = crowd_or_truth(scene, count, objects, [seed, repeat])
        return there, draw_label_probs(detector.detect(there, seed=draws), [*draws, 2])

    def point(scene: str, objects: float, repeat: int, assigned: str) -> dict[str, float]:
        there, found = made(scene, objects, repeat)
        if assigned == "PDQ":
            return run.measure(there, found, also=also, measures=()) | {"other_matches": 0.0, "other_images": 0.0}
        # Pairs come from the tables of an evaluation; PDQ of assignments that probox offers comes from the run.
        presets = list(run.presets) if assigned == "confidence" else list(run.presets)[:1]
        results = _evaluate(dataclasses.replace(run, presets=presets), there, found)
        other = {preset: _assign_again(result, assigned) for preset, result in results.items()}
        if assigned == "greedy":
            numbers = greedy.measure(there, found, also=also, measures=())
        else:
            summaries = {preset: result.summary() for preset, result in other.items()}
            numbers = {column_of(key, preset): float(summaries[preset][key]) for preset in presets for key in keys}
        return numbers | _differing(results[presets[0]], other[presets[0]])

    small = {scene: len(small_scene(scene)[0]) for scene in EXPECTED}
    settings = crowd_points(small, crowds, objects, repeats)
    points = [{**setting, "assigned": way} for setting in settings for way in WAYS]
    circumstances: dict[str, Any] = {"corner_variance": corner_variance, "seed": seed}
    return run.table("assignment", points, point, truth=fingerprint(objects), **circumstances)


def small_scene(name: str) -> tuple[GroundTruth, Detections]:
    """Return a few objects on the same pixels of one image, and detections of them."""
    if name == CONFIDENT:
        truth = square_scene(20, 40, classes=2)
        inside = truth.masks.to_array(0, 40, 40)
        labels: tuple[tuple[float, ...], ...] = ((1.0, 0.0), (0.9, 0.1))
        heatmaps = (np.where(inside, 0.5, 0.0), np.where(inside, 1.0, 0.0))
    else:
        count, labels = LABELS[name]
        one = square_scene(20, 40, classes=len(labels[0]))
        truth = one.take(np.zeros(count, np.int64)).replace(labels=np.arange(count), ids=None)
        heatmaps = None
    found = Detections(
        classes=truth.classes,
        image_ids=np.repeat(truth.image_ids, len(labels)),
        boxes=np.repeat(truth.masks.boxes[:1], len(labels), axis=0).astype(np.float64),
        label_probs=np.array(labels, np.float32),
        heatmaps=heatmaps,
    )
    return truth, found


def draw_label_probs(found: Detections, seed: Sequence[int]) -> Detections:
    """Return detections with a probability between 0.3 and 1 for their class, and the rest for the next class."""
    count, classes = found.label_probs.shape
    each, labels = np.arange(count), found.label_probs.argmax(axis=1)
    probability = np.random.default_rng(seed).uniform(0.3, 1.0, count)
    label_probs = np.zeros((count, classes), np.float32)
    label_probs[each, (labels + 1) % classes] = 1.0 - probability
    label_probs[each, labels] = probability
    return found.replace(label_probs=label_probs, labels=None, scores=None)


def _evaluate(run: Run, truth: GroundTruth, found: Detections) -> dict[str, Evaluation]:
    """Return evaluations with all their pairs, for other assignments."""
    from probox.evaluation.evaluate import evaluate

    return {
        preset: evaluate(truth, found, convention=convention, measures=["pdq"], threads=run.threads)
        for preset, convention in run.conventions().items()
    }


def _assign_again(result: Evaluation, way: str) -> Evaluation:
    """Return the evaluation with matches chosen in turn; no assignment changes the remaining pairs."""
    quality = result.pairs.quality("pPDQ")
    confidence = result.detections.confidences[result.pairs.detections]
    order = (
        np.lexsort((-quality, result.pairs.detections, -confidence))
        if way == "confidence"
        else np.argsort(-quality, kind="stable")
    )
    return dataclasses.replace(result, pairs=take_in_turn(result.pairs, order)).rematch()


def take_in_turn(pairs: PairTable, order: npt.NDArray[np.int64]) -> PairTable:
    """Return the pairs of a sequential assignment: each pair is used in its turn if both sides are free."""
    met: set[int] = set()
    taken: set[int] = set()
    kept: list[int] = []
    detections, objects = pairs.detections.tolist(), pairs.objects.tolist()
    for row in order.tolist():
        detection, there = detections[row], objects[row]
        if detection not in met and there not in taken:
            met.add(detection)
            taken.add(there)
            kept.append(row)
    return pairs.take(np.sort(np.array(kept, np.int64)))


def _differing(one: Evaluation, other: Evaluation) -> dict[str, float]:
    rows = one.detections.partners != other.detections.partners
    images = np.unique(one.detections.image_rows[rows])
    return {"other_matches": float(rows.sum()), "other_images": float(len(images))}


def claims_of_assignment(table: ResultTable) -> list[Claim]:
    """Return the claims on small scenes with known numbers, and on totals and leads in crowds."""
    crowd = table.where(scene="crowd")
    densest = crowd.where(objects=crowd["objects"].max()) if len(crowd) else crowd
    return [
        *(_small_scene_claim(table.where(scene=scene), scene) for scene in EXPECTED),
        _largest_total(table),
        _leads(densest, "greedy", "In the densest crowd a greedy assignment lowers PDQ"),
        _leads(densest, "confidence", "An assignment by confidence lowers it too"),
    ]


def _small_scene_claim(rows: ResultTable, scene: str) -> Claim:
    known = [EXPECTED[scene][way] for way in rows["assigned"].tolist()]
    columns = zip(*known, strict=True) if known else ((),) * 4
    return equals(SENTENCES[scene], rows, dict(zip(("PDQ", *COUNTS), map(list, columns), strict=True)))


def _largest_total(table: ResultTable) -> Claim:
    claim = "No other assignment has a larger total pPDQ, and some have a smaller one"
    ways = {way: table.where(assigned=way) for way in WAYS}
    if not len(ways["PDQ"]) or len({len(rows) for rows in ways.values()}) > 1 or not presets_in(table, "pPDQ"):
        return not_measured(claim, "every scene in all three ways")
    leads = {
        preset: np.stack([_totals(ways["PDQ"], preset) - _totals(ways[way], preset) for way in WAYS[1:]])
        for preset in presets_in(table, "pPDQ")
    }
    random = ~np.isin(ways["PDQ"]["scene"], list(EXPECTED))  # small scenes have their own claims
    holds = all(
        bool(lead.min() >= -ROUNDING) and (not random.any() or bool((lead[:, random].max(axis=1) > ROUNDING).all()))
        for lead in leads.values()
    )
    shown = [f"`{preset}` {lead.min():+.4f} to {lead.max():+.4f}" for preset, lead in leads.items()]
    return Claim(
        claim,
        holds,
        f"total pPDQ minus that of greedy and by confidence: {', '.join(shown)}; {_describe_matches(ways['greedy'])}",
        f"never less, within {ROUNDING:g}, and sometimes more than both with random errors",
        {f"least lead, {preset}": float(lead.min()) for preset, lead in leads.items()}
        | {f"largest lead, {preset}": float(lead.max()) for preset, lead in leads.items()},
    )


def _totals(rows: ResultTable, preset: str) -> Floats:
    """Return the sum of pPDQ over true positives, from its mean; 0 without true positives."""
    count = rows[column_of("TP", preset)]
    return np.where(count > 0, count * np.nan_to_num(rows[column_of("pPDQ", preset)]), 0.0)


def _describe_matches(greedy: ResultTable) -> str:
    parts = []
    for scene in ("crowd", "truth"):
        rows = greedy.where(scene=scene)
        for count in np.unique(rows["objects"]).tolist() if len(rows) else ():
            part = rows.where(objects=count)
            parts.append(f"{part['other_matches'].mean():.1f} in {part['other_images'].mean():.1f} images ({scene}, "
                         f"{count:.3g} objects per image)")  # fmt: skip
    return "mean number of detections with another match if greedy: " + (", ".join(parts) or "not measured")


def _leads(rows: ResultTable, way: str, claim: str) -> Claim:
    """Return the claim that PDQ is higher with optimal assignment, by more than two standard errors over repeats."""
    own, other = rows.where(assigned="PDQ"), rows.where(assigned=way)
    missing = "a crowd in two repeats or more"
    if len(own) < 2 or len(own) != len(other):
        return not_measured(claim, missing)

    def judge(preset: str, column: str) -> Judgement:
        mean = mean_of(own[column] - other[column])
        words = f"`{preset}` {mean:.4f} of {own[column].mean():.4f}"
        return mean.is_above(), words, {f"lost, {preset}": mean.value, f"standard error, {preset}": mean.error}

    shown = f"PDQ lost with {rows['objects'].max():g} objects per image: {{}}"
    required = "more than two standard errors"
    return judge_presets(claim, rows, required, judge, missing=missing, shown=shown, between=", ")


def draw_assignment(table: ResultTable) -> Figure:
    """Draw pPDQ and assignments of two small scenes, and the loss of other assignments in crowds."""
    figure = new_figure(8.4, 3.4)
    first, second, right = figure.subplots(1, 3, width_ratios=(0.9, 1.05, 1.3))
    for axes, scene, title in ((first, "two or one", "Greedy loses"), (second, "total or PDQ", "Greedy wins")):
        _draw_matrix(axes, scene, table.where(scene=scene))
        axes.set_title(title)
    crowd = table.where(scene="crowd")
    styles = {"greedy": (VERMILION, "s"), "confidence": (GREY, "D")}
    for preset, column in presets_in(crowd).items():
        for way, (colour, marker) in styles.items():
            counts = np.unique(crowd["objects"])
            lost, errors = [], []
            for count in counts.tolist():
                rows = crowd.where(objects=count)
                lead = rows.where(assigned="PDQ")[column] - rows.where(assigned=way)[column]
                lost.append(mean_of(lead).value)
                errors.append(float(np.nan_to_num(mean_of(lead).error)))
            plain = preset == "reference"
            name = {"greedy": "greedy", "confidence": "by confidence"}[way]
            right.errorbar(
                counts, lost, errors, color=colour, marker=marker if plain else "none", ms=5, mfc="white",
                lw=1.6 if plain else 1.0, ls="-" if plain else "--", capsize=2,
                label=name if plain else f"{name}, {preset}",
            )  # fmt: skip
    if len(crowd):
        set_log_ticks(right, np.unique(crowd["objects"]))
        right.legend(loc="upper left", fontsize=7.5)
    right.set(xlabel="objects per image", ylabel="PDQ lost", title="Loss of other assignments in crowds")
    return figure


def _draw_matrix(axes: Axes, scene: str, rows: ResultTable) -> None:
    """Draw pPDQ of objects (rows) and detections, rings around pairs of PDQ, squares around greedy ones."""
    count, labels = LABELS[scene]
    quality = np.sqrt(np.array(labels)[:, :count].T)
    truth, found = small_scene(scene)
    axes.imshow(quality, cmap="Greys", vmin=0, vmax=2.2)
    for there, detection in np.ndindex(*quality.shape):
        axes.text(detection, there, f"{quality[there, detection]:.2f}", ha="center", va="center", fontsize=8.5)
    (result,) = _evaluate(Run(presets=("paper",)), truth, found).values()
    marks = {"PDQ": (result, "o", BLUE, 22), "greedy": (_assign_again(result, "greedy"), "s", ORANGE, 24)}
    words = {"PDQ": "rings: optimal", "greedy": "squares: greedy"}
    lines = []
    for way, (judged, marker, colour, size) in marks.items():
        partners = judged.detections.partners
        at = np.flatnonzero(partners >= 0)
        axes.plot(at, partners[at], marker, ms=size, mfc="none", mec=colour, mew=1.8, ls="none")
        pdq, tp = (
            next((float(rows.where(assigned=way)[column][0]) for column in presets_in(rows, key).values()), np.nan)
            for key in ("PDQ", "TP")
        )
        lines.append(f"{words[way]}, PDQ {pdq:.3f}, {tp:g} TP")
    axes.set_xlabel("\n".join(lines), loc="left", fontsize=8)
    axes.set_xticks(range(len(labels)), [f"D{number + 1}" for number in range(len(labels))])
    axes.set_yticks(range(count), [chr(ord("A") + number) for number in range(count)])
    axes.grid(False)


ASSIGNMENT = Experiment(
    name="assignment",
    section="5.4",
    varied="assignment of detections: optimal, greedy, by confidence",
    claim="the optimal assignment maximizes total pPDQ; in crowds other assignments lower PDQ",
    function=assignment,
    judge=claims_of_assignment,
    draw=draw_assignment,
)
