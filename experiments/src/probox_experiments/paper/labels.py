"""What the measures make of label probabilities: section 6 of the paper, bottom, and appendix B.3."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from probox.tables.groundtruth import GroundTruth
from probox_experiments.claims import EXACT, Claim, equals, not_measured, stays_perfect
from probox_experiments.experiment import Experiment
from probox_experiments.figures import draw_curves, draw_label_coco
from probox_experiments.running import Run
from probox_experiments.scenes import PROBABILITIES, fingerprint, pixel_aligned, square_scene, synthetic_truth
from probox_experiments.simulate import SimulatedDetector
from probox_experiments.table import ResultTable, presets_in

__all__ = ["LABEL_COCO", "LABEL_UNCERTAINTY", "label_coco", "label_uncertainty"]

PARTS = ("foreground", "background", "label")
EXCHANGED = 0.001
"""How much PDQ may gain where objects with nearly the same box exchange their detections.

A wrong name is then the likelier one, but of 80 classes each has 1/79 at most, so an object gains at most 0.11: one
object in a hundred may do so.
"""
WORTHLESS = 0.01
"""How much may be left of mAP and 1 - moLRP under wrong names: as many may hit an object of that name by chance."""


def label_uncertainty(
    *,
    probabilities: Sequence[float] = PROBABILITIES[2:],
    classes: int = 10,
    run: Run | None = None,
) -> ResultTable:
    """Vary the probability of the true class, always the largest, of one perfect box (section 6, figure 5, bottom).

    Returns
    -------
    ResultTable
        `probability`, `largest` (whether the true class is the most probable); `PDQ`, `foreground`, `background` and
        `label` under every preset, `mAP`, `moLRP`. A probability at which all classes are equal is left out.
    """
    run = run or Run()
    truth = square_scene(side=100, image=400, classes=classes)

    def point(probability: float, largest: bool) -> dict[str, float]:
        return run.measure(truth, SimulatedDetector(label_probability=probability).detect(truth), also=PARTS)

    return run.table("label-uncertainty", _points(probabilities, classes), point, classes=classes)


def _points(probabilities: Sequence[float], classes: int) -> list[dict[str, float | bool]]:
    """Return the probabilities, and whether each is the largest; where all are equal, order would decide: left out."""
    even_share = 1 / classes if classes > 1 else -1.0
    return [
        {"probability": float(p), "largest": float(p) > even_share}
        for p in probabilities
        if abs(p - even_share) > EXACT
    ]


def claims_of_label_uncertainty(table: ResultTable) -> list[Claim]:
    """Judge PDQ = sqrt(p) and mAP = 1."""
    matched = table.take(table["probability"] > EXACT)  # without a label there is no match, and nothing to say of it
    ones = np.ones(len(matched))
    return [
        equals("PDQ is the square root of the true class's probability", table, {"PDQ": np.sqrt(table["probability"])}),
        equals(
            "Foreground and background quality are 1, and the label quality is the probability",
            matched,
            {"foreground": ones, "background": ones, "label": matched["probability"]},
        ),
        stays_perfect(table.where(largest=True), measures=("mAP",)),
    ]


LABEL_UNCERTAINTY = Experiment(
    name="label-uncertainty",
    section="6, figure 5 bottom",
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
        `probability`, `largest` (whether the true class is the most probable); `PDQ` under every preset, `mAP`,
        `moLRP`. A probability at which all classes are equal is left out: the order of the classes would decide.
    """
    run = run or Run()
    objects = pixel_aligned(synthetic_truth() if truth is None else truth)

    def point(probability: float, largest: bool) -> dict[str, float]:
        detector = SimulatedDetector(label_probability=probability)
        return run.measure(objects, detector.detect(objects, seed))

    return run.table("label-coco", _points(probabilities, len(objects.classes)), point, truth=fingerprint(objects))


def claims_of_label_coco(table: ResultTable) -> list[Claim]:
    """Judge that PDQ is the root of the label probability, and that the others only see which class is the largest."""
    first, rest = table.where(largest=True), table.where(largest=False)
    return [
        equals(
            "PDQ is the square root of the true class's probability while that is the largest",
            first,
            {"PDQ": np.sqrt(first["probability"])},
        ),
        _root_or_more(rest),
        _only_the_largest(first, rest),
    ]


def _root_or_more(rest: ResultTable) -> Claim:
    claim = "Where another class is larger, it is that root too, or a little more"
    required = f"above by -{EXACT:g} to {EXCHANGED:g}"
    columns = presets_in(rest)
    if not columns or not len(rest):
        return not_measured(claim, required)
    above = np.stack([rest[column] - np.sqrt(rest["probability"]) for column in columns.values()])
    return Claim(
        claim,
        bool(above.min() >= -EXACT and above.max() <= EXCHANGED),
        f"above by {above.min():.2g} to {above.max():.2g}",
        required,
        {"least": float(above.min()), "most": float(above.max())},
        "Objects whose boxes are nearly the same may exchange their detections if the wrong name is the likelier one; "
        "the best assignment is never worse than each object's own detection.",
    )


def _only_the_largest(first: ResultTable, rest: ResultTable) -> Claim:
    claim = "mAP and moLRP change only where the true class stops being the largest"
    alike = stays_perfect(first)
    required = f"while largest: {alike.required}; after: mAP at most {WORTHLESS:g}, moLRP at least {1 - WORTHLESS:g}"
    if alike.holds is None or (alike.holds and not len(rest)):
        return not_measured(claim, required)
    low, high = float(rest["mAP"].max(initial=0.0)), float(rest["moLRP"].min(initial=1.0))
    return Claim(
        claim,
        alike.holds and low <= WORTHLESS and high >= 1 - WORTHLESS,
        f"while largest: {alike.measured}; after: highest mAP {low:.3g}, lowest moLRP {high:.3g}",
        required,
        {**alike.numbers, "mAP after": low, "moLRP after": high},
    )


LABEL_COCO = Experiment(
    name="label-coco",
    section="B.3",
    varied="probability of the true class, the rest spread evenly, perfect boxes",
    claim="PDQ = sqrt(p); mAP and moLRP change only where the true class stops being the largest",
    function=label_coco,
    judge=claims_of_label_coco,
    draw=draw_label_coco,
    takes=("truth", "seed"),
)
