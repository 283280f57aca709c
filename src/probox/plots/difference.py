"""By how much results differ, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from probox.analysis.comparison import Comparison, Difference, PairOfResults, compare
from probox.analysis.conclusions import shown_difference
from probox.analysis.same_truth import check_same_truth
from probox.errors import InputError
from probox.measures.measure import Column
from probox.plots.base import Plot, Results, colour_of, new_axes, styled
from probox.plots.legends import add_legend_beside, short_name, short_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PLOT", "why_not"]

TITLE = "Difference with interval"
_MANY = 24

Row = tuple[str, Column, str]
"""What is written beside it, its column, and its class or nothing."""


def draw(
    results: Results,
    *,
    ax: Axes | None = None,
    dark: bool = False,
    per_class: bool = False,
    replicates: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Axes:
    """Plot the first result minus each of the others, as `probox.compare` has it, each number with its interval.

    One row for each number in per cent that tables show, or with `per_class` for each class, the greatest difference
    first. Intervals that do not hold 0 have filled dots. The other parameters are those of `probox.compare`.
    """
    if len(results) < 2:
        raise InputError("a difference needs two results", remedy='write Plots({"A": a, "B": b}).difference()')
    compared = compare(results, per_class=per_class, replicates=replicates, seed=seed, level=level, swaps=False)
    rows = _classes(compared) if per_class else _columns(compared)
    (first, *others), (_, *in_lines) = short_names(results, lines=False), short_names(results)
    handles = []
    with styled(dark) as theme:
        axes = new_axes(ax, (6.4, 1.7 + (0.26 + 0.1 * len(others)) * max(len(rows), 1)))
        axes.axvline(0.0, color=theme.ink, linewidth=1.0)
        for number, pair in enumerate(compared.pairs):
            shift = 0.6 * ((number + 0.5) / len(others) - 0.5)
            colour = colour_of(theme, number + 1)  # that of the result in other plots
            for place, (_, column, name) in enumerate(rows):
                found = _found(pair, column, name)
                if found is None:
                    continue
                value, low, high = (100 * v for v in shown_difference(column, found.difference))
                sure = (low < 0 and high < 0) or (low > 0 and high > 0)
                axes.plot([low, high], [place + shift] * 2, color=colour, linewidth=1.8)
                inside = colour if sure else theme.ground
                axes.plot(value, place + shift, "o", color=colour, markersize=5, markerfacecolor=inside)
            handles += axes.plot([], [], "-o", color=colour, markersize=5)
        axes.set_yticks(range(len(rows)), [title for title, _, _ in rows])
        axes.set_ylim(max(len(rows), 1) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.spines["left"].set_visible(False)
        axes.set_title(
            f"{TITLE}, {compared.images:,} images" + (f": {rows[0][1].heading}" if per_class and rows else "")
        )
        subtracted = others[0] if len(others) == 1 else "each other"
        amounts = f"{first} minus {subtracted}: points, {100 * level:g} % intervals"
        axes.set_xlabel(f"{amounts}\nfilled dots: the interval does not hold 0")
        if len(others) > 1:
            add_legend_beside(axes, handles, in_lines, widen=ax is None)
    return axes


def fits(results: Results) -> bool:
    """Return whether there is anything to compare."""
    return why_not(results) is None


def why_not(results: Results) -> str | None:
    """Return why differences cannot be drawn; None if they can."""
    if len(results) < 2:
        return "there is only one result"
    try:
        check_same_truth(results)
    except InputError as error:
        return str(error)
    if len(next(iter(results.values())).dataset) < 2:
        return "fewer than two images have no intervals"
    if not set.intersection(*(set(result.measures) for result in results.values())):
        return "the results hold no measure in common"
    return None


def _columns(compared: Comparison) -> list[Row]:
    measures = sorted(compared.measures, key=lambda measure: not measure.leads)
    columns = [column for measure in measures for column in measure.table_columns if column.unit == "per cent"]
    return [(str(column.heading), column, "") for column in columns]


def _classes(compared: Comparison) -> list[Row]:
    """Return the classes, from the greatest to the least difference of the first pair; of many, both ends."""
    measured = [measure.headline for measure in compared.measures if measure.headline.key in compared.pairs[0].classes]
    if not measured:
        raise InputError("no measure of these results is defined for a class", remedy="evaluate PDQ too")
    column = measured[0]
    found = compared.pairs[0].classes[column.key]
    names = sorted(found, key=lambda name: -shown_difference(column, found[name].difference)[0])
    chosen: Sequence[str] = names if len(names) <= _MANY else names[: _MANY // 2] + names[-_MANY // 2 :]
    return [(short_name(name), column, name) for name in chosen]


def _found(pair: PairOfResults, column: Column, name: str) -> Difference | None:
    return pair.classes.get(column.key, {}).get(name) if name else pair.columns[column.key]


PLOT = Plot("difference", TITLE, draw, fits)
