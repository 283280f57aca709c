"""Measures of matched pairs: boxes, labels, edges, and whether their std ranks errors.

A number without an edge in its name is about all edges together, unless it says joint: then it is about boxes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.measures.matched import EDGES, MatchedPairs
from probox.measures.measure import Better, Column, Evaluated, Measure, Resampled, Unit, weighted_quantile
from probox.measures.scoring.calibration_metrics import (
    MQCE_LEVELS,
    ONE_STD,
    PIT_BINS,
    SHARES,
    Bins,
    SortedColumns,
    box_levels,
    ence_of_sums,
    pit_distance,
    pit_values,
)
from probox.measures.scoring.ranking_metrics import prepare_ause, prepare_spearman
from probox.measures.scoring.score_rows import (
    PAIRS,
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
    without_background,
)
from probox.notes import Note
from probox.support.types import Bools, Floats


def _nll_rows(pairs: MatchedPairs) -> Mapping[str, Floats]:
    return {"nll": negative_log_likelihoods(pairs.residuals, pairs.covariances)}


def _nll(rows: ScoredRows, counts: Floats) -> Resampled:
    return {"NLL": counted_mean(counts, rows["nll"][:, None])[:, 0], "NLL_pairs": counts.sum(axis=1)}


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
    pair_rows(_nll_rows, with_density),
    _nll,
    needs={"boxes"},
    notes=notes_on_boxes,
)

ENERGY = measure_of_rows(
    "energy",
    (Column(key="energy", heading="energy", unit="plain", symbol="px", better="low", hint=f"energy score; {PAIRS}"),),
    pair_rows(lambda pairs: {"energy": energy_scores(pairs.residuals, pairs.covariances)}),
    lambda rows, counts: {"energy": counted_mean(counts, rows["energy"][:, None])[:, 0]},
    needs={"boxes"},
    notes=notes_on_distances,
)


def _nees(rows: ScoredRows, counts: Floats) -> Resampled:
    return {"NEES": counted_mean(counts, rows["distance"][:, None])[:, 0]}


NEES = measure_of_rows(
    "nees",
    (Column(key="NEES", heading="NEES", unit="plain", better=None, ideal=4, hint=f"above 4: overconfident; {PAIRS}"),),
    pair_rows(lambda pairs: {"distance": squared_distances(pairs.residuals, pairs.covariances)}, with_density),
    _nees,
    needs={"boxes"},
    notes=cut_off(notes_on_boxes),
)


def _has_labels(pairs: MatchedPairs) -> Bools:
    return np.full(len(pairs), pairs.label_probs is not None)


def _brier_rows(evaluated: Evaluated) -> ScoredRows:
    def columns(pairs: MatchedPairs) -> Mapping[str, Floats]:
        if pairs.label_probs is None:
            return {"brier": np.zeros(0)}
        return {"brier": brier_scores(without_background(pairs.label_probs, evaluated.classes), pairs.labels)}

    return pair_rows(columns, _has_labels)(evaluated)


BRIER = measure_of_rows(
    "brier",
    (Column(key="Brier", heading="Brier", unit="plain", better="low", hint=f"of the label, 0 to 2; {PAIRS}"),),
    _brier_rows,
    lambda rows, counts: {"Brier": counted_mean(counts, rows["brier"][:, None])[:, 0]},
    needs={"boxes", "labels"},
    notes=lambda evaluated: [*notes_on_scores(evaluated), *notes_on_labels(evaluated)],
)


def _ignorance_rows(pairs: MatchedPairs) -> Mapping[str, Floats]:
    return {"ignorance": np.zeros(0) if pairs.label_probs is None else ignorances(pairs.label_probs, pairs.labels)}


def _ignorance(rows: ScoredRows, counts: Floats) -> Resampled:
    values = rows["ignorance"][:, None]
    possible = np.isfinite(values)
    mean = counted_mean(counts, values, possible)[:, 0]
    impossible = counts[:, ~possible[:, 0]].sum(axis=1)
    return {
        "ignorance": np.where(impossible > 0, np.inf, mean),
        "ignorance_possible": mean,
        "ignorance_impossible": impossible,
    }


def _notes_on_ignorance(evaluated: Evaluated) -> list[Note]:
    notes = notes_on_labels(evaluated)
    pairs = evaluated.matched_pairs
    if pairs.label_probs is not None:
        impossible = int(np.isinf(ignorances(pairs.label_probs, pairs.labels)).sum())
        if impossible:
            notes.append(Note("impossible-classes", impossible, total=len(pairs)))
    return notes


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
    pair_rows(_ignorance_rows, _has_labels),
    _ignorance,
    needs={"boxes", "labels"},
    notes=_notes_on_ignorance,
)

ENCE_BINS = (Bins(10, "mass"), Bins(5))
"""The first is the measure's own; equal width puts nearly all sigmas into one bin where a few are huge."""


