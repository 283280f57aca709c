"""The figure of the training experiment: PDQ of every arm, whether its sigmas are right, and what they cover."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from probox_experiments.figures import BLUE, GREEN, GREY, ORANGE, SKY, VERMILION, new_figure
from probox_experiments.table import ResultTable
from probox_experiments.training.arms import ARMS, PPDQ_ARMS, Arm
from probox_experiments.training.intervals import interval_of
from probox_experiments.training.measuring import LEVELS, level_column

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_training"]

COLOURS = {
    "l1": GREY,
    "l1-constant": GREY,
    "nll": VERMILION,
    "energy": ORANGE,
    "crps": GREEN,
    "dmm": "#CC79A7",
    "ppdq-log": BLUE,
    "ppdq-plain": SKY,
}
ROOM = 2.0
"""Points of PDQ beyond the axis: an arm that is farther off than the others together is named at the border."""
FAR = 10.0
"""A difference of more points is written, not drawn."""


def draw_training(table: ResultTable) -> Figure:
    """Draw PDQ by arm with every seed, predicted against true sigma, and the coverage of 90 % intervals."""
    arms = [arm for arm in ARMS if arm.name in set(table["arm"].tolist())]
    figure = new_figure(9.6, 6.6)
    grid = figure.add_gridspec(2, 2, width_ratios=[1.25, 1.0], height_ratios=[1.0, 0.92])
    _by_arm(figure.add_subplot(grid[0, 0]), table, arms, "PDQ", "PDQ by loss, test scenes", far="l1")
    _sigmas(figure.add_subplot(grid[0, 1]), table, arms)
    _differences(figure.add_subplot(grid[1, 0]), table, arms)
    spread = [arm for arm in arms if arm.spread != "none"]
    coverage = figure.add_subplot(grid[1, 1])
    coverage.axvspan(88, 92, color="#EDEDED", zorder=0.5)
    coverage.axvline(90, color=GREY, lw=0.9, zorder=0.6)
    _by_arm(coverage, table, spread, "coverage_90", "What 90 % intervals hold", label="true edges inside (%)")
    return figure


def _by_arm(
    axes: Axes, table: ResultTable, arms: list[Arm], column: str, title: str, *, label: str = "", far: str = ""
) -> None:
    """Draw a row of points per arm, one for each seed, and their mean with its interval."""
    rest = [100.0 * table.where(arm=arm.name)[column] for arm in arms if arm.name != far]
    low = min((values.min() for values in rest), default=0.0)
    for row, arm in enumerate(arms):
        values = 100.0 * table.where(arm=arm.name)[column]
        colour = COLOURS[arm.name]
        mean = interval_of(values)
        if arm.name == far and rest and values.max() < low - ROOM:
            words = f"\N{LEFTWARDS ARROW} {mean.mean:.1f}"
            axes.text(0.01, row, words, transform=axes.get_yaxis_transform(), color=colour, fontsize=8.5, va="center")
            continue
        axes.plot(values, np.full(len(values), row + 0.22), "o", ms=3.2, color=colour, alpha=0.65, mew=0)
        if len(values) > 1:
            axes.plot([mean.low, mean.high], [row - 0.08] * 2, color=colour, lw=2.2, solid_capstyle="round")
        axes.plot(mean.mean, row - 0.08, "D", ms=5, color=colour)
    axes.set_yticks(range(len(arms)), [arm.title for arm in arms])
    axes.set_ylim(len(arms) - 0.4, -0.6)
    axes.set_xlabel(label or f"{column} (%): seeds, and their mean with its 95 % interval")
    axes.set_title(title)


def _differences(axes: Axes, table: ResultTable, arms: list[Arm]) -> None:
    """Draw how much PDQ and mAP of each arm differ from those of the reference arm with the same seed."""
    names = [arm.name for arm in arms]
    beside = next((name for name in PPDQ_ARMS if name in names), names[0])
    axes.axvline(0, color=GREY, lw=0.9, zorder=0.6)
    own = table.where(arm=beside)
    for row, arm in enumerate(arms):
        if arm.name == beside:
            continue
        rows = table.where(arm=arm.name)
        for column, colour, up in (("PDQ", BLUE, -0.16), ("mAP", VERMILION, 0.16)):
            values = 100.0 * (rows[column] - own[column])
            mean = interval_of(values)
            if abs(mean.mean) > FAR:
                words = f"{column} {mean.mean:+.1f}"
                axes.text(
                    0.02, row + up, words, transform=axes.get_yaxis_transform(), color=colour, fontsize=8, va="center"
                )
                continue
            axes.plot(values, np.full(len(values), row + up), "o", ms=2.8, color=colour, alpha=0.5, mew=0)
            if len(values) > 1:
                axes.plot([mean.low, mean.high], [row + up] * 2, color=colour, lw=2.0, solid_capstyle="round")
            axes.plot(mean.mean, row + up, "D", ms=4.4, color=colour, label=column if row == len(arms) - 1 else None)
    axes.set_yticks(range(len(arms)), [arm.title for arm in arms])
    axes.set_ylim(len(arms) - 0.4, -0.6)
    title = next(arm.title for arm in arms if arm.name == beside)
    axes.set_xlabel(f"points more than {title} of the same seed, with 95 % intervals")
    axes.set_title("Differences, seed by seed")
    axes.legend(loc="lower left", handlelength=1.0)


def _sigmas(axes: Axes, table: ResultTable, arms: list[Arm]) -> None:
    """Draw the mean predicted sigma against the true one, a line per arm that learns it."""
    true = np.array([float(level_column(number).removeprefix("sigma_at_")) for number in range(len(LEVELS) - 1)])
    axes.plot([0.4, 4.0], [0.4, 4.0], color="#C9C9C9", lw=4, label="right", solid_capstyle="round", zorder=1)
    for arm in arms:
        if arm.spread != "learned":
            continue
        rows = table.where(arm=arm.name)
        predicted = np.array([rows[level_column(number)].mean() for number in range(len(LEVELS) - 1)])
        own: dict[str, Any] = {"color": COLOURS[arm.name], "label": arm.title}
        bold = arm.name in PPDQ_ARMS or arm.name == "nll"
        axes.plot(true, predicted, marker="o", ms=3.6 if bold else 2.6, lw=1.8 if bold else 1.0, **own)
    axes.set_xscale("log")
    axes.set_yscale("log")
    ticks = [0.5, 1.0, 2.0, 3.0]
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.set_minor_formatter("")
        axis.set_ticks([], minor=True)
    axes.set_xlabel("true sigma of an edge (pixels)")
    axes.set_ylabel("predicted sigma")
    axes.set_title("Predicted and true sigma")
    axes.legend(loc="upper left", fontsize=7.5, handlelength=1.8)
