"""Which one sigma would each loss choose? Errors of known distribution, and the sigma that makes the loss least.

A detector that can say only one sigma learns the one with the least mean loss. If errors are Gaussian, proper scores
choose theirs. If they have heavy tails, no Gaussian is right, and losses differ in how much a far outlier counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from probox.evaluation.run import evaluate
from probox.experiments.claims import Claim
from probox.experiments.experiment import Experiment
from probox.experiments.figures import BLUE, GREEN, ORANGE, SKY, VERMILION, new_figure
from probox.experiments.running import Run
from probox.experiments.table import ResultTable
from probox.experiments.training.intervals import Interval, interval_of
from probox.measures.scoring.box_scores import energy_scores, negative_log_likelihoods
from probox.measures.scoring.edge_scores import crps
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["TRAINING_OPTIMUM", "training_optimum"]

Floats = npt.NDArray[np.float64]

SCALE = 3.0
"""Of the errors of all four edges, in pixels."""
FREEDOM = 2.5
"""Degrees of freedom of Student's t: its variance is 5 times the squared scale, and has no variance itself."""
ERRORS = ("gaussian", "student")
SIDE = 100
"""Of the square objects. A smaller object loses more of its quality to the same error."""
LEAST = 1e-7
"""pPDQ counts as at least this in its logarithm: of pixels with probability 0 alone it is the root of 1e-14."""

EXPECTED = {
    ("gaussian", "pPDQ"): 2.9,
    ("gaussian", "NLL"): 3.0,
    ("gaussian", "energy"): 3.0,
    ("student", "pPDQ"): 4.2,
    ("student", "NLL"): 5.4,
    ("student", "energy"): 3.6,
}
"""What was foreseen, in pixels."""
TOLERANCE = 0.05
"""How far off the mean of the optima may be, as a share; where the interval over repeats is wider, within that."""
PIXEL = np.array([0.5, 0.5, -0.5, -0.5])
"""From first and last pixels to the middle of all boxes that touch just these pixels."""


