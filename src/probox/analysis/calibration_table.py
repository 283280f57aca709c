"""Predicted std against errors: over all matched pairs, and per edge, size and class."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from probox.analysis.resampling import Interval, compute_interval, draw_images
from probox.evaluation.result import Evaluation
from probox.measures.boxes.matching import SIZES, in_area_ranges
from probox.measures.matched import EDGES, FEW_PAIRS, MatchedPairs, at_border
from probox.measures.measure import weighted_quantile
from probox.measures.scoring.calibration_metrics import ONE_STD, coverage, edge_levels, error_factor, rms_z
from probox.measures.scoring.score_rows import with_sigma
from probox.measures.scoring.scores import crps
from probox.notes import Note
from probox.support.types import Bools, Floats

TOLERANCE = 1.05
"""Factors between 1 / 1.05 and 1.05 count as calibrated."""
OUTLIER = 5.0
"""Edges with a larger |z| are outliers; of overconfident ones, those with |z| above 5 times their factor."""
NEAR_BORDER = 20.0
"""Distance in pixels up to which an edge is near the image border, where detectors often limit their std."""


@dataclasses.dataclass(frozen=True)
class CalibrationRow:
    """Calibration of the predicted std of a group of edges.

    Parameters
    ----------
    group : str
        ``all``, ``edge``, ``size`` or ``class``.
    name : str
        Name of the group.
    edges : int
        Number of edges. Boxes without covariance, and edges at the image border, are excluded.
    factor : float
        Errors over predicted std, the 68% quantile of \\|z\\|: 1 if calibrated, above 1 if overconfident.
    rms_z : float
        Root mean square of z = error / std.
    bias : float
        Mean error in pixels, ground truth minus predicted mean.
    rmse : float
        Root mean square error in pixels.
    sharpness : float
        Root mean square std in pixels.
    coverage_68, coverage_90 : float
        Fraction of edges in the central 68% and 90% intervals.
    crps : float
        Mean continuous ranked probability score in pixels, lower is better.
    """

    group: str
    name: str
    edges: int
    factor: float
    rms_z: float
    bias: float
    rmse: float
    sharpness: float
    coverage_68: float
    coverage_90: float
    crps: float


@dataclasses.dataclass(frozen=True)
class Outliers:
    """Edges with errors far beyond their predicted std.

    Parameters
    ----------
    edges, images : int
        Number of outlying edges, and of images with any.
    bound : float
        Their \\|z\\| is above this bound.
    largest : float
        The largest \\|z\\|.
    rms_z : float
        RMS z of all other edges.
    places : dict of str to int
        Groups with more than half of the outliers, and at least twice their fraction of all edges.
    """

    edges: int
    images: int
    bound: float
    largest: float
    rms_z: float
    places: Mapping[str, int]


@dataclasses.dataclass(frozen=True)
class ErrorFactor:
    """Errors over predicted std of all edges, with outliers and the worst group.

    Parameters
    ----------
    factor : Interval
        `probox.measures.scoring.calibration_metrics.error_factor` of all edges.
    edges, pairs, images : int
        Number of edges, of their pairs, and of all images.
    rms_z : float
        Root mean square of z, outliers included.
    outliers : Outliers, optional
        Outlying edges; None if there are none.
    worst : tuple of str and Interval, optional
        Group with the factor farthest from 1, and its interval; None unless it is farther than that of all edges.
    """

    factor: Interval
    edges: int
    pairs: int
    images: int
    rms_z: float
    outliers: Outliers | None = None
    worst: tuple[str, Interval] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary for JSON."""
        worst = None if self.worst is None else {"group": self.worst[0], **self.worst[1].to_dict()}
        outliers = None if self.outliers is None else dataclasses.asdict(self.outliers)
        return {**self.factor.to_dict(), "edges": self.edges, "rms_z": self.rms_z, "outliers": outliers, "worst": worst}


def tabulate_calibration(evaluation: Evaluation) -> tuple[CalibrationRow, ...]:
    """Return the rows of all groups; a class without usable edges has no row."""
    return tuple(_make_row(*group, evaluation.matched_pairs) for group in _groups(evaluation))


def tabulate_edges(evaluation: Evaluation) -> list[CalibrationRow]:
    """Return only the rows of the four edges."""
    return [_make_row(*group, evaluation.matched_pairs) for group in _groups(evaluation) if group[0] == "edge"]


def find_error_factor(evaluation: Evaluation, *, replicates: int = 1000, seed: int = 0) -> ErrorFactor:
    """Return the factor of all edges with its interval over images, the outliers, and the worst group."""
    pairs, images = evaluation.matched_pairs, len(evaluation.dataset)
    judged = with_sigma(pairs)
    z = np.abs(pairs.residuals) / np.sqrt(np.where(judged, pairs.variances, 1.0))

    def interval(chosen: Bools) -> Interval:
        rows, own = pairs.image_rows[np.nonzero(chosen)[0]], z[chosen]
        factor = error_factor(own)
        if len(np.unique(rows)) < 2:  # resampling a single image has no variation
            return Interval(factor)
        draws = [weighted_quantile(weights, rows, own, ONE_STD) for weights in draw_images(images, replicates, seed)]
        return compute_interval(factor, np.concatenate(draws), images, 0.95, "count")  # at least 0

    everything = interval(judged)
    return ErrorFactor(
        factor=everything,
        edges=int(judged.sum()),
        pairs=int(judged.any(axis=1).sum()),
        images=images,
        rms_z=rms_z(z[judged]),
        outliers=_find_outliers(evaluation, z, judged, everything.value),
        worst=_worst_group(evaluation, z, everything, interval),
    )


