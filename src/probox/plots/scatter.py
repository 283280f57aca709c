"""One quality against another, a point for every true positive."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from probox.plots.base import Plot, Results, colour_of, hits, new_axes, styled
from probox.plots.legends import add_legend_beside, short_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["FOREGROUND_BACKGROUND", "LEVELS", "SPATIAL_LABEL"]

LEVELS = (0.25, 0.5, 0.75)
"""Of pPDQ, along which spatial and label quality trade."""
_MANY = 1000


def spatial_label(results: Results, *, ax: Axes | None = None, dark: bool = False) -> Axes:
    """Plot spatial against label quality of every true positive, with lines of equal pPDQ."""
    return _draw(results, "label", "spatial", SPATIAL_LABEL.title, ax, dark, levels=LEVELS)


def foreground_background(results: Results, *, ax: Axes | None = None, dark: bool = False) -> Axes:
    """Plot foreground against background quality of every true positive."""
    return _draw(results, "background", "foreground", FOREGROUND_BACKGROUND.title, ax, dark)


def _draw(
    results: Results, x: str, y: str, title: str, ax: Axes | None, dark: bool, *, levels: tuple[float, ...] = ()
) -> Axes:
    with styled(dark) as theme:
        axes = new_axes(ax, (4.9, 5.0))
        grid = np.linspace(1e-3, 1.0, 200)
        for level in levels:
            axes.plot(grid, np.minimum(level**2 / grid, 1.1), color=theme.faint, linewidth=1.0, zorder=0.5)
            axes.text(level**2, 1.025, f"pPDQ {level:g}", fontsize=8, va="bottom", color=theme.ink, alpha=0.6)
        handles = []
        for number, evaluation in enumerate(results.values()):
            across, up = hits(evaluation, x), hits(evaluation, y)
            alpha = float(np.clip(30.0 / np.sqrt(len(across) + 1), 0.08, 0.6))
            colour = colour_of(theme, number)
            # Points by the thousand would make a file that takes long to open: they are one picture then.
            axes.scatter(across, up, s=12, color=colour, alpha=alpha, linewidths=0, rasterized=len(across) > _MANY)
            handles += axes.plot([], [], "o", color=colour, markersize=5)
        axes.set(xlabel=f"{x} quality", ylabel=f"{y} quality", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        axes.set_title(title, pad=18 if levels else None)
        axes.set_aspect("equal", anchor="NW")
        if any(results):
            add_legend_beside(axes, handles, short_names(results), widen=ax is None)
    return axes


SPATIAL_LABEL = Plot("spatial-label", "Where and what", spatial_label)
FOREGROUND_BACKGROUND = Plot("foreground-background", "Object covered, background left alone", foreground_background)
