"""Matches at every label threshold, by pixels for PDQ and by boxes for mAP and LRP.

**PDQ.** An image keeps the detections with a confidence above the threshold. Its matches only change at the confidences
of its own detections, so an image has at most as many states as detections, and the exact curve over all thresholds
costs one assignment per state. All states of an image are matched in one call. For images with too many detections, the
states are visited one by one, and only those in which a matched detection is removed: without such a removal, optimal
matches stay optimal.

**Boxes.** Detections are matched in descending order of score, so removing the lowest scores leaves the other matches
unchanged. Confidence and score can differ, because the threshold applies to the highest label probability, which may be
that of another class or of background. Then a match can be removed before detections with lower scores, and another
detection gets its object, or a detection beyond the limit of 100 takes its place. Such groups of image and class are
matched again for each confidence.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox.measures.boxes.matching import SIZES, match_levels, not_exhaustive
from probox.measures.pdq.kernel import assign
from probox.support.parallel import thread_count
from probox.support.types import Bools, Floats, Ints
from probox.tables.results import Verdict


class ThresholdStates(NamedTuple):
    """States of groups; the first state of a group has all rows, later ones those with confidence above a step."""

    row: Ints  # (N,), by state, ascending within a state
    state: Ints  # (N,), the state of each row, from 0
    step: npt.NDArray[np.float32]  # (S,), the lowest threshold of a state; 0 for the first of a group
    first: Bools  # (S,), whether a state is the first of its group


def iterate_states(confidence: npt.NDArray[np.float32], group: Ints, limit: int) -> Iterator[ThresholdStates]:
    """Yield the states of all groups in batches of about `limit` rows.

    Rows are sorted by `group`. There is no state above the highest confidence of a group, since no detection is left.

    >>> confidence = np.array([0.5, 0.25, 0.5], np.float32)
    >>> (states,) = iterate_states(confidence, np.array([7, 7, 7]), 100)
    >>> states.row.tolist(), states.state.tolist(), states.step.tolist()
    ([0, 1, 2, 0, 2], [0, 0, 0, 1, 1], [0.0, 0.25])
    """
    if not len(group):
        return
    _, level, base = _levels(confidence, group)
    begins = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    ends = np.append(begins[1:], len(group))
    total = np.concatenate([[0], np.cumsum(level - base + 1)])  # in the order of levels, in which groups are contiguous
    at = 0
    while at < len(begins):
        last = max(int(np.searchsorted(total[ends], total[begins[at]] + limit, side="right")), at + 1)
        yield _make_states(confidence, group, slice(begins[at], ends[last - 1]))
        at = last


def count_states(confidence: npt.NDArray[np.float32], group: Ints) -> int:
    """Return the total number of rows of all states of all groups."""
    if not len(group):
        return 0
    _, level, base = _levels(confidence, group)
    return int((level - base + 1).sum())


def _levels(confidence: npt.NDArray[np.float32], group: Ints) -> tuple[Ints, Ints, Ints]:
    """Return rows sorted by group and confidence, the rank of each distinct pair, and that of its group's first."""
    order = np.lexsort((confidence, group))
    own, level_of = group[order], confidence[order]
    starts = np.concatenate([[True], own[1:] != own[:-1]])
    level = np.cumsum(starts | np.concatenate([[True], level_of[1:] != level_of[:-1]])) - 1
    return order, level, level[starts][np.cumsum(starts) - 1]


def _make_states(confidence: npt.NDArray[np.float32], group: Ints, rows: slice) -> ThresholdStates:
    confidence = confidence[rows]
    order, level, base = _levels(confidence, group[rows])
    # The state of a group's k-th confidence keeps the rows above the previous confidence: those of rank k and above.
    first = np.zeros(level[-1] + 1, bool)
    first[base] = True
    step = np.zeros(len(first), np.float32)
    step[level] = confidence[order]
    step = np.where(first, np.float32(0), np.concatenate([[np.float32(0)], step[:-1]]))
    own, times = np.empty((2, len(confidence)), np.int64)
    own[order], times[order] = base, level - base + 1
    row = np.repeat(np.arange(rows.start, rows.stop), times)
    state = np.repeat(own - (np.cumsum(times) - times), times) + np.arange(len(row))
    by_state = np.argsort(state, kind="stable")
    return ThresholdStates(row[by_state], state[by_state], step, first)


