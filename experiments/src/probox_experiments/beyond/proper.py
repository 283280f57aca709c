"""Propriety of PDQ: the standard deviation and label probability with the best score, for known distributions.

A score is proper if reporting the true distribution is optimal on average. Here detections report boxes, and the true
edges are drawn around them from a known distribution. If errors are Gaussian with standard deviation σ, a proper score
is best with the report σ. With heavier tails no Gaussian is correct, and scores differ in their penalty for outliers.
Labels are analogous: an object is of class A with probability q, and a proper score is best with the report q.

Prediction for PDQ. An edge with error r costs σ g(r / σ), summed over the pixels across it, where
g(u) = integral over t < u of -ln(1 - Φ(t)) + integral over t > u of -ln Φ(t). This is a log score, so its mean has its
minimum at the true σ. The logarithm of pPDQ is minus half the sum over four edges, divided by the side of the object.
PDQ, however, is the mean of pPDQ itself, which is bounded below, so bad pairs count less than in a mean of logarithms.
PDQ is therefore best below the true σ, by about 0.45 σ / side: the maximum of the mean of exp(-σ g / 2 side). Preset
`reference` also sets probabilities below 0.0027 to 0. This penalizes outliers more and raises the best σ by 6%.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from probox.convention import Convention
from probox.errors import InputError
from probox.evaluation.evaluate import evaluate
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox_experiments.beyond.proper_claims import (
    ERRORS,
    NAMED,
    OBJECTS,
    SIGMAS,
    claims_of_proper,
    draw_labels,
    draw_proper,
    drawn_around_boxes,
    report_sigma,
)
from probox_experiments.claims import ResultTable
from probox_experiments.experiment import Experiment
from probox_experiments.running import Run
from probox_experiments.synthetic import evenly

# --- The experiment ---

LEAST = 1e-7
"""Lower limit of pPDQ in its logarithm: the root of 1e-14, its value if all pixels have probability 0."""
OF_BOXES = ("nll", "energy", "crps", "pmb-nll")
OF_SMALL = ("nll", "pmb-nll")
OF_LABELS = ("brier", "ignorance")
OTHERS = ("rms", "log_pPDQ", "NLL", "energy", "CRPS", "PMB_NLL", "Brier", "ignorance")
"""Columns of some points only."""


def proper(
    *,
    boxes: int = 300,
    side: int = 100,
    sides: Sequence[int] = (12, 25, 50, 100, 200),
    sigmas: Sequence[float] | None = None,
    shares: Sequence[float] = (0.5, 0.6, 0.7, 0.8, 0.9),
    probabilities: Sequence[float] = evenly(0.5, 0.98, 25),
    repeats: int = 8,
    seed: int = 0,
    run: Run | None = None,
) -> ResultTable:
    """Vary the reported standard deviation, or the reported label probability, and compute all scores.

    Parameters
    ----------
    boxes : int
        Boxes per repeat, each in its own image.
    side : int
        Side in pixels of the boxes for all scores, with errors of three distributions of scale 3.
    sides : sequence of int
        Sides of the boxes for PDQ only, with Gaussian errors; for the smallest also NLL and PMB-NLL. There are twice
        as many boxes of each.
    sigmas : sequence of float, optional
        Standard deviation of all edges, in pixels. Default: a grid around the expected optimum of each distribution.
    shares : sequence of float
        Fraction of objects of class A, in twentieths.
    probabilities : sequence of float
        Reported probability of A, between 0 and 1; B gets the rest.
    repeats, seed : int
        Number of random draws of errors, and their seed; all standard deviations use the same errors.
    run : Run, optional
        Threads, progress, checkpoint.

    Returns
    -------
    ResultTable
        `study` ("sigma" or "label"), `errors`, `side`, `repeat`, `sigma`; `share`, `probability`, `named` (detections
        name the object's class, or the likelier one); `PDQ`, `PDQ_paper`; `rms`, the root mean square of the drawn
        errors; `log_pPDQ`, the mean logarithm of pPDQ under `paper`; `NLL`, `energy`, `CRPS`, `PMB_NLL`, `Brier`,
        `ignorance` (lower is better).
    """
    run = run or Run()
    for name, given in (("shares", shares), ("probabilities", probabilities)):
        if not all(0 < value < 1 for value in given):
            raise InputError(f"expected {name} between 0 and 1, but got {', '.join(f'{value:g}' for value in given)}")
    if (least := min((side, *sides))) < 1:
        raise InputError(f"expected sides of at least one pixel, but got {least}")
    drawn = lru_cache(maxsize=1)(drawn_around_boxes)  # once for all standard deviations

    def of_sigma(errors: str, width: int, repeat: int, sigma: float) -> dict[str, float]:
        every = width == side
        truth, means = drawn(errors, width, boxes if every else 2 * boxes, (seed, repeat))
        found = report_sigma(means, sigma)
        rms = {"rms": float(np.sqrt(np.mean(np.square(truth.boxes - found.boxes))))}
        if not every:
            return rms | run.measure(truth, found, measures=OF_SMALL if width == min(sides) else ())
        logarithm = {"log_pPDQ": _mean_logarithm(truth, found, run)}
        return rms | run.measure(truth, found, measures=OF_BOXES) | logarithm

    def point(study: str, **settings: Any) -> dict[str, float]:
        if study == "label":
            chosen = {name: settings[name] for name in ("share", "probability", "named")}
            measured = run.measure(*draw_labels(**chosen), measures=OF_LABELS)
        else:
            measured = of_sigma(settings["errors"], settings["side"], settings["repeat"], settings["sigma"])
        pdq = {name: value for name, value in measured.items() if name not in OTHERS}
        return pdq | {name: measured.get(name, math.nan) for name in OTHERS}

    empty = {"share": math.nan, "probability": math.nan, "named": ""}
    points = [
        {"study": "sigma", "errors": errors, "side": int(width), "repeat": repeat, "sigma": float(sigma), **empty}
        for errors in ERRORS
        for width in (dict.fromkeys((side, *sides)) if errors == "gaussian" else (side,))
        for repeat in range(repeats)
        for sigma in (SIGMAS[errors] if sigmas is None else sigmas)
    ]
    points += [
        {"study": "label", "errors": "", "side": math.nan, "repeat": 0, "sigma": math.nan}
        | {"share": round(share * OBJECTS) / OBJECTS, "probability": float(probability), "named": named}
        for named in NAMED
        for share in shares
        for probability in probabilities
    ]
    # The sides determine the scores of each box.
    return run.table("proper", points, point, seed=seed, boxes=boxes, every=side, least=min(sides, default=side))


def _mean_logarithm(truth: GroundTruth, found: Detections, run: Run) -> float:
    """Return the mean of ln pPDQ under `paper`, computed from single pairs because summaries do not contain it."""
    convention = Convention.preset("paper", **run.changes)
    table = evaluate(truth, found, convention=convention, measures=("pdq",), threads=run.threads).detections
    return float(np.log(np.maximum(np.nan_to_num(table.quality("pPDQ")), LEAST)).mean())


PROPER = Experiment(
    name="proper",
    section="none",
    varied="reported standard deviation, with Gaussian, Laplace and Student errors; reported label probability",
    claim="NLL, energy score, CRPS and PMB-NLL are best at the true values; PDQ is best below the true standard "
    "deviation for small objects, and above the true label probability",
    function=proper,
    judge=claims_of_proper,
    draw=draw_proper,
)
