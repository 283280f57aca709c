"""Data of the HTML report: the index, and geometry in chunks of images.

The page uses the random numbers of Python, so its intervals and tests equal `Evaluation.intervals` and
`probox.compare`. Values are binned here, so that rounding in the browser cannot move them to another bin.
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
from probox.evaluation.text import comparability_words
from probox.measures.boxes.matching import in_area_ranges
from probox.measures.boxes.mean_ap import MASK_MEAN_AP, MEAN_AP
from probox.measures.boxes.optimal_lrp import GRID, MASK_OPTIMAL_LRP, OPTIMAL_LRP
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
from probox.tables.masks import Masks
from probox.tables.results import QUALITIES
from probox.version import __version__

_KINDS = {"u1": "u8", "i2": "i16", "u2": "u16", "i4": "i32", "u4": "u32", "f4": "f32", "f8": "f64"}


def to_script_json(value: Any) -> str:
    """Return JSON that is safe inside a script element: no text in it can end the element."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def pack(values: npt.ArrayLike, kind: str) -> list[str]:
    """Return a column as its type's name and its bytes, little-endian, in base64."""
    array = np.ascontiguousarray(np.asarray(values), dtype=f"<{kind}")
    return [_KINDS[kind], base64.b64encode(array.tobytes()).decode("ascii")]


def round_number(value: float, digits: int = 12) -> float | None:
    """Return a rounded number for JSON; None if it is not finite."""
    return round(float(value), digits) if math.isfinite(value) else None


FOLLOWING = (MEAN_AP.name, OPTIMAL_LRP.name)
"""Names of the metrics that the page computes from `box_payload`."""


def box_payload(evaluation: Evaluation, rematches: BoxRematches | None) -> dict[str, Any] | None:
    """Return the outcomes of boxes, or None without mAP and LRP, or if they cannot follow a threshold.

    - ``order``: detections of known classes by class, then descending score; ``starts``: first position of each class
    - ``cuts``: number of detections per class with at least each score of LRP's grid
    - ``place``: positions in ``order`` with a match at some IoU and size; ``matched`` and ``ignored`` as in
      `probox.measures.boxes.matching.BoxMatches`
    - ``iou``: IoU of matches at IoU 0.5, for each of their sizes
    - ``late``: positions of detections that do not take part
    - ``events``: outcomes that change at a threshold
    - ``objects``: number of objects per class and size

    Other detections are false positives of their own size.
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
    # Scores descend within a class, so a binary search counts the scores of at least s.
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
"""Most detections of a result with intervals of mAP and LRP, so that a page takes seconds."""


def resampling_constants() -> dict[str, Any]:
    """Return the constants of resampling, with the keys of the streams of random numbers."""
    return {
        "LEVEL": LEVEL,
        "REPLICATES": REPLICATES,
        "FEW": FEW_IMAGES,
        "NORMAL": NormalDist().inv_cdf(0.5 + LEVEL / 2),
        "DRAWS": stream_key(SEED, DRAWS),
        "SWAPS": stream_key(SEED, SWAPS),
    }


def find_obstacles(results: Mapping[str, Evaluation]) -> dict[str, str]:
    """Return why two results are not comparable, by their numbers, as in ``"0,2"``; comparable pairs are omitted."""
    found = {}
    for (a, first), (b, second) in combinations(enumerate(results.items()), 2):
        try:
            check_same_truth(dict([first, second]))
        except InputError as error:
            found[f"{a},{b}"] = str(error)
    return found


def box_intervals(evaluation: Evaluation) -> dict[str, list[float]]:
    """Return low and high of mAP and LRP, of boxes and masks, of all detections as shown.

    It is empty above `MOST_DRAWN` detections.

    The browser would need to process all detections for each bootstrap replicate.
    """
    drawn = (*FOLLOWING, MASK_MEAN_AP.name, MASK_OPTIMAL_LRP.name)
    measures = [name for name in drawn if name in evaluation.measures]
    if len(evaluation.dataset) < 2 or len(evaluation.detections) > MOST_DRAWN or not measures:
        return {}
    found = bootstrap(evaluation, measures, level=LEVEL, replicates=REPLICATES, seed=SEED)
    columns = [column for measure in measures_called(measures) for column in measure.table_columns]
    ends = {column.key: column.shown_limits(found[column.key].low, found[column.key].high) for column in columns}
    return {key: [low, high] for key, (low, high) in ends.items() if math.isfinite(low)}


# --- the index and the geometry ---

IOUS = {"50": 0.5, "75": 0.75}
"""IoU of precision and recall, by the value in the page's address."""

