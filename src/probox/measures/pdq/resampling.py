"""PDQ of single and resampled images: PDQ is a ratio of sums over images, so replicates are weighted sums."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from probox.measures.measure import Evaluated, ImageColumns, Resampled, Weights
from probox.measures.weighted import weighted_sums
from probox.tables.results import QUALITIES, Verdict

__all__ = ["pdq_per_image", "pdq_resampled", "sums_per_image"]


Floats = npt.NDArray[np.float64]


def sums_per_image(evaluated: Evaluated) -> dict[str, Floats]:
    """Return what PDQ adds up, image by image: the qualities of true positives, TP, FP, FN, and what FP cost."""
    detections, images = evaluated.detections, len(evaluated.dataset)
    hit, wrong = detections.verdicts == Verdict.TP, detections.verdicts == Verdict.FP
    missed = evaluated.objects.verdicts == Verdict.FN
    sums = {name: _added(detections.image_rows[hit], detections.quality(name)[hit], images) for name in QUALITIES}
    sums["TP"] = _added(detections.image_rows[hit], None, images)
    sums["FP"] = _added(detections.image_rows[wrong], None, images)
    sums["FN"] = _added(evaluated.objects.image_rows[missed], None, images)
    by_confidence = evaluated.convention.confidence_denominator
    sums["cost"] = (
        _added(detections.image_rows[wrong], detections.costs[wrong], images) if by_confidence else sums["FP"]
    )
    return sums


def pdq_per_image(evaluated: Evaluated) -> ImageColumns:
    """Return PDQ and its parts for each image, and the sums of the qualities, which add up over images."""
    sums = evaluated.image_sums
    with np.errstate(invalid="ignore", divide="ignore"):
        columns = {"PDQ": sums["pPDQ"] / (sums["TP"] + sums["cost"] + sums["FN"])}
        columns.update({name: sums[name] / sums["TP"] for name in QUALITIES})
    counts = {name: sums[name].astype(np.int64) for name in ("TP", "FP", "FN")}
    return {**columns, **counts, **{f"sum_{name}": sums[name] for name in QUALITIES}}


def pdq_resampled(evaluated: Evaluated, weights: Weights) -> Resampled:
    """Return PDQ and its parts for each row of weights, which say how often each image counts."""
    sums = evaluated.image_sums
    total = dict(zip(sums, weighted_sums(weights, list(sums.values())), strict=True))
    with np.errstate(invalid="ignore", divide="ignore"):
        numbers = {"PDQ": total["pPDQ"] / (total["TP"] + total["cost"] + total["FN"])}
        numbers.update({name: total[name] / total["TP"] for name in QUALITIES})
    return numbers | {name: total[name] for name in ("TP", "FP", "FN")}


def _added(rows: npt.NDArray[np.int64], values: npt.NDArray[np.floating] | None, images: int) -> Floats:
    return np.bincount(rows, values, images).astype(np.float64)
