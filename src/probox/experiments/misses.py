"""What the measures make of missed objects and false detections: appendices B.4, B.5 and C.2."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from probox.experiments.claims import Claim, falls, stays_perfect
from probox.experiments.experiment import Experiment
from probox.experiments.figures import draw_curves
from probox.experiments.running import Run
from probox.experiments.scenes import (
    border_squares,
    boxes_in_one_image,
    evenly,
    fingerprint,
    pixel_aligned,
    square_scene,
    synthetic_truth,
)
from probox.experiments.simulate import SimulatedDetector
from probox.experiments.table import ResultTable
from probox.tables.groundtruth import GroundTruth

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
ALIKE = 0.03
"""How far measures may be apart that respond alike: mAP reads precision at 101 recalls, a hundredth apart."""


def missed_small(*, counts: Sequence[int] = COUNTS, run: Run | None = None) -> ResultTable:
    """Add small objects at the border that are not detected, beside a large one that is (B.4).

    Returns
    -------
    ResultTable
        `missed`; `PDQ`, `PDQ_paper`, `mAP`, `moLRP`.
    """
    run = run or Run()
    found = SimulatedDetector().detect(square_scene(SIDE, IMAGE))

    def point(missed: int) -> dict[str, float]:
        return run.measure(square_scene(SIDE, IMAGE, extra=border_squares(missed, IMAGE)), found)

    return run.table("missed-small", [{"missed": int(count)} for count in counts], point)


def claims_of_missed_small(table: ResultTable) -> list[Claim]:
    """Judge that a missed object costs the same in all measures."""
    return [_alike("All three respond alike to missed objects", table)]


MISSED_SMALL = Experiment(
    name="missed-small",
    section="B.4",
    varied="number of undetected 2 x 2 objects at the border",
    claim="all three respond alike",
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
        `rate`, `repeat`; `PDQ`, `PDQ_paper`, `mAP`, `moLRP`.
    """
    run = run or Run()
    objects = pixel_aligned(synthetic_truth() if truth is None else truth)

    def point(rate: float, repeat: int) -> dict[str, float]:
        found = SimulatedDetector(miss_rate=rate).detect(objects, seed=[seed, repeat])
        return run.measure(objects, found)

    points = [{"rate": float(rate), "repeat": repeat} for repeat in range(repeats) for rate in rates]
    return run.table("missed-coco", points, point, truth=fingerprint(objects), seed=seed)


def claims_of_missed_coco(table: ResultTable) -> list[Claim]:
    """Judge that a missed object costs the same in all measures."""
    return [_alike("All three respond alike to missed objects", table.mean_over("repeat"))]


MISSED_COCO = Experiment(
    name="missed-coco",
    section="B.4",
    varied="rate of missed objects, the others detected perfectly",
    claim="all three respond alike",
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
    values = np.stack(
        [table["PDQ"] / np.sqrt(label), table["PDQ_paper"] / np.sqrt(label), table["mAP"], 1 - table["moLRP"]]
    )
    apart = values.max(axis=0) - values.min(axis=0)
    worst = int(apart.argmax())
    pdq, _, ap, lrp = values[:, worst]
    name = "PDQ" if label == 1.0 else f"PDQ / sqrt({label:g})"
    return Claim(
        claim,
        bool(apart.max() <= ALIKE),
        f"furthest apart by {apart.max():.3f}: {name} {pdq:.3f}, mAP {ap:.3f}, 1 - moLRP {lrp:.3f}",
        f"at most {ALIKE} apart",
        {"apart": float(apart.max()), "PDQ": float(pdq), "mAP": float(ap), "1 - moLRP": float(lrp)},
    )


def false_small(*, counts: Sequence[int] = COUNTS, run: Run | None = None) -> ResultTable:
    """Add small false detections with probability 1.0 beside a correct one with 0.9 (B.5).

    Returns
    -------
    ResultTable
        `false`; `PDQ`, `PDQ_paper`, `mAP`, `moLRP`.
    """
    return _beside_a_correct_one("false-small", counts, 0.9, 1.0, run or Run())


def claims_of_false_small(table: ResultTable) -> list[Claim]:
    """Judge that a false detection costs the same in all measures."""
    return [
        _alike(
            "All three respond alike to false detections, but for the label probability 0.9 that PDQ sees", table, 0.9
        )
    ]


FALSE_SMALL = Experiment(
    name="false-small",
    section="B.5",
    varied="number of small false detections at 1.0 beside a correct one at 0.9",
    claim="all three respond alike",
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
        `false`; `PDQ`, `PDQ_paper`, `mAP`, `moLRP`.
    """
    return _beside_a_correct_one("lower-confidence", counts, 1.0, 0.9, run or Run())


def claims_of_lower_confidence(table: ResultTable) -> list[Claim]:
    """Judge that mAP and moLRP do not see false detections of lower confidence."""
    return [stays_perfect(table), falls("PDQ falls with every false detection", table, "false")]


def _beside_a_correct_one(name: str, counts: Sequence[int], correct: float, wrong: float, run: Run) -> ResultTable:
    truth = square_scene(SIDE, IMAGE)

    def point(false: int) -> dict[str, float]:
        boxes = np.concatenate([truth.masks.boxes, border_squares(false, IMAGE)])
        found = boxes_in_one_image(truth, boxes, [correct] + [wrong] * false)
        return run.measure(truth, found)

    return run.table(name, [{"false": int(count)} for count in counts], point)


LOWER_CONFIDENCE = Experiment(
    name="lower-confidence",
    section="C.2",
    varied="number of small false detections at 0.9 beside a perfect one at 1.0",
    claim="mAP and moLRP stay perfect; PDQ falls",
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
