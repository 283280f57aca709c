"""Regression of std on features of boxes: model, features and fit."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from probox.analysis.resampling import assign_folds
from probox.errors import InputError
from probox.support.types import Bools, Floats, Ints
from probox.tables.labels import canonical_name

if TYPE_CHECKING:
    from probox.calibration.corner_maps import CalibrationInputs

REACH = 2.0
"""Features are clipped at this many standard deviations from their mean, to limit extrapolation."""

LARGEST_RATIO = 1e6
"""Upper limit of std / side; its inverse is the lower limit."""


def values_of_classes(known: Sequence[tuple[str, float]], classes: npt.NDArray[np.str_], other: float) -> Floats:
    """Return the value of each row's class, by any of its names; `other` for classes without one."""
    values = {canonical_name(name): value for name, value in known}
    names, inverse = np.unique(classes, return_inverse=True)
    return np.array([values.get(canonical_name(str(name)), other) for name in names], np.float64)[inverse.reshape(-1)]


@dataclasses.dataclass(frozen=True)
class Slope:
    """Effect of one feature: a change by `scale`, its standard deviation, adds `slope` to ln(std)."""

    name: str
    mean: float
    scale: float
    slope: float


@dataclasses.dataclass(frozen=True)
class StdModel:
    """ln(std / side) = level + edge + class + sum of slope * (feature - mean) / scale, constant beyond `REACH`.

    Parameters
    ----------
    level : float
        Value of an edge with mean features.
    edges : tuple of 4 floats
        Terms of x1, y1, x2, y2.
    slopes : tuple of Slope
        Terms of features.
    classes : tuple of (str, float)
        Terms of classes; 0 for all others.
    """

    level: float
    edges: tuple[float, float, float, float]
    slopes: tuple[Slope, ...]
    classes: tuple[tuple[str, float], ...] = ()

    def relative_sigmas(self, features: Floats, classes: npt.NDArray[np.str_] | None = None) -> Floats:
        """Return std / side of the four edges, (N, 4), from features (N, 4, F)."""
        logarithms = np.full(features.shape[:2], self.level) + np.array(self.edges)
        inputs = self.inputs(features)
        for column, own in enumerate(self.slopes):
            logarithms += own.slope * inputs[:, :, column]
        if classes is not None and self.classes:
            logarithms += values_of_classes(self.classes, classes, 0.0)[:, None]
        bound = math.log(LARGEST_RATIO)
        return np.asarray(np.exp(np.clip(logarithms, -bound, bound)))

    def inputs(self, features: Floats) -> Floats:
        """Return standardized features (..., F)."""
        means, scales = (np.array([getattr(own, name) for own in self.slopes]) for name in ("mean", "scale"))
        return standardise(features, means, scales)

    def scale_by(self, factor: float) -> StdModel:
        """Return the model whose std is `factor` times as large."""
        return dataclasses.replace(self, level=self.level + math.log(factor))


def standardise(values: Floats, mean: float | Floats, scale: float | Floats) -> Floats:
    """Return standardized features, clipped at `REACH`.

    >>> standardise(np.array([1.0, 3.0, 99.0]), 1.0, 2.0).tolist()
    [0.0, 1.0, 2.0]
    """
    return np.clip((values - mean) / scale, -REACH, REACH)


BOX_FEATURES = ("score", "side along", "side across")
"""Features of every detection: log odds of the score; logarithms of the box side along the edge's axis and of the
other side. The two sides express size and aspect ratio."""

SIGMA_FEATURES = ("own std", "other edges' std")
"""Features of detections with covariances: logarithms of the edge's own std / side, and of the mean of the other
three."""

LEAST_ODDS = 1e-3
"""Scores are clipped to this distance from 0 and 1."""

LEAST = 1e-6
"""Lower limit of sides and relative std, so that they have a logarithm."""


def feature_names(own_sigmas: bool) -> tuple[str, ...]:
    """Return the names of the columns of `edge_features`."""
    return BOX_FEATURES + (SIGMA_FEATURES if own_sigmas else ())


def edge_features(given: CalibrationInputs, own_sigmas: bool) -> Floats:
    """Return the features of the four edges, (N, 4, F).

    >>> from probox.calibration.corner_maps import CalibrationInputs
    >>> given = CalibrationInputs(sigmas=np.array([[1.0, 2, 1, 2]]), sides=np.array([[10.0, 20, 10, 20]]),
    ...               classes=np.array(["cup"]), scores=np.array([0.5]))
    >>> np.exp(edge_features(given, own_sigmas=True))[0, 0].round(3).tolist()
    [1.0, 10.0, 20.0, 0.1, 0.1]
    """
    score = np.clip(given.scores, LEAST_ODDS, 1.0 - LEAST_ODDS)
    along = np.log(np.maximum(given.sides, LEAST))
    columns = [np.repeat(np.log(score / (1.0 - score))[:, None], 4, axis=1), along, along[:, [1, 0, 3, 2]]]
    if own_sigmas:
        relative = np.maximum(given.sigmas / np.maximum(given.sides, LEAST), LEAST)
        # The mean of std, not of its logarithm: a std near 0 of one edge at the border then hardly changes it.
        others = (relative.sum(axis=1, keepdims=True) - relative) / 3.0
        columns += [np.log(relative), np.log(np.maximum(others, LEAST))]
    return np.stack(columns, axis=2)


