"""Uncertainty of perfect boxes: appendix B.1."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from probox.tables.groundtruth import GroundTruth
from probox_experiments.claims import EXACT, Claim, ResultTable, equals, falls, not_measured, presets_in, stays_perfect
from probox_experiments.experiment import Experiment
from probox_experiments.figures import draw_label_coco, plot_curves
from probox_experiments.paper.closed_form import EPSILON, box_map, foreground_background, pair_equals
from probox_experiments.running import Run
from probox_experiments.synthetic import (
    PROBABILITIES,
    SimulatedDetector,
    fingerprint,
    pixel_aligned,
    square_scene,
    synthetic_truth,
)

# --- Uncertainty of perfect boxes: appendix B.1 ---

PARTS = ("foreground", "background")
APPROXIMATED = 0.002
"""Relative tolerance for the region of interest and the cut at 0.0027.

Along an edge of standard deviation s the cut removes probabilities beyond 2.8 s: a loss of 0.0009 s per pixel of the
edge. An object of side L has four edges and L^2 pixels, so the loss is 0.0036 s / L: 0.0005 at s = 71 and L = 500.
Beyond the region of interest, an error of at most 0.0027 occurs in a strip of the same width.
"""


def box_probability(*, probabilities: Sequence[float] = PROBABILITIES, run: Run | None = None) -> ResultTable:
    """Vary the common probability of all pixels of a perfect box (B.1, first figure).

    Returns
    -------
    ResultTable
        `probability`; `PDQ`, `foreground` and `background` under every preset, `mAP`, `moLRP`.
    """
    run = run or Run()
    truth = square_scene(side=100, image=400)
    perfect = SimulatedDetector().detect(truth)
    inside = truth.masks.to_array(0, 400, 400)

    def point(probability: float) -> dict[str, float]:
        found = dataclasses.replace(perfect, heatmaps=(np.where(inside, probability, 0.0),))
        return run.measure(truth, found, also=PARTS)

    return run.table("box-probability", [{"probability": float(p)} for p in probabilities], point)


def claims_of_box_probability(table: ResultTable) -> list[Claim]:
    """Return the claims that only PDQ depends on the probability, which is the foreground quality."""
    return [
        pair_equals(
            "With pixel probability p, PDQ is its square root: foreground quality is p, background quality 1",
            table,
            table["probability"] + EPSILON,
            np.ones(len(table)),
            tolerance=EXACT,
        ),
        stays_perfect(table),
    ]


BOX_PROBABILITY = Experiment(
    name="box-probability",
    section="B.1",
    varied="common probability of all pixels of a perfect box",
    claim="PDQ = sqrt(p); mAP and moLRP are constant",
    function=box_probability,
    judge=claims_of_box_probability,
    draw=plot_curves(
        "probability",
        "Only PDQ uses spatial probability",
        "probability of every pixel in the box",
        legend="lower right",
    ),
)


def corner_variance(
    *,
    variances: Sequence[float] = (0.0, 1, 5, 10, 25, 50, 100, 200, 350, 500, 750, 1000, 1500, 2000, 3000, 4000, 5000),
    side: int = 500,
    image: int = 2000,
    run: Run | None = None,
) -> ResultTable:
    """Vary the reported variance of perfect corners (B.1, second figure); 0 means no covariance.

    Returns
    -------
    ResultTable
        `variance`; `PDQ`, `foreground` and `background` under every preset, `mAP`, `moLRP`; `integral_foreground` and
        `integral_background` from the paper's equations.
    """
    run = run or Run()
    truth = square_scene(side, image)

    def point(variance: float) -> dict[str, float]:
        measured = run.measure(truth, SimulatedDetector(reported_variance=variance).detect(truth), also=PARTS)
        foreground, background = integral_qualities(side, image, variance)
        return {**measured, "integral_foreground": foreground, "integral_background": background}

    return run.table("corner-variance", [{"variance": float(v)} for v in variances], point, side=side, image=image)


def integral_qualities(side: int, image: int, variance: float) -> tuple[float, float]:
    """Return foreground and background quality of a box around a square object from the paper's integral.

    >>> foreground, background = integral_qualities(side=10, image=50, variance=1.0)
    >>> round(foreground, 4), round(background, 4)
    (0.9242, 0.6978)
    """
    if variance == 0:
        return 1.0, 1.0  # without covariance, a box covers exactly its pixels
    begin = (image - side) // 2
    last = begin + side - 1
    mask = np.zeros((image, image), dtype=bool)
    mask[begin : last + 1, begin : last + 1] = True
    probability = box_map([begin, begin, last, last], variance * np.broadcast_to(np.eye(2), (2, 2, 2)), image, image)
    return foreground_background(probability, mask)


def claims_of_corner_variance(table: ResultTable) -> list[Claim]:
    """Return the claims on the cost of uncertainty of a perfect box."""
    expected = (table["integral_foreground"], table["integral_background"])
    return [
        falls("PDQ falls monotonically with the variance of perfect corners", table, "variance"),
        pair_equals(
            "PDQ, foreground and background quality equal the paper's integral (preset `paper`)",
            table,
            *expected,
            presets=["paper"],
        ),
        pair_equals(
            "The cuts of the other presets have a small effect",
            table,
            *expected,
            presets=[preset for preset in presets_in(table) if preset != "paper"],
            tolerance=APPROXIMATED,
            explanation="They set probabilities below 0.0027 to 0, and approximate corners beyond 3.4 std.",
        ),
        stays_perfect(table),
    ]


CORNER_VARIANCE = Experiment(
    name="corner-variance",
    section="B.1",
    varied="variance of perfect corners, 500 x 500 object in 2000 x 2000",
    claim="PDQ falls monotonically and equals the paper's integral",
    function=corner_variance,
    judge=claims_of_corner_variance,
    draw=plot_curves(
        "variance",
        "Cost of unnecessary uncertainty",
        "reported variance of perfect corners (square pixels)",
        measures=("PDQ",),
        legend="lower left",
    ),
)


# --- Label probabilities: section 6 of the paper, bottom, and appendix B.3 ---

QUALITIES = ("foreground", "background", "label")
EXCHANGED = 0.001
"""Tolerance of PDQ if objects with nearly equal boxes exchange their detections.

