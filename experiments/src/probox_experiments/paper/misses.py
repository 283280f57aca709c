"""What the measures make of missed objects and false detections: appendices B.4, B.5 and C.2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.measures.boxes.matching import MAX_DETECTIONS
from probox.tables.groundtruth import GroundTruth
from probox_experiments.claims import EXACT, Claim, ResultTable, equals, not_measured, presets_in, stays_perfect
from probox_experiments.experiment import Experiment
from probox_experiments.figures import BLUE, Figure, measure_lines, new_figure, plot_curves, shown
from probox_experiments.running import Run
from probox_experiments.synthetic import (
    SimulatedDetector,
    border_squares,
    boxes_in_one_image,
    evenly,
    fingerprint,
    pixel_aligned,
    square_scene,
    synthetic_truth,
)

# --- What the measures make of missed objects and false detections: appendices B.4, B.5 and C.2 ---

COUNTS = tuple(range(11))
SIDE, IMAGE = 500, 2000
CORRECT = 0.9
"""The label probability of the correct detection beside surer, false ones."""
COUNTED, AVERAGED = ("TP", "FP", "FN"), ("foreground", "background", "label")
ALIKE = 0.03
"""How far measures may be apart that respond alike: mAP reads precision at 101 recalls, a hundredth apart."""


def missed_small(*, counts: Sequence[int] = COUNTS, run: Run | None = None) -> ResultTable:
    """Add small objects at the border that are not detected, beside a large one that is (B.4).

    Returns
    -------
    ResultTable
        `missed`; `PDQ`, its counts and its averages under every preset, `mAP`, `moLRP`.
    """
    run = run or Run()
    found = SimulatedDetector().detect(square_scene(SIDE, IMAGE))

    def point(missed: int) -> dict[str, float]:
        truth = square_scene(SIDE, IMAGE, extra=border_squares(missed, IMAGE))
        return run.measure(truth, found, also=(*COUNTED, *AVERAGED))

    return run.table("missed-small", [{"missed": int(count)} for count in counts], point)


def claims_of_missed_small(table: ResultTable) -> list[Claim]:
    """Judge that a missed object costs the same in all measures, and how much."""
    objects = table["missed"] + 1
    return [
        equals("With one of n + 1 objects found, PDQ is 1 / (n + 1)", table, {"PDQ": 1 / objects}),
        equals(
            "There are one true positive, n false negatives and no false positive",
            table,
            {"TP": np.ones(len(table)), "FP": np.zeros(len(table)), "FN": table["missed"]},
        ),
        equals(
            "Averages are over what was found: foreground, background and label quality are 1",
            table,
            dict.fromkeys(AVERAGED, np.ones(len(table))),
        ),
        equals("1 - moLRP is 1 / (n + 1)", table, {"1 - moLRP": 1 / objects}),
        equals(
            "mAP is the share of its 101 recalls, 0 to 1, that are at most 1 / (n + 1)",
            table,
            {"mAP": (100 // objects + 1) / 101},
        ),
        _alike("All three respond alike to missed objects", table),
    ]


MISSED_SMALL = Experiment(
    name="missed-small",
    section="B.4",
    varied="number of undetected 2 x 2 objects at the border",
    claim="all three respond alike: PDQ = 1 / (n + 1)",
    function=missed_small,
    judge=claims_of_missed_small,
    draw=plot_curves("missed", "Missed objects", "small objects missed, beside a large one found", integers=True),
)


def missed_coco(
    truth: GroundTruth | None = None,
    *,
    rates: Sequence[float] = evenly(0.0, 1.0, 11),
    repeats: int = 5,
    seed: int = 0,
    run: Run | None = None,
) -> ResultTable:
    """Miss objects at a given rate, and detect the others perfectly (B.4).

    Returns
    -------
    ResultTable
        `rate`, `repeat`; `missed`, the share of objects that were missed; `PDQ` under every preset, `mAP`, `moLRP`.
    """
    run = run or Run()
    objects = pixel_aligned(synthetic_truth() if truth is None else truth)

    def point(rate: float, repeat: int) -> dict[str, float]:
        found = SimulatedDetector(miss_rate=rate).detect(objects, seed=[seed, repeat])
        return {"missed": 1 - len(found) / len(objects), **run.measure(objects, found)}

    points = [{"rate": float(rate), "repeat": repeat} for repeat in range(repeats) for rate in rates]
    return run.table("missed-coco", points, point, truth=fingerprint(objects), seed=seed)


def claims_of_missed_coco(table: ResultTable) -> list[Claim]:
    """Judge that a missed object costs the same in all measures, and in PDQ exactly its share."""
    return [
        equals("PDQ is the share of objects that were not missed", table, {"PDQ": 1 - table["missed"]}),
        _alike("All three respond alike to missed objects", table.mean_over("repeat")),
    ]


MISSED_COCO = Experiment(
    name="missed-coco",
    section="B.4",
    varied="rate of missed objects, the others detected perfectly",
    claim="all three respond alike: PDQ = 1 - the share missed",
    function=missed_coco,
    judge=claims_of_missed_coco,
    draw=plot_curves("rate", "Missed objects, many images", "share of objects missed"),
)


def _alike(claim: str, table: ResultTable, label: float = 1.0) -> Claim:
    """Return the claim about PDQ (over the square root of a label probability), mAP and 1 - moLRP being close."""
    required = f"at most {ALIKE} apart"
    name = "PDQ" if label == 1.0 else f"PDQ / sqrt({label:g})"
    values = {
        name if preset == "reference" else f"{name} under `{preset}`": table[column] / np.sqrt(label)
        for preset, column in presets_in(table).items()
    }
    if not values:
        return not_measured(claim, required)
    values |= {"mAP": table["mAP"], "1 - moLRP": 1 - table["moLRP"]}
    scores = np.stack(list(values.values()))
    apart = np.ptp(scores, axis=0)
    worst = int(apart.argmax())
    there = dict(zip(values, scores[:, worst].tolist(), strict=True))
    return Claim(
        claim,
        bool(apart.max() <= ALIKE),
        f"furthest apart by {apart.max():.3f}: {', '.join(f'{what} {value:.3f}' for what, value in there.items())}",
        required,
        {"apart": float(apart.max()), **there},
    )


def false_small(*, counts: Sequence[int] = COUNTS, run: Run | None = None) -> ResultTable:
    """Add small false detections with probability 1.0 beside a correct one with 0.9 (B.5).

    Returns
    -------
    ResultTable
        `false`; `PDQ` and its counts under every preset, `mAP`, `moLRP`.
    """
    return _beside_a_correct_one("false-small", counts, CORRECT, 1.0, run or Run())


def claims_of_false_small(table: ResultTable) -> list[Claim]:
    """Judge that a false detection costs the same in all measures, and how much."""
    share = 1 / (table["false"] + 1)
    return [
        equals("With n false detections PDQ is sqrt(0.9) / (n + 1)", table, {"PDQ": np.sqrt(CORRECT) * share}),
        equals(
            "There are one true positive, n false positives and no false negative",
            table,
            {"TP": np.ones(len(table)), "FP": table["false"], "FN": np.zeros(len(table))},
        ),
        equals("mAP and 1 - moLRP are 1 / (n + 1)", table, dict.fromkeys(("mAP", "1 - moLRP"), share)),
        _alike(
            "All three respond alike to false detections, but for the label probability 0.9 that PDQ sees",
            table,
            CORRECT,
        ),
    ]


FALSE_SMALL = Experiment(
    name="false-small",
    section="B.5",
    varied="number of small false detections at 1.0 beside a correct one at 0.9",
    claim="all three respond alike: PDQ = sqrt(0.9) / (n + 1)",
    function=false_small,
    judge=claims_of_false_small,
    draw=plot_curves(
        "false",
        "False detections, surer than the correct one",
        "false detections (1.0) beside a correct one (0.9)",
        integers=True,
    ),
)


def lower_confidence(*, counts: Sequence[int] = COUNTS, run: Run | None = None) -> ResultTable:
    """Add small false detections with probability 0.9 beside a perfect one with 1.0 (C.2).

    Returns
    -------
    ResultTable
        `false`; `PDQ` and its counts under every preset, `mAP`, `moLRP`.
    """
    return _beside_a_correct_one("lower-confidence", counts, 1.0, 0.9, run or Run())


def claims_of_lower_confidence(table: ResultTable) -> list[Claim]:
    """Judge that mAP and moLRP do not see false detections of lower confidence."""
    return [
        stays_perfect(table),
        equals("With n false detections PDQ is 1 / (n + 1)", table, {"PDQ": 1 / (table["false"] + 1)}),
    ]


def _beside_a_correct_one(name: str, counts: Sequence[int], correct: float, wrong: float, run: Run) -> ResultTable:
    truth = square_scene(SIDE, IMAGE)

    def point(false: int) -> dict[str, float]:
        boxes = np.concatenate([truth.masks.boxes, border_squares(false, IMAGE)])
        found = boxes_in_one_image(truth, boxes, [correct] + [wrong] * false)
        return run.measure(truth, found, also=COUNTED)

    return run.table(name, [{"false": int(count)} for count in counts], point)


LOWER_CONFIDENCE = Experiment(
    name="lower-confidence",
    section="C.2",
    varied="number of small false detections at 0.9 beside a perfect one at 1.0",
    claim="mAP and moLRP stay perfect; PDQ = 1 / (n + 1)",
    function=lower_confidence,
    judge=claims_of_lower_confidence,
    draw=plot_curves(
        "false",
        "False detections, less sure than the correct one",
        "false detections (0.9) beside a perfect one (1.0)",
        integers=True,
        legend="center right",
    ),
)


# --- False detections anywhere in the image, before, after or around the right one: appendix C.1 ---

PLACES = ("first", "last", "anywhere")
"""Where the right detection stands among all that are handed in."""

LIMIT = 3.0
"""Standard errors that a mean may be off: one mean in 370 is further off by chance."""


def false_positions(
    *,
    counts: Sequence[int] = (0, 1, 2, 3, 5, 10),
    repeats: int = 40,
    side: int = 50,
    image: int = 200,
    seed: int = 0,
    run: Run | None = None,
) -> ResultTable:
    """Put false detections, as sure as the right one, anywhere in the image but on the object.

    Parameters
    ----------
    counts : sequence of int
        How many false detections.
    repeats, seed : int
        How often false boxes, and the place of the right one among them, are drawn; where that starts.
    side, image : int
        Width and height of the object and of the image.
    run : Run, optional
        Threads, progress, checkpoint.

    Returns
    -------
    ResultTable
        `place` of the right detection among all (``first``, ``last`` or ``anywhere``), `false`, `repeat`; `before`
        (how many false ones go before it); `PDQ`, `PDQ_paper`, `mAP`, `moLRP`.
    """
    run = run or Run()
    if not 0 < side <= image // 2:
        raise InputError(f"expected an object of at most half the image's width, but got {side} of {image} pixels")
    if not all(0 <= count < MAX_DETECTIONS for count in counts):
        raise InputError(
            f"expected up to {MAX_DETECTIONS - 1} false detections, but got {', '.join(map(str, counts))}",
            remedy=f"mAP takes {MAX_DETECTIONS} detections of an image and class, so the right one must be among them",
        )
    truth = square_scene(side, image)

    def point(place: str, false: int, repeat: int) -> dict[str, float]:
        rng = np.random.default_rng([seed, repeat, false])
        wrong = boxes_beside(truth.masks.boxes[0], false, image, rng)
        # Drawn in any case, so that the same false boxes are tried in all three places.
        any_place = int(rng.integers(0, false + 1))
        before = {"first": 0, "last": false, "anywhere": any_place}[place]
        boxes = np.concatenate([wrong[:before], truth.masks.boxes, wrong[before:]])
        found = boxes_in_one_image(truth, boxes, [1.0] * len(boxes))
        return {"before": float(before)} | run.measure(truth, found)

    points: list[dict[str, Any]] = [
        {"place": place, "false": int(count), "repeat": repeat}
        for place in PLACES
        for count in counts
        # One draw is enough to show that boxes beside the object are like any others; places need many.
        for repeat in range(repeats if place == "anywhere" and count else 1)
    ]
    return run.table("false-positions", points, point, side=side, image=image, seed=seed)


def boxes_beside(
    object_box: npt.NDArray[np.int32], count: int, image: int, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Return inclusive boxes of any size and place in a square image, none of which has a pixel of the object's box."""
    boxes = np.zeros((0, 4), np.int64)
    while len(boxes) < count:
        corners = np.sort(rng.integers(0, image, (count, 2, 2)), axis=1)  # two points: the smaller x and y first
        drawn = corners.reshape(count, 4)
        touching = ((drawn[:, :2] <= object_box[2:]) & (drawn[:, 2:] >= object_box[:2])).all(axis=1)
        boxes = np.concatenate([boxes, drawn[~touching]])
    return boxes[:count]