NU = 8.0
"""Degrees of freedom of Student's density."""

OFFSET_RIDGE = 100.0
"""Penalty of edges and classes; it weighs about as much as a dozen pairs."""

RIDGES = (1.0, 10.0, 100.0, 1000.0, 10_000.0)
"""Candidate ridges of the cross-validation."""

USUAL_RIDGE = 10.0
"""Ridge for a single image, which cannot be cross-validated."""

ENOUGH_PAIRS = 4000
"""Number of pairs, of random images, from which a ridge is chosen. Penalties apply to sums, not means, so the ridge
suits any number of pairs."""

LEAST_ERROR = 1e-3
"""Lower limit of errors as a fraction of their median: with errors of 0 the likelihood has no maximum."""

NEAR = 1e-8
"""A Newton step with a smaller expected gain per edge is accepted without a line search."""

DIGITS = 10
"""Significant digits of fitted numbers. Rounding makes them equal on all machines."""


def fit_std_model(
    features: Floats,
    errors: Floats,
    names: tuple[str, ...],
    *,
    classes: npt.NDArray[np.str_] | None = None,
    images: Ints | None = None,
    ridge: float | None = None,
    folds: int = 5,
    seed: int = 0,
) -> tuple[StdModel, float]:
    """Return the model that fits errors best, and its ridge.

    Parameters
    ----------
    features : (N, 4, F) float64
        Features of each edge; finite.
    errors : (N, 4) float64
        Ground truth minus box, over the side; NaN if unknown.
    names : tuple of str
        Names of the features.
    classes : (N,) str, optional
        Class of each row. Default: no terms of classes.
    images : (N,) int64, optional
        Image of each row; the cross-validation keeps images together. Default: each row is its own image.
    ridge : float, optional
        Penalty of slopes. Default: chosen by cross-validation.
    folds, seed : int
        Number of folds and random seed of the cross-validation.
    """
    known = np.isfinite(errors)
    pair, edge = np.nonzero(known)
    some = np.abs(errors[known & (errors != 0)])
    if not len(some):
        raise InputError(
            "expected errors to fit the std to, but " + ("all are 0" if len(pair) else "got none"),
            remedy="check that detections are not the ground truth itself",
        )
    magnitude = float(np.median(some))
    seen = features[known]
    means = seen.mean(axis=0)
    scales = seen.std(axis=0)
    scales = np.where(scales > 1e-9 * np.maximum(1.0, np.abs(means)), scales, 1.0)  # a constant feature has no effect
    class_names, of_class = np.unique(classes, return_inverse=True) if classes is not None else (np.zeros(0, str), None)
    # Rounded before the fit, so that the saved model has exactly the means and scales of the fit.
    means, scales = _round_digits(means), _round_digits(scales)
    problem = _Problem(
        columns=np.concatenate(
            [np.ones((len(pair), 1)), np.eye(4)[edge], standardise(seen, means, scales)], axis=1
        ),
        errors=2 * np.log(np.maximum(np.abs(errors[known]) / magnitude, LEAST_ERROR)) - math.log(NU),
        classes=None if of_class is None else of_class.reshape(-1)[pair],
        class_count=len(class_names),
    )  # fmt: skip
    if ridge is None:
        groups = pair if images is None else np.unique(images, return_inverse=True)[1].reshape(-1)[pair]
        ridge = _choose_ridge(problem, groups.astype(np.int64), folds, seed)
    every = -(-len(pair) // (4 * ENOUGH_PAIRS))  # a fit to every n-th edge is fast and gives a good start
    start = problem.take(np.arange(len(pair)) % every == 0).minimum(ridge) if every > 1 else None
    found = _round_digits(problem.minimum(ridge, start))
    level = float(_round_digits(np.array([found[0] + math.log(magnitude)]))[0])
    x1, y1, x2, y2 = found[1:5].tolist()
    slopes = found[5 : 5 + len(names)].tolist()
    model = StdModel(
        level=level,
        edges=(x1, y1, x2, y2),
        slopes=tuple(
            Slope(*own) for own in zip(names, means.tolist(), scales.tolist(), slopes, strict=True)
        ),
        classes=tuple(zip(class_names.tolist(), found[5 + len(names) :].tolist(), strict=True)),
    )  # fmt: skip
    return model, ridge


@dataclasses.dataclass(frozen=True, eq=False)
class _Problem:
    """Edges to fit: columns of a level, four edges and features; classes as indices instead of one-hot columns."""

    columns: Floats
    errors: Floats
    """ln(e^2 / NU)."""
    classes: Ints | None
    class_count: int

    def take(self, rows: Bools) -> _Problem:
        classes = None if self.classes is None else self.classes[rows]
        return _Problem(self.columns[rows], self.errors[rows], classes, self.class_count)

    def logarithms(self, at: Floats) -> Floats:
        dense = self.columns.shape[1]
        values = self.columns @ at[:dense]
        return values if self.classes is None else values + at[dense:][self.classes]

    def loss(self, at: Floats) -> float:
        """Return Student's negative log-likelihood, summed over edges, without penalties."""
        u = self.logarithms(at)
        ratio = self.errors - 2 * u
        softplus = np.maximum(ratio, 0.0) + np.log1p(np.exp(-np.abs(ratio)))  # ln(1 + exp(ratio))
        return float((u + (NU + 1) / 2 * softplus).sum())

    def penalties(self, ridge: float) -> Floats:
        """Return the weights of the squared parameters; the level is not penalized."""
        slopes = self.columns.shape[1] - 5
        return np.concatenate([[0.0], np.full(4, OFFSET_RIDGE), np.full(slopes, ridge),
                               np.full(self.class_count, OFFSET_RIDGE)])  # fmt: skip

    def minimum(self, ridge: float, start: Floats | None = None) -> Floats:
        """Return the parameters of the least penalized loss, by Newton's method with backtracking."""
        weights = self.penalties(ridge)

        def value(at: Floats) -> float:
            return self.loss(at) + 0.5 * float(weights @ np.square(at))

        at = np.zeros(len(weights)) if start is None else start
        height = value(at)
        for _ in range(100):
            gradient, step = self._newton(at, weights)
            promised = -float(gradient @ step)  # twice what a full step gains, near the minimum
            if promised < NEAR * len(
                self.errors
            ):  # the gain is below the rounding of the loss, which cannot be compared
                at = at + step
                if promised < NEAR**2 * len(self.errors):
                    break
                continue
            stride = 1.0
            new = value(at + step)
            while new > height - 1e-4 * stride * promised and stride > 1e-8:
                stride /= 2
                new = value(at + stride * step)
            at, height = at + stride * step, new
        return at

    def _newton(self, at: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Return the gradient of the penalized loss and Newton's step.

        Each edge has one class, so the classes' block of the Hessian is diagonal. It is eliminated first (Schur
        complement), which makes a thousand classes cost about as much as one.
        """
        share = 1 / (1 + np.exp(np.clip(2 * self.logarithms(at) - self.errors, -700.0, 700.0)))
        slope, bend = 1 - (NU + 1) * share, 2 * (NU + 1) * share * (1 - share)
        dense, weighted = self.columns.shape[1], self.columns * bend[:, None]
        gradient = weights * at
        gradient[:dense] += self.columns.T @ slope
        block = self.columns.T @ weighted + np.diag(weights[:dense])
        if self.classes is None:
            return gradient, -np.linalg.solve(block, gradient).astype(np.float64)
        gradient[dense:] += np.bincount(self.classes, slope, self.class_count)
        mixed = np.stack([np.bincount(self.classes, column, self.class_count) for column in weighted.T])
        diagonal = mixed[0] + weights[dense:]  # the first column is all ones
        step = np.empty(len(at))
        step[:dense] = -np.linalg.solve(
            block - (mixed / diagonal) @ mixed.T, gradient[:dense] - mixed @ (gradient[dense:] / diagonal)
        )
        step[dense:] = -(gradient[dense:] + step[:dense] @ mixed) / diagonal
        return gradient, step


def _choose_ridge(problem: _Problem, groups: Ints, folds: int, seed: int) -> float:
    """Return the ridge of least held-out loss; of equally good ones the largest."""
    count = int(groups.max()) + 1
    parts = min(folds, count)
    if parts < 2:
        return USUAL_RIDGE
    order = np.random.default_rng(seed).permutation(count)
    sizes = np.cumsum(np.bincount(groups, minlength=count)[order])
    some = order[: max(parts, int(np.searchsorted(sizes, 4 * ENOUGH_PAIRS)) + 1)]  # four edges per pair
    rows = np.isin(groups, some)
    problem, groups = problem.take(rows), np.searchsorted(np.sort(some), groups[rows])
    fold = assign_folds(len(some), parts, seed)[groups]
    losses = np.zeros(len(RIDGES))
    for number in range(parts):
        seen, unseen = problem.take(fold != number), problem.take(fold == number)
        at: Floats | None = None
        for place in reversed(range(len(RIDGES))):  # from the strongest penalty, as each fit starts at the previous one
            at = seen.minimum(RIDGES[place], at)
            losses[place] += unseen.loss(at)
    good = losses <= losses.min() + NEAR * len(groups)
    return max(ridge for ridge, equal in zip(RIDGES, good.tolist(), strict=True) if equal)


def _round_digits(values: Floats) -> Floats:
    return np.array([float(f"{value:.{DIGITS}g}") for value in values.tolist()])
