"""Measures of whether sigmas know which errors are large: AUSE and Spearman's correlation.

Both compare sigma with |r|, each over the side of the box that it moves: the width for x, the height for y. In pixels
a large box has large errors, and any sigma that grows with the box would look informative.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.measures.matched import EDGES, MatchedPairs
from probox.measures.measure import Better, Column, Measure, Resampled, Unit
from probox.measures.scoring.informative import prepared_ause, prepared_spearman
from probox.measures.scoring.pair_rows import PAIRS, pair_rows, remarks_of_edges, with_sigma
from probox.measures.scoring.rows import Rows, measure_of_rows

__all__ = ["AUSE", "SPEARMAN", "relative_edges"]

FloatArray = npt.NDArray[np.float64]


def relative_edges(pairs: MatchedPairs) -> tuple[FloatArray, FloatArray, npt.NDArray[np.bool_]]:
    """Return sigma / side, |r| / side and which edges have both, (K, 4) each."""
    sides = pairs.sides[:, [0, 1, 0, 1]]
    present = with_sigma(pairs) & (sides > 0)
    over = np.where(present, sides, 1.0)
    return _rounded(np.sqrt(pairs.variances) / over), np.abs(pairs.residuals) / over, present


def _rounded(values: FloatArray) -> FloatArray:
    """Return numbers to 10 digits: a constant share of the side is one value, whatever its last bits say."""
    digits = 10.0 ** (9 - np.floor(np.log10(np.where(values > 0, values, 1.0))))
    return np.asarray(np.round(values * digits) / digits)


def _rows(pairs: MatchedPairs) -> Mapping[str, npt.NDArray[Any]]:
    sigmas, errors, present = relative_edges(pairs)
    return {"sigmas": sigmas, "errors": errors, "present": present}


def _measure(
    name: str,
    key: str,
    prepare: Callable[[FloatArray, FloatArray], Callable[[FloatArray], FloatArray]],
    better: Better,
    hint: str,
) -> Measure:
    unit: Unit = "plain"

    def numbers(rows: Rows, counts: FloatArray) -> Resampled:
        def of(present: npt.NDArray[np.bool_]) -> FloatArray:
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
        pair_rows(_rows),
        numbers,
        needs={"boxes"},
        remarks=remarks_of_edges,
    )


AUSE = _measure(
    "ause", "AUSE", prepared_ause, "low", "0: sigma/side orders |r|/side of edges perfectly, 1: it knows nothing"
)

SPEARMAN = _measure(
    "spearman", "Spearman", prepared_spearman, "high", "rank correlation of sigma/side and |r|/side of edges"
)
