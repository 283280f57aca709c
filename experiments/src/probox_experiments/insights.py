"""The four insights of Hall et al. (2020) from their Table 1, tested on other detectors.

Each insight is a set of statements with limits from the paper's table.

>>> from probox import evaluate
>>> from probox.demo import make_demo
>>> demo = make_demo()
>>> results = {name: evaluate(demo.truth, demo.detectors[name]) for name in ("deterministic", "probabilistic")}
>>> claims = judge_insights({"demo": results}, thresholds=(0.5, 0.3), replicates=100)
>>> claims["3"][0].holds, claims["3"][0].measured
(True, 'spatial 31.6 to 31.6%, label 80.3 to 80.3%')
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

from probox.analysis.comparison import Difference, compare
from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox_experiments.claims import Claim

DETERMINISTIC = "deterministic"
"""The variant without covariances."""
CONSTANT = "constant"
"""The variant with one standard deviation for all corners, the baseline."""

SIMILAR = {"mAP": 0.019, "moLRP": 0.013}
"""Limits of "very similar": the paper's largest differences within its pairs are those of FRCNN X+FPN and probFRCNN,
mAP 37.4 and 35.5, and of SSD-300 and MC-Dropout SSD, mLRP 14.3 and 15.6."""
UNAFFECTED = 0.031
"""Limit of "not affected much" for moLRP: the paper's largest change is YOLOv3's, 30.8 to 27.7."""
WEAK = (0.051, 0.176)
"""Range of spatial quality of the paper's deterministic detectors: 5.1 to 17.6%."""

Results = Mapping[str, Mapping[str, Evaluation]]


@dataclasses.dataclass(frozen=True)
class Row:
    """A detector's variant at a threshold."""

    detector: str
    variant: str
    threshold: float
    evaluation: Evaluation

    @property
    def name(self) -> str:
        """Name in sentences."""
        return f"{self.detector}, {self.variant} ({self.threshold:g})"

    def value(self, key: str) -> float:
        """Return a number of its summary."""
        return float(self.evaluation.summary()[key])


def judge_insights(
    results: Results, *, thresholds: tuple[float, float] = (0.5, 0.05), replicates: int = 1000, seed: int = 0
) -> dict[str, list[Claim]]:
    """Return the paper's insights 1 to 4, each as a list of claims.

    Parameters
    ----------
    results : mapping of detector to mapping of variant to Evaluation
        Results on one ground truth, with PDQ, mAP and LRP, and all detections above the lower threshold. Variant
        ``deterministic`` has boxes without covariances; ``constant``, the baseline, is optional; all others are
        probabilistic.
    thresholds : (high, low)
        Label thresholds of the table.
    replicates, seed : int
        Number of bootstrap replicates over images, and random seed.
    """
    for detector, variants in results.items():
        if DETERMINISTIC not in variants:
            raise InputError(
                f"expected a result called {DETERMINISTIC!r} of {detector}", remedy="add results without covariances"
            )
    rows = [
        Row(detector, variant, threshold, evaluation.at_threshold(threshold))
        for detector, variants in results.items()
        for variant, evaluation in variants.items()
        for threshold in thresholds
    ]

    def difference(first: Row, second: Row) -> Mapping[str, Difference]:
        pair = {"first": first.evaluation, "second": second.evaluation}
        return compare(pair, replicates=replicates, seed=seed, swaps=False).pairs[0].columns

    return {
        "1": _exposes_differences(rows, difference),
        "2": _label_and_place(rows),
        "3": _weak_places(rows),
        "4": _counts_false_positives(rows, thresholds, difference),
    }


Differ = Callable[[Row, Row], Mapping[str, Difference]]


def _exposes_differences(rows: Sequence[Row], difference: Differ) -> list[Claim]:
    """Insight 1: PDQ distinguishes probabilistic from deterministic detectors, mAP and moLRP do not."""
    own = [row for row in rows if row.variant not in (DETERMINISTIC, CONSTANT)]
    if not own:
        return []
    plain, constant = (
        {row.name: difference(row, beside) for row in own if (beside := _find(rows, row, variant))}
        for variant in (DETERMINISTIC, CONSTANT)
    )
    claims = [
        _within("Probabilistic and deterministic variants have very similar mAP", plain, "mAP", SIMILAR["mAP"]),
        _within("Probabilistic and deterministic variants have very similar moLRP", plain, "moLRP", SIMILAR["moLRP"]),
        _above("PDQ of the probabilistic variant is higher than that of the deterministic one", plain, "PDQ"),
        _above("Its spatial quality is higher", plain, "spatial"),
        _above("Its foreground quality is higher", plain, "foreground"),
        _above("Its background quality is higher", plain, "background"),
    ]
    if constant:
        claims.append(_above("PDQ is higher than that of the constant-variance baseline", constant, "PDQ"))
    return [*claims, *_better_base(rows, own)]


def _better_base(rows: Sequence[Row], own: Sequence[Row]) -> Iterator[Claim]:
    """Yield the claim that the better base network leads: the paper's explanation of probFRCNN's lead."""
    agree, against = 0, []
    base = {row.name: plain.value("mAP") for row in own if (plain := _find(rows, row, DETERMINISTIC))}
    for first, second in itertools.combinations(own, 2):
        if first.detector == second.detector or first.threshold != second.threshold:
            continue
        bases = base[first.name] - base[second.name]
        ahead = first.value("PDQ") - second.value("PDQ")
        if bases * ahead > 0:
            agree += 1
        else:
            worse, better = (second, first) if bases > 0 else (first, second)
            against.append((abs(ahead), f"{worse.name} {_pc(worse, 'PDQ')} leads {better.name} {_pc(better, 'PDQ')}"))
    pairs = agree + len(against)
    if not pairs:
        return
    worst = f"; {max(against)[1]}" if against else ""
    yield Claim(
        "Of two probabilistic detectors the one with the more accurate base network has the higher PDQ",
        not against,
        f"{agree} of {pairs} pairs{worst}",
        "every pair of different base networks, ordered by deterministic mAP at the same threshold",
        {"agree": agree, "pairs": pairs},
        "the uncertainty method and the number of low-score boxes matter besides the base network",
    )


