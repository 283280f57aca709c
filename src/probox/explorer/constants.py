"""What the page's script takes from Python, each from where it is defined: names, verdicts, levels."""

from __future__ import annotations

from typing import Any

from probox.analysis.confusion import BACKGROUND, UNNAMED
from probox.explorer.payload import IOUS
from probox.explorer.resampling import resampling_constants
from probox.explorer.why import why_constants
from probox.measures.boxes.matching import IOU_THRESHOLDS, SIZES
from probox.measures.boxes.mean_ap import RECALL_POINTS
from probox.measures.boxes.optimal_lrp import GRID
from probox.measures.pdq.definition_heatmap import EDGE
from probox.pictures.corners import SIGMA, SIGMAS
from probox.pictures.style import LIGHT
from probox.plots.confusion import MOST_CLASSES
from probox.plots.scatter import LEVELS
from probox.tables.results import QUALITIES, Verdict

__all__ = ["constants"]

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
        "SIGMAS": list(SIGMAS),
        "SIGMA": SIGMA,
        "LEVELS": list(LEVELS),
        "LINES": len(LIGHT.lines),
        "EDGE": EDGE,
        "RESAMPLING": resampling_constants(),
        "CONFUSION": {"BACKGROUND": BACKGROUND, "UNNAMED": UNNAMED, "MOST": MOST_CLASSES},
        "HEAT": list(_HEAT),
        "WHY": why_constants(),
    }
