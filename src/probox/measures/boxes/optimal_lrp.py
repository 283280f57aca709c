"""Localization recall precision (LRP), and the optimal score threshold of each class."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.errors import InputError
from probox.measures.boxes.matching import (
    PAIR_IOU,
    PREFIXES,
    SIZES,
    BoxMatches,
    Geometry,
    class_index,
    image_lrp,
    keys_for,
    match_boxes,
    matches_by,
    mean_of_defined,
    means_of_defined,
    resampled_lrp,
    size_index,
)
from probox.measures.measure import (
    Column,
    Evaluated,
    Groups,
    ImageColumns,
    Measure,
    Need,
    Resampled,
    Weights,
    groups_of,
)
from probox.support.types import Bools, Floats, Ints
from probox.tables.detections import Detections
from probox.tables.flat import NumberTable, named_once
from probox.tables.groundtruth import GroundTruth

Variant = Literal["grid", "exact"]

GRID = np.linspace(0.0, 1.0, 101)
"""The score thresholds of the variant ``grid``."""

_OPTIMA = ("olrp", "olrp_loc", "olrp_fp", "olrp_fn", "thresholds")
"""The attributes of a result, in the kernel's order."""

_SLACK = 1.0 - PAIR_IOU
"""The largest 1 - IoU of a true positive."""


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class LRPCurve:
    """LRP and its components as functions of the score threshold, which is the last axis.

    Parameters
    ----------
    score : (S,) float64
        Thresholds s, ascending: detections with score >= s are kept.
    true_positives, false_positives : (..., S) int64
        Number of kept detections that are right, and that are wrong.
    objects : (..., 1) int64
        Number of objects.
    lrp : (..., S) float64
        LRP, from 0 to 1, lower is better; NaN without objects.
    loc : (..., S) float64
        Mean ``1 - IoU`` of the true positives; NaN without any.
    fp : (..., S) float64
        1 - precision; NaN where no detection is kept.
    fn : (..., S) float64
        1 - recall; NaN without objects.
    """

    score: Floats
    true_positives: Ints
    false_positives: Ints
    objects: Ints
    lrp: Floats
    loc: Floats
    fp: Floats
    fn: Floats


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LRPResult:
    """Optimal LRP of every class, its components, and the threshold that attains it.

    At IoU threshold tau = 0.5, for a class and the detections with score >= s,

        LRP(s) = (sum over TP of (1 - IoU)/(1 - tau) + FP + FN) / (TP + FP + FN).

    It is 0 for perfect detections and 1 without true positives; lower is better. ``oLRP = min over s of LRP(s)``;
    moLRP is its mean over the classes with objects. At the optimum (the lowest s if several are equal), ``loc`` is the
    mean 1 - IoU of the true positives, ``fp`` = 1 - precision, ``fn`` = 1 - recall. Their means exclude classes for
    which they are undefined.

    Parameters
    ----------
    variant : {"grid", "exact"}
        Thresholds 0, 0.01 .. 1, or every distinct score of the class.
    classes : tuple of str
        Class names.
    objects : (C, 4) int64
        Number of objects of each class in each area range (all, small, medium, large).
    olrp, olrp_loc, olrp_fp, olrp_fn : (C, 4) float64
        The optimum of each class and area range, and its components.
    thresholds : (C, 4) float64
        The score threshold that attains it; NaN if there is no true positive at the optimum, because then all
        thresholds are equal.

    Examples
    --------
    >>> truth = GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [7], [[10, 20, 50, 40]], [0])
    >>> detections = Detections(classes=["cup"], image_ids=[7], boxes=[[10, 20, 50, 38]], label_probs=[[0.9]])
    >>> round(lrp(truth, detections).molrp, 3)
    0.2
    """

    variant: Variant
    classes: tuple[str, ...]
    objects: Ints
    olrp: Floats
    olrp_loc: Floats
    olrp_fp: Floats
    olrp_fn: Floats
    thresholds: Floats

    @classmethod
    def from_matches(cls, matches: BoxMatches, *, variant: Variant = "grid", threads: int | None = None) -> LRPResult:
        """Return the result of existing matches.

        Parameters
        ----------
        matches : BoxMatches
            Outcomes of detections and objects.
        variant : {"grid", "exact"}
            Score thresholds, see `lrp`.
        threads : int, optional
            Number of threads. Default: all available.

        Returns
        -------
        LRPResult

        Examples
        --------
        >>> from probox.measures.boxes import match_boxes
        >>> truth = GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [7], [[10, 20, 50, 40]], [0])
        >>> detections = Detections(classes=["cup"], image_ids=[7], boxes=[[10, 20, 50, 38]], label_probs=[[0.9]])
        >>> LRPResult.from_matches(match_boxes(truth, detections))
        LRPResult(grid, moLRP=0.2000, moLRP_loc=0.1000, moLRP_fp=0.0000, moLRP_fn=0.0000)
        """
        order, offsets = matches.by_score(threads)
        objects = matches.objects_per_class()
        if variant == "grid":  # bit-identical to `from_curves`, without computing every curve
            optima = _core.optimal_lrp(
                order=order,
                offsets=offsets,
                scores=matches.scores,
                matched=matches.matched,
                ignored=matches.ignored,
                ious=matches.ious,
                objects=objects,
                slack=_SLACK,
                thresholds=GRID,
            )
            return cls(
                variant=variant, classes=matches.classes, objects=objects, **dict(zip(_OPTIMA, optima, strict=True))
            )
        curves = (
            _sweep(matches, order[offsets[row] : offsets[row + 1]], objects[row], variant)
            for row in range(len(matches.classes))
        )
        return cls.from_curves(curves, matches.classes, objects, variant)

    @classmethod
    def from_curves(
        cls, curves: Iterable[LRPCurve], classes: tuple[str, ...], objects: Ints, variant: Variant = "grid"
    ) -> LRPResult:
        """Return the optima of curves, one per class, each with one row per area range."""
        best = {name: np.full(objects.shape, np.nan) for name in _OPTIMA}
        ranges = np.arange(len(SIZES))
        for row, curve in enumerate(curves):
            optimum = np.argmin(curve.lrp, axis=1)  # the first, so the lowest threshold; 0 if all are NaN
            for name, values in zip(_OPTIMA[:4], (curve.lrp, curve.loc, curve.fp, curve.fn), strict=True):
                best[name][row] = values[ranges, optimum]
            has_right = curve.true_positives[ranges, optimum] > 0
            best["thresholds"][row] = np.where(has_right & (objects[row] > 0), curve.score[optimum], np.nan)
        return cls(variant=variant, classes=classes, objects=objects, **best)

    @property
    def molrp(self) -> float:
        """Mean optimal LRP; lower is better."""
        return mean_of_defined(self.olrp[:, 0])

    @property
    def loc(self) -> float:
        """Mean localization error at the optimum, over classes with a true positive there."""
        return mean_of_defined(self.olrp_loc[:, 0])

    @property
    def fp(self) -> float:
        """Mean of 1 - precision at the optimum, over classes with a detection there."""
        return mean_of_defined(self.olrp_fp[:, 0])

    @property
    def fn(self) -> float:
        """Mean of 1 - recall at the optimum."""
        return mean_of_defined(self.olrp_fn[:, 0])

    def summary(self) -> dict[str, float]:
        """Return moLRP and its components.

        Returns
        -------
        dict of str to float
            moLRP, moLRP_loc, moLRP_fp and moLRP_fn; lower is better.

        Examples
        --------
        >>> truth = GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [7], [[10, 20, 50, 40]], [0])
        >>> detections = Detections(classes=["cup"], image_ids=[7], boxes=[[10, 20, 50, 38]], label_probs=[[0.9]])
        >>> round(lrp(truth, detections).summary()["moLRP"], 3)
        0.2
        """
        return {"moLRP": self.molrp, "moLRP_loc": self.loc, "moLRP_fp": self.fp, "moLRP_fn": self.fn}

    def per_size(self) -> NumberTable:
        """Return a table with one row per area range: means over the classes.

        Returns
        -------
        NumberTable
            moLRP and its components by area range.

        Examples
        --------
        >>> truth = GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [7], [[10, 20, 50, 40]], [0])
        >>> detections = Detections(classes=["cup"], image_ids=[7], boxes=[[10, 20, 50, 38]], label_probs=[[0.9]])
        >>> len(lrp(truth, detections).per_size())
        4
        """
        columns = {"moLRP": self.olrp, "loc": self.olrp_loc, "fp": self.olrp_fp, "fn": self.olrp_fn}
        means = {name: np.array([mean_of_defined(sizes) for sizes in values.T]) for name, values in columns.items()}
        return NumberTable("size", SIZES, {"objects": self.objects.sum(axis=0), **means})

    def per_class(self, *, size: str = "all") -> NumberTable:
        """Return a table with one row per class; NaN for classes without objects.

        Parameters
        ----------
        size : {"all", "small", "medium", "large"}
            Size of the objects that count.

        Returns
        -------
        NumberTable
            Optimal LRP, its components and score threshold by class.

        Examples
        --------
        >>> truth = GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [7], [[10, 20, 50, 40]], [0])
        >>> detections = Detections(classes=["cup"], image_ids=[7], boxes=[[10, 20, 50, 38]], label_probs=[[0.9]])
        >>> len(lrp(truth, detections).per_class())
        1
        """
        column = size_index(size)
        columns = {
            "objects": self.objects[:, column],
            "oLRP": self.olrp[:, column],
            "loc": self.olrp_loc[:, column],
            "fp": self.olrp_fp[:, column],
            "fn": self.olrp_fn[:, column],
            "threshold": self.thresholds[:, column],
        }
        return NumberTable("class", named_once(self.classes), columns)

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={value:.4f}" for name, value in self.summary().items())
        return f"LRPResult({self.variant}, {parts})"


