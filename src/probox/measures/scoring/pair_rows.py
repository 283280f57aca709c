"""Matched pairs as rows of measures, and what their readers must know."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.measures.boxes.matching import IOU_THRESHOLDS
from probox.measures.matched import FEW_PAIRS, MatchedPairs
from probox.measures.measure import Evaluated
from probox.measures.scoring.covariances import invertible
from probox.measures.scoring.honesty import coverage, edge_levels, error_factor
from probox.measures.scoring.names import overlap_words
from probox.measures.scoring.rows import Rows

__all__ = [
    "PAIRS",
    "border_notes",
    "cut_off",
    "pair_rows",
    "remarks_of_boxes",
    "remarks_of_distances",
    "remarks_of_edges",
    "remarks_of_labels",
    "with_density",
    "with_sigma",
    "with_truncated",
]

Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

PAIRS = overlap_words(float(IOU_THRESHOLDS[0]))
"""The pairing, for hints."""

CUT = "which cuts off large errors: covariances look more honest than they are"


def pair_rows(
    columns: Callable[[MatchedPairs], Mapping[str, npt.NDArray[Any]]],
    kept: Callable[[MatchedPairs], Flags] | None = None,
) -> Callable[[Evaluated], Rows]:
    """Return what makes rows of an evaluation's pairs: all, or those that are `kept`. Their class is the object's."""

    def rows(evaluated: Evaluated) -> Rows:
        pairs = evaluated.matched_pairs
        if kept is not None:
            pairs = pairs.take(np.flatnonzero(kept(pairs)))
        return Rows(pairs.image_rows, pairs.labels, pairs.areas, columns(pairs))

    return rows


def with_density(pairs: MatchedPairs) -> Flags:
    """Return which pairs have a covariance that can be inverted."""
    return invertible(pairs.covariances)


def with_sigma(pairs: MatchedPairs) -> Flags:
    """Return which edges have a sigma and a truth to compare it with, (K, 4): neither plain nor truncated."""
    edges: Flags = (pairs.variances > 0) & ~pairs.truncated
    return edges


def remarks_of_boxes(evaluated: Evaluated) -> list[str]:
    """Return what to know of numbers that need the density of a box."""
    pairs = evaluated.matched_pairs
    n, plain = len(pairs), int(pairs.plain.sum())
    singular = n - plain - int(with_density(pairs).sum())
    said = _plain(pairs)
    if singular:
        said.append(f"{singular:,} of {n:,} pairs have a singular covariance and no density, and are left out")
    return [*said, *_few(pairs, n - plain - singular)]


def remarks_of_edges(evaluated: Evaluated) -> list[str]:
    """Return what to know of numbers that need the sigma of an edge."""
    pairs = evaluated.matched_pairs
    return [*_plain(pairs), *_truncated(pairs), *_few(pairs, int(with_sigma(pairs).any(axis=1).sum()))]


def remarks_of_distances(evaluated: Evaluated) -> list[str]:
    """Return what to know of numbers that plain boxes have too."""
    pairs = evaluated.matched_pairs
    plain = int(pairs.plain.sum())
    said = [f"{plain:,} of {len(pairs):,} pairs are plain boxes: their energy score and CRPS are distances"]
    return [*(said if plain else ()), *_few(pairs, len(pairs))]


def remarks_of_labels(evaluated: Evaluated) -> list[str]:
    """Return what to know of numbers of the labels of pairs."""
    pairs = evaluated.matched_pairs
    if pairs.label_probs is None:
        return ["label probabilities were not kept; evaluate anew to score labels"]
    return _few(pairs, len(pairs))


def cut_off(remarks: Callable[[Evaluated], Sequence[str]]) -> Callable[[Evaluated], Sequence[str]]:
    """Return remarks that also say what the least overlap of pairs does to errors."""
    return lambda evaluated: [*remarks(evaluated), f"pairs overlap by at least {IOU_THRESHOLDS[0]:g}, {CUT}"]


def with_truncated(remarks: Callable[[Evaluated], Sequence[str]]) -> Callable[[Evaluated], Sequence[str]]:
    """Return remarks that also count the edges that were left out."""
    return lambda evaluated: [*_truncated(evaluated.matched_pairs), *remarks(evaluated)]


def _plain(pairs: MatchedPairs) -> list[str]:
    plain = int(pairs.plain.sum())
    if not plain:
        return []
    return [f"{plain:,} of {len(pairs):,} pairs are plain boxes, whose covariance is 0: what needs one leaves them out"]


def border_notes(residuals: Floats, variances: Floats, on_border: Flags) -> list[str]:
    """Return how many edges (K, 4) lie on the image border, and how their errors compare with their std."""
    count, judged = int(on_border.sum()), on_border & (variances > 0)
    if not count:
        return []
    said = f"{count:,} of {on_border.size:,} edges lie on the image border and are left out"
    if not judged.any():
        return [said]
    errors, sigmas = residuals[judged], np.sqrt(variances[judged])
    inside, factor = coverage(edge_levels(errors, sigmas), 0.68), error_factor(errors / sigmas)
    return [f"{said}: {100 * inside:.1f}% of them are in their 68% interval, errors are {factor:.2g} times their std"]


def _truncated(pairs: MatchedPairs) -> list[str]:
    return border_notes(pairs.residuals, pairs.variances, pairs.truncated)


def _few(pairs: MatchedPairs, n: int) -> list[str]:
    """Return the note on few pairs; where no pair is scored, other notes say why unless there is none at all."""
    if n >= FEW_PAIRS or (not n and len(pairs)):
        return []
    if not n:
        return [f"no detection matches an object ({pairs.pairing}): metrics of matched pairs are undefined"]
    return [f"only {n} pairs ({pairs.pairing}) are scored: fewer than {FEW_PAIRS} say little"]
