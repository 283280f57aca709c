"""Plots of calibration: coverage, PIT, reliability of scores, sparsification, and errors against predicted std."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from probox.evaluation.result import Evaluation
from probox.measures.matched import EDGES, MatchedPairs
from probox.measures.scoring.calibration_metrics import (
    PIT_BINS,
    UNIT,
    Bins,
    SortedColumns,
    ause,
    box_levels,
    calibration_errors,
    coverage,
    edge_levels,
    pit_histogram,
    pit_values,
    sparsification,
    spearman,
)
from probox.measures.scoring.detection_measures import D_ECE_BINS
from probox.measures.scoring.pair_measures import relative_edges
from probox.measures.scoring.score_rows import IOU, full_name, outcomes
from probox.measures.scoring.scores import invertible, normal_quantile
from probox.pictures.style import Theme
from probox.plots.base import (
    FloatArray,
    Plot,
    Results,
    add_caption,
    add_figure_legend,
    add_legend_beside,
    caption_figure,
    caption_of_edges,
    colour_of,
    few_words,
    new_axes,
    put_words,
    scale_counts,
    set_style,
    shorten_names,
    sigmas_of_edges,
    subplots,
    two_panels,
    why_no_sigma,
    words_on_cut,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _with_std(results: Results, theme: Theme, reasons: list[str]) -> Iterator[tuple[str, str, MatchedPairs]]:
    """Yield short name, colour and pairs of results with a std; append to `reasons` why others have none, or ""."""
    for number, (name, evaluation) in enumerate(zip(shorten_names(results), results.values(), strict=True)):
        reasons.append(why_no_sigma(evaluation.matched_pairs))
        if not reasons[-1]:
            yield name, colour_of(theme, number), evaluation.matched_pairs


SHARES = np.linspace(0.0, 1.0, 101)
"""Nominal coverages of the curves."""


def draw_coverage(results: Results, *, ax: Axes | None = None, dark: bool = False) -> Axes:
    """Plot observed against nominal coverage of central regions.

    Solid: intervals of single edges, pooled. Dashed: ellipsoids of boxes, all four edges jointly. The diagonal is
    calibrated, below it is overconfident.
    """
    from matplotlib.lines import Line2D

    with set_style(dark) as theme:
        axes = new_axes(ax, (5.2, 5.8))
        handles, labels = [], []
        missing: list[str] = []
        for name, colour, pairs in _with_std(results, theme, missing):
            edges, boxes = compute_coverage(pairs)
            axes.plot(100 * SHARES, 100 * edges, color=colour)
            axes.plot(100 * SHARES, 100 * boxes, color=colour, linestyle=(0, (4, 2)), linewidth=1.4)
            if name:
                handles.append(Line2D([], [], color=colour))
                labels.append(name)
        axes.set(xlim=(0, 100), ylim=(0, 100), aspect="equal", anchor="NW")
        if all(missing):
            put_words(axes, f"{missing[0]}: nothing to plot")
        else:
            axes.plot([0, 100], [0, 100], color=theme.ink, linewidth=1.0, alpha=0.6)
            handles += [Line2D([], [], color=theme.ink), Line2D([], [], color=theme.ink, linestyle=(0, (4, 2)))]
            labels += ["edges", "boxes (all four edges)"]
        axes.set(xlabel="nominal coverage [%]", ylabel="observed coverage [%]", title=COVERAGE.title)
        add_legend_beside(axes, handles, labels, widen=ax is None)
        add_caption(axes, caption_of_edges(results), "Below the diagonal: overconfident. " + words_on_cut(results))
    return axes


def compute_coverage(pairs: MatchedPairs) -> tuple[FloatArray, FloatArray]:
    """Return the coverage of edges and of boxes at each of `SHARES`; NaN without edges or boxes."""
    sigmas, present = sigmas_of_edges(pairs)
    of_edges = edge_levels(pairs.residuals, sigmas)[present]
    dense = pairs.take(np.flatnonzero(invertible(pairs.covariances)))
    of_boxes = box_levels(dense.residuals, dense.covariances)
    edges, boxes = (np.array([coverage(levels, s) for s in SHARES.tolist()]) for levels in (of_edges, of_boxes))
    return edges, boxes


COVERAGE = Plot("coverage", "Coverage", draw_coverage)

BAND = 0.95
"""Probability that a bin is within the band, if calibrated."""

_NAMES = ("left", "top", "right", "bottom")

SHAPES = "Flat: calibrated. U-shaped: overconfident. Hump: underconfident. Slanted: biased."


def draw_pit(results: Results, *, dark: bool = False) -> Any:
    """Plot PIT histograms of each edge, Φ(z) with z = (true - predicted) / std; return an array of axes.

    If calibrated, all bins are equal (the line), and a bin is within the band with a probability of 95%.
    """
    reasons = [why_no_sigma(evaluation.matched_pairs) for evaluation in results.values()]
    bins = np.linspace(0.0, 1.0, PIT_BINS + 1)
    with set_style(dark) as theme:
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
        panels[0].set_ylim(bottom=0)  # panels share the axis, which now includes all bins
        panels[0].set_ylabel("edges [%]")
        panels[0].set_title(PIT.title)
        add_figure_legend(figure, results, theme, drawn=[not reason for reason in reasons])
        fewest = " for the result with the fewest pairs" if len(results) > 1 else ""
        text = f"Band: 95% range of a bin if calibrated{fewest}. {SHAPES} {words_on_cut(results)}"
        caption_figure(figure, [*caption_of_edges(results).splitlines(), text], 215)
    return panels


def band(n: int) -> tuple[float, float]:
    """Return the limits of a bin's fraction of `n` values, with a probability of 95% if all bins are equal."""
    p = 1.0 / PIT_BINS
    reach = normal_quantile(0.5 + BAND / 2) * math.sqrt(p * (1.0 - p) / n)
    return max(p - reach, 0.0), p + reach


