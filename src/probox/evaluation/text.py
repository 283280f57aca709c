"""Results as text: the paper's Table 1 for people, papers and programs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from itertools import zip_longest

from probox.convention import Convention
from probox.measures.measure import Column
from probox.measures.registry import table_columns
from probox.support.csv_rows import csv_text
from probox.support.grids import grid

__all__ = [
    "STYLES",
    "Row",
    "best_cells",
    "escaped",
    "format_limits",
    "format_table",
    "format_value",
    "heading_at",
    "limit_digits",
    "shown_columns",
    "summary_text",
    "threshold_words",
]

STYLES = ("text", "markdown", "latex", "csv")

Row = tuple[str, Mapping[str, float]]
"""A name and a summary."""

Limits = Mapping[str, tuple[float, float]]
"""Where each number's interval begins and ends, by the keys of columns."""


def shown_columns(rows: Sequence[Row]) -> list[Column]:
    """Return the columns of tables that every summary has."""
    return [column for column in table_columns() if all(column.key in summary for _, summary in rows)]


def threshold_words(convention: Convention) -> str | None:
    """Return the label threshold that detections of all metrics are above, as headings have it; None without one."""
    return None if convention.fixed_threshold is None else f"{convention.fixed_threshold:g}"


def heading_at(column: Column, threshold: str | None) -> str:
    """Return what stands over a column: over mAP also the label threshold, if detections were left out by one.

    >>> heading_at(Column(key="mAP", heading="mAP"), "0.5"), heading_at(Column(key="PDQ", heading="PDQ"), "0.5")
    ('mAP, scores > 0.5', 'PDQ')
    """
    limited = threshold is not None and column.key == "mAP"
    return f"{column.heading}, scores > {threshold}" if limited else str(column.heading)


def format_value(column: Column, value: float) -> str:
    """Return a number as the table shows it: counts as they are, qualities in per cent, nothing as a dash."""
    if math.isnan(value):
        return "-"
    if column.unit == "count":
        return f"{int(value):,}"
    return f"{100 * value:.2f}" if column.unit == "per cent" else f"{value:.4f}"


def format_limits(column: Column, low: float, high: float) -> str:
    """Return an interval as the table shows it; nothing if there is none.

    >>> format_limits(Column(key="PDQ"), 0.0912, 0.108), format_limits(Column(key="moLRP", complement=True), 0.2, 0.3)
    ('[9.1, 10.8]', '[70.0, 80.0]')
    """
    if math.isnan(low) or math.isnan(high):
        return ""
    low, high = column.shown_limits(low, high)
    scale, digits = 100 if column.unit == "per cent" else 1, limit_digits(column, low, high)
    low, high = (round(scale * end, digits) + 0.0 for end in (low, high))  # -0.04 is 0.0, not -0.0
    return f"[{low:,.{digits}f}, {high:,.{digits}f}]"


def limit_digits(column: Column, low: float, high: float) -> int:
    """Return how many decimals the ends of an interval need: one less than its number has, more if it is narrow.

    An interval of less than ten units of the last decimal gets one more, and as many as tell its ends apart; but no
    more than three, since what is narrower is rounding.

    >>> [limit_digits(Column(key="PDQ"), 0.0088, high) for high in (0.0188, 0.0187, 0.00895, 0.0088)]
    [1, 2, 3, 2]
    """
    if column.unit == "count":
        return 0
    scale, digits = (100, 1) if column.unit == "per cent" else (1, 3)
    most = digits + 3
    width = round(scale * (high - low), 9)
    if width * 10**digits < 10:
        digits += 1
    while digits < most and 0 < width * 10**digits < 2:
        digits += 1
    return digits


def best_cells(rows: Sequence[Row]) -> set[tuple[int, str]]:
    """Return row number and key of the best value of each column, of all of them among equals.

    With a single row nothing is best.
    """
    best: set[tuple[int, str]] = set()
    if len(rows) < 2:
        return best
    for column in shown_columns(rows):
        # Values that look alike are alike: the table is read as it is printed.
        shown = {
            number: round(column.shown(summary), 4)
            for number, (_, summary) in enumerate(rows)
            if not math.isnan(column.shown(summary))
        }
        if shown and column.shown_better is not None:
            wanted = min(shown.values()) if column.shown_better == "low" else max(shown.values())
            best.update((number, column.key) for number, value in shown.items() if value == wanted)
    return best


