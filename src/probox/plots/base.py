"""Shared parts of plots: the class `Plot`, style, axes, legends and captions."""

from __future__ import annotations

import dataclasses
import math
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from probox.evaluation.result import Evaluation
from probox.measures.matched import FEW_PAIRS, MatchedPairs
from probox.measures.scoring.score_rows import with_sigma
from probox.pictures.style import DARK, LIGHT, Theme
from probox.support.formatting import with_count
from probox.support.optional import require
from probox.tables.results import Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Results = Mapping[str, Evaluation]
"""Evaluations by name; a single one without name has no legend."""

Options = ParamSpec("Options")

Drawn = TypeVar("Drawn", covariant=True)


class HasResults(Protocol):
    """A class with plots as methods, such as `Plots`."""

    @property
    def results(self) -> Results: ...


@dataclasses.dataclass(frozen=True)
class Plot(Generic[Options, Drawn]):
    """A plot of evaluations, and the method of `Plots` that draws it.

    Parameters
    ----------
    name : str
        Name of its file; with underscores, name of the method of `Plots`.
    title : str
        Title of the plot.
    draw : callable
        Function of `Results` and keywords, `dark` among them, that returns matplotlib axes.
    fits : callable
        Function that returns whether `Results` can be plotted; `draw_all` skips other plots. Default: always.
    """

    name: str
    title: str
    draw: Callable[Concatenate[Results, Options], Drawn]
    fits: Callable[[Results], bool] = lambda results: True

    def __get__(self, owner: HasResults | None, kind: type | None = None) -> Callable[Options, Drawn]:
        results = {} if owner is None else owner.results  # None: access by the class, as in help()
        return update_wrapper(partial(self.draw, results), self.draw)

    @property
    def method(self) -> str:
        """Return the name of the method of `Plots`."""
        return self.name.replace("-", "_")


@contextmanager
def set_style(dark: bool) -> Iterator[Theme]:
    """Set the style while a plot is made."""
    matplotlib = require("matplotlib", extra="report")
    theme = DARK if dark else LIGHT
    with matplotlib.rc_context(theme.settings()):
        yield theme


def subplots(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Any, Any]:
    """Return a new figure of a size in inches, which is saved with text as text, and its axes."""
    import matplotlib.pyplot as plt

    from probox.pictures.rendering import TextFigure

    return plt.subplots(rows, columns, figsize=size, dpi=150, FigureClass=TextFigure, **options)


def new_axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the given axes, or those of a new figure."""
    if ax is not None:
        no_formulas(ax)
        return ax
    axes: Axes = subplots(1, 1, size)[1]
    return axes


def two_panels(ax: Axes | None, size: tuple[float, float], ratios: tuple[int, int]) -> tuple[Any, Any]:
    """Return upper and lower axes of a new figure with a shared x axis, or the given axes and None."""
    return (new_axes(ax, size), None) if ax is not None else subplots(2, 1, size, sharex=True, height_ratios=ratios)[1]


def lie_bars(axes: Axes) -> None:
    """Remove the horizontal grid and the left line of axes with horizontal bars."""
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)


def no_formulas(axes: Axes) -> None:
    """Format the numbers of given axes without formulas, which plots do not parse."""
    from matplotlib.ticker import ScalarFormatter

    for axis in (axes.xaxis, axes.yaxis):
        formatter = axis.get_major_formatter()
        if isinstance(formatter, ScalarFormatter):
            formatter.set_useMathText(False)


def pdq_measured(results: Results) -> bool:
    """Return whether all results contain PDQ."""
    return all(evaluation.has_pairs for evaluation in results.values())


def scale_counts(axes: Axes, most: float, *, logs: bool, linear_below: int = 10) -> None:
    """Make the y axis one of counts from 0 to `most`, with thousands separators.

    With `logs` it is logarithmic above `linear_below`, a power of ten, and still includes 0.
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


def take_hits(evaluation: Evaluation, quality: str) -> npt.NDArray[np.float64]:
    """Return a quality of every true positive."""
    values = evaluation.detections.quality(quality)
    return np.asarray(values[evaluation.detections.verdicts == Verdict.TP])


LONGEST = 28
"""Most letters of a name in legends and ticks."""

_GAP = 0.2
"""Inches between axes, legend and the figure's edge."""


def shorten_name(name: str, most: int = LONGEST) -> str:
    """Return a name of at most `most` letters, without its middle, because names often differ at the end.

    >>> shorten_name("yolov8n with clusters, 0.5", 12)
    'yolov…s, 0.5'
    """
    name = name.strip()
    return name if len(name) <= most else f"{name[: most // 2 - 1]}…{name[len(name) - most // 2 :]}"


def shorten_names(names: Iterable[str], most: int = LONGEST, *, lines: bool = True) -> list[str]:
    """Return short names that stay different; equal short names are replaced by full ones, in several lines.

    >>> shorten_names(["mask r-cnn, 12 epochs, seed 1", "mask r-cnn, 24 epochs, seed 1", "ssd"], 14)
    ['mask r-cnn, 12\\nepochs, seed 1', 'mask r-cnn, 24\\nepochs, seed 1', 'ssd']
    """
    full = list(names)
    short = [shorten_name(name, most) for name in full]
    alike = Counter(short)
    return [
        cut if alike[cut] == 1 else _in_lines(name.strip(), most) if lines else name.strip()
        for name, cut in zip(full, short, strict=True)
    ]


