"""Fitting what happens to corners: the shape follows from the errors of matched boxes, its height from the target."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from probox.calibration.corners import (
    ClassScale,
    Conformal,
    Constant,
    CornerMap,
    EdgeScale,
    RelativeCurves,
    Scale,
)
from probox.calibration.gaussians import box_reach, edge_reach, sigmas_of, squared_distances
from probox.calibration.isotonic import Curve, fit_curve
from probox.calibration.pairs import FittingPairs
from probox.calibration.search import STEP, lattice_maximum
from probox.calibration.words import count_of_classes
from probox.errors import InputError
from probox.measures.matched import EDGES, FEW_PAIRS
from probox.support.words import some_names

__all__ = ["CORNER_METHODS", "CornerFit", "fit_corners"]

CORNER_METHODS = ("scale", "edge-scale", "class-scale", "isotonic", "constant", "conformal")
"""What can happen to corners."""

MIDDLE = 0.68
"""For PDQ edges and classes are compared by this quantile of the errors: a few wild ones cost it no more than any."""

LEAST_SHARE = 1e-3
"""No curve of relative sigmas falls below this share of a side."""

Floats = npt.NDArray[np.float64]
Quality = Callable[[CornerMap], float]


@dataclasses.dataclass(frozen=True)
class CornerFit:
    """A map and what is to be said about it."""

    mapping: CornerMap
    notes: tuple[str, ...] = ()


def fit_corners(
    pairs: FittingPairs,
    names: npt.NDArray[np.str_],
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
    names : (K,) str
        The class that each pair's detection names.
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
    if method != "constant":
        pairs, names = pairs.take(pairs.usable), names[pairs.usable]
    pairs, names = _with_free_edges(pairs, names)
    if not len(pairs):
        raise InputError(
            "no detection overlaps an object of its class by half: there is nothing to fit a sigma to",
            remedy="fit on images in which objects are found",
        )
    few = (f"only {len(pairs)} matched boxes to fit to, fewer than {FEW_PAIRS}",) if len(pairs) < FEW_PAIRS else ()
    if method == "conformal":
        return CornerFit(_conformal(pairs, alpha), few)
    share = MIDDLE if target == "pdq" else level
    height: Height = _rms if target == "nll" else (lambda z: _quantile(z, share))
    shape, notes = _SHAPES[method](pairs, names, height)
    if target == "pdq":
        assert quality is not None
        shape = _highest(shape, quality)
    return CornerFit(shape, (*few, *notes))


def _with_free_edges(pairs: FittingPairs, names: npt.NDArray[np.str_]) -> tuple[FittingPairs, npt.NDArray[np.str_]]:
    """Return pairs with at least one edge that counts, and sides to measure it by."""
    some = np.asarray(pairs.free.any(axis=1) & (pairs.sides > 0).all(axis=1))
    return pairs.take(some), names[some]


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


def _scale(pairs: FittingPairs, names: npt.NDArray[np.str_], height: Height) -> Shaped:
    if height is not _rms:
        return Scale(height(pairs.z[pairs.free])), ()
    # The minimum of the joint NLL, correlations included.
    total = float(squared_distances(pairs.residuals, pairs.covariances, pairs.free).sum())
    return Scale(_positive(math.sqrt(total / int(pairs.free.sum())))), ()


def _edge_scale(pairs: FittingPairs, names: npt.NDArray[np.str_], height: Height) -> Shaped:
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


def _class_scale(pairs: FittingPairs, names: npt.NDArray[np.str_], height: Height) -> Shaped:
    z, everything = pairs.z, height(pairs.z[pairs.free])
    own: list[tuple[str, float]] = []
    poor: list[str] = []
    for name in np.unique(names).tolist():
        rows = names == name
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


def _isotonic(pairs: FittingPairs, names: npt.NDArray[np.str_], height: Height) -> Shaped:
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
    new = shape.sigmas(sigmas, pairs.sides, names)
    return shape.scaled(height((pairs.residuals / new)[pairs.free])), ()


def _constant(pairs: FittingPairs, names: npt.NDArray[np.str_], height: Height) -> Shaped:
    return Constant(height((pairs.residuals / pairs.sides)[pairs.free])), ()


_SHAPES: dict[str, Callable[[FittingPairs, npt.NDArray[np.str_], Height], Shaped]] = {
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
