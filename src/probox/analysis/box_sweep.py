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
    `BoxMatches`; until it drops out itself or changes again.
    """

    threshold: npt.NDArray[np.float32]
    detection: Ints
    matched: npt.NDArray[np.uint16]
    ignored: npt.NDArray[np.uint16]
    ious: npt.NDArray[np.float64]


def score_order(evaluation: Evaluation) -> tuple[Ints, Ints]:
    """Return the rows of all detections of known classes by class, then descending score, and where classes start."""
    table, classes = evaluation.detections, len(evaluation.classes)
    known = np.flatnonzero(table.labels >= 0)
    order, starts = _core.score_order(table.labels[known], table.scores[known], classes, thread_count(None))
    return known[order], starts


def find_box_rematches(evaluation: Evaluation) -> BoxRematches | None:
    """Return every change that raising the label threshold brings about; None if it would take too long to find."""
    groups = _doubtful_groups(evaluation)
    parts: list[BoxRematches] = [_none()]
    states: list[_States] = []
    rows = waiting = 0
    for group in groups:
        one = _states(evaluation, group)
        rows, waiting = rows + len(one.row), waiting + len(one.row)
        if rows > _MOST:
            return None
        states.append(one)
        if waiting > _CHUNK:
            parts.append(_changes(evaluation, states))
            states, waiting = [], 0
    if states:
        parts.append(_changes(evaluation, states))
    order = np.argsort(np.concatenate([part.threshold for part in parts]), kind="stable")
    columns: Any = (np.concatenate(column)[order] for column in zip(*parts, strict=True))
    return BoxRematches(*columns)


def _none() -> BoxRematches:
    bits, sizes = np.zeros((0, len(AREA_RANGES)), np.uint16), np.zeros((0, len(AREA_RANGES)))
    return BoxRematches(np.zeros(0, np.float32), np.zeros(0, np.int64), bits, bits, sizes)


class _Group(NamedTuple):
    detections: Ints
    objects: Ints


def _doubtful_groups(evaluation: Evaluation) -> list[_Group]:
    """Return the detections and objects of each image and class whose matches a threshold can change."""
    table, objects, classes = evaluation.detections, evaluation.objects, max(len(evaluation.classes), 1)
    known = np.flatnonzero(table.labels >= 0)
    key = table.image_rows[known] * classes + table.labels[known]
    order = np.lexsort((known, -table.scores[known], key))
    row, key = known[order], key[order]
    starts = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]])) if len(key) else np.zeros(0, np.int64)
    ends = np.append(starts[1:], len(key))
    confidence = table.confidences[row]
    rises = np.zeros(len(row) + 1, np.int64)
    if len(row):
        rises[2:] = np.cumsum((confidence[1:] > confidence[:-1]) & (key[1:] == key[:-1]))
    object_key = objects.image_rows * classes + objects.labels
    object_order = np.argsort(object_key, kind="stable")
    first, last = (np.searchsorted(object_key[object_order], key[starts], side=side) for side in ("left", "right"))
    # Where there is nothing to match, all are wrong, however many drop out; unless others may come in.
    doubtful = (rises[ends] > rises[starts]) & ((last > first) | (ends - starts > MAX_DETECTIONS))
    return [
        _Group(np.sort(row[starts[g] : ends[g]]), object_order[first[g] : last[g]]) for g in np.flatnonzero(doubtful)
    ]


class _States(NamedTuple):
    """One group without threshold, and above each of its confidences but the highest: beyond that nothing is left."""

    row: Ints
    state: Ints
    steps: npt.NDArray[np.float32]
    objects: Ints


def _states(evaluation: Evaluation, group: _Group) -> _States:
    confidence = evaluation.detections.confidences[group.detections]
    steps = np.unique(confidence)[:-1]
    kept = np.vstack([np.ones((1, len(confidence)), bool), confidence[None, :] > steps[:, None]])
    state, place = np.nonzero(kept)
    return _States(group.detections[place], state, np.concatenate([np.zeros(1, np.float32), steps]), group.objects)


def _changes(evaluation: Evaluation, groups: list[_States]) -> BoxRematches:
    """Match every state of some groups, each as an image of its own; return what differs from the state before."""
    table, objects = evaluation.detections, evaluation.objects
    counts = [len(one.steps) for one in groups]
    firsts = np.cumsum([0, *counts])
    row = np.concatenate([one.row for one in groups])
    state = np.concatenate([one.state + first for one, first in zip(groups, firsts, strict=False)])
    step = np.concatenate([one.steps for one in groups])
    there = np.concatenate([np.tile(one.objects, count) for one, count in zip(groups, counts, strict=True)])
    each = np.repeat([len(one.objects) for one in groups], counts)
    found = _core.match_boxes(
        image_rows=state,
        labels=np.zeros(len(row), np.int32),
        boxes=table.boxes[row],
        extents=table.extents[row],
        scores=table.scores[row],
        object_offsets=np.concatenate([[0], np.cumsum(each)]).astype(np.int64),
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
    begins = np.searchsorted(state, np.arange(firsts[-1]))
    of_state = found["image_rows"].astype(np.int64)
    detection = row[begins[of_state] + found["numbers"]]
    span = len(table) + 1
    key = of_state * span + detection
    order = np.argsort(key)
    key, of_state, detection = key[order], of_state[order], detection[order]
    matched, ignored, ious = (found[name][order] for name in ("matched", "ignored", "ious"))
    later = np.flatnonzero(~np.isin(of_state, firsts[:-1]))
    before = np.minimum(np.searchsorted(key, key[later] - span), len(key) - 1)
    same = (key[before] == key[later] - span) & (matched[before] == matched[later]).all(axis=1)
    same &= (ignored[before] == ignored[later]).all(axis=1)
    same &= np.where(np.isnan(ious[later]), np.isnan(ious[before]), ious[before] == ious[later]).all(axis=1)
    changed = later[~same]
    return BoxRematches(step[of_state[changed]], detection[changed], matched[changed], ignored[changed], ious[changed])
