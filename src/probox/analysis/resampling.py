"""Bootstrap intervals over images, and the random numbers that they and permutation tests are made of.

Whole images are drawn, since what is in one image belongs together: its objects share light, distance and clutter, and
a detection that is missing there is often one of several. Objects drawn one by one would pretend to be independent.
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

from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox.measures.boxes.matching import IOU_THRESHOLDS
from probox.measures.measure import Measure, Resampled, Unit, Weights
from probox.measures.registry import all_measures, measures_called, named_measures
from probox.notes import Note
from probox.support.types import Bools, Floats, Ints

Key = TypeVar("Key", bound=Hashable)

_CELLS = 4_000_000  # weights at a time

_GOLDEN = np.uint32(0x9E3779B9)  # keeps 0 from being mixed into 0

DRAWS, SWAPS = 0, 1
"""Streams of random words: draws and swaps of one seed are independent."""


def _mix(words: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Return words whose every bit depends on all bits of the given ones: a bijection (lowbias32, C. Wellons)."""
    words = words ^ (words >> np.uint32(16))
    words *= np.uint32(0x7FEB352D)
    words ^= words >> np.uint32(15)
    words *= np.uint32(0x846CA68B)
    words ^= words >> np.uint32(16)
    return words


def stream_key(seed: int, stream: int) -> int:
    """Return the number that a stream of random words starts from; seeds may have any number of bits."""
    key, seed = np.array([stream], np.uint32), int(seed)
    for shift in range(0, max(seed.bit_length(), 1), 32):
        key = _mix(key ^ _mix(np.array([seed >> shift & 0xFFFFFFFF], np.uint32) + _GOLDEN))
    return int(key[0])


def random_words(key: int, block: Block, images: int) -> npt.NDArray[np.uint32]:
    """Return a random word per replicate and image; it follows from the key and these two numbers alone.

    The page has the same function: no generator has a state, so any process can make any replicate.
    """
    replicates = _mix(np.uint32(key) ^ _mix(np.arange(block.start, block.stop, dtype=np.uint32) + _GOLDEN))
    return _mix(replicates[:, None] ^ _mix(np.arange(images, dtype=np.uint32) + _GOLDEN))


def assign_folds(images: int, folds: int, seed: int) -> Ints:
    """Return the fold of each image by a seeded shuffle; rows ascend by id, so the order in files has no effect."""
    fold = np.empty(images, np.int64)
    fold[np.random.default_rng(seed).permutation(images)] = np.arange(images) % folds
    return fold


class Block(NamedTuple):
    """Some replicates that are drawn together: from `start` on, up to `stop`."""

    start: int
    stop: int


