"""Comparison of results on the same images: differences, confidence intervals, p-values and conclusions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from probox.analysis.comparison_text import comparison_text, conclude
from probox.analysis.permutation import (
    Couple,
    Place,
    Sampler,
    compute_p_values,
    correct_p_values,
    count_images_about,
    count_permutations,
    subtract,
    swap_differences,
)
from probox.analysis.resampling import (
    Interval,
    check_numbers,
    choose_measures,
    compute_interval,
    draw_together,
    list_units,
    note_few_images,
    note_undefined,
)
from probox.convention import Convention, value_in_words
from probox.errors import InputError
from probox.evaluation.merge import merge_evaluations
from probox.evaluation.result import Evaluation
from probox.measures.measure import Measure
from probox.measures.registry import all_measures
from probox.notes import InputWarning, Note
from probox.support.formatting import format_list
from probox.support.types import Floats

Progress = Callable[[int, int], None]


@dataclasses.dataclass(frozen=True)
class Difference:
    """A number of two results, and their difference: first minus second.

    Parameters
    ----------
    first, second, difference : Interval
        Values with paired bootstrap intervals: each replicate uses the same images for both results.
    p : float
        p-value of the paired permutation test.
    adjusted : float
        p-value after Holm's correction for the classes and pairs of one column.
    images : int
        Number of images that contribute to the number.
    claimed : bool
        True if `adjusted` is at most 1 - level and the interval of the difference excludes 0.
    """

    first: Interval
    second: Interval
    difference: Interval
    p: float
    adjusted: float
    images: int
    claimed: bool

    def to_dict(self) -> dict[str, object]:
        """Return a dictionary for JSON."""
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
    """Two results and their differences: an entry of `Comparison.pairs`.

    Parameters
    ----------
    first, second : str
        Names of the results.
    columns : dict of str to Difference
        Differences by column key, such as ``"PDQ"``.
    classes : dict of str to dict of str to Difference
        Differences by column key and class; empty without ``per_class=True``.
    conclusion : str
        Conclusion in one sentence.
    """

    first: str
    second: str
    columns: dict[str, Difference]
    classes: dict[str, dict[str, Difference]]
    conclusion: str


@dataclasses.dataclass(frozen=True, eq=False)
class Comparison:
    """Result of `compare`.

    Parameters
    ----------
    pairs : tuple of PairOfResults
        Each result against the first, or all pairs.
    measures : tuple of Measure
        Compared metrics.
    images : int
        Number of images.
    level : float
        Confidence level; 1 - level is the significance level of claims.
    replicates, seed : int
        Number of bootstrap replicates, and the random seed.
    permutations : int
        Number of permutations: `replicates`, or more for many pairs. Classes use still more.
    notes : tuple of Note
        Excluded data, differences between the evaluations, and too small samples.
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
        """Return a dictionary for JSON."""
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
    """Compare two or more results on the same ground truth.

    Parameters
    ----------
    results : mapping of str to Evaluation
        Two or more results by name. All others are compared with the first.
    measures : collection of str, or str, optional
        Metric names, also as one comma-separated text, or ``"all"``. Default: those that all results hold.
    per_class : bool
        Also compare classes, by the headline column of each metric that is defined per class.
    all_pairs : bool
        Compare every pair of results.
    replicates, seed, level
        As for `Evaluation.intervals`. The number of permutations is the same, or larger if Holm's correction for the
        number of pairs and classes needs more.
    swaps : bool
        Run the permutation test. Without it there are only intervals: no p-value, and no difference is claimed.
    progress : callable, optional
        Called with the number of finished steps and of all steps.

    Returns
    -------
    Comparison
        Differences, intervals, p-values and conclusions of the pairs.

    Examples
    --------
    >>> import probox
    >>> from probox.demo import make_demo
    >>> demo = make_demo()
    >>> results = {name: probox.evaluate(demo.truth, found) for name, found in demo.detectors.items()}
    >>> print(probox.compare(results, measures=["pdq"]).pairs[0].conclusion)
    probabilistic is better than deterministic in PDQ by 27.0 points (95% CI 22.9 to 31.8, p = 0.001, 12 images).
    """
    check_numbers(replicates, seed, level)
    if not isinstance(results, Mapping) or not all(isinstance(result, Evaluation) for result in results.values()):
        raise InputError("expected results to be evaluations by name", remedy='write {"A": a, "B": b}')
    if len(results) < 2:
        raise InputError(f"expected two results or more to compare, but got {len(results)}")
    notes = list(check_same_truth(results))
    if per_class and any(result.keep != "all" for result in results.values()):
        raise InputError(
            "comparing classes needs tables, which were not kept", remedy="evaluate again with {option:keep=all}"
        )
    wanted, others = choose_measures(list(results.values()), measures)
    if not wanted:
        raise InputError("the results have no metric in common", remedy="evaluate them with the same {option:measures}")
    first = next(iter(results.values()))
    images, classes = len(first.dataset), len(first.classes)
    couples = list(combinations(results, 2))
    couples = couples if all_pairs else couples[: len(results) - 1]
    samplers = {name: Sampler(result, wanted, per_class) for name, result in results.items()}
    permutations = count_permutations(len(couples), replicates, level)
    report = _count_replicates(replicates + (permutations * len(couples) if swaps else 0), progress)
    makers = [sampler.numbers for sampler in samplers.values()]
    numbers = draw_together(makers, images, replicates, seed, classes=classes, report=report)
    drawn = dict(zip(samplers, numbers, strict=True))
    tested = {}
    for couple in couples:
        swapped: dict[Place, Floats] = {}
        if swaps and images > 1:
            joined = align_classes(results[couple[0]], results[couple[1]], tuple(measure.name for measure in wanted))
            both = Sampler(joined, wanted, per_class)
            tests = len(couples) * classes if both.of_classes else 0
            more = count_permutations(tests, permutations, level) - permutations
            swapped = swap_differences(both, images, permutations, more, seed, report)
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


