"""Matched pairs and detections as rows, and metrics of rows, each counted once or as often as its image is resampled.

A metric defines its rows, and its values as a function of row counts. Summary, classes, sizes and resamplings follow
from both. Matching and bins are part of a name: ``D-ECE@50/10w`` is D-ECE of pairs with an IoU of at least 0.5, in 10
bins of equal width; ``m`` means equal mass, and ``ENCE/10m_x1`` is the value of one edge.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.measures.boxes.matching import PAIR_IOU, SIZES, in_area_ranges
from probox.measures.matched import FEW_PAIRS, MatchedPairs, matches_at, rows_of_matches
from probox.measures.measure import (
    Column,
    Evaluated,
    Groups,
    Measure,
    Need,
    Resampled,
    Summary,
    Weights,
    counted_notes,
    groups_by_label,
)
from probox.measures.scoring.calibration_metrics import Bins, coverage, edge_levels, error_factor
from probox.measures.scoring.scores import invertible
from probox.notes import Note
from probox.support.types import Bools, Floats, Ints


def full_name(name: str, *, iou: float | None = None, bins: Bins | None = None, part: str = "") -> str:
    """Return a name with overlap in per cent, bins and part.

    Examples
    --------
    >>> full_name("D-ECE", iou=0.5, bins=Bins(10))
    'D-ECE@50/10w'
    >>> full_name("ENCE", bins=Bins(10, "mass"), part="x1")
    'ENCE/10m_x1'
    """
    at = "" if iou is None else f"@{100 * iou:g}"
    within = "" if bins is None else f"/{bins.name}"
    return f"{name}{at}{within}{'_' if part else ''}{part}"


def describe_overlap(iou: float) -> str:
    """Return the description of the matching for hints."""
    return f"COCO pairs, IoU {iou:g}"


AT_ONCE = 500_000
"""Limit of counts in memory: resamplings times rows."""


@dataclasses.dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows of pairs, detections or objects with their images.

    Parameters
    ----------
    image_rows : (K,) int64
        Image of each row.
    labels : (K,) int
        Class for grouping.
    areas : (K,) float64
        Area for grouping.
    columns : dict of (K, ...) arrays
        Values that the metric needs.
    """

    image_rows: Ints
    labels: npt.NDArray[np.int32] | Ints
    areas: Floats
    columns: Mapping[str, npt.NDArray[Any]]

    def __len__(self) -> int:
        return len(self.image_rows)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.columns[name]

    def take(self, rows: Ints | Bools) -> ScoredRows:
        """Return a subset of the rows."""
        columns = {name: values[rows] for name, values in self.columns.items()}
        return ScoredRows(self.image_rows[rows], self.labels[rows], self.areas[rows], columns)


def join_rows(parts: Sequence[ScoredRows]) -> ScoredRows:
    """Return the concatenated rows of several parts with the same columns."""
    images, labels, areas = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("image_rows", "labels", "areas")
    )
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0].columns}
    return ScoredRows(images, labels, areas, columns)


Numbers = Callable[[ScoredRows, Floats], Resampled]
"""Function that returns the values of a metric, (R,) each, from rows and row counts (R, K)."""

Notes = Callable[[Evaluated], Sequence[Note]]


BOXES: frozenset[Need] = frozenset({"boxes"})
"""Needs of most metrics of rows."""