_PAIRS_AT_A_TIME = 2_000_000  # bounds the memory of one call

_MOST_PAIRS = 20_000_000  # pairs in all states of an image that is matched in one call


@dataclasses.dataclass(frozen=True, eq=False)
class Rematches:
    """Changes of matches as the label threshold rises, sorted by threshold.

    For thresholds of at least `threshold`, `detection` is matched by the pair `pair`, a row of the evaluation's pairs,
    or unmatched if that is -1, until it is removed or rematched.
    """

    threshold: npt.NDArray[np.float32]
    detection: Ints
    pair: Ints

    def __len__(self) -> int:
        return len(self.threshold)


def find_rematches(evaluation: Evaluation, confidences: npt.NDArray[np.float32] | None = None) -> Rematches:
    """Return all changes of matches as the label threshold rises.

    Parameters
    ----------
    evaluation : Evaluation
        Result with PDQ's pairs.
    confidences : (N,) float32, optional
        Values to compare with thresholds instead of the detections' confidences, for example ranks in a coarse grid.
        Fewer distinct values need fewer assignments.
    """
    evaluation = evaluation.of_all_detections()
    pairs, table = evaluation.pairs, evaluation.detections
    if not len(pairs):
        return Rematches(np.zeros(0, np.float32), np.zeros(0, np.int64), np.zeros(0, np.int64))
    levels = table.confidences if confidences is None else confidences
    image = table.image_rows[pairs.detections]
    crowded = _is_crowded(levels[pairs.detections], image)
    rows = np.flatnonzero(~crowded[image])
    parts = [
        _find_changes(evaluation, some._replace(row=rows[some.row]), levels)
        for some in iterate_states(levels[pairs.detections[rows]], image[rows], _PAIRS_AT_A_TIME)
    ]
    parts += [
        _find_changes_one_by_one(evaluation, np.flatnonzero(image == one), levels) for one in np.flatnonzero(crowded)
    ]
    threshold, detection, pair = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(threshold, kind="stable")
    return Rematches(
        threshold[order].astype(np.float32), detection[order].astype(np.int64), pair[order].astype(np.int64)
    )


def _is_crowded(levels: npt.NDArray[np.float32], image: Ints) -> Bools:
    """Return which images, numbered as in `image`, have too many pairs over all their states."""
    most = np.bincount(image) ** 2 > _MOST_PAIRS  # no more states than pairs
    for one in np.flatnonzero(most):
        most[one] = count_states(levels[image == one], image[image == one]) > _MOST_PAIRS
    return np.asarray(most)


def _find_changes_one_by_one(
    evaluation: Evaluation, rows: Ints, levels: npt.NDArray[np.float32]
) -> list[npt.NDArray[np.generic]]:
    """Return the changes of one image, skipping states in which no match is removed.

    Among equally good matches it may choose others than `_find_changes`.
    """
    pairs = evaluation.pairs
    confidence = levels[pairs.detections[rows]]
    partner = np.full(len(levels), -1)  # the pair of each detection
    before, step = np.zeros(0, np.int64), np.float32(0)
    found: list[tuple[npt.NDArray[np.float32], Ints, Ints]] = []
    while True:
        matched = rows[assign(np.zeros(len(rows), np.int64), pairs, evaluation.convention.assignment, rows)]
        now = pairs.detections[matched]
        either = np.union1d(before, now)
        earlier = partner[either]
        partner[before] = -1
        partner[now] = matched
        changed = either[(partner[either] != earlier) & (levels[either] > step)] if found else either[:0]
        found.append((np.full(len(changed), step, np.float32), changed, partner[changed]))
        if not len(matched):
            break
        before, step = now, levels[now].min()
        kept = confidence > step
        rows, confidence = rows[kept], confidence[kept]
    return [np.concatenate(column) for column in zip(*found, strict=True)]


