"""Measures of matched pairs as a whole: NLL, energy score, NEES, Brier score, ignorance."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from probox.measures.matched import MatchedPairs
from probox.measures.measure import Column, Evaluated, Resampled
from probox.measures.scoring.box_scores import energy_scores, negative_log_likelihoods
from probox.measures.scoring.covariances import squared_distances
from probox.measures.scoring.labels import brier_scores, ignorances, remarks_of_scores, without_background
from probox.measures.scoring.pair_rows import (
    PAIRS,
    cut_off,
    pair_rows,
    remarks_of_boxes,
    remarks_of_distances,
    remarks_of_labels,
    with_density,
)
from probox.measures.scoring.rows import Rows, counted_mean, measure_of_rows

__all__ = ["BRIER", "ENERGY", "IGNORANCE", "NEES", "NLL"]

FloatArray = npt.NDArray[np.float64]


def _nll_rows(pairs: MatchedPairs) -> Mapping[str, FloatArray]:
    return {"nll": negative_log_likelihoods(pairs.residuals, pairs.covariances)}


def _nll(rows: Rows, counts: FloatArray) -> Resampled:
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
    remarks=remarks_of_boxes,
)

ENERGY = measure_of_rows(
    "energy",
    (Column(key="energy", heading="energy", unit="plain", symbol="px", better="low", hint=f"energy score; {PAIRS}"),),
    pair_rows(lambda pairs: {"energy": energy_scores(pairs.residuals, pairs.covariances)}),
    lambda rows, counts: {"energy": counted_mean(counts, rows["energy"][:, None])[:, 0]},
    needs={"boxes"},
    remarks=remarks_of_distances,
)


def _nees(rows: Rows, counts: FloatArray) -> Resampled:
    return {"NEES": counted_mean(counts, rows["distance"][:, None])[:, 0]}


NEES = measure_of_rows(
    "nees",
    (Column(key="NEES", heading="NEES", unit="plain", better=None, ideal=4, hint=f"above 4: overconfident; {PAIRS}"),),
    pair_rows(lambda pairs: {"distance": squared_distances(pairs.residuals, pairs.covariances)}, with_density),
    _nees,
    needs={"boxes"},
    remarks=cut_off(remarks_of_boxes),
)


def _has_labels(pairs: MatchedPairs) -> npt.NDArray[np.bool_]:
    return np.full(len(pairs), pairs.label_probs is not None)


def _brier_rows(evaluated: Evaluated) -> Rows:
    def columns(pairs: MatchedPairs) -> Mapping[str, FloatArray]:
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
    remarks=lambda evaluated: [*remarks_of_scores(evaluated), *remarks_of_labels(evaluated)],
)


def _ignorance_rows(pairs: MatchedPairs) -> Mapping[str, FloatArray]:
    return {"ignorance": np.zeros(0) if pairs.label_probs is None else ignorances(pairs.label_probs, pairs.labels)}


def _ignorance(rows: Rows, counts: FloatArray) -> Resampled:
    values = rows["ignorance"][:, None]
    possible = np.isfinite(values)
    mean = counted_mean(counts, values, possible)[:, 0]
    impossible = counts[:, ~possible[:, 0]].sum(axis=1)
    return {
        "ignorance": np.where(impossible > 0, np.inf, mean),
        "ignorance_possible": mean,
        "ignorance_impossible": impossible,
    }


def _remarks_of_ignorance(evaluated: Evaluated) -> list[str]:
    said = remarks_of_labels(evaluated)
    pairs = evaluated.matched_pairs
    if pairs.label_probs is not None:
        impossible = int(np.isinf(ignorances(pairs.label_probs, pairs.labels)).sum())
        if impossible:
            said.append(
                f"{impossible:,} of {len(pairs):,} pairs give the true class a probability of 0: their ignorance is "
                "infinite, and so is the mean; ignorance_possible is that of the others"
            )
    return said


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
    remarks=_remarks_of_ignorance,
)