def format_table(
    rows: Sequence[Row],
    style: str = "text",
    *,
    heading: str = "Approach",
    limits: Sequence[Limits] | None = None,
    mark_best: bool = True,
    width: int | None = None,
    threshold: str | None = None,
) -> str:
    """Return the paper's Table 1 for any number of detectors, the best values marked.

    Parameters
    ----------
    rows : sequence of (name, summary)
        What `Evaluation.summary` returns, with a name each. Without names the first column is left out.
    style : {"text", "markdown", "latex", "csv"}
        Best values carry ``*``, ``**...**`` or ``\\textbf``; CSV has plain fractions and no marks.
    heading : str
        Over the names.
    limits : sequence of limits, optional
        The intervals of each row: in text under the numbers, in CSV in columns of their own, else behind them.
    mark_best : bool
        Mark the best values; not where rows are classes, say, of which none is to win.
    width : int, optional
        Of text: how many letters a line may have. A wider table is broken into blocks of columns. Default: no limit.
    threshold : str, optional
        The label threshold that all detections are above, which the heading of mAP names.

    Examples
    --------
    >>> print(format_table([("one", {"PDQ": 0.25, "TP": 3}), ("two", {"PDQ": 0.5, "TP": 2})], "markdown"))
    | Approach | PDQ (%) | TP |
    | --- | ---: | ---: |
    | one | 25.00 | **3** |
    | two | **50.00** | 2 |
    """
    columns = [dataclasses.replace(column, heading=heading_at(column, threshold)) for column in shown_columns(rows)]
    named = any(name for name, _ in rows)
    if style == "csv":
        return _csv(rows, columns, heading, limits)
    best = best_cells(rows) if mark_best else set()
    cells = []
    for number, (name, summary) in enumerate(rows):
        values = [_marked(column, summary, (number, column.key) in best, style) for column in columns]
        ends = [] if limits is None else [_limits(column, limits[number]) for column in columns]
        if style != "text":
            values = [f"{value} {end}" if end else value for value, end in zip_longest(values, ends)]
        cells.append([escaped(name, style), *values] if named else values)
        if style == "text" and any(ends):
            under = [f"{end} " for end in ends]
            cells.append(["", *under] if named else under)
    over_names = heading if named else None
    if style == "text":
        return _text(cells, columns, over_names, width)
    return {"markdown": _markdown, "latex": _latex}[style](cells, columns, over_names)


def summary_text(
    rows: Sequence[Row], convention: Convention, limits: Sequence[Limits] | None = None, *, width: int | None = None
) -> str:
    """Return the table as text with a line on how to read it; `width` is that of `format_table`."""
    marked = "; * best" if len(rows) > 1 else ""
    table = format_table(rows, heading="", limits=limits, width=width, threshold=threshold_words(convention))
    return f"{table}\nqualities in per cent{marked}; convention: {convention.describe()}"


def _limits(column: Column, limits: Limits) -> str:
    return format_limits(column, *limits.get(column.key, (math.nan, math.nan)))


def _marked(column: Column, summary: Mapping[str, float], best: bool, style: str) -> str:
    text = format_value(column, column.shown(summary))
    if not best:
        return text + (" " if style == "text" else "")
    return {"text": f"{text}*", "markdown": f"**{text}**", "latex": f"\\textbf{{{text}}}"}[style]


def escaped(name: str, style: str) -> str:
    """Return a name that means itself in the table's language."""
    if style == "markdown":
        return "".join(f"\\{c}" if c in "\\|*_`[]<>" else c for c in name)
    if style == "latex":
        special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
        return "".join(special.get(c, f"\\{c}" if c in "#$%&_{}" else c) for c in name)
    return name


def _text(cells: list[list[str]], columns: list[Column], heading: str | None, width: int | None) -> str:
    # A mark or the room for one stands behind every number, but room at every line's end is nothing to print.
    marked = any(cell.endswith("*") for row in cells for cell in row)
    if not marked:
        cells = [
            [cell.rstrip() if number or heading is None else cell for number, cell in enumerate(row)] for row in cells
        ]
    padded = [f"{column.heading}{' ' if marked else ''}" for column in columns]
    lines = [padded if heading is None else [heading, *padded], *cells]
    return grid(lines, width=width, names=heading is not None)


def _with_units(columns: list[Column], per_cent: str) -> list[str]:
    return [
        f"{column.heading} ({per_cent})" if column.unit == "per cent" else str(column.heading) for column in columns
    ]


def _markdown(cells: list[list[str]], columns: list[Column], heading: str | None) -> str:
    first = [] if heading is None else [heading or "Approach"]
    header = [*first, *_with_units(columns, "%")]
    rule = [*("---" for _ in first), *("---:" for _ in columns)]
    return "\n".join("| " + " | ".join(line) + " |" for line in [header, rule, *cells])


def _latex(cells: list[list[str]], columns: list[Column], heading: str | None) -> str:
    first = [] if heading is None else [heading or "Approach"]
    sides = "l" * len(first) + "r" * len(columns)
    lines = [f"\\begin{{tabular}}{{@{{}}{sides}@{{}}}}", r"\toprule"]
    lines += [" & ".join([*first, *_with_units(columns, r"\%")]) + r" \\", r"\midrule"]
    lines += [" & ".join(row) + r" \\" for row in cells]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def _csv(rows: Sequence[Row], columns: list[Column], heading: str, limits: Sequence[Limits] | None) -> str:
    ends = ("",) if limits is None else ("", " low", " high")
    lines: list[list[object]] = [[heading, *(f"{column.heading}{end}" for column in columns for end in ends)]]
    for number, (name, summary) in enumerate(rows):
        shown: list[object] = []
        for column in columns:
            shown.append(_plain(column, column.shown(summary)))
            if limits is not None:
                low, high = limits[number].get(column.key, (math.nan, math.nan))
                shown += [_plain(None, end) for end in column.shown_limits(low, high)]
        lines.append([name, *shown])
    return csv_text(lines)


def _plain(column: Column | None, value: float) -> object:
    """Return a number as programs read it; counts are whole, the ends of their intervals need not be."""
    is_count = column is not None and column.unit == "count" and not math.isnan(value)
    return int(value) if is_count else float(value)
