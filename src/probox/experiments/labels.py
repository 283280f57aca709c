"""What the measures make of label probabilities: section 6 of the paper, bottom, and appendix B.3."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from probox.experiments.claims import EXACT, Claim, at_most, falls, stays_perfect
from probox.experiments.experiment import Experiment
from probox.experiments.figures import draw_curves, draw_label_coco
from probox.experiments.running import Run
from probox.experiments.scenes import PROBABILITIES, fingerprint, pixel_aligned, square_scene, synthetic_truth
from probox.experiments.simulate import SimulatedDetector
from probox.experiments.table import ResultTable
from probox.tables.groundtruth import GroundTruth

__all__ = ["LABEL_COCO", "LABEL_UNCERTAINTY", "label_coco", "label_uncertainty"]


def label_uncertainty(
    *,
    probabilities: Sequence[float] = PROBABILITIES[2:],
    classes: int = 10,
    run: Run | None = None,
) -> ResultTable:
    """Vary the probability of the true class, always the largest, of one perfectly placed box (section 6, bottom).

    Returns
    -------
    ResultTable
        `probability`; `PDQ`, `PDQ_paper`, `mAP`, `moLRP`.
    """
    run = run or Run()
    truth = square_scene(side=100, image=400, classes=classes)

    def point(probability: float) -> dict[str, float]:
        return run.measure(truth, SimulatedDetector(label_probability=probability).detect(truth))

    return run.table("label-uncertainty", [{"probability": p} for p in probabilities], point, classes=classes)


def claims_of_label_uncertainty(table: ResultTable) -> list[Claim]:
    """Judge PDQ = sqrt(p) and mAP = 1."""
    distance = max(float(np.abs(table[name] - np.sqrt(table["probability"])).max()) for name in ("PDQ", "PDQ_paper"))
    return [
        at_most("PDQ is the square root of the true class's probability", "largest |PDQ - sqrt(p)|", distance, EXACT),
        stays_perfect(table, measures=("mAP",)),
    ]


LABEL_UNCERTAINTY = Experiment(
    name="label-uncertainty",
    section="6, bottom",
    varied="probability of the true class, always the largest, of one perfect box",
    claim="PDQ = sqrt(p); mAP stays 1",
    function=label_uncertainty,
    judge=claims_of_label_uncertainty,
    draw=partial(
        draw_curves,
        x="probability",
        title="PDQ evaluates the label probability",
        xlabel="probability of the true class",
        measures=("mAP", "PDQ"),
        legend="lower right",
    ),
)


def label_coco(
    truth: GroundTruth | None = None,
    *,
    probabilities: Sequence[float] = (0.0, 0.005, 0.01, 0.02, *PROBABILITIES),
    seed: int = 0,
    run: Run | None = None,
) -> ResultTable:
    """Vary the probability of the true class, the others sharing the rest evenly, of perfect boxes (B.3).

    Returns
    -------
    ResultTable
        `probability`, `largest` (whether the true class is the most probable); `PDQ`, `PDQ_paper`, `mAP`, `moLRP`.
        A probability at which all classes are equal is left out: the order of the classes would decide.
    """
    run = run or Run()
    objects = pixel_aligned(synthetic_truth() if truth is None else truth)
    even_share = 1 / len(objects.classes) if len(objects.classes) > 1 else -1.0

    def point(probability: float, largest: bool) -> dict[str, float]:
        detector = SimulatedDetector(label_probability=probability)
        return run.measure(objects, detector.detect(objects, seed))

    points = [
        {"probability": float(p), "largest": float(p) > even_share}
        for p in probabilities
        if abs(p - even_share) > EXACT
    ]
    return run.table("label-coco", points, point, truth=fingerprint(objects))


def claims_of_label_coco(table: ResultTable) -> list[Claim]:
    """Judge that PDQ falls with the label probability and that the others only see which class is the largest."""
    first, rest = table.where(largest=True), table.where(largest=False)
    alike = stays_perfect(first, tolerance=0.005)
    low, high = float(rest["mAP"].max(initial=0.0)), float(rest["moLRP"].min(initial=1.0))
    return [
        falls("PDQ falls with the probability of the true class", table, "probability", rising=True),
        Claim(
            "mAP and moLRP change only where the true class stops being the largest",
            alike.holds and low < 0.5 and high > 0.5,
            f"while largest: {alike.measured}; after: highest mAP {low:.3g}, lowest moLRP {high:.3g}",
            f"while largest: {alike.required}; after: mAP below and moLRP above 0.5",
            {**alike.numbers, "mAP after": low, "moLRP after": high},
        ),
    ]


LABEL_COCO = Experiment(
    name="label-coco",
    section="B.3",
    varied="probability of the true class, the rest spread evenly, perfect boxes",
    claim="PDQ falls; mAP and moLRP change only where the true class stops being the largest",
    function=label_coco,
    judge=claims_of_label_coco,
    draw=draw_label_coco,
    takes=("truth", "seed"),
)
