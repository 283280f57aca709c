"""Results without tables: sums that merge exactly, and columns for mAP and LRP."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from probox.convention import Convention
from probox.errors import InputError
from probox.evaluation.box_columns import BoxColumns, merge_boxes
from probox.evaluation.group_tables import counts_per_image
from probox.evaluation.input_checks import check_tables, warn_of_clutter
from probox.evaluation.parts import Keep, measures_to_keep
from probox.measures.boxes.matching import Geometry, in_area_ranges
from probox.measures.measure import Summary
from probox.measures.registry import measures_called
from probox.notes import InputWarning
from probox.support.types import Floats, Ints
from probox.tables.results import QUALITIES, Verdict

if TYPE_CHECKING:
    from probox.evaluation.result import Evaluation

SUMMED = (*QUALITIES, "cost")
"""Names of sums: qualities of true positives, and costs of false positives."""

COUNTED = ("TP", "FP", "FN", "objects", "detections")
"""Names of counts; objects and detections count regardless of their outcome."""

LEVELS = np.arange(100) / 100.0
"""Label thresholds of the curve."""

Exact = tuple[float, ...]
"""Floats whose exact sum is represented, in a canonical form: equal sums have equal tuples."""


def exact_sum(values: Iterable[float]) -> Exact:
    """Return the sum without rounding: the nearest float, the float nearest to the remainder, and so on.

    The result does not depend on order or grouping, and its first float equals `math.fsum` of all terms.

    >>> exact_sum([0.1, 0.2, 0.3]) == exact_sum([*exact_sum([0.3, 0.1]), *exact_sum([0.2])])
    True
    """
    rest = list(values)
    parts: list[float] = []
    while nearest := math.fsum(rest):
        parts.append(nearest)
        rest.append(-nearest)
    return tuple(parts)


@dataclasses.dataclass(frozen=True)
class Total:
    """Exact sums and counts of some objects and detections, in the order of `SUMMED` and `COUNTED`."""

    sums: tuple[Exact, ...]
    counts: tuple[int, ...]

    def count_by_name(self) -> dict[str, int]:
        """Return the counts by name."""
        return dict(zip(COUNTED, self.counts, strict=True))

    def summary(self, convention: Convention) -> Summary:
        """Return PDQ and its components, bit-identical to `pdq_summary` of the tables."""
        sums = {name: math.fsum(total) for name, total in zip(SUMMED, self.sums, strict=True)}
        counts = self.count_by_name()
        tp, fp, fn = counts["TP"], counts["FP"], counts["FN"]
        counted = tp + (sums["cost"] if convention.confidence_denominator else fp) + fn
        summary: Summary = {"PDQ": sums["pPDQ"] / counted if counted else math.nan}
        summary.update({name: sums[name] / tp if tp else math.nan for name in QUALITIES})
        return summary | {"TP": tp, "FP": fp, "FN": fn}


@dataclasses.dataclass(frozen=True)
class Curve:
    """Above each of the `LEVELS`: exact sums of pPDQ and of costs of false positives, and counts of TP and FP."""

    sums: tuple[tuple[Exact, ...], ...]
    counts: tuple[tuple[int, ...], ...]
    objects: int
    """Number of objects to detect."""

    def columns(self, convention: Convention) -> dict[str, Floats]:
        """Return PDQ, TP, FP and FN at each level; NaN below the convention's own label threshold."""
        sums, costs = (np.array([math.fsum(total) for total in totals]) for totals in self.sums)
        tp, fp = (np.array(counts, np.float64) for counts in self.counts)
        fn = self.objects - tp
        with np.errstate(invalid="ignore", divide="ignore"):
            pdq = sums / (tp + (costs if convention.confidence_denominator else fp) + fn)
        own = convention.fixed_threshold
        unknown = np.zeros(len(LEVELS), bool) if own is None else LEVELS.astype(np.float32) < np.float32(own)
        curves = {"PDQ": pdq, "TP": tp, "FP": fp, "FN": fn}
        return {"threshold": LEVELS.copy()} | {name: np.where(unknown, np.nan, curve) for name, curve in curves.items()}


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Kept:
    """Replacement of the tables of an `Evaluation` with ``keep="matches"`` or ``"summary"``.

    Parameters
    ----------
    keep : {"matches", "summary"}
        Size of the result.
    sums : dict of (I,) arrays
        Sums of PDQ per image, and number of objects and detections.
    overall, classes, sizes : Total, tuple of Total
        Sums of PDQ over all images: overall, per class and per size.
    curve : Curve
        Sums of PDQ above each label threshold.
    columns : dict of {"box", "mask"} to BoxColumns
        Columns for mAP and LRP of boxes and of masks, if requested.
    warnings : tuple of InputWarning
        Warnings about the first images of each merged part.
    scored_against : str, optional
        As in `Evaluation`.
    """

    keep: Keep
    sums: dict[str, npt.NDArray[Any]]
    overall: Total
    classes: tuple[Total, ...]
    sizes: tuple[Total, ...]
    curve: Curve
    columns: dict[Geometry, BoxColumns] = dataclasses.field(default_factory=dict)
    warnings: tuple[InputWarning, ...] = ()
    scored_against: str | None = None

    def columns_of(self, geometry: Geometry) -> BoxColumns:
        """Return the columns for mAP and LRP; raise if they were not kept."""
        if geometry not in self.columns:
            words = "mAP and LRP" if geometry == "box" else "mAP and LRP of masks"
            raise InputError(f"{words} were not kept", remedy="evaluate with {option:keep=matches}")
        return self.columns[geometry]

    def object_images(self) -> Ints:
        """Return the row of each object's image; raise without columns for mAP and LRP."""
        return self.columns_of(next(iter(self.columns), "box")).object_images()

    def known_of_objects(self) -> tuple[npt.NDArray[Any], dict[str, npt.NDArray[Any]]]:
        """Return the number of objects per image, and columns with the known properties of objects, by image."""
        for own in self.columns.values():
            return own.object_counts, {"labels": own.object_labels, "sizes": own.object_sizes}
        return self.sums["objects"], {}

    def image_sums(self, convention: Convention) -> dict[str, Floats]:
        """Return the sums of PDQ per image."""
        sums = {name: self.sums[name].astype(np.float64) for name in (*QUALITIES, *COUNTED[:3])}
        return sums | {"cost": self.sums["cost"] if convention.confidence_denominator else sums["FP"]}

    def find_warnings(self, convention: Convention, measures: Sequence[str]) -> tuple[InputWarning, ...]:
        """Return the warnings about the first images, and about false positives that outweigh objects."""
        if "pdq" not in measures or convention.label_threshold is not None or convention.confidence_denominator:
            return self.warnings
        curve, numbers = self.curve.columns(convention), self.overall.summary(convention)
        best = int(np.argmax(np.nan_to_num(curve["PDQ"])))
        real = int(numbers["TP"] + numbers["FN"])
        clutter = warn_of_clutter(numbers["PDQ"], numbers["FP"], real, float(LEVELS[best]), float(curve["PDQ"][best]))
        return (*self.warnings, *(clutter if real else ()))


