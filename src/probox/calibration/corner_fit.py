"""Fits of corner covariances on pairs matched by boxes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.calibration.corner_maps import (
    CalibrationInputs,
    ClassScale,
    Conformal,
    Constant,
    CornerMap,
    EdgeScale,
    Learned,
    MonotoneCurve,
    RelativeCurves,
    Scale,
    box_reach,
    edge_reach,
    fit_curve,
    sigmas_of,
    squared_distances,
)
from probox.calibration.std_regression import edge_features, feature_names, fit_std_model
from probox.errors import InputError
from probox.measures.boxes.matching import match_boxes
from probox.measures.matched import EDGES, FEW_PAIRS, at_border
from probox.measures.scoring.scores import invertible
from probox.notes import Note
from probox.support.formatting import some_names
from probox.support.types import Bools, Floats, Ints
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth


class MatchOutcome:
    """Outcome of a detection in the matching; the values of `FittingPairs.outcomes`."""

    ASIDE, MATCHED, UNMATCHED = 0, 1, 2


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class FittingPairs:
    """Pairs of a detection and its object by COCO's matching at an IoU of 0.5: by class, in order of score.

    Crowds, and detections that only match a crowd, are ignored. Columns of four refer to x1, y1, x2, y2.
    """

    detections: Ints  # (K,), rows of the tables
    objects: Ints
    image_rows: Ints  # rows of the ground truth's dataset
    labels: npt.NDArray[np.int32]  # the object's class as an index of the ground truth's classes
    residuals: Floats  # (K, 4), ground truth minus box
    sides: Floats  # (K, 4), units of relative errors: width, height, width, height of the detection's box
    boxes: Floats  # (K, 4), the detection's
    image_sizes: Floats  # (K, 2), width and height
    covariances: Floats  # (K, 2, 2, 2), the detection's; all zero for a box without covariance
    free: Bools  # (K, 4), edges used: those whose ground truth is not on the image border, by `at_border`
    names: npt.NDArray[np.str_]  # the detection's class
    scores: Floats
    usable: Bools  # (K,), covariances have an inverse: NLL and z are defined
    outcomes: npt.NDArray[np.uint8]  # (N,), of every detection of the table, one of `MatchOutcome`

    def __len__(self) -> int:
        return len(self.detections)

    @classmethod
    def of(cls, truth: GroundTruth, found: Detections, *, threads: int | None = None) -> FittingPairs:
        """Return the pairs of these tables."""
        matches = match_boxes(truth, found, threads=threads, call="fit")
        place = truth.dataset.rows_of(found.image_ids)
        order = np.argsort(place, kind="stable")
        starts = np.searchsorted(place[order], np.arange(len(truth.dataset)))
        rows = order[starts[matches.image_rows] + matches.numbers]
        hit = (matches.matched_objects >= 0) & (matches.ignored[:, 0] & 1 == 0)
        aside = matches.ignored[:, 0] & 1 == 1
        outcomes = np.full(len(found), MatchOutcome.ASIDE, np.uint8)
        outcomes[rows[~aside]] = np.where(hit, MatchOutcome.MATCHED, MatchOutcome.UNMATCHED)[~aside]
        first = truth.dataset.offsets(truth.image_rows)
        images = matches.image_rows[hit].astype(np.int64)
        objects = first[images] + matches.matched_objects[hit]
        detections = rows[hit]
        boxes = truth.boxes[objects]
        shapes = truth.dataset.shapes[images].astype(np.float64)
        covariances = _gaussian_covariances(found)[detections]
        given = CalibrationInputs.of(found, detections, covariances)
        return cls(
            detections=detections,
            objects=objects,
            image_rows=images,
            labels=truth.labels[objects],
            residuals=boxes - found.boxes[detections],
            sides=given.sides,
            boxes=found.boxes[detections],
            image_sizes=shapes,
            covariances=covariances,
            free=~at_border(boxes, shapes),
            names=given.classes,
            scores=given.scores,
            usable=invertible(covariances),
            outcomes=outcomes,
        )

    def take(self, rows: Bools | Ints) -> FittingPairs:
        """Return a subset of the pairs; outcomes remain those of all detections."""
        columns = {name: values[rows] for name, values in vars(self).items() if name != "outcomes"}
        return dataclasses.replace(self, **columns)

    def after(self, truth: GroundTruth, found: Detections) -> FittingPairs:
        """Return the same pairs with boxes and covariances of the same detections after a calibration."""
        covariances = _gaussian_covariances(found)[self.detections]
        boxes = found.boxes[self.detections]
        residuals = truth.boxes[self.objects] - boxes
        return dataclasses.replace(
            self, residuals=residuals, boxes=boxes, covariances=covariances, usable=invertible(covariances)
        )

    @property
    def given(self) -> CalibrationInputs:
        """Return the inputs of maps."""
        return CalibrationInputs(
            sigmas=sigmas_of(self.covariances), sides=self.sides, classes=self.names, scores=self.scores
        )  # fmt: skip

    @property
    def z(self) -> Floats:
        """Return residuals over standard deviations, (K, 4); defined for usable pairs."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.residuals / sigmas_of(self.covariances))


