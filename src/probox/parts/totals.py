"""What PDQ adds up: exact sums and counts of everything, of each class and size, and above each label threshold."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from probox.analysis.sweep import find_rematches, match_histories
from probox.analysis.thresholds import GRID
from probox.convention import Convention
from probox.evaluation.result import Evaluation
from probox.measures.boxes.matching import AREA_RANGES, SIZES
from probox.measures.measure import Summary
from probox.parts.exact import exact_sums, to_float
from probox.tables.results import QUALITIES, Verdict

__all__ = ["COUNTED", "LEVELS", "SUMMED", "Curve", "Total", "Totals", "totals_of"]

SUMMED = (*QUALITIES, "cost")
"""What is summed: the qualities of true positives, and what false positives cost."""

COUNTED = ("TP", "FP", "FN", "objects", "detections")
"""What is counted; objects and detections whatever became of them."""

LEVELS = GRID
"""The label thresholds of the curve: those that are tried for other measures."""

Ints = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class Total:
    """Sums, in the units of `exact`, and counts of some objects and detections."""

    sums: tuple[int, ...]
    counts: tuple[int, ...]

    def __add__(self, other: Total) -> Total:
        return Total(_added(self.sums, other.sums), _added(self.counts, other.counts))

    def counted(self) -> dict[str, int]:
        """Return the counts by name."""
        return dict(zip(COUNTED, self.counts, strict=True))

    def summary(self, convention: Convention) -> Summary:
        """Return PDQ and its parts: to the bit what `pdq_summary` gives for the tables."""
        sums = {name: to_float(total) for name, total in zip(SUMMED, self.sums, strict=True)}
        counts = self.counted()
        tp, fp, fn = counts["TP"], counts["FP"], counts["FN"]
        counted = tp + (sums["cost"] if convention.confidence_denominator else fp) + fn
        summary: Summary = {"PDQ": sums["pPDQ"] / counted if counted else math.nan}
        summary.update({name: sums[name] / tp if tp else math.nan for name in QUALITIES})
        return summary | {"TP": tp, "FP": fp, "FN": fn}


@dataclasses.dataclass(frozen=True)
class Curve:
    """Above each of the `LEVELS`: sums of pPDQ and of what false positives cost, true and false positives."""

    pPDQ: tuple[int, ...]  # noqa: N815  (the measure's own name)
    cost: tuple[int, ...]
    tp: tuple[int, ...]
    fp: tuple[int, ...]
    objects: int
    """How many objects there are to find."""

    def __add__(self, other: Curve) -> Curve:
        return Curve(
            _added(self.pPDQ, other.pPDQ),
            _added(self.cost, other.cost),
            _added(self.tp, other.tp),
            _added(self.fp, other.fp),
            self.objects + other.objects,
        )

    def columns(self, convention: Convention) -> dict[str, npt.NDArray[np.float64]]:
        """Return PDQ, TP, FP and FN at each level; NaN below the convention's own label threshold."""
        tp, fp = (np.array(counts, np.float64) for counts in (self.tp, self.fp))
        sums, costs = (np.array([to_float(total) for total in totals]) for totals in (self.pPDQ, self.cost))
        fn = self.objects - tp
        with np.errstate(invalid="ignore", divide="ignore"):
            pdq = sums / (tp + (costs if convention.confidence_denominator else fp) + fn)
        own = convention.fixed_threshold
        unknown = np.zeros(len(LEVELS), bool) if own is None else LEVELS.astype(np.float32) < np.float32(own)
        curves = {"PDQ": pdq, "TP": tp, "FP": fp, "FN": fn}
        return {name: np.where(unknown, np.nan, curve) for name, curve in curves.items()}


@dataclasses.dataclass(frozen=True)
class Totals:
    """The totals of an evaluation: of everything, of each class and size, and above each label threshold."""

    overall: Total
    classes: tuple[Total, ...]
    sizes: tuple[Total, ...]
    curve: Curve

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            self.overall + other.overall,
            tuple(a + b for a, b in zip(self.classes, other.classes, strict=True)),
            tuple(a + b for a, b in zip(self.sizes, other.sizes, strict=True)),
            self.curve + other.curve,
        )


