"""What sigmas say and how large errors are, edge by edge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from probox.measures.scoring.calibration_metrics import Bins, SortedColumns
from probox.measures.scoring.pair_measures import relative_edges
from probox.measures.scoring.ranking_metrics import spearman
from probox.plots.base import Plot, Results, colour_of, new_axes, styled
from probox.plots.legends import add_legend_beside, short_names
from probox.plots.pairs import (
    CUT,
    FloatArray,
    add_caption,
    caption_of_edges,
    put_words,
    why_no_sigma,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["BINS", "LEAST", "PLOT", "binned"]

TITLE = "Sigma against error"
BINS = Bins(10, "mass")
LEAST = 1e-4
"""Logarithms have no 0: smaller shares of the side are drawn here."""


def draw(results: Results, *, ax: Axes | None = None, dark: bool = False) -> Axes:
    """Plot |error| / side against sigma / side, a point for every edge; large dots are root mean squares in bins.

    On the diagonal the root mean square error is what sigma says; below it sigmas are too large. A sigma of the same
    share of every side is a vertical line.
    """
    with styled(dark) as theme:
        axes = new_axes(ax, (5.8, 5.4))
        handles: list[Any] = []
        labels, missing, drawn = [], [], []
        for number, (name, evaluation) in enumerate(zip(short_names(results), results.values(), strict=True)):
            pairs = evaluation.matched_pairs
            missing.append(why_no_sigma(pairs))
            if missing[-1]:
                continue
            sigmas, errors, present = relative_edges(pairs)
            sigma, error = sigmas[present], errors[present]
            colour = colour_of(theme, number)
            size, alpha = (4, 0.25) if len(sigma) > 1000 else (9, 0.4)
            axes.scatter(
                100 * np.maximum(sigma, LEAST), 100 * np.maximum(error, LEAST),
                s=size, color=colour, alpha=alpha, linewidths=0, rasterized=True, zorder=1.5,
            )  # fmt: skip
            across, up = binned(sigma, error)
            (line,) = axes.plot(
                100 * np.maximum(across, LEAST), 100 * np.maximum(up, LEAST), "-o",
                color=colour, markersize=7, markeredgecolor=theme.ground, markeredgewidth=1.2, zorder=3,
            )  # fmt: skip
            drawn += [100 * np.maximum(sigma, LEAST), 100 * np.maximum(error, LEAST)]
            rho = spearman(sigma, error)
            words = "Spearman none: constant" if np.isnan(rho) else f"Spearman {rho:.2f}"
            handles.append(line)
            labels.append(f"{name}\n{words}" if name else words)
        axes.set(xlabel="sigma / side, %", ylabel="|error| / side, %", title=TITLE)
        if all(missing):
            put_words(axes, missing[0])
        else:
            _scale(axes, np.concatenate(drawn[0::2]), np.concatenate(drawn[1::2]))
            low, high = axes.get_xlim()
            (diagonal,) = axes.plot([low, high], [low, high], color=theme.ink, linewidth=1.0, alpha=0.7, zorder=2)
            handles.append(diagonal)
            labels.append("RMS error = sigma")
        add_legend_beside(axes, handles, labels, widen=ax is None)
        pairing = next(iter(results.values())).matched_pairs.pairing
        add_caption(
            axes,
            caption_of_edges(results),
            f"Dots: root mean squares in {BINS.words} of sigma / side. Above the diagonal: too sure. "
            f"Errors below {100 * LEAST:g} % are drawn there. {CUT.format(pairing)}",
        )
    return axes


def binned(sigma: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the root mean squares of sigma and of error in each bin of sigma that holds something."""
    n, variances, squares = (
        found[0] for found in SortedColumns(sigma, [np.square(sigma), np.square(error)]).sums(BINS)
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


PLOT = Plot("sigma-error", TITLE, draw)