def measure_of_rows(
    name: str,
    columns: Sequence[Column],
    rows: Callable[[Evaluated], ScoredRows],
    numbers: Numbers,
    *,
    needs: Collection[Need] = BOXES,
    notes: Notes,
) -> Measure:
    """Return a metric of rows, which is computed on request only."""
    columns = tuple(columns)

    def summarise(some: ScoredRows) -> Summary:
        values = numbers(some, np.ones((1, len(some))))
        return {c.key: int(values[c.key][0]) if c.unit == "count" else float(values[c.key][0]) for c in columns}

    def per_class(evaluated: Evaluated) -> Groups:
        every = rows(evaluated)
        labels = every.labels
        return groups_by_label(evaluated.classes, labels, lambda label: summarise(every.take(labels == label)))

    def per_size(evaluated: Evaluated) -> Groups:
        every = rows(evaluated)
        inside = in_area_ranges(every.areas, evaluated.convention.area_ranges)
        return {size: summarise(every.take(own)) for size, own in zip(SIZES[1:], inside, strict=True)}

    def some_numbers(every: ScoredRows, weights: Weights) -> Resampled:
        if len(weights) == 1:  # NumPy sums a single row in another order than several
            return {key: values[:1] for key, values in some_numbers(every, np.repeat(weights, 2, axis=0)).items()}
        return numbers(every, weights[:, every.image_rows].astype(np.float64))

    def resample(evaluated: Evaluated, weights: Weights) -> Resampled:
        every = rows(evaluated)
        step = max(2, AT_ONCE // max(1, len(every)))
        parts = [some_numbers(every, weights[start : start + step]) for start in range(0, len(weights), step)]
        return {c.key: np.concatenate([np.zeros(0), *(part[c.key] for part in parts)]) for c in columns}

    return Measure(
        name=name,
        columns=columns,
        summary=lambda evaluated: summarise(rows(evaluated)),
        needs=frozenset(needs),
        per_class=per_class,
        per_size=per_size,
        standard=False,
        resampled=resample,
        notes=notes,
    )


def counted_mean(counts: Floats, values: Floats, present: Bools | None = None) -> Floats:
    """Return the mean of each column of values, (R, M), where row k counts counts[r, k] times; NaN without rows.

    Parameters
    ----------
    counts : (R, K) float64
        Number of times each row counts.
    values : (K, M) or (K,) float64
        Averaged values; the means of a single column are (R,).
    present : array of bool, optional
        Values that count. Default: all.
    """
    there = np.ones(values.shape, bool) if present is None else present
    if values.ndim == 1:
        return counted_mean(counts, values[:, None], there[:, None])[:, 0]
    # A matrix product is avoided: its rounding would depend on the number of threads.
    sums = np.einsum("rk,km->rm", counts, np.where(there, values, 0.0))
    n = np.einsum("rk,km->rm", counts, there.astype(np.float64))
    with np.errstate(invalid="ignore", divide="ignore"):
        means: Floats = sums / n
    return means


PAIRS = describe_overlap(PAIR_IOU)
"""Description of the matching, for hints."""


def pair_rows(
    columns: Callable[[MatchedPairs], Mapping[str, npt.NDArray[Any]]],
    kept: Callable[[MatchedPairs], Bools] | None = None,
) -> Callable[[Evaluated], ScoredRows]:
    """Return a function of an evaluation that returns its pairs as rows, optionally those `kept`, with true classes."""

    def rows(evaluated: Evaluated) -> ScoredRows:
        pairs = evaluated.matched_pairs
        if kept is not None:
            pairs = pairs.take(np.flatnonzero(kept(pairs)))
        return ScoredRows(pairs.image_rows, pairs.labels, pairs.areas, columns(pairs))

    return rows


def with_density(pairs: MatchedPairs) -> Bools:
    """Return which pairs have an invertible covariance."""
    return invertible(pairs.covariances)


def with_sigma(pairs: MatchedPairs) -> Bools:
    """Return which edges have a std and a usable ground truth, (K, 4): with covariance and not truncated."""
    edges: Bools = (pairs.variances > 0) & ~pairs.truncated
    return edges


def notes_on_boxes(evaluated: Evaluated) -> list[Note]:
    """Return notes on values that need the density of a box."""
    pairs = evaluated.matched_pairs
    n, plain = len(pairs), int(pairs.plain.sum())
    singular = n - plain - int(with_density(pairs).sum())
    notes = counted_notes(Note("plain-pairs", plain, total=n), Note("singular-pairs", singular, total=n))
    return [*notes, *_notes_on_few(pairs, n - plain - singular)]


def notes_on_edges(evaluated: Evaluated) -> list[Note]:
    """Return notes on values that need the std of an edge."""
    pairs = evaluated.matched_pairs
    return [
        *counted_notes(Note("plain-pairs", pairs.plain.sum(), total=len(pairs))),
        *_notes_on_truncated(pairs),
        *_notes_on_few(pairs, int(with_sigma(pairs).any(axis=1).sum())),
    ]


def notes_on_distances(evaluated: Evaluated) -> list[Note]:
    """Return notes on values that are defined without covariance, too."""
    pairs = evaluated.matched_pairs
    plain = Note("plain-distances", pairs.plain.sum(), total=len(pairs))
    return [*counted_notes(plain), *_notes_on_few(pairs, len(pairs))]


def notes_on_labels(evaluated: Evaluated) -> list[Note]:
    """Return notes on values of the labels of pairs."""
    pairs = evaluated.matched_pairs
    if pairs.label_probs is None:
        return [Note("label-probs-not-kept", purpose="to score labels")]
    return _notes_on_few(pairs, len(pairs))


def cut_off(notes: Notes) -> Notes:
    """Return the notes with one on the effect of the minimum overlap on errors."""
    return lambda evaluated: [*notes(evaluated), Note("overlap-cut", least=PAIR_IOU)]


def with_truncated(notes: Notes) -> Notes:
    """Return the notes with one on the number of excluded edges."""
    return lambda evaluated: [*_notes_on_truncated(evaluated.matched_pairs), *notes(evaluated)]


def border_notes(residuals: Floats, variances: Floats, on_border: Bools) -> list[Note]:
    """Return a note on edges (K, 4) at the image border: their number, and their errors relative to their std."""
    count, judged = int(on_border.sum()), on_border & (variances > 0)
    if not judged.any():
        return counted_notes(Note("edges-on-border", count, total=on_border.size))
    errors, sigmas = residuals[judged], np.sqrt(variances[judged])
    inside, factor = coverage(edge_levels(errors, sigmas), 0.68), error_factor(errors / sigmas)
    return [Note("edges-on-border-judged", count, total=on_border.size, inside=inside, factor=factor)]


def _notes_on_truncated(pairs: MatchedPairs) -> list[Note]:
    return border_notes(pairs.residuals, pairs.variances, pairs.truncated)


def _notes_on_few(pairs: MatchedPairs, n: int) -> list[Note]:
    """Return the note on few pairs; if no pair is scored, other notes explain that unless there are no pairs at all."""
    if n >= FEW_PAIRS or (not n and len(pairs)):
        return []
    if not n:
        return [Note("no-pairs", pairing=pairs.pairing)]
    return [Note("few-pairs", n, pairing=pairs.pairing, least=FEW_PAIRS)]


IOU = PAIR_IOU
"""Default minimum overlap of a match."""


@dataclasses.dataclass(frozen=True, eq=False)
class Outcomes:
    """Outcomes of detections and objects at one overlap; ignored ones are left out.

    Parameters
    ----------
    detections : (N,) int64
        Rows of matched and unmatched detections.
    hits : (N,) bool
        Whether a detection is matched.
    ious : (N,) float64
        Overlap with the match; 0 if unmatched.
    areas : (N,) float64
        Area of the matched object, or of the detection's own box if unmatched.
    objects : (M,) int64
        Rows of objects, without crowds.
    found : (M,) bool
        Whether an object is matched.
    """

    detections: Ints
    hits: Bools
    ious: Floats
    areas: Floats
    objects: Ints
    found: Bools


def outcomes(evaluated: Evaluated, iou: float = IOU) -> Outcomes:
    """Return the outcomes of detections and objects for matches with an overlap of at least `iou`."""
    matches = matches_at(evaluated, iou)
    detections, objects = evaluated.detections, evaluated.objects
    counted = matches.ignored[:, 0] & 1 == 0
    rows, partners = rows_of_matches(evaluated, matches, counted)
    hits = matches.matched[counted, 0] & 1 == 1
    areas = detections.extents[rows].prod(axis=1)
    areas[hits] = objects.areas[partners[hits]]
    found = np.zeros(len(objects), bool)
    found[partners[hits]] = True
    there = np.flatnonzero(~objects.crowd)
    return Outcomes(rows, hits, np.where(hits, matches.ious[counted, 0], 0.0), areas, there, found[there])


def notes_on_detections(evaluated: Evaluated) -> list[Note]:
    """Return notes on values of all detections: excluded ones, and small numbers."""
    matches = evaluated.box_matches
    out, matched = matches.ignored[:, 0] & 1 == 1, matches.matched[:, 0] & 1 == 1
    ignored = int(out.sum())
    unnamed, everything = matches.left_out, len(evaluated.detections)
    beyond = everything - unnamed - len(matches)
    n = len(matches) - ignored
    return [
        *counted_notes(
            Note("crowds-not-calibrated", int((out & matched).sum()), total=everything),
            Note("not-exhaustive-not-calibrated", int((out & ~matched).sum()), total=everything),
            Note("unnamed-not-calibrated", unnamed, total=everything),
            Note("surplus-not-calibrated", beyond, total=everything, most=matches.rules.most),
        ),
        *([Note("few-detections", n, least=FEW_PAIRS)] if n < FEW_PAIRS else []),
    ]
