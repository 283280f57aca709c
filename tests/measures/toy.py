"""A measure that nobody needs: all that it takes to add one, but for its line in the registry."""

from __future__ import annotations

import math
from functools import partial

from probox.measures.measure import Column, Judged, Measure, Summary
from probox.measures.pdq.pdq_measure import by_class
from probox.tables.results import Verdict


def toy_summary(judged: Judged) -> Summary:
    """Return the mean score of the true positives, and the highest."""
    scores = judged.detections.scores[judged.detections.verdicts == Verdict.TP]
    return {"hit_score": float(scores.mean()), "top_score": float(scores.max())} if len(scores) else NOTHING


NOTHING = {"hit_score": math.nan, "top_score": math.nan}

TOY = Measure(
    name="toy",
    needs=frozenset({"pairs"}),
    columns=(
        Column(key="hit_score", heading="Hit", unit="plain", better="low", hint="mean score of true positives"),
        Column(key="top_score"),
    ),
    summary=toy_summary,
    per_class=partial(by_class, toy_summary),
)
