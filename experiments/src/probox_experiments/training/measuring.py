"""What is measured of a trained detector on scenes that it has not seen."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.calibration.gaussians import edge_reach
from probox.evaluation.run import evaluate
from probox.measures.scoring.scores import energy_scores, negative_log_likelihoods
from probox.tables.detections import Detections
from probox_experiments.training.scenes import OCCLUDED, SHARP, SHARP_SIGMA, SIGMAS, Scenes

__all__ = [
    "COVERAGES",
    "LEVELS",
    "THRESHOLD",
    "Edges",
    "best_sigma",
    "coverage_column",
    "level_column",
    "measure_found",
]

Floats = npt.NDArray[np.float64]

THRESHOLD = 0.5
"""The label threshold of PDQ, the same for all arms; mAP and moLRP see all detections."""

COVERAGES = {per_cent: edge_reach(per_cent / 100) for per_cent in (50, 80, 90, 95)}
"""Per cent, and how many sigmas the central interval of a Gaussian with so much mass reaches to either side."""

LEVELS = (SHARP_SIGMA, *np.geomspace(SIGMAS[0], SIGMAS[1], 7).round(3).tolist())
"""The sigma of sharp edges, then ends of bins of the others; predicted sigmas are averaged in each."""

CANDIDATES = np.exp(np.linspace(math.log(0.5), math.log(5.0), 47))
"""Among which the one sigma for all is chosen, 5 % apart."""


def coverage_column(per_cent: int) -> str:
    """Return the name of a column: the share of true edges in the central interval of so much mass."""
    return f"coverage_{per_cent}"


def level_column(number: int) -> str:
    """Return the name of a column: the predicted sigma, a geometric mean, where the true one is on this level."""
    middle = LEVELS[0] if number == 0 else math.sqrt(LEVELS[number] * LEVELS[number + 1])
    return f"sigma_at_{middle:.2f}"


@dataclasses.dataclass(frozen=True)
class Edges:
    """The edges of test objects that were found, (N, 4) each: x1, y1, x2, y2.

    Parameters
    ----------
    objects : (N,) ints
        Rows of the scenes' objects.
    residuals, predicted, true : floats
        True edge minus mean, the sigma that was predicted, and the right one.
    means : floats
        The means that were predicted.
    kinds : ints
        What was to be seen.
    """

    objects: npt.NDArray[np.int64]
    residuals: Floats
    predicted: Floats
    true: Floats
    means: Floats
    kinds: npt.NDArray[np.int64]

    @classmethod
    def of(cls, scenes: Scenes, evaluation: Any) -> Edges:
        """Return those of an evaluation; who belongs to whom goes by the overlap of boxes alone."""
        pairs = evaluation.matched_pairs
        rows = pairs.objects
        means = scenes.boxes[rows] - pairs.residuals
        return cls(rows, pairs.residuals, np.sqrt(pairs.variances), scenes.sigmas[rows], means, scenes.kinds[rows])


def best_sigma(scenes: Scenes, found: Detections) -> float:
    """Return the one sigma for all edges with which detections score the highest PDQ on these scenes."""
    from probox_experiments.training.finding import with_sigma

    kept = found.select(found.label_probs.max(axis=1) > THRESHOLD)
    scores = [evaluate(scenes.truth, with_sigma(kept, sigma), measures=("pdq",)).pdq for sigma in CANDIDATES.tolist()]
    return float(CANDIDATES[int(np.argmax(scores))])


def measure_found(scenes: Scenes, found: Detections, *, threads: int | None = None) -> dict[str, float]:
    """Return everything that is measured of one trained detector; what needs sigmas is NaN for plain boxes."""
    evaluation = evaluate(scenes.truth, found, threads=threads)
    summary, sure = evaluation.summary(), evaluation.at_threshold(THRESHOLD).summary()
    kept = found.select(found.label_probs.max(axis=1) > THRESHOLD)
    edges = Edges.of(scenes, evaluation)
    measured = {
        "PDQ": sure["PDQ"],
        "PDQ_paper": evaluate(scenes.truth, kept, convention="paper", measures=("pdq",), threads=threads).pdq,
        "mAP": summary["mAP"],
        "moLRP": summary["moLRP"],
        "TP": sure["TP"],
        "FP": sure["FP"],
        "FN": sure["FN"],
        "mean_error": float(np.sqrt(np.mean((edges.means - scenes.nominal[edges.objects]) ** 2))),
    }
    spread = _spread(edges) if found.covariances is not None else dict.fromkeys(_spread(_nothing()), math.nan)
    return measured | spread


def _nothing() -> Edges:
    ones, rows = np.ones((2, 4)), np.arange(2)
    return Edges(rows, ones, ones, ones, ones, np.tile([SHARP, OCCLUDED], (2, 2)))


def _spread(edges: Edges) -> dict[str, float]:
    predicted, true = edges.predicted, edges.true
    distance = np.abs(edges.residuals) / predicted
    covariances = (predicted.reshape(-1, 2, 2) ** 2)[..., None] * np.eye(2)
    wider, occluded, sharp = _corners(edges)
    measured = {
        "sigma_correlation": _correlation(predicted, true),
        "log_sigma_correlation": _correlation(np.log(predicted), np.log(true)),
        "sigma_ratio": float(np.median(predicted / true)),
        **{coverage_column(share): float(np.mean(distance <= reach)) for share, reach in COVERAGES.items()},
        "NLL": float(negative_log_likelihoods(edges.residuals, covariances).mean()),
        "energy": float(energy_scores(edges.residuals, covariances).mean()),
        "occluded_wider": wider,
        "occluded_sigma": occluded,
        "sharp_sigma": sharp,
    }
    # 0 is that of sharp edges, then come the bins of the others.
    level = np.where(edges.kinds == SHARP, 0, np.searchsorted(LEVELS[2:-1], true) + 1)
    for number in range(len(LEVELS) - 1):
        here = predicted[level == number]
        measured[level_column(number)] = float(np.exp(np.log(here).mean())) if len(here) else math.nan
    return measured


def _correlation(first: Floats, second: Floats) -> float:
    """Return Pearson's correlation; 0 if one of them says the same of everything."""
    if np.ptp(first) <= 1e-9 or np.ptp(second) <= 1e-9:
        return 0.0
    return float(np.corrcoef(first.ravel(), second.ravel())[0, 1])


def _corners(edges: Edges) -> tuple[float, float, float]:
    """Return, of corners with one occluded and one sharp edge, the share with the larger sigma across the occluded one.

    Then the mean sigmas of both.
    """
    kinds, sigmas = edges.kinds.reshape(-1, 2), edges.predicted.reshape(-1, 2)
    mixed = (np.sort(kinds, axis=1) == np.sort([SHARP, OCCLUDED])).all(axis=1)
    if not mixed.any():
        return math.nan, math.nan, math.nan
    first = (kinds[mixed] == OCCLUDED).argmax(axis=1)
    rows = np.arange(len(first))
    occluded, sharp = sigmas[mixed][rows, first], sigmas[mixed][rows, 1 - first]
    return float(np.mean(occluded > sharp)), float(occluded.mean()), float(sharp.mean())
