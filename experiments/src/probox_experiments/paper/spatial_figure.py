"""The figure of spatial uncertainty: the paper's lines, and how PDQ peaks around each true variance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from probox_experiments.figures import GREY, new_figure
from probox_experiments.paper.spatial_peaks import near_truth, peaks_of, scores_of
from probox_experiments.table import ResultTable, presets_in

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_spatial_uncertainty"]

LOOKS = {"reference": "-", "paper": (0, (3, 1.5)), "challenge": (0, (1, 1.2))}


def draw_spatial_uncertainty(table: ResultTable) -> Figure:
    """Draw a line per reported variance over the true one, a ring where both match; and PDQ around each true one."""
    from matplotlib import colormaps

    figure = new_figure(9.4, 4.3)
    left, right = figure.subplots(1, 2, width_ratios=(1, 1))
    true = np.unique(table["true_variance"])
    colours = dict(zip(true.tolist(), colormaps["viridis"](np.linspace(0.0, 0.88, len(true))), strict=True))
    for preset, column in presets_in(table).items():
        _lines(left, table, column, preset, colours)
        _around(right, table, column, preset, colours)
    left.set_xscale("log")
    left.set_xticks(true, [f"{value:g}" for value in true])
    left.minorticks_off()
    left.set_ylim(bottom=0)
    left.set_xlabel("true variance of the corners (square pixels)")
    left.set_ylabel("PDQ")
    left.set_title("PDQ rewards honest spatial uncertainty")
    right.axvline(1.0, color="#C9C9C9", lw=0.9, zorder=0.5)
    right.set_xscale("log")
    ticks = (0.4, 0.6, 0.8, 1, 1.5, 2, 2.5)
    right.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    right.minorticks_off()
    right.set_xlabel("reported variance over the true one")
    right.set_ylabel("PDQ less its highest")
    right.set_title("Around each true variance, and where it peaks")
    marks = [left.plot([], [], color=colour, lw=1.8, label=f"{variance:g}")[0] for variance, colour in colours.items()]
    styles = [left.plot([], [], color=GREY, lw=1.6, ls=LOOKS[name], label=name)[0] for name in presets_in(table)]
    ring = left.plot([], [], "o", ms=8, mfc="none", mec=GREY, mew=1.4, label="reported = true", ls="none")
    peak = left.plot([], [], "v", ms=6, color=GREY, label="fitted peak", ls="none")
    figure.legend(
        handles=[*marks, *styles, *ring, *peak],
        loc="outside lower center",
        ncols=5,
        title="colour: reported variance (left), true variance (right)",
    )
    return figure


def _lines(axes: Axes, table: ResultTable, column: str, preset: str, colours: dict[float, object]) -> None:
    means = table.mean_over("repeat")
    for variance, colour in colours.items():
        line = means.where(reported_variance=variance)
        line = line.take(np.argsort(line["true_variance"]))
        axes.plot(line["true_variance"], line[column], color=colour, lw=1.6, ls=LOOKS[preset])
        match = line.where(true_variance=variance)
        axes.plot(match["true_variance"], match[column], "o", ms=10, mfc="none", mec=colour, mew=1.4)


def _around(axes: Axes, table: ResultTable, column: str, preset: str, colours: dict[float, object]) -> None:
    peaks = peaks_of(table, column)
    for true, peak in peaks.items():
        reported, scores = scores_of(table, column, true)
        near = near_truth(reported, true)
        height = scores[:, near].mean(axis=0)
        top = height.max()
        axes.plot(reported[near] / true, height - top, color=colours[true], lw=1.6, ls=LOOKS[preset])
        ratio = np.exp(peak.value)
        level = np.interp(peak.value, np.log(reported[near] / true), height - top)
        axes.plot(ratio, level, "v", ms=6, color=colours[true], mec="white", mew=0.6, zorder=4)
