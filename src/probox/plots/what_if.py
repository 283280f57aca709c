"""What PDQ would be if one thing were put right, as bars. It is drawn by who has scored anew: no plot of `PLOTS`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from probox.errors import InputError
from probox.plots.base import colour_of, new_axes, styled
from probox.plots.legends import add_legend_beside, short_name, short_names
from probox.plots.pairs import add_caption

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["TITLE", "draw_what_if"]

TITLE = "What if"


def draw_what_if(
    what_ifs: Mapping[str, Mapping[str, float]],
    present: Mapping[str, float],
    *,
    ax: Axes | None = None,
    dark: bool = False,
) -> Axes:
    """Plot what PDQ would be if one thing were put right.

    Parameters
    ----------
    what_ifs : mapping of str to mapping of str to float
        For each result, by its name, what was put right and the PDQ that it gives, 0 to 1; NaN where there is none.
    present : mapping of str to float
        The PDQ of each result as it is: a line.
    """
    if not what_ifs or set(what_ifs) != set(present):
        raise InputError("expected what-ifs of some results and the present PDQ of each")
    fixes = list(dict.fromkeys(fix for numbers in what_ifs.values() for fix in numbers))
    with styled(dark) as theme:
        axes = new_axes(ax, (6.6, 1.9 + (0.2 + 0.2 * len(what_ifs)) * max(len(fixes), 1)))
        place, width = np.arange(len(fixes)), 0.8 / len(what_ifs)
        handles = []
        for number, (name, numbers) in enumerate(what_ifs.items()):
            colour = colour_of(theme, number)
            values = 100 * np.array([numbers.get(fix, np.nan) for fix in fixes], np.float64)
            now = 100 * present[name]
            shift = (number - (len(what_ifs) - 1) / 2) * width
            bars = axes.barh(place + shift, np.nan_to_num(values), 0.9 * width, color=colour)
            for at, value in zip((place + shift).tolist(), values.tolist(), strict=True):
                axes.plot([now, now], [at - width / 2, at + width / 2], color=theme.ink, linewidth=1.4)
                words = "none" if np.isnan(value) else f"{value:.1f} ({value - now:+.1f})"
                beside = (float(np.nanmax([value, now, 0.0])), at)  # neither bar nor line crosses the words
                axes.annotate(words, beside, (5, 0), textcoords="offset points", va="center", fontsize=8.5)
            handles.append(bars)
        axes.set_yticks(place, [short_name(fix, 34) for fix in fixes], parse_math=False)
        axes.set_ylim(max(len(fixes), 1) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.spines["left"].set_visible(False)
        axes.set_xlim(0, 1.28 * max(axes.dataLim.x1, 1.0))  # room for the words
        axes.set(xlabel="PDQ, %", title=TITLE)
        if any(name.strip() for name in what_ifs):
            add_legend_beside(axes, handles, short_names(what_ifs), widen=ax is None)
        add_caption(axes, "Lines: PDQ as it is. In brackets: the difference to it.")
    return axes
