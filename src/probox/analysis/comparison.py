"""Is one result better than another? Differences with intervals, tested by swapping images between the two."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from probox.analysis.class_parts import ClassPart, class_part
from probox.analysis.conclusions import conclude
from probox.analysis.intervals import Interval, interval_of, notes_on_images, units_of
from probox.analysis.resampling import (
    check_numbers,
    drawn_images,
    measures_to_resample,
    resampled,
    swapped_images,
)
from probox.analysis.same_truth import check_same_truth, side_by_side
from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox.measures.measure import Measure, Weights

__all__ = ["Comparison", "Difference", "PairOfResults", "compare", "holm"]

Floats = npt.NDArray[np.float64]

Place = tuple[str, str]
"""A number of a result: a class, or nothing for all of them, and the key of a column."""

Progress = Callable[[int, int], None]


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
    """Two results: their differences by the keys of columns, those of classes by key and class, and one sentence."""

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
        How often images were drawn and swapped, and from which seed.
    notes : tuple of str
        What was left out, differs or is too little, one sentence each.
    """

    pairs: tuple[PairOfResults, ...]
    measures: tuple[Measure, ...]
    images: int
    level: float
    replicates: int
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
            "seed": self.seed,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        from probox.analysis.comparison_text import comparison_text

        return comparison_text(self)


