"""Figures of the experiments: one style, and one colour per metric in all of them."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from probox.measures.measure import Column
from probox.measures.pdq.pdq_measure import PDQ
from probox.measures.registry import in_table_order
from probox.support.optional import require
from probox_experiments.claims import Floats, ResultTable, presets_in

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
else:
    Axes = Figure = object  # matplotlib is imported on first use


# Okabe and Ito's palette is distinguishable with any kind of colour vision; line styles and markers help in print.
BLUE, VERMILION, GREEN, ORANGE, SKY, GREY = "#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9", "#6B6B6B"

LINES: Mapping[str, Mapping[str, Any]] = {
    # Later lines have smaller markers, so that coinciding curves stay visible.
    "mAP": {"color": VERMILION, "ls": (0, (5, 2)), "marker": "s", "ms": 7.4, "lw": 1.6, "mfc": "white"},
    "moLRP": {"color": GREEN, "ls": (0, (1, 1.2)), "marker": "^", "ms": 5.4, "lw": 1.8, "mfc": "white"},
    "PDQ": {"color": BLUE, "ls": "-", "marker": "o", "ms": 3.2, "lw": 1.8},
}
OTHER_PRESETS: Sequence[Mapping[str, Any]] = (
    {"lw": 1.0, "ls": (0, (4, 1.6)), "marker": ""},
    {"lw": 1.0, "ls": (0, (1, 1.2)), "marker": ""},
)
"""Changes to PDQ's line style for the second and third preset."""
CLOSED_FORM = "closed form of mAP"
ONE_LINE = 0.005
"""Largest difference between lines that are drawn as one."""
OTHER_LINES: Sequence[Mapping[str, Any]] = (
    {"color": ORANGE, "ls": "-.", "marker": "D", "ms": 4.2, "lw": 1.6, "mfc": "white"},
    {"color": SKY, "ls": "--", "marker": "v", "ms": 5.4, "lw": 1.6, "mfc": "white"},
    {"color": GREY, "ls": ":", "marker": "P", "ms": 5.4, "lw": 1.6, "mfc": "white"},
)
"""Line styles of metrics that are missing in `LINES`."""

STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.8,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.7,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "xtick.color": "#333333",
    "ytick.color": "#333333",
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "svg.hashsalt": "probox",  # the same figure is the same file
    "axes.formatter.use_mathtext": False,
    "text.usetex": False,
}
WIDTH, HEIGHT = 4.8, 3.3


def new_figure(width: float = WIDTH, height: float = HEIGHT) -> Figure:
    """Return an empty figure of a size in inches; text stays text in SVG files."""
    _matplotlib()
    from probox.pictures.rendering import TextFigure

    return TextFigure(figsize=(width, height), layout="constrained")


def style() -> Any:
    """Return the Matplotlib context for drawing and saving figures."""
    return _matplotlib().rc_context(STYLE)


def _matplotlib() -> Any:
    return require("matplotlib", extra="report", purpose="figures need")


def pictures(figure: Figure) -> tuple[bytes, bytes]:
    """Return the figure as PNG and SVG. Equal figures give equal bytes."""
    png, svg = io.BytesIO(), io.BytesIO()
    with style():
        figure.savefig(png, format="png", dpi=200, metadata={"Software": None})
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    return png.getvalue(), svg.getvalue()


def _score_axis(axes: Axes) -> None:
    axes.set_ylim(-0.04, 1.07)
    axes.set_yticks(np.linspace(0, 1, 6))
    axes.set_ylabel("score")


def measure_lines() -> list[tuple[Column, dict[str, Any]]]:
    """Return the standard metrics between 0 and 1, each with its line style; PDQ is last and drawn on top."""
    others = cycle(OTHER_LINES)
    lines = []
    for column in (measure.headline for measure in in_table_order() if measure.standard):
        if column.unit == "per cent":
            label = f"1 \N{MINUS SIGN} {column.key}" if column.complement else column.key
            lines.append((column, {"label": label, **(LINES.get(column.key) or next(others))}))
    return lines


def shown(table: ResultTable, column: Column) -> Floats:
    """Return a metric as shown in tables; errors marked `complement` are subtracted from 1."""
    return 1 - table[column.key] if column.complement else table[column.key]


