"""COCO's matches of boxes at every label threshold.

Detections take objects from the highest score down, so what drops out below leaves the matches above as they are: where
an image's detections of a class drop out in the order of their scores, nothing has to be matched again. They do unless
a threshold asks for something else than the score: it asks for the highest label probability, which may be that of
another class or of background where a detector states its classes. Then a match can drop out before weaker ones, and
another detection gets its object; with more than 100 detections, one that took no part comes in. There an image and
class is matched anew for each of its detections' confidences.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.analysis.states import States, state_sizes, states_above
from probox.evaluation.result import Evaluation
from probox.measures.boxes.matching import AREA_RANGES, IOU_THRESHOLDS, MAX_DETECTIONS
from probox.support.parallel import thread_count

__all__ = ["BoxRematches", "find_box_rematches", "score_order"]

Ints = npt.NDArray[np.int64]

_CHUNK = 500_000
_MOST = 20_000_000  # rows to match anew: about ten seconds


class BoxRematches(NamedTuple):
    """Detections that fare otherwise when others have dropped out, in the order in which it happens.

    From thresholds of at least `threshold` on, `detection` takes part with `matched`, `ignored` and `ious` as in
    `BoxMatches`; until it drops out itself or changes again. `partner` is the row of its match at an overlap of 0.5,
    any size, or -1.
    """

    threshold: npt.NDArray[np.float32]
    detection: Ints
    matched: npt.NDArray[np.uint16]
    ignored: npt.NDArray[np.uint16]
    ious: npt.NDArray[np.float64]
    partner: Ints = np.zeros(0, np.int64)


def score_order(evaluation: Evaluation) -> tuple[Ints, Ints]:
    """Return the rows of all detections of known classes by class, then descending score, and where classes start."""
    table, classes = evaluation.detections, len(evaluation.classes)
    known = np.flatnonzero(table.labels >= 0)
    order, starts = _core.score_order(table.labels[known], table.scores[known], classes, thread_count(None))
    return known[order], starts


def find_box_rematches(evaluation: Evaluation) -> BoxRematches | None:
    """Return every change that raising the label threshold brings about; None if it would take too long to find."""
    doubtful = _doubtful_groups(evaluation)
    confidence = evaluation.detections.confidences[doubtful.row]
    if state_sizes(confidence, doubtful.group) > _MOST:
        return None
    parts = [
        _none(),
        *(_changes(evaluation, doubtful, some) for some in states_above(confidence, doubtful.group, _CHUNK)),
    ]
    order = np.argsort(np.concatenate([part.threshold for part in parts]), kind="stable")
    columns: Any = (np.concatenate(column)[order] for column in zip(*parts, strict=True))
    return BoxRematches(*columns)


def _none() -> BoxRematches:
    bits, sizes = np.zeros((0, len(AREA_RANGES)), np.uint16), np.zeros((0, len(AREA_RANGES)))
    return BoxRematches(np.zeros(0, np.float32), np.zeros(0, np.int64), bits, bits, sizes)


class _Doubtful(NamedTuple):
    """Detections of images and classes whose matches a threshold can change, and their objects."""

    row: Ints
    group: Ints
    """Of each row, counted from 0, ascending; rows ascend within it."""
    objects: Ints
    offsets: Ints
    """Where each group's objects begin."""