def compare(
    results: Mapping[str, Evaluation],
    measures: Collection[str] | None = None,
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
        Two or more by name; the others are compared with the first.
    measures : collection of str, optional
        Default: those that all results hold.
    per_class : bool
        Compare the classes too, by the main column of each measure that is defined for a class.
    all_pairs : bool
        Compare each with each.
    replicates, seed, level
        As for `bootstrap`; as many swaps of images are made.
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
    unsure is better than sure in PDQ by 27.0 points (95 % interval 23.1 to 32.0, p = 0.001, 12 images).
    """
    check_numbers(replicates, seed, level)
    if not isinstance(results, Mapping) or not all(isinstance(result, Evaluation) for result in results.values()):
        raise InputError("expected results to be evaluations by name", remedy='write {"A": a, "B": b}')
    if len(results) < 2:
        raise InputError(f"expected two results or more to compare, but got {len(results)}")
    notes = list(check_same_truth(results))
    wanted, others = measures_to_resample(list(results.values()), measures)
    if not wanted:
        raise InputError("the results hold no measure in common", remedy="evaluate them for the same measures")
    images = len(next(iter(results.values())).dataset)
    couples = list(combinations(results, 2))
    couples = couples if all_pairs else couples[: len(results) - 1]
    samplers = {name: _Sampler(result, wanted, per_class) for name, result in results.items()}
    steps = _Steps(replicates, images, len(couples) if swaps else 0, progress)
    drawn = _draw(samplers, images, replicates, seed, steps)
    tested = {}
    for couple in couples:
        swapped: dict[Place, Floats] = {}
        if swaps and images > 1:
            both = _Sampler(_joined(results, couple, wanted), wanted, per_class)
            swapped = _swap(both, images, replicates, seed, steps)
        tested[couple] = _p_values(couple, samplers, swapped)
    adjusted = _adjusted(tested)
    pairs = []
    for couple in couples:
        found = {
            place: _difference(place, couple, samplers, drawn, p, adjusted[couple, place], images, level)
            for place, p in tested[couple].items()
        }
        pairs.append(_pair(couple, found, wanted, images, level, len(couples)))
    notes += [*others, *notes_on_images(images), *_remarks(results, wanted)]
    return Comparison(tuple(pairs), wanted, images, level, replicates, seed, tuple(notes))


def _remarks(results: Mapping[str, Evaluation], measures: Sequence[Measure]) -> list[str]:
    """Return what readers of the numbers must know of each result."""
    told = [measure.remarks for measure in measures if measure.remarks is not None]
    return list(
        dict.fromkeys(f"{name}: {text}" for name, result in results.items() for say in told for text in say(result))
    )


class _Sampler:
    """The numbers of one evaluation, as they are and of resampled images."""

    def __init__(self, evaluation: Evaluation, measures: Sequence[Measure], per_class: bool) -> None:
        self.evaluation = evaluation
        self.measures = measures
        self.values: dict[Place, float] = {}
        self.parts: dict[Place, tuple[Measure, ClassPart]] = {}
        for measure in measures:
            self.values.update({("", key): value for key, value in measure.summary(evaluation).items()})
        for measure in measures if per_class else ():
            if measure.per_class is None:
                continue
            key = measure.headline.key
            groups = measure.per_class(evaluation)
            for label, name in enumerate(evaluation.classes):
                self.values[name, key] = groups[name][key]
                self.parts[name, key] = measure, class_part(evaluation, label, measure)

    def numbers(self, weights: Weights) -> dict[Place, Floats]:
        numbers = {("", key): values for key, values in resampled(self.evaluation, self.measures, weights).items()}
        for place, (measure, part) in self.parts.items():
            assert measure.resampled is not None
            numbers[place] = measure.resampled(part.evaluation, weights[:, part.images])[place[1]]
        return numbers

    def images_of(self, place: Place) -> npt.NDArray[np.int64] | None:
        """Return the images that hold anything of a class; None: all of them."""
        return self.parts[place][1].images if place in self.parts else None


class _Steps:
    """Counts replicates for who wants to see that it goes on."""

    def __init__(self, replicates: int, images: int, pairs: int, progress: Progress | None) -> None:
        self.total = replicates * (1 + pairs) if images > 1 else 0
        self.done = 0
        self.progress = progress

    def add(self, rows: int) -> None:
        self.done += rows
        if self.progress is not None:
            self.progress(self.done, self.total)


def _joined(results: Mapping[str, Evaluation], couple: tuple[str, str], measures: Sequence[Measure]) -> Evaluation:
    first, second = (results[name] for name in couple)
    return side_by_side(first, second, tuple(measure.name for measure in measures))


def _draw(
    samplers: Mapping[str, _Sampler], images: int, replicates: int, seed: int, steps: _Steps
) -> dict[str, dict[Place, Floats]]:
    """Return the numbers of each result on the same images, drawn anew in each replicate."""
    drawn: dict[str, list[dict[Place, Floats]]] = {name: [] for name in samplers}
    if images > 1:
        for weights in drawn_images(images, replicates, seed):
            for name, sampler in samplers.items():
                drawn[name].append(sampler.numbers(weights))
            steps.add(len(weights))
    return {name: _stacked(parts) for name, parts in drawn.items()}


def _swap(both: _Sampler, images: int, replicates: int, seed: int, steps: _Steps) -> dict[Place, Floats]:
    """Return the differences of two results that have swapped some images; rows of `both` are theirs in turn."""
    differences: list[dict[Place, Floats]] = []
    for swapped in swapped_images(images, replicates, seed):
        sides = []
        for chosen in (swapped, ~swapped):
            weights = np.stack([~chosen, chosen], axis=2).reshape(len(chosen), -1).astype(np.int64)
            sides.append(both.numbers(weights))
        differences.append({place: values - sides[1][place] for place, values in sides[0].items()})
        steps.add(len(swapped))
    return _stacked(differences)


def _stacked(parts: Sequence[Mapping[Place, Floats]]) -> dict[Place, Floats]:
    return {place: np.concatenate([part[place] for part in parts]) for place in (parts[0] if parts else ())}


def _p_values(
    couple: tuple[str, str], samplers: Mapping[str, _Sampler], swaps: Mapping[Place, Floats]
) -> dict[Place, float]:
    """Return p of each difference: the share of swaps that do as much, the unswapped one being one of them.

    Swaps that leave one side without a number count as doing as much. Numbers that a result has not got have no p, and
    classes that neither has are left out.
    """
    first, second = (samplers[name].values for name in couple)
    p = {}
    for place, value in first.items():
        difference = value - second[place]
        if math.isnan(difference):
            if not place[0]:
                p[place] = math.nan
            continue
        if place not in swaps:
            p[place] = math.nan
            continue
        # Rounding must not make a swap of nothing look smaller than the difference itself.
        less = np.abs(swaps[place]) < abs(difference) - 1e-12 * max(1.0, abs(difference))
        p[place] = (float((~less).sum()) + 1) / (len(less) + 1)
    return p


def _adjusted(
    tested: Mapping[tuple[str, str], Mapping[Place, float]],
) -> dict[tuple[tuple[str, str], Place], float]:
    """Return Holm's p: all classes and pairs of a column are one family, and so are its pairs over all classes."""
    families: dict[tuple[str, bool], list[tuple[tuple[str, str], Place]]] = {}
    for couple, p in tested.items():
        for place in p:
            families.setdefault((place[1], bool(place[0])), []).append((couple, place))
    adjusted = {}
    for members in families.values():
        values = holm([tested[couple][place] for couple, place in members])
        adjusted.update(dict(zip(members, values, strict=True)))
    return adjusted


def holm(p: Iterable[float]) -> list[float]:
    """Return p-values by Holm's correction (1979); NaN stays and is no test.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    values = list(p)
    order = sorted((n for n, value in enumerate(values) if not math.isnan(value)), key=lambda n: values[n])
    adjusted = [math.nan] * len(values)
    highest = 0.0
    for rank, n in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - rank) * values[n]))
        adjusted[n] = highest
    return adjusted


def _difference(
    place: Place,
    couple: tuple[str, str],
    samplers: Mapping[str, _Sampler],
    drawn: Mapping[str, Mapping[Place, Floats]],
    p: float,
    adjusted: float,
    images: int,
    level: float,
) -> Difference:
    held = [samplers[name].images_of(place) for name in couple]
    if held[0] is not None and held[1] is not None:
        images = len(np.union1d(held[0], held[1]))
    values = [samplers[name].values[place] for name in couple]
    numbers = [drawn[name].get(place, np.zeros(0)) for name in couple]
    unit = units_of(samplers[couple[0]].measures)[place[1]]
    first, second = (interval_of(value, own, images, level, unit) for value, own in zip(values, numbers, strict=True))
    between = interval_of(values[0] - values[1], numbers[0] - numbers[1], images, level)
    claimed = adjusted <= 1 - level + 1e-12 and (between.low > 0 or between.high < 0)
    return Difference(first, second, between, p, adjusted, images, claimed)


def _pair(
    couple: tuple[str, str],
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
    words = conclude(couple, [(c, d.difference, d.adjusted, d.claimed) for c, d in headlines], images, level, pairs)
    return PairOfResults(*couple, columns, classes, words)
