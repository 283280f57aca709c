"""Variants of the training study: the same detector, trained with different losses of its boxes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from probox.calibration.corner_maps import edge_reach
from probox.errors import InputError
from probox.evaluation.evaluate import evaluate
from probox.measures.scoring.scores import energy_scores, negative_log_likelihoods
from probox.tables.detections import Detections
from probox_experiments.claims import Floats
from probox_experiments.synthetic import edge_covariances
from probox_experiments.training.scenes import OCCLUDED, SHARP, SHARP_SIGMA, SIGMAS, Scenes

# --- Variants: the same detector with different losses ---


@dataclasses.dataclass(frozen=True)
class Arm:
    """A loss of boxes and their standard deviations.

    Parameters
    ----------
    name : str
        Name in tables.
    title : str
        Name in figures.
    loss : str
        The loss of `probox.torch`; empty: L1 of the means only.
    weight : float
        Weight of the loss, so that gradients are about as long as those of L1. It has little effect, because its layers
        have no other loss and the optimizer normalizes gradients. Over a range of ten, PDQ changed by at most 0.1
        points on scenes that the experiment does not use.
    options : mapping
        Further arguments of the loss.
    spread : {"learned", "constant", "none"}
        Standard deviations of the detections: learned, one constant fitted on validation images, or none.
    """

    name: str
    title: str
    loss: str = ""
    weight: float = 1.0
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    spread: Literal["learned", "constant", "none"] = "learned"

    @property
    def reads_pixels(self) -> bool:
        """Whether the loss uses whole pixels of the ground truth, as pPDQ does, instead of coordinates."""
        return self.loss == "ppdq_loss"


ARMS: tuple[Arm, ...] = (
    Arm("l1", "L1, no covariance", weight=0.3, spread="none"),
    Arm("l1-constant", "L1, constant std", weight=0.3, spread="constant"),
    Arm("nll", "NLL", "nll_loss"),
    Arm("energy", "energy score", "energy_score_loss"),
    Arm("crps", "CRPS", "crps_loss"),
    Arm("dmm", "moment matching", "dmm_loss"),
    Arm("ppdq-log", "\N{MINUS SIGN}log pPDQ", "ppdq_loss", weight=10.0, options={"form": "log"}),
    Arm("ppdq-plain", "1 \N{MINUS SIGN} pPDQ", "ppdq_loss", weight=10.0, options={"form": "plain"}),
)

PPDQ_ARMS = tuple(arm.name for arm in ARMS if arm.loss == "ppdq_loss")


def find_arm(name: str) -> Arm:
    """Return the arm of this name."""
    for arm in ARMS:
        if arm.name == name:
            return arm
    raise InputError(f"unknown arm {name!r:.40}", remedy=f"choose from {', '.join(arm.name for arm in ARMS)}")


# --- Hyperparameters ---


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Hyperparameters, equal for all arms.

    Parameters
    ----------
    steps, batch : int
        Number of steps, and images per step.
    warm : int
        Number of initial steps with L1 loss for all arms.
    rate : float
        Highest learning rate.
    images, validation, test : int
        Number of images for training, for fitting the constant, and for testing.
    """

    steps: int = 700
    batch: int = 16
    warm: int = 60
    rate: float = 6e-3
    images: int = 3000
    validation: int = 200
    test: int = 500

    # Training, validation and test scenes differ for all seeds.
    def train_seed(self, seed: int) -> int:
        """Return the seed of the training scenes."""
        return 3 * seed

    def validation_seed(self, seed: int) -> int:
        """Return the seed of the validation scenes."""
        return 3 * seed + 1

    def test_seed(self, seed: int) -> int:
        """Return the seed of the test scenes."""
        return 3 * seed + 2


# --- Intervals of means over seeds ---

QUANTILES = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
"""0.975 quantiles of Student's t for 1, 2, ... degrees of freedom; beyond, the last one is slightly conservative."""


