"""Bootstrap confidence intervals over images, and the random numbers of bootstrap and permutation tests.

Whole images are resampled because objects and detections within an image are dependent: they share light, distance and
clutter, and missed objects often occur together.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from functools import partial
from statistics import NormalDist
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from probox.convention import MOST_THRESHOLDS
from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox.measures.measure import Measure, Resampled, Unit, Weights
from probox.measures.registry import all_measures, measures_called, named_measures
from probox.notes import Note
from probox.support.types import Bools, Floats, Ints

Key = TypeVar("Key", bound=Hashable)

_CELLS = 4_000_000  # weights in memory at a time: 32 MB

_GOLDEN = np.uint32(0x9E3779B9)  # an offset, because the mixer maps 0 to 0

DRAWS, SWAPS = 0, 1
"""Streams of random words, so that bootstrap and permutations of one seed are independent."""


def _mix(words: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Return mixed words, each bit a function of all input bits (lowbias32 by C. Wellons, a bijection)."""
    words = words ^ (words >> np.uint32(16))
    words *= np.uint32(0x7FEB352D)
    words ^= words >> np.uint32(15)
    words *= np.uint32(0x846CA68B)
    words ^= words >> np.uint32(16)
    return words


def stream_key(seed: int, stream: int) -> int:
    """Return the key of a stream of random words; seeds may have any number of bits."""
    key, seed = np.array([stream], np.uint32), int(seed)
    for shift in range(0, max(seed.bit_length(), 1), 32):
        key = _mix(key ^ _mix(np.array([seed >> shift & 0xFFFFFFFF], np.uint32) + _GOLDEN))
    return int(key[0])


def random_words(key: int, block: Block, images: int) -> npt.NDArray[np.uint32]:
    """Return a random word per replicate and image, a function of the key and these two numbers only.

    The generator has no state, so any process can make any replicate. The report page has the same function.
    """
    replicates = _mix(np.uint32(key) ^ _mix(np.arange(block.start, block.stop, dtype=np.uint32) + _GOLDEN))
    return _mix(replicates[:, None] ^ _mix(np.arange(images, dtype=np.uint32) + _GOLDEN))


def assign_folds(images: int, folds: int, seed: int) -> Ints:
    """Return the fold of each image by a seeded shuffle; rows ascend by id, so the file order has no effect."""
    fold = np.empty(images, np.int64)
    fold[np.random.default_rng(seed).permutation(images)] = np.arange(images) % folds
    return fold


class Block(NamedTuple):
    """A range of replicates that are computed together, from `start` up to but excluding `stop`."""

    start: int
    stop: int