def _gaussian_covariances(found: Detections) -> Floats:
    """Return covariances with zeros for heatmaps, which replace their boxes."""
    if found.covariances is None:
        return np.zeros((len(found), 2, 2, 2))
    return np.where(found.has_heatmap[:, None, None, None], 0.0, found.covariances)


def fit_learned(pairs: FittingPairs, *, own_sigmas: bool, **choices: Any) -> tuple[Learned, float]:
    """Return the std model that fits free edges of matched boxes best, up to a factor, and its ridge.

    `choices` are `ridge`, `folds` and `seed` of `probox.calibration.std_regression.fit_std_model`.
    """
    check_pairs(len(pairs))
    given = pairs.given
    errors = np.where(pairs.free, pairs.residuals, np.nan) / pairs.sides
    model, ridge = fit_std_model(
        edge_features(given, own_sigmas), errors, feature_names(own_sigmas), classes=given.classes,
        images=pairs.image_rows, **choices,
    )  # fmt: skip
    return Learned(model), ridge


def check_pairs(count: int) -> None:
    """Raise if there are too few pairs for a fit."""
    if count < FEW_PAIRS:
        raise InputError(
            f"expected at least {FEW_PAIRS} matched boxes to fit the std, but got {count}",
            remedy="fit on more images, or use {option:method=constant}",
        )


STEP = 0.02
"""Factors are exp(STEP k) with integer k. They differ by 2%, which hardly changes PDQ."""

STRIDE = 35
"""The first steps of a search, in lattice steps: about a doubling."""

FARTHEST = 12
"""Maximum number of strides from the start of a search."""

BOUND = (FARTHEST + 1) * STRIDE
"""Maximum distance of a result from the start, in lattice steps; a result at this distance is not a maximum."""

_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def lattice_maximum(value: Callable[[int], float], start: int) -> int:
    """Return the integer with the highest value, by strides uphill from `start` and then by golden section.

    `value` must be unimodal, apart from noise.

    >>> lattice_maximum(lambda k: -abs(k - 77.2), 0)
    77
    """
    known: dict[int, float] = {}

    def at(k: int) -> float:
        if k not in known:
            known[k] = value(k)
        return known[k]

    middle = start
    for way in (-STRIDE, STRIDE):
        while abs(middle + way - start) <= FARTHEST * STRIDE and at(middle + way) > at(middle):
            middle += way
        if middle != start:
            break
    low, high = middle - STRIDE, middle + STRIDE
    while high - low > 2:
        left, right = high - max(1, round(_GOLDEN * (high - low))), low + max(1, round(_GOLDEN * (high - low)))
        if left >= right:
            left, right = (low + high) // 2, (low + high) // 2 + 1
        if at(left) >= at(right):
            high = right
        else:
            low = left
    for k in range(low, high + 1):
        at(k)
    best = max(known.values())
    return min((k for k, height in known.items() if height == best), key=lambda k: (abs(k - start), k))


CORNER_METHODS = ("scale", "edge-scale", "class-scale", "isotonic", "learned", "constant", "conformal")
"""Methods for corners."""

MIDDLE = 0.68
"""For PDQ, edges and classes are compared by this quantile of errors, because outliers hardly affect PDQ."""

LEAST_SHARE = 1e-3
"""Lower limit of curves of relative std, as a fraction of the side."""

