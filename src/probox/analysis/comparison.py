"""Compare results on the same images: differences, intervals, p-values and sentences that follow from them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from probox.analysis.compatibility import align_classes, check_same_truth
from probox.analysis.permutation import (
    Couple,
    Place,
    Progress,
    ReplicateCounter,
    Sampler,
    compute_p_values,
    correct_p_values,
    count_classes,
    count_images_about,
    count_permutations,
    draw_together,
    subtract,
    swap_differences,
)
from probox.analysis.resampling import (
    Interval,
    check_numbers,
    choose_measures,
    compute_interval,
    list_units,
    note_few_images,
    note_undefined,
)
from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox.evaluation.text import limit_digits
from probox.measures.measure import Column, Measure
from probox.measures.registry import all_measures
from probox.notes import Note
from probox.support.formatting import format_list, with_count
from probox.support.types import Floats

_MANY = 3
"""Of more differences that cannot be claimed, only the names are told: the table has the numbers."""


class ComparedColumn(NamedTuple):
    """A column, the first result's number minus the second's, its p-values, and whether a difference is claimed."""

    column: Column
    difference: Interval
    p: float
    adjusted: float
    claimed: bool


def conclude(
    couple: tuple[str, str], findings: Sequence[ComparedColumn], images: int, level: float, pairs: int = 1
) -> str:
    """Return the sentence about two results; adjusted p-values are those of as many pairs.

    >>> pdq = ComparedColumn(Column(key="PDQ", heading="PDQ"), Interval(0.013, 0.004, 0.022, 0.005), 0.004, 0.004, True)
    >>> conclude(("A", "B"), [pdq], 206, 0.95)
    'A is better than B in PDQ by 1.30 points (95 % interval 0.40 to 2.20, p = 0.004, 206 images).'
    """
    if images < 2:
        return f"Nothing can be concluded about {couple[0]} and {couple[1]} from {with_count(images, 'image')}."
    claims: dict[str, list[ComparedColumn]] = {}
    unclaimed: dict[str, list[ComparedColumn]] = {}
    equal: list[str] = []
    missing: list[str] = []
    for finding in findings:
        column, difference = finding.column, finding.difference
        if not math.isfinite(difference.value):
            missing.append(_column_name(column))
        elif difference.value == difference.low == difference.high == 0:
            equal.append(_column_name(column))
        elif finding.claimed:
            (ahead, behind), how = _order_names(couple, column, difference)
            claims.setdefault(f"{ahead} is {how} than {behind}", []).append(finding)
        else:
            unclaimed.setdefault(_explain_no_claim(finding, level, pairs), []).append(finding)
    corrected = f", Holm's correction for {pairs} pairs" if pairs > 1 else ""
    amounts = _Amounts(f"{100 * level:g} % interval ", f", {images:,} images{corrected}", adjusted=pairs > 1)
    said = [
        f"{who} {format_list([f'in {_column_name(finding.column)} by {amounts.of(finding)}' for finding in found])}"
        for who, found in claims.items()
    ]
    for reason, found in unclaimed.items():
        names = format_list([_column_name(finding.column) for finding in found])
        told = [amounts.of(finding) for finding in found] if len(found) <= _MANY else []
        rest = f": {couple[0]} minus {couple[1]} is {format_list(told)}" if told else ""
        said.append(f"in {names} no difference can be claimed{reason}{rest}")
    said += [f"in {format_list(equal)} they are equal"] if equal else []
    said += [f"in {format_list(missing)} one of them has no finite number"] if missing else []
    text = "; ".join(said) or f"there is nothing to compare {couple[0]} and {couple[1]} by"
    return f"{text[:1].upper() if text.startswith(('in ', 'there ')) else text[:1]}{text[1:]}."


def _explain_no_claim(finding: ComparedColumn, level: float, pairs: int) -> str:
    """Return why nothing is claimed although the interval, which is of this pair alone, excludes 0 as it is printed."""
    low, high = round_difference(finding.column, finding.difference)[1:]
    digits = limit_digits(finding.column, low, high)
    low, high = (float(_format_number(finding.column, end, digits).replace(",", "")) for end in (low, high))
    if not (low > 0 or high < 0):
        return ""
    if pairs > 1 and finding.p <= 1 - level:
        return f" after Holm's correction for {pairs} pairs, although the interval of this pair alone excludes 0"
    return f" by the permutation test (p above {1 - level:.2g}), although the interval excludes 0"


class _Amounts:
    """By how much results differ, with intervals; what is true of all intervals is told with the first."""

    def __init__(self, before: str, behind: str, *, adjusted: bool) -> None:
        self.before, self.behind, self.adjusted = before, behind, adjusted

    def of(self, finding: ComparedColumn) -> str:
        column, difference, p, adjusted, claimed = finding
        value, low, high = round_difference(column, difference)
        sign = -1 if claimed and value < 0 else 1  # a claim says by how much one is ahead, whichever it is
        low, high = sorted((sign * low, sign * high))
        if math.isnan(low):
            return f"{_format_amount(column, sign * value, column.digits)} (without an interval{self.behind})"
        digits = limit_digits(column, low, high)
        between = f"{_format_number(column, low, digits)} to {_format_number(column, high, digits)}"
        both = f"{format_p(p)}, adjusted {format_p(adjusted)}" if self.adjusted else format_p(adjusted)
        ends = f"{self.before}{between}, {both}{self.behind}"
        self.before = self.behind = ""
        return f"{_format_amount(column, sign * value, digits)} ({ends})"


def round_difference(column: Column, difference: Interval) -> tuple[float, float, float]:
    """Return a difference and its interval as tables show the column: of an error's complement, the other way round."""
    value, low, high = difference.value, difference.low, difference.high
    return (0.0 - value, 0.0 - high, 0.0 - low) if column.complement else (value, low, high)  # never -0.0


