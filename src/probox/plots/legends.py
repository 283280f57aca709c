"""Legends: always beside or above the axes, where there are no data, and names that fit into them."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from probox.pictures.style import Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LONGEST", "add_figure_legend", "add_legend_beside", "short_name", "short_names"]

LONGEST = 28
"""Letters of a name that legends and ticks have room for."""
_GAP = 0.2
"""Inches between axes, legend and the figure's edge."""


def short_name(name: str, most: int = LONGEST) -> str:
    """Return a name that leaves room for others; names of results often differ at the end.

    >>> short_name("yolov8n with clusters, 0.5", 12)
    'yolov…s, 0.5'
    """
    name = name.strip()
    return name if len(name) <= most else f"{name[: most // 2 - 1]}…{name[len(name) - most // 2 :]}"


def short_names(names: Iterable[str], most: int = LONGEST, *, lines: bool = True) -> list[str]:
    """Return names that leave room for others, and stay different: what would look alike is given in full, in lines.

    >>> short_names(["mask r-cnn, 12 epochs, seed 1", "mask r-cnn, 24 epochs, seed 1", "ssd"], 14)
    ['mask r-cnn, 12\\nepochs, seed 1', 'mask r-cnn, 24\\nepochs, seed 1', 'ssd']
    """
    full = list(names)
    short = [short_name(name, most) for name in full]
    alike = Counter(short)
    return [
        cut if alike[cut] == 1 else _in_lines(name.strip(), most) if lines else name.strip()
        for name, cut in zip(full, short, strict=True)
    ]


def _in_lines(name: str, most: int) -> str:
    return "\n".join(textwrap.wrap(name, most, break_on_hyphens=False))


def add_legend_beside(axes: Axes, handles: Sequence[Any], labels: Sequence[str], *, widen: bool = False) -> Any:
    """Add a legend to the right of the axes, where there are no data; nothing without handles.

    Parameters
    ----------
    axes : matplotlib axes
        Whose legend it is.
    handles, labels : sequences
        What is explained, and the words.
    widen : bool
        Make the figure wider by what the legend takes, so that the axes keep their size: for a figure of one's own.
    """
    if not handles:
        return None
    legend = axes.legend(handles, _seen(labels), loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)
    if widen:
        figure: Any = axes.get_figure()
        figure.set_figwidth(figure.get_figwidth() + legend.get_window_extent().width / figure.dpi + _GAP)
    return legend


def add_figure_legend(figure: Any, names: Iterable[str], theme: Theme, *, drawn: Sequence[bool] | None = None) -> None:
    """Add a legend of lines above all panels, in as many rows as it takes, if there are names.

    Those that are not `drawn` (default: all are) keep their colour to themselves: a legend explains what is there.
    """
    from matplotlib.lines import Line2D

    shown = [(n, name) for n, name in enumerate(_seen(short_names(names))) if drawn is None or drawn[n]]
    labels = [name for _, name in shown]
    if not any(labels):
        return
    lines = [Line2D([], [], color=theme.lines[number % len(theme.lines)]) for number, _ in shown]
    room = figure.dpi * (figure.get_figwidth() - 2 * _GAP)
    for columns in range(len(lines), 0, -1):
        legend = figure.legend(lines, labels, loc="outside upper right", ncols=columns)
        if columns == 1 or legend.get_window_extent().width <= room:
            break
        legend.remove()


def _seen(labels: Sequence[str]) -> list[str]:
    """Return labels of which none begins with an underscore: matplotlib would hide it."""
    return [f" {label}" if label.startswith("_") else label for label in labels]
