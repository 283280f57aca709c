"""What a measure is: its columns, and how its numbers follow from an evaluation or from weighted images."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from probox.convention import Convention
from probox.notes import Note
from probox.support.types import Floats, Ints
from probox.tables.dataset import Dataset
from probox.tables.results import DetectionTable, ObjectTable

if TYPE_CHECKING:
    from probox.measures.boxes.matching import BoxMatches
    from probox.measures.boxes.mean_ap import AveragePrecisionResult
    from probox.measures.boxes.optimal_lrp import LRPResult
    from probox.measures.matched import MatchedPairs

__all__ = [
    "Column",
    "Evaluated",
    "Groups",
    "ImageColumns",
    "Judged",
    "Measure",
    "Need",
    "Resampled",
    "Summary",
    "Unit",
    "Weights",
    "groups_by_label",
    "groups_of",
]


_NO_LABEL = -2
"""A label that nothing has: -1 is that of detections that name no class."""

Unit = Literal["per cent", "count", "plain"]
"""How tables write a number: a share in per cent, a whole number, or a number as it is."""

Better = Literal["high", "low"]

Need = Literal["pairs", "boxes", "labels"]
"""What must be known: `pairs`, who matched whom by pixels; `boxes`, who does by the overlap of boxes; `labels`, the
probabilities of all classes."""


class Judged(Protocol):
    """Detections and objects with what became of each."""

    @property
    def convention(self) -> Convention: ...
    @property
    def detections(self) -> DetectionTable: ...
    @property
    def objects(self) -> ObjectTable: ...


class Evaluated(Judged, Protocol):
    """What a measure may read of an `Evaluation`, which lives in a higher room.

    Whatever is costly is made when it is first read, and kept.
    """

    @property
    def classes(self) -> tuple[str, ...]: ...
    @property
    def dataset(self) -> Dataset: ...
    @property
    def box_matches(self) -> BoxMatches: ...
    @property
    def average_precision(self) -> AveragePrecisionResult: ...
    @property
    def lrp(self) -> LRPResult: ...
    @property
    def matched_pairs(self) -> MatchedPairs: ...
    @property
    def object_images(self) -> Ints: ...
    @property
    def image_sums(self) -> dict[str, Floats]: ...


Summary = dict[str, float]
"""A number for each of a measure's columns, by the column's key."""

Groups = dict[str, Summary]
"""A summary for each class or size, by its name."""

ImageColumns = dict[str, npt.NDArray[Any]]
"""A number for each image, by the keys of a measure's columns; also what adds up to them, by names of its own."""


def groups_of(names: Sequence[str], columns: Mapping[str, Floats]) -> Groups:
    """Return a summary for each name from columns with a number for each.

    >>> groups_of(["cup", "dog"], {"AP50": np.array([0.5, 0.25])})
    {'cup': {'AP50': 0.5}, 'dog': {'AP50': 0.25}}
    """
    return {name: {key: float(values[row]) for key, values in columns.items()} for row, name in enumerate(names)}


def groups_by_label(classes: Sequence[str], present: npt.NDArray[Any], summary_of: Callable[[int], Summary]) -> Groups:
    """Return the summary of each class, `summary_of` being called with labels; absent classes have that of no label.

    A file can name thousands of classes that nothing has.
    """
    absent = summary_of(_NO_LABEL)
    labels = set(np.unique(present).tolist())
    return {name: summary_of(label) if label in labels else dict(absent) for label, name in enumerate(classes)}


Weights = npt.NDArray[np.int64]
"""How often each image counts, (R, images): one row per resampling of the images."""