def _pit(pairs: MatchedPairs, column: int) -> FloatArray:
    sigmas, present = sigmas_of_edges(pairs)
    kept = present[:, column]
    return pit_values(pairs.residuals[kept, column], sigmas[kept, column])


def _reason(reasons: list[str]) -> str:
    """Return why a panel is empty, in two lines."""
    return f"{reasons[0] if all(reasons) else 'all edges at the image border'}:\nnothing to plot"


PIT = Plot("pit", "PIT histograms", draw_pit)

SCORE_BINS = D_ECE_BINS[0]


def draw_reliability(results: Results, *, ax: Axes | None = None, dark: bool = False) -> Axes:
    """Plot precision against mean score in ten bins of equal width.

    Returns the axes of precision; the number of detections in each bin is plotted below. The diagonal is calibrated,
    below it is overconfident.
    """
    name_of_error = full_name("D-ECE", iou=IOU, bins=SCORE_BINS)
    with set_style(dark) as theme:
        upper, lower = two_panels(ax, (5.4, 6.4), (3, 1))
        handles: list[Any] = []
        labels, captions = [], []
        most = 0
        names = shorten_names(results)
        for number, (line, evaluation) in enumerate(
            zip(shorten_names(results, lines=False), results.values(), strict=True)
        ):
            n, hits, sums = bin_scores(evaluation)
            total = int(n.sum())
            captions.append((f"{line}: " if line else "") + few_words(total, "detection"))
            if not total:
                continue
            colour, there = colour_of(theme, number), n > 0
            handles += upper.plot(
                sums[there] / n[there], 100 * hits[there] / n[there], "-o",
                color=colour, markersize=5, clip_on=False, zorder=3,
            )  # fmt: skip
            error = f"D-ECE {100 * calibration_errors(n[None], (hits - sums)[None])[0]:.1f}%"
            labels.append(f"{names[number]}\n{error}" if line else error)
            if lower is not None:
                lower.stairs(n, np.linspace(0.0, 1.0, SCORE_BINS.number + 1), color=colour, linewidth=1.6)
                most = max(most, int(n.max()))
        if handles:
            upper.plot([0, 1], [0, 100], color=theme.ink, linewidth=1.0, alpha=0.6)
        else:
            put_words(upper, "no detections: nothing to plot")
        upper.set(ylabel="precision [%]", xlim=(0, 1), ylim=(0, 100), title=RELIABILITY.title)
        bottom = upper if lower is None else lower
        bottom.set_xlabel("score")
        if lower is not None:
            lower.set_ylabel("detections")
            scale_counts(lower, most, logs=most > 1000, linear_below=1)
        add_legend_beside(upper, handles, labels, widen=ax is None)
        add_caption(
            bottom,
            *captions,
            f"D-ECE: 0% is calibrated; {name_of_error}, {SCORE_BINS.words}. Below the diagonal: overconfident. "
            f"Matching: COCO, IoU {IOU:g}, without detections in crowds.",
        )
    shown: Axes = upper
    return shown


