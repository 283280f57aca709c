"""Metrics: their columns, and functions that compute their values from an evaluation or from weighted images."""

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
"""A label that no object or detection has; -1 stands for detections without a class."""

Unit = Literal["per cent", "count", "plain"]
"""How tables write a value: a fraction in per cent, a whole number, or the value itself."""

Better = Literal["high", "low"]

Need = Literal["pairs", "boxes", "masks", "labels"]
"""Inputs of a metric: `pairs`, PDQ's matches by pixels; `boxes` and `masks`, COCO's matches by overlap of boxes or of
masks; `labels`, the probabilities of all classes."""


class Judged(Protocol):
    """Detections and objects with their outcomes."""

    @property
    def convention(self) -> Convention: ...
    @property
    def detections(self) -> DetectionTable: ...
    @property
    def objects(self) -> ObjectTable: ...


class Evaluated(Judged, Protocol):
    """The part of `Evaluation`, a class of a higher layer, that metrics may read.

    Costly properties are computed on first access and cached.
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
    def mask_matches(self) -> BoxMatches: ...
    @property
    def mask_average_precision(self) -> AveragePrecisionResult: ...
    @property
    def mask_lrp(self) -> LRPResult: ...
    @property
    def matched_pairs(self) -> MatchedPairs: ...
    @property
    def object_images(self) -> Ints: ...
    @property
    def image_sums(self) -> dict[str, Floats]: ...


Summary = dict[str, float]
"""The value of each column of a metric, by the column's key."""

Groups = dict[str, Summary]
"""The summary of each class or size, by its name."""

ImageColumns = dict[str, npt.NDArray[Any]]
"""Values for each image, by the keys of a metric's columns; also sums from which they follow, by other names."""


def groups_of(names: Sequence[str], columns: Mapping[str, Floats]) -> Groups:
    """Return the summary of each name from columns with one value per name.

    >>> groups_of(["cup", "dog"], {"AP50": np.array([0.5, 0.25])})
    {'cup': {'AP50': 0.5}, 'dog': {'AP50': 0.25}}
    """
    return {name: {key: float(values[row]) for key, values in columns.items()} for row, name in enumerate(names)}


def groups_by_label(classes: Sequence[str], present: npt.NDArray[Any], summary_of: Callable[[int], Summary]) -> Groups:
    """Return the summary of each class by calling `summary_of` with its label.

    All absent classes share one call, because a file can name thousands of them.
    """
    absent = summary_of(_NO_LABEL)
    labels = set(np.unique(present).tolist())
    return {name: summary_of(label) if label in labels else dict(absent) for label, name in enumerate(classes)}


Weights = npt.NDArray[np.int64]
"""Number of times each image counts, (R, images): one row per resampling."""