def cut_blocks(replicates: int, images: int, *, classes: int = 0) -> list[Block]:
    """Return blocks of replicates, each few enough for memory.

    A replicate takes a weight of each image, and a precision of each class and IoU threshold. No number depends on how
    replicates are cut into blocks.
    """
    cells = max(images, len(IOU_THRESHOLDS) * classes, 1)
    most = max(1, min(_CELLS // cells, replicates))
    return [Block(start, min(start + most, replicates)) for start in range(0, replicates, most)]


def draw_block(block: Block, images: int, seed: int) -> Weights:
    """Return how often each image is drawn in each replicate when as many are drawn, with replacement."""
    rows = block.stop - block.start
    words = random_words(stream_key(seed, DRAWS), block, images)
    chosen = (words.astype(np.uint64) * np.uint64(images) >> np.uint64(32)).astype(np.int64)
    chosen += images * np.arange(rows)[:, None]
    return np.bincount(chosen.ravel(), minlength=rows * images).reshape(rows, images)


def draw_images(images: int, replicates: int, seed: int) -> Iterator[Weights]:
    """Yield how often each image is drawn in each replicate: some replicates at a time."""
    return (draw_block(block, images, seed) for block in cut_blocks(replicates, images))


def swap_block(block: Block, images: int, seed: int) -> Bools:
    """Return which images change sides in each replicate, each with probability one half."""
    return random_words(stream_key(seed, SWAPS), block, images) < 1 << 31


def resample(evaluation: Evaluation, measures: Sequence[Measure], weights: Weights) -> Resampled:
    """Return the numbers of all columns of the measures, each an array with one number per row of weights."""
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
    """Return what each maker makes of the same images, drawn anew in each replicate; nothing of a single image."""
    parts: list[list[Mapping[Key, Floats]]] = [[] for _ in makers]
    for block in cut_blocks(replicates, images, classes=classes) if images > 1 else ():
        weights = draw_block(block, images, seed)
        for make, own in zip(makers, parts, strict=True):
            own.append(make(weights))
        report(block.stop - block.start)
    return [stack_numbers(own) for own in parts]


def stack_numbers(parts: Sequence[Mapping[Key, Floats]]) -> dict[Key, Floats]:
    """Return the numbers of all replicates from those of some at a time."""
    return {key: np.concatenate([part[key] for part in parts]) for key in (parts[0] if parts else ())}


def choose_measures(
    results: Sequence[Evaluation], names: str | Collection[str] | None
) -> tuple[tuple[Measure, ...], tuple[Note, ...]]:
    """Return the measures that are asked for (default: all that every result holds), and notes on others.

    Measures that cannot be resampled are left out where nobody named them.
    """
    if names is None:
        held = [measure for measure in all_measures() if all(measure.name in result.measures for result in results)]
        lacking = [measure.name for measure in held if measure.resampled is None]
        notes = (Note("not-resampled", len(lacking), names=", ".join(lacking)),) if lacking else ()
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
    file = result.inputs[-1] if result.inputs else None
    if "pairs" in measure.needs and not result.has_pairs:
        problem = f"{measure.name} needs matches by pixels, which were not made"
        raise InputError(problem, file=file, remedy=f"evaluate with {measure.name} among the measures")
    if "labels" in measure.needs and result.detections.label_probs is None:
        problem = f"{measure.name} needs the probabilities of all classes, which this result does not hold"
        raise InputError(problem, file=file, remedy="evaluate the detections again")


def check_numbers(replicates: int, seed: int, level: float) -> None:
    """Raise if one of them cannot be used."""
    for name, value, least in (("replicates", replicates, 2), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise InputError(f"expected {name} to be a whole number of at least {least}, got {value!r:.40}")
    if isinstance(level, bool) or not isinstance(level, int | float | np.number) or not 0 < level < 1:
        raise InputError(f"expected level to be between 0 and 1, got {level!r:.40}", remedy="write 0.95 for 95 %")


FEW_IMAGES = 30
"""Of fewer images intervals are too narrow, and say so."""

_NORMAL = NormalDist()


@dataclasses.dataclass(frozen=True)
class Interval:
    """A number and how sure it is.

    Parameters
    ----------
    value : float
        The number itself.
    low, high : float
        The interval; NaN where there is none, as around a number that is infinite.
    error : float
        The standard error: the standard deviation over replicates.
    undefined : int
        In how many replicates there was no finite number, say no true positive to average over. They are left out.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    error: float = math.nan
    undefined: int = 0

    def to_dict(self) -> dict[str, float]:
        """Return it for JSON."""
        return {"value": self.value, "low": self.low, "high": self.high, "error": self.error}


@dataclasses.dataclass(frozen=True, eq=False)
class Intervals(Mapping[str, Interval]):
    """The interval of each column of an evaluation's summary: ``intervals["PDQ"].low``.

    Parameters
    ----------
    columns : dict of str to Interval
        By the keys of the columns.
    images : int
        How many images there are.
    level : float
        The share of such intervals that hold what more images of the same kind would give.
    replicates, seed : int
        How often images were drawn, and from which seed.
    notes : tuple of str
        What was left out or is too little, one sentence each.
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
        return f"Intervals({', '.join(self.columns)}; {100 * self.level:g} %, {self.images:,} images)"

    def limits(self) -> dict[str, tuple[float, float]]:
        """Return low and high of each column, as tables want them."""
        return {key: (interval.low, interval.high) for key, interval in self.columns.items()}

    def to_dict(self) -> dict[str, object]:
        """Return them for JSON."""
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
    """Return an interval for each number of an evaluation, by drawing its images anew.

    A replicate draws as many images as there are, with replacement, and is measured as if it were the data set; nothing
    is matched again, and the number is exactly what evaluating those images would give. ``docs/comparing.md`` says how
    intervals follow from the replicates.

    Parameters
    ----------
    evaluation : Evaluation
        What was measured.
    measures : collection of str, or str, optional
        Names, also in one text between commas, or ``"all"``. Default: those that the evaluation holds.
    replicates : int
        How often images are drawn.
    seed : int
        The same seed gives the same intervals, for any number of threads.
    level : float
        Between 0 and 1.

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
    """Return the unit of each column of the measures."""
    return {column.key: column.unit for measure in measures for column in measure.columns}


def compute_interval(value: float, replicates: Floats, images: int, level: float, unit: Unit = "plain") -> Interval:
    """Return the interval that follows from the numbers of the replicates.

    It is the percentile interval, made as wide as Student's is for so many images (Hesterberg, 2015), around the value:
    low and high are the value plus the quantiles of the replicates' distances from their mean, at Phi(-+ t), where t is
    Student's quantile times sqrt(n / (n - 1)) for n images. The mean of the replicates itself is not used: that of mAP
    and moLRP lies above the value where classes have few images, since a replicate repeats images, and repeated images
    are easier than new ones. Shares end at 0 and 1, and counts at 0, unless numbers themselves are beyond.
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
    """Return the quantile of Student's distribution where the normal one has z, by Fisher's and Cornish's expansion."""
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum(term / float(degrees) ** power for power, term in enumerate(terms, 1))


def note_few_images(images: int) -> tuple[Note, ...]:
    """Return a note if there are too few images."""
    if images < 2:
        return (Note("too-few-images-for-intervals", images),)
    if images < FEW_IMAGES:
        return (Note("few-images", images, least=FEW_IMAGES),)
    return ()


def note_undefined(columns: Mapping[str, Interval], replicates: int) -> tuple[Note, ...]:
    """Return notes on which columns have no number in how many replicates, and which are infinite."""
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