def format_p(p: float) -> str:
    """Return p as people write it.

    >>> format_p(0.0214), format_p(0.000999), format_p(0.0004)
    ('p = 0.021', 'p = 0.001', 'p < 0.001')
    """
    return "p < 0.001" if p < 0.0005 else f"p = {p:.3f}"


def _column_name(column: Column) -> str:
    return column.heading or column.key


def _order_names(couple: tuple[str, str], column: Column, difference: Interval) -> tuple[tuple[str, str], str]:
    """Return who is ahead of whom, and how."""
    first_is_higher = round_difference(column, difference)[0] > 0
    if column.shown_better is None:
        return couple, "higher" if first_is_higher else "lower"
    return couple if first_is_higher == (column.shown_better == "high") else (couple[1], couple[0]), "better"


def _format_number(column: Column, value: float, digits: int) -> str:
    return f"{round(column.scale * value, digits) + 0.0:,.{digits}f}"  # -0.04 is 0.0, not -0.0


def _format_amount(column: Column, value: float, digits: int) -> str:
    unit = "points" if column.unit == "per cent" else column.symbol
    return f"{_format_number(column, value, digits)} {unit}".rstrip()


@dataclasses.dataclass(frozen=True)
class Difference:
    """One number of two results, and the first minus the second.

    Parameters
    ----------
    first, second, difference : Interval
        By the bootstrap; images are the same for both, so what is hard in an image counts on both sides.
    p : float
        The share of swaps of images between the two that make a difference as great as theirs.
    adjusted : float
        p by Holm's correction for all that were tested alike: the classes and pairs of one column.
    images : int
        How many images hold anything that it is about.
    claimed : bool
        `adjusted` is at most 1 - level, and the interval of the difference does not hold 0.
    """

    first: Interval
    second: Interval
    difference: Interval
    p: float
    adjusted: float
    images: int
    claimed: bool

    def to_dict(self) -> dict[str, object]:
        """Return it for JSON."""
        return {
            "first": self.first.to_dict(),
            "second": self.second.to_dict(),
            "difference": self.difference.to_dict(),
            "p": self.p,
            "p_adjusted": self.adjusted,
            "images": self.images,
            "claimed": self.claimed,
        }


@dataclasses.dataclass(frozen=True, eq=False)
class PairOfResults:
    """Two results and how they differ: an entry of `Comparison.pairs`.

    Parameters
    ----------
    first, second : str
        Their names.
    columns : dict of str to Difference
        By the keys of the columns, such as ``"PDQ"``.
    classes : dict of str to dict of str to Difference
        By key and then class; empty unless `compare` was asked for classes.
    conclusion : str
        What may be claimed, in one sentence.
    """

    first: str
    second: str
    columns: dict[str, Difference]
    classes: dict[str, dict[str, Difference]]
    conclusion: str


