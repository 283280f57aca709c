"""Plots of the loss breakdown, possible gains, the confusion matrix, and differences between results."""

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
"""Parts from left to right: name and number of the colour. Rounding is too small to be visible."""

_SEEN = 5.0
"""Points: narrower parts have no number."""


def draw_budget(results: Results, *, ax: Axes | None = None, dark: bool = False) -> Axes:
    """Plot the loss breakdown of PDQ: missed objects, false positives, and losses of true positives."""
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
            xlabel="PDQ points, of 100",
            title=BUDGET.title,
        )
        lie_bars(axes)
        add_legend_beside(axes, handles, [words for words, _ in SEGMENTS.values()], widen=ax is None)
        add_caption(axes, "Labels, foreground and background: losses of true positives (Shapley values).")
    return axes


BUDGET = Plot("budget", "Loss breakdown", draw_budget, pdq_measured)


def draw_what_if(
    what_ifs: Mapping[str, Mapping[str, float]],
    present: Mapping[str, float],
    *,
    ax: Axes | None = None,
    dark: bool = False,
) -> Axes:
    """Plot PDQ after each repair.

    `what_ifs` contains for each result its repairs and their PDQ, 0 to 1 or NaN; `present` contains the current PDQ of
    each result, which is drawn as a line.
    """
    if not what_ifs or set(what_ifs) != set(present):
        raise InputError("expected what_ifs and present of the same results, and at least one result")
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
                words = "undefined" if np.isnan(value) else f"{value:.1f} ({value - now:+.1f})"
                beside = (float(np.nanmax([value, now, 0.0])), at)  # right of bar and line
                axes.annotate(words, beside, (5, 0), textcoords="offset points", va="center", fontsize=8.5)
            handles.append(bars)
        axes.set_yticks(place, [shorten_name(fix, 34) for fix in fixes], parse_math=False)
        axes.set_ylim(max(len(fixes), 1) - 0.5, -0.5)
        lie_bars(axes)
        axes.set_xlim(0, 1.28 * max(axes.dataLim.x1, 1.0))  # space for the values
        axes.set(xlabel="PDQ [%]", title="Possible gains")
        if any(name.strip() for name in what_ifs):
            add_legend_beside(axes, handles, shorten_names(what_ifs), widen=ax is None)
        add_caption(axes, "Lines: current PDQ. In brackets: gain in points.")
    return axes


MOST_CLASSES = 12
"""Most classes in a matrix; of more classes, those with the most confusions are shown."""

_COLUMNS = 3
"""Panels per row."""

_LETTERS = 16

_PAD = 0.08
"""Inches above and below panels; with matplotlib's 0.04 the caption touches the axis labels."""


def draw_confusion(results: Results, *, most: int = MOST_CLASSES, dark: bool = False) -> Any:
    """Plot the confusion matrix of each result in a panel; return an array of axes.

    Numbers are counts, colours fractions of the row. Of more than `most` classes, those with the most confusions over
    all results are shown.
    """
    found = [confusion(evaluation) for evaluation in results.values()]
    # All panels have the same classes, those with the most confusions in the sum of all results.
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
        # Panels with a fixed aspect ratio need a second layout.
        figure.draw_without_rendering()
    return panels.ravel()[: len(found)]


def _caption(both: Confusion, classes: list[int]) -> str:
    text = "Numbers: counts. Colours: fractions of the row."
    there = len(both.most_confused(len(both.classes)))
    if len(classes) < there:
        text += f" Shown: the {len(classes)} of {there} classes with the most confusions."
    if both.unnamed.any():
        text += f" Not shown: {both.unnamed.sum():,} detections of classes that the ground truth does not contain."
    return f"{text} PDQ does not match a detection without probability for the object's class."


def _draw_matrix(axes: Any, one: Confusion, classes: list[int], theme: Theme) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    axes.set(xlabel="predicted class", ylabel="true class")
    if not classes:
        put_words(axes, "no detections,\nno missed objects")
        return
    shown = [*classes, len(one.classes)]
    counts = one.among(shown)
    shares = counts / np.maximum(one.row_sums()[shown], 1)[:, None]
    # One hue with increasing contrast, which is ordered for every type of colour vision.
    colours = LinearSegmentedColormap.from_list("share", [theme.ground, theme.lines[0]])
    axes.imshow(shares, cmap=colours, vmin=0.0, vmax=1.0, aspect="equal")
    for row, column in np.ndindex(counts.shape):
        if counts[row, column]:
            ink = max((theme.ground, theme.ink), key=lambda one: _contrast(one, colours(shares[row, column])))
            words = _short_count(int(counts[row, column]))
            axes.text(column, row, words, ha="center", va="center", fontsize=7, color=ink)
    last = len(classes)
    axes.text(last, last, "-", ha="center", va="center", fontsize=8, color=theme.ink)  # true negatives are undefined
    names = [shorten_name(name, _LETTERS) for name in (*(one.classes[label] for label in classes), BACKGROUND)]
    axes.set_xticks(range(len(shown)), names, rotation=60, ha="right", rotation_mode="anchor", parse_math=False)
    axes.set_yticks(range(len(shown)), names, parse_math=False)
    axes.grid(visible=False)
    axes.axhline(last - 0.5, color=theme.ink, linewidth=0.8)
    axes.axvline(last - 0.5, color=theme.ink, linewidth=0.8)


