"""Who matched whom, and what that makes of every object and detection."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from probox.convention import Convention
from probox.measures.pdq.assignment import assign
from probox.tables.results import QUALITIES, DetectionTable, ObjectTable, PairTable, Verdict

__all__ = ["judge"]


def judge(
    objects: ObjectTable, detections: DetectionTable, pairs: PairTable, convention: Convention
) -> tuple[ObjectTable, DetectionTable]:
    """Return both tables with partners, verdicts and qualities that follow from the pairs."""
    matched = assign(detections.image_rows[pairs.detections], pairs, convention.assignment)
    found, there, values = pairs.detections[matched], pairs.objects[matched], pairs.qualities[matched]

    ignored = objects.ignored[there]
    verdict_found = np.full(len(detections), Verdict.FP, np.uint8)
    verdict_found[found] = np.where(ignored, Verdict.IGNORED, Verdict.TP)
    verdict_there = np.where(objects.ignored, Verdict.IGNORED, Verdict.FN).astype(np.uint8)
    verdict_there[there] = np.where(ignored, Verdict.IGNORED, Verdict.TP)
    return (
        objects.replace(verdicts=verdict_there, **_partners(len(objects), there, found, values)),
        detections.replace(verdicts=verdict_found, **_partners(len(detections), found, there, values)),
    )


def _partners(
    n: int, rows: npt.NDArray[np.int64], partners: npt.NDArray[np.int64], values: npt.NDArray[np.float64]
) -> dict[str, npt.NDArray[Any]]:
    """Return the partner and quality columns of a table of n rows, of which `rows` are matched."""
    partner = np.full(n, -1, np.int64)
    partner[rows] = partners
    qualities = np.full((n, len(QUALITIES)), np.nan)
    qualities[:, QUALITIES.index("pPDQ")] = 0.0
    qualities[rows] = values
    return {"partners": partner, "qualities": qualities}