@dataclasses.dataclass(frozen=True, eq=False)
class Comparison:
    """What `compare` returns.

    Parameters
    ----------
    pairs : tuple of PairOfResults
        Each result against the first, or all against all.
    measures : tuple of Measure
        What was compared.
    images : int
        How many images all of them have.
    level : float
        Of the intervals; 1 - level is the error that claims are allowed.
    replicates, seed : int
        Number of bootstrap replicates, and the random seed.
    permutations : int
        Number of permutations: `replicates`, or more where many pairs are tested. Classes have more still.
    notes : tuple of Note
        What was left out, differs or is too little, one sentence each.
    """

    pairs: tuple[PairOfResults, ...]
    measures: tuple[Measure, ...]
    images: int
    level: float
    replicates: int
    permutations: int
    seed: int
    notes: tuple[Note, ...]

    def to_dict(self) -> dict[str, object]:
        """Return it for JSON."""
        return {
            "pairs": [
                {
                    "first": pair.first,
                    "second": pair.second,
                    "columns": {key: difference.to_dict() for key, difference in pair.columns.items()},
                    "classes": {
                        key: {name: difference.to_dict() for name, difference in classes.items()}
                        for key, classes in pair.classes.items()
                    },
                    "conclusion": pair.conclusion,
                }
                for pair in self.pairs
            ],
            "images": self.images,
            "level": self.level,
            "replicates": self.replicates,
            "permutations": self.permutations,
            "seed": self.seed,
            "notes": [note.to_dict() for note in self.notes],
        }

    def __str__(self) -> str:
        from probox.analysis.comparison_text import comparison_text

        return comparison_text(self)


def compare(
    results: Mapping[str, Evaluation],
    measures: str | Collection[str] | None = None,
    *,
    per_class: bool = False,
    all_pairs: bool = False,
    replicates: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    swaps: bool = True,
    progress: Progress | None = None,
) -> Comparison:
    """Say what may be concluded from results of the same truth.

    Parameters
    ----------
    results : mapping of str to Evaluation
        Two or more by name, all of one kind; the others are compared with the first.
    measures : collection of str, or str, optional
        Names, also in one text between commas, or ``"all"``. Default: those that all results hold.
    per_class : bool
        Compare the classes too, by the main column of each measure that is defined for a class.
    all_pairs : bool
        Compare each with each.
    replicates, seed, level
        As for `bootstrap`. There are as many permutations, or more where the number of pairs and classes needs more
        for Holm's correction.
    swaps : bool
        Test the differences by swapping images. Without, there are intervals alone: no p, and nothing is claimed.
    progress : callable, optional
        Called with the numbers of steps done and in all.

    Examples
    --------
    >>> import probox
    >>> from probox.demo import make_demo
    >>> demo = make_demo()
    >>> results = {name: probox.evaluate(demo.truth, found) for name, found in demo.detectors.items()}
    >>> print(probox.compare(results, measures=["pdq"]).pairs[0].conclusion)
    unsure is better than sure in PDQ by 27.0 points (95 % interval 22.9 to 31.8, p = 0.001, 12 images).
    """
    check_numbers(replicates, seed, level)
    if not isinstance(results, Mapping) or not all(isinstance(result, Evaluation) for result in results.values()):
        raise InputError("expected results to be evaluations by name", remedy='write {"A": a, "B": b}')
    if len(results) < 2:
        raise InputError(f"expected two results or more to compare, but got {len(results)}")
    notes = list(check_same_truth(results))
    if per_class and any(result.keep != "all" for result in results.values()):
        raise InputError(
            "classes are compared by tables, which were not kept", remedy="evaluate with {option:keep=all}"
        )
    wanted, others = choose_measures(list(results.values()), measures)
    if not wanted:
        raise InputError("the results hold no measure in common", remedy="evaluate them for the same measures")
    images = len(next(iter(results.values())).dataset)
    couples = list(combinations(results, 2))
    couples = couples if all_pairs else couples[: len(results) - 1]
    samplers = {name: Sampler(result, wanted, per_class) for name, result in results.items()}
    permutations = count_permutations(len(couples), replicates, level)
    steps = ReplicateCounter(replicates, permutations, images, len(couples) if swaps else 0, progress)
    drawn = draw_together(samplers, images, replicates, seed, steps)
    tested = {}
    for couple in couples:
        swapped: dict[Place, Floats] = {}
        if swaps and images > 1:
            both = Sampler(_join_results(results, couple, wanted), wanted, per_class)
            tests = len(couples) * count_classes(both)
            more = count_permutations(tests, permutations, level) - permutations
            swapped = swap_differences(both, images, permutations, seed, steps, more)
        tested[couple] = compute_p_values(couple, samplers, swapped, images)
    adjusted = correct_p_values(tested)
    pairs = []
    for couple in couples:
        found = {
            place: _compare_numbers(place, couple, samplers, drawn, p, adjusted[couple, place], images, level)
            for place, p in tested[couple].items()
        }
        pairs.append(_compare_pair(couple, found, wanted, images, level, len(couples)))
        undefined = {key: difference.difference for key, difference in pairs[-1].columns.items()}
        others = (*others, *_name_result(note_undefined(undefined, replicates), " - ".join(couple)))
    others = (*others, *(_note_missing_measures(results) if measures is None else ()))
    others = (*others, *(_note_measures_without_classes(wanted, named=measures is not None) if per_class else ()))
    notes += [*note_few_images(images), *others, *_note_thresholds(results), *_note_results(results, wanted)]
    return Comparison(tuple(pairs), wanted, images, level, replicates, permutations, seed, tuple(notes))


