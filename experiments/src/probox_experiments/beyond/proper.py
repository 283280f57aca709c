"""Is PDQ proper? Which sigma, and which label probability, each score asks for where the truth is known.

A score is proper if nobody can expect more than by reporting what he believes: of all reports the true distribution is
the best. Here detections report boxes, and the true edges are drawn around them from a distribution that we know.
Where errors are Gaussian with sigma s, a proper score is best with the report s. Where they have heavier tails, no
Gaussian is right, and scores differ in how much they fear a far outlier. The same with labels: an object is of class A
with probability q, and a proper score is best with the report q.

What was foreseen of PDQ. An edge that is off by r costs, pixel by pixel across it, sigma g(r / sigma), where
g(u) = integral over t < u of -ln(1 - Phi(t)) + integral over t > u of -ln Phi(t): a log score, so its mean is least at
the right sigma. The logarithm of pPDQ is minus half the sum of these over four edges, divided by the side of the
object. But PDQ is the mean of pPDQ itself, which is bounded: a pair that is lost is lost, and counts less than it
would in a mean of logarithms. So PDQ asks for less than the true sigma, the more so the smaller the object: by about
0.45 sigma / side, as the maximum of the mean of exp(-sigma g / 2 side) says. On top of that, preset `reference` takes
probabilities below 0.0027 for 0, which makes outliers dear, and asks for 6 % more.
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

# --- Is PDQ proper? Which sigma, and which label probability, each score asks for where the truth is known ---

LEAST = 1e-7
"""pPDQ counts as at least this in its logarithm: of pixels with probability 0 alone it is the root of 1e-14."""
OF_BOXES = ("nll", "energy", "crps", "pmb-nll")
OF_SMALL = ("nll", "pmb-nll")
OF_LABELS = ("brier", "ignorance")
OTHERS = ("rms", "log_pPDQ", "NLL", "energy", "CRPS", "PMB_NLL", "Brier", "ignorance")
"""What only some points have."""


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
    """Report one sigma or another, one label probability or another, and measure what each score says.

    Parameters
    ----------
    boxes : int
        How many in a repeat, each in an image of its own.
    side : int
        Of the boxes that every score is asked about, with errors of three distributions of scale 3; in pixels.
    sides : sequence of int
        Of those that PDQ alone is asked about, with Gaussian errors; of the least, NLL and PMB-NLL as well. There are
        twice as many of each.
    sigmas : sequence of float, optional
        The one sigma of all edges, in pixels. Default: some around what each kind of errors may ask for.
    shares : sequence of float
        The share of objects of class A among objects that look alike; twentieths.
    probabilities : sequence of float
        The reported probability of A, between 0 and 1; the rest is B's.
    repeats, seed : int
        How often errors are drawn, and where that begins; all sigmas see the same errors.
    run : Run, optional
        Threads, progress, checkpoint.

    Returns
    -------
    ResultTable
        `study` ("sigma" or "label"), `errors`, `side`, `repeat`, `sigma`; `share`, `probability`, `named` (whether
        detections name the object's class, or the likelier one); `PDQ`, `PDQ_paper`; `rms`, the root of the mean
        squared error that was drawn; the mean of the logarithm of pPDQ under `paper`, `log_pPDQ`; `NLL`, `energy`,
        `CRPS`, `PMB_NLL`, `Brier`, `ignorance`, of which less is better.
    """
    run = run or Run()
    for name, given in (("shares", shares), ("probabilities", probabilities)):
        if not all(0 < value < 1 for value in given):
            raise InputError(f"expected {name} between 0 and 1, but got {', '.join(f'{value:g}' for value in given)}")
    if (least := min((side, *sides))) < 1:
        raise InputError(f"expected sides of at least a pixel, but got {least}")
    drawn = lru_cache(maxsize=1)(drawn_around_boxes)  # once for all sigmas

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
            told = run.measure(*draw_labels(**chosen), measures=OF_LABELS)
        else:
            told = of_sigma(settings["errors"], settings["side"], settings["repeat"], settings["sigma"])
        pdq = {name: value for name, value in told.items() if name not in OTHERS}
        return pdq | {name: told.get(name, math.nan) for name in OTHERS}

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
    # Which boxes are asked about by which scores depends on the sides.
    return run.table("proper", points, point, seed=seed, boxes=boxes, every=side, least=min(sides, default=side))


def _mean_logarithm(truth: GroundTruth, found: Detections, run: Run) -> float:
    """Return the mean of ln pPDQ under `paper`; no summary has it, so it is made of the qualities of single pairs."""
    convention = Convention.preset("paper", **run.changes)
    table = evaluate(truth, found, convention=convention, measures=("pdq",), threads=run.threads).detections
    return float(np.log(np.maximum(np.nan_to_num(table.quality("pPDQ")), LEAST)).mean())


PROPER = Experiment(
    name="proper",
    section="none: ours",
    varied="one reported sigma, with Gaussian, Laplace and Student errors; one reported label probability",
    claim="NLL, energy score, CRPS and PMB-NLL ask for the truth; PDQ asks for less than the true sigma of small "
    "objects, and for more than the true probability of a label",
    function=proper,
    judge=claims_of_proper,
    draw=draw_proper,
)
