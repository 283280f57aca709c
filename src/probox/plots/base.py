"""What plots share: their entry in the registry, their style, axes and legends."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from probox.evaluation.result import Evaluation
from probox.pictures.style import Theme, quietly, theme_called
from probox.support.optional import require
from probox.tables.results import Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "Plot",
    "Results",
    "add_figure_legend",
    "add_legend",
    "colour_of",
    "hits",
    "new_axes",
    "pdq_measured",
    "quietly",
    "short_name",
    "styled",
    "subplots",
    "use_plain_logs",
]

Results = Mapping[str, Evaluation]
"""Evaluations by name; one without a name needs no legend."""


@dataclasses.dataclass(frozen=True)
class Plot:
    """One plot of evaluations.

    Parameters
    ----------
    name : str
        That of its file; with underscores, that of the method of `Plots`.
    title : str
        What stands above it.
    draw : callable
        Takes `Results`, by keyword `dark` and whatever is its own, and returns matplotlib axes.
    fits : callable
        Returns whether it can be drawn of `Results`; default: of any. `draw_all` passes over it where it cannot.
    """

    name: str
    title: str
    draw: Callable[..., Any]
    fits: Callable[[Results], bool] = lambda results: True

    @property
    def method(self) -> str:
        """The name of the method that draws it."""
        return self.name.replace("-", "_")


@contextmanager
def styled(dark: bool) -> Iterator[Theme]:
    """Set the style while a plot is made; what is made keeps it."""
    matplotlib = require("matplotlib", extra="report")
    theme = theme_called(dark)
    with matplotlib.rc_context(theme.settings()):
        yield theme


def subplots(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Any, Any]:
    """Return a new figure of this size in inches, and its axes."""
    import matplotlib.pyplot as plt

    return plt.subplots(rows, columns, figsize=size, dpi=150, **options)


def new_axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the axes that were given, or those of a new figure."""
    if ax is not None:
        return ax
    axes: Axes = subplots(1, 1, size)[1]
    return axes


def pdq_measured(results: Results) -> bool:
    """Return whether PDQ is among the measures of all results."""
    return all(evaluation.has_pairs for evaluation in results.values())


def use_plain_logs(axes: Axes, linear_below: float) -> None:
    """Make the upward axis logarithmic but for numbers below a limit; its numbers are text, not formulas."""
    from matplotlib.ticker import FuncFormatter

    axes.set_yscale("symlog", linthresh=linear_below)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def colour_of(theme: Theme, number: int) -> str:
    """Return the colour of a detector by its number."""
    return theme.lines[number % len(theme.lines)]


def add_legend(axes: Axes, results: Results) -> Any:
    """Add a legend if there are names."""
    return axes.legend(loc="best") if any(results) else None


def add_figure_legend(figure: Any, results: Results, theme: Theme) -> None:
    """Add a legend above all panels if there are names."""
    from matplotlib.lines import Line2D

    if any(results):
        lines = [Line2D([], [], color=colour_of(theme, number)) for number in range(len(results))]
        figure.legend(lines, list(results), loc="outside upper right", ncols=len(lines))


def short_name(name: str, most: int = 28) -> str:
    """Return a name that leaves room for others; names of results often differ at the end.

    >>> short_name("yolov8n with clusters, 0.5", 12)
    'yolov…s, 0.5'
    """
    name = name.strip()
    return name if len(name) <= most else f"{name[: most // 2 - 1]}…{name[len(name) - most // 2 :]}"


def hits(evaluation: Evaluation, quality: str) -> npt.NDArray[np.float64]:
    """Return a quality of every true positive."""
    values = evaluation.detections.quality(quality)
    return np.asarray(values[evaluation.detections.verdicts == Verdict.TP])