A wrong class then has the higher probability. With 80 classes it is at most 1/79, so an object gains at most 0.11, and
one object in a hundred may do so.
"""
WORTHLESS = 0.01
"""Upper limit of mAP and 1 - moLRP with wrong classes, which match objects by chance."""


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
        `label` under every preset, `mAP`, `moLRP`. The probability at which all classes are equal is excluded.
    """
    run = run or Run()
    truth = square_scene(side=100, image=400, classes=classes)

    def point(probability: float, largest: bool) -> dict[str, float]:
        return run.measure(truth, SimulatedDetector(label_probability=probability).detect(truth), also=QUALITIES)

    return run.table("label-uncertainty", _points(probabilities, classes), point, classes=classes)


def _points(probabilities: Sequence[float], classes: int) -> list[dict[str, float | bool]]:
    """Return the probabilities, and whether each is the largest; equal probabilities of all classes are excluded."""
    even_share = 1 / classes if classes > 1 else -1.0
    return [
        {"probability": float(p), "largest": float(p) > even_share}
        for p in probabilities
        if abs(p - even_share) > EXACT
    ]


def claims_of_label_uncertainty(table: ResultTable) -> list[Claim]:
    """Return the claims PDQ = sqrt(p) and mAP = 1."""
    matched = table.take(table["probability"] > EXACT)  # with probability 0 there is no match
    ones = np.ones(len(matched))
    return [
        equals("PDQ is the square root of the true class's probability", table, {"PDQ": np.sqrt(table["probability"])}),
        equals(
            "Foreground and background quality are 1, label quality is the probability",
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
    draw=plot_curves(
        "probability",
        "PDQ and label probability",
        "probability of the true class",
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
    """Vary the probability of the true class of perfect boxes; other classes share the rest equally (B.3).

    Returns
    -------
    ResultTable
        `probability`, `largest` (whether the true class is the most probable); `PDQ` under every preset, `mAP`,
        `moLRP`. The probability at which all classes are equal is excluded, because ties depend on class order.
    """
    run = run or Run()
    objects = pixel_aligned(synthetic_truth() if truth is None else truth)

    def point(probability: float, largest: bool) -> dict[str, float]:
        detector = SimulatedDetector(label_probability=probability)
        return run.measure(objects, detector.detect(objects, seed))

    return run.table("label-coco", _points(probabilities, len(objects.classes)), point, truth=fingerprint(objects))


def claims_of_label_coco(table: ResultTable) -> list[Claim]:
    """Return the claims that PDQ is the root of the label probability; other metrics depend on the top class only."""
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
    claim = "If another class is larger, PDQ is that root too, or slightly more"
    required = f"above by -{EXACT:g} to {EXCHANGED:g}"
    if not presets_in(rest):
        return not_measured(claim, required)
    above = np.stack([rest[column] - np.sqrt(rest["probability"]) for column in presets_in(rest).values()])
    least, most = float(above.min()), float(above.max())
    return Claim(
        claim,
        least >= -EXACT and most <= EXCHANGED,
        f"above by {least:.2g} to {most:.2g}",
        required,
        {"least": least, "most": most},
        "Objects with nearly equal boxes may exchange their detections if the wrong class has the higher probability; "
        "the optimal assignment is never worse than each object's own detection.",
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
    varied="probability of the true class, other classes equal, perfect boxes",
    claim="PDQ = sqrt(p); mAP and moLRP change only where the true class stops being the largest",
    function=label_coco,
    judge=claims_of_label_coco,
    draw=draw_label_coco,
)
