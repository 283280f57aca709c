"""Do sigmas know which errors are large? The error that is left when the most unsure edges are gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from probox.measures.scoring.pair_measures import relative_edges
from probox.measures.scoring.ranking_metrics import ause, sparsification
from probox.plots.base import Plot, Results, colour_of, new_axes, styled
from probox.plots.legends import add_legend_beside, short_names
from probox.plots.pairs import CUT, add_caption, caption_of_edges, put_words, why_no_sigma

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PLOT"]

TITLE = "Sparsification"
_POINTS, _UNTIL = 400, 0.99
"""How many points a curve has, and the share at which it ends: what the last few edges do is chance."""
_STYLES = {"own order": "-", "true order of errors": (0, (4, 2)), "random order": (0, (1, 1.5))}


def draw(results: Results, *, ax: Axes | None = None, dark: bool = False) -> Axes:
    """Plot the mean error of edges that is left when the share with the largest sigma / side is taken away.

    Dashed: when the largest errors go first, which is best. Dotted: in random order. AUSE is the area between solid
    and dashed over that between dotted and dashed: 0 is perfect, 1 knows nothing.
    """
    from matplotlib.lines import Line2D

    with styled(dark) as theme:
        axes = new_axes(ax, (5.8, 5.0))
        handles, labels, missing = [], [], []
        for number, (name, evaluation) in enumerate(zip(short_names(results), results.values(), strict=True)):
            pairs = evaluation.matched_pairs
            missing.append(why_no_sigma(pairs))
            if missing[-1]:
                continue
            sigmas, errors, present = relative_edges(pairs)
            sigma, error = sigmas[present], 100 * errors[present]
            colour = colour_of(theme, number)
            curves = (sparsification(sigma, error), sparsification(error, error), np.full(len(error), error.mean()))
            shown = np.unique(np.linspace(0, _UNTIL * (len(error) - 1), _POINTS).astype(np.int64))
            for curve, style in zip(curves, _STYLES.values(), strict=True):
                width = 1.8 if style == "-" else 1.2
                axes.plot(100 * shown / len(error), curve[shown], color=colour, linestyle=style, linewidth=width)
            area = ause(sigma, error)
            words = "AUSE none" if np.isnan(area) else f"AUSE {area:.2f}"
            handles.append(Line2D([], [], color=colour))
            labels.append(f"{name}\n{words}" if name else words)
        axes.set(xlabel="edges taken away, the most unsure first, %", ylabel="mean |error| / side of those left, %")
        axes.set(xlim=(0, 100), title=TITLE)
        axes.set_ylim(bottom=0)
        if all(missing):
            put_words(axes, missing[0])
        else:
            handles += [Line2D([], [], color=theme.ink, linestyle=style) for style in _STYLES.values()]  # type: ignore[arg-type]
            labels += list(_STYLES)
        add_legend_beside(axes, handles, labels, widen=ax is None)
        pairing = next(iter(results.values())).matched_pairs.pairing
        add_caption(axes, caption_of_edges(results), "AUSE: 0 is perfect, 1 knows nothing. " + CUT.format(pairing))
    return axes


PLOT = Plot("sparsification", TITLE, draw)
