"""Two results on the same images: their numbers on images that are drawn, and p from images that are swapped."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from probox.analysis.class_parts import ClassPart, class_part
from probox.analysis.resampling import MORE_SWAPS, SWAPS, Block, blocks_of, drawn_block, resampled, swapped_block
from probox.evaluation.result import Evaluation
from probox.measures.measure import Measure, Resampled, Weights
from probox.measures.registry import measures_called
from probox.support.mapping import Mapper, here

__all__ = [
    "Couple",
    "Floats",
    "Place",
    "Progress",
    "Sampler",
    "Steps",
    "classes_per_column",
    "corrected",
    "count_permutations",
    "differences",
    "draw_together",
    "holm",
    "images_about",
    "p_values",
    "swap_differences",
]

Floats = npt.NDArray[np.float64]

Place = tuple[str, str]
"""A number of a result: a class, or nothing for all of them, and the key of a column."""

Couple = tuple[str, str]
"""The names of two results."""

Progress = Callable[[int, int], None]


class Sampler:
    """The numbers of one evaluation, as they are and of resampled images."""

    def __init__(self, evaluation: Evaluation, measures: Sequence[Measure], per_class: bool) -> None:
        self.evaluation = evaluation
        self.measures = measures
        self.per_class = per_class
        self.parts: dict[Place, tuple[Measure, ClassPart]] = {}
        self.images: dict[Place, npt.NDArray[np.int64]] = {}
        self.in_one_pass: list[Measure] = []  # which give classes and the whole together: passes are what takes time
        for measure in measures if per_class else ():
            if measure.per_class is None:
                continue
            key = measure.headline.key
            if measure.resampled_classes is not None:
                self.in_one_pass.append(measure)
            for label, name in enumerate(evaluation.classes):
                if measure.resampled_classes is not None:
                    self.images[name, key] = _images_naming(evaluation, label)
                    continue
                part = class_part(evaluation, label, measure)
                self.parts[name, key], self.images[name, key] = (measure, part), part.images

    def __reduce__(self) -> tuple[object, ...]:
        # Measures are known by name everywhere, and parts are sooner made than sent.
        return _sampler, (self.evaluation, tuple(measure.name for measure in self.measures), self.per_class)

    @cached_property
    def values(self) -> dict[Place, float]:
        """Return the numbers as they are, first those of all classes together."""
        values: dict[Place, float] = {}
        for measure in self.measures:
            values.update({("", key): value for key, value in self.evaluation.summary_of(measure).items()})
        for measure in self.measures if self.per_class else ():
            if measure.per_class is not None:
                key, groups = measure.headline.key, measure.per_class(self.evaluation)
                values.update({(name, key): groups[name][key] for name in self.evaluation.classes})
        return values

    def numbers(self, weights: Weights, *, classes_alone: bool = False) -> dict[Place, Floats]:
        """Return the numbers for each row of weights, which say how often each image counts."""
        numbers: dict[Place, Floats] = {}
        for measure in self.measures:
            whole: Resampled = {}
            if measure in self.in_one_pass:
                assert measure.resampled_classes is not None
                whole, drawn = measure.resampled_classes(self.evaluation, weights)
                key = measure.headline.key
                numbers.update({(name, key): drawn[:, label] for label, name in enumerate(self.evaluation.classes)})
            elif not classes_alone:
                whole = resampled(self.evaluation, [measure], weights)
            if not classes_alone:
                numbers.update({("", key): values for key, values in whole.items()})
        for place, (measure, part) in self.parts.items():
            assert measure.resampled is not None
            numbers[place] = measure.resampled(part.evaluation, weights[:, part.images])[place[1]]
        return numbers

    def images_of(self, place: Place) -> npt.NDArray[np.int64] | None:
        """Return the images that hold anything of a class; None: all of them."""
        return self.images.get(place)


def _sampler(evaluation: Evaluation, measures: tuple[str, ...], per_class: bool) -> Sampler:
    return Sampler(evaluation, measures_called(measures), per_class)


def _images_naming(evaluation: Evaluation, label: int) -> npt.NDArray[np.int64]:
    """Return the rows of images with objects of a class, or detections that name it."""
    tables = (evaluation.objects, evaluation.detections)
    there, found = (table.image_rows[table.labels == label] for table in tables)
    return np.union1d(there, found)


class Steps:
    """Counts replicates for who wants to see that it goes on."""

    def __init__(self, replicates: int, permutations: int, images: int, pairs: int, progress: Progress | None) -> None:
        self.total = replicates + pairs * permutations if images > 1 else 0
        self.done = 0
        self.progress = progress

    def add(self, rows: int) -> None:
        self.done += rows
        if self.progress is not None:
            self.progress(self.done, self.total)


def draw_together(
    samplers: Mapping[str, Sampler], images: int, replicates: int, seed: int, steps: Steps, mapper: Mapper = here
) -> dict[str, dict[Place, Floats]]:
    """Return the numbers of each result on the same images, drawn anew in each replicate."""
    drawn: dict[str, list[dict[Place, Floats]]] = {name: [] for name in samplers}
    if images > 1:
        shared = tuple(samplers.values())
        classes = max((len(sampler.evaluation.classes) for sampler in shared), default=0)
        blocks = blocks_of(replicates, images, mapper.at_once, classes=classes)
        for block, parts in zip(blocks, mapper(_drawn_numbers, blocks, images, seed, *shared), strict=True):
            for name, part in zip(samplers, parts, strict=True):
                drawn[name].append(part)
            steps.add(block.stop - block.start)
    return {name: _stacked(parts) for name, parts in drawn.items()}


def _drawn_numbers(block: Block, images: int, seed: int, *samplers: Sampler) -> list[dict[Place, Floats]]:
    weights = drawn_block(block, images, seed)
    return [sampler.numbers(weights) for sampler in samplers]


def swap_differences(
    both: Sampler, images: int, permutations: int, seed: int, steps: Steps, more: int, mapper: Mapper = here
) -> dict[Place, Floats]:
    """Return the differences of two results that have swapped some images; rows of `both` are theirs in turn.

    Of classes there are `more`.
    """
    parts = []
    cut = partial(blocks_of, images=images, at_least=mapper.at_once, classes=len(both.evaluation.classes))
    blocks = cut(permutations)
    found_parts = mapper(_swapped_numbers, blocks, images, seed, SWAPS, both)
    others = mapper(_swapped_numbers, cut(more), images, seed, MORE_SWAPS, both)
    for block, part in zip(blocks, found_parts, strict=True):
        parts.append(part)
        steps.add(block.stop - block.start)
    found, extra = _stacked(parts), _stacked(list(others))
    return found | {place: np.concatenate([found[place], values]) for place, values in extra.items()}


def _swapped_numbers(block: Block, images: int, seed: int, what_for: int, both: Sampler) -> dict[Place, Floats]:
    swapped = swapped_block(block, images, seed, what_for)
    return _swapped_differences(both, swapped, classes_alone=what_for == MORE_SWAPS)


def _swapped_differences(
    both: Sampler, swapped: npt.NDArray[np.bool_], *, classes_alone: bool = False
) -> dict[Place, Floats]:
    sides = []
    for chosen in (swapped, ~swapped):
        weights = np.stack([~chosen, chosen], axis=2).reshape(len(chosen), -1).astype(np.int64)
        sides.append(both.numbers(weights, classes_alone=classes_alone))
    return {place: differences(values, sides[1][place]) for place, values in sides[0].items()}


def differences(first: Floats, second: Floats) -> Floats:
    """Return the first numbers minus the second; there is none, NaN, between two that are infinite."""
    with np.errstate(invalid="ignore"):
        return np.asarray(first - second)


def count_permutations(tests: int, replicates: int, level: float) -> int:
    """Return how many permutations so many tests in one family need: `replicates`, or more where there are several.

    p is at least 1 / (permutations + 1), and Holm's correction multiplies the least p by the number of tests. Twice the
    permutations with which that product reaches 1 - level leave room for a permutation that exceeds by chance.
    """
    return max(replicates, math.ceil(2 * tests / (1 - level))) if tests > 1 else replicates


def classes_per_column(both: Sampler) -> int:
    """Return how many classes the column with most of them is tested for; 0 if classes are not compared."""
    keys = [key for _, key in both.images]
    return max((keys.count(key) for key in set(keys)), default=0)


def _stacked(parts: Sequence[Mapping[Place, Floats]]) -> dict[Place, Floats]:
    return {place: np.concatenate([part[place] for part in parts]) for place in (parts[0] if parts else ())}


def p_values(
    couple: Couple, samplers: Mapping[str, Sampler], swaps: Mapping[Place, Floats], images: int
) -> dict[Place, float]:
    """Return p of each difference: the share of swaps that do as much, the unswapped one being one of them.

    Of all 2^n swaps of n images, two do as much at least, that of none and that of all: so p is at least 2 / 2^n.
    Swaps that leave one side without a number count as doing as much. Numbers that a result has not got, or that are
    infinite, have no p, and classes that one of them has no number for are left out.
    """
    first, second = (samplers[name].values for name in couple)
    p = {}
    for place, value in first.items():
        difference = float(value) - float(second[place])
        missing = math.isnan(value) or math.isnan(second[place])
        if missing and place[0]:
            continue
        if not math.isfinite(difference) or place not in swaps:
            p[place] = math.nan
            continue
        # Rounding must not make a swap of nothing look smaller than the difference itself.
        less = np.abs(swaps[place]) < abs(difference) - 1e-12 * max(1.0, abs(difference))
        n = images_about(place, couple, samplers, images)
        p[place] = max((float((~less).sum()) + 1) / (len(less) + 1), 2.0 ** (1 - n) if n else 1.0)
    return p


def images_about(place: Place, couple: Couple, samplers: Mapping[str, Sampler], images: int) -> int:
    """Return how many images hold anything that a number of two results is about."""
    held = [samplers[name].images_of(place) for name in couple]
    return images if held[0] is None or held[1] is None else len(np.union1d(held[0], held[1]))


def corrected(
    tested: Mapping[Couple, Mapping[Place, float]],
) -> dict[tuple[Couple, Place], float]:
    """Return Holm's p: all classes and pairs of a column are one family, and so are its pairs over all classes."""
    families: dict[tuple[str, bool], list[tuple[Couple, Place]]] = {}
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
