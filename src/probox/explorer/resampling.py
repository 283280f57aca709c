"""What the page needs to resample images as Python does: where the random numbers begin, and who may be compared.

The page draws the same images, since it continues NumPy's generator from the same state: its intervals and tests are
those of `probox.bootstrap` and `probox.compare`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations
from statistics import NormalDist
from typing import Any

import numpy as np

from probox.analysis.intervals import FEW_IMAGES, bootstrap
from probox.analysis.resampling import DRAWS, MORE_SWAPS, SWAPS
from probox.analysis.same_truth import check_same_truth
from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox.explorer.boxes import FOLLOWING
from probox.measures.registry import measures_called

__all__ = ["box_intervals", "obstacles", "resampling_constants"]

LEVEL, REPLICATES, SEED = 0.95, 1000, 0
"""The defaults of `probox.bootstrap` and `probox.compare`."""

MOST_DRAWN = 100_000
"""Detections of a result for which mAP and LRP get intervals: a page is made in seconds."""


def resampling_constants() -> dict[str, Any]:
    """Return the numbers of the page's resampling; generators as state and increment, 32 hexadecimal digits each."""
    return {
        "LEVEL": LEVEL,
        "REPLICATES": REPLICATES,
        "FEW": FEW_IMAGES,
        "NORMAL": NormalDist().inv_cdf(0.5 + LEVEL / 2),
        "DRAWS": _generator(DRAWS),
        "SWAPS": _generator(SWAPS),
        "MORE": _generator(MORE_SWAPS),
    }


def _generator(what_for: int) -> list[str]:
    state: Any = np.random.default_rng([SEED, what_for]).bit_generator.state
    assert state["bit_generator"] == "PCG64", state["bit_generator"]
    return [f"{state['state'][name]:032x}" for name in ("state", "inc")]


def obstacles(results: Mapping[str, Evaluation]) -> dict[str, str]:
    """Return why results may not be compared, by the numbers of both, ``"0,2"``; pairs that may are left out."""
    found = {}
    for (a, first), (b, second) in combinations(enumerate(results.items()), 2):
        try:
            check_same_truth(dict([first, second]))
        except InputError as error:
            found[f"{a},{b}"] = str(error)
    return found


def box_intervals(evaluation: Evaluation) -> dict[str, list[float]]:
    """Return low and high of mAP and LRP of all detections, as they are shown; none where that would take long.

    The page cannot draw these anew itself: it would have to go through all detections once a replicate.
    """
    measures = [name for name in FOLLOWING if name in evaluation.measures]
    if len(evaluation.dataset) < 2 or len(evaluation.detections) > MOST_DRAWN or not measures:
        return {}
    found = bootstrap(evaluation, measures, level=LEVEL, replicates=REPLICATES, seed=SEED)
    columns = [column for measure in measures_called(measures) for column in measure.table_columns]
    ends = {column.key: column.shown_limits(found[column.key].low, found[column.key].high) for column in columns}
    return {key: [low, high] for key, (low, high) in ends.items() if math.isfinite(low)}
