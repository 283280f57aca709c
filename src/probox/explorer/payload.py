"""The data of the page: its index, and detections and masks in chunks of images.

The page draws the same images as Python, since it hashes the same numbers: its intervals and tests are those of
`Evaluation.intervals` and `probox.compare`. Whatever has an edge on which a value may fall (bins of scores, of PIT,
shares of coverage) is decided here and given as the number of its bin, so that the page counts and cannot round
otherwise.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations, pairwise
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from probox.analysis.baseline import make_rescorer
from probox.analysis.comparison import check_same_truth
from probox.analysis.diagnosis import summarize_for_page
from probox.analysis.loss_breakdown import TITLES, find_would_be_duplicates, score_true_boxes
from probox.analysis.ranking import find_seen_images
from probox.analysis.resampling import DRAWS, FEW_IMAGES, SWAPS, bootstrap, stream_key
from probox.analysis.threshold_sweep import (
    BoxRematches,
    Rematches,
    find_box_rematches,
    find_rematches,
    score_order,
    threshold_curve,
)
from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox.measures.boxes.matching import AREA_RANGES
from probox.measures.boxes.mean_ap import MEAN_AP
from probox.measures.boxes.optimal_lrp import GRID, OPTIMAL_LRP
from probox.measures.matched import EDGES, FEW_PAIRS, MatchedPairs
from probox.measures.measure import Column, Measure
from probox.measures.pdq.kernel import plain_rows
from probox.measures.pdq.pdq_measure import PDQ
from probox.measures.registry import in_table_order, measures_called
from probox.measures.scoring.calibration_metrics import PIT_BINS, box_levels, edge_levels, pit_values
from probox.measures.scoring.pair_measures import relative_edges
from probox.measures.scoring.score_rows import IOU, with_sigma
from probox.measures.scoring.scores import invertible, normal_quantile
from probox.pictures.view import scored_boxes, scored_covariances
from probox.plots.breakdown import SEGMENTS
from probox.plots.calibration_plots import BAND, LEAST, SCORE_BINS, SHAPES, SHARES, SIGMA_BINS
from probox.support.parallel import thread_count
from probox.support.types import Ints
from probox.tables.groundtruth import Masks
from probox.tables.results import QUALITIES
from probox.version import __version__

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


# --- the index and the geometry ---

IOUS = {"50": 0.5, "75": 0.75}
"""At which the page shows precision and recall, by the name in its address."""

_LARGEST = float(np.finfo(np.float32).max)

_THRESHOLDS = np.linspace(0.0, 1.0, 201)


def index_payload(
    results: Mapping[str, Evaluation], photos: Sequence[str], chunk: int, file_names: Sequence[str]
) -> dict[str, Any]:
    """Return what the page needs at once: everything but boxes and masks."""
    first = next(iter(results.values()))
    objects = first.objects
    asked = {name for evaluation in results.values() for name in evaluation.measures}
    shown = [measure for measure in in_table_order() if measure.standard or measure.name in asked]
    # Much of what is told of a result is done by arrays, so threads can share the work.
    with ThreadPoolExecutor(min(len(results), thread_count(None))) as pool:
        told = list(pool.map(lambda item: _result(item[0], item[1], shown), results.items()))
    return {
        "classes": list(first.classes),
        "columns": [_column(measure, column) for measure in shown for column in measure.table_columns],
        "chunk": chunk,
        "version": __version__,
        "thresholds": [round(float(value), 4) for value in _THRESHOLDS],
        # Detections below a result's own threshold are gone: the slider begins at the highest of them.
        "lowest": max(evaluation.convention.fixed_threshold or 0.0 for evaluation in results.values()),
        "images": {
            "id": first.dataset.image_ids.tolist(),
            "w": first.dataset.widths.tolist(),
            "h": first.dataset.heights.tolist(),
            "name": list(file_names),
            "photo": list(photos),
        },
        "objects": {
            "offsets": pack(first.dataset.offsets(objects.image_rows), "u4"),
            "class": pack(objects.labels, "u2"),
            "size": pack(_size_bits(objects.areas), "u1"),
        },
        "obstacles": find_obstacles(results),
        "results": told,
    }


_FOLLOWING = (PDQ.name, *FOLLOWING)
"""Measures that follow the page's threshold; of others it has the number of all detections alone."""