def bin_scores(evaluation: Evaluation) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the detections, matched detections and sum of scores in each bin of scores."""
    judged = outcomes(evaluation, IOU)
    scores = evaluation.detections.scores[judged.detections]
    n, hits, sums = SortedColumns(scores, [judged.hits.astype(np.float64), scores], UNIT).sums(SCORE_BINS)
    return n[0], hits[0], sums[0]


RELIABILITY = Plot("reliability", "Reliability of scores", draw_reliability)

_POINTS, _UNTIL = 400, 0.99
"""Points of a curve, and the fraction at which it ends: the mean of the last few edges is noise."""

_STYLES = {"by predicted std": "-", "by error": (0, (4, 2)), "random": (0, (1, 1.5))}


def draw_sparsification(results: Results, *, ax: Axes | None = None, dark: bool = False) -> Axes:
    """Plot the mean error of the remaining edges after removal of those with the largest std / side.

    Dashed: removal of the largest errors, the best order. Dotted: random order. AUSE is the area between solid and
    dashed, divided by the area between dotted and dashed: 0 is perfect, 1 is uninformative.
    """
    from matplotlib.lines import Line2D

    with set_style(dark) as theme:
        axes = new_axes(ax, (5.8, 5.0))
        handles, labels = [], []
        missing: list[str] = []
        for name, colour, pairs in _with_std(results, theme, missing):
            sigmas, errors, present = relative_edges(pairs)
            sigma, error = sigmas[present], 100 * errors[present]
            curves = (sparsification(sigma, error), sparsification(error, error), np.full(len(error), error.mean()))
            shown = np.unique(np.linspace(0, _UNTIL * (len(error) - 1), _POINTS).astype(np.int64))
            for curve, style in zip(curves, _STYLES.values(), strict=True):
                width = 1.8 if style == "-" else 1.2
                axes.plot(100 * shown / len(error), curve[shown], color=colour, linestyle=style, linewidth=width)
            area = ause(sigma, error)
            words = "AUSE undefined" if np.isnan(area) else f"AUSE {area:.2f}"
            handles.append(Line2D([], [], color=colour))
            labels.append(f"{name}\n{words}" if name else words)
        axes.set(xlabel="removed edges, largest std first [%]", ylabel="mean |error| / side of the rest [%]")
        axes.set(xlim=(0, 100), title=SPARSIFICATION.title)
        axes.set_ylim(bottom=0)
        if all(missing):
            put_words(axes, f"{missing[0]}: nothing to plot")
        else:
            handles += [Line2D([], [], color=theme.ink, linestyle=style) for style in _STYLES.values()]  # type: ignore[arg-type]
            labels += list(_STYLES)
        add_legend_beside(axes, handles, labels, widen=ax is None)
        add_caption(
            axes,
            caption_of_edges(results),
            "AUSE, lower is better: 0 is perfect, 1 is uninformative. " + words_on_cut(results),
        )
    return axes


SPARSIFICATION = Plot("sparsification", "Sparsification", draw_sparsification)

SIGMA_BINS = Bins(10, "mass")

LEAST = 1e-4
"""Smaller fractions of the side are drawn at this value, because the scale is logarithmic."""


def draw_sigma_error(results: Results, *, ax: Axes | None = None, dark: bool = False) -> Axes:
    """Plot |error| / side against predicted std / side of each edge; large dots are root mean squares in bins.

    On the diagonal the root mean square error equals the predicted std; above it is overconfident, below it is
    underconfident. A constant fraction of the side is a vertical line.
    """
    with set_style(dark) as theme:
        axes = new_axes(ax, (5.8, 5.4))
        handles: list[Any] = []
        labels, drawn = [], []
        missing: list[str] = []
        for name, colour, pairs in _with_std(results, theme, missing):
            sigmas, errors, present = relative_edges(pairs)
            sigma, error = sigmas[present], errors[present]
            size, alpha = (4, 0.25) if len(sigma) > 1000 else (9, 0.4)
            axes.scatter(
                100 * np.maximum(sigma, LEAST), 100 * np.maximum(error, LEAST),
                s=size, color=colour, alpha=alpha, linewidths=0, rasterized=True, zorder=1.5,
            )  # fmt: skip
            across, up = bin_edges(sigma, error)
            (line,) = axes.plot(
                100 * np.maximum(across, LEAST), 100 * np.maximum(up, LEAST), "-o",
                color=colour, markersize=7, markeredgecolor=theme.ground, markeredgewidth=1.2, zorder=3,
            )  # fmt: skip
            drawn += [100 * np.maximum(sigma, LEAST), 100 * np.maximum(error, LEAST)]
            rho = spearman(sigma, error)
            words = "Spearman undefined: constant std" if np.isnan(rho) else f"Spearman {rho:.2f}"
            handles.append(line)
            labels.append(f"{name}\n{words}" if name else words)
        axes.set(xlabel="predicted std / side [%]", ylabel="|error| / side [%]", title=SIGMA_ERROR.title)
        if all(missing):
            put_words(axes, f"{missing[0]}: nothing to plot")
        else:
            _scale(axes, np.concatenate(drawn[0::2]), np.concatenate(drawn[1::2]))
            low, high = axes.get_xlim()
            (diagonal,) = axes.plot([low, high], [low, high], color=theme.ink, linewidth=1.0, alpha=0.7, zorder=2)
            handles.append(diagonal)
            labels.append("RMS error = std")
        add_legend_beside(axes, handles, labels, widen=ax is None)
        add_caption(
            axes,
            caption_of_edges(results),
            f"Dots: root mean squares in {SIGMA_BINS.words} of std / side. Above the diagonal: overconfident. "
            f"Errors below {100 * LEAST:g}% are drawn at {100 * LEAST:g}%. {words_on_cut(results)}",
        )
    return axes


def bin_edges(sigma: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the root mean squares of std and error in each non-empty bin of std."""
    n, variances, squares = (
        found[0] for found in SortedColumns(sigma, [np.square(sigma), np.square(error)]).sums(SIGMA_BINS)
    )
    there = n > 0
    return np.sqrt(variances[there] / n[there]), np.sqrt(squares[there] / n[there])


def _scale(axes: Axes, x: FloatArray, y: FloatArray) -> None:
    """Set logarithmic axes of at least one decade that include every point."""
    from matplotlib.ticker import FuncFormatter

    for which, values in (("x", x), ("y", y)):
        low, high = float(values.min()) / 1.3, float(values.max()) * 1.3
        middle = (low * high) ** 0.5
        low, high = min(low, middle / 10**0.5), max(high, middle * 10**0.5)
        axes.set(**{f"{which}scale": "log", f"{which}lim": (low, high)})
        axis = axes.xaxis if which == "x" else axes.yaxis
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(FuncFormatter(lambda value, _: ""))


SIGMA_ERROR = Plot("sigma-error", "Error against predicted std", draw_sigma_error)