def _edge_columns(key: str, unit: Unit, better: Better | None) -> tuple[Column, ...]:
    """Return the columns of single edges, which are in JSON alone."""
    return tuple(Column(key=f"{key}_{edge}", unit=unit, better=better) for edge in EDGES)


def _by_edge(key: str, counts: Floats, values: Floats, present: Bools) -> Resampled:
    """Return the mean over all edges, and over each."""
    pooled = _pooled_mean(counts, values, present)
    return {key: pooled, **_name_edges(key, counted_mean(counts, values, present))}


def _name_edges(key: str, values: Floats) -> Resampled:
    return {f"{key}_{edge}": values[:, column] for column, edge in enumerate(EDGES)}


def _pooled_mean(counts: Floats, values: Floats, present: Bools) -> Floats:
    """Return the mean over the edges that are present, of all pairs together."""
    sums = np.einsum("rk,k->r", counts, np.where(present, values, 0.0).sum(axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: Floats = sums / np.einsum("rk,k->r", counts, present.sum(axis=1).astype(np.float64))
    return mean


# --- CRPS and sharpness: plain edges have them too ---


CRPS = measure_of_rows(
    "crps",
    (
        Column(key="CRPS", heading="CRPS", unit="plain", symbol="px", better="low", hint=f"of edges; {PAIRS}"),
        *_edge_columns("CRPS", "plain", "low"),
    ),
    pair_rows(lambda pairs: {"crps": crps(pairs.residuals, np.sqrt(pairs.variances)), "present": ~pairs.truncated}),
    lambda rows, counts: _by_edge("CRPS", counts, rows["crps"], rows["present"]),
    needs={"boxes"},
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
        Column(
            key="sharpness",
            heading="sharpness",
            unit="plain",
            symbol="px",
            better=None,
            hint=f"root of mean variance; {PAIRS}",
        ),
        *_edge_columns("sharpness", "plain", None),
        Column(key="MPIW_90", unit="plain", better=None, hint="mean width of 90 % intervals, pixels"),
    ),
    pair_rows(lambda pairs: {"variances": pairs.variances, "present": ~pairs.truncated}),
    _sharpness,
    needs={"boxes"},
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
        numbers[f"{key}_joint"] = counted_mean(counts, joint[:, None], rows["dense"][:, None])[:, 0]
    z, present = rows["z"], rows["present"]
    numbers["z68"] = weighted_quantile(counts, np.nonzero(present)[0], np.abs(z[present]), ONE_STD)
    numbers["RMS_z"] = np.sqrt(_pooled_mean(counts, np.square(z), present))
    return numbers


def _coverage_columns() -> list[Column]:
    columns = []
    for share in sorted(SHARES, key=lambda share: share != 0.9):
        percent = f"{100 * share:.0f}"
        shown = share == 0.9
        key, hint = f"coverage_{percent}", f"edges inside their {percent} % interval; {PAIRS}, which cuts off the tail"
        columns.append(Column(key=key, heading=key if shown else None, better=None, ideal=share, hint=hint))
        columns += _edge_columns(key, "per cent", None)
        columns.append(Column(key=f"{key}_joint", better=None, hint=f"boxes inside their {percent} % ellipsoid"))
    hint = f"68% quantile of |z| of edges: 1 if calibrated, above if overconfident; {PAIRS}"
    columns.append(Column(key="z68", heading="coverage_z68", unit="plain", better=None, ideal=1, hint=hint))
    columns.append(Column(key="RMS_z", unit="plain", better=None, hint=f"root mean square of z of edges; {PAIRS}"))
    return columns


def _notes_on_levels(evaluated: Any) -> Sequence[Note]:
    return list(dict.fromkeys([*notes_on_boxes(evaluated), *notes_on_edges(evaluated)]))


COVERAGE = measure_of_rows(
    "coverage",
    _coverage_columns(),
    pair_rows(_level_rows),
    _coverage,
    needs={"boxes"},
    notes=cut_off(_notes_on_levels),
)


def _mqce(rows: ScoredRows, counts: Floats) -> Resampled:
    joint = (rows["joint"][:, None] <= MQCE_LEVELS).astype(np.float64)
    dense = np.repeat(rows["dense"][:, None], len(MQCE_LEVELS), axis=1)
    numbers = {"M-QCE": np.abs(counted_mean(counts, joint, dense) - MQCE_LEVELS).mean(axis=1)}
    for column, edge in enumerate(EDGES):
        inside = (rows["levels"][:, column, None] <= MQCE_LEVELS).astype(np.float64)
        present = np.repeat(rows["present"][:, column, None], len(MQCE_LEVELS), axis=1)
        gaps = np.abs(counted_mean(counts, inside, present) - MQCE_LEVELS)
        numbers[f"M-QCE_{edge}"] = gaps.mean(axis=1)
    return numbers


MQCE = measure_of_rows(
    "mqce",
    (
        Column(key="M-QCE", heading="M-QCE", better="low", hint=f"mean |coverage - share| of boxes; {PAIRS}"),
        *_edge_columns("M-QCE", "per cent", "low"),
    ),
    pair_rows(_level_rows),
    _mqce,
    needs={"boxes"},
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
        Column(
            key="PIT", heading="PIT", better="low", hint=f"share that is in the wrong of {PIT_BINS} PIT bins; {PAIRS}"
        ),
        *_edge_columns("PIT", "per cent", "low"),
        *_edge_columns("PIT_mean", "per cent", None),
        *(Column(key=f"PIT_bin{number + 1}", better=None) for number in range(PIT_BINS)),
    ),
    pair_rows(_pit_rows),
    _pit,
    needs={"boxes"},
    notes=cut_off(notes_on_edges),
)

# --- ENCE ---


def _ence_rows(pairs: MatchedPairs) -> Mapping[str, npt.NDArray[Any]]:
    return {"variances": pairs.variances, "squares": np.square(pairs.residuals), "present": with_sigma(pairs)}


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
        numbers[full_name("ENCE", bins=bins)] = _mean_of_edges(edges)
        numbers |= {full_name("ENCE", bins=bins, part=edge): edges[:, i] for i, edge in enumerate(EDGES)}
    return numbers


def _mean_of_edges(values: Floats) -> Floats:
    """Return the mean over edges that have any pair; NaN if none has."""
    some = ~np.isnan(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: Floats = np.where(some, values, 0.0).sum(axis=1) / some.sum(axis=1)
    return mean


def _ence_columns() -> list[Column]:
    columns = []
    for bins in ENCE_BINS:
        heading = "ENCE" if bins == ENCE_BINS[0] else None
        hint = f"|RMSE - RMV| / RMV, mean of edges; {bins.words}; {PAIRS}"
        columns.append(Column(key=full_name("ENCE", bins=bins), heading=heading, unit="plain", better="low", hint=hint))
        columns += _edge_columns(full_name("ENCE", bins=bins), "plain", "low")
    return columns


ENCE = measure_of_rows(
    "ence",
    _ence_columns(),
    pair_rows(_ence_rows),
    _ence,
    needs={"boxes"},
    notes=cut_off(notes_on_edges),
)


def relative_edges(pairs: MatchedPairs) -> tuple[Floats, Floats, Bools]:
    """Return sigma / side, |r| / side and which edges have both, (K, 4) each.

    The side is the one that the edge moves: the width for x, the height for y. In pixels a large box has large errors,
    and any sigma that grows with the box would look informative.
    """
    sides = pairs.sides[:, [0, 1, 0, 1]]
    present = with_sigma(pairs) & (sides > 0)
    over = np.where(present, sides, 1.0)
    return _round_to_digits(np.sqrt(pairs.variances) / over), np.abs(pairs.residuals) / over, present


def _round_to_digits(values: Floats) -> Floats:
    """Return numbers to 10 digits: a constant share of the side is one value, whatever its last bits say."""
    digits = 10.0 ** (9 - np.floor(np.log10(np.where(values > 0, values, 1.0))))
    return np.asarray(np.round(values * digits) / digits)


def _sense_rows(pairs: MatchedPairs) -> Mapping[str, npt.NDArray[Any]]:
    sigmas, errors, present = relative_edges(pairs)
    return {"sigmas": sigmas, "errors": errors, "present": present}


def _sense_measure(
    name: str,
    key: str,
    prepare: Callable[[Floats, Floats], Callable[[Floats], Floats]],
    better: Better,
    hint: str,
) -> Measure:
    unit: Unit = "plain"

    def numbers(rows: ScoredRows, counts: Floats) -> Resampled:
        def of(present: Bools) -> Floats:
            pair, edge = np.nonzero(present)
            return prepare(rows["sigmas"][pair, edge], rows["errors"][pair, edge])(counts[:, pair])

        present = rows["present"]
        single = [present & (np.arange(len(EDGES)) == column) for column in range(len(EDGES))]
        return {key: of(present), **{f"{key}_{edge}": of(one) for edge, one in zip(EDGES, single, strict=True)}}

    return measure_of_rows(
        name,
        (
            Column(key=key, heading=key, unit=unit, better=better, hint=f"{hint}; {PAIRS}"),
            *(Column(key=f"{key}_{edge}", unit=unit, better=better) for edge in EDGES),
        ),
        pair_rows(_sense_rows),
        numbers,
        needs={"boxes"},
        notes=notes_on_edges,
    )


AUSE = _sense_measure(
    "ause", "AUSE", prepare_ause, "low", "0: sigma/side orders |r|/side of edges perfectly, 1: it knows nothing"
)

SPEARMAN = _sense_measure(
    "spearman", "Spearman", prepare_spearman, "high", "rank correlation of sigma/side and |r|/side of edges"
)
