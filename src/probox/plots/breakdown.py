"""Plots of what was lost, what a repair would give, what is mixed up, and by how much results differ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from probox.analysis.comparison import Comparison, Difference, PairOfResults, check_same_truth, compare
from probox.analysis.comparison_text import round_difference
from probox.analysis.loss_breakdown import BACKGROUND, PARTS, Confusion, compute_budget, confusion
from probox.errors import InputError
from probox.measures.measure import Column
from probox.pictures.style import Theme
from probox.plots.base import (
    Plot,
    Results,
    add_caption,
    add_legend_beside,
    caption_figure,
    colour_of,
    lie_bars,
    new_axes,
    pdq_measured,
    put_words,
    set_style,
    shorten_name,
    shorten_names,
    subplots,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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


def draw_budget(results: Results, *, ax: Axes | None = None, dark: bool = False) -> Axes:
    """Plot where the points of PDQ went: what was reached, missed objects, false positives, and what matches lack."""
    budgets = [compute_budget(evaluation) for evaluation in results.values()]
    with set_style(dark) as theme:
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
        axes.set_yticks(place, shorten_names(results), parse_math=False)
        axes.set(
            xlim=(0, 100),
            ylim=(len(results) - 0.5, -0.5),
            xlabel="per cent of what could be reached",
            title=BUDGET.title,
        )
        lie_bars(axes)
        add_legend_beside(axes, handles, [words for words, _ in SEGMENTS.values()], widen=ax is None)
        add_caption(axes, "Labels, foreground and background: what matched detections lack, split by Shapley values.")
    return axes


BUDGET = Plot("budget", "Where the points went", draw_budget, pdq_measured)


def draw_what_if(
    what_ifs: Mapping[str, Mapping[str, float]],
    present: Mapping[str, float],
    *,
    ax: Axes | None = None,
    dark: bool = False,
) -> Axes:
    """Plot what PDQ would be if one thing were put right.

    `what_ifs` has, for each result by its name, what was put right and the PDQ that it gives, 0 to 1, NaN where there
    is none; `present` the PDQ of each result as it is: a line.
    """
    if not what_ifs or set(what_ifs) != set(present):
        raise InputError("expected what-ifs of some results and the present PDQ of each")
    fixes = list(dict.fromkeys(fix for numbers in what_ifs.values() for fix in numbers))
    with set_style(dark) as theme:
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
        axes.set_yticks(place, [shorten_name(fix, 34) for fix in fixes], parse_math=False)
        axes.set_ylim(max(len(fixes), 1) - 0.5, -0.5)
        lie_bars(axes)
        axes.set_xlim(0, 1.28 * max(axes.dataLim.x1, 1.0))  # room for the words
        axes.set(xlabel="PDQ, %", title="What if")
        if any(name.strip() for name in what_ifs):
            add_legend_beside(axes, handles, shorten_names(what_ifs), widen=ax is None)
        add_caption(axes, "Lines: PDQ as it is. In brackets: the difference to it.")
    return axes


MOST_CLASSES = 12
"""Of more classes, those that are mixed up most are shown."""

_COLUMNS = 3
"""Panels beside each other."""

_LETTERS = 16

_PAD = 0.08
"""Inches above and below panels: matplotlib's own 0.04 let the caption touch what the axes are called."""


def draw_confusion(results: Results, *, most: int = MOST_CLASSES, dark: bool = False) -> Any:
    """Plot how many objects of each class were taken for which class, a panel per result; return an array of axes.

    Numbers are counts, colours their shares of the row; of more than `most` classes, those that are mixed up most over
    all results are shown.
    """
    found = [confusion(evaluation) for evaluation in results.values()]
    # All results are shown with the same classes: those of the sum of their confusions.
    both = Confusion(
        found[0].classes,
        *(np.concatenate([getattr(one, name) for one in found]) for name in ("truth", "predicted", "counts")),
    )
    classes = both.most_confused(most)
    columns = min(len(found), _COLUMNS)
    rows = math.ceil(len(found) / columns)
    side = 2.6 + 0.36 * (len(classes) + 1)
    with set_style(dark) as theme:
        size = (columns * (side + 0.3), rows * side + 0.9)
        figure, panels = subplots(rows, columns, size, squeeze=False)
        for axes in panels.ravel()[len(found) :]:
            axes.set_visible(False)
        for axes, name, one in zip(panels.ravel(), shorten_names(results), found, strict=False):
            _draw_matrix(axes, one, classes, theme)
            axes.set_title(name or CONFUSION.title)
        if any(name.strip() for name in results):
            figure.suptitle(CONFUSION.title, x=0.008, ha="left", fontsize=12, fontweight="bold")
        figure.get_layout_engine().set(h_pad=_PAD)
        caption_figure(figure, [_caption(both, classes)], int(14 * size[0]))
        # Panels that keep their shape settle in the second layout only; what is saved is that of the last.
        figure.draw_without_rendering()
    return panels.ravel()[: len(found)]