def _count_replicates(total: int, progress: Progress | None) -> Callable[[int], None]:
    """Return a function that reports finished replicates of `total`."""
    done = 0

    def report(rows: int) -> None:
        nonlocal done
        done += rows
        if progress is not None:
            progress(done, total)

    return report


def _note_missing_measures(results: Mapping[str, Evaluation]) -> list[Note]:
    """Return notes on metrics that only some results hold."""
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
    """Return a note on requested metrics that are not defined per class."""
    without = [measure.name for measure in measures if measure.per_class is None]
    if not without or not (named or len(without) == len(measures)):
        return []
    return [Note("no-classes-compared", len(without), names=format_list(without))]


def _note_thresholds(results: Mapping[str, Evaluation]) -> list[Note]:
    """Return notes on label thresholds chosen by cross-fitting; replicates keep them."""
    chosen = {name: str(one.threshold_choice) for name, one in results.items() if one.threshold_choice is not None}
    return [Note("text", text=text, result=name) for name, text in chosen.items()]


def _name_result(notes: Iterable[Note], result: str) -> list[Note]:
    """Return notes that name their result."""
    return [note.replace(note.count, result=result) for note in notes]


def _note_results(results: Mapping[str, Evaluation], measures: Sequence[Measure]) -> list[Note]:
    """Return the notes of metrics on each result."""
    makers = [measure.notes for measure in measures if measure.notes is not None]
    notes = [note for name, result in results.items() for make in makers for note in _name_result(make(result), name)]
    return list(dict.fromkeys(notes))


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
    claimed = adjusted <= 1 - level + 1e-12 and (between.low > 0 or between.high < 0)  # 1 - 0.95 is below 0.05
    return Difference(first, second, between, p, adjusted, images, claimed)


def _compare_pair(
    couple: Couple,
    found: Mapping[Place, Difference],
    measures: Sequence[Measure],
    images: int,
    level: float,
    pairs: int,
) -> PairOfResults:
    columns: dict[str, Difference] = {}
    classes: dict[str, dict[str, Difference]] = {}
    for (name, key), difference in found.items():
        if name:
            classes.setdefault(key, {})[name] = difference
        else:
            columns[key] = difference
    headlines = [(measure.headline, columns[measure.headline.key]) for measure in measures]
    return PairOfResults(*couple, columns, classes, conclude(couple, headlines, images, level, pairs))


CHANGES_DETECTIONS = ("label_threshold", "fixed_variance")
"""Fields of a convention that may differ: they change the detections, not their metrics."""


def check_same_truth(results: Mapping[str, Evaluation]) -> tuple[Note, ...]:
    """Raise if a result is not comparable with the first, naming the difference; return notes on allowed ones."""
    (name, first), *others = results.items()
    regions = _compare_regions(results)
    if regions is not None:
        raise InputError(
            str(regions), remedy="evaluate all of them on the same ground truth, with or without box truth"
        )
    for other, result in others:
        difference = next(_find_differences(name, first, other, result), None)
        if difference is not None:
            raise InputError(
                f"{other} cannot be compared with {name}: {difference}",
                remedy="evaluate both on the same ground truth and with the same options",
            )
    return _detection_notes(results)