def pdq_lines(table: ResultTable) -> list[tuple[str, dict[str, Any]]]:
    """Return the columns of PDQ under each preset, in drawing order, with their line styles.

    The first has the style of PDQ, the others are thin and dashed. Coinciding lines are drawn once with one label.
    """
    columns = presets_in(table, PDQ.headline.key)
    looks = dict(LINES[PDQ.headline.key])
    if len(columns) > 1:
        scores = np.stack([table[column] for column in columns.values()])
        if np.ptp(scores, axis=0).max(initial=0.0) <= ONE_LINE:
            return [
                (
                    next(iter(columns.values())),
                    {**looks, "label": f"PDQ, {'both' if len(columns) == 2 else 'all'} presets"},
                )
            ]
    lines = []
    for (preset, column), style in zip(columns.items(), ({}, *OTHER_PRESETS), strict=False):
        alone = len(columns) == 1 and preset == "reference"
        lines.append((column, {**looks, **style, "label": "PDQ" if alone else f"PDQ, {preset}"}))
    return lines


def draw_curves(
    table: ResultTable,
    x: str,
    *,
    title: str,
    xlabel: str,
    measures: Sequence[str] | None = None,
    reciprocal: bool = False,
    integers: bool = False,
    legend: str = "upper right",
) -> Figure:
    """Draw metrics, averaged over repeats, against one setting; `reciprocal` adds 1/x for comparison."""
    figure = new_figure()
    axes = figure.add_subplot()
    _draw_scores(axes, table, x, measures=measures, reciprocal=reciprocal, integers=integers)
    axes.set_xlabel(xlabel)
    axes.set_title(title)
    _legend(axes, legend)
    return figure


def set_log_ticks(axes: Axes, ticks: Any, form: str = "g") -> None:
    """Make the horizontal axis logarithmic, with these ticks only."""
    places = np.asarray(ticks).tolist()
    axes.set_xscale("log")
    axes.set_xticks(places, [f"{place:{form}}" for place in places])
    axes.minorticks_off()


def set_log_axes(axes: Axes, ticks: Sequence[float]) -> None:
    """Make both axes logarithmic, with these ticks only."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.set_ticks([], minor=True)


def plot_curves(x: str, title: str, xlabel: str, **options: Any) -> Callable[[ResultTable], Figure]:
    """Return a function that draws curves of a table against a setting, see `draw_curves`."""
    return partial(draw_curves, x=x, title=title, xlabel=xlabel, **options)


def _draw_scores(
    axes: Axes,
    table: ResultTable,
    x: str,
    *,
    measures: Sequence[str] | None = None,
    reciprocal: bool = False,
    integers: bool = False,
) -> None:
    """Draw the curves of `draw_curves`, without title and legend."""
    averaged = table.mean_over("repeat") if "repeat" in table.columns else table
    setting = averaged[x]
    if reciprocal:
        axes.plot(setting, 1 / setting, color="#D0D0D0", lw=7, label="1/n", zorder=1.5, solid_capstyle="round")
    for values, line in _score_lines(averaged, measures):
        axes.plot(setting, values, **line, mew=1.2, markevery=1 if len(setting) < 15 else 2)
    _score_axis(axes)
    if measures is not None and len(measures) == 1:
        axes.set_ylabel(measures[0])
    if integers:
        axes.set_xticks(setting)


def _score_lines(table: ResultTable, measures: Sequence[str] | None = None) -> Iterator[tuple[Floats, dict[str, Any]]]:
    """Yield the values of measured metrics, each with its line style; PDQ under every preset."""
    for column, line in measure_lines():
        if measures is not None and column.key not in measures:
            continue
        if column.key == PDQ.headline.key:
            for name, looks in pdq_lines(table):
                yield table[name], looks
        elif column.key in table:
            yield shown(table, column), line


def draw_fewer_images(table: ResultTable) -> Figure:
    """Draw duplicates on the paper's subset of images, and the excess over 1/n against the number of images."""
    figure = new_figure(7.4, 3.4)
    left, right = figure.subplots(1, 2)
    few = int(table["images"][0])
    _draw_scores(left, table.where(images=few), "detections", reciprocal=True, integers=True)
    left.set_xlabel("perfect detections per object, n")
    left.set_title(f"Duplicates of every object, {few:,} images")

    duplicated = table.take(table["detections"] > 1)
    excess = duplicated.replace(
        **{name: duplicated[name] - 1 / duplicated["detections"] for name in presets_in(table).values()},
        **{name: duplicated[name] - 1 / duplicated["detections"] for name in ("mAP", "closed_form")},
        moLRP=duplicated["moLRP"] + 1 / duplicated["detections"],
    )
    means = excess.mean_over("detections")
    if len(means):
        means = means.take(np.argsort(means["images"], kind="stable"))
        right.axhline(0.0, color="#C9C9C9", lw=0.8, zorder=0.5)
        right.plot(
            means["images"], means["closed_form"], color="#D0D0D0", lw=7, label=CLOSED_FORM, zorder=1.5,
            solid_capstyle="round",
        )  # fmt: skip
        for values, line in _score_lines(means):
            right.plot(means["images"], values, **line, mew=1.2)
        counts = means["images"].tolist()
        apart = [count for count in counts if not any(count < other < 1.5 * count for other in counts)]
        set_log_ticks(right, apart, ",")
        right.legend(handles=[line for line in right.lines if line.get_label() == CLOSED_FORM], loc="center left")
    right.set_xlabel("images")
    right.set_ylabel("excess over 1/n, mean over n > 1")
    right.set_title("Excess by number of images")
    _legend(left, "upper right")
    return figure


