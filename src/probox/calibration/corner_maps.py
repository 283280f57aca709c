"""Maps from a detector's standard deviations to calibrated ones."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from probox.calibration.std_regression import SIGMA_FEATURES, StdModel, edge_features, values_of_classes
from probox.fusion.gaussian import keep_inside
from probox.measures.matched import EDGES, FEW_PAIRS
from probox.measures.scoring.scores import edge_variances, normal_quantile
from probox.support.formatting import with_count
from probox.support.types import Bools, Floats, Ints
from probox.tables.dataset import Dataset
from probox.tables.detections import Detections
from probox.tables.geometry import extents_of
from probox.tables.labels import canonical_name


def sigmas_of(covariances: Floats) -> Floats:
    """Return the standard deviations of x1, y1, x2, y2, (K, 4)."""
    return np.sqrt(np.maximum(edge_variances(covariances), 0.0))


def with_sigmas(covariances: Floats, sigmas: Floats) -> Floats:
    """Return covariances of the same correlations with other standard deviations (N, 4).

    >>> with_sigmas(np.array([[[[4, 1], [1, 1]], [[1, 0], [0, 1]]]], float), np.array([[4.0, 1, 1, 3]])).tolist()
    [[[[16.0, 2.0], [2.0, 1.0]], [[1.0, 0.0], [0.0, 9.0]]]]
    """
    old = sigmas_of(covariances)
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = np.where(old > 0, sigmas / old, 0.0).reshape(-1, 2, 2)
    changed = covariances * factors[..., :, None] * factors[..., None, :]
    axes = np.arange(2)
    changed[..., axes, axes] = np.square(sigmas).reshape(-1, 2, 2)
    return np.asarray(changed)


def squared_distances(residuals: Floats, covariances: Floats, free: Bools) -> Floats:
    """Return r' Sigma^-1 r over the free edges, (K, 4), with the others marginalized: (K,).

    `covariances` of both corners, (K, 2, 2, 2), must be invertible.
    """
    r, use = residuals.reshape(-1, 2, 2), free.reshape(-1, 2, 2)
    xx, xy, yy = covariances[..., 0, 0], covariances[..., 0, 1], covariances[..., 1, 1]
    x, y = r[..., 0], r[..., 1]
    both = (yy * x * x - 2 * xy * x * y + xx * y * y) / (xx * yy - xy * xy)
    one = np.where(use[..., 0], x * x / xx, 0.0) + np.where(use[..., 1], y * y / yy, 0.0)
    return np.asarray(np.where(use.all(axis=-1), both, one).sum(axis=1))


def edge_reach(level: float) -> float:
    """Return the half width, in standard deviations, of a Gaussian's central interval with this probability.

    >>> round(edge_reach(0.9), 4)
    1.6449
    """
    return normal_quantile((1 + level) / 2)


def box_reach(level: float) -> float:
    """Return k such that four independent Gaussians are all within k standard deviations with this probability.

    (2 Phi(k) - 1)^4 = level.

    >>> round(box_reach(0.9), 4)
    2.2263
    """
    return edge_reach(math.sqrt(math.sqrt(level)))


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class CalibrationInputs:
    """Inputs of a map: std, box sides, class and score of each detection."""

    sigmas: Floats  # (N, 4), the detector's standard deviations of x1, y1, x2, y2; 0 without covariance
    sides: Floats  # (N, 4), units of relative errors: width, height, width, height of the box
    classes: npt.NDArray[np.str_]  # names
    scores: Floats

    @classmethod
    def of(cls, found: Detections, rows: Ints, covariances: Floats) -> CalibrationInputs:
        """Return the inputs of some rows of a table, with the given covariances instead of the table's."""
        return cls(
            sigmas=sigmas_of(covariances),
            sides=np.tile(extents_of(found.boxes[rows]), 2),
            classes=np.array(found.classes or ("",))[found.labels[rows]],
            scores=found.scores[rows],
        )


def pool_adjacent_violators(values: Floats, weights: Floats) -> Floats:
    """Return the non-decreasing values that minimise sum of weight * (value - given)^2.

    >>> pool_adjacent_violators(np.array([1.0, 3.0, 2.0]), np.array([1.0, 1.0, 3.0])).tolist()
    [1.0, 2.25, 2.25]
    """
    blocks: list[tuple[float, float, int]] = []  # mean, weight, how many values
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        block = (value, weight, 1)
        while blocks and blocks[-1][0] >= block[0]:
            mean, mass, count = blocks.pop()
            total = mass + block[1]
            block = ((mean * mass + block[0] * block[1]) / total, total, count + block[2])
        blocks.append(block)
    return np.repeat([mean for mean, _, _ in blocks], [count for _, _, count in blocks]).astype(np.float64)


@dataclasses.dataclass(frozen=True)
class MonotoneCurve:
    """A non-decreasing, piecewise linear curve through knots, constant beyond the first and the last."""

    x: tuple[float, ...]
    y: tuple[float, ...]

    def __call__(self, values: Floats) -> Floats:
        return np.interp(values, self.x, self.y)

    def scale_by(self, factor: float) -> MonotoneCurve:
        """Return the curve that is `factor` times as high."""
        return MonotoneCurve(self.x, tuple(factor * y for y in self.y))


