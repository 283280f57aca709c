"""What plots share: their entry in the registry, their style, axes and scales."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

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
    "colour_of",
    "hits",
    "new_axes",
    "pdq_measured",
    "quietly",
    "scale_counts",
    "styled",
    "subplots",
]

Results = Mapping[str, Evaluation]
"""Evaluations by name; one without a name needs no legend."""
Options = ParamSpec("Options")
Drawn = TypeVar("Drawn", covariant=True)


class HasResults(Protocol):
    """What plots are methods of: `Plots`."""

    @property
    def results(self) -> Results: ...


@dataclasses.dataclass(frozen=True)
class Plot(Generic[Options, Drawn]):
    """One plot of evaluations, and the method of `Plots` that draws it.

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
    draw: Callable[Concatenate[Results, Options], Drawn]
    fits: Callable[[Results], bool] = lambda results: True

    def __get__(self, owner: HasResults | None, kind: type | None = None) -> Callable[Options, Drawn]:
        results = {} if owner is None else owner.results  # None: asked of the class, as help() does
        return update_wrapper(partial(self.draw, results), self.draw)

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
    """Return a new figure of this size in inches, whose text stays text when it is saved, and its axes."""
    import matplotlib.pyplot as plt

    from probox.pictures.saving import TextFigure

    return plt.subplots(rows, columns, figsize=size, dpi=150, FigureClass=TextFigure, **options)


def new_axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the axes that were given, or those of a new figure."""
    if ax is not None:
        no_formulas(ax)
        return ax
    axes: Axes = subplots(1, 1, size)[1]
    return axes


def no_formulas(axes: Axes) -> None:
    """Make the numbers of axes that somebody else made text: formulas are not parsed in plots."""
    from matplotlib.ticker import ScalarFormatter

    for axis in (axes.xaxis, axes.yaxis):
        formatter = axis.get_major_formatter()
        if isinstance(formatter, ScalarFormatter):
            formatter.set_useMathText(False)


def pdq_measured(results: Results) -> bool:
    """Return whether PDQ is among the measures of all results."""
    return all(evaluation.has_pairs for evaluation in results.values())


def scale_counts(axes: Axes, most: float, *, logs: bool, linear_below: int = 10) -> None:
    """Make the upward axis one of counts from 0 to `most`, all of them within it; its numbers are written out.

    Parameters
    ----------
    axes : matplotlib axes
        Whose upward axis it is.
    most : float
        The largest count that is drawn.
    logs : bool
        Make it logarithmic, where the largest counts would hide all others; 0 is shown, too.
    linear_below : int
        Up to this count, a power of ten, it is not.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter, NullLocator

    if logs:
        axes.set_yscale("symlog", linthresh=linear_below)
        powers = range(round(math.log10(linear_below)), math.floor(math.log10(max(most, linear_below))) + 1)
        axes.yaxis.set_major_locator(FixedLocator([0, *(10**power for power in powers)]))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set_ylim(0, 1.5 * max(most, linear_below))
    else:
        axes.yaxis.set_major_locator(MaxNLocator("auto", integer=True))
        axes.set_ylim(0, 1.05 * max(most, 1))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def colour_of(theme: Theme, number: int) -> str:
    """Return the colour of a detector by its number."""
    return theme.lines[number % len(theme.lines)]


def hits(evaluation: Evaluation, quality: str) -> npt.NDArray[np.float64]:
    """Return a quality of every true positive."""
    values = evaluation.detections.quality(quality)
    return np.asarray(values[evaluation.detections.verdicts == Verdict.TP])