Quality = Callable[[CornerMap], float]


CornerFit = tuple[CornerMap, tuple[Note, ...]]
"""A map and its notes."""


def fit_corners(
    pairs: FittingPairs,
    method: str,
    target: str,
    *,
    quality: Quality | None = None,
    level: float = 0.9,
    alpha: float = 0.1,
) -> CornerFit:
    """Return the map of a method that fits matched boxes best.

    Parameters
    ----------
    pairs : FittingPairs
        Matched boxes.
    method : str
        One of `CORNER_METHODS`.
    target : {"pdq", "nll", "coverage"}
        Objective: root mean square z (NLL), a quantile of \\|z\\| (coverage), or the factor of the highest `quality`.
    quality : callable, optional
        Returns the PDQ of a map; required for ``pdq``.
    level : float
        Coverage: probability of the central interval of an edge.
    alpha : float
        Conformal: fraction of objects that the box may miss.
    """
    if scales_sigmas(method, pairs):
        pairs = pairs.take(pairs.usable)
    pairs = with_free_edges(pairs)
    few = (Note("few-boxes-fitted", len(pairs), least=FEW_PAIRS),) if len(pairs) < FEW_PAIRS else ()
    if method == "conformal":
        return _conformal(pairs, alpha), few
    height = height_for(target, level)
    shape, notes = _SHAPES[method](pairs, height)
    if target == "pdq":
        assert quality is not None
        shape = _maximize_quality(shape, quality)
    return shape, (*few, *notes)


def fit_height(
    shape: CornerMap, pairs: FittingPairs, target: str, *, level: float = 0.9, quality: Quality | None = None
) -> CornerMap:
    """Return a map times the factor that minimizes the objective."""
    shape = shape.scale_by(height_for(target, level)(_errors(pairs, shape)))
    if target == "pdq":
        assert quality is not None
        shape = _maximize_quality(shape, quality)
    return shape


def height_for(target: str, level: float) -> Height:
    """Return the function that computes a factor from errors over std; for PDQ, a search starts at this factor."""
    share = MIDDLE if target == "pdq" else level
    return _rms if target == "nll" else (lambda z: _quantile(z, share))


def scales_sigmas(method: str, pairs: FittingPairs) -> bool:
    """Return whether a method scales existing standard deviations; others add some to boxes without covariance."""
    return method != "constant" and (method != "learned" or bool(pairs.covariances.any()))


def with_free_edges(pairs: FittingPairs) -> FittingPairs:
    """Return pairs with at least one usable edge and positive sides; raise if there are none."""
    some = np.asarray(pairs.free.any(axis=1) & (pairs.sides > 0).all(axis=1))
    if not some.any():
        raise InputError(
            "no matched boxes: no detection reaches IoU 0.5 with an object of its class",
            remedy="fit on images with true positives",
        )
    return pairs.take(some)


def _rms(z: Floats) -> float:
    return _positive(math.sqrt(float(np.mean(np.square(z)))))


def _quantile(z: Floats, level: float) -> float:
    """Return the factor at which the central interval of this level covers this fraction of the errors."""
    return _positive(float(np.quantile(np.abs(z), level)) / edge_reach(level))


def _positive(value: float) -> float:
    if not 1e-6 <= value <= 1e6:
        raise InputError(
            f"expected errors that fit a std factor from 1e-6 to 1e6, but got {value:.3g}",
            remedy="check that detections are not the ground truth itself, and that covariances are in square pixels",
        )
    return value


Height = Callable[[Floats], float]


def _scale(pairs: FittingPairs, height: Height) -> CornerFit:
    if height is not _rms:
        return Scale(height(pairs.z[pairs.free])), ()
    # The minimum of the joint NLL, correlations included.
    total = float(squared_distances(pairs.residuals, pairs.covariances, pairs.free).sum())
    return Scale(_positive(math.sqrt(total / int(pairs.free.sum())))), ()


def _edge_scale(pairs: FittingPairs, height: Height) -> CornerFit:
    z, everything = pairs.z, height(pairs.z[pairs.free])
    factors, poor = [], []
    for edge, name in enumerate(EDGES):
        free = pairs.free[:, edge]
        enough = int(free.sum()) >= FEW_PAIRS
        factors.append(height(z[free, edge]) if enough else everything)
        poor += [] if enough else [name]
    notes = (Note("few-edges-fitted", len(poor), least=FEW_PAIRS, names=", ".join(poor)),) if poor else ()
    x1, y1, x2, y2 = factors
    return EdgeScale((x1, y1, x2, y2)), notes


