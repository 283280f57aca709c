"""Text, Markdown, LaTeX and CSV tables of a comparison, and its conclusions."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

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
from probox.support.formatting import csv_text, format_list, with_count

if TYPE_CHECKING:
    from probox.analysis.comparison import Comparison, Difference, PairOfResults

Finding: TypeAlias = "tuple[Column, Difference]"

_MANY = 3
"""Maximum number of unclaimed differences whose values a conclusion repeats; the table has all."""


def conclude(couple: tuple[str, str], findings: Sequence[Finding], images: int, level: float, pairs: int = 1) -> str:
    """Return the conclusion about two results; p-values are adjusted for the number of pairs.

    >>> from probox.analysis.comparison import Difference
    >>> between = Interval(0.013, 0.004, 0.022, 0.005)
    >>> found = Difference(Interval(0.513), Interval(0.5), between, p=0.004, adjusted=0.004, images=206, claimed=True)
    >>> conclude(("A", "B"), [(Column(key="PDQ", heading="PDQ"), found)], 206, 0.95)
    'A is better than B in PDQ by 1.30 points (95% CI 0.40 to 2.20, p = 0.004, 206 images).'
    """
    if images < 2:
        return f"Nothing can be concluded about {couple[0]} and {couple[1]} from {with_count(images, 'image')}."
    claims: dict[str, list[Finding]] = {}
    unclaimed: dict[str, list[Finding]] = {}
    equal: list[str] = []
    missing: list[str] = []
    for column, found in findings:
        between = found.difference
        if not math.isfinite(between.value):
            missing.append(_column_name(column))
        elif between.value == between.low == between.high == 0:
            equal.append(_column_name(column))
        elif found.claimed:
            (ahead, behind), how = _order_names(couple, column, between)
            claims.setdefault(f"{ahead} is {how} than {behind}", []).append((column, found))
        else:
            unclaimed.setdefault(_explain_no_claim(column, found, level, pairs), []).append((column, found))
    corrected = f", Holm's correction for {pairs} pairs" if pairs > 1 else ""
    amounts = _Amounts(f"{100 * level:g}% CI ", f", {images:,} images{corrected}", adjusted=pairs > 1)
    parts = [
        f"{who} {format_list([f'in {_column_name(column)} by {amounts.of(column, found)}' for column, found in group])}"
        for who, group in claims.items()
    ]
    for reason, group in unclaimed.items():
        names = format_list([_column_name(column) for column, _ in group])
        differences = format_list([amounts.of(column, found) for column, found in group]) if len(group) <= _MANY else ""
        rest = f": {couple[0]} minus {couple[1]} is {differences}" if differences else ""
        parts.append(f"in {names} no difference can be claimed{reason}{rest}")
    parts += [f"in {format_list(equal)} they are equal"] if equal else []
    parts += [f"in {format_list(missing)} one value is not finite"] if missing else []
    text = "; ".join(parts) or f"{couple[0]} and {couple[1]} have no metric in common"
    return f"{text[:1].upper() if text.startswith(('in ', 'there ')) else text[:1]}{text[1:]}."


def _explain_no_claim(column: Column, found: Difference, level: float, pairs: int) -> str:
    """Return why no difference is claimed although the printed interval excludes 0, else nothing."""
    low, high = round_difference(column, found.difference)[1:]
    digits = limit_digits(column, low, high)
    low, high = (float(_format_number(column, end, digits).replace(",", "")) for end in (low, high))
    if not (low > 0 or high < 0):
        return ""
    if pairs > 1 and found.p <= 1 - level:
        return f" after Holm's correction for {pairs} pairs, although the interval of this pair alone excludes 0"
    return f" by the permutation test (p above {1 - level:.2g}), although the interval excludes 0"


class _Amounts:
    """Formatted differences with intervals; level and number of images appear with the first only."""

    def __init__(self, before: str, behind: str, *, adjusted: bool) -> None:
        self.before, self.behind, self.adjusted = before, behind, adjusted

    def of(self, column: Column, found: Difference) -> str:
        value, low, high = round_difference(column, found.difference)
        sign = -1 if found.claimed and value < 0 else 1  # a claim states the lead of the better result
        low, high = sorted((sign * low, sign * high))
        if math.isnan(low):
            return f"{_format_amount(column, sign * value, column.digits)} (no interval{self.behind})"
        digits = limit_digits(column, low, high)
        between = f"{_format_number(column, low, digits)} to {_format_number(column, high, digits)}"
        p = f"{format_p(found.p)}, adjusted " if self.adjusted else ""
        ends = f"{self.before}{between}, {p}{format_p(found.adjusted)}{self.behind}"
        self.before = self.behind = ""
        return f"{_format_amount(column, sign * value, digits)} ({ends})"


def round_difference(column: Column, difference: Interval) -> tuple[float, float, float]:
    """Return a difference and its interval in the sign of tables: reversed if they show an error's complement."""
    value, low, high = difference.value, difference.low, difference.high
    return (0.0 - value, 0.0 - high, 0.0 - low) if column.complement else (value, low, high)  # never -0.0


