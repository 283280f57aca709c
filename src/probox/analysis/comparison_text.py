"""A comparison as text: for people, papers and programs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from probox.analysis.comparison import Comparison, Difference, PairOfResults, round_difference
from probox.analysis.resampling import Interval
from probox.evaluation.text import (
    escape,
    format_limits,
    format_value,
    heading_of,
    limit_digits,
    list_directions,
    render_table,
)
from probox.measures.measure import Column, Measure
from probox.support.formatting import csv_text


def comparison_text(comparison: Comparison) -> str:
    """Return the tables and sentences of all pairs, and how to read them."""
    parts = [f"{comparison_table(comparison, pair)}\n{pair.conclusion}" for pair in comparison.pairs]
    return "\n\n".join([*parts, explain_signs(comparison)])


def explain_signs(comparison: Comparison) -> str:
    """Return how to read the tables, in one line."""
    columns = [column for measure in _measures(comparison) for column in measure.table_columns]
    directions = f"{list_directions(columns)}; " if list_directions(columns) else ""
    return (
        f"{directions}[{100 * comparison.level:g} % intervals] and p: {_repeats(comparison)} of "
        f"{comparison.images:,} images, seed {comparison.seed}; * differs"
    )


def _measures(comparison: Comparison) -> list[Measure]:
    return sorted(comparison.measures, key=lambda measure: not measure.leads)


def _repeats(comparison: Comparison) -> str:
    if comparison.permutations == comparison.replicates:
        return f"{comparison.replicates:,} draws and swaps"
    return f"{comparison.replicates:,} draws and {comparison.permutations:,} swaps"


def comparison_table(
    comparison: Comparison,
    pair: PairOfResults,
    style: str = "text",
    *,
    of_classes: bool = False,
    width: int | None = None,
) -> str:
    """Return the table of two results: a row for each column that tables show, or for each class.

    Parameters
    ----------
    comparison : Comparison
        Where the pair is from.
    pair : PairOfResults
        Two results.
    style : {"text", "markdown", "latex", "csv"}
        CSV has all columns, plain fractions, and each limit in a column of its own.
    of_classes : bool
        The classes instead, as far as they were compared.
    width : int, optional
        Of text: how many letters a line may have. A wider table is broken into blocks of columns. Default: no limit.
    """
    rows = list(_rows(comparison, pair, of_classes, every=style == "csv"))
    if style == "csv":
        return _csv(pair, rows, of_classes)
    corrected = of_classes or len(comparison.pairs) > 1
    header = [
        _head_names(rows, pair) if of_classes else "",
        pair.first,
        pair.second,
        f"{pair.first} - {pair.second}",
        *(["p", "p (Holm)"] if corrected else ["p"]),
    ]
    if of_classes:
        header.insert(1, "images")
    cells = [[escape(cell, style) for cell in header]]
    for name, column, difference in rows:
        many = [f"{difference.images:,}"] if of_classes else []
        mark = "*" if difference.claimed else ""
        values = [_interval(column, one) for one in (difference.first, difference.second)]
        between = _difference(column, difference.difference)
        raw = [_p(difference.p)] if corrected else []
        p = _p(difference.adjusted) + _mark(mark, style)
        cells.append([escape(name, style), *many, *values, between, *raw, p])
    return render_table(cells, 1, style, width)


def _rows(
    comparison: Comparison, pair: PairOfResults, of_classes: bool, *, every: bool
) -> list[tuple[str, Column, Difference]]:
    """Return the name, column and difference of each row."""
    rows = []
    for measure in _measures(comparison):
        if of_classes:
            column = measure.headline
            classes = pair.classes.get(column.key, {})
            title = heading_of(column)
            several = len(pair.classes) > 1 and not every
            rows += [(f"{name} ({title})" if several else name, column, found) for name, found in classes.items()]
        else:
            columns = measure.columns if every else measure.table_columns
            rows += [
                (column.heading or column.key if every else heading_of(column), column, pair.columns[column.key])
                for column in columns
            ]
    return rows


def _head_names(rows: Sequence[tuple[str, Column, Difference]], pair: PairOfResults) -> str:
    """Return what stands over the classes: with one number of each, which it is."""
    return f"class ({heading_of(rows[0][1])})" if rows and len(pair.classes) == 1 else "class"


def _interval(column: Column, interval: Interval) -> str:
    digits = limit_digits(column, interval.low, interval.high)
    value = format_value(column, column.shown({column.key: interval.value}), digits)
    return f"{value} {format_limits(column, interval.low, interval.high)}".rstrip()


def _difference(column: Column, difference: Interval) -> str:
    value, low, high = round_difference(column, difference)
    if math.isnan(value):
        return "-"
    plain = dataclasses.replace(column, complement=False)  # differences of complements are turned round already
    sign = "+" if value > 0 else ""
    shown = format_value(plain, value, limit_digits(plain, low, high))
    return f"{sign}{shown} {format_limits(plain, low, high)}".rstrip()


def _p(p: float) -> str:
    return "-" if math.isnan(p) else f"{p:.3f}"


def _mark(mark: str, style: str) -> str:
    return {"text": mark or " ", "markdown": "\\*" if mark else "", "latex": mark}[style]


def _csv(pair: PairOfResults, rows: Sequence[tuple[str, Column, Difference]], of_classes: bool) -> str:
    kinds = (pair.first, pair.second, "difference")
    limits = [f"{kind}{end}" for kind in kinds for end in ("", " low", " high")]
    first = ["class", "column", "images"] if of_classes else ["column"]
    lines: list[list[object]] = [[*first, *limits, "p", "p Holm"]]
    for name, column, found in rows:
        numbers: list[float] = []
        for interval in (found.first, found.second):
            numbers += [column.shown({column.key: interval.value}), *column.shown_limits(interval.low, interval.high)]
        numbers += [*round_difference(column, found.difference), found.p, found.adjusted]
        about = [column.heading or column.key, found.images] if of_classes else []
        lines.append([name, *about, *map(float, numbers)])
    return csv_text(lines)
