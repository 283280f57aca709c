"""Constants that the page's script takes from Python (names, outcomes, levels), and the page's colours."""

from __future__ import annotations

from typing import Any

from probox.analysis.confusion import BACKGROUND, UNNAMED
from probox.explorer.payload import IOUS
from probox.explorer.resampling import resampling_constants
from probox.explorer.why import why_constants
from probox.measures.boxes.matching import IOU_THRESHOLDS, SIZES
from probox.measures.boxes.mean_ap import RECALL_POINTS
from probox.measures.boxes.optimal_lrp import GRID
from probox.measures.pdq.heatmap_definition import EDGE
from probox.plots.confusion import MOST_CLASSES
from probox.plots.scatter import LEVELS
from probox.tables.results import QUALITIES, Verdict

__all__ = ["COLOURS", "constants"]

COLOURS = {
    # The page itself has no hue: a colour always means one of those below.
    "page": ("#f5f6f8", "#0e1116"),
    "panel": ("#ffffff", "#171b22"),
    "ink": ("#1d2430", "#e6e9ee"),
    "soft": ("#5a6474", "#a3adbb"),
    "edge": ("#dde1e7", "#2c333e"),
    "ground": ("#e6e9ed", "#232932"),
    "mark": ("#e6eaf0", "#2a3240"),
    "accent": ("#4a5568", "#a9b4c4"),
    # Outcomes, which every kind of colour vision distinguishes: a match, a match of the wrong class, an error (a false
    # positive or a missed object), ignored; `ink` for text.
    "right": ("#1f6fe5", "#5b9bff"),
    "right-ink": ("#1a5fc7", "#7fb2ff"),
    "wrong-class": ("#8a0f8a", "#dcc2ff"),
    "wrong-class-ink": ("#8a0f8a", "#dcc2ff"),
    "wrong": ("#e8730c", "#ff9a3d"),
    "wrong-ink": ("#a84f00", "#ffb06b"),
    "neutral": ("#868c96", "#868c96"),
    # Qualities that matches lack.
    "lack-label": ("#5a6474", "#a3adbb"),
    "lack-foreground": ("#868c96", "#868c96"),
    "lack-background": ("#b3b9c2", "#5a6474"),
    # Detectors, in their order; each has a shape besides.
    "line-0": ("#0f7f52", "#2fae76"),
    "line-1": ("#e0458f", "#ff6fb5"),
    "line-2": ("#0e93a8", "#4fd0e0"),
    "line-3": ("#7d6608", "#b8a030"),
    "line-4": ("#b01e2e", "#ff5c5c"),
    "line-5": ("#5f9e00", "#b4ec5c"),
    "line-6": ("#5f3a30", "#a87a62"),
    "line-7": ("#b08a9a", "#e3cf9e"),
}
"""All colours of the page by what they mean, in light and in dark."""

_WORDS = {"TP": "true positive", "FP": "false positive", "FN": "missed", "IGNORED": "ignored"}
"""Verdicts in words, those that can be filtered by first."""


_HEAT = ("#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725")
"""Colours of probabilities from 0 to 1: matplotlib's viridis, which every kind of colour vision reads in order."""


def constants() -> dict[str, Any]:
    """Return the constants of the script by the names it calls them."""
    verdicts = {name: getattr(Verdict, name) for name in _WORDS}
    return {
        "QUALITIES": list(QUALITIES),
        "SIZES": list(SIZES[1:]),
        # What a threshold drops has no verdict in the tables.
        "VERDICT": {**verdicts, "DROPPED": len(verdicts)},
        "VERDICTS": {verdicts[name]: words for name, words in _WORDS.items()},
        "IOUS": {text: f"{iou:.2f}" for text, iou in IOUS.items()},
        "BOXES": {
            "OVERLAPS": [f"{iou:.2f}" for iou in IOU_THRESHOLDS],
            "RECALLS": RECALL_POINTS.tolist(),
            "GRID": GRID.tolist(),
            "RANGES": len(SIZES),
        },
        "LEVELS": list(LEVELS),
        "LINES": sum(name.startswith("line-") for name in COLOURS),
        "EDGE": EDGE,
        "RESAMPLING": resampling_constants(),
        "CONFUSION": {"BACKGROUND": BACKGROUND, "UNNAMED": UNNAMED, "MOST": MOST_CLASSES},
        "HEAT": list(_HEAT),
        "WHY": why_constants(),
    }
