"""Images drawn anew, and swapped between two results: what intervals and tests of differences are made of.

Whole images are drawn, since what is in one image belongs together: its objects share light, distance and clutter, and
a detection that is missing there is often one of several. Objects drawn one by one would pretend to be independent.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox.measures.boxes.matching import IOU_THRESHOLDS
from probox.measures.measure import Measure, Resampled, Weights
from probox.measures.registry import all_measures, measures_called, named_measures

__all__ = [
    "MORE_SWAPS",
    "SWAPS",
    "Block",
    "assign_folds",
    "blocks_of",
    "check_numbers",
    "drawn_block",
    "drawn_images",
    "measures_to_resample",
    "resampled",
    "swapped_block",
    "swapped_images",
]

_CELLS = 4_000_000  # weights at a time

DRAWS, SWAPS, MORE_SWAPS = 0, 1, 2
"""What random numbers are for: draws and swaps of one seed have nothing to do with each other."""


def assign_folds(images: int, folds: int, seed: int) -> npt.NDArray[np.int64]:
    """Return the fold of each image by a seeded shuffle; rows ascend by id, so the order in files has no effect."""
    fold = np.empty(images, np.int64)
    fold[np.random.default_rng(seed).permutation(images)] = np.arange(images) % folds
    return fold


class Block(NamedTuple):
    """Some replicates that are drawn together: from `start` on, up to `stop`."""

    start: int
    stop: int


def blocks_of(replicates: int, images: int, at_least: int = 1, *, classes: int = 0) -> list[Block]:
    """Return blocks of replicates, each few enough for memory, and `at_least` so many if there are as many replicates.

    A replicate takes a weight of each image, and a precision of each class and IoU threshold. No number depends on how
    replicates are cut into blocks.
    """
    cells = max(images, len(IOU_THRESHOLDS) * classes, 1)
    most = max(1, min(_CELLS // cells, -(-replicates // at_least)))
    return [Block(start, min(start + most, replicates)) for start in range(0, replicates, most)]


def drawn_block(block: Block, images: int, seed: int) -> Weights:
    """Return how often each image is drawn in each replicate when as many are drawn, with replacement."""
    rows = block.stop - block.start
    random = _draws_from(block.start, images, seed)
    chosen = random.integers(0, images, (rows, images)) + images * np.arange(rows)[:, None]
    _left.draws = (images, seed), block.stop, random
    return np.bincount(chosen.ravel(), minlength=rows * images).reshape(rows, images)


def drawn_images(images: int, replicates: int, seed: int) -> Iterator[Weights]:
    """Yield how often each image is drawn in each replicate: some replicates at a time."""
    return (drawn_block(block, images, seed) for block in blocks_of(replicates, images))


_left = threading.local()
"""Where the last block left the random numbers: blocks one after another need not begin anew."""


def _draws_from(start: int, images: int, seed: int) -> np.random.Generator:
    """Return what draws the images of replicate `start` next.

    How many random numbers a draw takes depends on them, so those of replicates before are drawn and passed over.
    """
    owner, reached, random = getattr(_left, "draws", (None, 0, None))
    _left.draws = None, 0, None
    if random is None or owner != (images, seed) or reached > start:
        random, reached = np.random.default_rng([seed, DRAWS]), 0
    for passed in blocks_of(start - reached, images):
        random.integers(0, images, (passed.stop - passed.start, images))
    return random


def swapped_block(block: Block, images: int, seed: int, what_for: int = SWAPS) -> npt.NDArray[np.bool_]:
    """Return which images change sides in each replicate, each with probability one half."""
    numbers = np.random.PCG64([seed, what_for])
    numbers.advance(block.start * images)
    return np.random.Generator(numbers).random((block.stop - block.start, images)) < 0.5


def swapped_images(images: int, replicates: int, seed: int, what_for: int = SWAPS) -> Iterator[npt.NDArray[np.bool_]]:
    """Yield which images change sides in each replicate: some replicates at a time."""
    return (swapped_block(block, images, seed, what_for) for block in blocks_of(replicates, images))


def resampled(evaluation: Evaluation, measures: Sequence[Measure], weights: Weights) -> Resampled:
    """Return the numbers of all columns of the measures, each an array with one number per row of weights."""
    numbers: Resampled = {}
    for measure in measures:
        assert measure.resampled is not None
        numbers.update(measure.resampled(evaluation, weights))
    return numbers


def measures_to_resample(
    results: Sequence[Evaluation], names: str | Collection[str] | None
) -> tuple[tuple[Measure, ...], tuple[str, ...]]:
    """Return the measures that are asked for (default: all that every result holds), and what to say of others.

    Measures that cannot be resampled are left out where nobody named them.
    """
    if names is None:
        held = [measure for measure in all_measures() if all(measure.name in result.measures for result in results)]
        lacking = [measure.name for measure in held if measure.resampled is None]
        notes = (f"no intervals of {', '.join(lacking)}: nobody has said how to resample it",) if lacking else ()
        return tuple(measure for measure in held if measure.resampled is not None), notes
    wanted = measures_called(named_measures(names))
    if isinstance(names, str) and names.strip().lower() == "all":
        wanted = tuple(measure for measure in wanted if measure.resampled is not None)
    for measure in wanted:
        if measure.resampled is None:
            raise InputError(f"{measure.name} cannot be resampled", remedy="leave it out of measures")
        for result in results:
            _check_held(measure, result)
    return wanted, ()


def _check_held(measure: Measure, result: Evaluation) -> None:
    """Raise if a result does not hold what a measure needs."""
    if "pairs" in measure.needs and not result.has_pairs:
        raise InputError(
            f"{measure.name} needs matches by pixels, which were not made",
            file=result.inputs[-1] if result.inputs else None,
            remedy=f"evaluate with {measure.name} among the measures",
        )
    if "labels" in measure.needs and result.detections.label_probs is None:
        raise InputError(
            f"{measure.name} needs the probabilities of all classes, which this result does not hold",
            file=result.inputs[-1] if result.inputs else None,
            remedy="evaluate the detections again",
        )


def check_numbers(replicates: int, seed: int, level: float) -> None:
    """Raise if one of them cannot be used."""
    for name, value, least in (("replicates", replicates, 2), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise InputError(f"expected {name} to be a whole number of at least {least}, got {value!r:.40}")
    if isinstance(level, bool) or not isinstance(level, int | float | np.number) or not 0 < level < 1:
        raise InputError(f"expected level to be between 0 and 1, got {level!r:.40}", remedy="write 0.95 for 95 %")