def mean_anywhere(false: int) -> tuple[float, float]:
    """Return the mean and the standard deviation of 1/(k + 1) with k anywhere from 0 to the number of false ones.

    >>> mean_anywhere(1)
    (0.75, 0.25)
    """
    values = 1 / np.arange(1, false + 2)
    return float(values.mean()), float(values.std())


def claims_of_false_positions(table: ResultTable) -> list[Claim]:
    """Judge that mAP sees the false detections that go before the right one, PDQ and moLRP all of them."""
    first, last = table.where(place="first"), table.where(place="last")
    share = 1 / (table["false"] + 1)
    return [
        equals("After the right detection, false ones anywhere are hidden: mAP stays 1", first, {"mAP": 1.0}),
        equals("Before it, n false ones count: mAP is 1/(n + 1)", last, {"mAP": 1 / (last["false"] + 1)}),
        equals("With k false ones before it, mAP is 1/(k + 1)", table, {"mAP": 1 / (table["before"] + 1)}),
        _mean_of_any_place(table.where(place="anywhere")),
        equals(
            "PDQ and 1 - moLRP of n false detections are 1/(n + 1), wherever they stand",
            table,
            dict.fromkeys(("PDQ", "1 - moLRP"), share),
        ),
    ]


def _mean_of_any_place(rows: ResultTable) -> Claim:
    claim = "With the right one anywhere, mAP is the mean of 1, 1/2 .. 1/(n + 1) on average"
    rows = rows.take(rows["false"] > 0)
    counts = np.unique(rows["false"]).tolist()
    if not counts or min(len(rows.where(false=count)) for count in counts) < 2:
        return not_measured(claim, "false detections in two repeats or more")
    off: dict[int, float] = {}
    variance = 0.0
    parts = []
    for count in counts:
        values = rows.where(false=count)["mAP"]
        mean, deviation = mean_anywhere(count)
        off[count] = float(values.mean() - mean)
        variance += deviation**2 / len(values)
        parts.append(f"{count}: {values.mean():.3f} for {mean:.3f}")
    # Draws with other numbers of false detections are independent, so the variances of their means add up.
    error = float(np.sqrt(variance)) / len(counts)
    mean_off = float(np.mean(list(off.values())))
    return Claim(
        claim,
        abs(mean_off) <= LIMIT * error + EXACT,
        f"{', '.join(parts)}; off by {mean_off:+.4f} ± {error:.4f} on average over n",
        f"within {LIMIT:g} standard errors, known from the n + 1 places",
        {f"off, {count} false": value for count, value in off.items()} | {"off": mean_off, "standard error": error},
    )


