"""The label threshold at which a measure is best, and what it costs elsewhere."""

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
"""Folds of images that cross-fitting splits into."""

GRID = np.arange(100) / 100.0
"""Thresholds that are tried for measures other than PDQ, whose curve is exact."""


@dataclasses.dataclass(frozen=True)
class BestThreshold:
    """Where a measure is best on the images that it is measured on: chosen on these images.

    Parameters
    ----------
    measure : str
        The measure's name.
    threshold : float or None
        Keep detections with a label probability above it; None if leaving anything out makes it worse.
    value : float
        The measure's own number there.
    now : float
        The number without it.
    summary, summary_now : dict
        Everything that the evaluation measures, there and now: what the threshold costs elsewhere.
    """

    measure: str
    threshold: float | None
    value: float
    now: float
    summary: dict[str, float]
    summary_now: dict[str, float]

    @property
    def gain(self) -> float:
        """Return what is gained, positive if it is better."""
        column = measures_called([self.measure])[0].headline
        return self.value - self.now if column.better != "low" else self.now - self.value

    def to_dict(self) -> dict[str, object]:
        """Return everything by name."""
        return {**dataclasses.asdict(self), "gain": self.gain, "chosen_on": "these images"}

    def __str__(self) -> str:
        key = measures_called([self.measure])[0].headline.key
        if math.isnan(self.value):
            return f"{key} has no number at any threshold"
        if self.threshold is None:
            return f"no threshold makes {key} better than {_format_value(self.now)}"
        others = [
            f"{name} {_format_value(self.summary_now[name])} -> {_format_value(value)}"
            for name, value in self.summary.items()
            if name in _headlines() and name != key
        ]
        text = f"{key} is best above {self.threshold:.4g} (chosen on these images): "
        text += f"{_format_value(self.now)} -> {_format_value(self.value)}"
        return text + (f"; {', '.join(others)}" if others else "")


def best_threshold(evaluation: Evaluation, measure: str = "pdq") -> BestThreshold:
    """Return the label threshold at which a measure is best; also as `Evaluation.best_threshold`.

    PDQ's is exact: each threshold that changes anything is tried. Other measures are tried at 0, 0.01 .. 0.99. The
    lowest of equally good thresholds is returned. It is chosen on these images, so the value there is too good for
    others; ``evaluation.at_threshold("auto")`` chooses on other images than it reports on.

    Parameters
    ----------
    evaluation : Evaluation
        What was measured, best without a label threshold.
    measure : str
        Its name in `probox.measures.registry.MEASURES`: ``"pdq"``, ``"lrp"``, ``"d-ece"``...

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
        raise InputError("there is no detection to leave out")
    chosen = measures_called([measure])[0]
    if measure not in evaluation.measures:
        if "pairs" in chosen.needs and not evaluation.has_pairs:
            raise InputError(f"{measure} was not measured", remedy=f"evaluate with {measure} among the measures")
        if "labels" in chosen.needs and evaluation.detections.label_probs is None:
            raise InputError("label probabilities were not kept", remedy=f"evaluate with {measure} among the measures")
    threshold, value, now = _make_best(evaluation, chosen)
    summary = evaluation.summary()
    there = summary if threshold is None else evaluation.at_threshold(threshold).summary()
    return BestThreshold(measure, threshold, value, now, there, summary)


def find_best_pdq(evaluation: Evaluation, rematches: Rematches | None = None) -> BestThreshold:
    """Return the threshold at which PDQ is best, and nothing of what it costs elsewhere; `rematches` if at hand."""
    threshold, value, now = _make_best(evaluation, PDQ, rematches)
    return BestThreshold(PDQ.name, threshold, value, now, {}, {})


def _make_best(
    evaluation: Evaluation, measure: Measure, rematches: Rematches | None = None
) -> tuple[float | None, float, float]:
    """Return the best threshold, the measure's number there, and what it is without."""
    thresholds = _exact_steps(evaluation.detections.confidences) if measure is PDQ else GRID
    own = evaluation.convention.fixed_threshold
    thresholds = thresholds[thresholds >= (own or 0.0)]
    values = _values(evaluation, measure, thresholds, rematches)
    now = float(measure.summary(evaluation)[measure.headline.key])
    return _find_best(thresholds, values, now, -1.0 if measure.headline.better == "low" else 1.0)


def cross_fit_threshold(evaluation: Evaluation) -> ThresholdChoice:
    """Return PDQ's best threshold on the other folds for each fold of the images: what ``at_threshold("auto")`` uses.

    Images are split into five folds by a shuffle of fixed seed, as `probox calibrate` splits them. Thresholds are
    exact, as those of `best_threshold`.
    """
    if not evaluation.has_pairs:
        raise InputError("PDQ was not measured", remedy="evaluate with pdq among the measures")
    images = len(evaluation.dataset)
    if images < 2:
        raise InputError(
            f'label threshold "auto" is chosen on other images: expected two or more, got {images}',
            remedy="give a number as the label threshold",
        )
    folds = assign_folds(images, min(FOLDS, images), seed=0)
    rematches = find_rematches(evaluation)

    def best_on(chosen: Bools) -> float | None:
        here = evaluation.detections.confidences[chosen[evaluation.detections.image_rows]]
        thresholds = np.concatenate([[-1.0], _exact_steps(here)])  # above -1 are all detections
        values = threshold_curve(evaluation, thresholds, rematches, chosen)["PDQ"]
        return _find_best(thresholds[1:], values[1:], float(values[0]), 1.0)[0]

    chosen = tuple(best_on(folds != fold) for fold in range(int(folds.max()) + 1))
    return ThresholdChoice(chosen, folds, best_on(folds >= 0))


def _find_best(thresholds: Floats, values: Floats, now: float, sign: float) -> tuple[float | None, float, float]:
    """Return the lowest of the best thresholds, the value there and `now`; None where no threshold is better."""
    # Where nothing is left, a rule about pairs has no number; that is never the best.
    usable = ~np.isnan(values)
    best = int(np.argmax(np.where(usable, sign * values, -np.inf))) if usable.any() else -1
    better = best >= 0 and (math.isnan(now) or sign * values[best] > sign * now + 1e-12)
    return (float(thresholds[best]), float(values[best]), now) if better else (None, now, now)


def _exact_steps(confidences: npt.NDArray[np.float32]) -> Floats:
    """Return the thresholds at which detections of these confidences drop out."""
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
