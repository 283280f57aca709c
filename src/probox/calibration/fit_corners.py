"""Fitting what happens to corners: the shape follows from the errors of matched boxes, its height from the target."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from probox.calibration.corners import (
    ClassScale,
    Conformal,
    Constant,
    CornerMap,
    EdgeScale,
    RelativeCurves,
    Scale,
)
from probox.calibration.fit_learned import fit_learned
from probox.calibration.gaussians import box_reach, edge_reach, sigmas_of, squared_distances
from probox.calibration.isotonic import Curve, fit_curve
from probox.calibration.pairs import FittingPairs
from probox.calibration.search import STEP, lattice_maximum
from probox.calibration.words import count_of_classes
from probox.errors import InputError
from probox.measures.matched import EDGES, FEW_PAIRS
from probox.support.types import Floats
from probox.support.words import some_names

__all__ = [
    "CORNER_METHODS",
    "ON_ONE_LATTICE",
    "CornerFit",
    "fit_corners",
    "height_for",
    "scales_sigmas",
    "suited",
    "with_free_edges",
]

CORNER_METHODS = ("scale", "edge-scale", "class-scale", "isotonic", "learned", "constant", "conformal")
"""What can happen to corners."""

ON_ONE_LATTICE = ("scale", "constant")
"""Methods that for PDQ search among the same maps whatever images they are fitted to: see `_highest`."""

MIDDLE = 0.68
"""For PDQ edges and classes are compared by this quantile of the errors: a few wild ones cost it no more than any."""

LEAST_SHARE = 1e-3
"""No curve of relative sigmas falls below this share of a side."""

Quality = Callable[[CornerMap], float]


@dataclasses.dataclass(frozen=True)
class CornerFit:
    """A map and what is to be said about it."""

    mapping: CornerMap
    notes: tuple[str, ...] = ()


def fit_corners(
    pairs: FittingPairs,
    method: str,
    target: str,
    *,
    quality: Quality | None = None,
    level: float = 0.9,
    alpha: float = 0.1,
) -> CornerFit:
    """Return the map of a method that suits matched boxes best.

    Parameters
    ----------
    pairs : FittingPairs
        Matched boxes.
    method : str
        One of `CORNER_METHODS`.
    target : {"pdq", "nll", "coverage"}
        Root mean square z (what NLL asks for), a quantile of \\|z\\| (coverage), or the height of highest `quality`.
    quality : callable, optional
        The PDQ of a map, for that target.
    level : float
        Coverage: which central interval of an edge is to hold its share.
    alpha : float
        Conformal: the share of objects that the box may miss.
    """
    if scales_sigmas(method, pairs):
        pairs = pairs.take(pairs.usable)
    pairs = with_free_edges(pairs)
    few = (f"only {len(pairs)} matched boxes to fit to, fewer than {FEW_PAIRS}",) if len(pairs) < FEW_PAIRS else ()
    if method == "conformal":
        return CornerFit(_conformal(pairs, alpha), few)
    height = height_for(target, level)
    shape, notes = _learned(pairs, height) if method == "learned" else _SHAPES[method](pairs, height)
    if target == "pdq":
        assert quality is not None
        shape = _highest(shape, quality)
    return CornerFit(shape, (*few, *notes))


def suited(
    shape: CornerMap, pairs: FittingPairs, target: str, *, level: float = 0.9, quality: Quality | None = None
) -> CornerMap:
    """Return a map times the factor that a target asks for."""
    shape = shape.scaled(height_for(target, level)(_errors(pairs, shape)))
    if target == "pdq":
        assert quality is not None
        shape = _highest(shape, quality)
    return shape


def height_for(target: str, level: float) -> Height:
    """Return what makes one factor of errors in sigmas; for PDQ it is where a search begins."""
    share = MIDDLE if target == "pdq" else level
    return _rms if target == "nll" else (lambda z: _quantile(z, share))


def scales_sigmas(method: str, pairs: FittingPairs) -> bool:
    """Return whether a method changes sigmas that these pairs have; others make some for plain boxes too."""
    return method != "constant" and (method != "learned" or bool(pairs.covariances.any()))


def with_free_edges(pairs: FittingPairs) -> FittingPairs:
    """Return pairs with at least one edge that counts, and sides to measure it by; raise if there are none."""
    some = np.asarray(pairs.free.any(axis=1) & (pairs.sides > 0).all(axis=1))
    if not some.any():
        raise InputError(
            "no detection overlaps an object of its class by half: there is nothing to fit a sigma to",
            remedy="fit on images in which objects are found",
        )
    return pairs.take(some)


def _rms(z: Floats) -> float:
    return _positive(math.sqrt(float(np.mean(np.square(z)))))


def _quantile(z: Floats, level: float) -> float:
    """Return the factor at which the central interval of this level holds this share of the errors."""
    return _positive(float(np.quantile(np.abs(z), level)) / edge_reach(level))


def _positive(value: float) -> float:
    if not 1e-6 <= value <= 1e6:
        raise InputError(
            f"the errors of matched boxes ask for a factor of {value:.3g}",
            remedy="check that detections are not the truth itself, and that covariances are in square pixels",
        )
    return value


Height = Callable[[Floats], float]
Shaped = tuple[CornerMap, tuple[str, ...]]


def _scale(pairs: FittingPairs, height: Height) -> Shaped:
    if height is not _rms:
        return Scale(height(pairs.z[pairs.free])), ()
    # The minimum of the joint NLL, correlations included.
    total = float(squared_distances(pairs.residuals, pairs.covariances, pairs.free).sum())
    return Scale(_positive(math.sqrt(total / int(pairs.free.sum())))), ()


def _edge_scale(pairs: FittingPairs, height: Height) -> Shaped:
    z, everything = pairs.z, height(pairs.z[pairs.free])
    factors, poor = [], []
    for edge, name in enumerate(EDGES):
        free = pairs.free[:, edge]
        enough = int(free.sum()) >= FEW_PAIRS
        factors.append(height(z[free, edge]) if enough else everything)
        poor += [] if enough else [name]
    notes = (f"fewer than {FEW_PAIRS} edges {', '.join(poor)}: the factor of all is used",) if poor else ()
    x1, y1, x2, y2 = factors
    return EdgeScale((x1, y1, x2, y2)), notes


def _class_scale(pairs: FittingPairs, height: Height) -> Shaped:
    z, everything = pairs.z, height(pairs.z[pairs.free])
    own: list[tuple[str, float]] = []
    poor: list[str] = []
    for name in np.unique(pairs.names).tolist():
        rows = pairs.names == name
        count = int(rows.sum())
        if count < FEW_PAIRS:
            poor.append(name)
            continue
        factor = height(z[rows][pairs.free[rows]])
        # A class of few pairs is drawn towards all: its own factor weighs as many pairs as it has, theirs FEW_PAIRS.
        own.append((name, everything * (factor / everything) ** (count / (count + FEW_PAIRS))))
    few = f"{count_of_classes(len(poor))} with fewer than {FEW_PAIRS} pairs ({some_names(poor)})"
    said = f"the factor of all is used for {few}"
    return ClassScale(everything, tuple(own)), (said,) if poor else ()


def _isotonic(pairs: FittingPairs, height: Height) -> Shaped:
    sigmas = sigmas_of(pairs.covariances)
    curves: list[Curve] = []
    for edge in range(len(EDGES)):
        free = pairs.free[:, edge] if pairs.free[:, edge].any() else np.ones(len(pairs), bool)
        relative = sigmas[free, edge] / pairs.sides[free, edge]
        errors = pairs.residuals[free, edge] / pairs.sides[free, edge]
        squares = fit_curve(relative, np.square(errors))
        curves.append(Curve(squares.x, tuple(max(LEAST_SHARE, math.sqrt(y)) for y in squares.y)))
    x1, y1, x2, y2 = curves
    shape = RelativeCurves((x1, y1, x2, y2))
    if height is _rms:
        return shape, ()
    return shape.scaled(height(_errors(pairs, shape))), ()


def _learned(pairs: FittingPairs, height: Height) -> Shaped:
    shape, fitted = fit_learned(pairs, own_sigmas=scales_sigmas("learned", pairs))
    names = ", ".join(own.name for own in shape.law.slopes)
    note = f"sigmas are learned from {names} and class, with a ridge of {fitted.ridge:g}"
    return shape.scaled(height(_errors(pairs, shape))), (note, *fitted.notes)


def _errors(pairs: FittingPairs, mapping: CornerMap) -> Floats:
    """Return the errors of edges that count in the sigmas of a map."""
    return np.asarray((pairs.residuals / mapping.sigmas(pairs.given))[pairs.free])


def _constant(pairs: FittingPairs, height: Height) -> Shaped:
    return Constant(height((pairs.residuals / pairs.sides)[pairs.free])), ()


_SHAPES: dict[str, Callable[[FittingPairs, Height], Shaped]] = {
    "scale": _scale,
    "edge-scale": _edge_scale,
    "class-scale": _class_scale,
    "isotonic": _isotonic,
    "constant": _constant,
}


def _conformal(pairs: FittingPairs, alpha: float) -> Conformal:
    """Return the split conformal factor: the ceil((n + 1)(1 - alpha))-th smallest of the largest \\|z\\| of a box."""
    largest = np.where(pairs.free, np.abs(pairs.z), 0.0).max(axis=1)
    rank = math.ceil((len(largest) + 1) * (1 - alpha) - 1e-9)  # 10 * (1 - 0.1) is 9, not a rounding above it
    if rank > len(largest):
        raise InputError(
            f"{len(largest):,} matched boxes are too few to promise {100 * (1 - alpha):g} % of new ones",
            remedy=f"fit on at least {math.ceil(1 / alpha - 1e-9) - 1:,}, or allow a larger alpha",
        )
    reach = _positive(float(np.sort(largest)[rank - 1]))
    return Conformal(reach / box_reach(1 - alpha), alpha, reach)


def _highest(shape: CornerMap, quality: Quality) -> CornerMap:
    """Return the map times the factor of highest quality, two per cent apart."""
    base, start = shape, 0
    # Of maps that are one number, everybody searches among the same, so that what was measured once is known.
    if isinstance(shape, Scale):
        base, start = Scale(1.0), round(math.log(shape.factor) / STEP)
    elif isinstance(shape, Constant):
        base, start = Constant(1.0), round(math.log(shape.share) / STEP)
    return base.scaled(math.exp(STEP * lattice_maximum(lambda k: quality(base.scaled(math.exp(STEP * k))), start)))
