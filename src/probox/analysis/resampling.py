"""Images drawn anew, and swapped between two results: what intervals and tests of differences are made of.

Whole images are drawn, since what is in one image belongs together: its objects share light, distance and clutter, and
a detection that is missing there is often one of several. Objects drawn one by one would pretend to be independent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox.measures.measure import Measure, Resampled, Weights
from probox.measures.registry import MEASURES, measures_called, named_measures

__all__ = [
    "MORE_SWAPS",
    "check_numbers",
    "drawn_images",
    "in_parts",
    "measures_to_resample",
    "resampled",
    "swapped_images",
]

_CELLS = 4_000_000  # weights at a time

DRAWS, SWAPS, MORE_SWAPS = 0, 1, 2
"""What random numbers are for: draws and swaps of one seed have nothing to do with each other."""


def drawn_images(images: int, replicates: int, seed: int) -> Iterator[Weights]:
    """Yield how often each image is drawn when as many are drawn, with replacement: some rows at a time."""
    random = np.random.default_rng([seed, DRAWS])
    for rows in in_parts(replicates, images):
        chosen = random.integers(0, images, (rows, images)) + images * np.arange(rows)[:, None]
        yield np.bincount(chosen.ravel(), minlength=rows * images).reshape(rows, images)


def swapped_images(images: int, replicates: int, seed: int, what_for: int = SWAPS) -> Iterator[npt.NDArray[np.bool_]]:
    """Yield which images change sides, each with probability one half: some rows at a time."""
    random = np.random.default_rng([seed, what_for])
    for rows in in_parts(replicates, images):
        yield random.random((rows, images)) < 0.5


def in_parts(replicates: int, images: int) -> Iterator[int]:
    """Yield numbers of replicates that add up, each few enough for memory."""
    most = max(1, _CELLS // max(images, 1))
    for start in range(0, replicates, most):
        yield min(most, replicates - start)


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
        held = [measure for measure in MEASURES if all(measure.name in result.measures for result in results)]
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