def _in_lines(name: str, most: int) -> str:
    return "\n".join(textwrap.wrap(name, most, break_on_hyphens=False))


def add_legend_beside(axes: Axes, handles: Sequence[Any], labels: Sequence[str], *, widen: bool = False) -> Any:
    """Add a legend to the right of the axes; none without handles.

    With `widen` the figure gets wider by the legend, so that the axes keep their size.
    """
    if not handles:
        return None
    legend = axes.legend(handles, _seen(labels), loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)
    if widen:
        figure: Any = axes.get_figure()
        figure.set_figwidth(figure.get_figwidth() + legend.get_window_extent().width / figure.dpi + _GAP)
    return legend


def add_figure_legend(figure: Any, names: Iterable[str], theme: Theme, *, drawn: Sequence[bool] | None = None) -> None:
    """Add a legend of lines above all panels, in as many rows as needed; none without names.

    The legend omits results that are not `drawn` (default: all are).
    """
    from matplotlib.lines import Line2D

    shown = [(n, name) for n, name in enumerate(_seen(shorten_names(names))) if drawn is None or drawn[n]]
    labels = [name for _, name in shown]
    if not any(labels):
        return
    lines = [Line2D([], [], color=colour_of(theme, number)) for number, _ in shown]
    room = figure.dpi * (figure.get_figwidth() - 2 * _GAP)
    for columns in range(len(lines), 0, -1):
        legend = figure.legend(lines, labels, loc="outside upper right", ncols=columns)
        if columns == 1 or legend.get_window_extent().width <= room:
            break
        legend.remove()


def _seen(labels: Sequence[str]) -> list[str]:
    """Return labels that do not start with an underscore, which matplotlib would hide."""
    return [f" {label}" if label.startswith("_") else label for label in labels]


FloatArray = npt.NDArray[np.float64]

Flags = npt.NDArray[np.bool_]

CAPTION_SIZE = 8.5
"""Points."""

_LETTERS_PER_INCH, _MARGIN = 15.5, 0.9
"""Letters of a caption per inch, and the inches of a figure's width outside of the caption."""


def sigmas_of_edges(pairs: MatchedPairs) -> tuple[FloatArray, Flags]:
    """Return the std of each edge, and which edges have one and are not at the image border, (K, 4)."""
    present = with_sigma(pairs)
    return np.where(present, np.sqrt(pairs.variances), 1.0), present


def why_no_sigma(pairs: MatchedPairs) -> str:
    """Return why no pair has a std; empty if one has."""
    if not len(pairs):
        return "no matched pairs"
    if not pairs.variances.any():
        return "no covariances"
    return "" if with_sigma(pairs).any() else "all edges at the image border"


def few_words(n: int, what: str = "pair") -> str:
    """Return a count, with a warning if it is small.

    >>> few_words(12)
    '12 pairs (fewer than 30: unreliable)'
    """
    return with_count(n, what) + (f" (fewer than {FEW_PAIRS}: unreliable)" if n < FEW_PAIRS else "")


def caption_of_edges(results: Results) -> str:
    """Return the number of used and excluded pairs of each result."""
    lines = []
    for name, evaluation in zip(shorten_names(results, lines=False), results.values(), strict=True):
        pairs = evaluation.matched_pairs
        missing = why_no_sigma(pairs)
        judged = int(with_sigma(pairs).any(axis=1).sum())
        words = [missing or few_words(judged)]
        plain, cut = int((~pairs.variances.any(axis=1)).sum()), int(pairs.truncated.sum())
        if not missing:
            words += [f"{with_count(plain, 'box')} without covariance excluded"] if plain else []
            words += [f"{with_count(cut, 'edge')} at the image border excluded"] if cut else []
        lines.append(f"{name}: {', '.join(words)}" if name else ", ".join(words))
    return "\n".join(lines)


def words_on_cut(results: Results) -> str:
    """Return how pairs are matched, and the effect on errors."""
    return f"Pairs: {next(iter(results.values())).matched_pairs.pairing}; boxes with larger errors are unmatched."


def add_caption(axes: Axes, *texts: str) -> None:
    """Write a caption below the axes, each text in its own lines, as wide as the figure's column."""
    figure: Any = axes.get_figure()
    grid = axes.get_subplotspec()
    columns = 1 if grid is None else grid.get_gridspec().ncols
    width = int(_LETTERS_PER_INCH * (figure.get_figwidth() / columns - _MARGIN))
    axes.annotate(
        wrap_lines(texts, width),
        xy=(0.0, 0.0),
        xycoords=("axes fraction", axes.xaxis.label),
        xytext=(0.0, -7.0),
        textcoords="offset points",
        ha="left",
        va="top",
        fontsize=CAPTION_SIZE,
        annotation_clip=False,
    )


def wrap_lines(texts: Sequence[str], width: int) -> str:
    """Return texts wrapped to lines of at most `width` letters."""
    lines = [line for text in texts for line in text.splitlines()]
    return "\n".join(part for line in lines for part in textwrap.wrap(line, max(width, 30)))


def caption_figure(figure: Any, texts: Sequence[str], width: int) -> None:
    """Write a caption below all panels in lines of at most `width` letters."""
    figure.supxlabel(wrap_lines(texts, width), x=0.008, ha="left", fontsize=CAPTION_SIZE, multialignment="left")


def put_words(axes: Axes, words: str) -> None:
    """Write into the middle of empty axes why they are empty, and remove their ticks."""
    axes.set(xticks=[], yticks=[])
    axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", fontsize=11)
