"""How sure a number is: intervals by the bootstrap over images."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from probox.analysis.resampling import Block, blocks_of, check_numbers, drawn_block, measures_to_resample, resampled
from probox.evaluation.result import Evaluation
from probox.measures.measure import Measure, Resampled, Unit
from probox.measures.registry import measures_called
from probox.support.mapping import Mapper, here

__all__ = [
    "FEW_IMAGES",
    "Interval",
    "Intervals",
    "bootstrap",
    "interval_of",
    "notes_on_images",
    "notes_on_undefined",
    "units_of",
]

Floats = npt.NDArray[np.float64]

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
    notes: tuple[str, ...] = ()

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
    mapper: Mapper = here,
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
    mapper : Mapper
        Who measures blocks of replicates. Default: this process; `probox.distributed` has a cluster do it.

    Examples
    --------
    >>> import probox
    >>> from probox.demo import make_demo
    >>> demo = make_demo()
    >>> result = probox.evaluate(demo.truth, demo.detectors["unsure"])
    >>> pdq = result.intervals()["PDQ"]
    >>> pdq.low < result.pdq < pdq.high
    True
    """
    check_numbers(replicates, seed, level)
    wanted, notes = measures_to_resample([evaluation], measures)
    values: dict[str, float] = {}
    for measure in wanted:
        values.update(evaluation.summary_of(measure))
    images = len(evaluation.dataset)
    drawn: dict[str, list[Floats]] = {key: [] for key in values}
    if images > 1:
        blocks = blocks_of(replicates, images, mapper.at_once, classes=len(evaluation.classes))
        names = tuple(measure.name for measure in wanted)
        for part in mapper(_numbers_of_draws, blocks, evaluation, names, seed):
            for key, numbers in part.items():
                drawn[key].append(numbers)
    units = units_of(wanted)
    columns = {
        key: interval_of(value, np.concatenate([np.zeros(0), *drawn[key]]), images, level, units[key])
        for key, value in values.items()
    }
    return Intervals(
        columns,
        images,
        level,
        replicates,
        seed,
        (*notes, *notes_on_images(images), *notes_on_undefined(columns, replicates)),
    )


def _numbers_of_draws(block: Block, evaluation: Evaluation, measures: tuple[str, ...], seed: int) -> Resampled:
    """Return the numbers of some replicates."""
    return resampled(evaluation, measures_called(measures), drawn_block(block, len(evaluation.dataset), seed))


def units_of(measures: Sequence[Measure]) -> dict[str, Unit]:
    """Return the unit of each column of the measures."""
    return {column.key: column.unit for measure in measures for column in measure.columns}


def interval_of(value: float, replicates: Floats, images: int, level: float, unit: Unit = "plain") -> Interval:
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
    reach = _student(_NORMAL.inv_cdf(0.5 + level / 2), images - 1) * math.sqrt(images / (images - 1))
    ends = value + np.quantile(defined - defined.mean(), [_NORMAL.cdf(-reach), _NORMAL.cdf(reach)])
    least = min(float(defined.min()), value, 0.0) if unit != "plain" else -math.inf
    most = max(float(defined.max()), value, 1.0) if unit == "per cent" else math.inf
    low, high = max(float(ends[0]), least), min(float(ends[1]), most)
    return Interval(value, low, high, float(defined.std(ddof=1)), undefined)


def _student(z: float, degrees: int) -> float:
    """Return the quantile of Student's distribution where the normal one has z, by Fisher's and Cornish's expansion."""
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum(term / float(degrees) ** power for power, term in enumerate(terms, 1))


def notes_on_images(images: int) -> tuple[str, ...]:
    """Return what to say if there are too few images."""
    if images < 2:
        return (f"no intervals: images are drawn anew, and there is {'only one' if images else 'none'}",)
    if images < FEW_IMAGES:
        return (f"{images} images are few: intervals of fewer than {FEW_IMAGES} tend to be too narrow",)
    return ()


def notes_on_undefined(columns: Mapping[str, Interval], replicates: int) -> tuple[str, ...]:
    """Return which columns have no number in how many replicates, and which are infinite."""
    infinite = [key for key, interval in columns.items() if math.isinf(interval.value)]
    by_count: dict[int, list[str]] = {}
    for key, interval in columns.items():
        if interval.undefined and math.isfinite(interval.value):
            by_count.setdefault(interval.undefined, []).append(key)
    return (
        *((f"{', '.join(infinite)}: infinite, so there is no interval",) if infinite else ()),
        *(
            f"{', '.join(keys)}: no number in {count:,} of {replicates:,} replicates, which were left out"
            for count, keys in by_count.items()
        ),
    )
