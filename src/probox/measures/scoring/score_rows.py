"""Matched pairs and detections as rows, and measures of them: each row once, or as often as its image in a resampling.

A measure says which rows it looks at and how its numbers follow from how often each is there. The summary, classes,
sizes and resamplings all come from these two. Pairing and bins are part of a name: ``D-ECE@50/10w`` is D-ECE of pairs
that overlap by at least 0.5, in 10 bins of equal width; ``m`` stands for equal mass, ``ENCE/10m_x1`` is of one edge.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.measures.boxes.matching import AREA_RANGES, IOU_THRESHOLDS, MAX_DETECTIONS, SIZES
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
    """Return a name with its overlap in per cent, its bins and its part.

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
    """Return what hints say of the pairing."""
    return f"COCO pairs, IoU {iou:g}"


AT_ONCE = 500_000
"""How many counts are held at once: resamplings times rows."""


@dataclasses.dataclass(frozen=True, eq=False)
class ScoredRows:
    """Things of images.

    Parameters
    ----------
    image_rows : (K,) int64
        Each one's image.
    labels : (K,) int
        The class by which it is grouped.
    areas : (K,) float64
        The area by which it is grouped.
    columns : dict of (K, ...) arrays
        What the measure knows of them.
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
        """Return some of the rows."""
        columns = {name: values[rows] for name, values in self.columns.items()}
        return ScoredRows(self.image_rows[rows], self.labels[rows], self.areas[rows], columns)


def join_rows(parts: Sequence[ScoredRows]) -> ScoredRows:
    """Return rows with the same columns, one part after the other."""
    images, labels, areas = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("image_rows", "labels", "areas")
    )
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0].columns}
    return ScoredRows(images, labels, areas, columns)


Numbers = Callable[[ScoredRows, Floats], Resampled]
"""A measure's numbers, (R,) each, of rows and how often each is there, (R, K), in whole numbers."""

Notes = Callable[[Evaluated], Sequence[Note]]


BOXES: frozenset[Need] = frozenset({"boxes"})
"""What most measures of rows need."""


def measure_of_rows(
    name: str,
    columns: Sequence[Column],
    rows: Callable[[Evaluated], ScoredRows],
    numbers: Numbers,
    *,
    needs: Collection[Need] = BOXES,
    notes: Notes,
) -> Measure:
    """Return a measure of rows, which nobody takes unless it is asked for."""
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
        ranges = zip(SIZES[1:], AREA_RANGES[1:], strict=True)
        return {size: summarise(every.take((every.areas >= a) & (every.areas <= b))) for size, (a, b) in ranges}

    def some_numbers(every: ScoredRows, weights: Weights) -> Resampled:
        if len(weights) == 1:  # NumPy adds up the only row in another order than one of several
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
    """Return the mean of each column of values, (R, M), where row k is there counts[r, k] times; NaN of nothing.

    Parameters
    ----------
    counts : (R, K) float64
        How often each row is there.
    values : (K, M) or (K,) float64
        What to average; the means of a single column are (R,).
    present : array of bool, optional
        Which of the values count. Default: all.
    """
    there = np.ones(values.shape, bool) if present is None else present
    if values.ndim == 1:
        return counted_mean(counts, values[:, None], there[:, None])[:, 0]
    # Not by a matrix product: its last bits would depend on how many threads the machine has.
    sums = np.einsum("rk,km->rm", counts, np.where(there, values, 0.0))
    n = np.einsum("rk,km->rm", counts, there.astype(np.float64))
    with np.errstate(invalid="ignore", divide="ignore"):
        means: Floats = sums / n
    return means


PAIRS = describe_overlap(float(IOU_THRESHOLDS[0]))
"""The pairing, for hints."""


def pair_rows(
    columns: Callable[[MatchedPairs], Mapping[str, npt.NDArray[Any]]],
    kept: Callable[[MatchedPairs], Bools] | None = None,
) -> Callable[[Evaluated], ScoredRows]:
    """Return what makes rows of an evaluation's pairs: all, or those that are `kept`. Their class is the object's."""

    def rows(evaluated: Evaluated) -> ScoredRows:
        pairs = evaluated.matched_pairs
        if kept is not None:
            pairs = pairs.take(np.flatnonzero(kept(pairs)))
        return ScoredRows(pairs.image_rows, pairs.labels, pairs.areas, columns(pairs))

    return rows


def with_density(pairs: MatchedPairs) -> Bools:
    """Return which pairs have a covariance that can be inverted."""
    return invertible(pairs.covariances)


def with_sigma(pairs: MatchedPairs) -> Bools:
    """Return which edges have a sigma and a truth to compare it with, (K, 4): neither plain nor truncated."""
    edges: Bools = (pairs.variances > 0) & ~pairs.truncated
    return edges