class NoTable:
    """Placeholder of a table that was not kept; any use raises."""

    def __init__(self, keep: str) -> None:
        self._keep = keep

    def _fail(self) -> NoReturn:
        raise InputError(f"the tables were not kept, only the {self._keep}", remedy="evaluate with {option:keep=all}")

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):  # pickle and copy look up special methods
            raise AttributeError(name)
        self._fail()

    def __len__(self) -> int:
        self._fail()

    def __repr__(self) -> str:
        return f"not kept (keep={self._keep!r})"


def drop_tables(evaluation: Evaluation, keep: Keep, *, find_warnings: bool = True) -> Evaluation:
    """Return an evaluation with sums instead of tables; `find_warnings` takes about as long as the rest."""
    measures = measures_to_keep(evaluation.measures, keep, asked=True)
    dataset = evaluation.dataset
    sums: dict[str, npt.NDArray[Any]] = {}
    counts = counts_per_image(evaluation.detections, evaluation.objects, len(dataset))
    for name, values in {**evaluation.image_sums, **counts}.items():
        sums[name] = values.astype(np.int32) if name in COUNTED else values
    if not evaluation.convention.confidence_denominator:
        sums["cost"] = np.zeros(len(dataset))  # unused: without this option each false positive costs 1
    needs = {need for measure in measures_called(measures) for need in measure.needs}
    columns: dict[Geometry, BoxColumns] = {}
    if "boxes" in needs:
        columns["box"] = BoxColumns.of(evaluation.box_matches, evaluation.object_images)
    if "masks" in needs:
        columns["mask"] = BoxColumns.of(evaluation.mask_matches, evaluation.object_images)
    overall, classes, sizes = _group_totals(evaluation)
    warnings = tuple(check_tables(evaluation)) if find_warnings else ()
    kept = Kept(
        keep=keep, sums=sums, overall=overall, classes=classes, sizes=sizes, curve=find_curve(evaluation),
        columns=columns,
        warnings=warnings, scored_against=evaluation.scored_against,
    )  # fmt: skip
    none: Any = NoTable(keep)
    images = dataset.replace(file_names=(), negatives=None, not_exhaustive=None)
    return dataclasses.replace(
        evaluation, dataset=images, measures=measures, kept=kept, objects=none,
        detections=none, pairs=none, overlaps=none, masks=none,
    )  # fmt: skip