def fit_curve(x: Floats, y: Floats, *, least: int = FEW_PAIRS) -> MonotoneCurve:
    """Return the isotonic curve of the mean of y given x.

    Groups of at least `least` neighbours in x are averaged first, so that no end of the curve depends on one value;
    equal x stay together. The means are pooled until none violates the order. At least one value is required.
    """
    order = np.argsort(x, kind="stable")
    xs, ys = x[order], y[order]
    groups = max(1, len(xs) // least)
    number = (np.searchsorted(xs, xs, side="left") * groups) // len(xs)
    _, number = np.unique(number, return_inverse=True)
    counts = np.bincount(number).astype(np.float64)
    knots = np.bincount(number, xs) / counts
    heights = pool_adjacent_violators(np.bincount(number, ys) / counts, counts)
    # Between the first and the last of several knots of equal height, the others are redundant.
    level = np.concatenate([[False], (heights[1:-1] == heights[:-2]) & (heights[1:-1] == heights[2:]), [False]])
    level = level[: len(heights)]
    return MonotoneCurve(tuple(knots[~level].tolist()), tuple(heights[~level].tolist()))


class CornerMap(Protocol):
    """A map of standard deviations; frozen, and equal to another with the same numbers."""

    method: ClassVar[str]

    @property
    def needs_covariances(self) -> bool:
        """Return whether the map scales existing std; otherwise boxes without covariance also get one."""
        ...

    def sigmas(self, given: CalibrationInputs) -> Floats:
        """Return new standard deviations, (N, 4)."""
        ...

    def scale_by(self, factor: float) -> CornerMap:
        """Return the map whose results are `factor` times as large."""
        ...

    def has_class(self, name: str) -> bool:
        """Return whether the map has values of its own for a class, or treats all alike."""
        ...


class _ClassIndependent:
    """A map that does not depend on classes."""

    needs_covariances: ClassVar[bool] = True

    def has_class(self, name: str) -> bool:
        return True


def is_among(name: str, classes: Iterable[tuple[str, object]]) -> bool:
    """Return whether a class, by any of its names, is among those with values."""
    return canonical_name(name) in {canonical_name(own) for own, _ in classes}


def count_curves(what: str, classes: int) -> str:
    """Return the number of classes with values of their own, as a phrase.

    >>> count_curves("curve", 1), count_curves("factor", 1203)
    ('1 class has its own curve', '1,203 classes have their own factors')
    """
    return f"{with_count(classes, 'class')} {f'has its own {what}' if classes == 1 else f'have their own {what}s'}"


@dataclasses.dataclass(frozen=True)
class Scale(_ClassIndependent):
    """One factor for all edges."""

    method: ClassVar[str] = "scale"
    factor: float

    def sigmas(self, given: CalibrationInputs) -> Floats:
        return self.factor * given.sigmas

    def scale_by(self, factor: float) -> Scale:
        return Scale(factor * self.factor)

    def __str__(self) -> str:
        return f"std times {self.factor:.3g}"


@dataclasses.dataclass(frozen=True)
class EdgeScale(_ClassIndependent):
    """A factor for each of x1, y1, x2, y2."""

    method: ClassVar[str] = "edge-scale"
    factors: tuple[float, float, float, float]

    def sigmas(self, given: CalibrationInputs) -> Floats:
        return np.asarray(given.sigmas * np.array(self.factors))

    def scale_by(self, factor: float) -> EdgeScale:
        x1, y1, x2, y2 = self.factors
        return EdgeScale((factor * x1, factor * y1, factor * x2, factor * y2))

    def __str__(self) -> str:
        pairs = zip(EDGES, self.factors, strict=True)
        return "std times " + ", ".join(f"{factor:.3g} ({edge})" for edge, factor in pairs)


@dataclasses.dataclass(frozen=True)
class ClassScale:
    """A factor for each class that had enough pairs, and one for all others."""

    method: ClassVar[str] = "class-scale"
    needs_covariances: ClassVar[bool] = True
    others: float
    classes: tuple[tuple[str, float], ...]
    """Names and factors."""

    def sigmas(self, given: CalibrationInputs) -> Floats:
        return np.asarray(given.sigmas * values_of_classes(self.classes, given.classes, self.others)[:, None])

    def scale_by(self, factor: float) -> ClassScale:
        return ClassScale(factor * self.others, tuple((name, factor * own) for name, own in self.classes))

    def has_class(self, name: str) -> bool:
        return is_among(name, self.classes)

    def __str__(self) -> str:
        own = f" ({count_curves('factor', len(self.classes))})" if self.classes else ""
        return f"std times {self.others:.3g}{own}"


@dataclasses.dataclass(frozen=True)
class RelativeCurves(_ClassIndependent):
    """A non-decreasing curve per edge, from std / side to root mean square error / side."""

    method: ClassVar[str] = "isotonic"
    curves: tuple[MonotoneCurve, MonotoneCurve, MonotoneCurve, MonotoneCurve]

    def sigmas(self, given: CalibrationInputs) -> Floats:
        old, sides = given.sigmas, given.sides
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = np.where(sides > 0, old / sides, 0.0)
        mapped = np.stack([curve(relative[:, edge]) for edge, curve in enumerate(self.curves)], axis=1)
        return np.where(sides > 0, mapped * sides, old)

    def scale_by(self, factor: float) -> RelativeCurves:
        x1, y1, x2, y2 = (curve.scale_by(factor) for curve in self.curves)
        return RelativeCurves((x1, y1, x2, y2))

    def __str__(self) -> str:
        low, high = (100 * end(end(curve.y) for curve in self.curves) for end in (min, max))
        return f"std becomes {low:.2g}% to {high:.2g}% of the box side, one curve per edge"


@dataclasses.dataclass(frozen=True)
class Constant(_ClassIndependent):
    """The same fraction of the box sides for all: x edges get fraction * width, y edges fraction * height.

    This is the constant-variance baseline, which uses nothing but the box. Corners become uncorrelated.
    """

    method: ClassVar[str] = "constant"
    needs_covariances: ClassVar[bool] = False
    fraction: float

    def sigmas(self, given: CalibrationInputs) -> Floats:
        return self.fraction * given.sides

    def scale_by(self, factor: float) -> Constant:
        return Constant(factor * self.fraction)

    def __str__(self) -> str:
        return f"std is {100 * self.fraction:.3g}% of the box side"


@dataclasses.dataclass(frozen=True)
class Conformal(Scale):
    """One factor, such that the Gaussian's central box of probability 1 - alpha is the conformal one.

    `reach` is the conformal quantile: of new objects that are detected, a fraction of at least 1 - alpha has all four
    edges within `reach` of the detector's own standard deviations.
    """

    method: ClassVar[str] = "conformal"
    alpha: float
    reach: float

    def __str__(self) -> str:
        return (
            f"{super().__str__()}; intervals of {self.reach:.3g} uncalibrated std on each side contain all four edges "
            f"of {100 * (1 - self.alpha):g}% of the matched objects"
        )


@dataclasses.dataclass(frozen=True)
class Learned:
    """Standard deviations predicted from score, size, class and, optionally, the detector's own std.

    With own std, correlations are kept; without, corners become uncorrelated.
    """

    method: ClassVar[str] = "learned"
    model: StdModel

    @property
    def needs_covariances(self) -> bool:
        return any(slope.name in SIGMA_FEATURES for slope in self.model.slopes)

    def sigmas(self, given: CalibrationInputs) -> Floats:
        features = edge_features(given, self.needs_covariances)
        new = self.model.relative_sigmas(features, given.classes) * given.sides
        return np.where(given.sides > 0, new, given.sigmas)  # an edge of a box of size 0 keeps its own std

    def scale_by(self, factor: float) -> Learned:
        return Learned(self.model.scale_by(factor))

    def has_class(self, name: str) -> bool:
        return is_among(name, self.model.classes)

    def __str__(self) -> str:
        steep = sorted(self.model.slopes, key=lambda own: -abs(own.slope))
        share = 100 * math.exp(self.model.level)
        factors = ", ".join(f"{own.name} {math.exp(own.slope):.2f}" for own in steep)
        level = f"std is {share:.2g}% of the box side at mean features"
        return f"{level}; factor per standard deviation of a feature: {factors}"


def find_unchanged(found: Detections, mapping: CornerMap) -> Bools:
    """Return the detections that a map does not change: heatmaps and, if it scales std, boxes without covariance."""
    left = found.has_heatmap
    if mapping.needs_covariances:
        left |= True if found.covariances is None else ~found.covariances.any(axis=(1, 2, 3))
    return left


def calibrate_corners(found: Detections, mapping: CornerMap, dataset: Dataset | None = None) -> Detections:
    """Return detections after a map; with a dataset, pinned at the borders of its images (`keep_inside`)."""
    changed = np.flatnonzero(~find_unchanged(found, mapping))
    if not len(changed):
        return found
    boxes = found.boxes
    covariances: Floats = np.zeros((len(found), 2, 2, 2)) if found.covariances is None else found.covariances.copy()
    given = covariances[changed] if mapping.needs_covariances else np.zeros((len(changed), 2, 2, 2))
    covariances[changed] = with_sigmas(given, mapping.sigmas(CalibrationInputs.of(found, changed, given)))
    if dataset is not None:
        rows, sizes = dataset.rows_of(found.image_ids), dataset.shapes.astype(np.float64)
        known = changed[rows[changed] >= 0]
        boxes = boxes.copy()
        boxes[known], covariances[known] = keep_inside(boxes[known], covariances[known], sizes[rows[known]])
    extents = np.maximum(found.extents + extents_of(boxes) - extents_of(found.boxes), 0.0)
    return found.replace(boxes=boxes, covariances=covariances, extents=extents)
