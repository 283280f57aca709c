"""All label thresholds at once: how matches and numbers change as detections drop out, one by one.

Above a threshold t an image keeps the detections with a confidence greater than t. Its matches can only
change at its own detections' confidences, so there are no more states of an image than detections in it,
and the exact curve over all thresholds costs one assignment per state. All states of an image are matched in one call,
unless it has so many detections that their number squared is too much: then only states in which a matched detection
drops out, one after the other, since the best matches of the others stay the best.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from probox.analysis.states import States, state_sizes, states_above
from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox.measures.pdq.kernel import assign
from probox.tables.results import Verdict

__all__ = ["Histories", "Rematches", "find_rematches", "match_histories", "threshold_curve"]

_CHUNK = 2_000_000  # pairs at a time
_MOST = 20_000_000  # pairs in all states of an image that is matched in one call


@dataclasses.dataclass(frozen=True, eq=False)
class Rematches:
    """Detections that get another partner when others have dropped out, in the order in which it happens.

    From thresholds of at least `threshold` on, `detection` is matched by the pair `pair` (a row of the
    evaluation's pairs), or with nothing if that is -1; until it drops out itself or is rematched again.
    """

    threshold: npt.NDArray[np.float32]
    detection: npt.NDArray[np.int64]
    pair: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.threshold)


def find_rematches(evaluation: Evaluation, confidences: npt.NDArray[np.float32] | None = None) -> Rematches:
    """Return every change of partner that raising the label threshold brings about.

    Parameters
    ----------
    evaluation : Evaluation
        What was measured.
    confidences : (N,) float32, optional
        What thresholds are compared with instead of the detections' own confidences: say, how many of some thresholds
        each of them is above. The fewer different ones there are, the less is matched anew.
    """
    evaluation = evaluation.of_all_detections()
    pairs, table = evaluation.pairs, evaluation.detections
    if not len(pairs):
        return Rematches(np.zeros(0, np.float32), np.zeros(0, np.int64), np.zeros(0, np.int64))
    sure = table.confidences if confidences is None else confidences
    image = table.image_rows[pairs.detections]
    crowded = _crowded(sure[pairs.detections], image)
    rows = np.flatnonzero(~crowded[image])
    parts = [
        _changes(evaluation, some._replace(row=rows[some.row]), sure)
        for some in states_above(sure[pairs.detections[rows]], image[rows], _CHUNK)
    ]
    parts += [_changes_one_by_one(evaluation, np.flatnonzero(image == one), sure) for one in np.flatnonzero(crowded)]
    threshold, detection, pair = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(threshold, kind="stable")
    return Rematches(
        threshold[order].astype(np.float32), detection[order].astype(np.int64), pair[order].astype(np.int64)
    )


def _crowded(sure: npt.NDArray[np.float32], image: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return which images, numbered as in `image`, have too many pairs in all their states together."""
    most = np.bincount(image) ** 2 > _MOST  # no more states than pairs
    for one in np.flatnonzero(most):
        most[one] = state_sizes(sure[image == one], image[image == one]) > _MOST
    return np.asarray(most)


def _changes_one_by_one(
    evaluation: Evaluation, rows: npt.NDArray[np.int64], sure: npt.NDArray[np.float32]
) -> list[npt.NDArray[np.generic]]:
    """Return what `_changes` does for the pairs of one image, passing over states in which no match drops out.

    Of equally good matches it may keep others than `_changes` chooses.
    """
    pairs = evaluation.pairs
    confidence = sure[pairs.detections[rows]]
    partner = np.full(len(sure), -1)  # the pair of each detection
    before, step = np.zeros(0, np.int64), np.float32(0)
    found: list[tuple[npt.NDArray[np.float32], npt.NDArray[np.int64], npt.NDArray[np.int64]]] = []
    while True:
        matched = rows[assign(np.zeros(len(rows), np.int64), pairs, evaluation.convention.assignment, rows)]
        now = pairs.detections[matched]
        either = np.union1d(before, now)
        earlier = partner[either]
        partner[before] = -1
        partner[now] = matched
        changed = either[(partner[either] != earlier) & (sure[either] > step)] if found else either[:0]
        found.append((np.full(len(changed), step, np.float32), changed, partner[changed]))
        if not len(matched):
            break
        before, step = now, sure[now].min()
        kept = confidence > step
        rows, confidence = rows[kept], confidence[kept]
    return [np.concatenate(column) for column in zip(*found, strict=True)]


def _changes(evaluation: Evaluation, states: States, sure: npt.NDArray[np.float32]) -> list[npt.NDArray[np.generic]]:
    """Match every state of some images; return threshold, detection and pair of each change of a kept detection.

    Matches are few beside pairs: only those of a state and of the one before it are compared.
    """
    pairs, table = evaluation.pairs, evaluation.detections
    rows, state = states.row, states.state
    matched = assign(state, pairs, evaluation.convention.assignment, rows)
    pair, span = rows[matched], len(table) + 1
    key = state[matched] * span + pairs.detections[pair]
    order = np.argsort(key, kind="stable")
    key, pair = key[order], pair[order]
    # What was matched in the state before, as if it still were; not across images, nor what has dropped out.
    of_next = key // span + 1
    goes_on = of_next < len(states.first)
    goes_on[goes_on] = ~states.first[of_next[goes_on]]
    goes_on[goes_on] = sure[key[goes_on] % span] > states.step[of_next[goes_on]]
    before, earlier = key[goes_on] + span, pair[goes_on]
    new = np.flatnonzero(~states.first[key // span])
    kept, place = _found_in(key[new], before)
    same = kept.copy()
    same[kept] = earlier[place[kept]] == pair[new[kept]]
    fresh = new[~same]
    lost = np.flatnonzero(~_found_in(before, key)[0])
    changed = np.concatenate([key[fresh], before[lost]])
    partner = np.concatenate([pair[fresh], np.full(len(lost), -1)])
    order = np.argsort(changed, kind="stable")
    changed, partner = changed[order], partner[order]
    return [states.step[changed // span], changed % span, partner]


def _found_in(
    wanted: npt.NDArray[np.int64], known: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Return which keys are among the known ones, which ascend, and where."""
    place = np.searchsorted(known, wanted)
    inside = place < len(known)
    found = inside.copy()
    found[inside] = known[place[inside]] == wanted[inside]
    return found, place


class Histories(NamedTuple):
    """How detections are matched as the threshold rises: by `pair`, or with nothing if that is -1.

    Each entry holds from thresholds of at least `since` on, while they are below `until`.
    """

    since: npt.NDArray[np.float32]
    until: npt.NDArray[np.float32]
    detection: npt.NDArray[np.int64]
    pair: npt.NDArray[np.int64]


def match_histories(evaluation: Evaluation, rematches: Rematches, confidences: npt.NDArray[np.float32]) -> Histories:
    """Return each detection's history, which ends where it drops out itself."""
    n = len(evaluation.detections)
    since = np.concatenate([np.full(n, -1, np.float32), rematches.threshold])
    detection = np.concatenate([np.arange(n), rematches.detection])
    pair = np.concatenate([_pair_rows(evaluation), rematches.pair])
    order = np.lexsort((np.arange(len(since)), since, detection))
    since, detection, pair = since[order], detection[order], pair[order]
    last = np.concatenate([detection[1:] != detection[:-1], [True]]) if len(detection) else np.zeros(0, bool)
    until = np.where(last, confidences[detection], np.concatenate([since[1:], [0.0]]) if len(since) else since)
    return Histories(since, until, detection, pair)


def threshold_curve(
    evaluation: Evaluation,
    thresholds: npt.ArrayLike,
    rematches: Rematches | None = None,
    images: npt.NDArray[np.bool_] | None = None,
) -> dict[str, npt.NDArray[np.float64]]:
    """Return PDQ, TP, FP and FN at each label threshold, as ``evaluation.at_threshold(t).summary()`` gives them.

    Parameters
    ----------
    evaluation : Evaluation
        What was measured. Below its own label threshold the curve is NaN: those detections are gone.
    thresholds : array of float
        Ascending.
    rematches : Rematches, optional
        From `find_rematches`, if at hand.
    images : (images,) bool, optional
        Which image rows take part. Default: all.
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

    def along(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
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


def _pair_rows(evaluation: Evaluation) -> npt.NDArray[np.int64]:
    """Return for each detection the row of the pair that matches it, or -1."""
    if not evaluation.has_pairs:
        raise InputError("PDQ was not measured, so nobody is matched", remedy="evaluate with PDQ among the measures")
    pairs, table = evaluation.pairs, evaluation.detections
    rows = np.full(len(table), -1)
    if len(pairs):
        is_match = table.partners[pairs.detections] == pairs.objects
        rows[pairs.detections[is_match]] = np.flatnonzero(is_match)
    assert ((rows >= 0) == np.isin(table.verdicts, (Verdict.TP, Verdict.IGNORED))).all()
    return rows
