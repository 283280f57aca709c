"""How each of the five qualities is distributed."""

from __future__ import annotations

from typing import Any

import numpy as np

from probox.plots.base import Plot, Results, colour_of, hits, styled, subplots
from probox.plots.legends import add_figure_legend
from probox.tables.results import QUALITIES

__all__ = ["PLOT"]

TITLE = "Quality of true positives"
_TITLES = {"pPDQ": "pairwise (pPDQ)"}
"""Qualities whose name says too little."""


def draw(results: Results, *, dark: bool = False) -> Any:
    """Plot how each of the five qualities is distributed over the true positives; return an array of axes."""
    edges = np.linspace(0.0, 1.0, 21)
    with styled(dark) as theme:
        figure, panels = subplots(1, len(QUALITIES), (13.0, 3.0), sharey=True)
        for axes, quality in zip(panels, QUALITIES, strict=True):
            for number, evaluation in enumerate(results.values()):
                values = hits(evaluation, quality)
                heights = np.histogram(np.clip(values, 0, 1), edges)[0] / max(len(values), 1)
                colour = colour_of(theme, number)
                axes.stairs(100 * heights, edges, color=colour, linewidth=1.6)
                if len(results) == 1:
                    axes.stairs(100 * heights, edges, color=colour, fill=True, alpha=0.25)
                if len(values):
                    axes.axvline(values.mean(), color=colour, linewidth=1.0, linestyle=(0, (3, 2)))
            axes.set(xlabel=f"{_TITLES.get(quality, quality)} quality", xlim=(0, 1))
            axes.set_xticks([0, 0.5, 1], ["0", "½", "1"])
        panels[0].set_ylim(bottom=0)  # without any true positive, too: shares are never negative
        panels[0].set_ylabel("true positives, %")
        panels[0].set_title(TITLE)
        add_figure_legend(figure, results, theme)
    return panels


PLOT = Plot("qualities", TITLE, draw)
