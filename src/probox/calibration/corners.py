"""What a calibration does to corners: new standard deviations for the four edges; correlations stay."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Protocol

import numpy as np

from probox.calibration.gaussians import with_sigmas
from probox.calibration.given import Given
from probox.calibration.isotonic import Curve
from probox.calibration.learned import Learned
from probox.calibration.words import count_of_classes
from probox.fusion.gaussian import keep_inside
from probox.measures.matched import EDGES
from probox.support.types import Bools, Floats, Ints
from probox.tables.boxes import extents_of
from probox.tables.dataset import Dataset
from probox.tables.detections import Detections
from probox.tables.labels import canonical_name

__all__ = [
    "ClassScale",
    "Conformal",
    "Constant",
    "CornerMap",
    "EdgeScale",
    "Given",
    "Learned",
    "RelativeCurves",
    "Scale",
    "calibrated",
    "describe",
    "left_as_they_are",
]


class CornerMap(Protocol):
    """A way to replace standard deviations; frozen, and equal to another of the same numbers."""

    method: ClassVar[str]

    @property
    def needs_covariances(self) -> bool:
        """Return whether it changes sigmas that are there; if not, plain boxes get some too."""
        ...

    def sigmas(self, given: Given) -> Floats:
        """Return new standard deviations, (N, 4)."""
        ...

    def scaled(self, factor: float) -> CornerMap:
        """Return the map whose results are `factor` times as large."""
        ...

    def knows(self, name: str) -> bool:
        """Return whether the map has values of its own for a class, or treats all alike."""
        ...


class _AllAlike:
    """A map that does not look at classes."""

    needs_covariances: ClassVar[bool] = True

    def knows(self, name: str) -> bool:
        return True


@dataclasses.dataclass(frozen=True)
class Scale(_AllAlike):
    """One factor for all edges."""

    method: ClassVar[str] = "scale"
    factor: float

    def sigmas(self, given: Given) -> Floats:
        return self.factor * given.sigmas

    def scaled(self, factor: float) -> Scale:
        return Scale(factor * self.factor)


@dataclasses.dataclass(frozen=True)
class EdgeScale(_AllAlike):
    """A factor for each of x1, y1, x2, y2."""

    method: ClassVar[str] = "edge-scale"
    factors: tuple[float, float, float, float]

    def sigmas(self, given: Given) -> Floats:
        return np.asarray(given.sigmas * np.array(self.factors))

    def scaled(self, factor: float) -> EdgeScale:
        x1, y1, x2, y2 = self.factors
        return EdgeScale((factor * x1, factor * y1, factor * x2, factor * y2))


@dataclasses.dataclass(frozen=True)
class ClassScale:
    """A factor for each class that had enough pairs, and one for all others."""

    method: ClassVar[str] = "class-scale"
    needs_covariances: ClassVar[bool] = True
    others: float
    classes: tuple[tuple[str, float], ...]
    """Names and factors."""

    def sigmas(self, given: Given) -> Floats:
        known = {canonical_name(name): factor for name, factor in self.classes}
        names, inverse = np.unique(given.classes, return_inverse=True)
        factors = np.array([known.get(canonical_name(str(name)), self.others) for name in names], np.float64)
        return np.asarray(given.sigmas * factors[inverse].reshape(-1, 1))

    def scaled(self, factor: float) -> ClassScale:
        return ClassScale(factor * self.others, tuple((name, factor * own) for name, own in self.classes))

    def knows(self, name: str) -> bool:
        return canonical_name(name) in {canonical_name(own) for own, _ in self.classes}


@dataclasses.dataclass(frozen=True)
class RelativeCurves(_AllAlike):
    """For each edge a non-decreasing curve from sigma / side to root mean square error / side."""

    method: ClassVar[str] = "isotonic"
    curves: tuple[Curve, Curve, Curve, Curve]

    def sigmas(self, given: Given) -> Floats:
        old, sides = given.sigmas, given.sides
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = np.where(sides > 0, old / sides, 0.0)
        mapped = np.stack([curve(relative[:, edge]) for edge, curve in enumerate(self.curves)], axis=1)
        return np.where(sides > 0, mapped * sides, old)

    def scaled(self, factor: float) -> RelativeCurves:
        x1, y1, x2, y2 = (curve.scaled(factor) for curve in self.curves)
        return RelativeCurves((x1, y1, x2, y2))


@dataclasses.dataclass(frozen=True)
class Constant(_AllAlike):
    """The same share of a box's sides for all: x edges get share * width, y edges share * height.

    It takes nothing from the detector but its box, so it is what any other uncertainty has to beat. Corners become
    uncorrelated.
    """

    method: ClassVar[str] = "constant"
    needs_covariances: ClassVar[bool] = False
    share: float

    def sigmas(self, given: Given) -> Floats:
        return self.share * given.sides

    def scaled(self, factor: float) -> Constant:
        return Constant(factor * self.share)


@dataclasses.dataclass(frozen=True)
class Conformal(_AllAlike):
    """One factor, such that the central box of the Gaussian of probability 1 - alpha is the conformal one.

    `reach` is the conformal quantile: of new objects that are found, a share of at least 1 - alpha has all four edges
    within `reach` of the detector's own standard deviations.
    """

    method: ClassVar[str] = "conformal"
    factor: float
    alpha: float
    reach: float

    def sigmas(self, given: Given) -> Floats:
        return self.factor * given.sigmas

    def scaled(self, factor: float) -> Conformal:
        raise NotImplementedError("a conformal factor is what it is")


def left_as_they_are(found: Detections, mapping: CornerMap) -> Bools:
    """Return which detections a map does not touch: heatmaps and, if it scales covariances, plain boxes."""
    left = found.has_heatmap
    if mapping.needs_covariances:
        left |= True if found.covariances is None else ~found.covariances.any(axis=(1, 2, 3))
    return left


def calibrated(found: Detections, mapping: CornerMap, dataset: Dataset | None = None) -> Detections:
    """Return detections after a map; if a data set is given, pinned at the borders of its images (`keep_inside`)."""
    changed = np.flatnonzero(~left_as_they_are(found, mapping))
    if not len(changed):
        return found
    boxes, covariances = found.boxes, calibrated_covariances(found, mapping, changed)
    if dataset is not None:
        rows, sizes = dataset.rows_of(found.image_ids), dataset.shapes.astype(np.float64)
        known = changed[rows[changed] >= 0]
        boxes = boxes.copy()
        boxes[known], covariances[known] = keep_inside(boxes[known], covariances[known], sizes[rows[known]])
    extents = np.maximum(found.extents + extents_of(boxes) - extents_of(found.boxes), 0.0)
    return found.replace(boxes=boxes, covariances=covariances, extents=extents)


def calibrated_covariances(found: Detections, mapping: CornerMap, changed: Ints) -> Floats:
    """Return the covariances of detections after a map of these rows."""
    old: Floats = np.zeros((len(found), 2, 2, 2)) if found.covariances is None else found.covariances
    given = old[changed] if mapping.needs_covariances else np.zeros((len(changed), 2, 2, 2))
    result: Floats = old.copy()
    result[changed] = with_sigmas(given, mapping.sigmas(Given.of(found, changed, given)))
    return result


def describe(mapping: CornerMap) -> str:
    """Return a map in a few words, for people."""
    if isinstance(mapping, Scale):
        return f"sigmas times {mapping.factor:.3g}"
    if isinstance(mapping, EdgeScale):
        pairs = zip(EDGES, mapping.factors, strict=True)
        return "sigmas times " + ", ".join(f"{factor:.3g} ({edge})" for edge, factor in pairs)
    if isinstance(mapping, ClassScale):
        n, every = len(mapping.classes), f"sigmas times {mapping.others:.3g}"
        return f"{every}, and a factor of {'its' if n == 1 else 'their'} own for {count_of_classes(n)}" if n else every
    if isinstance(mapping, RelativeCurves):
        lows, highs = ([ends(curve.y) for curve in mapping.curves] for ends in (min, max))
        return f"sigmas become {100 * min(lows):.2g} to {100 * max(highs):.2g} % of the sides, by a curve for each edge"
    if isinstance(mapping, Conformal):
        share = 100 * (1 - mapping.alpha)
        return (
            f"sigmas times {mapping.factor:.3g}; {mapping.reach:.3g} of the detector's own sigmas hold all four edges "
            f"of {share:g} % of the objects that are found"
        )
    if isinstance(mapping, Learned):
        return str(mapping)
    assert isinstance(mapping, Constant)
    return f"every sigma is {100 * mapping.share:.3g} % of its box's side"
