"""Plots of calibration: coverage, PIT, reliability of scores, and predicted std against errors."""

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


def _judged(results: Results, theme: Theme, reasons: list[str]) -> Iterator[tuple[str, str, MatchedPairs]]:
    """Yield short name, colour and pairs of results with a sigma to judge; `reasons` gets for each why it has none."""
    for number, (name, evaluation) in enumerate(zip(shorten_names(results), results.values(), strict=True)):
        reasons.append(why_no_sigma(evaluation.matched_pairs))
        if not reasons[-1]:
            yield name, colour_of(theme, number), evaluation.matched_pairs


SHARES = np.linspace(0.0, 1.0, 101)
"""Where the curves are drawn."""


def draw_coverage(results: Results, *, ax: Axes | None = None, dark: bool = False) -> Axes:
    """Plot which share of truths lies in the central regions that should hold a share.

    Solid: intervals of edges, all four together. Dashed: ellipsoids of boxes, all four edges at once. On the diagonal
    covariances are right, below it too sure.
    """
    from matplotlib.lines import Line2D

    with set_style(dark) as theme:
        axes = new_axes(ax, (5.2, 5.8))
        handles, labels = [], []
        missing: list[str] = []
        for name, colour, pairs in _judged(results, theme, missing):
            edges, boxes = compute_coverage(pairs)
            axes.plot(100 * SHARES, 100 * edges, color=colour)
            axes.plot(100 * SHARES, 100 * boxes, color=colour, linestyle=(0, (4, 2)), linewidth=1.4)
            if name:
                handles.append(Line2D([], [], color=colour))
                labels.append(name)
        axes.set(xlim=(0, 100), ylim=(0, 100), aspect="equal", anchor="NW")
        if all(missing):
            put_words(axes, missing[0])
        else:
            axes.plot([0, 100], [0, 100], color=theme.ink, linewidth=1.0, alpha=0.6)
            handles += [Line2D([], [], color=theme.ink), Line2D([], [], color=theme.ink, linestyle=(0, (4, 2)))]
            labels += ["edges", "boxes (all four edges)"]
        axes.set(xlabel="share that regions should hold, %", ylabel="share of truths in them, %", title=COVERAGE.title)
        add_legend_beside(axes, handles, labels, widen=ax is None)
        add_caption(axes, caption_of_edges(results), "Below the diagonal: too sure. " + words_on_cut(results))
    return axes


def compute_coverage(pairs: MatchedPairs) -> tuple[FloatArray, FloatArray]:
    """Return the coverage of edges and of boxes at each of `SHARES`; NaN where there are none."""
    sigmas, present = sigmas_of_edges(pairs)
    of_edges = edge_levels(pairs.residuals, sigmas)[present]
    dense = pairs.take(np.flatnonzero(invertible(pairs.covariances)))
    of_boxes = box_levels(dense.residuals, dense.covariances)
    edges, boxes = (np.array([coverage(levels, s) for s in SHARES.tolist()]) for levels in (of_edges, of_boxes))
    return edges, boxes


COVERAGE = Plot("coverage", "Coverage of intervals", draw_coverage)

BAND = 0.95
"""How often a bin lies within the band where sigmas are right."""

_NAMES = ("left", "top", "right", "bottom")

SHAPES = "Flat: right. Like a valley: too sure. Like a hill: not sure enough. Slanted: the edge is drawn to one side."


def draw_pit(results: Results, *, dark: bool = False) -> Any:
    """Plot histograms of Φ(z), z = (truth - mean) / sigma, of each edge; return an array of axes.

    If sigmas are right each bin holds as much (the line), and in 95 of 100 cases lies within the band.
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
        panels[0].set_ylim(bottom=0)  # all share it, and the last one's bins are known now
        panels[0].set_ylabel("edges, %")
        panels[0].set_title(PIT.title)
        add_figure_legend(figure, results, theme, drawn=[not reason for reason in reasons])
        fewest = " of the result with the fewest pairs" if len(results) > 1 else ""
        said = f"Band: 95 % of bins{fewest}, if sigmas are right. {SHAPES} {words_on_cut(results)}"
        caption_figure(figure, [*caption_of_edges(results).splitlines(), said], 215)
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


PIT = Plot("pit", "PIT of edges", draw_pit)

SCORE_BINS = D_ECE_BINS[0]


def draw_reliability(results: Results, *, ax: Axes | None = None, dark: bool = False) -> Axes:
    """Plot the precision of detections against their mean score, in ten bins of equal width.

    Returns the axes of precision; how many detections are in each bin lies below it. On the diagonal scores are
    right, below it too sure.
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
            error = f"D-ECE {100 * calibration_errors(n[None], (hits - sums)[None])[0]:.1f} %"
            labels.append(f"{names[number]}\n{error}" if line else error)
            if lower is not None:
                lower.stairs(n, np.linspace(0.0, 1.0, SCORE_BINS.number + 1), color=colour, linewidth=1.6)
                most = max(most, int(n.max()))
        if handles:
            upper.plot([0, 1], [0, 100], color=theme.ink, linewidth=1.0, alpha=0.6)
        else:
            put_words(upper, "no detections to judge")
        upper.set(ylabel="precision, %", xlim=(0, 1), ylim=(0, 100), title=RELIABILITY.title)
        bottom = upper if lower is None else lower
        bottom.set_xlabel("score")
        if lower is not None:
            lower.set_ylabel("detections")
            scale_counts(lower, most, logs=most > 1000, linear_below=1)
        add_legend_beside(upper, handles, labels, widen=ax is None)
        add_caption(
            bottom,
            *captions,
            f"D-ECE is {name_of_error}: detections matched by COCO's rule at IoU {IOU:g}, {SCORE_BINS.words}; "
            "detections in crowds left out. Below the diagonal: too sure.",
        )
    shown: Axes = upper
    return shown


