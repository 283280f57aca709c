"""Sigmas against errors: over all pairs, and per edge, size and class."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from probox.evaluation.result import Evaluation
from probox.measures.boxes.matching import AREA_RANGES, SIZES
from probox.measures.matched import EDGES, FEW_PAIRS, MatchedPairs
from probox.measures.scoring.edge_scores import crps
from probox.measures.scoring.honesty import coverage, edge_levels, variance_scale
from probox.measures.scoring.pair_rows import with_sigma

__all__ = [
    "CalibrationRow",
    "WorstEdge",
    "calibration_table",
    "edge_rows",
    "last_pixels",
    "shifted_edges",
    "worst_edge",
]


@dataclasses.dataclass(frozen=True)
class CalibrationRow:
    """How honest the sigmas of some edges are.

    Parameters
    ----------
    group : str
        ``all``, ``edge``, ``size`` or ``class``.
    name : str
        Which of them.
    edges : int
        How many edges were judged; those of plain boxes and of truncated objects are not.
    too_sure : float
        The root mean square of z = error / sigma: 1 if honest, above if sigmas are too small.
    bias : float
        The mean error in pixels: truth minus mean.
    rmse : float
        The root mean square error in pixels.
    sharpness : float
        The root mean square sigma in pixels.
    coverage_68, coverage_90 : float
        How many edges lie in the central intervals of 68 and 90 per cent.
    crps : float
        The mean continuous ranked probability score, in pixels.
    """

    group: str
    name: str
    edges: int
    too_sure: float
    bias: float
    rmse: float
    sharpness: float
    coverage_68: float
    coverage_90: float
    crps: float


@dataclasses.dataclass(frozen=True)
class WorstEdge:
    """The edge of a class whose sigmas are farthest from honest."""

    edge: str
    name: str
    too_sure: float


def calibration_table(evaluation: Evaluation) -> tuple[CalibrationRow, ...]:
    """Return the rows; a class without an edge that can be judged has none."""
    pairs = evaluation.matched_pairs
    judged = with_sigma(pairs)
    rows = [_row("all", "all", pairs, judged), *edge_rows(evaluation)]
    for name, (low, high) in zip(SIZES[1:], AREA_RANGES[1:], strict=True):
        inside = (pairs.areas >= low) & (pairs.areas <= high)
        rows.append(_row("size", name, pairs, judged & inside[:, None]))
    for number, name in enumerate(evaluation.classes):
        of_class = judged & (pairs.labels == number)[:, None]
        if of_class.any():
            rows.append(_row("class", name, pairs, of_class))
    return tuple(rows)


def edge_rows(evaluation: Evaluation) -> list[CalibrationRow]:
    """Return the rows of the four edges alone."""
    pairs = evaluation.matched_pairs
    judged = with_sigma(pairs)
    return [_row("edge", edge, pairs, judged & (np.arange(4) == number)) for number, edge in enumerate(EDGES)]


def worst_edge(evaluation: Evaluation) -> WorstEdge | None:
    """Return the edge of a class that is farthest from honest, of those with enough pairs; None if there are none."""
    pairs = evaluation.matched_pairs
    judged = with_sigma(pairs)
    worst: WorstEdge | None = None
    for number, name in enumerate(evaluation.classes):
        of_class = judged & (pairs.labels == number)[:, None]
        for column, edge in enumerate(EDGES):
            chosen = of_class & (np.arange(4) == column)
            if int(chosen.sum()) < FEW_PAIRS:
                continue
            factor = variance_scale(pairs.residuals[chosen], np.sqrt(pairs.variances[chosen]))
            if factor > 0 and (worst is None or abs(math.log(factor)) > abs(math.log(worst.too_sure))):
                worst = WorstEdge(edge, name, factor)
    return worst


def shifted_edges(rows: Sequence[CalibrationRow]) -> dict[str, float]:
    """Return the mean errors of those edges that err mostly in one direction, which no sigma can say.

    The mean square error of an edge is bias^2 + variance. These have more than half of it from the bias, more than a
    pixel of it, and enough pairs for it to be no accident.
    """
    return {
        row.name: row.bias
        for row in rows
        if row.group == "edge" and row.edges >= FEW_PAIRS and abs(row.bias) > 1.0 and 2.0 * row.bias**2 > row.rmse**2
    }


def last_pixels(rows: Sequence[CalibrationRow]) -> tuple[str, ...]:
    """Say so if right and lower edges lie a pixel short of the truth's and the others do not; else say nothing.

    Truth ends at x + width. A detector whose boxes name the last pixel in them, as PDQ's heatmaps take boxes, ends at
    x + width - 1. PDQ does not mind, but every rule about boxes takes it for an error.
    """
    bias = {row.name: (row.bias, row.rmse / math.sqrt(row.edges)) for row in rows if row.group == "edge" and row.edges}
    if len(bias) < len(EDGES):
        return ()
    far = all(0.5 < bias[edge][0] < 1.5 and bias[edge][0] > 2.0 * bias[edge][1] for edge in ("x2", "y2"))
    near = all(abs(bias[edge][0]) < 0.5 for edge in ("x1", "y1"))
    if not (far and near):
        return ()
    return (
        "x2 and y2 lie about a pixel short of the truth's: if boxes name the last pixel in them, rules about boxes "
        "take that pixel for an error; PDQ does not",
    )


def _row(group: str, name: str, pairs: MatchedPairs, chosen: npt.NDArray[np.bool_]) -> CalibrationRow:
    errors, sigmas = pairs.residuals[chosen], np.sqrt(pairs.variances[chosen])
    if not len(errors):
        return CalibrationRow(group, name, 0, *[math.nan] * 7)
    levels = edge_levels(errors, sigmas)
    return CalibrationRow(
        group=group,
        name=name,
        edges=len(errors),
        too_sure=variance_scale(errors, sigmas),
        bias=float(errors.mean()),
        rmse=float(np.sqrt(np.square(errors).mean())),
        sharpness=float(np.sqrt(np.square(sigmas).mean())),
        coverage_68=coverage(levels, 0.68),
        coverage_90=coverage(levels, 0.90),
        crps=float(crps(errors, sigmas).mean()),
    )
