"""Pack numbers for the page: columns as bytes, boxes at every threshold, and intervals by the same draws.

The page draws the same images, since it hashes the same numbers: its intervals and tests are those of
`Evaluation.intervals` and `probox.compare`.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from itertools import combinations, pairwise
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.analysis.comparison import check_same_truth
from probox.analysis.resampling import DRAWS, FEW_IMAGES, SWAPS, bootstrap, stream_key
from probox.analysis.threshold_sweep import (
    BoxRematches,
    score_order,
)
from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox.measures.boxes.mean_ap import MEAN_AP
from probox.measures.boxes.optimal_lrp import GRID, OPTIMAL_LRP
from probox.measures.registry import measures_called

_KINDS = {"u1": "u8", "i2": "i16", "u2": "u16", "i4": "i32", "u4": "u32", "f4": "f32", "f8": "f64"}


def to_script_json(value: Any) -> str:
    """Return JSON that is safe inside a script element: no text in it can end the element."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def pack(values: npt.ArrayLike, kind: str) -> list[str]:
    """Return a column as its type's name and its bytes, little end first, in base64."""
    array = np.ascontiguousarray(np.asarray(values), dtype=f"<{kind}")
    return [_KINDS[kind], base64.b64encode(array.tobytes()).decode("ascii")]


def round_number(value: float, digits: int = 12) -> float | None:
    """Return a number for JSON; None where there is none."""
    return round(float(value), digits) if math.isfinite(value) else None


FOLLOWING = (MEAN_AP.name, OPTIMAL_LRP.name)
"""Names of the measures that the page makes from this."""


def box_payload(evaluation: Evaluation, rematches: BoxRematches | None) -> dict[str, Any] | None:
    """Return the columns, or None where neither mAP nor LRP was asked for or they cannot follow a threshold.

    ``order`` has the detections of known classes by class, then descending score; ``starts`` says where classes start,
    ``cuts`` how many of each class have at least the scores of LRP's grid. ``place`` names places in that order whose
    detection has a match at some overlap and for some size, ``matched`` and ``ignored`` say which, as in
    `probox.measures.boxes.matching.BoxMatches`; ``iou`` are the overlaps of those that are right at 0.5, one for
    each size for which they are. All others have no match, and are wrong unless their own area is out of the range; or
    take no part: ``late``. ``events`` are changes from a threshold on, ``objects`` counts those of each class and size.
    """
    if rematches is None or not any(name in evaluation.measures for name in FOLLOWING):
        return None
    matches, table = evaluation.box_matches, evaluation.detections
    order, starts = score_order(evaluation)
    place = np.full(len(table), -1)
    place[order] = np.arange(len(order))
    offsets = evaluation.dataset.offsets(table.image_rows)
    rows = offsets[matches.image_rows] + matches.numbers
    takes_part = np.zeros(len(table), bool)
    takes_part[rows] = True
    found = np.flatnonzero(matches.matched.any(axis=1))
    found = found[np.argsort(place[rows[found]])]
    outcome = BoxRematches(
        np.zeros(0, np.float32), rows[found], matches.matched[found], matches.ignored[found], matches.ious[found]
    )
    # Scores descend within a class: as many are at least s as are not below it.
    scores = table.scores[order]
    cuts = [np.searchsorted(-scores[begin:end], -GRID, side="right") for begin, end in pairwise(starts)]
    return {
        "order": pack(order, "u4"),
        "starts": pack(starts, "u4"),
        "cuts": pack(np.array(cuts).reshape(-1), "u4"),
        "late": pack(place[(table.labels >= 0) & ~takes_part], "u4"),
        "objects": pack(matches.objects_per_class().reshape(-1), "u4"),
        **_pack_outcomes(outcome, place),
        "events": {"threshold": pack(rematches.threshold, "f4"), **_pack_outcomes(rematches, place)},
    }


def _pack_outcomes(outcomes: BoxRematches, place: npt.NDArray[np.int64]) -> dict[str, list[str]]:
    right = (outcomes.matched & ~outcomes.ignored & 1) == 1
    return {
        "place": pack(place[outcomes.detection], "u4"),
        "matched": pack(outcomes.matched.reshape(-1), "u2"),
        "ignored": pack(outcomes.ignored.reshape(-1), "u2"),
        "iou": pack(outcomes.ious[right], "f8"),
    }


LEVEL, REPLICATES, SEED = 0.95, 1000, 0
"""The defaults of `probox.bootstrap` and `probox.compare`."""

MOST_DRAWN = 100_000
"""Detections of a result for which mAP and LRP get intervals: a page is made in seconds."""


def resampling_constants() -> dict[str, Any]:
    """Return the numbers of the page's resampling; streams of random words as their keys."""
    return {
        "LEVEL": LEVEL,
        "REPLICATES": REPLICATES,
        "FEW": FEW_IMAGES,
        "NORMAL": NormalDist().inv_cdf(0.5 + LEVEL / 2),
        "DRAWS": stream_key(SEED, DRAWS),
        "SWAPS": stream_key(SEED, SWAPS),
    }


def find_obstacles(results: Mapping[str, Evaluation]) -> dict[str, str]:
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