def _caption(both: Confusion, classes: list[int]) -> str:
    said = "Numbers: counts. Colours: shares of the row."
    there = len(both.most_confused(len(both.classes)))
    if len(classes) < there:
        said += f" The {len(classes)} of {there} classes that are mixed up most; what a row lacks went to others."
    if both.unnamed.any():
        said += f" {both.unnamed.sum():,} detections that name no class of the truth are not shown."
    return f"{said} Detections that give an object's class no probability are not matched with it."


def _draw_matrix(axes: Any, one: Confusion, classes: list[int], theme: Theme) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    axes.set(xlabel="detection names", ylabel="truth")
    if not classes:
        put_words(axes, "nothing was found,\nnothing was missed")
        return
    shown = [*classes, len(one.classes)]
    counts = one.among(shown)
    shares = counts / np.maximum(one.row_sums()[shown], 1)[:, None]
    # One hue, from the ground's lightness to the other end: all eyes can order that.
    colours = LinearSegmentedColormap.from_list("share", [theme.ground, theme.lines[0]])
    axes.imshow(shares, cmap=colours, vmin=0.0, vmax=1.0, aspect="equal")
    for row, column in np.ndindex(counts.shape):
        if counts[row, column]:
            ink = max((theme.ground, theme.ink), key=lambda one: _contrast(one, colours(shares[row, column])))
            words = _short_count(int(counts[row, column]))
            axes.text(column, row, words, ha="center", va="center", fontsize=7, color=ink)
    last = len(classes)
    axes.text(last, last, "-", ha="center", va="center", fontsize=8, color=theme.ink)  # nothing there, nothing found
    names = [shorten_name(name, _LETTERS) for name in (*(one.classes[label] for label in classes), BACKGROUND)]
    axes.set_xticks(range(len(shown)), names, rotation=60, ha="right", rotation_mode="anchor", parse_math=False)
    axes.set_yticks(range(len(shown)), names, parse_math=False)
    axes.grid(visible=False)
    axes.axhline(last - 0.5, color=theme.ink, linewidth=0.8)
    axes.axvline(last - 0.5, color=theme.ink, linewidth=0.8)


def _contrast(first: Any, second: Any) -> float:
    """Return how well two colours are told apart, from 1 to 21 (WCAG 2).

    >>> round(_contrast("black", "white"), 3)
    21.0
    """
    from matplotlib.colors import to_rgb

    light = []
    for colour in (first, second):
        parts = np.array(to_rgb(colour))
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        light.append(float(linear @ [0.2126, 0.7152, 0.0722]))
    return (max(light) + 0.05) / (min(light) + 0.05)


def _short_count(count: int) -> str:
    """Return a count that fits into a cell.

    >>> _short_count(214), _short_count(15696), _short_count(270449)
    ('214', '16k', '270k')
    """
    return str(count) if count < 10_000 else f"{count / 1000:.0f}k"


CONFUSION = Plot("confusion", "Confusion by PDQ's matches", draw_confusion, pdq_measured)

_MANY_ROWS = 24

Row = tuple[str, Column, str]
"""What is written beside it, its column, and its class or nothing."""