_LARGEST = float(np.finfo(np.float32).max)

_THRESHOLDS = np.linspace(0.0, 1.0, 201)


def index_payload(
    results: Mapping[str, Evaluation], photos: Sequence[str], chunk: int, file_names: Sequence[str]
) -> dict[str, Any]:
    """Return all data except geometry, which the page needs at the start."""
    first = next(iter(results.values()))
    objects = first.objects
    asked = {name for evaluation in results.values() for name in evaluation.measures}
    shown = [measure for measure in in_table_order() if measure.standard or measure.name in asked]
    # NumPy releases the lock, so threads can share the work.
    with ThreadPoolExecutor(min(len(results), thread_count(None))) as pool:
        payloads = list(pool.map(lambda item: _result(item[0], item[1], shown), results.items()))
    return {
        "classes": list(first.classes),
        "columns": [_column(measure, column) for measure in shown for column in measure.table_columns],
        "chunk": chunk,
        "version": __version__,
        "thresholds": [round(float(value), 4) for value in _THRESHOLDS],
        # Results do not contain detections below their own threshold, so the slider starts at the highest one.
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
            "size": pack(_size_bits(objects.areas, first), "u1"),
        },
        "obstacles": find_obstacles(results),
        "results": payloads,
    }


_FOLLOWING = (PDQ.name, *FOLLOWING)
"""Metrics that follow the page's threshold; others are shown for all detections only."""


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
    # Only pairs that match at some threshold; -1 means unmatched.
    is_match = table.partners[pairs.detections] == pairs.objects if len(pairs) else np.zeros(0, bool)
    used = np.union1d(np.flatnonzero(is_match), rematches.pair[rematches.pair >= 0]).astype(np.int64)
    pair_of_detection = np.full(len(table), -1)
    pair_of_detection[pairs.detections[is_match]] = np.searchsorted(used, np.flatnonzero(is_match))
    detections = {
        "offsets": pack(evaluation.dataset.offsets(table.image_rows), "u4"),
        "class": pack(table.labels, "i2"),
        "size": pack(_size_bits(table.extents[:, 0] * table.extents[:, 1], evaluation), "u1"),
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
        "comparability": comparability_words(evaluation.comparability),
        "measures": list(evaluation.measures),
        "convention": evaluation.recorded_convention.to_dict(),
        "words": evaluation.convention.replace(label_threshold=None).describe(),
        # Values of all detections, for metrics that cannot follow a threshold.
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
    pdq: dict[str, list[float | None]] = {"PDQ": [round_number(value, 8) for value in curve["PDQ"]]}
    return pdq | {name: [round_number(value) for value in curve[name]] for name in ("TP", "FP", "FN")}


def _about(evaluation: Evaluation) -> str:
    """Return settings, inputs, warnings and notes as text."""
    parts = [f"convention: {evaluation.convention.describe()}"]
    if evaluation.scored_against:
        parts.append(f"scored against {evaluation.scored_against}")
    if evaluation.inputs:
        parts.append("read from " + ", ".join(evaluation.inputs))
    parts += map(str, (*evaluation.warnings, *evaluation.notes))
    if evaluation.version:
        parts.append(f"probox {evaluation.version}")
    return "; ".join(parts)


def _size_bits(area: npt.NDArray[np.float64], evaluation: Evaluation) -> npt.NDArray[np.int64]:
    """Return the size of an area as bits, 1 small, 2 medium, 4 large; two bits at a limit."""
    within = np.stack(in_area_ranges(area, evaluation.convention.area_ranges), axis=1)
    return np.asarray(within @ (1 << np.arange(within.shape[1])), dtype=np.int64)


def chunk_payloads(
    results: Mapping[str, Evaluation],
    masks: Masks,
    chunk: int,
    pixels: Sequence[Mapping[int, list[Any]]] = (),
) -> Iterator[list[dict[str, Any]]]:
    """Yield the geometry of `chunk` images at a time.

    Each image has ``o`` and ``d``. ``o`` contains the objects as ``x0, y0, x1, y1``, with encoded runs unless the mask
    fills its box. ``d`` contains for each result the detections as float32 in base64: the box, and if any detection of
    the image has a covariance, ``xx, xy, yy`` of both corners (0 without covariance). With stored `pixels`, heatmaps or
    masks by detection row, an entry of ``d`` is a list of this text and the pixels by position in the image.
    """
    first = next(iter(results.values()))
    object_offsets = first.dataset.offsets(first.objects.image_rows).tolist()
    of_objects = mask_entries(masks)
    found = [
        (evaluation.dataset.offsets(evaluation.detections.image_rows).tolist(), *_detection_numbers(evaluation))
        for evaluation in results.values()
    ]

    def detections(place: int, image: int) -> str | list[Any]:
        offsets, numbers, uncertain = found[place]
        begin, end = offsets[image], offsets[image + 1]
        rows = numbers[begin:end] if uncertain[begin:end].any() else numbers[begin:end, :4]
        text = base64.b64encode(rows.tobytes()).decode("ascii")
        stored = pixels[place] if place < len(pixels) else {}
        own = {row - begin: stored[row] for row in range(begin, end) if row in stored} if stored else {}
        return [text, own] if own else text

    for start in range(0, len(first.dataset), chunk):
        yield [
            {
                "o": of_objects[object_offsets[image] : object_offsets[image + 1]],
                "d": [detections(place, image) for place in range(len(found))],
            }
            for image in range(start, min(start + chunk, len(first.dataset)))
        ]


def _detection_numbers(evaluation: Evaluation) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
    """Return box and covariances of each detection, ten numbers, and whether it has a covariance."""
    table = evaluation.detections
    widths, heights = evaluation.dataset.shapes[table.image_rows].T
    covariances = scored_covariances(evaluation.convention, table.covariances)
    certain = plain_rows(covariances, evaluation.convention)  # drawn as they were scored
    numbers = np.zeros((len(table), 10), "<f4")
    for columns, values in (
        (slice(4), scored_boxes(evaluation.convention, table.boxes, widths, heights)),
        (slice(4, 10), covariances[:, :, [0, 0, 1], [0, 1, 1]].reshape(-1, 6) * ~certain[:, None]),
    ):
        numbers[:, columns] = np.clip(values, -_LARGEST, _LARGEST)
    return numbers, ~certain


def mask_entries(masks: Masks) -> list[list[Any]]:
    """Return box and encoded runs of each mask; the box alone if the mask fills it."""
    return [box + [text] * bool(text) for box, text in zip(masks.boxes.tolist(), encoded_runs(masks), strict=True)]


def encoded_runs(masks: Masks) -> list[str]:
    """Return each mask's runs as text; empty if the mask fills its box.

    A run has three numbers, relative to the previous run or to the box's top left: row, start, length. The last two
    have their sign in the lowest bit. Numbers are stored in groups of seven bits, lowest first, in base64.
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
"""Bin of excluded values."""

START = -1.0
"""Start of spans without threshold; the page uses it as its level without threshold."""


def why_constants() -> dict[str, Any]:
    """Return the constants of the diagnosis for the script."""
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
    """Return the diagnosis of one result.

    `box_rematches` is None if rematching for each threshold takes too long. ``follows`` is then False, and scores and
    pairs refer to all detections.
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
    """Outcomes of detections by COCO's matching at IoU 0.5, and the thresholds at which they hold.

    Each outcome of a detection is one row, from `since` on and below `until`. `partner` is an object's row, or -1;
    `ignored` detections match a crowd.
    """

    detection: Ints
    since: Floats
    until: Floats
    partner: Ints
    ignored: npt.NDArray[np.bool_]


def outcome_spans(evaluation: Evaluation, rematches: BoxRematches | None) -> Spans:
    """Return the spans of all detections, sorted by detection and threshold."""
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
    # Some changes affect other IoU thresholds or sizes only.
    same = (rows[1:] == rows[:-1]) & (partner[1:] == partner[:-1]) & (ignored[1:] == ignored[:-1])
    kept = np.concatenate([[True], ~same]) if len(rows) else np.zeros(0, bool)
    rows, since, partner, ignored = rows[kept], since[kept], partner[kept], ignored[kept]
    until = np.nan_to_num(table.confidences[rows].astype(np.float32), nan=0.0)
    goes_on = np.flatnonzero(rows[1:] == rows[:-1])
    until[goes_on] = since[goes_on + 1]
    return Spans(rows, since, until, partner, ignored)


def _scores(evaluation: Evaluation, spans: Spans) -> dict[str, Any]:
    """Return the bin of each detection's score and whether it is matched, as 2 * bin + matched.

    ``code`` contains detections with one outcome at all thresholds; others have ``spans``.
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
    """Return the pairs that match at some threshold; with errors and stds if any pair has a covariance."""
    matched = np.flatnonzero((spans.partner >= 0) & ~spans.ignored)
    columns = {
        "detection": pack(spans.detection[matched], "u4"),
        "since": pack(spans.since[matched], "f4"),
        "until": pack(spans.until[matched], "f4"),
    }
    pairs = MatchedPairs.of_rows(evaluation, spans.detection[matched], spans.partner[matched], "")
    if not pairs.variances.any():
        return columns
    judged, dense = with_sigma(pairs), invertible(pairs.covariances)
    sigmas = np.where(judged, np.sqrt(pairs.variances), 1.0)
    levels = _share_bins(edge_levels(pairs.residuals, sigmas))
    pit = np.minimum((pit_values(pairs.residuals, sigmas) * PIT_BINS).astype(np.int64), PIT_BINS - 1)
    boxes = np.full(len(pairs), NOTHING)
    boxes[dense] = _share_bins(box_levels(pairs.residuals[dense], pairs.covariances[dense]))
    sigma, error, present = relative_edges(pairs)
    columns.update(
        level=pack(np.where(judged, levels, NOTHING).reshape(-1), "u1"),
        pit=pack(np.where(judged, pit, NOTHING).reshape(-1), "u1"),
        box=pack(boxes, "u1"),
        sigma=pack(np.where(present, sigma, np.nan).reshape(-1), "f8"),
        error=pack(np.where(present, error, np.nan).reshape(-1), "f8"),
        plain=pack(~pairs.variances.any(axis=1), "u1"),
        cut=pack(pairs.truncated.sum(axis=1), "u1"),
    )
    return columns


def _share_bins(levels: npt.NDArray[np.float64]) -> Ints:
    """Return the index of the smallest of `SHARES` whose central region contains the ground truth."""
    return np.searchsorted(SHARES, levels, side="left")


def _twins(evaluation: Evaluation) -> dict[str, Any]:
    """Return the objects of which each detection is a duplicate, if it is a false positive and they are matched."""
    rows, objects = find_would_be_duplicates(evaluation)
    order = np.lexsort((objects, rows))
    return {"detection": pack(rows[order], "u4"), "object": pack(objects[order], "u4")}


MOST_SPREAD = 5_000
"""Most detections with covariances that are rescored; a thousand heatmaps take 0.1 s."""


def _rescore(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return PDQ of all detections after repairs that need rescoring, if this is fast."""
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