def cut_blocks(replicates: int, images: int, *, classes: int = 0) -> list[Block]:
    """Return blocks of replicates that fit into memory; results do not depend on the block size.

    A replicate needs a weight per image, and a precision per class and IoU threshold.
    """
    cells = max(images, MOST_THRESHOLDS * classes, 1)
    most = max(1, min(_CELLS // cells, replicates))
    return [Block(start, min(start + most, replicates)) for start in range(0, replicates, most)]


def draw_block(block: Block, images: int, seed: int) -> Weights:
    """Return the multiplicity of each image in each bootstrap replicate: as many images, with replacement."""
    rows = block.stop - block.start
    words = random_words(stream_key(seed, DRAWS), block, images)
    chosen = (words.astype(np.uint64) * np.uint64(images) >> np.uint64(32)).astype(np.int64)
    chosen += images * np.arange(rows)[:, None]
    return np.bincount(chosen.ravel(), minlength=rows * images).reshape(rows, images)


def draw_images(images: int, replicates: int, seed: int) -> Iterator[Weights]:
    """Yield the multiplicities of images, one block of replicates at a time."""
    return (draw_block(block, images, seed) for block in cut_blocks(replicates, images))


def swap_block(block: Block, images: int, seed: int) -> Bools:
    """Return which images are swapped in each permutation, each with probability 0.5."""
    return random_words(stream_key(seed, SWAPS), block, images) < 1 << 31


def resample(evaluation: Evaluation, measures: Sequence[Measure], weights: Weights) -> Resampled:
    """Return all columns of the metrics, each an array with one number per row of weights."""
    numbers: Resampled = {}
    for measure in measures:
        assert measure.resampled is not None
        numbers.update(measure.resampled(evaluation, weights))
    return numbers


def draw_together(
    makers: Sequence[Callable[[Weights], Mapping[Key, Floats]]],
    images: int,
    replicates: int,
    seed: int,
    *,
    classes: int,
    report: Callable[[int], None] = lambda rows: None,
) -> list[dict[Key, Floats]]:
    """Return the numbers of each function on the same bootstrap replicates; none for a single image."""
    parts: list[list[Mapping[Key, Floats]]] = [[] for _ in makers]
    for block in cut_blocks(replicates, images, classes=classes) if images > 1 else ():
        weights = draw_block(block, images, seed)
        for make, own in zip(makers, parts, strict=True):
            own.append(make(weights))
        report(block.stop - block.start)
    return [stack_numbers(own) for own in parts]


def stack_numbers(parts: Sequence[Mapping[Key, Floats]]) -> dict[Key, Floats]:
    """Return the numbers of all replicates, joined from blocks."""
    return {key: np.concatenate([part[key] for part in parts]) for key in (parts[0] if parts else ())}


def choose_measures(
    results: Sequence[Evaluation], names: str | Collection[str] | None
) -> tuple[tuple[Measure, ...], tuple[Note, ...]]:
    """Return the requested metrics (default: all that every result holds), and a note on others.

    Metrics that cannot be resampled are excluded unless they are requested by name, which raises `InputError`.
    """
    if names is None:
        held = [measure for measure in all_measures() if all(measure.name in result.measures for result in results)]
        lacking = [measure.name for measure in held if measure.resampled is None]
        notes = (Note("not-resampled", len(lacking), names=", ".join(lacking)),) if lacking else ()
        return tuple(measure for measure in held if measure.resampled is not None), notes
    wanted = measures_called(named_measures(names))
    if isinstance(names, str) and names.strip().lower() == "all":
        masks = all(result.has_overlaps for result in results)
        wanted = tuple(m for m in wanted if m.resampled is not None and (masks or "masks" not in m.needs))
    for measure in wanted:
        if measure.resampled is None:
            raise InputError(f"{measure.name} cannot be resampled", remedy="remove it from measures")
        for result in results:
            _check_held(measure, result)
    return wanted, ()


def _check_held(measure: Measure, result: Evaluation) -> None:
    """Raise if a result does not hold what a metric needs."""
    file = result.inputs[-1] if result.inputs else None
    if "pairs" in measure.needs and not result.has_pairs:
        problem = f"{measure.name} needs matches by pixels, which were not computed"
        raise InputError(problem, file=file, remedy="evaluate again with {option:measures=all}")
    if "masks" in measure.needs and not result.has_overlaps:
        problem = f"{measure.name} needs overlaps of masks, which were not computed"
        raise InputError(problem, file=file, remedy=f"evaluate again with {{option:measures={measure.name}}}")
    if "labels" in measure.needs and result.detections.label_probs is None:
        problem = f"{measure.name} needs label probabilities, which were not kept"
        raise InputError(problem, file=file, remedy="evaluate again with {option:measures=all}")


def check_numbers(replicates: int, seed: int, level: float) -> None:
    """Raise for invalid settings of the bootstrap."""
    for name, value, least in (("replicates", replicates, 2), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise InputError(f"expected {name} to be a whole number of at least {least}, got {value!r:.40}")
    if isinstance(level, bool) or not isinstance(level, int | float | np.number) or not 0 < level < 1:
        raise InputError(f"expected level to be between 0 and 1, got {level!r:.40}", remedy="write 0.95 for 95%")


FEW_IMAGES = 30
"""Number of images below which intervals tend to be too narrow, with a note."""

_NORMAL = NormalDist()


@dataclasses.dataclass(frozen=True)
class Interval:
    """A number with its confidence interval.

    Parameters
    ----------
    value : float
        The number on all images.
    low, high : float
        Limits of the confidence interval; NaN if there is none, as for infinite numbers.
    error : float
        Standard error: the standard deviation over replicates.
    undefined : int
        Number of replicates without a finite value, for example without true positives; they are excluded.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    error: float = math.nan
    undefined: int = 0

    def to_dict(self) -> dict[str, float]:
        """Return a dictionary for JSON."""
        return {"value": self.value, "low": self.low, "high": self.high, "error": self.error}


@dataclasses.dataclass(frozen=True, eq=False)
class Intervals(Mapping[str, Interval]):
    """Confidence intervals of an evaluation's summary by column: ``intervals["PDQ"].low``.

    Parameters
    ----------
    columns : dict of str to Interval
        Intervals by column key.
    images : int
        Number of images.
    level : float
        Confidence level.
    replicates, seed : int
        Number of bootstrap replicates, and random seed.
    notes : tuple of Note
        Excluded replicates and too small samples.
    """

    columns: dict[str, Interval]
    images: int
    level: float
    replicates: int
    seed: int
    notes: tuple[Note, ...] = ()

    def __getitem__(self, key: str) -> Interval:
        return self.columns[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __repr__(self) -> str:
        return f"Intervals({', '.join(self.columns)}; {100 * self.level:g}%, {self.images:,} images)"

    def limits(self) -> dict[str, tuple[float, float]]:
        """Return low and high of each column, as `format_table` takes them."""
        return {key: (interval.low, interval.high) for key, interval in self.columns.items()}

    def to_dict(self) -> dict[str, object]:
        """Return a dictionary for JSON."""
        return {
            "level": self.level,
            "replicates": self.replicates,
            "seed": self.seed,
            "columns": {key: interval.to_dict() for key, interval in self.columns.items()},
        }


def bootstrap(
    evaluation: Evaluation,
    measures: str | Collection[str] | None = None,
    *,
    replicates: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Intervals:
    """Return a confidence interval for each number of an evaluation, by the bootstrap over images.

    Each replicate draws as many images as there are, with replacement. Matches are made per image, so the numbers equal
    an evaluation of the drawn images. ``docs/comparing.md`` defines the intervals.

    Parameters
    ----------
    evaluation : Evaluation
        Result to resample.
    measures : collection of str, or str, optional
        Metric names, also as one comma-separated text, or ``"all"``. Default: those that the evaluation holds.
    replicates : int
        Number of replicates.
    seed : int
        Random seed; the same seed gives the same intervals, for any number of threads.
    level : float
        Confidence level, between 0 and 1.

    Returns
    -------
    Intervals
        Intervals by column, and notes.

    Examples
    --------
    >>> import probox
    >>> from probox.demo import make_demo
    >>> demo = make_demo()
    >>> result = probox.evaluate(demo.truth, demo.detectors["probabilistic"])
    >>> pdq = result.intervals()["PDQ"]
    >>> pdq.low < result.pdq < pdq.high
    True
    """
    check_numbers(replicates, seed, level)
    wanted, notes = choose_measures([evaluation], measures)
    values: dict[str, float] = {}
    for measure in wanted:
        values.update(evaluation.summary_of(measure))
    images, classes, units = len(evaluation.dataset), len(evaluation.classes), list_units(wanted)
    draw = partial(resample, evaluation, wanted)
    (drawn,) = draw_together([draw], images, replicates, seed, classes=classes)
    columns = {
        key: compute_interval(value, drawn.get(key, np.zeros(0)), images, level, units[key])
        for key, value in values.items()
    }
    notes = (*notes, *note_few_images(images), *note_undefined(columns, replicates))
    return Intervals(columns, images, level, replicates, seed, notes)


def list_units(measures: Sequence[Measure]) -> dict[str, Unit]:
    """Return the unit of each column of the metrics."""
    return {column.key: column.unit for measure in measures for column in measure.columns}


def compute_interval(value: float, replicates: Floats, images: int, level: float, unit: Unit = "plain") -> Interval:
    """Return the bootstrap interval of a value from its replicates.

    The percentile interval is widened to Student's t for the number of images (Hesterberg, 2015) and centred on the
    value. Its limits are the value plus quantiles of the replicates' deviations from their mean, at Phi(-+ t), where t
    is Student's quantile times sqrt(n / (n - 1)) for n images. The mean of the replicates is not used, because mAP and
    moLRP of replicates are biased upwards for classes with few images: a replicate repeats images, and repeated images
    are easier than new ones. Fractions are clipped to [0, 1] and counts at 0, unless a replicate exceeds them.
    """
    defined = replicates[np.isfinite(replicates)]
    undefined = len(replicates) - len(defined)
    if images < 2 or len(defined) < 2 or not math.isfinite(value):
        return Interval(value, undefined=undefined)
    reach = _student_quantile(_NORMAL.inv_cdf(0.5 + level / 2), images - 1) * math.sqrt(images / (images - 1))
    ends = value + np.quantile(defined - defined.mean(), [_NORMAL.cdf(-reach), _NORMAL.cdf(reach)])
    least = min(float(defined.min()), value, 0.0) if unit != "plain" else -math.inf
    most = max(float(defined.max()), value, 1.0) if unit == "per cent" else math.inf
    low, high = max(float(ends[0]), least), min(float(ends[1]), most)
    return Interval(value, low, high, float(defined.std(ddof=1)), undefined)


def _student_quantile(z: float, degrees: int) -> float:
    """Return Student's quantile for the normal quantile z, by the Cornish-Fisher expansion."""
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum(term / float(degrees) ** power for power, term in enumerate(terms, 1))


def note_few_images(images: int) -> tuple[Note, ...]:
    """Return a note if there are few images."""
    if images < 2:
        return (Note("too-few-images-for-intervals", images),)
    if images < FEW_IMAGES:
        return (Note("few-images", images, least=FEW_IMAGES),)
    return ()


def note_undefined(columns: Mapping[str, Interval], replicates: int) -> tuple[Note, ...]:
    """Return notes on columns that are infinite, or undefined in some replicates."""
    infinite = [key for key, interval in columns.items() if math.isinf(interval.value)]
    by_count: dict[int, list[str]] = {}
    for key, interval in columns.items():
        if interval.undefined and math.isfinite(interval.value):
            by_count.setdefault(interval.undefined, []).append(key)
    notes = [Note("infinite-columns", len(infinite), names=", ".join(infinite))] if infinite else []
    notes += [
        Note("undefined-replicates", count, names=", ".join(keys), total=replicates) for count, keys in by_count.items()
    ]
    return tuple(notes)
