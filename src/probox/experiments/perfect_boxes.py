"""What the measures make of the uncertainty of perfectly placed boxes: appendix B.1."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial

import numpy as np

from probox.experiments.claims import Claim, falls, stays_perfect
from probox.experiments.experiment import Experiment
from probox.experiments.figures import draw_curves
from probox.experiments.running import Run
from probox.experiments.scenes import PROBABILITIES, square_scene
from probox.experiments.simulate import SimulatedDetector
from probox.experiments.table import ResultTable

__all__ = ["BOX_PROBABILITY", "CORNER_VARIANCE", "box_probability", "corner_variance"]


def box_probability(*, probabilities: Sequence[float] = PROBABILITIES, run: Run | None = None) -> ResultTable:
    """Vary the one probability that all pixels of a perfectly placed box have (B.1, first figure).

    Returns
    -------
    ResultTable
        `probability`; `PDQ`, `PDQ_paper`, `mAP`, `moLRP`.
    """
    run = run or Run()
    truth = square_scene(side=100, image=400)
    perfect = SimulatedDetector().detect(truth)
    inside = truth.masks.to_array(0, 400, 400)

    def point(probability: float) -> dict[str, float]:
        found = dataclasses.replace(perfect, heatmaps=(np.where(inside, probability, 0.0),))
        return run.measure(truth, found)

    return run.table("box-probability", [{"probability": p} for p in probabilities], point)


def claims_of_box_probability(table: ResultTable) -> list[Claim]:
    """Judge that PDQ alone sees the probability."""
    return [
        falls("PDQ falls with the spatial probability of the box", table, "probability", rising=True),
        stays_perfect(table),
    ]


BOX_PROBABILITY = Experiment(
    name="box-probability",
    section="B.1",
    varied="the one probability of all pixels of a perfect box",
    claim="PDQ falls with it; mAP and moLRP do not",
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
    variances: Sequence[float] = (0, 1, 5, 10, 25, 50, 100, 200, 350, 500, 750, 1000, 1500, 2000, 3000, 4000, 5000),
    side: int = 500,
    image: int = 2000,
    run: Run | None = None,
) -> ResultTable:
    """Vary the reported variance of perfectly placed corners (B.1, second figure); 0 is a plain box.

    Returns
    -------
    ResultTable
        `variance`; `PDQ`, `PDQ_paper`, `mAP`, `moLRP`.
    """
    run = run or Run()
    truth = square_scene(side, image)

    def point(variance: float) -> dict[str, float]:
        return run.measure(truth, SimulatedDetector(reported_variance=variance).detect(truth))

    return run.table("corner-variance", [{"variance": float(v)} for v in variances], point, side=side, image=image)


def claims_of_corner_variance(table: ResultTable) -> list[Claim]:
    """Judge that uncertainty about a perfect box costs."""
    return [
        falls("PDQ falls monotonically with the variance of perfectly placed corners", table, "variance"),
        stays_perfect(table),
    ]


CORNER_VARIANCE = Experiment(
    name="corner-variance",
    section="B.1",
    varied="variance of perfectly placed corners, 500 x 500 object in 2000 x 2000",
    claim="PDQ falls monotonically",
    function=corner_variance,
    judge=claims_of_corner_variance,
    draw=partial(
        draw_curves,
        x="variance",
        title="Needless uncertainty costs",
        xlabel="reported variance of perfect corners (square pixels)",
        measures=("PDQ",),
        legend="",
    ),
)