def bin_scores(evaluation: Evaluation) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return how many detections are in each bin of scores, how many of them are hits, and the sum of their scores."""
    judged = outcomes(evaluation, IOU)
    scores = evaluation.detections.scores[judged.detections]
    n, hits, sums = SortedColumns(scores, [judged.hits.astype(np.float64), scores], UNIT).sums(SCORE_BINS)
    return n[0], hits[0], sums[0]


RELIABILITY = Plot("reliability", "Reliability of scores", draw_reliability)

_POINTS, _UNTIL = 400, 0.99
"""How many points a curve has, and the share at which it ends: what the last few edges do is chance."""

_STYLES = {"own order": "-", "true order of errors": (0, (4, 2)), "random order": (0, (1, 1.5))}


def draw_sparsification(results: Results, *, ax: Axes | None = None, dark: bool = False) -> Axes:
    """Plot the mean error of edges that is left when the share with the largest sigma / side is taken away.

    Dashed: when the largest errors go first, which is best. Dotted: in random order. AUSE is the area between solid
    and dashed over that between dotted and dashed: 0 is perfect, 1 knows nothing.
    """
    from matplotlib.lines import Line2D

    with set_style(dark) as theme:
        axes = new_axes(ax, (5.8, 5.0))
        handles, labels = [], []
        missing: list[str] = []
        for name, colour, pairs in _judged(results, theme, missing):
            sigmas, errors, present = relative_edges(pairs)
            sigma, error = sigmas[present], 100 * errors[present]
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
        axes.set(xlim=(0, 100), title=SPARSIFICATION.title)
        axes.set_ylim(bottom=0)
        if all(missing):
            put_words(axes, missing[0])
        else:
            handles += [Line2D([], [], color=theme.ink, linestyle=style) for style in _STYLES.values()]  # type: ignore[arg-type]
            labels += list(_STYLES)
        add_legend_beside(axes, handles, labels, widen=ax is None)
        add_caption(axes, caption_of_edges(results), "AUSE: 0 is perfect, 1 knows nothing. " + words_on_cut(results))
    return axes


SPARSIFICATION = Plot("sparsification", "Sparsification", draw_sparsification)

SIGMA_BINS = Bins(10, "mass")

LEAST = 1e-4
"""Logarithms have no 0: smaller shares of the side are drawn here."""


def draw_sigma_error(results: Results, *, ax: Axes | None = None, dark: bool = False) -> Axes:
    """Plot |error| / side against sigma / side, a point for every edge; large dots are root mean squares in bins.

    On the diagonal the root mean square error is what sigma says; below it sigmas are too large. A sigma of the same
    share of every side is a vertical line.
    """
    with set_style(dark) as theme:
        axes = new_axes(ax, (5.8, 5.4))
        handles: list[Any] = []
        labels, drawn = [], []
        missing: list[str] = []
        for name, colour, pairs in _judged(results, theme, missing):
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
            words = "Spearman none: constant" if np.isnan(rho) else f"Spearman {rho:.2f}"
            handles.append(line)
            labels.append(f"{name}\n{words}" if name else words)
        axes.set(xlabel="sigma / side, %", ylabel="|error| / side, %", title=SIGMA_ERROR.title)
        if all(missing):
            put_words(axes, missing[0])
        else:
            _scale(axes, np.concatenate(drawn[0::2]), np.concatenate(drawn[1::2]))
            low, high = axes.get_xlim()
            (diagonal,) = axes.plot([low, high], [low, high], color=theme.ink, linewidth=1.0, alpha=0.7, zorder=2)
            handles.append(diagonal)
            labels.append("RMS error = sigma")
        add_legend_beside(axes, handles, labels, widen=ax is None)
        add_caption(
            axes,
            caption_of_edges(results),
            f"Dots: root mean squares in {SIGMA_BINS.words} of sigma / side. Above the diagonal: too sure. "
            f"Errors below {100 * LEAST:g} % are drawn there. {words_on_cut(results)}",
        )
    return axes


def bin_edges(sigma: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the root mean squares of sigma and of error in each bin of sigma that holds something."""
    n, variances, squares = (
        found[0] for found in SortedColumns(sigma, [np.square(sigma), np.square(error)]).sums(SIGMA_BINS)
    )
    there = n > 0
    return np.sqrt(variances[there] / n[there]), np.sqrt(squares[there] / n[there])


def _scale(axes: Axes, x: FloatArray, y: FloatArray) -> None:
    """Set logarithmic axes that show every point, at least a decade each."""
    from matplotlib.ticker import FuncFormatter

    for which, values in (("x", x), ("y", y)):
        low, high = float(values.min()) / 1.3, float(values.max()) * 1.3
        middle = (low * high) ** 0.5
        low, high = min(low, middle / 10**0.5), max(high, middle * 10**0.5)
        axes.set(**{f"{which}scale": "log", f"{which}lim": (low, high)})
        axis = axes.xaxis if which == "x" else axes.yaxis
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(FuncFormatter(lambda value, _: ""))


SIGMA_ERROR = Plot("sigma-error", "Sigma against error", draw_sigma_error)
