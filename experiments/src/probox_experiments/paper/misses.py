"""What the measures make of missed objects and false detections: appendices B.4, B.5 and C.2."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from probox.tables.groundtruth import GroundTruth
from probox_experiments.claims import Claim, equals, not_measured, stays_perfect
from probox_experiments.experiment import Experiment
from probox_experiments.figures import draw_curves
from probox_experiments.running import Run
from probox_experiments.scenes import (
    border_squares,
    boxes_in_one_image,
    evenly,
    fingerprint,
    pixel_aligned,
    square_scene,
    synthetic_truth,
)
from probox_experiments.simulate import SimulatedDetector
from probox_experiments.table import ResultTable, presets_in

__all__ = [
    "FALSE_SMALL",
    "LOWER_CONFIDENCE",
    "MISSED_COCO",
    "MISSED_SMALL",
    "false_small",
    "lower_confidence",
    "missed_coco",
    "missed_small",
]

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
    draw=partial(
        draw_curves,
        x="missed",
        title="Missed objects",
        xlabel="small objects missed, beside a large one found",
        integers=True,
    ),
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
    draw=partial(
        draw_curves,
        x="rate",
        title="Missed objects, many images",
        xlabel="share of objects missed",
    ),
    takes=("truth", "repeats", "seed"),
)


def _alike(claim: str, table: ResultTable, label: float = 1.0) -> Claim:
    """Return the claim about PDQ (over the square root of a label probability), mAP and 1 - moLRP being close."""
    required = f"at most {ALIKE} apart"
    name = "PDQ" if label == 1.0 else f"PDQ / sqrt({label:g})"
    values = {
        name if preset == "reference" else f"{name} under `{preset}`": table[column] / np.sqrt(label)
        for preset, column in presets_in(table).items()
    }
    if not values or "mAP" not in table or "moLRP" not in table:
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
    draw=partial(
        draw_curves,
        x="false",
        title="False detections, surer than the correct one",
        xlabel="false detections (1.0) beside a correct one (0.9)",
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
    draw=partial(
        draw_curves,
        x="false",
        title="False detections, less sure than the correct one",
        xlabel="false detections (0.9) beside a perfect one (1.0)",
        integers=True,
        legend="center right",
    ),
)
