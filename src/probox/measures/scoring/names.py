"""How numbers are called that one word does not settle: pairing and bins are part of the name.

``D-ECE@50/10w`` is D-ECE of pairs that overlap by at least 0.5, in 10 bins of equal width; ``m`` stands for equal mass.
A name may go on with what it is about: ``ENCE/10m_x1``.
"""

from __future__ import annotations

from probox.measures.scoring.bins import Bins

__all__ = ["full_name", "overlap_words"]


def full_name(name: str, *, iou: float | None = None, bins: Bins | None = None, part: str = "") -> str:
    """Return a name with its overlap in per cent, its bins and its part.

    Examples
    --------
    >>> full_name("D-ECE", iou=0.5, bins=Bins(10))
    'D-ECE@50/10w'
    >>> full_name("ENCE", bins=Bins(10, "mass"), part="x1")
    'ENCE/10m_x1'
    """
    at = "" if iou is None else f"@{100 * iou:g}"
    within = "" if bins is None else f"/{bins.name}"
    return f"{name}{at}{within}{'_' if part else ''}{part}"


def overlap_words(iou: float) -> str:
    """Return what hints say of the pairing."""
    return f"COCO pairs, IoU {iou:g}"