def draw_label_coco(table: ResultTable) -> Figure:
    """Draw the metrics against the probability of the true class, and mark where another class becomes the largest."""
    figure = draw_curves(
        table,
        "probability",
        title="Label probability, perfect boxes",
        xlabel="probability of the true class",
        legend="lower right",
    )
    lost = table.where(largest=False)
    if len(lost):
        figure.axes[0].annotate(
            "the true class is no\nlonger the largest",
            (float(lost["probability"].max()), 0.0),
            xytext=(0.13, 0.07),
            fontsize=8.5,
            color="#333333",
            va="center",
            arrowprops={"arrowstyle": "->", "color": GREY, "shrinkB": 7},
        )
    return figure


def _legend(axes: Axes, place: Any) -> None:
    """Add a legend with PDQ first, unless the place is empty."""
    handles, labels = axes.get_legend_handles_labels()
    if place:
        axes.legend(handles[::-1], labels[::-1], loc=place)


def draw_families(table: ResultTable, x: str, *, title: str, xlabel: str, perfect: float) -> Figure:
    """Draw PDQ against a setting for several variances, darkest without covariance, and the other metrics."""
    figure = new_figure(4.8, 4.6)
    axes = figure.add_subplot()
    axes.axvline(perfect, color="#C9C9C9", lw=0.8, zorder=0.5)
    variances = sorted(set(table["variance"].tolist()))
    plain = table.where(variance=variances[0])
    first, *others = list(presets_in(table).items()) or [("", "")]
    for variance, shade in zip(variances, shades_of_blue(len(variances)), strict=True):
        part = table.where(variance=variance)
        label = "PDQ, no covariance" if variance == 0 else f"PDQ, variance {variance:g}"
        if first[1]:
            axes.plot(part[x], part[first[1]], color=shade, lw=1.8, label=label)
        for (_, column), style in zip(others, OTHER_PRESETS, strict=False):
            axes.plot(part[x], part[column], color=shade, lw=style["lw"], ls=style["ls"])
    for (preset, _), style in zip(others, OTHER_PRESETS, strict=False):
        axes.plot([], [], color=BLUE, lw=style["lw"], ls=style["ls"], label=f"the same under {preset}")
    for values, line in _score_lines(plain, [column.key for column, _ in measure_lines() if column != PDQ.headline]):
        plainly = {key: value for key, value in line.items() if key not in ("marker", "ms", "mfc")}
        axes.plot(plain[x], values, **plainly)
    _score_axis(axes)
    axes.set_xlabel(xlabel)
    axes.set_title(title)
    figure.legend(loc="outside lower center", ncols=2, handlelength=2.2)
    return figure


def plot_families(x: str, title: str, xlabel: str, *, perfect: float) -> Callable[[ResultTable], Figure]:
    """Return a function that draws families of curves of a table against a setting, see `draw_families`."""
    return partial(draw_families, x=x, title=title, xlabel=xlabel, perfect=perfect)


def shades_of_blue(count: int) -> list[tuple[float, float, float]]:
    """Return shades from dark to light around PDQ's blue that are also distinguishable in greyscale."""
    dark, middle, light = np.array([0.0, 0.14, 0.27]), np.array([0.0, 0.447, 0.698]), np.array([0.50, 0.77, 0.93])
    steps = np.linspace(0, 2, count)
    return [
        tuple((dark + (middle - dark) * t if t <= 1 else middle + (light - middle) * (t - 1)).tolist()) for t in steps
    ]


def draw_object(axes: Axes, mask: npt.NDArray[np.bool_], corner: Sequence[int] = (0, 0)) -> None:
    """Fill the pixels of an object, given its mask and the mask's upper left corner."""
    (x, y), (height, width) = corner, mask.shape
    picture = np.where(mask[..., None], [0.62, 0.78, 0.90], 1.0)
    axes.imshow(picture, extent=(x, x + width, y + height, y), interpolation="nearest")


def draw_box(axes: Axes, box: Floats, colour: str, width: float, **style: Any) -> None:
    """Draw the outline of a box."""
    from matplotlib.patches import Rectangle

    x1, y1, x2, y2 = box
    axes.add_patch(Rectangle((x1, y1), x2 - x1, y2 - y1, fill=False, ec=colour, lw=width, **style))
