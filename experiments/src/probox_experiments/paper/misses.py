"""Missed objects and false positives: appendices B.4, B.5 and C.2."""

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

# --- Missed objects and false positives: appendices B.4, B.5 and C.2 ---

COUNTS = tuple(range(11))
SIDE, IMAGE = 500, 2000
CORRECT = 0.9
"""Label probability of the correct detection beside false positives of probability 1."""
COUNTED, AVERAGED = ("TP", "FP", "FN"), ("foreground", "background", "label")
ALIKE = 0.03
"""Tolerance of metrics with the same response: mAP samples precision at steps of 0.01 in recall."""


def missed_small(*, counts: Sequence[int] = COUNTS, run: Run | None = None) -> ResultTable:
    """Add small missed objects at the border, beside a large detected one (B.4).

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
    """Return the claims on the equal cost of a missed object in all metrics."""
    objects = table["missed"] + 1
    return [
        equals("With one of n + 1 objects detected, PDQ is 1 / (n + 1)", table, {"PDQ": 1 / objects}),
        equals(
            "There are one true positive, n false negatives and no false positive",
            table,
            {"TP": np.ones(len(table)), "FP": np.zeros(len(table)), "FN": table["missed"]},
        ),
        equals(
            "Averages are over matched pairs: foreground, background and label quality are 1",
            table,
            dict.fromkeys(AVERAGED, np.ones(len(table))),
        ),
        equals("1 - moLRP is 1 / (n + 1)", table, {"1 - moLRP": 1 / objects}),
        equals(
            "mAP is the fraction of its 101 recalls, 0 to 1, that are at most 1 / (n + 1)",
            table,
            {"mAP": (100 // objects + 1) / 101},
        ),
        _alike("All three respond equally to missed objects", table),
    ]


MISSED_SMALL = Experiment(
    name="missed-small",
    section="B.4",
    varied="number of undetected 2 x 2 objects at the border",
    claim="all three respond equally: PDQ = 1 / (n + 1)",
    function=missed_small,
    judge=claims_of_missed_small,
    draw=plot_curves("missed", "Missed objects", "small missed objects, beside a large detected one", integers=True),
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
        `rate`, `repeat`; `missed`, the fraction of missed objects; `PDQ` under every preset, `mAP`, `moLRP`.
    """
    run = run or Run()
    objects = pixel_aligned(synthetic_truth() if truth is None else truth)

    def point(rate: float, repeat: int) -> dict[str, float]:
        found = SimulatedDetector(miss_rate=rate).detect(objects, seed=[seed, repeat])
        return {"missed": 1 - len(found) / len(objects), **run.measure(objects, found)}

    points = [{"rate": float(rate), "repeat": repeat} for repeat in range(repeats) for rate in rates]
    return run.table("missed-coco", points, point, truth=fingerprint(objects), seed=seed)


def claims_of_missed_coco(table: ResultTable) -> list[Claim]:
    """Return the claims on the equal cost of missed objects, and on PDQ's exact value."""
    return [
        equals("PDQ is the fraction of detected objects", table, {"PDQ": 1 - table["missed"]}),
        _alike("All three respond equally to missed objects", table.mean_over("repeat")),
    ]


MISSED_COCO = Experiment(
    name="missed-coco",
    section="B.4",
    varied="rate of missed objects, the others detected perfectly",
    claim="all three respond equally: PDQ = 1 - fraction missed",
    function=missed_coco,
    judge=claims_of_missed_coco,
    draw=plot_curves("rate", "Missed objects, many images", "fraction of missed objects"),
)


def _alike(claim: str, table: ResultTable, label: float = 1.0) -> Claim:
    """Return the claim that PDQ (over the square root of a label probability), mAP and 1 - moLRP are close."""
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
    """Return the claims on the equal cost of a false positive in all metrics."""
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
            "All three respond equally to false positives, except for PDQ's factor of the label probability 0.9",
            table,
            CORRECT,
        ),
    ]


FALSE_SMALL = Experiment(
    name="false-small",
    section="B.5",
    varied="number of small false detections at 1.0 beside a correct one at 0.9",
    claim="all three respond equally: PDQ = sqrt(0.9) / (n + 1)",
    function=false_small,
    judge=claims_of_false_small,
    draw=plot_curves(
        "false",
        "False positives of higher confidence",
        "false positives (1.0) beside a correct detection (0.9)",
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
    """Return the claims that mAP and moLRP ignore false positives of lower confidence."""
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
        "False positives of lower confidence",
        "false positives (0.9) beside a perfect detection (1.0)",
        integers=True,
        legend="center right",
    ),
)


# --- False positives anywhere in the image, before, after or around the correct detection: appendix C.1 ---

PLACES = ("first", "last", "anywhere")
"""Rank of the correct detection among all detections."""

LIMIT = 3.0
"""Tolerance of a mean in standard errors; one mean in 370 exceeds it by chance."""


