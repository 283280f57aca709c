"""Do intervals hold what they should? Coverage against the share that was promised."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from probox.measures.matched import MatchedPairs
from probox.measures.scoring.calibration_metrics import box_levels, coverage, edge_levels
from probox.measures.scoring.scores import invertible
from probox.plots.base import Plot, Results, colour_of, new_axes, styled
from probox.plots.legends import add_legend_beside, short_names
from probox.plots.pairs import (
    CUT,
    FloatArray,
    add_caption,
    caption_of_edges,
    put_words,
    sigmas_of_edges,
    why_no_sigma,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PLOT", "SHARES", "coverage_curves"]

TITLE = "Coverage of intervals"
SHARES = np.linspace(0.0, 1.0, 101)
"""Where the curves are drawn."""


def draw(results: Results, *, ax: Axes | None = None, dark: bool = False) -> Axes:
    """Plot which share of truths lies in the central regions that should hold a share.

    Solid: intervals of edges, all four together. Dashed: ellipsoids of boxes, all four edges at once. On the diagonal
    covariances are right, below it too sure.
    """
    from matplotlib.lines import Line2D

    with styled(dark) as theme:
        axes = new_axes(ax, (5.2, 5.8))
        handles, labels, missing = [], [], []
        names = short_names(results)
        for number, evaluation in enumerate(results.values()):
            missing.append(why_no_sigma(evaluation.matched_pairs))
            colour = colour_of(theme, number)
            if missing[-1]:
                continue
            edges, boxes = coverage_curves(evaluation.matched_pairs)
            axes.plot(100 * SHARES, 100 * edges, color=colour)
            axes.plot(100 * SHARES, 100 * boxes, color=colour, linestyle=(0, (4, 2)), linewidth=1.4)
            if names[number]:
                handles.append(Line2D([], [], color=colour))
                labels.append(names[number])
        axes.set(xlim=(0, 100), ylim=(0, 100), aspect="equal", anchor="NW")
        if all(missing):
            put_words(axes, missing[0])
        else:
            axes.plot([0, 100], [0, 100], color=theme.ink, linewidth=1.0, alpha=0.6)
            handles += [Line2D([], [], color=theme.ink), Line2D([], [], color=theme.ink, linestyle=(0, (4, 2)))]
            labels += ["edges", "boxes (all four edges)"]
        axes.set(xlabel="share that regions should hold, %", ylabel="share of truths in them, %", title=TITLE)
        add_legend_beside(axes, handles, labels, widen=ax is None)
        pairing = next(iter(results.values())).matched_pairs.pairing
        add_caption(axes, caption_of_edges(results), "Below the diagonal: too sure. " + CUT.format(pairing))
    return axes


def coverage_curves(pairs: MatchedPairs) -> tuple[FloatArray, FloatArray]:
    """Return the coverage of edges and of boxes at each of `SHARES`; NaN where there are none."""
    sigmas, present = sigmas_of_edges(pairs)
    of_edges = edge_levels(pairs.residuals, sigmas)[present]
    dense = pairs.take(np.flatnonzero(invertible(pairs.covariances)))
    of_boxes = box_levels(dense.residuals, dense.covariances)
    edges, boxes = (np.array([coverage(levels, s) for s in SHARES.tolist()]) for levels in (of_edges, of_boxes))
    return edges, boxes


PLOT = Plot("coverage", TITLE, draw)