def format_p(p: float) -> str:
    """Return a p-value as text.

    >>> format_p(0.0214), format_p(0.000999), format_p(0.0004)
    ('p = 0.021', 'p = 0.001', 'p < 0.001')
    """
    return "p < 0.001" if p < 0.0005 else f"p = {p:.3f}"


def _column_name(column: Column) -> str:
    return column.heading or column.key


def _order_names(couple: tuple[str, str], column: Column, difference: Interval) -> tuple[tuple[str, str], str]:
    """Return the names, the better one first, and the comparative."""
    first_is_higher = round_difference(column, difference)[0] > 0
    if column.shown_better is None:
        return couple, "higher" if first_is_higher else "lower"
    return couple if first_is_higher == (column.shown_better == "high") else (couple[1], couple[0]), "better"


def _format_number(column: Column, value: float, digits: int) -> str:
    return f"{round(column.scale * value, digits) + 0.0:,.{digits}f}"  # -0.04 is 0.0, not -0.0


def _format_amount(column: Column, value: float, digits: int) -> str:
    unit = "points" if column.unit == "per cent" else column.symbol
    return f"{_format_number(column, value, digits)} {unit}".rstrip()


def comparison_text(comparison: Comparison) -> str:
    """Return tables and conclusions of all pairs, and a line that explains the signs."""
    parts = [f"{comparison_table(comparison, pair)}\n{pair.conclusion}" for pair in comparison.pairs]
    return "\n\n".join([*parts, explain_signs(comparison)])


def explain_signs(comparison: Comparison) -> str:
    """Return the line under the tables: directions, level, replicates and marks."""
    columns = [column for measure in _measures(comparison) for column in measure.table_columns]
    directions = f"{list_directions(columns)}; " if list_directions(columns) else ""
    return (
        f"{directions}[{100 * comparison.level:g}% CI] and p-value: {_repeats(comparison)} of "
        f"{comparison.images:,} images, seed {comparison.seed}; * significant difference"
    )


def _measures(comparison: Comparison) -> list[Measure]:
    return sorted(comparison.measures, key=lambda measure: not measure.leads)


def _repeats(comparison: Comparison) -> str:
    if comparison.permutations == comparison.replicates:
        return f"{comparison.replicates:,} bootstrap replicates and permutations"
    return f"{comparison.replicates:,} bootstrap replicates and {comparison.permutations:,} permutations"


def comparison_table(
    comparison: Comparison,
    pair: PairOfResults,
    style: str = "text",
    *,
    of_classes: bool = False,
    width: int | None = None,
) -> str:
    """Return the table of two results, with a row for each number, or for each class.

    Parameters
    ----------
    comparison : Comparison
        The comparison of the pair.
    pair : PairOfResults
        Two results.
    style : {"text", "markdown", "latex", "csv"}
        CSV has all columns, fractions instead of percentages, and a column for each limit.
    of_classes : bool
        One row per compared class.
    width : int, optional
        Maximum line length of text. A wider table is broken into blocks of columns. Default: no limit.
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
                if not column.optional or column.key in pair.columns
            ]
    return rows


def _head_names(rows: Sequence[tuple[str, Column, Difference]], pair: PairOfResults) -> str:
    """Return the heading of class names, with the metric if there is only one."""
    return f"class ({heading_of(rows[0][1])})" if rows and len(pair.classes) == 1 else "class"


def _interval(column: Column, interval: Interval) -> str:
    digits = limit_digits(column, interval.low, interval.high)
    value = format_value(column, column.shown({column.key: interval.value}), digits)
    return f"{value} {format_limits(column, interval.low, interval.high)}".rstrip()


def _difference(column: Column, difference: Interval) -> str:
    value, low, high = round_difference(column, difference)
    if math.isnan(value):
        return "-"
    plain = dataclasses.replace(column, complement=False)  # the sign of complements is reversed already
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
