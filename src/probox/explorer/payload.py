"""The data of the page: its index, and detections and masks in chunks of images."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.analysis.ranking import find_seen_images
from probox.analysis.threshold_sweep import (
    Rematches,
    find_box_rematches,
    find_rematches,
    threshold_curve,
)
from probox.evaluation.result import Evaluation
from probox.explorer.diagnosis_payload import why_payload
from probox.explorer.packing import (
    FOLLOWING,
    box_intervals,
    box_payload,
    find_obstacles,
    pack,
    round_number,
)
from probox.measures.boxes.matching import AREA_RANGES
from probox.measures.measure import Column, Measure
from probox.measures.pdq.kernel import plain_rows
from probox.measures.pdq.pdq_measure import PDQ
from probox.measures.registry import in_table_order
from probox.pictures.view import scored_boxes, scored_covariances
from probox.support.parallel import thread_count
from probox.tables.groundtruth import Masks
from probox.tables.results import QUALITIES
from probox.version import __version__

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
    shown = _shown(results.values())
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
        "results": _results(results, shown),
    }


def _results(results: Mapping[str, Evaluation], shown: Sequence[Measure]) -> list[dict[str, Any]]:
    """Return what is told of each result; much of it is done by arrays, so threads can share the work."""
    with ThreadPoolExecutor(min(len(results), thread_count(None))) as pool:
        return list(pool.map(lambda item: _result(item[0], item[1], shown), results.items()))


def _shown(evaluations: Iterable[Evaluation]) -> list[Measure]:
    """Return the standard measures, and others that one of the evaluations was asked for."""
    asked = {name for evaluation in evaluations for name in evaluation.measures}
    return [measure for measure in in_table_order() if measure.standard or measure.name in asked]


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
