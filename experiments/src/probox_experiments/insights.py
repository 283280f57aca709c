"""The four insights that Hall et al. (2020) draw from their Table 1, judged on other detectors.

Each is a set of statements with a limit that was taken from the paper's own table, so that they can fail.

>>> from probox import evaluate
>>> from probox.demo import make_demo
>>> demo = make_demo()
>>> sure, unsure = (evaluate(demo.truth, demo.detectors[name]) for name in ("deterministic", "probabilistic"))
>>> judged = judge_insights({"demo": {"plain": sure, "probabilistic": unsure}}, thresholds=(0.5, 0.3), replicates=100)
>>> judged["3"][0].holds, judged["3"][0].measured
(True, 'spatial 31.6 to 31.6 %, label 80.3 to 80.3 %')
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

from probox.analysis.comparison import Difference, compare
from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox_experiments.claims import Claim

PLAIN = "plain"
"""The variant that claims to be certain."""
CONSTANT = "constant"
"""The variant with one sigma for all corners, the control."""

SIMILAR = {"mAP": 0.019, "moLRP": 0.013}
"""What these may differ by to be "very similar": the paper's largest gaps within its pairs are those of FRCNN X+FPN and
probFRCNN, mAP 37.4 and 35.5, and of SSD-300 and MC-Dropout SSD, mLRP 14.3 and 15.6."""
UNAFFECTED = 0.031
"""What moLRP may change by to be "not affected much": the paper's largest change is YOLOv3's, 30.8 to 27.7."""
WEAK = (0.051, 0.176)
"""The paper's plain detectors have spatial qualities from 5.1 to 17.6 %."""

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
        """Return how it is called in sentences."""
        return f"{self.detector}, {self.variant} ({self.threshold:g})"

    def value(self, key: str) -> float:
        """Return a number of its summary."""
        return float(self.evaluation.summary()[key])


def judge_insights(
    results: Results, *, thresholds: tuple[float, float] = (0.5, 0.05), replicates: int = 1000, seed: int = 0
) -> dict[str, list[Claim]]:
    """Return the paper's insights 1 to 4, each as statements that hold here or do not.

    Parameters
    ----------
    results : mapping of detector to mapping of variant to Evaluation
        Of one truth, with PDQ, mAP and LRP, all detections down to the lower threshold. The variant ``plain`` has boxes
        without covariances; ``constant``, the control, is left out where it is not given; all others are
        probabilistic.
    thresholds : (high, low)
        Label thresholds of the table.
    replicates, seed : int
        Of the intervals: images are drawn anew, the same for both sides of a difference.
    """
    for detector, variants in results.items():
        if PLAIN not in variants:
            raise InputError(f"expected a result called {PLAIN!r} of {detector}", remedy="name the one without sigmas")
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
    """Insight 1: mAP and moLRP can't tell probabilistic detectors from plain ones, PDQ can."""
    own = [row for row in rows if row.variant not in (PLAIN, CONSTANT)]
    if not own:
        return []
    plain, constant = (
        {row.name: difference(row, beside) for row in own if (beside := _find(rows, row, variant))}
        for variant in (PLAIN, CONSTANT)
    )
    claims = [
        _within("Probabilistic and plain have very similar mAP", plain, "mAP", SIMILAR["mAP"]),
        _within("Probabilistic and plain have very similar moLRP", plain, "moLRP", SIMILAR["moLRP"]),
        _above("PDQ of the probabilistic is higher than that of the plain", plain, "PDQ"),
        _above("Spatial quality of the probabilistic is higher than that of the plain", plain, "spatial"),
        _above("Foreground quality is higher, too", plain, "foreground"),
        _above("Background quality is higher, too", plain, "background"),
    ]
    if constant:
        claims.append(_above("PDQ is higher than that of one constant sigma on the plain boxes", constant, "PDQ"))
    return [*claims, *_better_base(rows, own)]


def _better_base(rows: Sequence[Row], own: Sequence[Row]) -> Iterator[Claim]:
    """The paper explains probFRCNN's lead over MC-Dropout SSD by its base network: does the better base always lead?"""
    agree, against = 0, []
    base = {row.name: plain.value("mAP") for row in own if (plain := _find(rows, row, PLAIN))}
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
        "every pair of different base networks, plain mAP at the same threshold deciding",
        {"agree": agree, "pairs": pairs},
        "how sigmas are made, and how many doubtful boxes are kept, count beside the base network",
    )


