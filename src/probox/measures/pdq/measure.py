"""PDQ as a measure: from verdicts and qualities to its numbers."""

from __future__ import annotations

import math
from functools import partial

from probox.measures.groups import by_class, by_size
from probox.measures.measure import Column, Judged, Measure, Summary
from probox.measures.pdq.resampling import pdq_per_image, pdq_resampled
from probox.tables.results import QUALITIES, Verdict

__all__ = ["PDQ", "pdq_summary"]


def pdq_summary(judged: Judged) -> Summary:
    """Return PDQ, the averages of the qualities over true positives, and the counts.

    PDQ is the sum of the true positives' pPDQ over TP + FP + FN. What divides by zero is NaN.
    """
    detections, objects = judged.detections, judged.objects
    hit = detections.verdicts == Verdict.TP
    wrong = detections.verdicts == Verdict.FP
    tp, fp, fn = int(hit.sum()), int(wrong.sum()), int((objects.verdicts == Verdict.FN).sum())
    # fsum is exact, so the order of rows cannot change a bit of the result.
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
