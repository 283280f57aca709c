"""The matrix of perturbations and measures as a picture."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from probox_experiments.beyond.noticing import LIMIT, Cell, Matrix
from probox_experiments.beyond.perturbations import BOXES, COUNTS, LABELS, SIGMAS
from probox_experiments.figures import BLUE, GREY, VERMILION, new_figure
from probox_experiments.table import ResultTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_notice"]

FULL = 100.0
"""From so many standard errors on colours are full, and numbers are not told apart."""
PALEST = 0.25
"""How much of its colour a cell has that has just been noticed."""


def draw_notice(table: ResultTable) -> Figure:
    """Draw a row for each change and a column for each measure: z in each cell, coloured where it is noticed."""
    matrix = Matrix(table)
    rows, columns = matrix.perturbations, matrix.measures
    figure = new_figure(2.2 + 0.39 * max(len(columns), 14), 1.9 + 0.27 * max(len(rows), 4))
    axes = figure.add_subplot()
    axes.grid(visible=False)
    for y, row in enumerate(rows):
        for x, column in enumerate(columns):
            _draw_cell(axes, x, y, matrix[column, row])
    _draw_groups(axes, rows, len(columns))
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xticks(range(len(columns)), [_heading(column) for column in columns], rotation=60, ha="left", va="bottom")
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0, pad=2, top=False, bottom=False, labeltop=True, labelbottom=False)
    for tick in axes.get_xticklabels():
        tick.set_rotation_mode("anchor")
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_title(f"What notices what: paired differences in standard errors over {matrix.repeats} repeats", pad=10)
    _draw_legend(figure)
    return figure


def _draw_cell(axes: Axes, x: int, y: int, cell: Cell) -> None:
    from matplotlib.patches import Rectangle

    strength = _strength(cell)
    colour = {1: BLUE, -1: VERMILION, 0: GREY}[cell.harm]
    axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, fc="#FFFFFF", ec="#E4E4E4", lw=0.6))
    if strength:
        axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, fc=colour, ec="white", lw=0.6, alpha=strength))
    ink = "white" if strength > 0.62 else "#333333" if cell.seen else "#8A8A8A"
    axes.text(x, y + 0.02, _words(cell.z), ha="center", va="center", fontsize=6.8, color=ink)


def _strength(cell: Cell) -> float:
    """Return how much colour a cell has: none below the limit, then by the logarithm of z."""
    if not cell.seen:
        return 0.0
    share = math.log(min(abs(cell.z), FULL) / LIMIT) / math.log(FULL / LIMIT)
    return PALEST + (1.0 - PALEST) * share


def _words(z: float) -> str:
    """Return z as a cell shows it.

    >>> _words(0.0), _words(-0.31), _words(14.2), _words(999.0), _words(float("nan"))
    ('0', '.3', '14', '99+', '')
    """
    if math.isnan(z):
        return ""
    size = abs(z)
    if size == 0.0:
        return "0"
    if size < 0.95:
        return f"{size:.1f}".removeprefix("0") if size >= 0.05 else "<.1"
    return f"{size:.0f}" if size < FULL - 0.5 else "99+"


def _heading(column: str) -> str:
    """Return the name of a measure without its bins and overlaps; PDQ with its preset.

    >>> _heading("D-ECE@50/10w"), _heading("PDQ_paper"), _heading("PMB_NLL"), _heading("coverage_90")
    ('D-ECE', 'PDQ, paper', 'PMB-NLL', 'coverage')
    """
    if column.startswith("PDQ_"):
        return f"PDQ, {column.removeprefix('PDQ_')}"
    return column.split("@")[0].split("/")[0].replace("coverage_90", "coverage").replace("_", "-")


def _draw_groups(axes: Axes, rows: tuple[str, ...], columns: int) -> None:
    """Draw lines between changes of boxes, sigmas, labels and counts."""
    end = 0
    for group in (BOXES, SIGMAS, LABELS, COUNTS):
        end += sum(one.name in rows for one in group)
        if 0 < end < len(rows):
            axes.plot([-0.5, columns - 0.5], [end - 0.5, end - 0.5], color="#333333", lw=1.0, solid_capstyle="butt")


def _draw_legend(figure: Figure) -> None:
    from matplotlib.patches import Patch

    looks = (
        (BLUE, "noticed, the number got worse"),
        (VERMILION, "noticed, but the number got better"),
        (GREY, "noticed, neither is better"),
    )
    handles = [Patch(fc=colour, ec="none", alpha=0.8, label=words) for colour, words in looks]
    handles.append(Patch(fc="white", ec="#C9C9C9", label=f"below {LIMIT:g}: not noticed; 0: the same number"))
    figure.legend(handles=handles, loc="outside lower center", ncols=4, handlelength=1.2, columnspacing=1.4)