def training_optimum(
    *,
    sigmas: Sequence[float] = tuple(np.exp(np.linspace(math.log(1.5), math.log(9.0), 19)).round(4).tolist()),
    boxes: int = 500,
    side: int = SIDE,
    repeats: int = 10,
    seed: int = 0,
    run: Run | None = None,
) -> ResultTable:
    """Give boxes with errors of one distribution one sigma or another, and measure what each loss says.

    Parameters
    ----------
    sigmas : sequence of float
        The one sigma of all edges, in pixels.
    boxes : int
        How many in a repeat.
    side : int
        Of the square objects, in pixels.
    repeats, seed : int
        How often errors are drawn, and where that begins; all sigmas see the same errors.
    run : Run, optional
        Threads, progress, checkpoint.

    Returns
    -------
    ResultTable
        `errors`, `repeat`, `sigma`; means of `pPDQ` and its logarithm under preset `paper` with sure labels, and of
        `NLL`, `energy` and `CRPS` with a minus sign: of all five, more is better.
    """
    run = run or Run()
    image = side + 2 * (side // 2 + 50)
    first = (image - side) / 2
    corners = np.tile([first, first, first + side - 1, first + side - 1], (boxes, 1))
    truth = GroundTruth.from_boxes(
        ["object"], dict.fromkeys(range(boxes), (image, image)), list(range(boxes)), corners, [0] * boxes
    )

    def point(errors: str, repeat: int, sigma: float) -> dict[str, float]:
        rng = np.random.default_rng([seed, repeat, ERRORS.index(errors)])
        drawn = rng.standard_normal((boxes, 4)) if errors == "gaussian" else rng.standard_t(FREEDOM, (boxes, 4))
        # An edge that would leave the image, or turn the box inside out, stays at the middle or the border.
        middle, last = (image - 1) / 2, image - 1.0
        means = (corners + PIXEL + SCALE * drawn).clip([0, 0, middle, middle], [middle, middle, last, last])
        residuals = corners + PIXEL - means
        covariances = np.broadcast_to(sigma**2 * np.eye(2), (boxes, 2, 2, 2))
        found = Detections(
            classes=("object",),
            image_ids=np.arange(boxes),
            boxes=means,
            label_probs=np.ones((boxes, 1), np.float32),
            covariances=covariances,
        )
        table = evaluate(truth, found, convention="paper", measures=("pdq",), threads=run.threads).detections
        quality = np.nan_to_num(table.quality("pPDQ"))
        return {
            "pPDQ": float(quality.mean()),
            "log_pPDQ": float(np.log(np.maximum(quality, LEAST)).mean()),
            "NLL": -float(negative_log_likelihoods(residuals, covariances).mean()),
            "energy": -float(energy_scores(residuals, covariances).mean()),
            "CRPS": -float(crps(residuals, np.full_like(residuals, sigma)).sum(axis=1).mean()),
        }

    points = [
        {"errors": errors, "repeat": repeat, "sigma": float(sigma)}
        for errors in ERRORS
        for repeat in range(repeats)
        for sigma in sigmas
    ]
    return run.table("training-optimum", points, point, seed=seed, boxes=boxes, side=side)


def optima(table: ResultTable, errors: str, score: str) -> Floats:
    """Return the best sigma of every repeat: the top of a parabola through the best of the grid and its neighbours."""
    rows = table.where(errors=errors)
    best = []
    for repeat in np.unique(rows["repeat"]).tolist():
        one = rows.where(repeat=repeat)
        order = np.argsort(one["sigma"])
        x, y = np.log(one["sigma"][order]), one[score][order]
        i = int(np.clip(y.argmax(), 1, len(y) - 2))
        a, b, _ = np.polyfit(x[i - 1 : i + 2], y[i - 1 : i + 2], 2)
        best.append(math.exp(np.clip(-b / (2 * a), x[i - 1], x[i + 1])))
    return np.array(best)


def claims_of_training_optimum(table: ResultTable) -> list[Claim]:
    """Judge whether each loss chooses the sigma that was foreseen."""
    claims = []
    for (errors, score), expected in EXPECTED.items():
        own = optima(table, errors, score)
        found = interval_of(own)
        half = max(TOLERANCE * expected, found.high - found.mean if len(own) > 1 else 0.0)
        words = "Gaussian errors of sigma 3" if errors == "gaussian" else "Student errors of scale 3"
        claims.append(
            Claim(
                f"For {words}, {score} is best with one sigma of about {expected:g} pixels",
                abs(found.mean - expected) <= half,
                _in_pixels(found, own),
                f"within 5 % of {expected:g}, or its own 95 % interval if that is wider",
                {"mean": found.mean, "low": found.low, "high": found.high},
            )
        )
    return [*claims, _order(table)]


def _order(table: ResultTable) -> Claim:
    """Return the claim about which losses fear outliers, repeat by repeat."""
    energy, ppdq, nll = (optima(table, "student", score) for score in ("energy", "pPDQ", "NLL"))
    steps = {"pPDQ over energy": interval_of(ppdq - energy), "NLL over pPDQ": interval_of(nll - ppdq)}
    return Claim(
        "For Student errors, pPDQ chooses a larger sigma than the energy score and a smaller one than NLL",
        all(step.low > 0 for step in steps.values()),
        "; ".join(f"{name}: {step} pixels" for name, step in steps.items()),
        "both intervals above 0",
        {name: step.mean for name, step in steps.items()},
        "Far outliers count squared in NLL. To 1 - pPDQ a pair that is lost is lost, however far; to the energy score "
        "each pixel farther off costs a pixel.",
    )


def _in_pixels(of: Interval, own: Floats) -> str:
    return (
        f"{of.mean:.2f} [{of.low:.2f}, {of.high:.2f}] over {len(own)} repeats, from {own.min():.2f} to {own.max():.2f}"
    )


LOOKS = {
    "pPDQ": ("pPDQ", BLUE, "-"),
    "log_pPDQ": ("log pPDQ", SKY, "-"),
    "NLL": ("NLL", VERMILION, (0, (5, 2))),
    "energy": ("energy score", ORANGE, "-."),
    "CRPS": ("CRPS", GREEN, (0, (1, 1.2))),
}


def draw_training_optimum(table: ResultTable) -> Figure:
    """Draw every score against the one sigma, each from 0 at its worst to 1 at its best, and mark the best."""
    figure = new_figure(9.0, 3.6)
    for axes, errors in zip(figure.subplots(1, 2, sharey=True), ERRORS, strict=True):
        _curves(axes, table, errors)
    return figure


def _curves(axes: Axes, table: ResultTable, errors: str) -> None:
    rows = table.where(errors=errors)
    sigmas = np.unique(rows["sigma"])
    for score, (title, colour, dashes) in LOOKS.items():
        mean = np.array([rows.where(sigma=sigma)[score].mean() for sigma in sigmas])
        # Losses have no common unit.
        height = (mean - mean.min()) / np.ptp(mean)
        best = interval_of(optima(table, errors, score))
        axes.plot(sigmas, height, color=colour, ls=dashes, lw=1.7, label=f"{title}: {best.mean:.2f}")
        top = float(np.interp(best.mean, sigmas, height))
        axes.plot(best.mean, top, "o", ms=5.5, color=colour, mec="white", mew=0.8, zorder=4)
    axes.axvline(SCALE, color="#C9C9C9", lw=0.9, zorder=0.5)
    axes.set_xscale("log")
    ticks = [2, 3, 4, 5, 6, 8]
    axes.set_xticks(ticks, [f"{tick}" for tick in ticks])
    axes.minorticks_off()
    axes.set_ylim(0.3, 1.04)
    axes.set_xlabel("one sigma for all edges (pixels)")
    if errors == "gaussian":
        axes.set_ylabel("from worst to best")
    axes.set_title(
        "Gaussian errors, sigma 3" if errors == "gaussian" else f"Student errors, scale 3, {FREEDOM:g} degrees"
    )
    axes.legend(loc="lower center", title="best at")


TRAINING_OPTIMUM = Experiment(
    name="training-optimum",
    section="none: ours",
    varied="one sigma for all edges, with Gaussian errors and errors with heavy tails",
    claim="pPDQ chooses nearly the sigma of Gaussian errors, and of heavy tails one between those of energy and NLL",
    function=training_optimum,
    judge=claims_of_training_optimum,
    draw=draw_training_optimum,
    takes=("repeats", "seed"),
    in_all=False,
)