def lrp(
    truth: GroundTruth,
    detections: Detections,
    *,
    variant: Variant = "grid",
    geometry: Geometry = "box",
    threads: int | None = None,
) -> LRPResult:
    """Compute optimal LRP.

    Parameters
    ----------
    truth : GroundTruth
        Ground truth.
    detections : Detections
        Detections with class, score and box.
    variant : {"grid", "exact"}
        ``grid`` tries the thresholds 0, 0.01 .. 1, as published values do; ``exact`` tries every distinct score and is
        never above ``grid``.
    geometry : {"box", "mask"}
        IoU of boxes or of masks, as for `match_boxes`.
    threads : int, optional
        Number of threads. Default: all available.

    Returns
    -------
    LRPResult
        Optimal LRP, its components and thresholds.

    Examples
    --------
    >>> truth = GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [7], [[10, 20, 50, 40]], [0])
    >>> detections = Detections(classes=["cup"], image_ids=[7], boxes=[[10, 20, 50, 38]], label_probs=[[0.9]])
    >>> lrp(truth, detections)
    LRPResult(grid, moLRP=0.2000, moLRP_loc=0.1000, moLRP_fp=0.0000, moLRP_fn=0.0000)
    """
    matches = match_boxes(truth, detections, geometry=geometry, threads=threads, call="lrp")
    return LRPResult.from_matches(matches, variant=variant, threads=threads)