def draw_difference(
    results: Results,
    *,
    ax: Axes | None = None,
    dark: bool = False,
    per_class: bool = False,
    replicates: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Axes:
    """Plot the first result minus each of the others, as `probox.compare` has it, each number with its interval.

    One row for each number in per cent that tables show, or with `per_class` for each class, the greatest difference
    first. Intervals that do not hold 0 have filled dots. The other parameters are those of `probox.compare`.
    """
    if len(results) < 2:
        raise InputError("a difference needs two results", remedy='write Plots({"A": a, "B": b}).difference()')
    compared = compare(results, per_class=per_class, replicates=replicates, seed=seed, level=level, swaps=False)
    rows = _class_rows(compared) if per_class else _column_rows(compared)
    (first, *others), (_, *in_lines) = shorten_names(results, lines=False), shorten_names(results)
    handles = []
    with set_style(dark) as theme:
        axes = new_axes(ax, (6.4, 1.7 + (0.26 + 0.1 * len(others)) * max(len(rows), 1)))
        axes.axvline(0.0, color=theme.ink, linewidth=1.0)
        for number, pair in enumerate(compared.pairs):
            shift = 0.6 * ((number + 0.5) / len(others) - 0.5)
            colour = colour_of(theme, number + 1)  # that of the result in other plots
            for place, (_, column, name) in enumerate(rows):
                found = _find_difference(pair, column, name)
                if found is None:
                    continue
                value, low, high = (100 * v for v in round_difference(column, found.difference))
                sure = (low < 0 and high < 0) or (low > 0 and high > 0)
                axes.plot([low, high], [place + shift] * 2, color=colour, linewidth=1.8)
                inside = colour if sure else theme.ground
                axes.plot(value, place + shift, "o", color=colour, markersize=5, markerfacecolor=inside)
            handles += axes.plot([], [], "-o", color=colour, markersize=5)
        axes.set_yticks(range(len(rows)), [title for title, _, _ in rows])
        axes.set_ylim(max(len(rows), 1) - 0.5, -0.5)
        lie_bars(axes)
        axes.set_title(
            f"{DIFFERENCE.title}, {compared.images:,} images"
            + (f": {rows[0][1].heading}" if per_class and rows else "")
        )
        subtracted = others[0] if len(others) == 1 else "each other"
        amounts = f"{first} minus {subtracted}: points, {100 * level:g} % intervals"
        axes.set_xlabel(f"{amounts}\nfilled dots: the interval does not hold 0")
        if len(others) > 1:
            add_legend_beside(axes, handles, in_lines, widen=ax is None)
    return axes


def why_not(results: Results) -> str | None:
    """Return why differences cannot be drawn; None if they can."""
    if len(results) < 2:
        return "there is only one result"
    try:
        check_same_truth(results)
    except InputError as error:
        return str(error)
    if len(next(iter(results.values())).dataset) < 2:
        return "fewer than two images have no intervals"
    if not set.intersection(*(set(result.measures) for result in results.values())):
        return "the results hold no measure in common"
    return None


def _column_rows(compared: Comparison) -> list[Row]:
    measures = sorted(compared.measures, key=lambda measure: not measure.leads)
    columns = [column for measure in measures for column in measure.table_columns if column.unit == "per cent"]
    return [(str(column.heading), column, "") for column in columns]


def _class_rows(compared: Comparison) -> list[Row]:
    """Return the classes, from the greatest to the least difference of the first pair; of many, both ends."""
    measured = [measure.headline for measure in compared.measures if measure.headline.key in compared.pairs[0].classes]
    if not measured:
        raise InputError("no measure of these results is defined for a class", remedy="evaluate PDQ too")
    column = measured[0]
    found = compared.pairs[0].classes[column.key]
    names = sorted(found, key=lambda name: -round_difference(column, found[name].difference)[0])
    chosen: Sequence[str] = names if len(names) <= _MANY_ROWS else names[: _MANY_ROWS // 2] + names[-_MANY_ROWS // 2 :]
    return [(shorten_name(name), column, name) for name in chosen]


def _find_difference(pair: PairOfResults, column: Column, name: str) -> Difference | None:
    return pair.classes.get(column.key, {}).get(name) if name else pair.columns[column.key]


DIFFERENCE = Plot("difference", "Difference with interval", draw_difference, lambda results: why_not(results) is None)
