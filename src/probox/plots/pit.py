"""Where truths lie in what was claimed: histograms of the probability integral transform, an edge each."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from probox.measures.matched import EDGES, MatchedPairs
from probox.measures.scoring.calibration_metrics import PIT_BINS, pit_histogram, pit_values
from probox.measures.scoring.scores import normal_quantile
from probox.plots.base import Plot, Results, colour_of, styled, subplots
from probox.plots.legends import add_figure_legend
from probox.plots.pairs import (
    CAPTION_SIZE,
    CUT,
    FloatArray,
    caption_of_edges,
    put_words,
    sigmas_of_edges,
    why_no_sigma,
    wrapped,
)

__all__ = ["BAND", "PLOT", "SHAPES"]

TITLE = "PIT of edges"
BAND = 0.95
"""How often a bin lies within the band where sigmas are right."""
_NAMES = ("left", "top", "right", "bottom")
SHAPES = "Flat: right. Like a valley: too sure. Like a hill: not sure enough. Slanted: the edge is drawn to one side."


def draw(results: Results, *, dark: bool = False) -> Any:
    """Plot histograms of Φ(z), z = (truth - mean) / sigma, of each edge; return an array of axes.

    If sigmas are right each bin holds as much (the line), and in 95 of 100 cases lies within the band.
    """
    reasons = [why_no_sigma(evaluation.matched_pairs) for evaluation in results.values()]
    bins = np.linspace(0.0, 1.0, PIT_BINS + 1)
    with styled(dark) as theme:
        figure, panels = subplots(1, len(EDGES), (13.0, 3.7), sharey=True)
        for column, axes in enumerate(panels):
            counts = []
            for number, evaluation in enumerate(results.values()):
                values = _pit(evaluation.matched_pairs, column)
                if not len(values):
                    continue
                counts.append(len(values))
                colour, shares = colour_of(theme, number), 100 * pit_histogram(values)
                axes.stairs(shares, bins, color=colour, linewidth=1.6)
                if len(results) == 1:
                    axes.stairs(shares, bins, color=colour, fill=True, alpha=0.25)
            if counts:
                axes.axhline(100 / PIT_BINS, color=theme.ink, linewidth=1.0, alpha=0.6)
                low, high = band(min(counts))
                axes.axhspan(100 * low, 100 * high, color=theme.ink, alpha=0.1, linewidth=0, zorder=0.5)
            axes.set(xlabel=f"Φ(z) of {EDGES[column]} ({_NAMES[column]})", xlim=(0, 1))
            axes.set_xticks([0, 0.5, 1], ["0", "½", "1"])
            if not counts:
                put_words(axes, _reason(reasons))
        panels[0].set_ylim(bottom=0)  # all share it, and the last one's bins are known now
        panels[0].set_ylabel("edges, %")
        panels[0].set_title(TITLE)
        add_figure_legend(figure, results, theme, drawn=[not reason for reason in reasons])
        pairing = next(iter(results.values())).matched_pairs.pairing
        fewest = " of the result with the fewest pairs" if len(results) > 1 else ""
        said = f"Band: 95 % of bins{fewest}, if sigmas are right. {SHAPES} {CUT.format(pairing)}"
        caption = wrapped([*caption_of_edges(results).splitlines(), said], 215)
        figure.supxlabel(caption, x=0.008, ha="left", fontsize=CAPTION_SIZE, multialignment="left")
    return panels


def band(n: int) -> tuple[float, float]:
    """Return between which shares a bin of `n` values lies in 95 % of cases if all bins are alike."""
    p = 1.0 / PIT_BINS
    reach = normal_quantile(0.5 + BAND / 2) * math.sqrt(p * (1.0 - p) / n)
    return max(p - reach, 0.0), p + reach


def _pit(pairs: MatchedPairs, column: int) -> FloatArray:
    sigmas, present = sigmas_of_edges(pairs)
    kept = present[:, column]
    return pit_values(pairs.residuals[kept, column], sigmas[kept, column])


def _reason(reasons: list[str]) -> str:
    """Return why there is nothing in a panel, in two lines."""
    said = reasons[0] if all(reasons) else "all lie on the image's border"
    return said.replace(": ", ":\n")


PLOT = Plot("pit", TITLE, draw)
