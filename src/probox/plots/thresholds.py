"""What a label threshold does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from probox.analysis.sweep import threshold_curve
from probox.pictures.style import Theme
from probox.plots.base import Plot, Results, add_legend, colour_of, pdq_measured, styled, subplots, use_plain_logs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PLOT"]

TITLE = "What a label threshold does"
COUNTS: dict[str, Any] = {"TP": "-", "FP": "--", "FN": ":"}
"""Counts and the style of their lines."""


def draw(results: Results, *, ax: Axes | None = None, dark: bool = False) -> Axes:
    """Plot PDQ, TP, FP and FN against the label threshold; returns the axes of PDQ, the counts lie below it."""
    levels = np.linspace(0.0, 1.0, 201)
    with styled(dark) as theme:
        upper: Any
        lower: Any
        if ax is None:
            _, (upper, lower) = subplots(2, 1, (6.4, 5.6), sharex=True, height_ratios=(3, 2))
        else:
            upper, lower = ax, None
        for number, (name, evaluation) in enumerate(results.items()):
            colour = colour_of(theme, number)
            curve = threshold_curve(evaluation, levels)
            upper.plot(levels, 100 * curve["PDQ"], color=colour, label=name or None)
            best = int(np.argmax(np.nan_to_num(curve["PDQ"])))
            upper.plot(levels[best], 100 * curve["PDQ"][best], "o", color=colour, markersize=5)
            if lower is not None:
                for count, style in COUNTS.items():
                    lower.plot(levels, curve[count], style, color=colour, linewidth=1.5)
        upper.set(ylabel="PDQ, %", xlim=(0, 1), title=TITLE)
        upper.set_ylim(bottom=0)
        if lower is None:
            upper.set_xlabel("label threshold")
        else:
            lower.set(xlabel="label threshold", ylabel="count")
            if lower.get_ylim()[1] > 8 * max(len(evaluation.objects) for evaluation in results.values()):
                use_plain_logs(lower, linear_below=10)  # false positives by the thousand would hide the rest
            lower.set_ylim(bottom=0)
            _add_line_key(lower, theme)
        add_legend(upper, results)
    shown: Axes = upper
    return shown


def _add_line_key(axes: Axes, theme: Theme) -> None:
    """Add a legend that tells line styles apart."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=theme.ink, linestyle=style, linewidth=1.4) for style in COUNTS.values()]
    axes.legend(
        handles,
        list(COUNTS),
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=len(COUNTS),
        borderaxespad=0.0,
    )


PLOT = Plot("thresholds", TITLE, draw, pdq_measured)
