"""The registry of metrics. A new metric is a module that defines a `Measure`, and a line here.

Evaluations, tables, the command line, stored results, the explorer and the experiments read it. Other distributions add
metrics through the entry-point group `probox.measures`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from pkgutil import resolve_name
from typing import Any

from probox.errors import InputError
from probox.measures.boxes.mean_ap import MASK_MEAN_AP, MEAN_AP
from probox.measures.boxes.optimal_lrp import MASK_OPTIMAL_LRP, OPTIMAL_LRP
from probox.measures.measure import Column, Measure
from probox.measures.pdq.pdq_measure import PDQ
from probox.support.formatting import nearest_word
from probox.support.plugins import load_plugins

__all__ = [
    "COCO_REMEDY",
    "MEASURES",
    "all_measures",
    "asks_for_all",
    "in_table_order",
    "measure_names",
    "measures_called",
    "named_measures",
    "need_labels",
    "need_masks",
    "need_pairs",
    "standard_columns",
    "standard_names",
    "table_columns",
    "without_masks",
]


class LazyMeasure:
    """A metric that is not computed by default, and imported when more than its name is needed."""

    standard = leads = False

    def __init__(self, name: str, module: str) -> None:
        self.name = name
        self._target = f"probox.measures.{module}:{name.upper().replace('-', '_')}"

    def load(self) -> Measure:
        """Return the metric itself."""
        measure: Measure = resolve_name(self._target)
        return measure

    def __getattr__(self, name: str) -> Any:
        return getattr(self.load(), name)


def _of_module(module: str, *names: str) -> tuple[LazyMeasure, ...]:
    return tuple(LazyMeasure(name, module) for name in names)


_PAIRS, _DETECTIONS = "scoring.pair_measures", "scoring.detection_measures"

MEASURES: tuple[Measure | LazyMeasure, ...] = (
    PDQ,
    MEAN_AP,
    OPTIMAL_LRP,
    MASK_MEAN_AP,
    MASK_OPTIMAL_LRP,
    *_of_module(_PAIRS, "nll", "energy", "crps", "nees", "coverage", "pit", "mqce", "ence", "sharpness"),
    *_of_module(_PAIRS, "brier", "ignorance"),
    *_of_module(_DETECTIONS, "d-ece", "laece", "laace", "oce", "qgc", "mue"),
    *_of_module(_PAIRS, "ause", "spearman"),
    *_of_module("pmb_nll", "pmb-nll"),
)
"""Metrics of probox, in the order of summaries; `all_measures` includes those of other distributions."""


_COCO = re.compile(r"m?a[pr]((@|_|-| )?(\.?\d[\d.:-]*|s|m|l|small|medium|large))?")
COCO_REMEDY = 'COCO\'s twelve numbers come with map: write measures="map" and call result.coco()'


def all_measures() -> tuple[Measure, ...]:
    """Return all metrics, those of other distributions last."""
    return tuple(map(_load, _listed()))


def _listed() -> tuple[Measure | LazyMeasure, ...]:
    return (*MEASURES, *_plugin_measures())


def _load(measure: Measure | LazyMeasure) -> Measure:
    return measure.load() if isinstance(measure, LazyMeasure) else measure


@cache
def _plugin_measures() -> tuple[Measure, ...]:
    taken = (name for measure in map(_load, MEASURES) for name in _names_of(measure))
    return load_plugins("probox.measures", Measure, _names_of, taken)


def _names_of(measure: Measure) -> tuple[str, ...]:
    return (measure.name, *(column.key for column in measure.columns))


def measure_names() -> tuple[str, ...]:
    """Return the names of all metrics."""
    return tuple(measure.name for measure in _listed())


def standard_names() -> tuple[str, ...]:
    """Return the names of the metrics that are computed by default."""
    return tuple(measure.name for measure in _listed() if measure.standard)


def named_measures(measures: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return the names of metrics given as a sequence, a comma-separated text, or ``"all"``, without duplicates.

    >>> named_measures("PDQ, nll"), named_measures(["map"]), named_measures(None)
    (('pdq', 'nll'), ('map',), ('pdq', 'map', 'lrp'))
    """
    known = measure_names()
    if measures is None:
        return standard_names()
    if isinstance(measures, str) and measures.strip().lower() == "all":
        return known
    given: Any = measures.split(",") if isinstance(measures, str) else measures
    names = list(given) if isinstance(given, Iterable) else [given]
    for name in names or [given]:
        if not isinstance(name, str) or name.strip().lower() not in known:
            one_word = isinstance(name, str) and name.strip().replace("-", "").isalnum()
            near = nearest_word(name.strip().lower(), known) if one_word else None
            remedy = f"did you mean {near}?" if near else 'write measures="pdq,nll" or measures=["pdq", "nll"]'
            if isinstance(name, str) and _COCO.fullmatch(name.strip().lower()):
                remedy = COCO_REMEDY
            raise InputError(f"expected measures to be some of {', '.join(known)}, got {name!r:.80}", remedy=remedy)
    return tuple(dict.fromkeys(name.strip().lower() for name in names))


