"""What a label threshold does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from probox.analysis.sweep import threshold_curve
from probox.plots.base import Plot, Results, colour_of, no_formulas, pdq_measured, scale_counts, styled, subplots
from probox.plots.legends import add_legend_beside, short_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PLOT"]

TITLE = "What a label threshold does"
COUNTS: dict[str, Any] = {"TP": "-", "FP": "--", "FN": ":"}
"""Counts and the style of their lines."""
MANY = 2.0
"""Times as many as there are objects: so many false positives hide the other counts unless the axis is logarithmic."""


def draw(results: Results, *, ax: Axes | None = None, dark: bool = False) -> Axes:
    """Plot PDQ, TP, FP and FN against the label threshold; returns the axes of PDQ, the counts lie below it."""
    from matplotlib.lines import Line2D

    levels = np.linspace(0.0, 1.0, 201)
    with styled(dark) as theme:
        upper: Any
        lower: Any
        if ax is None:
            _, (upper, lower) = subplots(2, 1, (6.4, 5.6), sharex=True, height_ratios=(3, 2))
        else:
            no_formulas(ax)
            upper, lower = ax, None
        handles: list[Any] = []
        most = 0
        for number, evaluation in enumerate(results.values()):
            colour = colour_of(theme, number)
            curve = threshold_curve(evaluation, levels)
            handles += upper.plot(levels, 100 * curve["PDQ"], color=colour)
            best = int(np.argmax(np.nan_to_num(curve["PDQ"])))
            upper.plot(levels[best], 100 * curve["PDQ"][best], "o", color=colour, markersize=5)
            if lower is not None:
                for count, style in COUNTS.items():
                    lower.plot(levels, curve[count], style, color=colour, linewidth=1.5)
                    most = max(most, int(np.nan_to_num(curve[count]).max()))  # none below an evaluation's own
        upper.set(ylabel="PDQ, %", xlim=(0, 1), title=TITLE)
        upper.set_ylim(bottom=0)
        if lower is None:
            upper.set_xlabel("label threshold")
        else:
            objects = max(len(evaluation.objects) for evaluation in results.values())
            logs = most > MANY * max(objects, 10)
            scale_counts(lower, most, logs=logs)
            lower.set(xlabel="label threshold", ylabel="count, log scale" if logs else "count")
            lines = [Line2D([], [], color=theme.ink, linestyle=style, linewidth=1.4) for style in COUNTS.values()]
            add_legend_beside(lower, lines, list(COUNTS), widen=not any(results))
        if any(results):
            add_legend_beside(upper, handles, short_names(results), widen=ax is None)
    shown: Axes = upper
    return shown


PLOT = Plot("thresholds", TITLE, draw, pdq_measured)
