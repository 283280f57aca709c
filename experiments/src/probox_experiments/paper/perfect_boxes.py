"""What PDQ makes of uncertainty about perfectly placed boxes: appendix B.1."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from probox_experiments.claims import EXACT, Claim, falls, stays_perfect
from probox_experiments.experiment import Experiment
from probox_experiments.figures import draw_curves
from probox_experiments.paper.by_hand import EPSILON, box_map, foreground_background
from probox_experiments.paper.closed_form import pair_equals
from probox_experiments.running import Run
from probox_experiments.scenes import PROBABILITIES, square_scene
from probox_experiments.simulate import SimulatedDetector
from probox_experiments.table import ResultTable, presets_in

__all__ = ["BOX_PROBABILITY", "CORNER_VARIANCE", "box_probability", "corner_variance"]

PARTS = ("foreground", "background")
APPROXIMATED = 0.002
"""How far the region of interest and the cut at 0.0027 may move a quality, relatively.

Along an edge of standard deviation s the cut takes away what is beyond 2.8 s: a loss of 0.0009 s for each pixel of the
edge. An object of side L has four edges and L^2 pixels, so 0.0036 s / L are lost: 0.0005 at s = 71 and L = 500.
Beyond the region of interest a corner's share of at most 0.0027 is misjudged in as narrow a strip.
"""


def box_probability(*, probabilities: Sequence[float] = PROBABILITIES, run: Run | None = None) -> ResultTable:
    """Vary the one probability that all pixels of a perfectly placed box have (B.1, first figure).

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
    """Judge that PDQ alone sees the probability, and that it is the foreground quality."""
    return [
        pair_equals(
            "With a probability p of every pixel PDQ is its square root: the foreground quality is p, the background "
            "quality 1",
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
    varied="the one probability of all pixels of a perfect box",
    claim="PDQ = sqrt(p); mAP and moLRP do not see it",
    function=box_probability,
    judge=claims_of_box_probability,
    draw=partial(
        draw_curves,
        x="probability",
        title="Only PDQ sees spatial probability",
        xlabel="probability of every pixel in the box",
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
    """Vary the reported variance of perfectly placed corners (B.1, second figure); 0 is a plain box.

    Returns
    -------
    ResultTable
        `variance`; `PDQ`, `foreground` and `background` under every preset, `mAP`, `moLRP`; `integral_foreground` and
        `integral_background`, which are the paper's equations worked out here.
    """
    run = run or Run()
    truth = square_scene(side, image)

    def point(variance: float) -> dict[str, float]:
        measured = run.measure(truth, SimulatedDetector(reported_variance=variance).detect(truth), also=PARTS)
        foreground, background = integral_qualities(side, image, variance)
        return {**measured, "integral_foreground": foreground, "integral_background": background}

    return run.table("corner-variance", [{"variance": float(v)} for v in variances], point, side=side, image=image)


def integral_qualities(side: int, image: int, variance: float) -> tuple[float, float]:
    """Return foreground and background quality of a box around a square object, by the paper's integral alone.

    >>> foreground, background = integral_qualities(side=10, image=50, variance=1.0)
    >>> round(foreground, 4), round(background, 4)
    (0.9242, 0.6978)
    """
    if variance == 0:
        return 1.0, 1.0  # a plain box covers its own pixels and no others
    begin = (image - side) // 2
    last = begin + side - 1
    mask = np.zeros((image, image), dtype=bool)
    mask[begin : last + 1, begin : last + 1] = True
    probability = box_map([begin, begin, last, last], [math.sqrt(variance)] * 4, [0.0, 0.0], image, image)
    return foreground_background(probability, mask)


def claims_of_corner_variance(table: ResultTable) -> list[Claim]:
    """Judge that uncertainty about a perfect box costs, and how much."""
    expected = (table["integral_foreground"], table["integral_background"])
    return [
        falls("PDQ falls monotonically with the variance of perfectly placed corners", table, "variance"),
        pair_equals(
            "PDQ, foreground and background quality are what the paper's integral gives (preset `paper`)",
            table,
            *expected,
            presets=["paper"],
        ),
        pair_equals(
            "The cuts of the other presets move them by little",
            table,
            *expected,
            presets=[preset for preset in presets_in(table) if preset != "paper"],
            tolerance=APPROXIMATED,
            explanation="Probabilities below 0.0027 are 0 there, and corners are approximated beyond 3.4 sigma.",
        ),
        stays_perfect(table),
    ]


CORNER_VARIANCE = Experiment(
    name="corner-variance",
    section="B.1",
    varied="variance of perfectly placed corners, 500 x 500 object in 2000 x 2000",
    claim="PDQ falls monotonically, by what the paper's integral gives",
    function=corner_variance,
    judge=claims_of_corner_variance,
    draw=partial(
        draw_curves,
        x="variance",
        title="Needless uncertainty costs",
        xlabel="reported variance of perfect corners (square pixels)",
        measures=("PDQ",),
        legend="lower left",
    ),
)