def _column(measure: Measure, column: Column) -> dict[str, Any]:
    return {
        "key": column.key,
        "heading": column.heading,
        "hint": f"{column.hint} [{column.symbol}]" if column.symbol else column.hint,
        "unit": column.unit,
        "better": column.shown_better,
        "complement": column.complement,
        "measure": measure.name,
        "follows": measure.name in _FOLLOWING,
    }


def _result(name: str, evaluation: Evaluation, shown: Sequence[Measure]) -> dict[str, Any]:
    rematches, box_rematches = find_rematches(evaluation), find_box_rematches(evaluation)
    table, pairs = evaluation.detections, evaluation.pairs
    # Only pairs that are a match at some threshold are told; -1 stands for none.
    is_match = table.partners[pairs.detections] == pairs.objects if len(pairs) else np.zeros(0, bool)
    used = np.union1d(np.flatnonzero(is_match), rematches.pair[rematches.pair >= 0]).astype(np.int64)
    pair_of_detection = np.full(len(table), -1)
    pair_of_detection[pairs.detections[is_match]] = np.searchsorted(used, np.flatnonzero(is_match))
    detections = {
        "offsets": pack(evaluation.dataset.offsets(table.image_rows), "u4"),
        "class": pack(table.labels, "i2"),
        "size": pack(_size_bits(table.extents[:, 0] * table.extents[:, 1]), "u1"),
        "confidence": pack(table.confidences, "f4"),
        "score": pack(table.scores, "f4"),
        "pair": pack(pair_of_detection, "i4"),
    }
    if evaluation.convention.confidence_denominator:
        detections["cost"] = pack(table.costs, "f4")
    qualities = {q: pack(pairs.quality(q)[used], "f8" if q == "pPDQ" else "f4") for q in QUALITIES}
    summary = evaluation.summary()
    of_all = [column for measure in shown if measure is not PDQ for column in measure.table_columns]
    return {
        "name": name,
        "about": _about(evaluation),
        "measures": list(evaluation.measures),
        "convention": evaluation.convention.to_dict(),
        "words": evaluation.convention.replace(label_threshold=None).describe(),
        # Of all detections: what no threshold leaves, and all that is known of measures that cannot follow one.
        "whole": {column.key: round_number(column.shown(summary)) for column in of_all},
        "intervals": box_intervals(evaluation),
        "detections": detections,
        "pairs": {"object": pack(pairs.objects[used], "i4"), **qualities},
        "events": _events(rematches, used),
        "small": pack(evaluation.objects.ignored, "u1"),
        "unseen": pack(~find_seen_images(evaluation), "u1"),
        "curve": _curve(evaluation, rematches),
        "boxes": box_payload(evaluation, box_rematches),
        "why": why_payload(evaluation, rematches, box_rematches),
    }


def _events(rematches: Rematches, used: npt.NDArray[np.int64]) -> dict[str, list[str]]:
    pair = np.where(rematches.pair >= 0, np.searchsorted(used, rematches.pair), -1)
    return {
        "threshold": pack(rematches.threshold, "f4"),
        "detection": pack(rematches.detection, "u4"),
        "pair": pack(pair, "i4"),
    }


def _curve(evaluation: Evaluation, rematches: Rematches) -> dict[str, list[float | None]]:
    curve = threshold_curve(evaluation, _THRESHOLDS, rematches)
    told: dict[str, list[float | None]] = {"PDQ": [round_number(value, 8) for value in curve["PDQ"]]}
    return told | {name: [round_number(value) for value in curve[name]] for name in ("TP", "FP", "FN")}


def _about(evaluation: Evaluation) -> str:
    """Return in words what made the numbers."""
    parts = [f"convention: {evaluation.convention.describe()}"]
    if evaluation.scored_against:
        parts.append(f"scored against {evaluation.scored_against}")
    if evaluation.inputs:
        parts.append("read from " + ", ".join(evaluation.inputs))
    parts += map(str, (*evaluation.warnings, *evaluation.notes))
    if evaluation.version:
        parts.append(f"probox {evaluation.version}")
    return "; ".join(parts)