def _class_scale(pairs: FittingPairs, height: Height) -> CornerFit:
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
        # Shrinkage: a class's own factor weighs as many pairs as it has, the common factor FEW_PAIRS.
        own.append((name, everything * (factor / everything) ** (count / (count + FEW_PAIRS))))
    few = Note("few-pairs-of-classes", len(poor), least=FEW_PAIRS, names=some_names(poor))
    return ClassScale(everything, tuple(own)), (few,) if poor else ()


def _isotonic(pairs: FittingPairs, height: Height) -> CornerFit:
    sigmas = sigmas_of(pairs.covariances)
    curves: list[MonotoneCurve] = []
    for edge in range(len(EDGES)):
        free = pairs.free[:, edge] if pairs.free[:, edge].any() else np.ones(len(pairs), bool)
        relative = sigmas[free, edge] / pairs.sides[free, edge]
        errors = pairs.residuals[free, edge] / pairs.sides[free, edge]
        squares = fit_curve(relative, np.square(errors))
        curves.append(MonotoneCurve(squares.x, tuple(max(LEAST_SHARE, math.sqrt(y)) for y in squares.y)))
    x1, y1, x2, y2 = curves
    shape = RelativeCurves((x1, y1, x2, y2))
    if height is _rms:
        return shape, ()
    return shape.scale_by(height(_errors(pairs, shape))), ()


def _learn_std(pairs: FittingPairs, height: Height) -> CornerFit:
    shape, ridge = fit_learned(pairs, own_sigmas=scales_sigmas("learned", pairs))
    names = ", ".join(own.name for own in shape.model.slopes)
    return shape.scale_by(height(_errors(pairs, shape))), (Note("learned-from", names=names, ridge=ridge),)


def _errors(pairs: FittingPairs, mapping: CornerMap) -> Floats:
    """Return the errors of usable edges over the std of a map."""
    return np.asarray((pairs.residuals / mapping.sigmas(pairs.given))[pairs.free])


def _constant(pairs: FittingPairs, height: Height) -> CornerFit:
    return Constant(height((pairs.residuals / pairs.sides)[pairs.free])), ()


_SHAPES: dict[str, Callable[[FittingPairs, Height], CornerFit]] = {
    "scale": _scale,
    "edge-scale": _edge_scale,
    "class-scale": _class_scale,
    "isotonic": _isotonic,
    "learned": _learn_std,
    "constant": _constant,
}


def _conformal(pairs: FittingPairs, alpha: float) -> Conformal:
    """Return the split conformal factor: the ceil((n + 1)(1 - alpha))-th smallest of the largest \\|z\\| of a box."""
    largest = np.where(pairs.free, np.abs(pairs.z), 0.0).max(axis=1)
    rank = math.ceil((len(largest) + 1) * (1 - alpha) - 1e-9)  # 10 * (1 - 0.1) must give 9 despite rounding
    if rank > len(largest):
        raise InputError(
            f"{len(largest):,} matched boxes are too few to cover {100 * (1 - alpha):g}% of new ones",
            remedy=f"fit on at least {math.ceil(1 / alpha - 1e-9) - 1:,}, or use a larger alpha",
        )
    reach = _positive(float(np.sort(largest)[rank - 1]))
    return Conformal(reach / box_reach(1 - alpha), alpha, reach)


def _maximize_quality(shape: CornerMap, quality: Quality) -> CornerMap:
    """Return the map times the factor of highest quality, to 2%."""
    base, start = shape, 0
    # Maps of one number share a lattice, so that `quality` can be cached between them.
    if isinstance(shape, Scale):
        base, start = Scale(1.0), round(math.log(shape.factor) / STEP)
    elif isinstance(shape, Constant):
        base, start = Constant(1.0), round(math.log(shape.fraction) / STEP)
    return base.scale_by(math.exp(STEP * lattice_maximum(lambda k: quality(base.scale_by(math.exp(STEP * k))), start)))
