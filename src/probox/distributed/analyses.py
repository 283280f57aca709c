"""Intervals, comparisons, diagnoses and calibrations over a Dask cluster, to the bit those of one process."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from probox.analysis import comparison, diagnosis, intervals
from probox.distributed.mapper import ClusterMapper
from probox.evaluation.result import Evaluation
from probox.files.reading import Paths
from probox.formats.yolo.order import fitting
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

if TYPE_CHECKING:
    from distributed import Client

    from probox.analysis.comparison import Comparison
    from probox.analysis.control import Fitted
    from probox.analysis.diagnosis import Diagnosis
    from probox.analysis.intervals import Intervals

__all__ = ["bootstrap", "calibrate", "compare", "diagnose"]


def bootstrap(
    evaluation: Evaluation,
    measures: str | Collection[str] | None = None,
    *,
    client: Client | None = None,
    **choices: Any,
) -> Intervals:
    """Return an interval for each number of an evaluation; replicates are shared among the workers.

    Parameters
    ----------
    evaluation : Evaluation
        What was measured: it is sent to the cluster once.
    measures
        As for `probox.bootstrap`.
    client : Client, optional
        The cluster, see `probox.distributed.open_client`. Default: the client that the program has opened.
    **choices
        ``replicates``, ``seed`` and ``level``, as for `probox.bootstrap`.
    """
    return intervals.bootstrap(evaluation, measures, mapper=ClusterMapper(client), **choices)


def compare(
    results: Mapping[str, Evaluation],
    measures: str | Collection[str] | None = None,
    *,
    client: Client | None = None,
    **choices: Any,
) -> Comparison:
    """Say what may be concluded from results of the same truth; draws and swaps are shared among the workers.

    Parameters
    ----------
    results : mapping of str to Evaluation
        Two or more by name: they are sent to the cluster once.
    measures
        As for `probox.compare`.
    client : Client, optional
        The cluster, see `probox.distributed.open_client`. Default: the client that the program has opened.
    **choices
        ``per_class``, ``all_pairs``, ``replicates`` and so on, as for `probox.compare`.
    """
    return comparison.compare(results, measures, mapper=ClusterMapper(client), **choices)


def diagnose(evaluation: Evaluation, *, client: Client | None = None, **choices: Any) -> Diagnosis:
    """Say why an evaluation has the numbers it has; its searches, rules and repairs are shared among the workers.

    Parameters
    ----------
    evaluation : Evaluation
        What was measured: it is sent to the cluster once.
    client : Client, optional
        The cluster, see `probox.distributed.open_client`. Default: the client that the program has opened.
    **choices
        ``thresholds_for``, ``replicates`` and so on, as for `Evaluation.diagnose`; ``threads`` are those of one piece,
        by default one.
    """
    return diagnosis.diagnose(evaluation, mapper=ClusterMapper(client), **choices)


def calibrate(
    truth: GroundTruth | Paths, found: Detections | Paths, *, client: Client | None = None, **choices: Any
) -> Fitted:
    """Fit a calibration, cross-validated by image; fits and what they are worth are shared among the workers.

    Parameters
    ----------
    truth, found
        As for `probox.calibration.fit`; files are read here.
    client : Client, optional
        The cluster, see `probox.distributed.open_client`. Default: the client that the program has opened.
    **choices
        ``method``, ``labels``, ``folds`` and so on, as for `probox.calibration.fit`; ``threads`` are those of one
        piece, by default one.
    """
    return fitting.fit(truth, found, mapper=ClusterMapper(client), **choices)
