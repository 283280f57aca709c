"""Paired permutation test of two results: resampled numbers, p-values, and Holm's correction."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np

from probox.analysis.resampling import Block, cut_blocks, resample, stack_numbers, swap_block
from probox.evaluation.result import Evaluation
from probox.measures.measure import Measure, Resampled, Weights
from probox.support.types import Floats, Ints
from probox.tables.results import renumber_pairs


def take_class(evaluation: Evaluation, label: int, measure: Measure) -> tuple[Evaluation, Ints]:
    """Return the part of an evaluation that a metric uses for one class, as `Measure.per_class`, and its image rows.

    Metrics of matches by pixels count a match under the object's class, and an unmatched detection under its predicted
    class. Metrics of matches by boxes or masks count detections under their predicted class. Metrics without matches
    use all detections in images with objects of the class.
    """
    objects, detections = evaluation.objects, evaluation.detections
    of_object, of_detection = objects.labels == label, detections.labels == label
    if "pairs" in measure.needs:
        partners = detections.partners
        of_detection = np.where(partners >= 0, of_object[partners] if len(of_object) else False, of_detection)
    elif not {"boxes", "masks"} & measure.needs:
        of_detection = np.isin(detections.image_rows, objects.image_rows[of_object])
    there, found = np.flatnonzero(of_object), np.flatnonzero(of_detection)
    images = np.union1d(objects.image_rows[there], detections.image_rows[found])
    new_object, new_detection = np.full(len(objects), -1), np.full(len(detections), -1)
    new_object[there], new_detection[found] = np.arange(len(there)), np.arange(len(found))
    part = dataclasses.replace(
        evaluation,
        dataset=evaluation.dataset.take(images),
        objects=objects.take(there).replace(
            image_rows=np.searchsorted(images, objects.image_rows[there]),
            partners=_renumber(objects.partners[there], new_detection),
        ),
        detections=detections.take(found).replace(
            image_rows=np.searchsorted(images, detections.image_rows[found]),
            partners=_renumber(detections.partners[found], new_object),
        ),
        pairs=renumber_pairs(evaluation.pairs, new_detection, new_object),
        overlaps=renumber_pairs(evaluation.overlaps, new_detection, new_object),
        masks=evaluation.masks.take(there),
        input_notes=(),
    )
    return part, images


def _renumber(partners: Ints, numbers: Ints) -> Ints:
    """Return renumbered partners; -1 stays."""
    return np.where(partners >= 0, numbers[partners], -1) if len(numbers) else partners


Place = tuple[str, str]
"""A number of a result: class name, empty for all classes, and column key."""

Couple = tuple[str, str]
"""The names of two results."""


class Sampler:
    """The numbers of one evaluation, on its images and on resampled images."""

    def __init__(self, evaluation: Evaluation, measures: Sequence[Measure], per_class: bool) -> None:
        self.evaluation = evaluation
        self.measures = measures
        self.of_classes = [measure for measure in measures if per_class and measure.per_class is not None]
        self.parts: dict[Place, tuple[Measure, Evaluation]] = {}
        self.images: dict[Place, Ints] = {}
        """Rows of images with objects or detections of a class; numbers of all classes have no entry."""
        for measure in self.of_classes:
            for label, name in enumerate(evaluation.classes):
                place = (name, measure.headline.key)
                if measure.resampled_classes is not None:  # all classes in one pass, which is faster
                    self.images[place] = _find_images_naming(evaluation, label)
                else:
                    part, self.images[place] = take_class(evaluation, label, measure)
                    self.parts[place] = (measure, part)

    @cached_property
    def values(self) -> dict[Place, float]:
        """Return the numbers of the evaluation, those of all classes first."""
        values: dict[Place, float] = {}
        for measure in self.measures:
            values.update({("", key): value for key, value in self.evaluation.summary_of(measure).items()})
        for measure in self.of_classes:
            assert measure.per_class is not None
            key, groups = measure.headline.key, measure.per_class(self.evaluation)
            values.update({(name, key): groups[name][key] for name in self.evaluation.classes})
        return values

    def numbers(self, weights: Weights, *, classes_alone: bool = False) -> dict[Place, Floats]:
        """Return the numbers for each row of weights, the multiplicities of images."""
        numbers: dict[Place, Floats] = {}
        for measure in self.measures:
            whole: Resampled = {}
            if measure in self.of_classes and measure.resampled_classes is not None:
                whole, drawn = measure.resampled_classes(self.evaluation, weights)
                key = measure.headline.key
                numbers.update({(name, key): drawn[:, label] for label, name in enumerate(self.evaluation.classes)})
            elif not classes_alone:
                whole = resample(self.evaluation, [measure], weights)
            if not classes_alone:
                numbers.update({("", key): values for key, values in whole.items()})
        for place, (measure, part) in self.parts.items():
            assert measure.resampled is not None
            numbers[place] = measure.resampled(part, weights[:, self.images[place]])[place[1]]
        return numbers


def _find_images_naming(evaluation: Evaluation, label: int) -> Ints:
    """Return the rows of images with objects or detections of a class."""
    tables = (evaluation.objects, evaluation.detections)
    there, found = (table.image_rows[table.labels == label] for table in tables)
    return np.union1d(there, found)


def swap_differences(
    both: Sampler, images: int, permutations: int, more: int, seed: int, report: Callable[[int], None]
) -> dict[Place, Floats]:
    """Return differences between two results after swapping images at random; images of `both` alternate.

    Numbers per class get `more` permutations, which Holm's correction needs.
    """

    def swap(block: Block, *, classes_alone: bool) -> dict[Place, Floats]:
        swapped = swap_block(block, images, seed)
        sides = []
        for chosen in (swapped, ~swapped):
            weights = np.stack([~chosen, chosen], axis=2).reshape(len(chosen), -1).astype(np.int64)
            sides.append(both.numbers(weights, classes_alone=classes_alone))
        return {place: subtract(values, sides[1][place]) for place, values in sides[0].items()}

    parts, classes = [], len(both.evaluation.classes)
    for block in cut_blocks(permutations, images, classes=classes):
        parts.append(swap(block, classes_alone=False))
        report(block.stop - block.start)
    others = [
        swap(Block(permutations + block.start, permutations + block.stop), classes_alone=True)
        for block in cut_blocks(more, images, classes=classes)
    ]
    found = stack_numbers(parts)
    return found | {place: np.concatenate([found[place], own]) for place, own in stack_numbers(others).items()}


def subtract(first: Floats, second: Floats) -> Floats:
    """Return the first numbers minus the second; NaN for two infinite ones."""
    with np.errstate(invalid="ignore"):
        return np.asarray(first - second)


def count_permutations(tests: int, replicates: int, level: float) -> int:
    """Return the number of permutations for a family of tests: `replicates`, or more for several tests.

    p is at least 1 / (permutations + 1), and Holm's correction multiplies the smallest p by the number of tests. Twice
    the permutations at which this product reaches 1 - level allow one permutation to exceed the difference by chance.
    """
    return max(replicates, math.ceil(2 * tests / (1 - level))) if tests > 1 else replicates


def compute_p_values(
    couple: Couple, samplers: Mapping[str, Sampler], swaps: Mapping[Place, Floats], images: int
) -> dict[Place, float]:
    """Return the p-value of each difference: the fraction of permutations, identity included, that are as extreme.

    Of all 2^n permutations of n images, at least two are as extreme, that of no image and that of all. So p is at least
    2 / 2^n. Permutations with an undefined number count as extreme. Missing and infinite numbers have no p-value, and
    classes that one result has no number for are excluded.
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
        # The tolerance keeps rounding from making the identity look less extreme than the difference itself.
        less = np.abs(swaps[place]) < abs(difference) - 1e-12 * max(1.0, abs(difference))
        n = count_images_about(place, couple, samplers, images)
        p[place] = max((float((~less).sum()) + 1) / (len(less) + 1), 2.0 ** (1 - n) if n else 1.0)
    return p


def count_images_about(place: Place, couple: Couple, samplers: Mapping[str, Sampler], images: int) -> int:
    """Return the number of images that contribute to a number of two results."""
    held = [samplers[name].images.get(place) for name in couple]
    return images if held[0] is None or held[1] is None else len(np.union1d(held[0], held[1]))


def correct_p_values(
    tested: Mapping[Couple, Mapping[Place, float]],
) -> dict[tuple[Couple, Place], float]:
    """Return Holm-adjusted p-values; the classes and pairs of a column are one family, its overall pairs another."""
    families: dict[tuple[str, bool], list[tuple[Couple, Place]]] = {}
    for couple, p in tested.items():
        for place in p:
            families.setdefault((place[1], bool(place[0])), []).append((couple, place))
    adjusted = {}
    for members in families.values():
        values = apply_holm([tested[couple][place] for couple, place in members])
        adjusted.update(dict(zip(members, values, strict=True)))
    return adjusted


def apply_holm(p: Iterable[float]) -> list[float]:
    """Return p-values after Holm's correction (1979); NaN stays and does not count as a test.

    >>> apply_holm([0.01, 0.04, 0.03])
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