def _find_changes(
    evaluation: Evaluation, states: ThresholdStates, levels: npt.NDArray[np.float32]
) -> list[npt.NDArray[np.generic]]:
    """Match every state of some images; return threshold, detection and pair of each change of a kept detection.

    Only the matches of consecutive states are compared, which are few compared with pairs.
    """
    pairs, table = evaluation.pairs, evaluation.detections
    rows, state = states.row, states.state
    matched = assign(state, pairs, evaluation.convention.assignment, rows)
    pair, span = rows[matched], len(table) + 1
    key = state[matched] * span + pairs.detections[pair]
    order = np.argsort(key, kind="stable")
    key, pair = key[order], pair[order]
    # Matches of the previous state carried over, except across images and for removed detections.
    of_next = key // span + 1
    goes_on = of_next < len(states.first)
    goes_on[goes_on] = ~states.first[of_next[goes_on]]
    goes_on[goes_on] = levels[key[goes_on] % span] > states.step[of_next[goes_on]]
    before, earlier = key[goes_on] + span, pair[goes_on]
    new = np.flatnonzero(~states.first[key // span])
    kept, place = _take_changes(key[new], before)
    same = kept.copy()
    same[kept] = earlier[place[kept]] == pair[new[kept]]
    fresh = new[~same]
    lost = np.flatnonzero(~_take_changes(before, key)[0])
    changed = np.concatenate([key[fresh], before[lost]])
    partner = np.concatenate([pair[fresh], np.full(len(lost), -1)])
    order = np.argsort(changed, kind="stable")
    changed, partner = changed[order], partner[order]
    return [states.step[changed // span], changed % span, partner]


def _take_changes(wanted: Ints, known: Ints) -> tuple[Bools, Ints]:
    """Return which keys are among the known ones, which are sorted, and their positions."""
    place = np.searchsorted(known, wanted)
    inside = place < len(known)
    found = inside.copy()
    found[inside] = known[place[inside]] == wanted[inside]
    return found, place


class Histories(NamedTuple):
    """Matches of detections by threshold: the pair `pair`, or -1 for none, for `since` <= threshold < `until`."""

    since: npt.NDArray[np.float32]
    until: npt.NDArray[np.float32]
    detection: Ints
    pair: Ints


def match_histories(evaluation: Evaluation, rematches: Rematches, confidences: npt.NDArray[np.float32]) -> Histories:
    """Return the matches of each detection over all thresholds up to its removal."""
    n = len(evaluation.detections)
    since = np.concatenate([np.full(n, -1, np.float32), rematches.threshold])
    detection = np.concatenate([np.arange(n), rematches.detection])
    pair = np.concatenate([_find_pair_rows(evaluation), rematches.pair])
    order = np.lexsort((np.arange(len(since)), since, detection))
    since, detection, pair = since[order], detection[order], pair[order]
    last = np.concatenate([detection[1:] != detection[:-1], [True]]) if len(detection) else np.zeros(0, bool)
    until = np.where(last, confidences[detection], np.concatenate([since[1:], [0.0]]) if len(since) else since)
    return Histories(since, until, detection, pair)


def threshold_curve(
    evaluation: Evaluation,
    thresholds: npt.ArrayLike,
    rematches: Rematches | None = None,
    images: Bools | None = None,
) -> dict[str, Floats]:
    """Return PDQ, TP, FP and FN at each label threshold, equal to ``evaluation.at_threshold(t).summary()``.

    Parameters
    ----------
    evaluation : Evaluation
        Result to sweep. Below its own label threshold the curve is NaN, because those detections are missing.
    thresholds : array of float
        Ascending thresholds.
    rematches : Rematches, optional
        From `find_rematches`, if already computed.
    images : (images,) bool, optional
        Image rows to use. Default: all.
    """
    evaluation = evaluation.of_all_detections()
    events = find_rematches(evaluation) if rematches is None else rematches
    table, objects, pairs = evaluation.detections, evaluation.objects, evaluation.pairs
    levels = np.asarray(thresholds, dtype=np.float32)
    confidence = np.where(np.isnan(table.confidences), 0, table.confidences).astype(np.float32)
    histories = match_histories(evaluation, events, confidence)
    there = ~objects.ignored
    if images is not None:
        chosen = images[table.image_rows[histories.detection]]
        histories = Histories._make(column[chosen] for column in histories)
        there &= images[objects.image_rows]
    since, until, detection, pair = histories
    quality = np.where(pair >= 0, pairs.quality("pPDQ")[pair] if len(pairs) else 0.0, 0.0)
    ignored = np.where(pair >= 0, objects.ignored[pairs.objects[pair]] if len(pairs) else False, False)
    right = (pair >= 0) & ~ignored
    begin = np.searchsorted(levels, since, side="left")  # first level >= since
    end = np.searchsorted(levels, until, side="left")  # kept while the level is below the confidence
    n = len(levels)

    def along(weights: Floats) -> Floats:
        steps = np.bincount(begin, weights, n + 1) - np.bincount(np.maximum(end, begin), weights, n + 1)
        return np.asarray(np.cumsum(steps)[:n])

    tp = np.rint(along(right.astype(np.float64)))
    fp = np.rint(along((pair < 0).astype(np.float64)))
    cost = fp if not evaluation.convention.confidence_denominator else along(
        np.where(pair < 0, table.costs[detection].astype(np.float64), 0.0)
    )  # fmt: skip
    fn = float(there.sum()) - tp
    with np.errstate(invalid="ignore", divide="ignore"):
        pdq = np.maximum(along(np.where(right, quality, 0.0)), 0.0) / (tp + cost + fn)
    own = evaluation.convention.fixed_threshold
    unknown = np.zeros(n, bool) if own is None else levels < np.float32(own)
    curves = {"PDQ": pdq, "TP": tp, "FP": fp, "FN": fn}
    return {name: np.where(unknown, np.nan, curve) for name, curve in curves.items()}


def _find_pair_rows(evaluation: Evaluation) -> Ints:
    """Return the row of the matched pair of each detection, or -1."""
    if not evaluation.has_pairs:
        raise InputError("PDQ was not measured", remedy="evaluate again with {option:measures=all}")
    pairs, table = evaluation.pairs, evaluation.detections
    rows = np.full(len(table), -1)
    if len(pairs):
        is_match = table.partners[pairs.detections] == pairs.objects
        rows[pairs.detections[is_match]] = np.flatnonzero(is_match)
    assert ((rows >= 0) == np.isin(table.verdicts, (Verdict.TP, Verdict.IGNORED))).all()
    return rows


_ROWS_AT_A_TIME = 500_000  # bounds the memory of one call

_MOST_ROWS = 20_000_000  # rows to match again: about ten seconds


class BoxRematches(NamedTuple):
    """Changes of matches by boxes as the label threshold rises, sorted by threshold.

    For thresholds of at least `threshold`, `detection` has `matched`, `ignored` and `ious` as in `BoxMatches`, until it
    is removed or changes again. `partner` is the row of its match at IoU 0.5 among objects of any size, or -1.
    """

    threshold: npt.NDArray[np.float32]
    detection: Ints
    matched: npt.NDArray[np.uint16]
    ignored: npt.NDArray[np.uint16]
    ious: Floats
    partner: Ints = np.zeros(0, np.int64)


def score_order(evaluation: Evaluation) -> tuple[Ints, Ints]:
    """Return the rows of detections of known classes by class and descending score, and the start of each class."""
    table, classes = evaluation.detections, len(evaluation.classes)
    known = np.flatnonzero(table.labels >= 0)
    order, starts = _core.score_order(table.labels[known], table.scores[known], classes, thread_count(None))
    return known[order], starts


def find_box_rematches(evaluation: Evaluation) -> BoxRematches | None:
    """Return all changes of matches as the label threshold rises; None if the search would take too long."""
    doubtful = _doubtful_groups(evaluation)
    confidence = evaluation.detections.confidences[doubtful.row]
    if count_states(confidence, doubtful.group) > _MOST_ROWS:
        return None
    parts = [
        _no_rematches(),
        *(
            _find_box_changes(evaluation, doubtful, some)
            for some in iterate_states(confidence, doubtful.group, _ROWS_AT_A_TIME)
        ),
    ]
    order = np.argsort(np.concatenate([part.threshold for part in parts]), kind="stable")
    columns: Any = (np.concatenate(column)[order] for column in zip(*parts, strict=True))
    return BoxRematches(*columns)


def _no_rematches() -> BoxRematches:
    bits, sizes = np.zeros((0, len(SIZES)), np.uint16), np.zeros((0, len(SIZES)))
    return BoxRematches(np.zeros(0, np.float32), np.zeros(0, np.int64), bits, bits, sizes)


class _Doubtful(NamedTuple):
    """Detections of the images and classes whose matches a threshold can change, and their objects."""

    row: Ints
    group: Ints
    """The group of each row, from 0, sorted; rows ascend within a group."""
    objects: Ints
    offsets: Ints
    """Start of each group's objects."""


def _doubtful_groups(evaluation: Evaluation) -> _Doubtful:
    table, objects, classes = evaluation.detections, evaluation.objects, max(len(evaluation.classes), 1)
    known = np.flatnonzero(table.labels >= 0)
    key = table.image_rows[known] * classes + table.labels[known]
    order = np.lexsort((known, -table.scores[known], key))
    row, key = known[order], key[order]
    begins = np.concatenate([np.ones(min(len(key), 1), bool), key[1:] != key[:-1]])
    group = np.cumsum(begins) - 1
    counts = np.bincount(group)
    # A threshold removes a detection out of order if one of a lower score has a higher confidence. Without a match the
    # removal has no effect on others, unless it frees one of the places up to the limit.
    level = np.unique(table.confidences[row], return_inverse=True)[1]
    highest = np.maximum.accumulate((level - group * (len(row) + 1))[::-1])[::-1] + group * (len(row) + 1)
    matches = evaluation.box_matches
    offsets = evaluation.dataset.offsets(table.image_rows)
    has_match = np.zeros(len(table), bool)
    has_match[(offsets[matches.image_rows] + matches.numbers)[matches.matched.any(axis=1)]] = True
    out_of_order = (highest > level) & (has_match[row] | (counts[group] > matches.rules.most))
    doubtful = np.zeros(len(counts), bool)
    doubtful[group[out_of_order]] = True
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


def _find_box_changes(evaluation: Evaluation, doubtful: _Doubtful, states: ThresholdStates) -> BoxRematches:
    """Match every state of some groups as separate images; return the differences between consecutive states."""
    table, objects = evaluation.detections, evaluation.objects
    row, state = doubtful.row[states.row], states.state
    begins = np.searchsorted(state, np.arange(len(states.step)))
    of_group = doubtful.group[states.row[begins]]
    each = np.diff(doubtful.offsets)[of_group]
    object_offsets = np.concatenate([[0], np.cumsum(each)]).astype(np.int64)
    there = doubtful.objects[np.repeat(doubtful.offsets[of_group] - object_offsets[:-1], each) + np.arange(each.sum())]
    found = match_levels(
        evaluation.box_rules,
        image_rows=state,
        labels=np.zeros(len(row), np.int32),
        boxes=table.boxes[row],
        extents=table.extents[row],
        scores=table.scores[row],
        lenient=not_exhaustive(evaluation.dataset, table.image_rows, table.labels)[row],
        object_offsets=object_offsets,
        object_labels=np.zeros(len(there), np.int32),
        object_boxes=objects.boxes[there],
        object_extents=objects.extents[there],
        object_areas=objects.areas[there],
        object_crowd=objects.crowd[there],
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