def _worst_group(
    evaluation: Evaluation, z: Floats, everything: Interval, interval: Callable[[Bools], Interval]
) -> tuple[str, Interval] | None:
    """Return the group farthest from calibration; None if no interval lies beyond that of all edges."""
    groups = [
        (_distance(error_factor(z[chosen])), group, name, chosen)
        for group, name, chosen in _groups(evaluation)
        if group != "all" and int(chosen.sum()) >= FEW_PAIRS
    ]
    least = max(_distance(everything.value), math.log(TOLERANCE))
    for distance, group, name, chosen in sorted(groups, key=lambda entry: -entry[0]):
        if not distance > least:
            break
        own = interval(chosen)
        if own.low > max(everything.high, 1.0) or own.high < min(everything.low, 1.0):
            return _group_words(group, name), own
    return None


def _distance(factor: float) -> float:
    return abs(math.log(factor)) if factor > 0 else math.inf


def _find_outliers(evaluation: Evaluation, z: Floats, judged: Bools, factor: float) -> Outliers | None:
    bound = OUTLIER * (factor if factor > TOLERANCE else 1.0)
    outlying = judged & (z > bound)
    count, pairs = int(outlying.sum()), evaluation.matched_pairs
    if not count:
        return None
    boxes = evaluation.detections.boxes[pairs.detections]
    near = at_border(boxes, evaluation.dataset.shapes[pairs.image_rows], NEAR_BORDER)
    groups = {_group_words(group, name): chosen for group, name, chosen in _groups(evaluation) if group != "all"}
    groups[f"edges within {NEAR_BORDER:g} px of the image border"] = judged & near
    in_images = np.bincount(pairs.image_rows[np.nonzero(outlying)[0]])
    most = int(in_images.argmax())
    groups[f"image {evaluation.dataset.image_ids[most]}"] = judged & (pairs.image_rows == most)[:, None]
    held = {name: (int((outlying & chosen).sum()), chosen.sum() / judged.sum()) for name, chosen in groups.items()}
    return Outliers(
        edges=count,
        images=int((in_images > 0).sum()),
        bound=bound,
        largest=float(z[outlying].max()),
        rms_z=rms_z(z[judged & ~outlying]),
        places={name: own for name, (own, part) in held.items() if own > max(0.5, 2.0 * part) * count},
    )


def _groups(evaluation: Evaluation) -> Iterator[tuple[str, str, Bools]]:
    """Yield the groups of usable edges: kind of group, name, and mask, (K, 4)."""
    pairs = evaluation.matched_pairs
    judged = with_sigma(pairs)
    yield "all", "all", judged
    for number, edge in enumerate(EDGES):
        yield "edge", edge, judged & (np.arange(4) == number)
    for name, own in zip(SIZES[1:], in_area_ranges(pairs.areas, evaluation.convention.area_ranges), strict=True):
        yield "size", name, judged & own[:, None]
    for number, name in enumerate(evaluation.classes):
        of_class = judged & (pairs.labels == number)[:, None]
        if of_class.any():
            yield "class", name, of_class


def _group_words(group: str, name: str) -> str:
    return f"{name} objects" if group == "size" else f"{group} {name}"


def find_shifted_edges(rows: Sequence[CalibrationRow]) -> dict[str, float]:
    """Return the bias of edges whose errors are mostly bias, which no std can express.

    The mean square error of an edge is bias^2 + variance. The returned edges have a bias above one pixel that is more
    than half of it, and enough pairs.
    """
    return {
        row.name: row.bias
        for row in rows
        if row.group == "edge" and row.edges >= FEW_PAIRS and abs(row.bias) > 1.0 and 2.0 * row.bias**2 > row.rmse**2
    }


def note_last_pixels(rows: Sequence[CalibrationRow]) -> tuple[Note, ...]:
    """Return a note if only the right and lower edges are one pixel short of the ground truth.

    Ground truth ends at x + width. Boxes that end on their last pixel, as PDQ's heatmaps assume, end at x + width - 1.
    PDQ is not affected, but metrics of box errors count the difference as an error.
    """
    bias = {row.name: (row.bias, row.rmse / math.sqrt(row.edges)) for row in rows if row.group == "edge" and row.edges}
    if len(bias) < len(EDGES):
        return ()
    far = all(0.5 < bias[edge][0] < 1.5 and bias[edge][0] > 2.0 * bias[edge][1] for edge in ("x2", "y2"))
    near = all(abs(bias[edge][0]) < 0.5 for edge in ("x1", "y1"))
    return (Note("last-pixels"),) if far and near else ()


def _make_row(group: str, name: str, chosen: Bools, pairs: MatchedPairs) -> CalibrationRow:
    errors, sigmas = pairs.residuals[chosen], np.sqrt(pairs.variances[chosen])
    if not len(errors):
        return CalibrationRow(group, name, 0, *[math.nan] * 8)
    levels, z = edge_levels(errors, sigmas), errors / sigmas
    return CalibrationRow(
        group=group,
        name=name,
        edges=len(errors),
        factor=error_factor(z),
        rms_z=rms_z(z),
        bias=float(errors.mean()),
        rmse=float(np.sqrt(np.square(errors).mean())),
        sharpness=float(np.sqrt(np.square(sigmas).mean())),
        coverage_68=coverage(levels, 0.68),
        coverage_90=coverage(levels, 0.90),
        crps=float(crps(errors, sigmas).mean()),
    )