def _size_bits(area: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return which of COCO's sizes an area is, as bits: 1 small, 2 medium, 4 large; on a limit it is of both."""
    within = (area[:, None] >= AREA_RANGES[1:, 0]) & (area[:, None] <= AREA_RANGES[1:, 1])
    return np.asarray(within @ (1 << np.arange(len(AREA_RANGES) - 1)), dtype=np.int64)


def chunk_payloads(
    results: Mapping[str, Evaluation],
    masks: Masks,
    chunk: int,
    heatmaps: Sequence[Mapping[int, list[Any]]] = (),
) -> Iterator[list[dict[str, Any]]]:
    """Yield the geometry of `chunk` images at a time.

    Per image: ``o``, its objects as ``x0, y0, x1, y1`` and encoded runs unless the mask fills its box; and ``d``, for
    each result the bytes of single numbers in base64: four for each detection, its box, or if corners are uncertain
    ten, the box and their covariances ``xx, xy, yy`` (twice), which are 0 where they count as none. With stored
    heatmaps, a list of that text and the heatmaps by the detections' places in the image; `heatmaps` has them by row.
    """
    first = next(iter(results.values()))
    object_offsets = first.dataset.offsets(first.objects.image_rows).tolist()
    boxes, runs = masks.boxes.tolist(), encoded_runs(masks)
    found = [
        (evaluation.dataset.offsets(evaluation.detections.image_rows).tolist(), *_detection_numbers(evaluation))
        for evaluation in results.values()
    ]

    def detections(place: int, image: int) -> str | list[Any]:
        offsets, numbers, uncertain = found[place]
        begin, end = offsets[image], offsets[image + 1]
        rows = numbers[begin:end] if uncertain[begin:end].any() else numbers[begin:end, :4]
        text = base64.b64encode(rows.tobytes()).decode("ascii")
        stored = heatmaps[place] if place < len(heatmaps) else {}
        maps = {row - begin: stored[row] for row in range(begin, end) if row in stored} if stored else {}
        return [text, maps] if maps else text

    for start in range(0, len(first.dataset), chunk):
        yield [
            {
                "o": [
                    boxes[row] + ([runs[row]] if runs[row] else [])
                    for row in range(object_offsets[image], object_offsets[image + 1])
                ],
                "d": [detections(place, image) for place in range(len(found))],
            }
            for image in range(start, min(start + chunk, len(first.dataset)))
        ]


def _detection_numbers(evaluation: Evaluation) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
    """Return boxes and covariances of corners, ten numbers each, and which of them are uncertain."""
    table = evaluation.detections
    widths, heights = evaluation.dataset.shapes[table.image_rows].T
    covariances = scored_covariances(evaluation.convention, table.covariances)
    certain = plain_rows(covariances, evaluation.convention)  # what counts as a plain box is shown as one
    numbers = np.zeros((len(table), 10), "<f4")
    for columns, values in (
        (slice(4), scored_boxes(evaluation.convention, table.boxes, widths, heights)),
        (slice(4, 10), covariances[:, :, [0, 0, 1], [0, 1, 1]].reshape(-1, 6) * ~certain[:, None]),
    ):
        numbers[:, columns] = np.clip(values, -_LARGEST, _LARGEST)
    return numbers, ~certain


def encoded_runs(masks: Masks) -> list[str]:
    """Return each mask's runs as text; empty where the mask fills its box.

    Three numbers per run: rows since the run before (the first: since the box's top), by how much its
    begin lies right of that one's (the first: of the box's left), by how much it is longer. The last two
    have their sign in the lowest bit. All in groups of seven bits, lowest first, bytes in base64.
    """
    if not len(masks.runs):
        return [""] * len(masks)
    counts = np.diff(masks.offsets)
    owner = np.repeat(np.arange(len(masks)), counts)
    starts = masks.offsets[:-1][counts > 0]
    y, begin = masks.runs[:, 0].astype(np.int64), masks.runs[:, 1].astype(np.int64)
    length = masks.runs[:, 2].astype(np.int64) - begin
    steps = np.stack([np.diff(y, prepend=0), np.diff(begin, prepend=0), np.diff(length, prepend=0)], axis=1)
    steps[starts, 0] = y[starts] - masks.boxes[owner[starts], 1]
    steps[starts, 1] = begin[starts] - masks.boxes[owner[starts], 0]
    steps[starts, 2] = length[starts]
    steps[:, 1:] = np.where(steps[:, 1:] < 0, -2 * steps[:, 1:] - 1, 2 * steps[:, 1:])
    values = steps.reshape(-1)
    groups = np.stack([(values >> shift) & 127 for shift in (0, 7, 14, 21)], axis=1)
    needed = 1 + (values > 127).astype(int) + (values > 16383) + (values > 2097151)
    more = np.arange(4) < (needed - 1)[:, None]
    data = (groups | (more << 7)).astype(np.uint8)[np.arange(4) < needed[:, None]].tobytes()
    ends = np.concatenate([[0], np.cumsum(needed)])[3 * masks.offsets].tolist()
    return [base64.b64encode(data[ends[row] : ends[row + 1]]).decode("ascii") for row in range(len(masks))]


# --- the diagnosis ---

Floats = npt.NDArray[np.float32]

Bytes = npt.NDArray[np.uint8]

NOTHING = 255
"""In a column of bins: left out."""

START = -1.0
"""Since when, for what is so before any threshold; the page's level without one."""


def why_constants() -> dict[str, Any]:
    """Return what the script must know of it, by the names it calls them."""
    return {
        "PARTS": {name: words for name, (words, _) in SEGMENTS.items()},
        "WHAT_IF": TITLES,
        "EDGES": list(EDGES),
        "FEW": FEW_PAIRS,
        "NOTHING": NOTHING,
        "SCORE_BINS": SCORE_BINS.number,
        "PIT_BINS": PIT_BINS,
        "SIGMA_BINS": SIGMA_BINS.number,
        "SHARES": len(SHARES),
        "LEAST": LEAST,
        "SHAPES": SHAPES,
        "BAND": normal_quantile(0.5 + BAND / 2),
        "IOU": IOU,
    }


def why_payload(evaluation: Evaluation, rematches: Rematches, box_rematches: BoxRematches | None) -> dict[str, Any]:
    """Return what the diagnosis of one result needs.

    `box_rematches` are None where it would take too long to find what thresholds do to COCO's matches, and then
    ``follows`` is False: scores and pairs are those of all detections.
    """
    spans = outcome_spans(evaluation, box_rematches)
    diagnosis, left_out = summarize_for_page(evaluation, rematches)
    best = diagnosis.best_threshold
    return {
        "follows": box_rematches is not None,
        "scores": _scores(evaluation, spans),
        "pairs": _pairs(evaluation, spans),
        "twins": _twins(evaluation),
        "verdict": list(diagnosis.verdict),
        "notes": [str(note) for note in diagnosis.notes],
        "left_out": list(left_out),
        "threshold": evaluation.convention.label_threshold,
        "now": round_number(evaluation.pdq),
        "best": None if best is None else {"threshold": best.threshold, "PDQ": round_number(best.value)},
        "whole": _rescore(evaluation),
    }


class Spans(NamedTuple):
    """What becomes of detections under COCO's matching at an overlap of 0.5, from one threshold up to another.

    A detection that takes part has one row for each outcome that it has, from `since` on and below `until`, where it
    drops out or fares otherwise. `partner` is an object's row, -1 without a match; `ignored` ones match a crowd.
    """

    detection: Ints
    since: Floats
    until: Floats
    partner: Ints
    ignored: npt.NDArray[np.bool_]


def outcome_spans(evaluation: Evaluation, rematches: BoxRematches | None) -> Spans:
    """Return the spans of all detections, by detection, then threshold."""
    matches, table = evaluation.box_matches, evaluation.detections
    images = matches.image_rows.astype(np.int64)
    rows = evaluation.dataset.offsets(table.image_rows)[images] + matches.numbers
    partner = np.where(
        matches.matched_objects >= 0,
        evaluation.dataset.offsets(evaluation.objects.image_rows)[images] + matches.matched_objects,
        -1,
    )
    ignored = (matches.ignored[:, 0] & 1) == 1
    since = np.full(len(rows), START, np.float32)
    if rematches is not None and len(rematches.threshold):
        rows = np.concatenate([rows, rematches.detection])
        since = np.concatenate([since, rematches.threshold])
        partner = np.concatenate([partner, rematches.partner])
        ignored = np.concatenate([ignored, (rematches.ignored[:, 0] & 1) == 1])
    order = np.lexsort((since, rows))
    rows, since, partner, ignored = rows[order], since[order], partner[order], ignored[order]
    # Some changes are of other overlaps or sizes.
    same = (rows[1:] == rows[:-1]) & (partner[1:] == partner[:-1]) & (ignored[1:] == ignored[:-1])
    kept = np.concatenate([[True], ~same]) if len(rows) else np.zeros(0, bool)
    rows, since, partner, ignored = rows[kept], since[kept], partner[kept], ignored[kept]
    until = np.nan_to_num(table.confidences[rows].astype(np.float32), nan=0.0)
    goes_on = np.flatnonzero(rows[1:] == rows[:-1])
    until[goes_on] = since[goes_on + 1]
    return Spans(rows, since, until, partner, ignored)


def _scores(evaluation: Evaluation, spans: Spans) -> dict[str, Any]:
    """Return in which bin each detection's score is and whether it hit, in one byte: twice the bin, plus 1 for a hit.

    ``code`` is of detections that fare alike until they drop out; others have the spans of their own.
    """
    edges = np.arange(1, SCORE_BINS.number) / SCORE_BINS.number
    bins = np.searchsorted(edges, evaluation.detections.scores[spans.detection], side="right")
    codes = np.where(spans.ignored, NOTHING, 2 * bins + (spans.partner >= 0)).astype(np.uint8)
    several = np.zeros(len(evaluation.detections), np.int64)
    np.add.at(several, spans.detection, 1)
    alone = (several[spans.detection] == 1) & (spans.since == START)
    column = np.full(len(evaluation.detections), NOTHING, np.uint8)
    column[spans.detection[alone]] = codes[alone]
    rest = np.flatnonzero(~alone & (codes != NOTHING))
    return {
        "code": pack(column, "u1"),
        "spans": {
            "detection": pack(spans.detection[rest], "u4"),
            "since": pack(spans.since[rest], "f4"),
            "until": pack(spans.until[rest], "f4"),
            "code": pack(codes[rest], "u1"),
        },
    }


def _pairs(evaluation: Evaluation, spans: Spans) -> dict[str, Any]:
    """Return the pairs that are matched at some threshold; errors and sigmas where any has a sigma."""
    matched = np.flatnonzero((spans.partner >= 0) & ~spans.ignored)
    told = {
        "detection": pack(spans.detection[matched], "u4"),
        "since": pack(spans.since[matched], "f4"),
        "until": pack(spans.until[matched], "f4"),
    }
    pairs = MatchedPairs.of_rows(evaluation, spans.detection[matched], spans.partner[matched], "")
    if not pairs.variances.any():
        return told
    judged, dense = with_sigma(pairs), invertible(pairs.covariances)
    sigmas = np.where(judged, np.sqrt(pairs.variances), 1.0)
    levels = _share_bins(edge_levels(pairs.residuals, sigmas))
    pit = np.minimum((pit_values(pairs.residuals, sigmas) * PIT_BINS).astype(np.int64), PIT_BINS - 1)
    boxes = np.full(len(pairs), NOTHING)
    boxes[dense] = _share_bins(box_levels(pairs.residuals[dense], pairs.covariances[dense]))
    sigma, error, present = relative_edges(pairs)
    told.update(
        level=pack(np.where(judged, levels, NOTHING).reshape(-1), "u1"),
        pit=pack(np.where(judged, pit, NOTHING).reshape(-1), "u1"),
        box=pack(boxes, "u1"),
        sigma=pack(np.where(present, sigma, np.nan).reshape(-1), "f8"),
        error=pack(np.where(present, error, np.nan).reshape(-1), "f8"),
        plain=pack(~pairs.variances.any(axis=1), "u1"),
        cut=pack(pairs.truncated.sum(axis=1), "u1"),
    )
    return told


def _share_bins(levels: npt.NDArray[np.float64]) -> Ints:
    """Return the number of the least share whose central region holds the truth."""
    return np.searchsorted(SHARES, levels, side="left")


def _twins(evaluation: Evaluation) -> dict[str, Any]:
    """Return which detections repeat which objects' if they are false and these are found."""
    rows, objects = find_would_be_duplicates(evaluation)
    order = np.lexsort((objects, rows))
    return {"detection": pack(rows[order], "u4"), "object": pack(objects[order], "u4")}


MOST_SPREAD = 5_000
"""The most detections with covariances that are scored anew for a bar: their heatmaps take a tenth of a second per
thousand."""


def _rescore(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return PDQ after repairs that need new scores, as far as they are quick: of all detections."""
    if not len(evaluation.detections):
        return []
    try:
        scene = make_rescorer(evaluation)
    except InputError:
        return []
    found = {"truth_boxes": score_true_boxes(evaluation, scene)}
    if int(evaluation.detections.covariances.any(axis=(1, 2, 3)).sum()) <= MOST_SPREAD:
        found["labels_right"] = scene.with_right_labels().pdq
    return [{"key": key, "PDQ": round_number(value)} for key, value in found.items()]
