"""Where the points of PDQ went, as stacked bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from probox.analysis.budget import PARTS, budget_of
from probox.plots.base import Plot, Results, new_axes, pdq_measured, styled
from probox.plots.legends import add_legend_beside, short_names
from probox.plots.pairs import add_caption, put_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PLOT", "SEGMENTS"]

TITLE = "Where the points went"

SEGMENTS = {
    "pdq": ("PDQ", 0),
    "missed": (PARTS["missed"], 1),
    "false_positives": (PARTS["false_positives"], 6),
    "label": (PARTS["label"], 3),
    "foreground": (PARTS["foreground"], 2),
    "background": (PARTS["background"], 5),
}
"""Parts from left to right: their name and the number of their colour. Rounding is too little to be seen."""
_SEEN = 5.0
"""Per cent: a narrower part has no room for its number."""


def draw(results: Results, *, ax: Axes | None = None, dark: bool = False) -> Axes:
    """Plot where the points of PDQ went: what was reached, missed objects, false positives, and what matches lack."""
    budgets = [budget_of(evaluation) for evaluation in results.values()]
    with styled(dark) as theme:
        axes = new_axes(ax, (6.8, 2.5 + 0.42 * max(len(results) - 1, 0)))
        place = np.arange(len(results))
        left = np.zeros(len(results))
        handles: list[Any] = []
        for part, (_, number) in SEGMENTS.items():
            widths = np.nan_to_num([100 * getattr(budget, part) for budget in budgets])
            bars = axes.barh(place, widths, 0.7, left=left, color=theme.lines[number], edgecolor=theme.ground)
            words = [f"{width:.1f}" if width >= _SEEN else "" for width in widths]
            axes.bar_label(bars, words, label_type="center", fontsize=8.5, color=theme.ground)
            handles.append(bars)
            left += widths
        if all(np.isnan(budget.pdq) for budget in budgets):
            put_words(axes, "nothing to score")
        axes.set_yticks(place, short_names(results), parse_math=False)
        axes.set(
            xlim=(0, 100), ylim=(len(results) - 0.5, -0.5), xlabel="per cent of what could be reached", title=TITLE
        )
        axes.grid(visible=False, axis="y")
        axes.spines["left"].set_visible(False)
        add_legend_beside(axes, handles, [words for words, _ in SEGMENTS.values()], widen=ax is None)
        add_caption(axes, "Labels, foreground and background: what matched detections lack, split by Shapley values.")
    return axes


PLOT = Plot("budget", TITLE, draw, pdq_measured)