def false_positions(
    *,
    counts: Sequence[int] = (0, 1, 2, 3, 5, 10),
    repeats: int = 40,
    side: int = 50,
    image: int = 200,
    seed: int = 0,
    run: Run | None = None,
) -> ResultTable:
    """Add false positives of equal confidence anywhere in the image except on the object.

    Parameters
    ----------
    counts : sequence of int
        Number of false positives.
    repeats, seed : int
        Number of random draws of false boxes and of the rank of the correct one; random seed.
    side, image : int
        Width and height of the object and of the image.
    run : Run, optional
        Threads, progress, checkpoint.

    Returns
    -------
    ResultTable
        `place` of the correct detection among all (``first``, ``last`` or ``anywhere``), `false`, `repeat`; `before`
        (number of false positives before it); `PDQ`, `PDQ_paper`, `mAP`, `moLRP`.
    """
    run = run or Run()
    if not 0 < side <= image // 2:
        raise InputError(f"expected an object of at most half the image's width, but got {side} of {image} pixels")
    if not all(0 <= count < MAX_DETECTIONS for count in counts):
        raise InputError(
            f"expected up to {MAX_DETECTIONS - 1} false detections, but got {', '.join(map(str, counts))}",
            remedy=f"mAP uses {MAX_DETECTIONS} detections per image and class, which must include the correct one",
        )
    truth = square_scene(side, image)

    def point(place: str, false: int, repeat: int) -> dict[str, float]:
        rng = np.random.default_rng([seed, repeat, false])
        wrong = boxes_beside(truth.masks.boxes[0], false, image, rng)
        # Always drawn, so that all three places use the same false boxes.
        any_place = int(rng.integers(0, false + 1))
        before = {"first": 0, "last": false, "anywhere": any_place}[place]
        boxes = np.concatenate([wrong[:before], truth.masks.boxes, wrong[before:]])
        found = boxes_in_one_image(truth, boxes, [1.0] * len(boxes))
        return {"before": float(before)} | run.measure(truth, found)

    points: list[dict[str, Any]] = [
        {"place": place, "false": int(count), "repeat": repeat}
        for place in PLACES
        for count in counts
        # One draw of boxes is enough; random ranks need many.
        for repeat in range(repeats if place == "anywhere" and count else 1)
    ]
    return run.table("false-positions", points, point, side=side, image=image, seed=seed)


def boxes_beside(
    object_box: npt.NDArray[np.int32], count: int, image: int, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Return inclusive boxes of random size and place in a square image that do not overlap the object's box."""
    boxes = np.zeros((0, 4), np.int64)
    while len(boxes) < count:
        corners = np.sort(rng.integers(0, image, (count, 2, 2)), axis=1)  # two points: the smaller x and y first
        drawn = corners.reshape(count, 4)
        touching = ((drawn[:, :2] <= object_box[2:]) & (drawn[:, 2:] >= object_box[:2])).all(axis=1)
        boxes = np.concatenate([boxes, drawn[~touching]])
    return boxes[:count]


def mean_anywhere(false: int) -> tuple[float, float]:
    """Return mean and standard deviation of 1/(k + 1), with k uniform from 0 to the number of false positives.

    >>> mean_anywhere(1)
    (0.75, 0.25)
    """
    values = 1 / np.arange(1, false + 2)
    return float(values.mean()), float(values.std())


def claims_of_false_positions(table: ResultTable) -> list[Claim]:
    """Return the claims that mAP counts false positives before the correct detection, PDQ and moLRP all of them."""
    first, last = table.where(place="first"), table.where(place="last")
    share = 1 / (table["false"] + 1)
    return [
        equals("False positives after the correct detection are hidden: mAP stays 1", first, {"mAP": 1.0}),
        equals("With n false positives before it, mAP is 1/(n + 1)", last, {"mAP": 1 / (last["false"] + 1)}),
        equals("With k of n false positives before it, mAP is 1/(k + 1)", table, {"mAP": 1 / (table["before"] + 1)}),
        _mean_of_any_place(table.where(place="anywhere")),
        equals(
            "PDQ and 1 - moLRP with n false positives are 1/(n + 1) in any order",
            table,
            dict.fromkeys(("PDQ", "1 - moLRP"), share),
        ),
    ]


def _mean_of_any_place(rows: ResultTable) -> Claim:
    claim = "With the correct detection at a random rank, mAP is the mean of 1, 1/2 .. 1/(n + 1) on average"
    rows = rows.take(rows["false"] > 0)
    counts = np.unique(rows["false"]).tolist()
    if not counts or min(len(rows.where(false=count)) for count in counts) < 2:
        return not_measured(claim, "false positives in two repeats or more")
    off: dict[int, float] = {}
    variance = 0.0
    parts = []
    for count in counts:
        values = rows.where(false=count)["mAP"]
        mean, deviation = mean_anywhere(count)
        off[count] = float(values.mean() - mean)
        variance += deviation**2 / len(values)
        parts.append(f"{count}: {values.mean():.3f} for {mean:.3f}")
    # Draws with different numbers of false positives are independent, so the variances of their means add up.
    error = float(np.sqrt(variance)) / len(counts)
    mean_off = float(np.mean(list(off.values())))
    return Claim(
        claim,
        abs(mean_off) <= LIMIT * error + EXACT,
        f"{', '.join(parts)}; mean difference over n {mean_off:+.4f} ± {error:.4f}",
        f"within {LIMIT:g} standard errors, known from the n + 1 places",
        {f"off, {count} false": value for count, value in off.items()} | {"off": mean_off, "standard error": error},
    )


def draw_false_positions(table: ResultTable) -> Figure:
    """Draw the metrics against the number of false positives, one panel per place of the correct detection."""
    figure = new_figure(7.6, 3.2)
    panels = figure.subplots(1, 3, sharey=True)
    titles = {"first": "Correct one first", "last": "Correct one last", "anywhere": "Correct one anywhere"}
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
        axes.set(xlabel="false positives, n", ylim=(-0.04, 1.07), title=titles[place])
    panels[0].set_ylabel("score")
    handles, labels = panels[-1].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside lower center", ncols=len(labels))
    return figure


FALSE_POSITIONS = Experiment(
    name="false-positions",
    section="C.1",
    varied="rank of false positives of equal confidence: after the correct detection, before it, random",
    claim="mAP counts only those before it; PDQ and moLRP fall as 1/(n + 1) in any order",
    function=false_positions,
    judge=claims_of_false_positions,
    draw=draw_false_positions,
)