def totals_of(evaluation: Evaluation) -> Totals:
    """Return what PDQ adds up in an evaluation; groups are those of `Evaluation.per_class` and `per_size`."""
    found, there = evaluation.detections, evaluation.objects
    partner = found.partners
    matched = partner >= 0
    labels = np.where(matched, there.labels[partner] if len(there) else -1, found.labels)
    own_area = found.extents[:, 0] * found.extents[:, 1]
    areas = np.where(matched, there.areas[partner] if len(there) else -1.0, own_area)
    everything = np.zeros(len(found), np.int64), np.zeros(len(there), np.int64)
    (overall,) = _totals(evaluation, *everything, 1)
    sizes = []
    for low, high in AREA_RANGES[1:]:
        inside = [np.where((area >= low) & (area <= high), 0, -1) for area in (areas, there.areas)]
        sizes += _totals(evaluation, inside[0], inside[1], 1)
    classes = _totals(evaluation, labels, there.labels, len(evaluation.classes))
    assert len(sizes) == len(SIZES) - 1
    return Totals(overall, tuple(classes), tuple(sizes), _curve(evaluation))


def _totals(
    evaluation: Evaluation, found: npt.NDArray[np.integer], there: npt.NDArray[np.integer], count: int
) -> list[Total]:
    """Return the total of each group, given the groups of detections and objects; negative ones are of none."""
    detections, objects = evaluation.detections, evaluation.objects
    hit, wrong = detections.verdicts == Verdict.TP, detections.verdicts == Verdict.FP
    sums = [exact_sums(detections.quality(name)[hit], found[hit], count) for name in QUALITIES]
    sums.append(exact_sums(detections.costs[wrong], found[wrong], count))
    every = np.ones(len(detections), bool)
    counts = [_counted(found, hit, count), _counted(found, wrong, count)]
    counts.append(_counted(there, objects.verdicts == Verdict.FN, count))
    counts += [_counted(there, objects.countable, count), _counted(found, every, count)]
    return [Total(tuple(own[group] for own in sums), tuple(own[group] for own in counts)) for group in range(count)]


def _counted(groups: npt.NDArray[np.integer], chosen: npt.NDArray[np.bool_], count: int) -> list[int]:
    own = groups[chosen]
    return [int(number) for number in np.bincount(own[own >= 0], minlength=count)]


def _curve(evaluation: Evaluation) -> Curve:
    """Return the curve; a detection is kept above as many levels as lie below its confidence."""
    found, there, pairs, count = evaluation.detections, evaluation.objects, evaluation.pairs, len(LEVELS)
    if not evaluation.has_pairs:
        nothing = (0,) * count
        return Curve(nothing, nothing, nothing, nothing, int((~there.ignored).sum()))
    above = np.searchsorted(LEVELS.astype(np.float32), found.confidences, side="left").astype(np.float32)
    history = match_histories(evaluation, find_rematches(evaluation, above), above)
    begin = np.maximum(history.since, 0).astype(np.int64)
    end = np.maximum(history.until.astype(np.int64), begin)
    pair = history.pair
    right = pair >= 0
    if len(pairs):
        right &= ~there.ignored[pairs.objects[pair]]
    wrong = pair < 0
    quality = pairs.quality("pPDQ")[pair[right]] if len(pairs) else np.zeros(0)
    cost = found.costs[history.detection[wrong]]
    return Curve(
        _along(exact_sums(quality, begin[right], count + 1), exact_sums(quality, end[right], count + 1)),
        _along(exact_sums(cost, begin[wrong], count + 1), exact_sums(cost, end[wrong], count + 1)),
        _along(_counted(begin, right, count + 1), _counted(end, right, count + 1)),
        _along(_counted(begin, wrong, count + 1), _counted(end, wrong, count + 1)),
        int((~there.ignored).sum()),
    )


def _along(begins: Sequence[int], ends: Sequence[int]) -> tuple[int, ...]:
    """Return what is there at each level, given what begins and what ends there."""
    now, totals = 0, []
    for first, last in zip(begins[:-1], ends[:-1], strict=True):
        now += first - last
        totals.append(now)
    return tuple(totals)


def _added(one: Sequence[int], other: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(one, other, strict=True))