def describe_differences(results: Mapping[str, Evaluation]) -> tuple[Note, ...]:
    """Return notes and warnings on differences between the evaluations of the same objects."""
    (name, first), *others = results.items()
    regions = _compare_regions(results)
    conventions = [next(_compare_conventions(name, first, other, result), None) for other, result in others]
    found = [InputWarning("conventions-differ", text=text) for text in conventions if text is not None]
    return (*(found if regions is None else [regions]), *_detection_notes(results))


def _compare_regions(results: Mapping[str, Evaluation]) -> InputWarning | None:
    """Return a warning if some results were scored against masks and some against boxes."""
    masks, boxes = (
        [name for name, result in results.items() if result.scored_against == kind] for kind in ("masks", "boxes")
    )
    if not masks or not boxes:
        return None
    return InputWarning("regions-differ", masks=format_list(masks), boxes=format_list(boxes), many=len(masks))


def _detection_notes(results: Mapping[str, Evaluation]) -> tuple[Note, ...]:
    (name, first), *others = results.items()
    notes = []
    for other, result in others:
        for field in CHANGES_DETECTIONS:
            a, b = getattr(first.convention, field), getattr(result.convention, field)
            if a != b:
                words = field.replace("_", " ")
                values = {"a": value_in_words(field, a), "b": value_in_words(field, b)}
                notes.append(Note("settings-differ", first=name, second=other, setting=words, **values))
    return tuple(notes)


def align_classes(first: Any, second: Any, measures: tuple[str, ...]) -> Any:
    """Return one evaluation of both: row 2 i is image i of the first, row 2 i + 1 the same image of the second.

    Each image keeps its position among the others, whichever result it is taken from, so ties are broken alike.
    """
    mine, theirs = (
        dataclasses.replace(
            part,
            convention=first.convention,
            measures=measures,
            part=None,
            dataset=part.dataset.replace(image_ids=2 * np.arange(len(part.dataset)) + side),
        )
        for side, part in enumerate((first, second))
    )
    return merge_evaluations([mine, theirs])


def _find_differences(name: str, first: Evaluation, other: str, second: Evaluation) -> Iterator[str]:
    """Yield reasons why two results are not comparable; each assumes that the previous ones do not apply."""
    if first.keep != second.keep:
        yield f"{name} was evaluated with keep {first.keep}, {other} with {second.keep}"
    if first.classes != second.classes:
        for mine, a, b in ((name, first, second), (other, second, first)):
            alone = [c for c in a.classes if c not in b.classes]
            if alone:
                yield f"only the ground truth of {mine} has the class {alone[0]}"
        yield "their ground truths have classes in different orders"
    own, its = first.dataset, second.dataset
    for mine, rest, ids in (
        (name, other, np.setdiff1d(own.image_ids, its.image_ids)),
        (other, name, np.setdiff1d(its.image_ids, own.image_ids)),
    ):
        if len(ids):
            more = f" and {len(ids) - 1:,} more" if len(ids) > 1 else ""
            yield f"image {ids[0]}{more} of {mine} {'are' if more else 'is'} not in {rest}"
    for row in np.flatnonzero((own.shapes != its.shapes).any(axis=1)):
        yield f"image {own.image_ids[row]} has another size"
    (counts, columns), (other_counts, others) = first.known_of_objects(), second.known_of_objects()
    for row in np.flatnonzero(counts != other_counts):
        many = f"{counts[row]} objects in {name} and {other_counts[row]} in {other}"
        yield f"image {own.image_ids[row]} has {many}"
    for column, values in columns.items():
        for row in np.nonzero(values != others[column])[0]:
            image = own.image_ids[np.searchsorted(np.cumsum(counts), row, side="right")]
            yield f"the objects of image {image} differ in {column.replace('_', ' ')}"
    yield from _compare_conventions(name, first, other, second)


def _compare_conventions(name: str, first: Evaluation, other: str, second: Evaluation) -> Iterator[str]:
    one, two = (result.convention.for_rules(result.dataset.rules) for result in (first, second))
    for field in dataclasses.fields(Convention):
        a, b = getattr(one, field.name), getattr(two, field.name)
        if a != b and field.name not in (*CHANGES_DETECTIONS, "name"):
            mine, its = value_in_words(field.name, a), value_in_words(field.name, b)
            yield f"{name} was evaluated with {field.name} {mine}, {other} with {its}"