def _group_totals(evaluation: Evaluation) -> tuple[Total, tuple[Total, ...], tuple[Total, ...]]:
    """Return overall totals, and those of the groups of `per_class` and `per_size`."""
    found, there = evaluation.detections, evaluation.objects
    partner = found.partners
    matched = partner >= 0
    labels = np.where(matched, there.labels[partner] if len(there) else -1, found.labels)
    own_area = found.extents[:, 0] * found.extents[:, 1]
    areas = np.where(matched, there.areas[partner] if len(there) else -1.0, own_area)
    (overall,) = _totals(evaluation, np.zeros(len(found), np.int64), np.zeros(len(there), np.int64), 1)
    ranges, sizes = evaluation.convention.area_ranges, []
    for of_found, of_there in zip(in_area_ranges(areas, ranges), in_area_ranges(there.areas, ranges), strict=True):
        sizes += _totals(evaluation, np.where(of_found, 0, -1), np.where(of_there, 0, -1), 1)
    classes = _totals(evaluation, labels, there.labels, len(evaluation.classes))
    return overall, tuple(classes), tuple(sizes)


def _totals(
    evaluation: Evaluation, found: npt.NDArray[np.integer], there: npt.NDArray[np.integer], count: int
) -> list[Total]:
    """Return the total of each group, given the groups of detections and objects; negative groups are excluded."""
    detections, objects = evaluation.detections, evaluation.objects
    hit, wrong = detections.verdicts == Verdict.TP, detections.verdicts == Verdict.FP
    sums = [_sums(detections.quality(name)[hit], found[hit], count) for name in QUALITIES]
    sums.append(_sums(detections.costs[wrong], found[wrong], count))
    counts = [_counts(found[hit], count), _counts(found[wrong], count)]
    counts.append(_counts(there[objects.verdicts == Verdict.FN], count))
    counts += [_counts(there[objects.countable], count), _counts(found, count)]
    return [Total(tuple(own[group] for own in sums), tuple(own[group] for own in counts)) for group in range(count)]


def _sums(values: npt.NDArray[np.floating], groups: npt.NDArray[np.integer], count: int) -> list[Exact]:
    """Return the exact sum of each group's values."""
    return [exact_sum(own) for own in _group_values(values, groups, count)]