Resampled = dict[str, Floats]
"""R values, one per resampling, for each column of a metric, by the column's key."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Column:
    """A value of a metric, and its presentation.

    Parameters
    ----------
    key : str
        Its name in `Evaluation.summary` and in JSON.
    heading : str, optional
        Heading in tables. Default: the column appears in JSON only.
    unit : {"per cent", "count", "plain"}
        Format in tables.
    better : {"high", "low"}, optional
        Which values are better. None: no value is marked as best.
    complement : bool
        Tables show 1 minus the value, which turns an error into a quality.
    hint : str
        Short definition, shown beside the value.
    symbol : str
        Unit of a plain value, such as ``px``. Default: no unit.
    optional : bool
        Some results lack the value.
    ideal : float, optional
        Value of a calibrated detector, if neither high nor low values are better.
    """

    key: str
    heading: str | None = None
    unit: Unit = "per cent"
    better: Better | None = "high"
    complement: bool = False
    hint: str = ""
    symbol: str = ""
    optional: bool = False
    ideal: float | None = None

    def shown(self, summary: Mapping[str, float]) -> float:
        """Return the value shown in tables; NaN if the summary lacks it."""
        value = float(summary.get(self.key, math.nan))
        return 1.0 - value if self.complement else value

    def shown_limits(self, low: float, high: float) -> tuple[float, float]:
        """Return the limits of an interval as shown in tables."""
        return (1.0 - high, 1.0 - low) if self.complement else (low, high)

    @property
    def shown_unit(self) -> str:
        """Return the unit shown in tables; an empty string without unit."""
        return "%" if self.unit == "per cent" else self.symbol

    @property
    def scale(self) -> int:
        """Return the factor between values and shown values."""
        return 100 if self.unit == "per cent" else 1

    @property
    def digits(self) -> int:
        """Return the number of decimals of values without an interval, which would determine it."""
        return 0 if self.unit == "count" else 2 if self.shown_unit in ("%", "px") else 3

    @property
    def shown_better(self) -> Better | None:
        """Return which of the shown values are better."""
        if self.better is None or not self.complement:
            return self.better
        return "low" if self.better == "high" else "high"


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Measure:
    """A metric of detections; `probox.measures.registry` lists all.

    Parameters
    ----------
    name : str
        Name in ``measures=`` and ``--measures``.
    columns : tuple of Column
        Columns of `summary`, in this order; the first is the metric's headline value.
    summary : callable
        Returns the values of an evaluation.
    needs : set of {"pairs", "boxes", "masks", "labels"}
        Inputs. PDQ matching is computed only if a metric needs ``"pairs"``, IoU of masks only for ``"masks"``.
    per_class, per_size : callable, optional
        Return the values of each class, and of small, medium and large objects.
    per_image : callable, optional
        Returns the values of each image alone, equal to `summary` of a dataset with only this image.
    leads : bool
        Its columns precede those of other metrics in tables.
    standard : bool
        Whether it is computed by default.
    resampled : callable, optional
        Returns `summary` of resampled images, for rows of weights that give how often each image counts. A row of ones
        gives the summary. Confidence intervals and comparisons require it.
    resampled_classes : callable, optional
        Returns the result of `resampled`, and the headline value of each class, (R, classes), from one pass.
        Default: `resampled` of each class.
    notes : callable, optional
        Returns notes on its values, for example on excluded data or small samples.
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
        """Return the column of the headline value."""
        return self.columns[0]

    @property
    def table_columns(self) -> tuple[Column, ...]:
        """Return the columns shown in tables."""
        return tuple(column for column in self.columns if column.heading is not None)

    def nothing(self) -> Summary:
        """Return the summary of a metric that was not computed: counts are 0, other values NaN."""
        return {column.key: 0 if column.unit == "count" else math.nan for column in self.columns if not column.optional}


def counted_notes(*notes: Note) -> list[Note]:
    """Return the notes whose count is not 0."""
    return [note for note in notes if note.count]


AT_ONCE = 4_000_000
"""Limit of counts of values in memory."""


def weighted_sums(weights: Weights, columns: npt.ArrayLike) -> Floats:
    """Return the sum of each column over images, (K, R), for each row of weights.

    A matrix product is avoided: its rounding may depend on the number of threads and on the other rows.

    Parameters
    ----------
    weights : (R, images)
        Number of times each image counts.
    columns : (K, images)
        Values to add up.

    >>> weighted_sums(np.array([[2, 0], [1, 1]]), [[1.0, 10.0]]).tolist()
    [[2.0, 11.0]]
    """
    # Contiguous images make the order of summation, and so the rounding, independent of the number of rows.
    counts, numbers = (np.ascontiguousarray(values, dtype=np.float64) for values in (weights, columns))
    return np.asarray(np.einsum("ri,ki->kr", counts, numbers))


def weighted_quantile(weights: npt.NDArray[np.number], rows: Ints, values: Floats, q: float) -> Floats:
    """Return the quantile of values at probability q, (R,), for each row of weights; NaN if all weights are 0.

    It is the smallest value that a fraction of at least q does not exceed, as ``numpy.quantile`` with
    ``method="inverted_cdf"``.

    Parameters
    ----------
    weights : (R, images)
        Number of times each image counts.
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