def lrp_curve(matches: BoxMatches, name: str, *, size: str = "all", variant: Variant = "grid") -> LRPCurve:
    """Return LRP and its components for the class `name` as functions of the score threshold.

    Parameters
    ----------
    matches : BoxMatches
        Outcomes of detections and objects.
    name : str
        The class.
    size : {"all", "small", "medium", "large"}
        Size of the objects that count.
    variant : {"grid", "exact"}
        Score thresholds, see `lrp`.

    Returns
    -------
    LRPCurve

    Examples
    --------
    >>> from probox.measures.boxes import match_boxes
    >>> truth = GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [7], [[10, 20, 50, 40]], [0])
    >>> detections = Detections(classes=["cup"], image_ids=[7], boxes=[[10, 20, 50, 38]], label_probs=[[0.9]])
    >>> float(lrp_curve(match_boxes(truth, detections), "cup").lrp.min().round(3))
    0.2
    """
    row, column = class_index(matches.classes, name), size_index(size)
    order, offsets = matches.by_score()
    whole = _sweep(matches, order[offsets[row] : offsets[row + 1]], matches.objects_per_class()[row], variant)
    rows = {
        field.name: getattr(whole, field.name)[column] for field in dataclasses.fields(whole) if field.name != "score"
    }
    return LRPCurve(score=whole.score, **rows)


