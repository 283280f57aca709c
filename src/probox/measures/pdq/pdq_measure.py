"""PDQ as a metric: its values from outcomes and qualities, for all images, groups, single and resampled images."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from probox.convention import Convention
from probox.measures.boxes.matching import SIZES, in_area_ranges
from probox.measures.measure import (
    Column,
    Evaluated,
    Groups,
    ImageColumns,
    Judged,
    Measure,
    Resampled,
    Summary,
    Weights,
    groups_by_label,
    weighted_sums,
)
from probox.support.types import Bools, Floats, Ints
from probox.tables.results import QUALITIES, DetectionTable, ObjectTable, Verdict


@dataclasses.dataclass(frozen=True, eq=False)
class _JudgedPart:
    """Some of an evaluation's objects and detections, as input of `pdq_summary`."""

    convention: Convention
    detections: DetectionTable
    objects: ObjectTable


def by_class(summary: Callable[[Judged], Summary], evaluated: Evaluated) -> Groups:
    """Return the summary of each class; a false positive counts for its predicted class."""
    found, there = evaluated.detections.labels, evaluated.objects.labels
    return groups_by_label(
        evaluated.classes,
        np.concatenate([found, there]),
        lambda label: summary(_part(evaluated, found == label, there == label)),
    )


def by_size(summary: Callable[[Judged], Summary], evaluated: Evaluated) -> Groups:
    """Return the summary of small, medium and large objects; a false positive counts by the area of its own box.

    Sizes are those of the convention, both ends included: by default an object of exactly 32 x 32 pixels is small and
    medium.
    """
    width, height = evaluated.detections.extents.T
    ranges = evaluated.convention.area_ranges
    found, there = in_area_ranges(width * height, ranges), in_area_ranges(evaluated.objects.areas, ranges)
    return {name: summary(_part(evaluated, *inside)) for name, *inside in zip(SIZES[1:], found, there, strict=True)}


def _part(evaluated: Evaluated, found: Bools, there: Bools) -> _JudgedPart:
    """Return some objects with their matches, and the unmatched detections in `found`."""
    partner = evaluated.detections.partners
    chosen = np.where(partner >= 0, there[partner] if len(there) else False, found)
    return _JudgedPart(
        evaluated.convention,
        evaluated.detections.take(np.flatnonzero(chosen)),
        evaluated.objects.take(np.flatnonzero(there)),
    )


def sums_per_image(evaluated: Evaluated) -> dict[str, Floats]:
    """Return the sums of PDQ for each image: qualities of true positives, TP, FP, FN and the weight of FP."""
    detections, objects, images = evaluated.detections, evaluated.objects, len(evaluated.dataset)
    hit, wrong = detections.verdicts == Verdict.TP, detections.verdicts == Verdict.FP
    right, false = detections.image_rows[hit], detections.image_rows[wrong]

    def add_up(rows: Ints, values: npt.NDArray[np.floating] | None = None) -> Floats:
        return np.bincount(rows, values, images).astype(np.float64)

    sums = {name: add_up(right, detections.quality(name)[hit]) for name in QUALITIES}
    sums |= {"TP": add_up(right), "FP": add_up(false), "FN": add_up(objects.image_rows[objects.verdicts == Verdict.FN])}
    by_confidence = evaluated.convention.confidence_denominator
    sums["cost"] = add_up(false, detections.costs[wrong]) if by_confidence else sums["FP"]
    return sums


def _ratios(sums: dict[str, Floats]) -> dict[str, Floats]:
    with np.errstate(invalid="ignore", divide="ignore"):
        pdq = sums["pPDQ"] / (sums["TP"] + sums["cost"] + sums["FN"])
        return {"PDQ": pdq, **{name: sums[name] / sums["TP"] for name in QUALITIES}}


def pdq_per_image(evaluated: Evaluated) -> ImageColumns:
    """Return PDQ and its parts for each image, and the sums of qualities, which are additive over images."""
    sums = evaluated.image_sums
    counts = {name: sums[name].astype(np.int64) for name in ("TP", "FP", "FN")}
    return {**_ratios(sums), **counts, **{f"sum_{name}": sums[name] for name in QUALITIES}}


def pdq_resampled(evaluated: Evaluated, weights: Weights) -> Resampled:
    """Return PDQ and its parts for each row of weights, the number of times each image counts."""
    sums = evaluated.image_sums
    total = dict(zip(sums, weighted_sums(weights, list(sums.values())), strict=True))
    return _ratios(total) | {name: total[name] for name in ("TP", "FP", "FN")}


def pdq_summary(judged: Judged) -> Summary:
    """Return PDQ, the mean qualities of true positives, and the counts.

        PDQ = sum of pPDQ over true positives / (TP + FP + FN)

    A ratio with a denominator of zero is NaN.
    """
    detections, objects = judged.detections, judged.objects
    hit = detections.verdicts == Verdict.TP
    wrong = detections.verdicts == Verdict.FP
    tp, fp, fn = int(hit.sum()), int(wrong.sum()), int((objects.verdicts == Verdict.FN).sum())
    # fsum is exact, so the result does not depend on the order of rows.
    sums = {name: math.fsum(detections.quality(name)[hit]) for name in QUALITIES}
    false = math.fsum(detections.costs[wrong].tolist()) if judged.convention.confidence_denominator else fp
    counted = tp + false + fn
    summary = {"PDQ": sums["pPDQ"] / counted if counted else math.nan}
    summary.update({name: sums[name] / tp if tp else math.nan for name in QUALITIES})
    summary.update({"TP": tp, "FP": fp, "FN": fn})
    return summary


PDQ = Measure(
    name="pdq",
    needs=frozenset({"pairs"}),
    columns=(
        Column(key="PDQ", heading="PDQ", hint="probability-based detection quality"),
        Column(key="pPDQ", heading="pPDQ", hint="mean pairwise quality of true positives"),
        Column(key="spatial", heading="Sp", hint="mean spatial quality of true positives"),
        Column(key="label", heading="Lbl", hint="mean label quality of true positives"),
        Column(key="foreground", heading="FG", hint="mean foreground quality of true positives"),
        Column(key="background", heading="BG", hint="mean background quality of true positives"),
        Column(key="TP", heading="TP", unit="count", hint="true positives"),
        Column(key="FP", heading="FP", unit="count", better="low", hint="false positives"),
        Column(key="FN", heading="FN", unit="count", better="low", hint="missed objects"),
    ),
    summary=pdq_summary,
    per_class=partial(by_class, pdq_summary),
    per_size=partial(by_size, pdq_summary),
    per_image=pdq_per_image,
    resampled=pdq_resampled,
)
