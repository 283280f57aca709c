"""Plots of evaluations, in one style: what `result.plot` and `probox plot` draw."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from probox.analysis.sweep import threshold_curve
from probox.errors import InputError
from probox.evaluation.naming import label_results
from probox.evaluation.result import Evaluation
from probox.measures.boxes.matching import SIZES
from probox.measures.pdq.pairs import QUALITIES
from probox.pictures.photos import require
from probox.pictures.style import Theme, theme_called
from probox.tables.results import Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PLOTS", "Plots", "draw_all"]

_TITLES = {
    "pPDQ": "pairwise (pPDQ)",
    "spatial": "spatial",
    "label": "label",
    "foreground": "foreground",
    "background": "background",
}
_MANY_CLASSES = 24


class Plots:
    """Plots of one evaluation, or of several under their names; each method returns the matplotlib axes.

    Parameters
    ----------
    results : Evaluation or mapping of str to Evaluation
        One line, or colour, each.

    Examples
    --------
    >>> import probox
    >>> from probox.demo import make_demo
    >>> demo = make_demo()
    >>> result = probox.evaluate(demo.truth, demo.detectors["unsure"])
    >>> axes = result.plot.thresholds()
    >>> axes = Plots({"unsure": result}).classes(dark=True)
    """

    def __init__(self, results: Evaluation | Mapping[str, Evaluation]) -> None:
        named = {"": results} if isinstance(results, Evaluation) else label_results(results)
        # A label that begins with an underscore is hidden from matplotlib's legends.
        self.results = {f" {name}" if name.startswith("_") else name: one for name, one in named.items()}
        if not self.results:
            raise InputError("there is nothing to plot")

    def qualities(self, *, dark: bool = False) -> Any:
        """Plot how each of the five qualities is distributed over the true positives; return an array of axes."""
        edges = np.linspace(0.0, 1.0, 21)
        with _styled(dark) as theme:
            figure, panels = _subplots(1, 5, (13.0, 3.0), sharey=True)
            for axes, quality in zip(panels, QUALITIES, strict=True):
                for number, evaluation in enumerate(self.results.values()):
                    values = _hits(evaluation, quality)
                    heights = np.histogram(np.clip(values, 0, 1), edges)[0] / max(len(values), 1)
                    colour = theme.lines[number % len(theme.lines)]
                    axes.stairs(100 * heights, edges, color=colour, linewidth=1.6)
                    if len(self.results) == 1:
                        axes.stairs(100 * heights, edges, color=colour, fill=True, alpha=0.25)
                    if len(values):
                        axes.axvline(values.mean(), color=colour, linewidth=1.0, linestyle=(0, (3, 2)))
                axes.set(xlabel=f"{_TITLES[quality]} quality", xlim=(0, 1))
                axes.set_xticks([0, 0.5, 1], ["0", "½", "1"])
            panels[0].set_ylabel("true positives, %")
            panels[0].set_title("Quality of true positives")
            self._legend(figure, theme)
        return panels

    def spatial_label(self, *, ax: Axes | None = None, dark: bool = False) -> Axes:
        """Plot spatial against label quality of every true positive, with lines of equal pPDQ."""
        return self._scatter("label", "spatial", "Where and what", ax, dark, levels=True)

    def foreground_background(self, *, ax: Axes | None = None, dark: bool = False) -> Axes:
        """Plot foreground against background quality of every true positive."""
        return self._scatter("background", "foreground", "Object covered, background left alone", ax, dark)

    def thresholds(self, *, ax: Axes | None = None, dark: bool = False) -> Axes:
        """Plot PDQ, TP, FP and FN against the label threshold; returns the axes of PDQ, the counts lie below it."""
        levels = np.linspace(0.0, 1.0, 201)
        with _styled(dark) as theme:
            upper: Any
            lower: Any
            if ax is None:
                _, (upper, lower) = _subplots(2, 1, (6.4, 5.6), sharex=True, height_ratios=(3, 2))
            else:
                upper, lower = ax, None
            for number, (name, evaluation) in enumerate(self.results.items()):
                colour = theme.lines[number % len(theme.lines)]
                curve = threshold_curve(evaluation, levels)
                upper.plot(levels, 100 * curve["PDQ"], color=colour, label=name or None)
                best = int(np.argmax(np.nan_to_num(curve["PDQ"])))
                upper.plot(levels[best], 100 * curve["PDQ"][best], "o", color=colour, markersize=5)
                if lower is not None:
                    for count, style in (("TP", "-"), ("FP", "--"), ("FN", ":")):
                        lower.plot(levels, curve[count], style, color=colour, linewidth=1.5)
            upper.set(ylabel="PDQ, %", xlim=(0, 1), title="What a label threshold does")
            upper.set_ylim(bottom=0)
            if lower is None:
                upper.set_xlabel("label threshold")
            else:
                lower.set(xlabel="label threshold", ylabel="count")
                if lower.get_ylim()[1] > 8 * max(len(evaluation.objects) for evaluation in self.results.values()):
                    lower.set_yscale("symlog", linthresh=10)  # false positives by the thousand would hide the rest
                lower.set_ylim(bottom=0)
                _line_key(lower, theme, (("TP", "-"), ("FP", "--"), ("FN", ":")))
            self._named(upper)
        shown: Axes = upper
        return shown

    def precision_recall(self, *, iou: float = 0.5, ax: Axes | None = None, dark: bool = False) -> Axes:
        """Plot COCO's precision against recall, the mean over classes that have objects, at an IoU of `iou`."""
        with _styled(dark) as theme:
            axes = _axes(ax, (5.2, 4.6))
            for number, (name, evaluation) in enumerate(self.results.items()):
                curve = mean_curve(evaluation, iou)
                if curve is None:
                    continue
                area = f"AP {100 * curve[1].mean():.1f}"
                label = f"{name}, {area}" if name else area
                axes.plot(*curve, color=theme.lines[number % len(theme.lines)], label=label)
            axes.set(xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1.02))
            axes.set_title(f"Precision and recall at IoU {iou:g}")
            if axes.get_legend_handles_labels()[0]:
                axes.legend(loc="best")
        return axes

    def classes(self, *, ax: Axes | None = None, dark: bool = False) -> Axes:
        """Plot the PDQ of each class, best first; with many classes the best and the worst."""
        tables = [evaluation.per_class() for evaluation in self.results.values()]
        names = [
            name for name in tables[0] if any(not np.isnan(table[name]["PDQ"]) for table in tables if name in table)
        ]
        names.sort(key=lambda name: -float(np.nan_to_num(tables[0][name]["PDQ"])))
        title = "PDQ per class"
        if len(names) > _MANY_CLASSES:
            half = _MANY_CLASSES // 2
            title = f"PDQ per class: the best and worst {half} of {len(names)}"
            names = names[:half] + names[-half:]
        values = [[table.get(name, {}).get("PDQ", np.nan) for name in names] for table in tables]
        return self._bars(names, values, title, ax, dark, size=(6.4, 1.6 + 0.26 * len(names)))

    def sizes(self, *, ax: Axes | None = None, dark: bool = False) -> Axes:
        """Plot the PDQ of small, medium and large objects (COCO's ranges of area)."""
        tables = [evaluation.per_size() for evaluation in self.results.values()]
        values = [[table[name]["PDQ"] for name in SIZES[1:]] for table in tables]
        limits = ("small, up to 32²", "medium, up to 96²", "large")
        return self._bars(list(limits), values, "PDQ per object size (pixels)", ax, dark, size=(6.4, 2.6))

    def _scatter(self, x: str, y: str, title: str, ax: Axes | None, dark: bool, *, levels: bool = False) -> Axes:
        with _styled(dark) as theme:
            axes = _axes(ax, (5.2, 5.0))
            if levels:
                grid = np.linspace(1e-3, 1.0, 200)
                for level in (0.25, 0.5, 0.75):
                    axes.plot(grid, np.minimum(level**2 / grid, 1.1), color=theme.faint, linewidth=1.0, zorder=0.5)
                    axes.text(
                        level**2 + 0.012, 1.005, f"pPDQ {level:g}", fontsize=8, va="bottom", color=theme.ink, alpha=0.6
                    )
            for number, (name, evaluation) in enumerate(self.results.items()):
                across, up = _hits(evaluation, x), _hits(evaluation, y)
                alpha = float(np.clip(30.0 / np.sqrt(len(across) + 1), 0.08, 0.6))
                colour = theme.lines[number % len(theme.lines)]
                axes.scatter(across, up, s=12, color=colour, alpha=alpha, linewidths=0, label=name or None)
            axes.set(xlabel=f"{x} quality", ylabel=f"{y} quality", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
            axes.set_title(title, pad=18 if levels else None)
            axes.set_aspect("equal")
            legend = self._named(axes)
            for handle in legend.legend_handles if legend else ():
                handle.set_alpha(1.0)
        return axes

    def _bars(
        self, names: list[str], values: list[list[float]], title: str, ax: Axes | None, dark: bool,
        size: tuple[float, float],
    ) -> Axes:  # fmt: skip
        with _styled(dark) as theme:
            axes = _axes(ax, (size[0], size[1] * (1.0 if len(values) < 3 else 1.4)))
            place = np.arange(len(names))
            width = 0.78 / len(values)
            for number, (name, heights) in enumerate(zip(self.results, values, strict=True)):
                shown = 100 * np.array(heights, dtype=np.float64)
                shift = (number - (len(values) - 1) / 2) * width
                colour = theme.lines[number % len(theme.lines)]
                bars = axes.barh(place + shift, np.nan_to_num(shown), 0.92 * width, color=colour, label=name or None)
                words = ["" if np.isnan(value) else f"{value:.1f}" for value in shown]
                axes.bar_label(bars, words, padding=3, fontsize=8 if len(values) < 3 else 7, color=theme.ink)
            axes.set_yticks(place, [_short(name) for name in names], parse_math=False)
            axes.invert_yaxis()
            axes.grid(visible=False, axis="y")
            axes.spines["left"].set_visible(False)
            axes.set(xlabel="PDQ, %", title=title)
            axes.margins(x=0.1, y=0.02)
            self._named(axes)
        return axes

    def _named(self, axes: Axes) -> Any:
        """Add a legend if there are names."""
        return axes.legend(loc="best") if any(self.results) else None

    def _legend(self, figure: Any, theme: Theme) -> None:
        from matplotlib.lines import Line2D

        if any(self.results):
            lines = [Line2D([], [], color=theme.lines[n % len(theme.lines)]) for n in range(len(self.results))]
            figure.legend(lines, list(self.results), loc="outside upper right", ncols=len(lines))


PLOTS: dict[str, Callable[..., Any]] = {
    "qualities": Plots.qualities,
    "spatial-label": Plots.spatial_label,
    "foreground-background": Plots.foreground_background,
    "thresholds": Plots.thresholds,
    "precision-recall": Plots.precision_recall,
    "classes": Plots.classes,
    "sizes": Plots.sizes,
}
"""Every plot by the name of its file."""


def draw_all(results: Mapping[str, Evaluation], *, dark: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield the name and figure of every plot, one at a time."""
    import matplotlib.pyplot as plt

    plots = Plots(results)
    for name, draw in PLOTS.items():
        first: Any = np.ravel(draw(plots, dark=dark))[0]
        yield name, first.figure
        plt.close(first.figure)


def mean_curve(evaluation: Evaluation, iou: float) -> tuple[Any, Any] | None:
    """Return recall and the mean precision over the classes that have objects, or None if there are none."""
    measured = evaluation.average_precision
    curves = [measured.curve(name, iou) for name, n in zip(measured.classes, measured.objects[:, 0], strict=True) if n]
    if not curves:
        return None
    return curves[0].recall, np.mean([curve.precision for curve in curves], axis=0)


@contextmanager
def _styled(dark: bool) -> Iterator[Theme]:
    """Set the style while a plot is made; what is made keeps it."""
    matplotlib = require("matplotlib")
    theme = theme_called(dark)
    with matplotlib.rc_context(theme.settings()):
        yield theme


@contextmanager
def quietly() -> Iterator[None]:
    """Keep matplotlib from warning of every letter that its font lacks: such a letter is shown as a box."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        yield


def _subplots(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Any, Any]:
    import matplotlib.pyplot as plt

    return plt.subplots(rows, columns, figsize=size, dpi=150, **options)


def _axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    if ax is not None:
        return ax
    axes: Axes = _subplots(1, 1, size)[1]
    return axes


def _hits(evaluation: Evaluation, quality: str) -> Any:
    return getattr(evaluation.detections, quality)[evaluation.detections.verdict == Verdict.TP]


def _line_key(axes: Axes, theme: Theme, lines: tuple[tuple[str, Any], ...]) -> None:
    """Add a legend that tells line styles apart."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=theme.ink, linestyle=style, linewidth=1.4) for _, style in lines]
    axes.legend(
        handles,
        [name for name, _ in lines],
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=len(lines),
        borderaxespad=0.0,
    )


def _short(name: str) -> str:
    return name if len(name) <= 28 else name[:27] + "…"
