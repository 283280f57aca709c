"""Metrics from the plain definitions, with or without a mutant."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.mutants.mutant import Mutant, patched, swapped
from probox.convention import Convention
from probox.evaluation.evaluate import evaluate
from probox.measures import boxes as box_measures
from probox.measures.boxes import box_definition as boxes
from probox.measures.boxes.matching import IOU_THRESHOLDS
from probox.measures.boxes.optimal_lrp import GRID
from probox.measures.pdq import definition as pdq
from probox.measures.pdq.kernel import heatmap as kernel_heatmap
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox_experiments import running
from probox_experiments.paper import closed_form
from probox_experiments.synthetic import fingerprint

__all__ = ["Measuring", "box_numbers", "pdq_numbers"]

Numbers = dict[str, float]

MAP_BYTES = 500_000_000
"""Limit of the memory in bytes of detection heatmaps that are cached for the next mutant."""

OF_BOXES = ("map", "lrp")
"""Metrics with a plain definition besides PDQ."""


def pdq_numbers(truth: GroundTruth, found: Detections, convention: Convention) -> Numbers:
    """Return the values of PDQ's summary, by the plain definition."""
    score = pdq.evaluate(truth, found, convention)
    return {
        "PDQ": score.pdq,
        "pPDQ": score.overall,
        "spatial": score.spatial,
        "label": score.label,
        "foreground": score.fg,
        "background": score.bg,
        "TP": score.tp,
        "FP": score.fp,
        "FN": score.fn,
    }


def box_numbers(truth: GroundTruth, found: Detections) -> Numbers:
    """Return mAP, AP50, AP75 and moLRP by the plain definitions; classes without objects are excluded."""
    classes = np.unique(truth.labels[~truth.crowd]).tolist()
    precision = np.full((len(classes), len(IOU_THRESHOLDS)), np.nan)
    errors = []
    for row, label in enumerate(classes):
        for column, threshold in enumerate(IOU_THRESHOLDS.tolist()):
            outcome = boxes.class_outcome(truth, found, label, "all", threshold)
            precision[row, column] = boxes._area_under(outcome)
            if column == 0:
                errors.append(boxes.optimal_lrp(outcome, GRID)[0])
    return {
        "mAP": boxes._mean(precision.ravel().tolist()),
        "AP50": boxes._mean(precision[:, 0].tolist()),
        "AP75": boxes._mean(precision[:, 5].tolist()),
        "moLRP": boxes._mean(errors),
    }


class Measuring:
    """Replaces the metrics of experiments, and caches results that mutants do not change.

    >>> with Measuring().instead():  # doctest: +SKIP
    ...     table = experiments.duplicates(times=[1, 2])
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[Any, ...], Numbers] = {}
        self._maps: dict[tuple[Any, ...], npt.NDArray[Any]] = {}
        self._bytes = 0
        self._mutant: Mutant | None = None
        self._digests: dict[int, str] = {}

    @contextmanager
    def instead(self, mutant: Mutant | None = None) -> Iterator[None]:
        """Replace the metrics by the definitions, or by a mutant, within the block."""
        self._mutant = mutant
        with ExitStack() as stack:
            stack.enter_context(swapped(running, "summary_of", self.summary_of))
            # Expected values must not depend on the mutant: the kernel's map replaces that of the definition.
            stack.enter_context(swapped(closed_form, "heatmap", kernel_heatmap))
            if mutant is None or not mutant.of_space:
                stack.enter_context(swapped(pdq, "detection_heatmap", self._remembered(pdq.detection_heatmap)))
            if mutant is not None:
                stack.enter_context(patched(mutant))
                if mutant.of_boxes:
                    for module in _users_of("average_precision"):
                        stack.enter_context(swapped(module, "average_precision", _AveragePrecision))
            try:
                yield
            finally:
                self._mutant = None

    def summary_of(
        self,
        truth: GroundTruth,
        found: Detections,
        convention: Convention,
        measures: Sequence[str],
        threads: int | None,
    ) -> Numbers:
        """Return the values of metrics, as `probox_experiments.running.summary_of` does."""
        self._digests.clear()  # ids of freed objects may be reused
        of_boxes = self._mutant is not None and self._mutant.of_boxes
        about = (fingerprint(truth), self._digest(found))
        numbers: Numbers = {}
        if "pdq" in measures:
            made = partial(pdq_numbers, truth, found, convention)
            same = self._mutant is None or of_boxes
            numbers |= self._once(("pdq", convention, *about), made) if same else made()
        broken = [name for name in measures if of_boxes and name in OF_BOXES]
        others = tuple(name for name in measures if name != "pdq" and name not in broken)
        if others:
            numbers |= self._once(
                (others, *about), lambda: evaluate(truth, found, measures=others, threads=1).summary()
            )
        if broken:
            numbers |= box_numbers(truth, found)
        return numbers

    def _once(self, key: tuple[Any, ...], make: Callable[[], Numbers]) -> Numbers:
        if key not in self._numbers:
            self._numbers[key] = make()
        return self._numbers[key]

    def _remembered(self, true: Any) -> Any:
        """Return `detection_heatmap` with a cache of limited size."""

        def detection_heatmap(found: Detections, row: int, width: int, height: int, convention: Convention) -> Any:
            key = (self._digest(found), row, width, height, convention)
            if key in self._maps:
                return self._maps[key]
            heatmap = true(found, row, width, height, convention)
            if self._bytes + heatmap.nbytes <= MAP_BYTES:
                self._maps[key] = heatmap
                self._bytes += heatmap.nbytes
                heatmap.flags.writeable = False
            return heatmap

        return detection_heatmap

    def _digest(self, found: Detections) -> str:
        """Return a text that identifies the content of detections."""
        if id(found) not in self._digests:
            digest = hashlib.sha256(repr(found.classes).encode())
            columns = [found.image_ids, found.boxes, found.label_probs, found.extents, found.labels, found.scores]
            for column in [*columns, found.covariances, *(found.heatmaps or ())]:
                digest.update(b"none" if column is None else np.ascontiguousarray(column).tobytes())
            self._digests[id(found)] = digest.hexdigest()
        return self._digests[id(found)]


def _users_of(name: str) -> list[ModuleType]:
    """Return the modules in which experiments may find a function of the box metrics."""
    experiments = [module for key, module in sys.modules.items() if key.startswith("probox_experiments.")]
    true = getattr(box_measures, name)
    return [box_measures, *(module for module in experiments if getattr(module, name, None) is true)]


class _AveragePrecision:
    """Mutated values of `probox.measures.boxes.average_precision`; other attributes come from the original."""

    def __init__(self, truth: GroundTruth, found: Detections, *, threads: int | None = None) -> None:
        from probox.measures.boxes.mean_ap import average_precision

        numbers = box_numbers(truth, found)
        self.map, self.ap50, self.ap75 = numbers["mAP"], numbers["AP50"], numbers["AP75"]
        self._true = average_precision(truth, found, threads=threads)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._true, name)