def _group_values(values: npt.NDArray[np.floating], groups: npt.NDArray[np.integer], count: int) -> list[list[float]]:
    """Return the values of each group; negative groups are excluded."""
    order = np.argsort(groups, kind="stable")
    ends = np.searchsorted(groups[order], np.arange(count + 1))
    ordered = values[order].astype(np.float64)
    return [ordered[start:end].tolist() for start, end in pairwise(ends)]


def _counts(groups: npt.NDArray[np.integer], count: int) -> list[int]:
    return [int(number) for number in np.bincount(groups[groups >= 0], minlength=count)]


def find_curve(evaluation: Evaluation) -> Curve:
    """Return the curve; each detection counts up to its confidence level."""
    from probox.analysis.threshold_sweep import find_rematches, match_histories

    found, there, pairs, count = evaluation.detections, evaluation.objects, evaluation.pairs, len(LEVELS)
    objects = int((~there.ignored).sum())
    if not evaluation.has_pairs:
        return Curve((((),) * count,) * 2, ((0,) * count,) * 2, objects)
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
        tuple(_sums_along(values, begin[rows], end[rows], count) for values, rows in ((quality, right), (cost, wrong))),
        tuple(_counts_along(begin[rows], end[rows], count) for rows in (right, wrong)),
        objects,
    )


def _sums_along(values: npt.NDArray[np.floating], begin: Ints, end: Ints, count: int) -> tuple[Exact, ...]:
    """Return at each level the exact sum of the values that have begun and not ended."""
    now: Exact = ()
    totals = []
    first, last = _group_values(values, begin, count + 1), _group_values(-values, end, count + 1)
    for level in range(count):
        now = exact_sum([*now, *first[level], *last[level]])
        totals.append(now)
    return tuple(totals)


def _counts_along(begin: Ints, end: Ints, count: int) -> tuple[int, ...]:
    steps = np.bincount(begin, minlength=count + 1) - np.bincount(end, minlength=count + 1)
    return tuple(int(number) for number in np.cumsum(steps)[:count])


def merge_kept(parts: Sequence[Kept], image_order: Ints) -> Kept:
    """Return the merged data of all parts, with images in `image_order`."""
    first = parts[0]
    curves = [part.curve for part in parts]
    warnings: dict[str, InputWarning] = {}
    for warning in (warning for part in parts for warning in part.warnings):
        warnings.setdefault(warning.code, warning)  # with the numbers of the first part that has it
    return Kept(
        keep=first.keep,
        sums={name: np.concatenate([part.sums[name] for part in parts])[image_order] for name in first.sums},
        overall=_add_totals([part.overall for part in parts]),
        classes=tuple(map(_add_totals, zip(*(part.classes for part in parts), strict=True))),
        sizes=tuple(map(_add_totals, zip(*(part.sizes for part in parts), strict=True))),
        curve=Curve(
            tuple(_add_sums([curve.sums[n] for curve in curves]) for n in range(2)),
            tuple(_add_counts([curve.counts[n] for curve in curves]) for n in range(2)),
            sum(curve.objects for curve in curves),
        ),
        columns={
            geometry: merge_boxes([part.columns[geometry] for part in parts], image_order) for geometry in first.columns
        },
        warnings=tuple(warnings.values()),
        scored_against=max(
            (part.scored_against for part in parts if part.scored_against), default=None
        ),  # "masks" > "boxes"
    )


def _add_totals(totals: Iterable[Total]) -> Total:
    given = list(totals)
    return Total(_add_sums([total.sums for total in given]), _add_counts([total.counts for total in given]))


def _add_sums(rows: Sequence[tuple[Exact, ...]]) -> tuple[Exact, ...]:
    return tuple(exact_sum(value for total in column for value in total) for column in zip(*rows, strict=True))


def _add_counts(rows: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*rows, strict=True)))