def _doubtful_groups(evaluation: Evaluation) -> _Doubtful:
    table, objects, classes = evaluation.detections, evaluation.objects, max(len(evaluation.classes), 1)
    known = np.flatnonzero(table.labels >= 0)
    key = table.image_rows[known] * classes + table.labels[known]
    order = np.lexsort((known, -table.scores[known], key))
    row, key = known[order], key[order]
    begins = np.concatenate([np.ones(min(len(key), 1), bool), key[1:] != key[:-1]])
    group = np.cumsum(begins) - 1
    counts = np.bincount(group)
    # A threshold drops a detection out of turn if one of a lower score is surer. Nobody minds if it has no match:
    # then it takes nothing that others might have, unless it takes one of the 100 places.
    level = np.unique(table.confidences[row], return_inverse=True)[1]
    surest = np.maximum.accumulate((level - group * (len(row) + 1))[::-1])[::-1] + group * (len(row) + 1)
    matches = evaluation.box_matches
    offsets = evaluation.dataset.offsets(table.image_rows)
    minded = np.zeros(len(table), bool)
    minded[(offsets[matches.image_rows] + matches.numbers)[matches.matched.any(axis=1)]] = True
    out_of_turn = (surest > level) & (minded[row] | (counts[group] > MAX_DETECTIONS))
    doubtful = np.zeros(len(counts), bool)
    doubtful[group[out_of_turn]] = True
    kept = doubtful[group]
    number = (np.cumsum(doubtful) - 1)[group[kept]]
    by_row = np.lexsort((row[kept], number))
    object_key = objects.image_rows * classes + objects.labels
    object_order = np.argsort(object_key, kind="stable")
    own = key[begins][doubtful]
    first, last = (np.searchsorted(object_key[object_order], own, side=side) for side in ("left", "right"))
    ends = np.concatenate([[0], np.cumsum(last - first)]).astype(np.int64)
    there = object_order[np.repeat(first - ends[:-1], last - first) + np.arange(ends[-1])]
    return _Doubtful(row[kept][by_row], number, there, ends)


def _changes(evaluation: Evaluation, doubtful: _Doubtful, states: States) -> BoxRematches:
    """Match every state of some groups, each as an image of its own; return what differs from the state before."""
    table, objects = evaluation.detections, evaluation.objects
    row, state = doubtful.row[states.row], states.state
    begins = np.searchsorted(state, np.arange(len(states.step)))
    of_group = doubtful.group[states.row[begins]]
    each = np.diff(doubtful.offsets)[of_group]
    object_offsets = np.concatenate([[0], np.cumsum(each)]).astype(np.int64)
    there = doubtful.objects[np.repeat(doubtful.offsets[of_group] - object_offsets[:-1], each) + np.arange(each.sum())]
    found = _core.match_boxes(
        image_rows=state,
        labels=np.zeros(len(row), np.int32),
        boxes=table.boxes[row],
        extents=table.extents[row],
        scores=table.scores[row],
        object_offsets=object_offsets,
        object_labels=np.zeros(len(there), np.int32),
        object_boxes=objects.boxes[there],
        object_extents=objects.extents[there],
        object_areas=objects.areas[there],
        object_crowd=objects.crowd[there],
        iou_thresholds=IOU_THRESHOLDS,
        area_ranges=AREA_RANGES,
        max_detections=MAX_DETECTIONS,
        threads=thread_count(None),
    )
    of_state = found["image_rows"].astype(np.int64)
    detection = row[begins[of_state] + found["numbers"]]
    span = len(table) + 1
    key = of_state * span + detection
    order = np.argsort(key)
    key, of_state, detection = key[order], of_state[order], detection[order]
    matched, ignored, ious = (found[name][order] for name in ("matched", "ignored", "ious"))
    number = found["matched_objects"][order].astype(np.int64)
    partner = np.full(len(number), -1)
    partner[number >= 0] = there[object_offsets[of_state[number >= 0]] + number[number >= 0]]
    later = np.flatnonzero(~states.first[of_state])
    before = np.minimum(np.searchsorted(key, key[later] - span), len(key) - 1)
    same = (key[before] == key[later] - span) & (matched[before] == matched[later]).all(axis=1)
    same &= (ignored[before] == ignored[later]).all(axis=1) & (partner[before] == partner[later])
    same &= np.where(np.isnan(ious[later]), np.isnan(ious[before]), ious[before] == ious[later]).all(axis=1)
    changed = later[~same]
    columns = (column[changed] for column in (detection, matched, ignored, ious, partner))
    return BoxRematches(states.step[of_state[changed]], *columns)
