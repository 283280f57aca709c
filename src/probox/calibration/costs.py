"""What a calibration costs on held-out images, and why: said beside its gain."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from probox.calibration.pairs import FittingPairs
from probox.measures.scoring.box_scores import negative_log_likelihoods
from probox.tables.detections import Detections

__all__ = ["MUCH_NLL", "notes_on_nll", "notes_on_threshold"]

MUCH_NLL = 1.0
"""An NLL that grows by more than this, in nats, is explained."""


def notes_on_nll(target: str, before: FittingPairs, after: FittingPairs) -> tuple[str, ...]:
    """Return why NLL gets much worse, if it does, from the same pairs before and after."""
    both = before.usable & after.usable
    worse = _nll_growth(before, after, both)
    if not worse > MUCH_NLL:
        return ()
    said = f"NLL gets worse by {worse:,.3g}"
    if target == "nll":
        return (f"{said} on images held out, though sigmas are fitted for it: they are better left as they are",)
    if target == "coverage":
        return (f"{said}: sigmas are fitted for coverage, not for NLL",)
    inland = both & before.free.all(axis=1)
    elsewhere = _nll_growth(before, after, inland)
    if not elsewhere <= worse / 2:  # borders are not most of it
        return (f"{said}: sigmas are fitted for PDQ and corners kept inside the image, neither of which is for NLL",)
    return (
        f"{said}: for PDQ corners are kept inside the image, with sigmas of a fraction of a pixel at its border, which "
        f"NLL punishes; that of the {int(inland.sum()):,} of {int(both.sum()):,} boxes without an edge there changes "
        f"by {elsewhere:+.2f}",
    )


def _nll_growth(before: FittingPairs, after: FittingPairs, rows: npt.NDArray[np.bool_]) -> float:
    if not rows.any():
        return float("nan")
    old, new = (
        negative_log_likelihoods(pairs.residuals[rows], pairs.covariances[rows]).mean() for pairs in (before, after)
    )
    return float(new - old)


def notes_on_threshold(before: Detections, after: Detections, threshold: float | None) -> tuple[str, ...]:
    """Return how many detections new labels take from those that PDQ is measured on."""
    if threshold is None:
        return ()
    old, new = (found.label_probs.max(axis=1, initial=0.0) > np.float32(threshold) for found in (before, after))
    lost, there = int((old & ~new).sum()), int(old.sum())
    if not lost:
        return ()
    return (f"{lost:,} of {there:,} detections fall below the label threshold {threshold:g} after calibration",)