def _contrast(first: Any, second: Any) -> float:
    """Return the contrast ratio of two colours, from 1 to 21 (WCAG 2).

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
    """Return a count as text that fits into a cell.

    >>> _short_count(214), _short_count(15696), _short_count(270449)
    ('214', '16k', '270k')
    """
    return str(count) if count < 10_000 else f"{count / 1000:.0f}k"


CONFUSION = Plot("confusion", "Confusion matrix of PDQ's matches", draw_confusion, pdq_measured)

_MANY_ROWS = 24

Row = tuple[str, Column, str]
"""Label, column, and class or ""."""


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
    """Plot the first result minus each of the others with confidence intervals, as in `probox.compare`.

    There is one row for each metric in percent, or with `per_class` for each class, by descending difference. Dots are
    filled if the interval excludes 0. The other parameters are those of `probox.compare`.
    """
    if len(results) < 2:
        raise InputError(
            "expected at least two results for a difference", remedy='write Plots({"A": a, "B": b}).difference()'
        )
    compared = compare(results, per_class=per_class, replicates=replicates, seed=seed, level=level, swaps=False)
    rows = _class_rows(compared) if per_class else _column_rows(compared)
    (first, *others), (_, *in_lines) = shorten_names(results, lines=False), shorten_names(results)
    handles = []
    with set_style(dark) as theme:
        axes = new_axes(ax, (6.4, 1.7 + (0.26 + 0.1 * len(others)) * max(len(rows), 1)))
        axes.axvline(0.0, color=theme.ink, linewidth=1.0)
        for number, pair in enumerate(compared.pairs):
            shift = 0.6 * ((number + 0.5) / len(others) - 0.5)
            colour = colour_of(theme, number + 1)  # as in other plots
            for place, (_, column, name) in enumerate(rows):
                found = _find_difference(pair, column, name)
                if found is None:
                    continue
                value, low, high = (100 * v for v in round_difference(column, found.difference))
                excludes_zero = (low < 0 and high < 0) or (low > 0 and high > 0)
                axes.plot([low, high], [place + shift] * 2, color=colour, linewidth=1.8)
                inside = colour if excludes_zero else theme.ground
                axes.plot(value, place + shift, "o", color=colour, markersize=5, markerfacecolor=inside)
            handles += axes.plot([], [], "-o", color=colour, markersize=5)
        axes.set_yticks(range(len(rows)), [title for title, _, _ in rows])
        axes.set_ylim(max(len(rows), 1) - 0.5, -0.5)
        lie_bars(axes)
        axes.set_title(
            f"{DIFFERENCE.title}, {compared.images:,} images"
            + (f": {rows[0][1].heading}" if per_class and rows else "")
        )
        subtracted = others[0] if len(others) == 1 else "each other result"
        amounts = f"{first} minus {subtracted} [points], {100 * level:g}% confidence intervals"
        axes.set_xlabel(f"{amounts}\nfilled dots: interval excludes 0")
        if len(others) > 1:
            add_legend_beside(axes, handles, in_lines, widen=ax is None)
    return axes


def why_not(results: Results) -> str | None:
    """Return why differences cannot be plotted; None if they can."""
    if len(results) < 2:
        return "only one result"
    try:
        check_same_truth(results)
    except InputError as error:
        return str(error)
    if len(next(iter(results.values())).dataset) < 2:
        return "intervals need at least two images"
    if not set.intersection(*(set(result.measures) for result in results.values())):
        return "the results have no metric in common"
    return None


def _column_rows(compared: Comparison) -> list[Row]:
    measures = sorted(compared.measures, key=lambda measure: not measure.leads)
    columns = [column for measure in measures for column in measure.table_columns if column.unit == "per cent"]
    return [(str(column.heading), column, "") for column in columns]


def _class_rows(compared: Comparison) -> list[Row]:
    """Return the classes by descending difference of the first pair; of many classes, both ends."""
    measured = [measure.headline for measure in compared.measures if measure.headline.key in compared.pairs[0].classes]
    if not measured:
        raise InputError("no metric of these results is defined per class", remedy="evaluate PDQ as well")
    column = measured[0]
    found = compared.pairs[0].classes[column.key]
    names = sorted(found, key=lambda name: -round_difference(column, found[name].difference)[0])
    chosen: Sequence[str] = names if len(names) <= _MANY_ROWS else names[: _MANY_ROWS // 2] + names[-_MANY_ROWS // 2 :]
    return [(shorten_name(name), column, name) for name in chosen]


def _find_difference(pair: PairOfResults, column: Column, name: str) -> Difference | None:
    return pair.classes.get(column.key, {}).get(name) if name else pair.columns[column.key]


DIFFERENCE = Plot(
    "difference", "Difference with confidence interval", draw_difference, lambda results: why_not(results) is None
)
