"""What every result of an evaluation has, however much of it was kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, cast

import numpy.typing as npt

from probox.measures import registry
from probox.support.mapping import Mapper, here
from probox.support.words import with_count

if TYPE_CHECKING:
    from probox.analysis.intervals import Intervals
    from probox.convention import Convention
    from probox.evaluation.result import Evaluation
    from probox.evaluation.threshold_choice import ThresholdChoice
    from probox.measures.boxes.mean_ap import AveragePrecision
    from probox.measures.measure import Measure
    from probox.tables.dataset import Dataset

__all__ = ["AnyResult"]


class AnyResult(ABC):
    """Numbers of a data set by a convention: an `Evaluation`, or one whose tables were not kept."""

    convention: Convention
    dataset: Dataset
    measures: tuple[str, ...]
    keep: str
    threshold_choice: ThresholdChoice | None = None

    @property
    def classes(self) -> tuple[str, ...]:
        """Return the names of the truth's classes."""
        return self.dataset.classes

    @property
    def has_pairs(self) -> bool:
        """Return whether a measure asked who matches whom by pixels; if none did, nobody is matched with anybody."""
        return registry.need_pairs(self.measures)

    def summary(self) -> dict[str, float]:
        """Return the numbers of the measures that were asked for, by the keys of their columns.

        They are fractions, not per cent, and errors as they are: ``PDQ`` 0.5757, ``moLRP`` 0.4115, which tables show as
        57.57 and, under ``1-moLRP``, 58.85. What there is no number for is NaN.
        """
        summary: dict[str, float] = {}
        for measure in registry.measures_called(self.measures):
            summary.update(self.summary_of(measure))
        return summary

    @property
    @abstractmethod
    def average_precision(self) -> AveragePrecision:
        """Return COCO's average precision and recall."""

    def coco(self) -> dict[str, float]:
        """Return COCO's twelve numbers in the order of pycocotools: AP and AR overall, at overlaps, limits and sizes.

        They are fractions: ``mAP``, ``AP50``, ``AP75``, ``AP_small``, ``AP_medium``, ``AP_large``, ``AR_1``, ``AR_10``,
        ``AR_100``, ``AR_small``, ``AR_medium`` and ``AR_large``. What is not defined is NaN, where pycocotools has -1.
        """
        return self.average_precision.summary()

    @abstractmethod
    def summary_of(self, measure: Measure) -> dict[str, float]:
        """Return the numbers of one measure, also of one that was not asked for."""

    @property
    @abstractmethod
    def counts(self) -> dict[str, int]:
        """Return how many images, objects and detections there are, whatever became of them."""

    @property
    @abstractmethod
    def scored_against(self) -> str | None:
        """Return what PDQ compares detections with: ``"masks"``, or ``"boxes"`` if every mask fills its box.

        None if PDQ was not measured, there are no objects, or an earlier version did not store it.
        """

    @property
    def counts_in_words(self) -> str:
        """Return how many images, objects and detections there are, as people read it."""
        nouns = {"images": "image", "objects": "object", "detections": "detection"}
        return ", ".join(with_count(n, nouns[what]) for what, n in self.counts.items())

    @abstractmethod
    def known_of_objects(self) -> tuple[npt.NDArray[Any], dict[str, npt.NDArray[Any]]]:
        """Return how many objects each image has, and columns with what is known of them, by image."""

    def intervals(
        self,
        measures: str | Collection[str] | None = None,
        *,
        replicates: int = 1000,
        seed: int = 0,
        level: float = 0.95,
        mapper: Mapper = here,
    ) -> Intervals:
        """Return a confidence interval of each number, ``result.intervals()["PDQ"].low``: see `probox.bootstrap`."""
        from probox.analysis.intervals import bootstrap

        return bootstrap(
            cast("Evaluation", self), measures, replicates=replicates, seed=seed, level=level, mapper=mapper
        )
