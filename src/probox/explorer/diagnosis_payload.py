"""The data of the page's diagnosis: scores with outcomes, matched pairs with errors and stds, sentences.

Whatever has an edge on which a value may fall (bins of scores, of PIT, shares of coverage) is decided here and given as
the number of its bin, so that the page counts and cannot round otherwise.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from probox.analysis.baseline import make_rescorer
from probox.analysis.diagnosis import summarize_for_page
from probox.analysis.loss_breakdown import TITLES, find_would_be_duplicates, score_true_boxes
from probox.analysis.threshold_sweep import BoxRematches, Rematches
from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox.explorer.packing import pack, round_number
from probox.measures.matched import EDGES, FEW_PAIRS, MatchedPairs
from probox.measures.scoring.calibration_metrics import PIT_BINS, box_levels, edge_levels, pit_values
from probox.measures.scoring.pair_measures import relative_edges
from probox.measures.scoring.score_rows import IOU, with_sigma
from probox.measures.scoring.scores import invertible, normal_quantile
from probox.plots.breakdown import SEGMENTS
from probox.plots.calibration_plots import BAND, LEAST, SHAPES, SHARES
from probox.plots.calibration_plots import SCORE_BINS as SCORE_BINS
from probox.plots.calibration_plots import SIGMA_BINS as SIGMA_BINS
from probox.support.types import Ints

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

    Parameters
    ----------
    evaluation : Evaluation
        What was measured.
    rematches : Rematches
        What thresholds do to its matches by pixels.
    box_rematches : BoxRematches, optional
        What they do to COCO's; None if that would take too long to find, and then ``follows`` is False: scores and
        pairs are those of all detections.
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