def notes_on_boxes(evaluated: Evaluated) -> list[Note]:
    """Return notes on numbers that need the density of a box."""
    pairs = evaluated.matched_pairs
    n, plain = len(pairs), int(pairs.plain.sum())
    singular = n - plain - int(with_density(pairs).sum())
    notes = counted_notes(Note("plain-pairs", plain, total=n), Note("singular-pairs", singular, total=n))
    return [*notes, *_notes_on_few(pairs, n - plain - singular)]


def notes_on_edges(evaluated: Evaluated) -> list[Note]:
    """Return notes on numbers that need the sigma of an edge."""
    pairs = evaluated.matched_pairs
    return [
        *counted_notes(Note("plain-pairs", pairs.plain.sum(), total=len(pairs))),
        *_notes_on_truncated(pairs),
        *_notes_on_few(pairs, int(with_sigma(pairs).any(axis=1).sum())),
    ]


def notes_on_distances(evaluated: Evaluated) -> list[Note]:
    """Return notes on numbers that plain boxes have too."""
    pairs = evaluated.matched_pairs
    plain = Note("plain-distances", pairs.plain.sum(), total=len(pairs))
    return [*counted_notes(plain), *_notes_on_few(pairs, len(pairs))]


def notes_on_labels(evaluated: Evaluated) -> list[Note]:
    """Return notes on numbers of the labels of pairs."""
    pairs = evaluated.matched_pairs
    if pairs.label_probs is None:
        return [Note("label-probs-not-kept", purpose="to score labels")]
    return _notes_on_few(pairs, len(pairs))


def cut_off(notes: Notes) -> Notes:
    """Return notes, and one on what the least overlap of pairs does to errors."""
    return lambda evaluated: [*notes(evaluated), Note("overlap-cut", least=IOU_THRESHOLDS[0])]


def with_truncated(notes: Notes) -> Notes:
    """Return notes, and one that counts the edges that were left out."""
    return lambda evaluated: [*_notes_on_truncated(evaluated.matched_pairs), *notes(evaluated)]


def border_notes(residuals: Floats, variances: Floats, on_border: Bools) -> list[Note]:
    """Return how many edges (K, 4) lie on the image border, and how their errors compare with their std."""
    count, judged = int(on_border.sum()), on_border & (variances > 0)
    if not judged.any():
        return counted_notes(Note("edges-on-border", count, total=on_border.size))
    errors, sigmas = residuals[judged], np.sqrt(variances[judged])
    inside, factor = coverage(edge_levels(errors, sigmas), 0.68), error_factor(errors / sigmas)
    return [Note("edges-on-border-judged", count, total=on_border.size, inside=inside, factor=factor)]


def _notes_on_truncated(pairs: MatchedPairs) -> list[Note]:
    return border_notes(pairs.residuals, pairs.variances, pairs.truncated)


def _notes_on_few(pairs: MatchedPairs, n: int) -> list[Note]:
    """Return the note on few pairs; where no pair is scored, other notes say why unless there is none at all."""
    if n >= FEW_PAIRS or (not n and len(pairs)):
        return []
    if not n:
        return [Note("no-pairs", pairing=pairs.pairing)]
    return [Note("few-pairs", n, pairing=pairs.pairing, least=FEW_PAIRS)]


IOU = float(IOU_THRESHOLDS[0])
"""The least overlap of a match, unless a name says another."""


@dataclasses.dataclass(frozen=True, eq=False)
class Outcomes:
    """What became of detections and objects at one overlap; those that are ignored are left out.

    Parameters
    ----------
    detections : (N,) int64
        Rows of detections: those that were matched with an object, and those with nothing.
    hits : (N,) bool
        Which were matched.
    ious : (N,) float64
        The overlap with the match; 0 without one.
    areas : (N,) float64
        The object's area; of a detection without one, its own box's.
    objects : (M,) int64
        Rows of objects that are no crowd.
    found : (M,) bool
        Which were matched.
    """

    detections: Ints
    hits: Bools
    ious: Floats
    areas: Floats
    objects: Ints
    found: Bools


def outcomes(evaluated: Evaluated, iou: float = IOU) -> Outcomes:
    """Return what became of every detection and object when matches overlap by at least `iou`."""
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
    """Return notes on numbers of all detections: which were left out, and whether they are few."""
    matches = evaluated.box_matches
    ignored = int((matches.ignored[:, 0] & 1 == 1).sum())
    unnamed, everything = matches.left_out, len(evaluated.detections)
    beyond = everything - unnamed - len(matches)
    n = len(matches) - ignored
    return [
        *counted_notes(
            Note("crowds-not-calibrated", ignored, total=everything),
            Note("unnamed-not-calibrated", unnamed, total=everything),
            Note("surplus-not-calibrated", beyond, total=everything, most=MAX_DETECTIONS),
        ),
        *([Note("few-detections", n, least=FEW_PAIRS)] if n < FEW_PAIRS else []),
    ]