def _label_and_place(rows: Sequence[Row]) -> list[Claim]:
    """Insight 2: the detector with the best labels (YOLOv3) has the worst spatial quality."""
    plain = [row for row in rows if row.variant == DETERMINISTIC]
    names = {row.detector for row in plain}
    if len(names) < 2:
        return []
    shown, holds = [], True
    for threshold in dict.fromkeys(row.threshold for row in plain):
        here = [row for row in plain if row.threshold == threshold]
        labels, places = max(here, key=lambda row: row.value("label")), min(here, key=lambda row: row.value("spatial"))
        holds &= labels.detector == places.detector
        shown.append(f"at {threshold:g} {labels.detector} has the best labels ({_pc(labels, 'label')}), "
                     f"{places.detector} the worst boxes ({_pc(places, 'spatial')})")  # fmt: skip
    return [
        Claim(
            "The deterministic detector with the highest label quality has the lowest spatial quality",
            holds,
            "; ".join(shown),
            "the same detector at each threshold",
            explanation="the paper observes this for one detector, YOLOv3",
        )
    ]


def _weak_places(rows: Sequence[Row]) -> list[Claim]:
    """Insight 3: deterministic detectors have low spatial and high label quality."""
    plain = [row for row in rows if row.variant == DETERMINISTIC]
    places, labels = ([row.value(key) for row in plain] for key in ("spatial", "label"))
    span = {"lowest spatial": min(places), "highest spatial": max(places)}
    return [
        Claim(
            "Deterministic boxes: spatial quality lies below label quality",
            all(place < label for place, label in zip(places, labels, strict=True)),
            f"spatial {_span(places)}, label {_span(labels)}",
            "below in every row",
            span | {"lowest label": min(labels), "highest label": max(labels)},
        ),
        Claim(
            "Deterministic boxes: spatial quality is as low as in the paper",
            max(places) <= WEAK[1],
            _span(places),
            f"at most {100 * WEAK[1]:.1f}%, the paper's highest (its lowest is {100 * WEAK[0]:.1f}%)",
            span,
        ),
    ]


def _counts_false_positives(rows: Sequence[Row], thresholds: tuple[float, float], difference: Differ) -> list[Claim]:
    """Insight 4: with a lower threshold mAP rises, moLRP stays, PDQ falls."""
    high, low = thresholds
    at = {(f"{row.detector}, {row.variant}", row.threshold): row for row in rows}
    changes = {name: difference(at[name, low], row) for (name, threshold), row in at.items() if threshold == high}
    more = [change["FP"].first.value / max(change["FP"].second.value, 1.0) for change in changes.values()]
    return [
        Claim(
            f"From {high:g} to {low:g} false positives increase",
            min(more) > 1,
            f"{min(more):.1f} to {max(more):.1f} times",
            "more in every row",
            {"least": min(more), "most": max(more)},
        ),
        _above(f"From {high:g} to {low:g} mAP rises", changes, "mAP"),
        _within(f"From {high:g} to {low:g} moLRP does not change much", changes, "moLRP", UNAFFECTED),
        _above(f"From {high:g} to {low:g} PDQ falls", changes, "PDQ", sign=-1),
    ]


def _within(claim: str, changes: Mapping[str, Mapping[str, Difference]], key: str, limit: float) -> Claim:
    """Return the claim that a number differs by at most `limit` in every row."""
    found = {name: change[key].difference for name, change in changes.items()}
    name, worst = max(found.items(), key=lambda entry: abs(entry[1].value))
    kept = sum(abs(each.value) <= limit for each in found.values())
    return Claim(
        claim,
        kept == len(found),
        f"{kept} of {len(found)} rows; largest: {name}, {_points(worst.value)} "
        f"({_points(worst.low)} to {_points(worst.high)}) points",
        f"at most {100 * limit:.1f} points, the paper's largest",
        {name: each.value for name, each in found.items()},
    )


def _above(claim: str, changes: Mapping[str, Mapping[str, Difference]], key: str, sign: int = 1) -> Claim:
    """Return the claim that a number is significantly higher (with `sign` -1: lower) in every row."""
    found = {name: change[key].difference for name, change in changes.items()}
    name, worst = min(found.items(), key=lambda entry: sign * entry[1].value)
    significant = sum((each.low if sign > 0 else -each.high) > 0 for each in found.values())
    values = [each.value for each in found.values()]
    return Claim(
        claim,
        significant == len(found),
        f"significant in {significant} of {len(found)} rows; {_points(min(values))} to {_points(max(values))} points; "
        f"least: {name}, {_points(worst.value)} ({_points(worst.low)} to {_points(worst.high)})",
        "95% intervals on one side of 0 in every row",
        {name: each.value for name, each in found.items()},
    )


def _find(rows: Sequence[Row], row: Row, variant: str) -> Row | None:
    """Return the same detector's row of another variant, at the same threshold."""
    same = (row.detector, variant, row.threshold)
    return next((other for other in rows if (other.detector, other.variant, other.threshold) == same), None)


def _points(value: float) -> str:
    return f"{100 * value:+.1f}"


def _pc(row: Row, key: str) -> str:
    return f"{100 * row.value(key):.1f}%"


def _span(values: Sequence[float]) -> str:
    return f"{100 * min(values):.1f} to {100 * max(values):.1f}%"