def _sweep(matches: BoxMatches, rows: Ints, objects: Ints, variant: Variant) -> LRPCurve:
    """Return the curves of one class, one per area range; `rows` are its detections by descending score."""
    thresholds, kept = thresholds_kept(matches.scores[rows], variant)
    return curve_of_totals(thresholds, objects, *totals_of_rows(_rate(matches, rows), kept))


Rated = tuple[Bools, Bools, Floats]
"""Right, wrong, and 1 - IoU of the right, (n, 4) each, for detections by descending score."""

_AT_ONCE = 1 << 18
"""Detections that are processed together, to limit memory."""


def _rate(matches: BoxMatches, rows: Ints) -> Iterator[Rated]:
    """Yield outcomes of detections at IoU 0.5, in parts."""
    for start in range(0, len(rows), _AT_ONCE):
        some = rows[start : start + _AT_ONCE]
        matched, ignored = matches.matched[some] & 1 == 1, matches.ignored[some] & 1 == 1  # bit 0: IoU 0.5
        right = matched & ~ignored
        yield right, ~matched & ~ignored, np.where(right, 1.0 - matches.ious[some], 0.0)


def totals_of_rows(parts: Iterable[Rated], kept: Ints) -> list[npt.NDArray[Any]]:
    """Return the sums of right, wrong and misplaced over the first `kept` detections, (4, S) each.

    Sums run sequentially over the parts, so that their rounding does not depend on the division into parts.
    """
    totals: list[npt.NDArray[Any]] = [np.zeros((len(kept), len(SIZES)), dtype) for dtype in (int, int, float)]
    carried: list[npt.NDArray[Any]] = [np.zeros((1, len(SIZES)), total.dtype) for total in totals]
    seen = 0
    for part in parts:
        here = (kept > seen) & (kept <= seen + len(part[0]))
        for number, values in enumerate(part):
            sums = np.cumsum(np.concatenate([carried[number], values]), axis=0)
            totals[number][here] = sums[kept[here] - seen]
            carried[number] = sums[-1:].copy()
        seen += len(part[0])
    return [total.T for total in totals]


def curve_of_totals(thresholds: Floats, objects: Ints, tp: Ints, fp: Ints, misplaced: Floats) -> LRPCurve:
    """Return the curves of one class, one per area range, from the sums at each threshold."""
    n = objects[:, None]
    fn = n - tp
    with np.errstate(invalid="ignore", divide="ignore"):
        lrp = (misplaced / _SLACK + fp + fn) / (tp + fp + fn)
        loc, wrong_share, missed_share = misplaced / tp, fp / (tp + fp), fn / n
    undefined = np.broadcast_to(n == 0, tp.shape)
    for values in (lrp, loc, wrong_share, missed_share):
        values[undefined] = np.nan
    counts = {"true_positives": tp, "false_positives": fp, "objects": n}
    return LRPCurve(score=thresholds, **counts, lrp=lrp, loc=loc, fp=wrong_share, fn=missed_share)


