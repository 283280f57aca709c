"""PDQ of each class and of each size, as bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from probox.measures.boxes.matching import AREA_RANGES, SIZES
from probox.plots.base import Plot, Results, colour_of, new_axes, styled
from probox.plots.legends import add_legend_beside, short_name, short_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["CLASSES", "SIZES_PLOT"]

_MANY_CLASSES = 24


def classes(results: Results, *, ax: Axes | None = None, dark: bool = False) -> Axes:
    """Plot the PDQ of each class, best first; with many classes the best and the worst."""
    tables = [evaluation.per_class() for evaluation in results.values()]
    names = [name for name in tables[0] if any(not np.isnan(table[name]["PDQ"]) for table in tables if name in table)]
    names.sort(key=lambda name: -float(np.nan_to_num(tables[0][name]["PDQ"])))
    title = CLASSES.title
    if len(names) > _MANY_CLASSES:
        half = _MANY_CLASSES // 2
        title = f"{title}: the best and worst {half} of {len(names)}"
        names = names[:half] + names[-half:]
    values = [[table.get(name, {}).get("PDQ", np.nan) for name in names] for table in tables]
    return _draw(results, names, values, title, ax, dark, size=(6.4, 1.6 + 0.26 * len(names)))


def sizes(results: Results, *, ax: Axes | None = None, dark: bool = False) -> Axes:
    """Plot the PDQ of small, medium and large objects (COCO's ranges of area)."""
    tables = [evaluation.per_size() for evaluation in results.values()]
    values = [[table[name]["PDQ"] for name in SIZES[1:]] for table in tables]
    names = [f"{name}, up to {high**0.5:g}²" for name, (_, high) in zip(SIZES[1:-1], AREA_RANGES[1:-1], strict=True)]
    return _draw(results, [*names, SIZES[-1]], values, SIZES_PLOT.title, ax, dark, size=(6.4, 2.6))


def _draw(
    results: Results,
    names: Sequence[str],
    values: Sequence[Sequence[float]],
    title: str,
    ax: Axes | None,
    dark: bool,
    size: tuple[float, float],
) -> Axes:
    with styled(dark) as theme:
        many = len(values)
        axes = new_axes(ax, (size[0], size[1] * (1.0 if many < 3 else max(1.4, 0.4 * many))))
        place = np.arange(len(names))
        width = 0.78 / len(values)
        handles = []
        for number, heights in enumerate(values):
            shown = 100 * np.array(heights, dtype=np.float64)
            shift = (number - (len(values) - 1) / 2) * width
            colour = colour_of(theme, number)
            bars = axes.barh(place + shift, np.nan_to_num(shown), 0.92 * width, color=colour)
            words = ["" if np.isnan(value) else f"{value:.1f}" for value in shown]
            axes.bar_label(bars, words, padding=3, fontsize=8 if many < 3 else 7 if many < 5 else 6, color=theme.ink)
            handles.append(bars)
        axes.set_yticks(place, [short_name(name) for name in names], parse_math=False)
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.spines["left"].set_visible(False)
        axes.set(xlabel="PDQ, %", title=title)
        axes.margins(x=0.1, y=0.02)
        axes.set_xlim(left=0)  # if all are 0, too: PDQ is never negative
        if any(results):
            add_legend_beside(axes, handles, short_names(results), widen=ax is None)
    return axes


CLASSES = Plot("classes", "PDQ per class", classes)
SIZES_PLOT = Plot("sizes", "PDQ per object size (pixels)", sizes)