def measures_called(names: Collection[str]) -> tuple[Measure, ...]:
    """Return the metrics with these names, in the registry's order."""
    return tuple(_load(measure) for measure in _listed() if measure.name in names)


def need_pairs(names: Collection[str]) -> bool:
    """Return whether one of these metrics needs PDQ matching."""
    return any("pairs" in measure.needs for measure in measures_called(names))


def need_labels(names: Collection[str]) -> bool:
    """Return whether one of these metrics needs the probabilities of all classes."""
    return any("labels" in measure.needs for measure in measures_called(names))


def need_masks(names: Collection[str]) -> bool:
    """Return whether one of these metrics needs IoU of masks."""
    return any("masks" in measure.needs for measure in measures_called(names))


def asks_for_all(names: Collection[str]) -> bool:
    """Return whether all metrics were requested, which leaves out those that the detections do not allow."""
    return set(names) == set(measure_names())


def without_masks(names: Sequence[str], detections: int = 1) -> tuple[str, ...]:
    """Return the metrics of detections without masks; raise if one that needs masks was requested, but not all metrics.

    Metrics of masks are defined if there are no `detections` at all.

    >>> without_masks(["pdq", "map"])
    ('pdq', 'map')
    """
    lacking = [measure.name for measure in measures_called(names) if "masks" in measure.needs]
    if lacking and not asks_for_all(names):
        if not detections:
            return tuple(names)
        verb = "needs" if len(lacking) == 1 else "need"
        raise InputError(
            f"{' and '.join(lacking)} {verb} masks, which the detections do not have",
            remedy="give detections with masks, or leave out these metrics",
        )
    return tuple(name for name in names if name not in lacking)


def in_table_order() -> tuple[Measure, ...]:
    """Return all metrics in the order of tables; mAP and LRP precede PDQ, as mAP does in Table 1 of its paper."""
    return _in_order(all_measures())


def _in_order(measures: Iterable[Measure]) -> tuple[Measure, ...]:
    return tuple(sorted(measures, key=lambda measure: not measure.leads))


def standard_columns() -> frozenset[str]:
    """Return the keys of the columns that tables show by default."""
    return frozenset(column.key for measure in _standard() for column in measure.table_columns)


def _standard() -> tuple[Measure, ...]:
    return measures_called(standard_names())


def table_columns(keys: Collection[str] | None = None) -> tuple[Column, ...]:
    """Return the columns that tables show, in their order: all, or those of a summary with these keys."""
    of_standard = {column.key for measure in _standard() for column in measure.columns}
    few = keys is not None and of_standard.issuperset(keys)  # then the others need not be imported
    measures = _in_order(_standard() if few else all_measures())
    columns = (column for measure in measures for column in measure.table_columns)
    return tuple(column for column in columns if keys is None or column.key in keys)
