"""What was foreseen of reported label probabilities, and what became of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from probox_experiments.beyond.properness.scenes import LOW, NAMED
from probox_experiments.claims import Claim, equals, not_measured
from probox_experiments.table import ResultTable, presets_in

__all__ = ["best_probability", "best_reports", "claims_of_labels"]

Floats = npt.NDArray[np.float64]


def best_probability(share: npt.ArrayLike) -> Floats:
    """Return the p that makes q sqrt(p) + (1 - q) sqrt(1 - p) most, for a class that is right with probability q."""
    q = np.asarray(share, dtype=np.float64)
    return np.asarray(q**2 / (q**2 + (1 - q) ** 2))


def claims_of_labels(table: ResultTable) -> list[Claim]:
    """Judge which reported probability PDQ, Brier score and ignorance ask for."""
    labels = table.where(study="label")
    rows, likelier = labels.where(named=NAMED[0]), labels.where(named=NAMED[1])
    q, p = labels["share"], labels["probability"]
    return [
        equals(
            "Of perfect boxes whose class is A with probability q, and reported with p, PDQ is q sqrt(p) + (1 - q) "
            "sqrt(1 - p)",
            labels,
            {"PDQ": q * np.sqrt(p) + (1 - q) * np.sqrt(1 - p)},
        ),
        _label_choice(
            "PDQ is best with p = q^2 / (q^2 + (1 - q)^2), not with q: it is not proper, and rewards overconfidence",
            rows,
            list(presets_in(rows).values()),
            best_probability,
            _price_of_honesty(rows),
        ),
        _label_choice("Brier score and ignorance are best with p = q", rows, ["Brier", "ignorance"], np.asarray),
        _label_choice(
            "Where pairs are sought among detections that name the object's class, and these name the likelier one, "
            "Brier score and ignorance are best with the surest p",
            likelier.take(likelier["share"] > 0.5),
            ["Brier", "ignorance"],
            lambda share: np.full(np.shape(share), likelier["probability"].max(initial=0.0)),
            "Objects of the other class are in no pair, so what is said of them costs nothing.",
        ),
    ]


def best_reports(rows: ResultTable, score: str) -> dict[float, float]:
    """Return the reported probability with the best score for each share."""
    sign = -1.0 if score in LOW else 1.0
    best = {}
    for share in np.unique(rows["share"]).tolist():
        one = rows.where(share=share)
        best[share] = float(one["probability"][np.argmax(sign * one[score])])
    return best


def _label_choice(
    words: str,
    rows: ResultTable,
    scores: Sequence[str],
    foreseen: Callable[[Floats], Floats],
    explanation: str = "",
) -> Claim:
    """Return the claim that scores are best with the foreseen probability, as far as the grid can tell."""
    grid = np.unique(rows["probability"])
    if len(grid) < 3 or not scores:
        return not_measured(words, "three probabilities or more")
    step = float(np.diff(grid).max())
    told, off = [], {}
    for score in scores:
        best = best_reports(rows, score)
        wanted = foreseen(np.array(list(best)))
        off[score] = float(np.abs(np.array(list(best.values())) - wanted).max())
        told.append(f"{score}: " + ", ".join(f"{p:g} for q = {q:g}" for q, p in best.items()))
    return Claim(
        words,
        all(distance <= step * (1 + 1e-9) for distance in off.values()),
        "; ".join(told),
        f"the foreseen p, at most a step of {step:.3g} off",
        {f"farthest off, {score}": distance for score, distance in off.items()},
        explanation,
    )


def _price_of_honesty(rows: ResultTable) -> str:
    """Return in words what reporting q costs at most, of the shares that are among the probabilities."""
    lost: dict[float, float] = {}
    for column in presets_in(rows).values():
        for share in np.unique(rows["share"]).tolist():
            one = rows.where(share=share)
            honest = one[column][np.isclose(one["probability"], share)]
            if len(honest):
                lost[share] = max(lost.get(share, 0.0), 1 - float(honest[0]) / float(one[column].max()))
    if not lost:
        return ""
    worst = max(lost, key=lambda share: lost[share])
    return f"Reporting q itself costs up to {100 * lost[worst]:.2g} % of PDQ, most where q is {worst:g}."
