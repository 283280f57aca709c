"""Metrics of matched pairs: boxes, labels, edges, and error ranking by their std.

Values without an edge in their name cover all edges; joint values cover whole boxes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.measures.boxes.matching import means_of_defined
from probox.measures.matched import EDGES, MatchedPairs
from probox.measures.measure import (
    Better,
    Column,
    Evaluated,
    Measure,
    Need,
    Resampled,
    Unit,
    counted_notes,
    weighted_quantile,
)
from probox.measures.scoring.calibration_metrics import (
    MQCE_LEVELS,
    ONE_STD,
    PIT_BINS,
    SHARES,
    Bins,
    Counted,
    SortedColumns,
    box_levels,
    ence_of_sums,
    pit_distance,
    pit_values,
    prepare_ause,
    prepare_spearman,
)
from probox.measures.scoring.score_rows import (
    BOXES,
    PAIRS,
    Notes,
    ScoredRows,
    counted_mean,
    cut_off,
    full_name,
    measure_of_rows,
    notes_on_boxes,
    notes_on_distances,
    notes_on_edges,
    notes_on_labels,
    pair_rows,
    with_density,
    with_sigma,
    with_truncated,
)
from probox.measures.scoring.scores import (
    brier_scores,
    central_level,
    crps,
    energy_scores,
    ignorances,
    interval_widths,
    negative_log_likelihoods,
    notes_on_scores,
    squared_distances,
)
from probox.notes import Note
from probox.support.types import Bools, Floats
from probox.tables.label_probs import LabelProbs
from probox.tables.labels import without_background


def _mean_of_pairs(
    name: str,
    column: Column,
    scores: Callable[[MatchedPairs, Sequence[str]], Floats],
    kept: Callable[[MatchedPairs], Bools] | None = None,
    *,
    needs: Collection[Need] = BOXES,
    notes: Notes,
) -> Measure:
    """Return a metric that is the mean of one value per pair, computed from pairs and class names."""

    def rows(evaluated: Evaluated) -> ScoredRows:
        return pair_rows(lambda pairs: {column.key: scores(pairs, evaluated.classes)}, kept)(evaluated)

    def numbers(rows: ScoredRows, counts: Floats) -> Resampled:
        return {column.key: counted_mean(counts, rows[column.key])}

    return measure_of_rows(name, (column,), rows, numbers, needs=needs, notes=notes)


NLL = measure_of_rows(
    "nll",
    (
        Column(
            key="NLL",
            heading="NLL",
            unit="plain",
            symbol="nats",
            better="low",
            hint=f"negative log likelihood; {PAIRS}",
        ),
        Column(key="NLL_pairs", unit="count", better=None, hint="pairs with a density"),
    ),
    pair_rows(lambda pairs: {"nll": negative_log_likelihoods(pairs.residuals, pairs.covariances)}, with_density),
    lambda rows, counts: {"NLL": counted_mean(counts, rows["nll"]), "NLL_pairs": counts.sum(axis=1)},
    notes=notes_on_boxes,
)

ENERGY = _mean_of_pairs(
    "energy",
    Column(key="energy", heading="energy", unit="plain", symbol="px", better="low", hint=f"energy score; {PAIRS}"),
    lambda pairs, _: energy_scores(pairs.residuals, pairs.covariances),
    notes=notes_on_distances,
)

NEES = _mean_of_pairs(
    "nees",
    Column(key="NEES", heading="NEES", unit="plain", better=None, ideal=4, hint=f"above 4: overconfident; {PAIRS}"),
    lambda pairs, _: squared_distances(pairs.residuals, pairs.covariances),
    with_density,
    notes=cut_off(notes_on_boxes),
)


def _has_labels(pairs: MatchedPairs) -> Bools:
    return np.full(len(pairs), pairs.label_probs is not None)


def _label_probs(pairs: MatchedPairs) -> LabelProbs:
    """Return label probabilities, empty if they were not kept."""
    return LabelProbs(np.zeros((0, 1))) if pairs.label_probs is None else pairs.label_probs


def _brier_scores(pairs: MatchedPairs, classes: Sequence[str]) -> Floats:
    if pairs.label_probs is None:
        return np.zeros(0)
    probs = without_background(pairs.label_probs, classes)
    return probs.of_rows(lambda matrix, rows: brier_scores(matrix, pairs.labels[rows]))


BRIER = _mean_of_pairs(
    "brier",
    Column(key="Brier", heading="Brier", unit="plain", better="low", hint=f"of the label, 0 to 2; {PAIRS}"),
    _brier_scores,
    _has_labels,
    needs={"boxes", "labels"},
    notes=lambda evaluated: [*notes_on_scores(evaluated), *notes_on_labels(evaluated)],
)


def _ignorance(rows: ScoredRows, counts: Floats) -> Resampled:
    values = rows["ignorance"]
    possible = np.isfinite(values)
    mean = counted_mean(counts, values, possible)
    impossible = counts[:, ~possible].sum(axis=1)
    return {
        "ignorance": np.where(impossible > 0, np.inf, mean),
        "ignorance_possible": mean,
        "ignorance_impossible": impossible,
    }


def _notes_on_ignorance(evaluated: Evaluated) -> list[Note]:
    pairs = evaluated.matched_pairs
    kept = pairs.take(np.flatnonzero(_has_labels(pairs)))
    impossible = np.isinf(ignorances(_label_probs(kept), kept.labels)).sum()
    return [*notes_on_labels(evaluated), *counted_notes(Note("impossible-classes", impossible, total=len(pairs)))]


IGNORANCE = measure_of_rows(
    "ignorance",
    (
        Column(
            key="ignorance",
            heading="ignorance",
            unit="plain",
            symbol="nats",
            better="low",
            hint=f"-ln p of the true class; {PAIRS}",
        ),
        Column(key="ignorance_possible", unit="plain", better="low", hint="of pairs where p is above 0"),
        Column(key="ignorance_impossible", unit="count", better="low", hint="pairs where p is 0"),
    ),
    pair_rows(lambda pairs: {"ignorance": ignorances(_label_probs(pairs), pairs.labels)}, _has_labels),
    _ignorance,
    needs={"boxes", "labels"},
    notes=_notes_on_ignorance,
)

ENCE_BINS = (Bins(10, "mass"), Bins(5))
"""Bins of ENCE; the first is the headline. With equal width, a few huge std would put nearly all edges into one bin."""


def _edge_columns(key: str, better: Better | None, unit: Unit = "per cent", **shown: Any) -> list[Column]:
    """Return the column of all edges together, and those of single edges, which appear in JSON only."""
    edges = (Column(key=f"{key}_{edge}", unit=unit, better=better) for edge in EDGES)
    return [Column(key=key, unit=unit, better=better, **shown), *edges]


def _by_edge(key: str, counts: Floats, values: Floats, present: Bools) -> Resampled:
    """Return the mean over all edges, and over each edge."""
    pooled = _pooled_mean(counts, values, present)
    return {key: pooled, **_name_edges(key, counted_mean(counts, values, present))}


def _name_edges(key: str, values: Floats) -> Resampled:
    return {f"{key}_{edge}": values[:, column] for column, edge in enumerate(EDGES)}


def _pooled_mean(counts: Floats, values: Floats, present: Bools) -> Floats:
    """Return the mean over present edges of all pairs."""
    sums = np.einsum("rk,k->r", counts, np.where(present, values, 0.0).sum(axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: Floats = sums / np.einsum("rk,k->r", counts, present.sum(axis=1).astype(np.float64))
    return mean


# --- CRPS and sharpness: also defined for edges without covariance ---


CRPS = measure_of_rows(
    "crps",
    _edge_columns("CRPS", "low", "plain", heading="CRPS", symbol="px", hint=f"of edges; {PAIRS}"),
    pair_rows(lambda pairs: {"crps": crps(pairs.residuals, np.sqrt(pairs.variances)), "present": ~pairs.truncated}),
    lambda rows, counts: _by_edge("CRPS", counts, rows["crps"], rows["present"]),
    notes=with_truncated(notes_on_distances),
)


def _sharpness(rows: ScoredRows, counts: Floats) -> Resampled:
    squares = _by_edge("sharpness", counts, rows["variances"], rows["present"])
    widths = interval_widths(np.sqrt(rows["variances"]), 0.9)
    return {
        **{key: np.sqrt(values) for key, values in squares.items()},
        "MPIW_90": _pooled_mean(counts, widths, rows["present"]),
    }


SHARPNESS = measure_of_rows(
    "sharpness",
    (
        *_edge_columns(
            "sharpness", None, "plain", heading="sharpness", symbol="px", hint=f"root of mean variance; {PAIRS}"
        ),
        Column(key="MPIW_90", unit="plain", better=None, hint="mean width of 90% intervals, pixels"),
    ),
    pair_rows(lambda pairs: {"variances": pairs.variances, "present": ~pairs.truncated}),
    _sharpness,
    notes=with_truncated(notes_on_distances),
)

# --- levels: coverage, M-QCE, PIT ---


def _level_rows(pairs: MatchedPairs) -> Mapping[str, npt.NDArray[Any]]:
    present, dense = with_sigma(pairs), with_density(pairs)
    sigmas = np.where(present, np.sqrt(pairs.variances), 1.0)
    joint = np.zeros(len(pairs))
    joint[dense] = box_levels(pairs.residuals[dense], pairs.covariances[dense])
    z = pairs.residuals / sigmas
    return {"z": z, "levels": central_level(z), "present": present, "joint": joint, "dense": dense}


def _coverage(rows: ScoredRows, counts: Floats) -> Resampled:
    numbers: Resampled = {}
    for share in SHARES:
        key = f"coverage_{100 * share:.0f}"
        inside = (rows["levels"] <= share).astype(np.float64)
        numbers |= _by_edge(key, counts, inside, rows["present"])
        joint = (rows["joint"] <= share).astype(np.float64)
        numbers[f"{key}_joint"] = counted_mean(counts, joint, rows["dense"])
    z, present = rows["z"], rows["present"]
    numbers["z68"] = weighted_quantile(counts, np.nonzero(present)[0], np.abs(z[present]), ONE_STD)
    numbers["RMS_z"] = np.sqrt(_pooled_mean(counts, np.square(z), present))
    return numbers


def _coverage_columns() -> list[Column]:
    columns = []
    for share in sorted(SHARES, key=lambda share: share != 0.9):
        percent = f"{100 * share:.0f}"
        key = f"coverage_{percent}"
        hint = f"edges inside their {percent}% interval; {PAIRS}, which excludes larger errors"
        columns += _edge_columns(key, None, heading=key if share == 0.9 else None, ideal=share, hint=hint)
        columns.append(Column(key=f"{key}_joint", better=None, hint=f"boxes inside their {percent}% ellipsoid"))
    hint = f"68% quantile of |z| of edges: 1 if calibrated, above if overconfident; {PAIRS}"
    columns.append(Column(key="z68", heading="coverage_z68", unit="plain", better=None, ideal=1, hint=hint))
    columns.append(Column(key="RMS_z", unit="plain", better=None, hint=f"root mean square of z of edges; {PAIRS}"))
    return columns


def _notes_on_levels(evaluated: Any) -> Sequence[Note]:
    return list(dict.fromkeys([*notes_on_boxes(evaluated), *notes_on_edges(evaluated)]))


COVERAGE = measure_of_rows(
    "coverage", _coverage_columns(), pair_rows(_level_rows), _coverage, notes=cut_off(_notes_on_levels)
)


def _mqce(rows: ScoredRows, counts: Floats) -> Resampled:
    def error(levels: Floats, present: Bools) -> Floats:
        inside = (levels[:, None] <= MQCE_LEVELS).astype(np.float64)
        every = np.repeat(present[:, None], len(MQCE_LEVELS), axis=1)
        gaps: Floats = np.abs(counted_mean(counts, inside, every) - MQCE_LEVELS).mean(axis=1)
        return gaps

    edges = (error(rows["levels"][:, column], rows["present"][:, column]) for column in range(len(EDGES)))
    return {"M-QCE": error(rows["joint"], rows["dense"]), **_name_edges("M-QCE", np.stack([*edges], axis=1))}


MQCE = measure_of_rows(
    "mqce",
    _edge_columns("M-QCE", "low", heading="M-QCE", hint=f"mean |coverage - nominal| of boxes; {PAIRS}"),
    pair_rows(_level_rows),
    _mqce,
    notes=cut_off(_notes_on_levels),
)


def _pit_rows(pairs: MatchedPairs) -> Mapping[str, npt.NDArray[Any]]:
    present = with_sigma(pairs)
    return {"pit": pit_values(pairs.residuals, np.where(present, np.sqrt(pairs.variances), 1.0)), "present": present}


def _pit(rows: ScoredRows, counts: Floats) -> Resampled:
    present = rows["present"]
    numbers = np.minimum((rows["pit"] * PIT_BINS).astype(np.int64), PIT_BINS - 1)
    where = [numbers == number for number in range(PIT_BINS)]
    pooled = np.stack([_pooled_mean(counts, inside.astype(np.float64), present) for inside in where], axis=1)
    edges = np.stack([counted_mean(counts, inside.astype(np.float64), present) for inside in where], axis=2)
    return {
        "PIT": pit_distance(pooled),
        **_name_edges("PIT", pit_distance(edges)),
        **_name_edges("PIT_mean", counted_mean(counts, rows["pit"], present)),
        **{f"PIT_bin{number + 1}": pooled[:, number] for number in range(PIT_BINS)},
    }


PIT = measure_of_rows(
    "pit",
    (
        *_edge_columns("PIT", "low", heading="PIT", hint=f"fraction to move for {PIT_BINS} equal PIT bins; {PAIRS}"),
        *_edge_columns("PIT_mean", None)[1:],
        *(Column(key=f"PIT_bin{number + 1}", better=None) for number in range(PIT_BINS)),
    ),
    pair_rows(_pit_rows),
    _pit,
    notes=cut_off(notes_on_edges),
)

# --- ENCE ---


def _ence(rows: ScoredRows, counts: Floats) -> Resampled:
    numbers: Resampled = {}
    by_bins: dict[Bins, list[Floats]] = {bins: [] for bins in ENCE_BINS}
    for column in range(len(EDGES)):
        kept = np.flatnonzero(rows["present"][:, column])
        variances, squares = rows["variances"][kept, column], rows["squares"][kept, column]
        table, of_edge = SortedColumns(np.sqrt(variances), [variances, squares]), counts[:, kept]
        for bins, found in by_bins.items():
            found.append(ence_of_sums(*table.sums(bins, of_edge)))
    for bins, found in by_bins.items():
        edges = np.stack(found, axis=1)
        numbers[full_name("ENCE", bins=bins)] = means_of_defined(edges)
        numbers |= _name_edges(full_name("ENCE", bins=bins), edges)
    return numbers


def _ence_columns() -> list[Column]:
    columns = []
    for bins in ENCE_BINS:
        heading, hint = "ENCE" if bins == ENCE_BINS[0] else None, f"|RMSE - RMV| / RMV, mean of edges; {bins.words}"
        columns += _edge_columns(full_name("ENCE", bins=bins), "low", "plain", heading=heading, hint=f"{hint}; {PAIRS}")
    return columns


ENCE = measure_of_rows(
    "ence",
    _ence_columns(),
    pair_rows(
        lambda pairs: {
            "variances": pairs.variances,
            "squares": np.square(pairs.residuals),
            "present": with_sigma(pairs),
        }
    ),
    _ence,
    notes=cut_off(notes_on_edges),
)


def relative_edges(pairs: MatchedPairs) -> tuple[Floats, Floats, Bools]:
    """Return std / side, |r| / side and which edges have both, (K, 4) each.

    The side is the width for x edges and the height for y edges. In pixels, errors grow with the box, so any std that
    grows with the box would appear informative.
    """
    sides = pairs.sides[:, [0, 1, 0, 1]]
    present = with_sigma(pairs) & (sides > 0)
    over = np.where(present, sides, 1.0)
    return _round_to_digits(np.sqrt(pairs.variances) / over), np.abs(pairs.residuals) / over, present


def _round_to_digits(values: Floats) -> Floats:
    """Return numbers rounded to 10 digits, so that rounding does not split a constant fraction of the side."""
    digits = 10.0 ** (9 - np.floor(np.log10(np.where(values > 0, values, 1.0))))
    return np.asarray(np.round(values * digits) / digits)


def _sense_rows(pairs: MatchedPairs) -> Mapping[str, npt.NDArray[Any]]:
    sigmas, errors, present = relative_edges(pairs)
    return {"sigmas": sigmas, "errors": errors, "present": present}


def _sense_measure(
    name: str, key: str, prepare: Callable[[Floats, Floats], Counted], better: Better, hint: str
) -> Measure:
    def numbers(rows: ScoredRows, counts: Floats) -> Resampled:
        def of(present: Bools) -> Floats:
            pair, edge = np.nonzero(present)
            return prepare(rows["sigmas"][pair, edge], rows["errors"][pair, edge])(counts[:, pair])

        present = rows["present"]
        single = [of(present & (np.arange(len(EDGES)) == column)) for column in range(len(EDGES))]
        return {key: of(present), **_name_edges(key, np.stack(single, axis=1))}

    columns = _edge_columns(key, better, "plain", heading=key, hint=f"{hint}; {PAIRS}")
    return measure_of_rows(name, columns, pair_rows(_sense_rows), numbers, notes=notes_on_edges)


AUSE = _sense_measure("ause", "AUSE", prepare_ause, "low", "0: std/side ranks errors perfectly, 1: uninformative")

SPEARMAN = _sense_measure(
    "spearman", "Spearman", prepare_spearman, "high", "rank correlation of std/side and |error|/side of edges"
)