Resampled = dict[str, Floats]
"""The numbers of R resamplings for each of a measure's columns, by the column's key."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Column:
    """One number of a measure, and how it is shown.

    Parameters
    ----------
    key : str
        Its name in `Evaluation.summary` and in JSON.
    heading : str, optional
        What stands over it in tables. Default: it is in no table, in JSON alone.
    unit : {"per cent", "count", "plain"}
        How tables write it.
    better : {"high", "low"}, optional
        Which numbers are better. Default: neither, so that no number is marked as the best.
    complement : bool
        Tables show 1 minus the number, so that an error becomes a quality.
    hint : str
        What the heading means, in a few words.
    symbol : str
        Unit of a plain number, such as ``px``. Default: it has none.
    ideal : float, optional
        The number of a calibrated detector, where neither high nor low numbers are better.
    """

    key: str
    heading: str | None = None
    unit: Unit = "per cent"
    better: Better | None = "high"
    complement: bool = False
    hint: str = ""
    symbol: str = ""
    ideal: float | None = None

    def shown(self, summary: Mapping[str, float]) -> float:
        """Return the number that tables show; NaN if the summary has none."""
        value = float(summary.get(self.key, math.nan))
        return 1.0 - value if self.complement else value

    def shown_limits(self, low: float, high: float) -> tuple[float, float]:
        """Return the ends of an interval of the number as tables show them."""
        return (1.0 - high, 1.0 - low) if self.complement else (low, high)

    @property
    def shown_unit(self) -> str:
        """Return the unit of the numbers that tables show; nothing if they have none."""
        return "%" if self.unit == "per cent" else self.symbol

    @property
    def scale(self) -> int:
        """Return what a number is multiplied by to be shown."""
        return 100 if self.unit == "per cent" else 1

    @property
    def digits(self) -> int:
        """Return how many decimals a number has where no interval says how many are known."""
        return 0 if self.unit == "count" else 2 if self.shown_unit in ("%", "px") else 3

    @property
    def shown_better(self) -> Better | None:
        """Return which of the numbers that tables show are better."""
        if self.better is None or not self.complement:
            return self.better
        return "low" if self.better == "high" else "high"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Measure:
    """A way to measure detections; `probox.measures.registry` has them all.

    Parameters
    ----------
    name : str
        What ``measures=`` and ``--measures`` call it.
    columns : tuple of Column
        What `summary` holds, in this order; the first is the measure's own number.
    summary : callable
        Returns the numbers of an evaluation.
    needs : set of {"pairs", "boxes", "labels"}
        What it reads. Only if a measure needs pairs, pixels are looked at and verdicts are given.
    per_class, per_size : callable, optional
        Return the numbers of each class, and of small, medium and large objects.
    per_image : callable, optional
        Returns the numbers of each image alone: what `summary` would give if there were no other.
    leads : bool
        Its columns stand left of those of measures that do not lead.
    standard : bool
        It is measured where nobody says what to measure.
    resampled : callable, optional
        Returns the numbers that `summary` would give if each image were there as often as a row of weights says; a row
        of ones gives the summary. Intervals and comparisons stand on it.
    resampled_classes : callable, optional
        Returns what `resampled` does, and with it the measure's own number for each class, (R, classes), where one
        pass gives them all. Default: `resampled` of each class's part.
    notes : callable, optional
        Returns what a reader of its numbers must know: what was left out, what is too little.
    """

    name: str
    columns: tuple[Column, ...]
    summary: Callable[[Evaluated], Summary]
    needs: frozenset[Need] = frozenset()
    per_class: Callable[[Evaluated], Groups] | None = None
    per_size: Callable[[Evaluated], Groups] | None = None
    per_image: Callable[[Evaluated], ImageColumns] | None = None
    leads: bool = False
    standard: bool = True
    resampled: Callable[[Evaluated, Weights], Resampled] | None = None
    resampled_classes: Callable[[Evaluated, Weights], tuple[Resampled, Floats]] | None = None
    notes: Callable[[Evaluated], Sequence[Note]] | None = None

    @property
    def headline(self) -> Column:
        """Return the column of the measure's own number."""
        return self.columns[0]

    @property
    def table_columns(self) -> tuple[Column, ...]:
        """Return the columns that tables show."""
        return tuple(column for column in self.columns if column.heading is not None)

    def nothing(self) -> Summary:
        """Return the summary of what was not measured: counts of 0, else NaN."""
        return {column.key: 0 if column.unit == "count" else math.nan for column in self.columns}


def counted_notes(*notes: Note) -> list[Note]:
    """Return the notes whose count is not 0."""
    return [note for note in notes if note.count]


AT_ONCE = 4_000_000
"""Counts of values that are held at a time."""


def weighted_sums(weights: Weights, columns: npt.ArrayLike) -> Floats:
    """Return the sum of each column over images, (K, R), for each row of weights.

    Not a product of matrices: what that gives may depend on the number of threads, and on what other rows there are.

    Parameters
    ----------
    weights : (R, images)
        How often each image counts.
    columns : (K, images)
        What to add up.

    >>> weighted_sums(np.array([[2, 0], [1, 1]]), [[1.0, 10.0]]).tolist()
    [[2.0, 11.0]]
    """
    # In the order of memory images come one after another: sums are over them, whatever rows there are.
    counts, numbers = (np.ascontiguousarray(values, dtype=np.float64) for values in (weights, columns))
    return np.asarray(np.einsum("ri,ki->kr", counts, numbers))


def weighted_quantile(weights: npt.NDArray[np.number], rows: Ints, values: Floats, q: float) -> Floats:
    """Return the quantile of values at probability q, (R,), for each row of weights; NaN where nothing counts.

    It is the least value that at least a fraction q of the values does not exceed, ``numpy.quantile`` with
    ``method="inverted_cdf"``.

    Parameters
    ----------
    weights : (R, images)
        How often each image counts.
    rows : (K,)
        The image of each value.
    values : (K,)
        The values.
    q : float
        Between 0 and 1.

    >>> weighted_quantile(np.array([[2, 0], [1, 1], [0, 0]]), np.array([0, 0, 1]), np.array([3.0, 1, 2]), 0.6).tolist()
    [3.0, 2.0, nan]
    """
    order = np.argsort(values, kind="stable")
    rows, ordered = rows[order], np.append(values[order], np.nan)
    step = max(1, AT_ONCE // max(1, len(rows)))
    found = []
    for start in range(0, len(weights), step):
        counts = np.cumsum(weights[start : start + step][:, rows], axis=1)
        total = counts[:, -1:] if len(rows) else np.zeros((len(counts), 1))
        place = np.where(total[:, 0] > 0, (counts < q * total).sum(axis=1), len(rows))
        found.append(ordered[place])
    return np.concatenate([np.zeros(0), *found])