def draw_false_positions(table: ResultTable) -> Figure:
    """Draw the measures against the number of false detections, a panel for each place of the right one."""
    figure = new_figure(7.6, 3.2)
    panels = figure.subplots(1, 3, sharey=True)
    titles = {"first": "Right one first", "last": "Right one last", "anywhere": "Right one anywhere"}
    means = table.mean_over("repeat")
    for axes, place in zip(panels, PLACES, strict=True):
        part = means.where(place=place)
        if place == "anywhere":
            expected = [mean_anywhere(count)[0] for count in part["false"].tolist()]
            axes.plot(part["false"], expected, color="#D0D0D0", lw=7, label="mean of 1 .. 1/(n + 1)", zorder=1.5)
        for column, line in measure_lines():
            if column.key in part:
                axes.plot(part["false"], shown(part, column), **line, mew=1.2)
        for preset, name in presets_in(part).items():
            if preset != "reference":
                axes.plot(part["false"], part[name], color=BLUE, ls="--", lw=1.0, label=f"PDQ, {preset}")
        axes.set(xlabel="false detections, n", ylim=(-0.04, 1.07), title=titles[place])
    panels[0].set_ylabel("score")
    handles, labels = panels[-1].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside lower center", ncols=len(labels))
    return figure


FALSE_POSITIONS = Experiment(
    name="false-positions",
    section="C.1",
    varied="where sure false detections anywhere in the image stand: after the right one, before it, around it",
    claim="mAP sees only those before it; PDQ and moLRP fall as 1/(n + 1) in any case",
    function=false_positions,
    judge=claims_of_false_positions,
    draw=draw_false_positions,
)