def _label_and_place(rows: Sequence[Row]) -> list[Claim]:
    """Insight 2: the detector with the best labels (YOLOv3) is the worst at placing."""
    plain = [row for row in rows if row.variant == PLAIN]
    names = {row.detector for row in plain}
    if len(names) < 2:
        return []
    shown, holds = [], True
    for threshold in dict.fromkeys(row.threshold for row in plain):
        here = [row for row in plain if row.threshold == threshold]
        labels, places = max(here, key=lambda row: row.value("label")), min(here, key=lambda row: row.value("spatial"))
        holds &= labels.detector == places.detector
        shown.append(f"at {threshold:g} the best labels are {labels.detector}'s ({_pc(labels, 'label')}), the worst "
                     f"places {places.detector}'s ({_pc(places, 'spatial')})")  # fmt: skip
    return [
        Claim(
            "The plain detector with the highest label quality has the lowest spatial quality",
            holds,
            "; ".join(shown),
            "the same detector at each threshold",
            explanation="one detector of the paper, YOLOv3, is like that; it is no law",
        )
    ]


def _weak_places(rows: Sequence[Row]) -> list[Claim]:
    """Insight 3: plain detectors place boxes with low spatial quality, and label them well."""
    plain = [row for row in rows if row.variant == PLAIN]
    places, labels = ([row.value(key) for row in plain] for key in ("spatial", "label"))
    span = {"lowest spatial": min(places), "highest spatial": max(places)}
    return [
        Claim(
            "Plain boxes: spatial quality lies below label quality",
            all(place < label for place, label in zip(places, labels, strict=True)),
            f"spatial {_span(places)}, label {_span(labels)}",
            "below in every row",
            span | {"lowest label": min(labels), "highest label": max(labels)},
        ),
        Claim(
            "Plain boxes: spatial quality is as low as the paper's",
            max(places) <= WEAK[1],
            _span(places),
            f"at most {100 * WEAK[1]:.1f} %, the paper's highest (its lowest is {100 * WEAK[0]:.1f} %)",
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
            f"From {high:g} to {low:g} false positives multiply",
            min(more) > 1,
            f"{min(more):.1f} to {max(more):.1f} times",
            "more than before in every row",
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
        f"{kept} of {len(found)} rows; furthest: {name}, {_points(worst.value)} "
        f"({_points(worst.low)} to {_points(worst.high)}) points",
        f"at most {100 * limit:.1f} points, the paper's own largest",
        {name: each.value for name, each in found.items()},
    )


def _above(claim: str, changes: Mapping[str, Mapping[str, Difference]], key: str, sign: int = 1) -> Claim:
    """Return the claim that a number is surely higher (with `sign` -1: lower) in every row."""
    found = {name: change[key].difference for name, change in changes.items()}
    name, worst = min(found.items(), key=lambda entry: sign * entry[1].value)
    sure = sum((each.low if sign > 0 else -each.high) > 0 for each in found.values())
    values = [each.value for each in found.values()]
    return Claim(
        claim,
        sure == len(found),
        f"{sure} of {len(found)} rows surely; {_points(min(values))} to {_points(max(values))} points; least: {name}, "
        f"{_points(worst.value)} ({_points(worst.low)} to {_points(worst.high)})",
        "95 % intervals on one side of 0 in every row",
        {name: each.value for name, each in found.items()},
    )


def _find(rows: Sequence[Row], row: Row, variant: str) -> Row | None:
    """Return the same detector's row of another variant, at the same threshold."""
    same = (row.detector, variant, row.threshold)
    return next((other for other in rows if (other.detector, other.variant, other.threshold) == same), None)


def _points(value: float) -> str:
    return f"{100 * value:+.1f}"


def _pc(row: Row, key: str) -> str:
    return f"{100 * row.value(key):.1f} %"


def _span(values: Sequence[float]) -> str:
    return f"{100 * min(values):.1f} to {100 * max(values):.1f} %"