def _note_missing_measures(results: Mapping[str, Evaluation]) -> list[Note]:
    """Return notes on which measures were passed over, since only some results hold them."""
    alone: dict[tuple[str, ...], list[str]] = {}
    for measure in all_measures():
        holders = tuple(name for name, result in results.items() if measure.name in result.measures)
        if 0 < len(holders) < len(results):
            alone.setdefault(holders, []).append(measure.name)
    return [
        Note("measured-in-some", len(names), names=format_list(names), results=format_list(who), many=len(who))
        for who, names in alone.items()
    ]


def _note_measures_without_classes(measures: Sequence[Measure], *, named: bool) -> list[Note]:
    """Return a note on measures that somebody asked for have no numbers of classes."""
    without = [measure.name for measure in measures if measure.per_class is None]
    if not without or not (named or len(without) == len(measures)):
        return []
    return [Note("no-classes-compared", len(without), names=format_list(without))]


def _note_thresholds(results: Mapping[str, Evaluation]) -> list[Note]:
    """Return notes on label thresholds that were chosen; replicates keep them."""
    chosen = {name: str(one.threshold_choice) for name, one in results.items() if one.threshold_choice is not None}
    return [Note("text", text=text, result=name) for name, text in chosen.items()]


def _name_result(notes: Iterable[Note], result: str) -> list[Note]:
    """Return notes with the name of the result that they are about."""
    return [note.replace(note.count, result=result) for note in notes]


def _note_results(results: Mapping[str, Evaluation], measures: Sequence[Measure]) -> list[Note]:
    """Return the notes of measures on each result."""
    makers = [measure.notes for measure in measures if measure.notes is not None]
    notes = [note for name, result in results.items() for make in makers for note in _name_result(make(result), name)]
    return list(dict.fromkeys(notes))


def _join_results(results: Mapping[str, Any], couple: Couple, measures: Sequence[Measure]) -> Any:
    first, second = (results[name] for name in couple)
    return align_classes(first, second, tuple(measure.name for measure in measures))


def _compare_numbers(
    place: Place,
    couple: Couple,
    samplers: Mapping[str, Sampler],
    drawn: Mapping[str, Mapping[Place, Floats]],
    p: float,
    adjusted: float,
    images: int,
    level: float,
) -> Difference:
    images = count_images_about(place, couple, samplers, images)
    values = [samplers[name].values[place] for name in couple]
    numbers = [drawn[name].get(place, np.zeros(0)) for name in couple]
    unit = list_units(samplers[couple[0]].measures)[place[1]]
    first, second = (
        compute_interval(value, own, images, level, unit) for value, own in zip(values, numbers, strict=True)
    )
    between = compute_interval(float(values[0]) - float(values[1]), subtract(*numbers), images, level)
    claimed = adjusted <= 1 - level + 1e-12 and (between.low > 0 or between.high < 0)
    return Difference(first, second, between, p, adjusted, images, claimed)


def _compare_pair(
    couple: Couple,
    found: Mapping[Place, Difference],
    measures: Sequence[Measure],
    images: int,
    level: float,
    pairs: int,
) -> PairOfResults:
    columns = {key: difference for (name, key), difference in found.items() if not name}
    classes: dict[str, dict[str, Difference]] = {}
    for (name, key), difference in found.items():
        if name:
            classes.setdefault(key, {})[name] = difference
    headlines = [(measure.headline, columns[measure.headline.key]) for measure in measures]
    findings = [ComparedColumn(column, d.difference, d.p, d.adjusted, d.claimed) for column, d in headlines]
    words = conclude(couple, findings, images, level, pairs)
    return PairOfResults(*couple, columns, classes, words)
