"""What became of boxes under COCO's matching, for the page to measure mAP and LRP at any label threshold."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.analysis.box_sweep import BoxRematches, score_order
from probox.evaluation.result import Evaluation
from probox.explorer.packing import packed
from probox.measures.boxes.mean_ap import MEAN_AP
from probox.measures.boxes.optimal_lrp import GRID, OPTIMAL_LRP

__all__ = ["FOLLOWING", "box_payload"]

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
        "order": packed(order, "u4"),
        "starts": packed(starts, "u4"),
        "cuts": packed(np.array(cuts).reshape(-1), "u4"),
        "late": packed(place[(table.labels >= 0) & ~takes_part], "u4"),
        "objects": packed(matches.objects_per_class().reshape(-1), "u4"),
        **_outcomes(outcome, place),
        "events": {"threshold": packed(rematches.threshold, "f4"), **_outcomes(rematches, place)},
    }


def _outcomes(outcomes: BoxRematches, place: npt.NDArray[np.int64]) -> dict[str, list[str]]:
    right = (outcomes.matched & ~outcomes.ignored & 1) == 1
    return {
        "place": packed(place[outcomes.detection], "u4"),
        "matched": packed(outcomes.matched.reshape(-1), "u2"),
        "ignored": packed(outcomes.ignored.reshape(-1), "u2"),
        "iou": packed(outcomes.ious[right], "f8"),
    }
