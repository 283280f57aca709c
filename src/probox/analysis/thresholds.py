"""Best label threshold of a metric, and its effect on other metrics."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import numpy.typing as npt

from probox.analysis.resampling import assign_folds
from probox.analysis.threshold_sweep import Rematches, find_rematches, threshold_curve
from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox.evaluation.verdicts import ThresholdChoice
from probox.measures.measure import Measure
from probox.measures.pdq.pdq_measure import PDQ
from probox.measures.registry import measure_names, measures_called
from probox.support.types import Bools, Floats

FOLDS = 5
"""Number of folds of cross-fitting."""

GRID = np.arange(100) / 100.0
"""Thresholds searched for metrics other than PDQ, whose curve is exact."""


@dataclasses.dataclass(frozen=True)
class BestThreshold:
    """Best label threshold of a metric, chosen on the images it is evaluated on.

    Parameters
    ----------
    measure : str
        Name of the metric.
    threshold : float or None
        Keep detections with a label probability above it; None if no threshold is better.
    value : float
        Value of the metric at the threshold.
    now : float
        Value without the threshold.
    summary, summary_now : dict
        All metrics of the evaluation, with and without the threshold.
    """

    measure: str
    threshold: float | None
    value: float
    now: float
    summary: dict[str, float]
    summary_now: dict[str, float]

    @property
    def gain(self) -> float:
        """Return the gain, positive for an improvement."""
        column = measures_called([self.measure])[0].headline
        return self.value - self.now if column.better != "low" else self.now - self.value

    def to_dict(self) -> dict[str, object]:
        """Return a dictionary for JSON."""
        return {**dataclasses.asdict(self), "gain": self.gain, "chosen_on": "these images"}

    def __str__(self) -> str:
        key = measures_called([self.measure])[0].headline.key
        if math.isnan(self.value):
            return f"{key} is undefined at every label threshold"
        if self.threshold is None:
            return f"no label threshold improves {key} beyond {_format_value(self.now)}"
        others = [
            f"{name} {_format_value(self.summary_now[name])} -> {_format_value(value)}"
            for name, value in self.summary.items()
            if name in _headlines() and name != key
        ]
        text = f"best label threshold for {key}: {self.threshold:.4g} (chosen on these images): "
        text += f"{_format_value(self.now)} -> {_format_value(self.value)}"
        return text + (f"; {', '.join(others)}" if others else "")


def best_threshold(evaluation: Evaluation, measure: str = "pdq") -> BestThreshold:
    """Return the best label threshold of a metric; also as `Evaluation.best_threshold`.

    The search for PDQ is exact: it covers all distinct confidences. Other metrics are evaluated at 0, 0.01 .. 0.99.
    Ties go to the lowest threshold. The threshold is chosen on these images, so its value is optimistic for others;
    ``evaluation.at_threshold("auto")`` chooses thresholds by cross-fitting.

    Parameters
    ----------
    evaluation : Evaluation
        Result to search, preferably without a label threshold.
    measure : str
        Name in `probox.measures.registry.MEASURES`: ``"pdq"``, ``"lrp"``, ``"d-ece"``...

    Returns
    -------
    BestThreshold
        The threshold, and all metrics with and without it.

    Examples
    --------
    >>> import probox
    >>> from probox.demo import make_demo
    >>> demo = make_demo()
    >>> best = best_threshold(probox.evaluate(demo.truth, demo.detectors["probabilistic"]))
    >>> best.value >= best.now
    True
    """
    if measure not in measure_names():
        raise InputError(f"expected measure to be one of {', '.join(measure_names())}, got {measure!r:.40}")
    evaluation = evaluation.of_all_detections()
    if not len(evaluation.detections):
        raise InputError("expected detections to choose a label threshold from, but the result has none")
    chosen = measures_called([measure])[0]
    if measure not in evaluation.measures:
        if "pairs" in chosen.needs and not evaluation.has_pairs:
            raise InputError(f"{measure} was not measured", remedy="evaluate again with {option:measures=all}")
        if "masks" in chosen.needs and not evaluation.has_overlaps:
            raise InputError(f"{measure} was not measured", remedy=f"evaluate again with {{option:measures={measure}}}")
        if "labels" in chosen.needs and evaluation.detections.label_probs is None:
            raise InputError("label probabilities were not stored", remedy="evaluate again with {option:measures=all}")
    threshold, value, now = _make_best(evaluation, chosen)
    summary = evaluation.summary()
    there = summary if threshold is None else evaluation.at_threshold(threshold).summary()
    return BestThreshold(measure, threshold, value, now, there, summary)


def find_best_pdq(evaluation: Evaluation, rematches: Rematches | None = None) -> BestThreshold:
    """Return the best threshold for PDQ without other metrics; `rematches` if already computed."""
    threshold, value, now = _make_best(evaluation, PDQ, rematches)
    return BestThreshold(PDQ.name, threshold, value, now, {}, {})


def _make_best(
    evaluation: Evaluation, measure: Measure, rematches: Rematches | None = None
) -> tuple[float | None, float, float]:
    """Return the best threshold, and the value of the metric with and without it."""
    thresholds = _exact_steps(evaluation.detections.confidences) if measure is PDQ else GRID
    own = evaluation.convention.fixed_threshold
    thresholds = thresholds[thresholds >= (own or 0.0)]
    values = _values(evaluation, measure, thresholds, rematches)
    now = float(measure.summary(evaluation)[measure.headline.key])
    return _find_best(thresholds, values, now, -1.0 if measure.headline.better == "low" else 1.0)


def cross_fit_threshold(evaluation: Evaluation) -> ThresholdChoice:
    """Return for each fold of images the best threshold for PDQ on the other folds, as ``at_threshold("auto")`` uses.

    Images are split into five folds by a shuffle with a fixed seed. The search is exact, as in `best_threshold`.
    """
    if not evaluation.has_pairs:
        raise InputError("PDQ was not measured", remedy="evaluate again with {option:measures=all}")
    images = len(evaluation.dataset)
    if images < 2:
        raise InputError(
            f'label threshold "auto" needs two or more images, got {images}',
            remedy="give a number as the label threshold",
        )
    folds = assign_folds(images, min(FOLDS, images), seed=0)
    rematches = find_rematches(evaluation)

    def best_on(chosen: Bools) -> float | None:
        here = evaluation.detections.confidences[chosen[evaluation.detections.image_rows]]
        thresholds = np.concatenate([[-1.0], _exact_steps(here)])  # -1 keeps all detections
        values = threshold_curve(evaluation, thresholds, rematches, chosen)["PDQ"]
        return _find_best(thresholds[1:], values[1:], float(values[0]), 1.0)[0]

    chosen = tuple(best_on(folds != fold) for fold in range(int(folds.max()) + 1))
    return ThresholdChoice(chosen, folds, best_on(folds >= 0))


def _find_best(thresholds: Floats, values: Floats, now: float, sign: float) -> tuple[float | None, float, float]:
    """Return the lowest best threshold, its value, and `now`; None as threshold if none is better."""
    # Metrics of pairs are undefined if no detection is left: such thresholds are excluded.
    usable = ~np.isnan(values)
    best = int(np.argmax(np.where(usable, sign * values, -np.inf))) if usable.any() else -1
    better = best >= 0 and (math.isnan(now) or sign * values[best] > sign * now + 1e-12)  # equal up to rounding
    return (float(thresholds[best]), float(values[best]), now) if better else (None, now, now)


def _exact_steps(confidences: npt.NDArray[np.float32]) -> Floats:
    """Return the thresholds at which detections of these confidences are removed."""
    return np.unique(np.concatenate([[0.0], np.unique(confidences).astype(np.float64)]))


def _values(evaluation: Evaluation, measure: Measure, thresholds: Floats, rematches: Rematches | None) -> Floats:
    if measure is PDQ:
        return threshold_curve(evaluation, thresholds, rematches)["PDQ"]
    alone = dataclasses.replace(evaluation, measures=(measure.name,))
    key = measure.headline.key
    return np.array([measure.summary(alone.at_threshold(float(t)))[key] for t in thresholds], np.float64)


def _headlines() -> set[str]:
    return {measure.headline.key for measure in measures_called(measure_names())}


def _format_value(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4f}"
