"""Plots of PDQ, its qualities and counts by class, size and threshold, and of precision and recall."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from probox.analysis.threshold_sweep import threshold_curve
from probox.evaluation.result import Evaluation
from probox.measures.boxes.matching import PAIR_IOU, SIZES
from probox.plots.base import (
    Plot,
    Results,
    add_figure_legend,
    add_legend_beside,
    colour_of,
    lie_bars,
    new_axes,
    pdq_measured,
    scale_counts,
    set_style,
    shorten_name,
    shorten_names,
    subplots,
    take_hits,
    two_panels,
)
from probox.tables.results import QUALITIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MANY_CLASSES = 24


def draw_classes(results: Results, *, ax: Axes | None = None, dark: bool = False) -> Axes:
    """Plot PDQ of each class, highest first; of many classes the highest and lowest."""
    tables = [evaluation.per_class() for evaluation in results.values()]
    names = [name for name in tables[0] if any(not np.isnan(table[name]["PDQ"]) for table in tables if name in table)]
    names.sort(key=lambda name: -float(np.nan_to_num(tables[0][name]["PDQ"])))
    title = CLASSES.title
    if len(names) > _MANY_CLASSES:
        half = _MANY_CLASSES // 2
        title = f"{title}: highest and lowest {half} of {len(names)}"
        names = names[:half] + names[-half:]
    values = [[table.get(name, {}).get("PDQ", np.nan) for name in names] for table in tables]
    return _draw_bars(results, names, values, title, ax, dark, size=(6.4, 1.6 + 0.26 * len(names)))


def draw_sizes(results: Results, *, ax: Axes | None = None, dark: bool = False) -> Axes:
    """Plot PDQ of small, medium and large objects (COCO's ranges of area)."""
    tables = [evaluation.per_size() for evaluation in results.values()]
    values = [[table[name]["PDQ"] for name in SIZES[1:]] for table in tables]
    areas = next(iter(results.values())).convention.area_ranges[:-1]
    names = [f"{name}, up to {high**0.5:g}²" for name, (_, high) in zip(SIZES[1:-1], areas, strict=True)]
    return _draw_bars(results, [*names, SIZES[-1]], values, SIZES_PLOT.title, ax, dark, size=(6.4, 2.6))


def _draw_bars(
    results: Results,
    names: Sequence[str],
    values: Sequence[Sequence[float]],
    title: str,
    ax: Axes | None,
    dark: bool,
    size: tuple[float, float],
) -> Axes:
    with set_style(dark) as theme:
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
        axes.set_yticks(place, [shorten_name(name) for name in names], parse_math=False)
        axes.invert_yaxis()
        lie_bars(axes)
        axes.set(xlabel="PDQ [%]", title=title)
        axes.margins(x=0.1, y=0.02)
        axes.set_xlim(left=0)  # also if all values are 0
        if any(results):
            add_legend_beside(axes, handles, shorten_names(results), widen=ax is None)
    return axes


CLASSES = Plot("classes", "PDQ per class", draw_classes)

SIZES_PLOT = Plot("sizes", "PDQ per object size [pixels]", draw_sizes)

_TITLES = {"pPDQ": "pairwise (pPDQ)"}
"""Qualities with an additional name."""


def draw_qualities(results: Results, *, dark: bool = False) -> Any:
    """Plot histograms of the five qualities over true positives; dashed lines are means. Return an array of axes."""
    edges = np.linspace(0.0, 1.0, 21)
    with set_style(dark) as theme:
        figure, panels = subplots(1, len(QUALITIES), (13.0, 3.0), sharey=True)
        for axes, quality in zip(panels, QUALITIES, strict=True):
            for number, evaluation in enumerate(results.values()):
                values = take_hits(evaluation, quality)
                heights = np.histogram(np.clip(values, 0, 1), edges)[0] / max(len(values), 1)
                colour = colour_of(theme, number)
                axes.stairs(100 * heights, edges, color=colour, linewidth=1.6)
                if len(results) == 1:
                    axes.stairs(100 * heights, edges, color=colour, fill=True, alpha=0.25)
                if len(values):
                    axes.axvline(values.mean(), color=colour, linewidth=1.0, linestyle=(0, (3, 2)))
            axes.set(xlabel=f"{_TITLES.get(quality, quality)} quality", xlim=(0, 1))
            axes.set_xticks([0, 0.5, 1], ["0", "½", "1"])
        panels[0].set_ylim(bottom=0)  # also without true positives
        panels[0].set_ylabel("true positives [%]")
        panels[0].set_title(QUALITY_HISTOGRAMS.title)
        add_figure_legend(figure, results, theme)
    return panels


QUALITY_HISTOGRAMS = Plot("qualities", "Quality of true positives", draw_qualities)

LEVELS = (0.25, 0.5, 0.75)
"""Values of pPDQ with a contour line."""

_MANY_POINTS = 1000


def draw_spatial_label(results: Results, *, ax: Axes | None = None, dark: bool = False) -> Axes:
    """Plot spatial against label quality of every true positive, with lines of equal pPDQ."""
    return _draw_scatter(results, "label", "spatial", SPATIAL_LABEL.title, ax, dark, levels=LEVELS)


def draw_foreground_background(results: Results, *, ax: Axes | None = None, dark: bool = False) -> Axes:
    """Plot foreground against background quality of every true positive."""
    return _draw_scatter(results, "background", "foreground", FOREGROUND_BACKGROUND.title, ax, dark)


def _draw_scatter(
    results: Results, x: str, y: str, title: str, ax: Axes | None, dark: bool, *, levels: tuple[float, ...] = ()
) -> Axes:
    with set_style(dark) as theme:
        axes = new_axes(ax, (4.9, 5.0))
        grid = np.linspace(1e-3, 1.0, 200)
        for level in levels:
            axes.plot(grid, np.minimum(level**2 / grid, 1.1), color=theme.faint, linewidth=1.0, zorder=0.5)
            axes.text(level**2, 1.025, f"pPDQ {level:g}", fontsize=8, va="bottom", color=theme.ink, alpha=0.6)
        handles = []
        for number, evaluation in enumerate(results.values()):
            across, up = take_hits(evaluation, x), take_hits(evaluation, y)
            alpha = float(np.clip(30.0 / np.sqrt(len(across) + 1), 0.08, 0.6))
            colour = colour_of(theme, number)
            # Thousands of vector points make a file slow to open, so they become one image.
            axes.scatter(
                across, up, s=12, color=colour, alpha=alpha, linewidths=0, rasterized=len(across) > _MANY_POINTS
            )
            handles += axes.plot([], [], "o", color=colour, markersize=5)
        axes.set(xlabel=f"{x} quality", ylabel=f"{y} quality", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        axes.set_title(title, pad=18 if levels else None)
        axes.set_aspect("equal", anchor="NW")
        if any(results):
            add_legend_beside(axes, handles, shorten_names(results), widen=ax is None)
    return axes


SPATIAL_LABEL = Plot("spatial-label", "Spatial and label quality", draw_spatial_label)

FOREGROUND_BACKGROUND = Plot("foreground-background", "Foreground and background quality", draw_foreground_background)


def draw_precision_recall(
    results: Results, *, iou: float | None = None, ax: Axes | None = None, dark: bool = False
) -> Axes:
    """Plot COCO's precision against recall at an IoU, mean over classes with objects.

    The default of `iou` is 0.5, or the first threshold of mAP if that is not one of them.
    """
    if iou is None:
        rules = next(iter(results.values())).box_rules
        iou = rules.iou_thresholds[rules.row_of(PAIR_IOU) or 0]
    with set_style(dark) as theme:
        axes = new_axes(ax, (5.2, 4.6))
        handles, labels = [], []
        for number, (name, evaluation) in enumerate(zip(shorten_names(results), results.values(), strict=True)):
            curve = mean_curve(evaluation, iou)
            if curve is None:
                continue
            area = f"AP {100 * curve[1].mean():.1f}"
            labels.append(f"{name}\n{area}" if name else area)
            handles += axes.plot(*curve, color=colour_of(theme, number))
        axes.set(xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1.02))
        axes.set_title(f"{PRECISION_RECALL.title} at IoU {iou:g}")
        add_legend_beside(axes, handles, labels, widen=ax is None)
    return axes


def mean_curve(evaluation: Evaluation, iou: float) -> tuple[Any, Any] | None:
    """Return recall and mean precision over classes with objects, or None without objects."""
    measured = evaluation.average_precision
    curves = [measured.curve(name, iou) for name, n in zip(measured.classes, measured.objects[:, 0], strict=True) if n]
    if not curves:
        return None
    return curves[0].recall, np.mean([curve.precision for curve in curves], axis=0)


PRECISION_RECALL = Plot("precision-recall", "Precision and recall", draw_precision_recall)

COUNTS: dict[str, Any] = {"TP": "-", "FP": "--", "FN": ":"}
"""Counts and their line styles."""

MANY = 2.0
"""The axis is logarithmic if a count exceeds this multiple of the number of objects."""


def draw_thresholds(results: Results, *, ax: Axes | None = None, dark: bool = False) -> Axes:
    """Plot PDQ and below it TP, FP and FN against the label threshold; return the axes of PDQ."""
    from matplotlib.lines import Line2D

    levels = np.linspace(0.0, 1.0, 201)
    with set_style(dark) as theme:
        upper, lower = two_panels(ax, (6.4, 5.6), (3, 2))
        handles: list[Any] = []
        most = 0
        for number, evaluation in enumerate(results.values()):
            colour = colour_of(theme, number)
            curve = threshold_curve(evaluation, levels)
            handles += upper.plot(levels, 100 * curve["PDQ"], color=colour)
            best = int(np.argmax(np.nan_to_num(curve["PDQ"])))
            upper.plot(levels[best], 100 * curve["PDQ"][best], "o", color=colour, markersize=5)
            if lower is not None:
                for count, style in COUNTS.items():
                    lower.plot(levels, curve[count], style, color=colour, linewidth=1.5)
                    most = max(most, int(np.nan_to_num(curve[count]).max()))  # NaN below an evaluation's own threshold
        upper.set(ylabel="PDQ [%]", xlim=(0, 1), title=THRESHOLDS.title)
        upper.set_ylim(bottom=0)
        if lower is None:
            upper.set_xlabel("label threshold")
        else:
            objects = max(len(evaluation.objects) for evaluation in results.values())
            logs = most > MANY * max(objects, 10)
            scale_counts(lower, most, logs=logs)
            lower.set(xlabel="label threshold", ylabel="count, log scale" if logs else "count")
            lines = [Line2D([], [], color=theme.ink, linestyle=style, linewidth=1.4) for style in COUNTS.values()]
            add_legend_beside(lower, lines, list(COUNTS), widen=not any(results))
        if any(results):
            add_legend_beside(upper, handles, shorten_names(results), widen=ax is None)
    shown: Axes = upper
    return shown


THRESHOLDS = Plot("thresholds", "PDQ and counts by label threshold", draw_thresholds, pdq_measured)