def thresholds_kept(score: Floats, variant: Variant) -> tuple[Floats, Ints]:
    """Return the score thresholds, ascending, and how many of the descending scores each keeps."""
    if variant == "grid":
        return GRID.copy(), np.searchsorted(-score, -GRID, side="right")
    if variant != "exact":
        raise InputError(f"expected variant to be 'grid' or 'exact', got {variant!r}")
    if len(score) == 0:
        return np.array([np.nan]), np.zeros(1, np.int64)  # no detections: every object is missed
    last_of_equals = np.flatnonzero(np.append(score[1:] != score[:-1], True))[::-1]
    return score[last_of_equals], last_of_equals + 1


_PARTS = {"moLRP": "oLRP", "moLRP_loc": "loc", "moLRP_fp": "fp", "moLRP_fn": "fn"}
"""The metric's columns, and their names in the table of classes."""


def _result(evaluated: Evaluated, geometry: Geometry) -> LRPResult:
    return evaluated.lrp if geometry == "box" else evaluated.mask_lrp


def _per_class(geometry: Geometry, evaluated: Evaluated) -> Groups:
    """Return the optimum of each class and its components."""
    table = _result(evaluated, geometry).per_class().columns
    return groups_of(evaluated.classes, keys_for(geometry, {key: table[name] for key, name in _PARTS.items()}))


def _per_size(geometry: Geometry, evaluated: Evaluated) -> Groups:
    """Return the means over classes of the optima of each size; each class and size has its own threshold."""
    table = _result(evaluated, geometry).per_size().columns
    columns = {key: table["moLRP" if key == "moLRP" else name][1:] for key, name in _PARTS.items()}
    return groups_of(SIZES[1:], keys_for(geometry, columns))


def _per_image(geometry: Geometry, evaluated: Evaluated) -> ImageColumns:
    """Return the summary of each image alone; each class and image has its own threshold."""
    means = image_lrp(matches_by(evaluated, geometry), evaluated.object_images, GRID)
    return keys_for(geometry, dict(zip(_PARTS, means, strict=True)))


def _resampled_classes(geometry: Geometry, evaluated: Evaluated, weights: Weights) -> tuple[Resampled, Floats]:
    optimum = resampled_lrp(matches_by(evaluated, geometry), evaluated.object_images, weights, GRID)
    numbers = {key: means_of_defined(optimum[:, :, part]) for part, key in enumerate(_PARTS)}
    return keys_for(geometry, numbers), optimum[:, :, 0]


def _optimal_lrp(name: str, geometry: Geometry, headline: Column, need: Need) -> Measure:
    return Measure(
        name=name,
        needs=frozenset({need}),
        columns=(headline, *(Column(key=PREFIXES[geometry] + key, better="low") for key in list(_PARTS)[1:])),
        summary=lambda evaluated: keys_for(geometry, _result(evaluated, geometry).summary()),
        per_class=partial(_per_class, geometry),
        per_size=partial(_per_size, geometry),
        per_image=partial(_per_image, geometry),
        leads=True,
        standard=geometry == "box",
        resampled=lambda evaluated, weights: _resampled_classes(geometry, evaluated, weights)[0],
        resampled_classes=partial(_resampled_classes, geometry),
    )


OPTIMAL_LRP = _optimal_lrp(
    "lrp",
    "box",
    Column(key="moLRP", heading="1-moLRP", better="low", complement=True, hint="1 minus mean optimal LRP error"),
    "boxes",
)

MASK_OPTIMAL_LRP = _optimal_lrp(
    "lrp-mask",
    "mask",
    Column(
        key="mask_moLRP",
        heading="mask 1-moLRP",
        better="low",
        complement=True,
        hint="1 minus mean optimal LRP error, by IoU of masks",
    ),
    "masks",
)
