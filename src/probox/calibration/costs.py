"""What a calibration costs on held-out images, and why: said beside its gain."""

from __future__ import annotations

import numpy as np

from probox.calibration.pairs import FittingPairs
from probox.measures.scoring.scores import negative_log_likelihoods
from probox.support.types import Bools
from probox.tables.detections import Detections

__all__ = ["MUCH_NLL", "notes_on_nll", "notes_on_threshold"]

MUCH_NLL = 1.0
"""An NLL that grows by more than this, in nats, is explained."""


def notes_on_nll(target: str, before: FittingPairs, after: FittingPairs, border: str = "keep") -> tuple[str, ...]:
    """Return why NLL gets much worse, if it does, from the same pairs before and after."""
    both = before.usable & after.usable
    worse = _nll_growth(before, after, both)
    if not worse > MUCH_NLL:
        return ()
    said = f"NLL gets worse by {worse:,.3g}"
    if target == "nll":
        return (f"{said} on images held out, though sigmas are fitted for it: they are better left as they are",)
    pinned = ', and border="pin" limits them at the image border' if border == "pin" else ""
    return (f"{said}: sigmas are fitted for {'PDQ' if target == 'pdq' else target}, not for NLL{pinned}",)


def _nll_growth(before: FittingPairs, after: FittingPairs, rows: Bools) -> float:
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
