"""Metrics of all detections and objects: D-ECE, LaECE, LaACE, QGC, MUE and OCE; names include matching and bins."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from probox.measures.matched import FEW_PAIRS
from probox.measures.measure import Column, Evaluated, Measure, Resampled, counted_notes
from probox.measures.scoring.calibration_metrics import (
    MISSED,
    UNIT,
    Bins,
    Runs,
    SortedColumns,
    calibration_errors,
    object_brier_scores,
    prepare_mue,
)
from probox.measures.scoring.score_rows import (
    IOU,
    ScoredRows,
    counted_mean,
    describe_overlap,
    full_name,
    join_rows,
    measure_of_rows,
    notes_on_detections,
    outcomes,
)
from probox.measures.scoring.scores import entropies, invertible, log_determinants, notes_on_scores
from probox.notes import Note
from probox.support.types import Floats, Ints
from probox.tables.labels import without_background

D_ECE_BINS = (Bins(10), Bins(15), Bins(25), Bins(10, "mass"), Bins(15, "mass"))
"""Bins of D-ECE; the first is the headline value."""

LAECE_BINS = Bins(25)
"""Bins in the publication of LaECE."""

LA_IOUS = (IOU, 0.0)
"""Overlaps of LaECE and LaACE: the default, and 0 for LaECE_0 and LaACE_0."""

PAIRS = describe_overlap(IOU)


def _detections(evaluated: Evaluated, iou: float = IOU) -> ScoredRows:
    """Return detections as rows with their predicted class."""
    judged, table = outcomes(evaluated, iou), evaluated.detections
    rows = judged.detections
    columns = {"rows": rows, "scores": table.scores[rows], "hits": judged.hits, "ious": judged.ious}
    return ScoredRows(table.image_rows[rows], table.labels[rows], judged.areas, columns)


def _with_objects(evaluated: Evaluated, ious: Sequence[float] = (IOU,)) -> ScoredRows:
    """Return detections as rows, then objects, once for each overlap, because each overlap has its own matches.

    `overlap` is the index of the overlap, `there` marks objects, `missed` marks unmatched objects.
    """
    parts = []
    for number, iou in enumerate(ious):
        judged, objects, found = outcomes(evaluated, iou), evaluated.objects, _detections(evaluated, iou)
        there = judged.objects
        no, none = np.zeros(len(found), bool), np.zeros(len(there))
        columns = {name: np.append(found[name], none.astype(found[name].dtype)) for name in ("scores", "ious", "hits")}
        columns["there"] = np.append(no, np.ones(len(there), bool))
        columns["missed"] = np.append(no, ~judged.found)
        columns["overlap"] = np.full(len(found) + len(there), number)
        parts.append(
            ScoredRows(
                np.append(found.image_rows, objects.image_rows[there]),
                np.append(found.labels, objects.labels[there]).astype(np.int64),
                np.append(found.areas, objects.areas[there]),
                columns,
            )
        )
    return join_rows(parts)


# --- D-ECE ---


def _d_ece(rows: ScoredRows, counts: Floats) -> Resampled:
    scores = rows["scores"]
    table = SortedColumns(scores, [rows["hits"] - scores], UNIT)
    return {
        full_name("D-ECE", iou=IOU, bins=bins): calibration_errors(*table.sums(bins, counts)) for bins in D_ECE_BINS
    }


D_ECE = measure_of_rows(
    "d-ece",
    [
        Column(
            key=full_name("D-ECE", iou=IOU, bins=bins),
            heading="D-ECE" if bins == D_ECE_BINS[0] else None,
            better="low",
            hint=f"|precision - score|, {bins.words}; {PAIRS}",
        )
        for bins in D_ECE_BINS
    ],
    _detections,
    _d_ece,
    notes=notes_on_detections,
)

# --- LaECE and LaACE ---


Gaps = Callable[[ScoredRows], tuple[Ints, Floats]]
"""Cell of each detection (class times `CELLS`, plus bin), and its gap, which is summed per cell."""

CELLS = LAECE_BINS.number


def _class_mean(rows: ScoredRows, counts: Floats, gaps: Gaps) -> Floats:
    """Return the mean over classes with objects and detections of the mean |gap| of their cells."""
    there = rows["there"]
    found, objects = rows.take(~there), Runs(rows.labels[there])
    cells, gap = gaps(found)
    cell_runs, classes = Runs(cells), Runs(found.labels)
    class_of_cell = Runs(cell_runs.values // CELLS)  # the same classes in the same order
    with_objects = np.isin(classes.values, objects.values)
    column = np.searchsorted(objects.values, classes.values[with_objects])

    of_found = counts[:, ~there]
    n = classes.sums(of_found)[:, with_objects]
    errors = class_of_cell.sums(np.abs(cell_runs.sums(of_found * gap)))[:, with_objects]
    both = (n > 0) & (objects.sums(counts[:, there])[:, column] > 0)
    shares = np.divide(errors, n, out=np.zeros_like(errors), where=both)
    with np.errstate(invalid="ignore", divide="ignore"):
        means: Floats = shares.sum(axis=1) / both.sum(axis=1)
    return means


def _gaps_in_bins(found: ScoredRows) -> tuple[Ints, Floats]:
    """Return IoU - score, to be summed in bins of each class."""
    scores = found["scores"]
    (edges,) = LAECE_BINS.inner_edges(scores, np.ones((1, len(scores))), UNIT)
    return found.labels * CELLS + np.searchsorted(edges, scores, side="right"), found["ious"] - scores


def _gaps_alone(found: ScoredRows) -> tuple[Ints, Floats]:
    """Return |IoU - score|, to be summed over each class."""
    return found.labels.astype(np.int64) * CELLS, np.abs(found["ious"] - found["scores"])


def _label_aware(name: str, title: str, gaps: Gaps, bins: Bins | None, hint: str) -> Measure:
    keys = [full_name(title, iou=iou, bins=bins) for iou in LA_IOUS]

    def numbers(rows: ScoredRows, counts: Floats) -> Resampled:
        parts = [rows["overlap"] == number for number in range(len(LA_IOUS))]
        return {key: _class_mean(rows.take(part), counts[:, part], gaps) for key, part in zip(keys, parts, strict=True)}

    return measure_of_rows(
        name,
        [
            Column(
                key=key,
                heading=title if key == keys[0] else None,
                better="low",
                hint=f"{hint}, mean of classes; {describe_overlap(iou)}",
            )
            for key, iou in zip(keys, LA_IOUS, strict=True)
        ],
        lambda evaluated: _with_objects(evaluated, LA_IOUS),
        numbers,
        notes=notes_on_detections,
    )


LAECE = _label_aware("laece", "LaECE", _gaps_in_bins, LAECE_BINS, f"|IoU - score|, {LAECE_BINS.words}")

LAACE = _label_aware("laace", "LaACE", _gaps_alone, None, "|IoU - score| of each detection")

# --- QGC ---


def _qgc(rows: ScoredRows, counts: Floats) -> Resampled:
    there, missed, scores = rows["there"], rows["missed"], rows["scores"]
    losses = np.where(there, 1.0, np.square(np.where(rows["hits"], 1.0 - scores, scores)))
    return {full_name("QGC", iou=IOU): counted_mean(counts, losses, ~there | missed)}


QGC = measure_of_rows(
    "qgc",
    [
        Column(
            key=full_name("QGC", iou=IOU),
            heading="QGC",
            better="low",
            hint=f"(1 - s)^2 of true positives, s^2 of false positives, 1 of missed objects; {PAIRS}",
        )
    ],
    _with_objects,
    _qgc,
    notes=notes_on_detections,
)

# --- MUE ---

MUE_KEYS = {part: full_name("MUE", iou=IOU, part=part) for part in ("", "entropy", "logdet")}
"""Keys by uncertainty that separates TP from FP: 1 - s, entropy of the label, and ln det of the covariance."""


def _with_uncertainties(evaluated: Evaluated) -> ScoredRows:
    """Return detections with their uncertainties; NaN where undefined."""
    found, table = _detections(evaluated), evaluated.detections
    rows = found["rows"]
    log_det = np.full(len(rows), np.nan)
    dense = invertible(table.covariances[rows])
    log_det[dense] = log_determinants(table.covariances[rows[dense]])
    entropy = np.full(len(rows), np.nan)
    if table.label_probs is not None:
        probs = without_background(table.label_probs[rows], evaluated.classes)
        entropy = probs.of_rows(lambda matrix, _: entropies(matrix))
    columns = {"hits": found["hits"], "": 1.0 - found["scores"], "entropy": entropy, "logdet": log_det}
    return ScoredRows(found.image_rows, found.labels, found.areas, columns)


def _mue(rows: ScoredRows, counts: Floats) -> Resampled:
    numbers = {}
    for part, key in MUE_KEYS.items():
        kept = ~np.isnan(rows[part])
        numbers[key] = prepare_mue(rows[part][kept], rows["hits"][kept])(counts[:, kept])
    return numbers


def _notes_on_mue(evaluated: Evaluated) -> list[Note]:
    notes = [*notes_on_scores(evaluated), *notes_on_detections(evaluated)]
    if evaluated.detections.label_probs is None:
        notes.append(Note("label-probs-not-kept", purpose="for MUE by entropy"))
    singular = ~invertible(evaluated.detections.covariances)
    return [*notes, *counted_notes(Note("no-inverse-covariance", singular.sum(), total=len(singular)))]


MUE = measure_of_rows(
    "mue",
    (
        Column(
            key=MUE_KEYS[""],
            heading="MUE",
            better="low",
            hint=f"separation of true and false positives by 1 - s; {PAIRS}",
        ),
        Column(key=MUE_KEYS["entropy"], better="low", hint=f"by the label's entropy; {PAIRS}"),
        Column(key=MUE_KEYS["logdet"], better="low", hint=f"by ln det of the covariance; {PAIRS}"),
    ),
    _with_uncertainties,
    _mue,
    needs={"boxes", "labels"},
    notes=_notes_on_mue,
)

OCE_IOUS = (0.5, 0.75)
"""Overlaps of OCE, whose publication averages both; the first is the headline value."""


def _object_rows(evaluated: Evaluated) -> ScoredRows:
    """Return objects without crowds; empty if label probabilities were not kept."""
    found, objects = evaluated.detections, evaluated.objects
    probs = None if found.label_probs is None else without_background(found.label_probs, evaluated.classes)
    there = np.flatnonzero(~objects.crowd) if probs is not None else np.zeros(0, np.int64)
    losses = np.full((len(there), len(OCE_IOUS)), MISSED)
    images = objects.image_rows[there]
    starts, ends = evaluated.dataset.offsets(images), evaluated.dataset.offsets(found.image_rows)
    for image in np.unique(images).tolist():
        mine = slice(starts[image], starts[image + 1])
        theirs = slice(ends[image], ends[image + 1])
        rows = there[mine]
        assert probs is not None
        losses[mine] = object_brier_scores(
            np.concatenate([found.boxes[theirs, :2], found.extents[theirs]], axis=1),
            probs[theirs].matrix,
            np.concatenate([objects.boxes[rows, :2], objects.extents[rows]], axis=1),
            objects.labels[rows],
            ious=OCE_IOUS,
        )
    return ScoredRows(images, objects.labels[there], objects.areas[there], {"losses": losses})


def _oce(rows: ScoredRows, counts: Floats) -> Resampled:
    means = counted_mean(counts, rows["losses"])
    return {full_name("OCE", iou=iou): means[:, column] for column, iou in enumerate(OCE_IOUS)}


def _notes_on_oce(evaluated: Evaluated) -> list[Note]:
    if evaluated.detections.label_probs is None:
        return [Note("label-probs-not-kept", purpose="for OCE")]
    n = int((~evaluated.objects.crowd).sum())
    few = [Note("few-objects", n, least=FEW_PAIRS)] if n < FEW_PAIRS else []
    return [*notes_on_scores(evaluated), *few]


OCE = measure_of_rows(
    "oce",
    [
        Column(
            key=full_name("OCE", iou=iou),
            heading="OCE" if iou == OCE_IOUS[0] else None,
            unit="plain",
            better="low",
            hint=f"Brier score of the mean label of detections that overlap an object, IoU {iou:g}; 1 without any",
        )
        for iou in OCE_IOUS
    ],
    _object_rows,
    _oce,
    needs={"labels"},
    notes=_notes_on_oce,
)
