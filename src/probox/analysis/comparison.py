"""Is one result better than another? Differences with intervals, tested by swapping images between the two."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from probox.analysis.conclusions import Finding, conclude, listed
from probox.analysis.intervals import Interval, interval_of, notes_on_images, notes_on_undefined, units_of
from probox.analysis.paired import (
    Couple,
    Floats,
    Place,
    Progress,
    Sampler,
    Steps,
    classes_per_column,
    corrected,
    count_permutations,
    differences,
    draw_together,
    images_about,
    p_values,
    swap_differences,
)
from probox.analysis.resampling import check_numbers, measures_to_resample
from probox.analysis.same_truth import check_same_truth, side_by_side
from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox.measures.measure import Measure
from probox.measures.registry import all_measures
from probox.support.mapping import Mapper, here

__all__ = ["Comparison", "Difference", "PairOfResults", "compare"]


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
    notes : tuple of str
        What was left out, differs or is too little, one sentence each.
    """

    pairs: tuple[PairOfResults, ...]
    measures: tuple[Measure, ...]
    images: int
    level: float
    replicates: int
    permutations: int
    seed: int
    notes: tuple[str, ...]

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
            "notes": list(self.notes),
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
    mapper: Mapper = here,
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
    mapper : Mapper
        Who measures blocks of replicates. Default: this process; `probox.distributed` has a cluster do it.

    Examples
    --------
    >>> import probox
    >>> from probox.demo import make_demo
    >>> demo = make_demo()
    >>> results = {name: probox.evaluate(demo.truth, found) for name, found in demo.detectors.items()}
    >>> print(probox.compare(results, measures=["pdq"]).pairs[0].conclusion)
    unsure is better than sure in PDQ by 27.0 points (95 % interval 23.1 to 32.0, p = 0.001, 12 images).
    """
    check_numbers(replicates, seed, level)
    if not isinstance(results, Mapping) or not all(isinstance(result, Evaluation) for result in results.values()):
        raise InputError("expected results to be evaluations by name", remedy='write {"A": a, "B": b}')
    if len(results) < 2:
        raise InputError(f"expected two results or more to compare, but got {len(results)}")
    notes = list(check_same_truth(results))
    if per_class and any(result.keep != "all" for result in results.values()):
        raise InputError("classes are compared by tables, which were not kept", remedy='evaluate with keep="all"')
    wanted, others = measures_to_resample(list(results.values()), measures)
    if not wanted:
        raise InputError("the results hold no measure in common", remedy="evaluate them for the same measures")
    images = len(next(iter(results.values())).dataset)
    couples = list(combinations(results, 2))
    couples = couples if all_pairs else couples[: len(results) - 1]
    samplers = {name: Sampler(result, wanted, per_class) for name, result in results.items()}
    permutations = count_permutations(len(couples), replicates, level)
    steps = Steps(replicates, permutations, images, len(couples) if swaps else 0, progress)
    drawn = draw_together(samplers, images, replicates, seed, steps, mapper)
    tested = {}
    for couple in couples:
        swapped: dict[Place, Floats] = {}
        if swaps and images > 1:
            both = Sampler(_joined(results, couple, wanted), wanted, per_class)
            tests = len(couples) * classes_per_column(both)
            more = count_permutations(tests, permutations, level) - permutations
            swapped = swap_differences(both, images, permutations, seed, steps, more, mapper)
        tested[couple] = p_values(couple, samplers, swapped, images)
    adjusted = corrected(tested)
    pairs = []
    for couple in couples:
        found = {
            place: _difference(place, couple, samplers, drawn, p, adjusted[couple, place], images, level)
            for place, p in tested[couple].items()
        }
        pairs.append(_pair(couple, found, wanted, images, level, len(couples)))
        undefined = {key: difference.difference for key, difference in pairs[-1].columns.items()}
        others = (*others, *(f"{' - '.join(couple)}, {text}" for text in notes_on_undefined(undefined, replicates)))
    others = (*others, *(_not_in_all(results) if measures is None else ()))
    others = (*others, *(_not_of_classes(wanted, named=measures is not None) if per_class else ()))
    notes += [*notes_on_images(images), *others, *_choices(results), *_remarks(results, wanted)]
    return Comparison(tuple(pairs), wanted, images, level, replicates, permutations, seed, tuple(notes))


def _not_in_all(results: Mapping[str, Evaluation]) -> list[str]:
    """Return which measures were passed over, since only some results hold them."""
    alone: dict[tuple[str, ...], list[str]] = {}
    for measure in all_measures():
        holders = tuple(name for name, result in results.items() if measure.name in result.measures)
        if 0 < len(holders) < len(results):
            alone.setdefault(holders, []).append(measure.name)
    return [
        f"not compared: {listed(names)}, for which only {listed(who)} {'was' if len(who) == 1 else 'were'} evaluated"
        for who, names in alone.items()
    ]


def _not_of_classes(measures: Sequence[Measure], *, named: bool) -> list[str]:
    """Return which measures that somebody asked for have no numbers of classes."""
    without = [measure.name for measure in measures if measure.per_class is None]
    if not without or not (named or len(without) == len(measures)):
        return []
    return [f"no classes are compared by {listed(without)}: there are no numbers of single classes"]


def _choices(results: Mapping[str, Evaluation]) -> list[str]:
    """Return which label thresholds were chosen; replicates keep them."""
    return [f"{name}: {one.threshold_choice}" for name, one in results.items() if one.threshold_choice is not None]


def _remarks(results: Mapping[str, Evaluation], measures: Sequence[Measure]) -> list[str]:
    """Return what readers of the numbers must know of each result."""
    told = [measure.remarks for measure in measures if measure.remarks is not None]
    return list(
        dict.fromkeys(f"{name}: {text}" for name, result in results.items() for say in told for text in say(result))
    )


def _joined(results: Mapping[str, Any], couple: Couple, measures: Sequence[Measure]) -> Any:
    first, second = (results[name] for name in couple)
    return side_by_side(first, second, tuple(measure.name for measure in measures))


def _difference(
    place: Place,
    couple: Couple,
    samplers: Mapping[str, Sampler],
    drawn: Mapping[str, Mapping[Place, Floats]],
    p: float,
    adjusted: float,
    images: int,
    level: float,
) -> Difference:
    images = images_about(place, couple, samplers, images)
    values = [samplers[name].values[place] for name in couple]
    numbers = [drawn[name].get(place, np.zeros(0)) for name in couple]
    unit = units_of(samplers[couple[0]].measures)[place[1]]
    first, second = (interval_of(value, own, images, level, unit) for value, own in zip(values, numbers, strict=True))
    between = interval_of(float(values[0]) - float(values[1]), differences(*numbers), images, level)
    claimed = adjusted <= 1 - level + 1e-12 and (between.low > 0 or between.high < 0)
    return Difference(first, second, between, p, adjusted, images, claimed)


def _pair(
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
    findings = [Finding(column, d.difference, d.p, d.adjusted, d.claimed) for column, d in headlines]
    words = conclude(couple, findings, images, level, pairs)
    return PairOfResults(*couple, columns, classes, words)