class Interval(NamedTuple):
    """A mean and the ends of its 95% interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"

    def in_points(self) -> str:
        """Return a difference of fractions as text, in percentage points."""
        return f"{100 * self.mean:+.2f} [{100 * self.low:+.2f}, {100 * self.high:+.2f}]"


def interval_of(values: npt.ArrayLike) -> Interval:
    """Return the mean of values, one per seed, with its 95% t interval, which is infinite for a single value.

    Examples
    --------
    >>> print(interval_of([0.1, 0.2, 0.3]))
    0.200 [-0.048, 0.448]
    """
    numbers = np.asarray(values, dtype=np.float64)
    mean, count = float(numbers.mean()), len(numbers)
    if count < 2:
        return Interval(mean, -math.inf, math.inf)
    half = QUANTILES[min(count - 1, len(QUANTILES)) - 1] * float(numbers.std(ddof=1)) / math.sqrt(count)
    return Interval(mean, mean - half, mean + half)


# --- Evaluation of a trained detector on test scenes ---


THRESHOLD = 0.5
"""The label threshold of PDQ, equal for all arms; mAP and moLRP use all detections."""

COVERAGES = {per_cent: edge_reach(per_cent / 100) for per_cent in (50, 80, 90, 95)}
"""Half width, in standard deviations, of the central interval of a Gaussian with this mass in per cent."""

LEVELS = (SHARP_SIGMA, *np.geomspace(SIGMAS[0], SIGMAS[1], 7).round(3).tolist())
"""Standard deviation of sharp edges, then bin edges of the others; predictions are averaged in each bin."""

CANDIDATES = np.exp(np.linspace(math.log(0.5), math.log(5.0), 47))
"""Candidates of the constant standard deviation, 5% apart."""


def coverage_column(per_cent: int) -> str:
    """Return the column of the fraction of true edges in the central interval of this mass."""
    return f"coverage_{per_cent}"


def level_column(number: int) -> str:
    """Return the column of the geometric mean of predicted standard deviations for true ones of this level."""
    middle = LEVELS[0] if number == 0 else math.sqrt(LEVELS[number] * LEVELS[number + 1])
    return f"sigma_at_{middle:.2f}"


@dataclasses.dataclass(frozen=True)
class Edges:
    """The edges of detected test objects, (N, 4) each: x1, y1, x2, y2.

    Parameters
    ----------
    objects : (N,) ints
        Rows of the scenes' objects.
    residuals, predicted, true : floats
        True edge minus mean, predicted and true standard deviation.
    means : floats
        The predicted means.
    kinds : ints
        Kind of each edge.
    """

    objects: npt.NDArray[np.int64]
    residuals: Floats
    predicted: Floats
    true: Floats
    means: Floats
    kinds: npt.NDArray[np.int64]

    @classmethod
    def of(cls, scenes: Scenes, evaluation: Any) -> Edges:
        """Return the edges of an evaluation's pairs, which are matched by IoU only."""
        pairs = evaluation.matched_pairs
        rows = pairs.objects
        means = scenes.boxes[rows] - pairs.residuals
        return cls(rows, pairs.residuals, np.sqrt(pairs.variances), scenes.sigmas[rows], means, scenes.kinds[rows])


def best_sigma(scenes: Scenes, found: Detections) -> float:
    """Return the constant standard deviation with the highest PDQ on these scenes."""
    from probox_experiments.training.detector import with_sigma

    kept = found.select(found.label_probs.max(axis=1) > THRESHOLD)
    scores = [evaluate(scenes.truth, with_sigma(kept, sigma), measures=("pdq",)).pdq for sigma in CANDIDATES.tolist()]
    return float(CANDIDATES[int(np.argmax(scores))])


def measure_found(scenes: Scenes, found: Detections, *, threads: int | None = None) -> dict[str, float]:
    """Return all metrics of one trained detector; those of standard deviations are NaN without covariance."""
    evaluation = evaluate(scenes.truth, found, threads=threads)
    summary, confident = evaluation.summary(), evaluation.at_threshold(THRESHOLD).summary()
    kept = found.select(found.label_probs.max(axis=1) > THRESHOLD)
    edges = Edges.of(scenes, evaluation)
    measured = {
        "PDQ": confident["PDQ"],
        "PDQ_paper": evaluate(scenes.truth, kept, convention="paper", measures=("pdq",), threads=threads).pdq,
        "mAP": summary["mAP"],
        "moLRP": summary["moLRP"],
        "TP": confident["TP"],
        "FP": confident["FP"],
        "FN": confident["FN"],
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
    covariances = edge_covariances(predicted)
    occluded, sharp = mixed_corners(edges.kinds, predicted, OCCLUDED, SHARP)
    wider = hidden = seen = math.nan
    if len(sharp):
        wider, hidden, seen = float(np.mean(occluded > sharp)), float(occluded.mean()), float(sharp.mean())
    measured = {
        "sigma_correlation": _correlation(predicted, true),
        "log_sigma_correlation": _correlation(np.log(predicted), np.log(true)),
        "sigma_ratio": float(np.median(predicted / true)),
        **{coverage_column(share): float(np.mean(distance <= reach)) for share, reach in COVERAGES.items()},
        "NLL": float(negative_log_likelihoods(edges.residuals, covariances).mean()),
        "energy": float(energy_scores(edges.residuals, covariances).mean()),
        "occluded_wider": wider,
        "occluded_sigma": hidden,
        "sharp_sigma": seen,
    }
    # Level 0 contains sharp edges, the others are bins.
    level = np.where(edges.kinds == SHARP, 0, np.searchsorted(LEVELS[2:-1], true) + 1)
    for number in range(len(LEVELS) - 1):
        here = predicted[level == number]
        measured[level_column(number)] = float(np.exp(np.log(here).mean())) if len(here) else math.nan
    return measured


def _correlation(first: Floats, second: Floats) -> float:
    """Return Pearson's correlation; 0 if one of both is constant."""
    if np.ptp(first) <= 1e-9 or np.ptp(second) <= 1e-9:
        return 0.0
    return float(np.corrcoef(first.ravel(), second.ravel())[0, 1])


def mixed_corners(kinds: npt.NDArray[Any], sigmas: Floats, occluded: Any, sharp: Any) -> tuple[Floats, Floats]:
    """Return the standard deviations across the occluded and the sharp edge of corners with one of each."""
    kinds, sigmas = kinds.reshape(-1, 2), sigmas.reshape(-1, 2)
    places = (kinds == occluded), (kinds == sharp)
    mixed = places[0].any(axis=1) & places[1].any(axis=1)
    first, second = (sigmas[mixed][place[mixed]] for place in places)
    return first, second
