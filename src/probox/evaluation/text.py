"""Results as text and HTML: tables of metrics, and distinct names of results."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from probox.convention import Convention
from probox.measures.measure import Column
from probox.measures.registry import standard_columns, table_columns
from probox.notes import Note
from probox.support.formatting import csv_text
from probox.support.text_table import grid, html_table, html_text

if TYPE_CHECKING:
    from probox.evaluation.result import Evaluation

STYLES = ("text", "markdown", "latex", "csv")

Row = tuple[str, Mapping[str, float]]
"""A name and a summary."""

Limits = Mapping[str, tuple[float, float]]
"""Confidence limits by column key."""

_NO_LIMITS = (math.nan, math.nan)


def shown_columns(rows: Sequence[Row]) -> list[Column]:
    """Return the table columns that every summary has."""
    first = rows[0][1] if rows else None
    return [column for column in table_columns(first) if all(column.key in summary for _, summary in rows)]


def columns_at(rows: Sequence[Row], threshold: str | None) -> list[Column]:
    """Return the columns of `shown_columns`; headings of mAP contain the label threshold, if there is one.

    >>> [column.heading for column in columns_at([("", {"mAP": 0.5, "PDQ": 0.5})], "0.5")]
    ['mAP, scores > 0.5', 'PDQ']
    """
    return [
        column
        if threshold is None or column.key not in ("mAP", "mask_mAP")
        else dataclasses.replace(column, heading=f"{column.heading}, scores > {threshold}")
        for column in shown_columns(rows)
    ]


def threshold_words(convention: Convention) -> str | None:
    """Return the label threshold of all metrics as in headings; None without one."""
    return None if convention.fixed_threshold is None else f"{convention.fixed_threshold:g}"


def heading_of(column: Column) -> str:
    """Return the name of a column with its unit.

    >>> heading_of(Column(key="NLL", unit="plain", symbol="nats")), heading_of(Column(key="TP", unit="count"))
    ('NLL [nats]', 'TP')
    """
    return f"{column.heading or column.key} {unit_of(column)}".rstrip()


def direction_of(column: Column) -> str:
    """Return the better direction of a shown number: higher, lower, or near an ideal."""
    if column.ideal is not None:
        return f"near {column.scale * column.ideal:g}"
    return {"high": "higher", "low": "lower", None: "-"}[column.shown_better]


def list_directions(columns: Sequence[Column]) -> str:
    """Return the columns for which lower is better or which have an ideal, for a line under a table; empty without any.

    >>> columns = [Column(key="PDQ"), Column(key="FP", better="low"), Column(key="NEES", unit="plain", ideal=4)]
    >>> list_directions(columns)
    'lower is better: FP; ideal: NEES 4'
    """
    low = [column.heading or column.key for column in columns if direction_of(column) == "lower"]
    ideal = [
        f"{column.heading or column.key} {column.scale * column.ideal:g}"
        for column in columns
        if column.ideal is not None
    ]
    return "; ".join(
        f"{words}: {', '.join(names)}" for words, names in (("lower is better", low), ("ideal", ideal)) if names
    )


def format_value(column: Column, value: float, digits: int | None = None) -> str:
    """Return a number as in tables: counts unscaled, qualities in per cent, NaN as a dash.

    The number of decimals is `digits`, by default that of the column.
    """
    if math.isnan(value):
        return "-"
    if column.unit == "count":
        return f"{int(value):,}"
    digits = column.digits if digits is None else digits
    return f"{column.scale * value:,.{digits}f}" if math.isinf(value) else _round_value(column.scale * value, digits)


def format_limits(column: Column, low: float, high: float) -> str:
    """Return an interval as in tables; empty if undefined.

    >>> format_limits(Column(key="PDQ"), 0.0912, 0.108), format_limits(Column(key="moLRP", complement=True), 0.2, 0.3)
    ('[9.12, 10.80]', '[70.0, 80.0]')
    """
    if math.isnan(low) or math.isnan(high):
        return ""
    low, high = column.shown_limits(low, high)
    digits = limit_digits(column, low, high)
    return f"[{_round_value(column.scale * low, digits)}, {_round_value(column.scale * high, digits)}]"


def limit_digits(column: Column, low: float, high: float) -> int:
    """Return the number of decimals for a number with this interval: half its width has two significant digits.

    It is the column's own number without an interval or with one of width 0, and at most two more.

    >>> [limit_digits(Column(key="PDQ"), 0.523, high) for high in (0.631, 0.535, 0.5231, 0.523)]
    [1, 2, 4, 2]
    """
    half = round(column.scale * (high - low) / 2, 9)
    if column.unit == "count" or not 0 < half < math.inf:
        return column.digits
    return min(max(1 - math.floor(math.log10(half)), 0), column.digits + 2)


def _round_value(value: float, digits: int) -> str:
    return f"{round(value, digits) + 0.0:,.{digits}f}"  # -0.04 is 0.0, not -0.0


def best_cells(rows: Sequence[Row], limits: Sequence[Limits] | None = None) -> set[tuple[int, str]]:
    """Return row number and key of the best value of each column, or of all equally good ones.

    A single row has no best values.
    """
    best: set[tuple[int, str]] = set()
    if len(rows) < 2:
        return best
    for column in shown_columns(rows):
        # Values that print alike count as equal.
        digits = min(_digits(column, own) for own in limits or [{}])
        shown = {
            number: round(column.scale * column.shown(summary), digits)
            for number, (_, summary) in enumerate(rows)
            if not math.isnan(column.shown(summary))
        }
        if shown and column.shown_better is not None and column.ideal is None:
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
    by_metric: bool | None = None,
    threshold: str | None = None,
) -> str:
    """Return the table of metrics for any number of results, with the best values marked.

    Parameters
    ----------
    rows : sequence of (name, summary)
        Names and output of `Evaluation.summary`. Without names, there is no first column.
    style : {"text", "markdown", "latex", "csv"}
        Best values carry ``*``, ``**...**`` or ``\\textbf``; CSV has fractions in full precision and no marks.
    heading : str
        Heading of the names.
    limits : sequence of limits, optional
        Confidence limits of each row: in text under the numbers, in CSV in separate columns, else after the numbers.
    mark_best : bool
        Mark the best values. Disable it for rows that do not compete, such as classes.
    width : int, optional
        Maximum line length of text. A wider table is broken into blocks of columns. Default: no limit.
    by_metric : bool, optional
        One row per metric, with unit and direction, instead of one per name; CSV always has one per name. Default: if
        there are metrics beyond the standard ones, or if text of this width then has fewer blocks.
    threshold : str, optional
        Label threshold of all detections, shown in the heading of mAP.

    Examples
    --------
    >>> print(format_table([("one", {"PDQ": 0.25, "TP": 3}), ("two", {"PDQ": 0.5, "TP": 2})], "markdown"))
    | Approach | PDQ [%] | TP |
    | --- | ---: | ---: |
    | one | 25.00 | **3** |
    | two | **50.00** | 2 |
    >>> print(format_table([("one", {"NLL": 9.5}), ("two", {"NLL": 8.25})]))
    metric  unit  better    one     two
    NLL     nats  lower   9.500   8.250*
    """
    columns = columns_at(rows, threshold)
    if style == "csv":
        return _csv(rows, columns, heading, limits)
    best = best_cells(rows, limits) if mark_best else set()
    cells = [
        [
            _cell(column, summary, {} if limits is None else limits[n], (n, column.key) in best, style)
            for column in columns
        ]
        for n, (_, summary) in enumerate(rows)
    ]
    names = [escape(name, style) for name, _ in rows]
    if by_metric is None and goes_by_metric(columns):
        by_metric = True
    tables = [] if by_metric else [_by_name(names, columns, cells, style, heading, width)]
    if by_metric or (by_metric is None and style == "text" and "\n\n" in tables[0]):  # broken into blocks
        tables.append(_by_metric(names, columns, cells, style, width))
    return min(tables, key=lambda table: (table.count("\n\n"), table.count("\n")))


def goes_by_metric(columns: Sequence[Column]) -> bool:
    """Return whether tables of these columns have one row per metric, as for metrics beyond the standard ones."""
    return not {column.key for column in columns} <= standard_columns()


_Cell = tuple[str, str, str]
"""A number, its interval if any, and the mark of the best."""


def _cell(column: Column, summary: Mapping[str, float], limits: Limits, best: bool, style: str) -> _Cell:
    value = format_value(column, column.shown(summary), _digits(column, limits))
    interval = format_limits(column, *limits.get(column.key, _NO_LIMITS))
    if style != "text" and best:
        value = {"markdown": f"**{value}**", "latex": f"\\textbf{{{value}}}"}[style]
    return value, interval, "*" if best and style == "text" else ""


def _digits(column: Column, limits: Limits) -> int:
    return limit_digits(column, *limits.get(column.key, _NO_LIMITS))


def _by_metric(names: list[str], columns: list[Column], cells: list[list[_Cell]], style: str, width: int | None) -> str:
    """Return a table with one row per metric."""
    marked = any(mark for row in cells for *_, mark in row)
    header = ["metric", "unit", "better", *(name or "value" for name in names)]
    lines = []
    for number, column in enumerate(columns):
        unit = "count" if column.unit == "count" else column.shown_unit or "-"
        about = [escape(text, style) for text in (str(column.heading), unit, direction_of(column))]
        values = [
            f"{value} {interval}".rstrip() + (mark or " " * marked)
            for value, interval, mark in (r[number] for r in cells)
        ]
        lines.append([*about, *values])
    if marked:
        header[3:] = [f"{name} " for name in header[3:]]
    return render_table([header, *lines], 3, style, width)


def _by_name(
    names: list[str], columns: list[Column], cells: list[list[_Cell]], style: str, heading: str, width: int | None
) -> str:
    """Return a table with one row per name; without names, there is no column for them."""
    named = int(any(names))
    marked = any(mark for row in cells for *_, mark in row)
    space = " " * marked
    lines = []
    for name, row in zip(names, cells, strict=True):
        first = [name] * named
        if style != "text":
            lines.append([*first, *(f"{value} {interval}".rstrip() for value, interval, _ in row)])
            continue
        lines.append([*first, *(value + (mark or space) for value, _, mark in row)])
        if any(interval for _, interval, _ in row):
            lines.append([""] * named + [interval + space for _, interval, _ in row])
    if style == "text":
        header = [heading] * named + [f"{column.heading}{space}" for column in columns]
        units = [""] * named + [f"{unit_of(column)}{space}" if column.shown_unit else "" for column in columns]
        return render_table([header, *lines], named, style, width, units)
    over = [escape(heading_of(column), style) if style == "latex" else heading_of(column) for column in columns]
    return render_table([[heading or "Approach"] * named + over, *lines], named, style)


def summary_text(
    rows: Sequence[Row],
    convention: Convention,
    limits: Sequence[Limits] | None = None,
    *,
    against: str | None = None,
    comparability: Iterable[Note] = (),
    width: int | None = None,
) -> str:
    """Return the table as text, with a line of explanations, and one if values are not comparable with published ones.

    `against` and `comparability` are those of `Evaluation`, `width` as for `format_table`.
    """
    columns = shown_columns(rows)
    directions = "" if goes_by_metric(columns) else list_directions(columns)
    parts = [directions, "* best" if len(rows) > 1 else "", measured_words(convention, against)]
    table = format_table(rows, heading="", limits=limits, width=width, threshold=threshold_words(convention))
    lines = [table, "; ".join(part for part in parts if part), comparability_words(comparability)]
    return "\n".join(line for line in lines if line)


def comparability_words(comparability: Iterable[Note]) -> str:
    """Return a sentence on differences from published evaluations; empty without any.

    >>> comparability_words([Note("not-standard", field="label_threshold", words="label threshold 0.3")])
    'not comparable with published values: label threshold 0.3'
    """
    words = ", ".join(dict.fromkeys(map(str, comparability)))
    return f"not comparable with published values: {words}" if words else ""


def measured_words(convention: Convention, against: str | None) -> str:
    """Return a description of the convention and of the scored regions."""
    return f"convention: {convention.describe()}" + (f"; scored against {against}" if against else "")


def escape(name: str, style: str) -> str:
    """Return a name with the special characters of the style escaped."""
    if style == "markdown":
        return "".join(f"\\{c}" if c in "\\|*_`[]<>" else c for c in name)
    if style == "latex":
        special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
        return "".join(special.get(c, f"\\{c}" if c in "#$%&_{}" else c) for c in name)
    return name


def unit_of(column: Column) -> str:
    """Return the unit of a column as in headings: ``[px]``, or nothing."""
    return f"[{column.shown_unit}]" if column.shown_unit else ""


def render_table(
    cells: list[list[str]], names: int, style: str, width: int | None = None, units: list[str] | None = None
) -> str:
    """Return headings and rows as a table of a style; the first `names` columns are left-aligned."""
    if style == "text":
        return grid(cells, width=width, names=names, units=units)
    header, *lines = cells
    if style == "markdown":
        rule = [*("---" for _ in range(names)), *("---:" for _ in header[names:])]
        return "\n".join("| " + " | ".join(line) + " |" for line in [header, rule, *lines])
    sides = "l" * names + "r" * (len(header) - names)
    parts = [f"\\begin{{tabular}}{{@{{}}{sides}@{{}}}}", r"\toprule", " & ".join(header) + r" \\", r"\midrule"]
    parts += [" & ".join(row) + r" \\" for row in lines]
    return "\n".join([*parts, r"\bottomrule", r"\end{tabular}"])


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
    """Return a number for CSV; counts are integers, except the limits of their intervals."""
    is_count = column is not None and column.unit == "count" and not math.isnan(value)
    return int(value) if is_count else float(value)


def evaluation_html(evaluation: Evaluation) -> str:
    """Return metrics, convention, counts, warnings and notes as HTML; all text is escaped."""
    summary = evaluation.summary()
    columns = columns_at([("", summary)], threshold_words(evaluation.convention))
    values = [format_value(column, column.shown(summary)) for column in columns]
    if goes_by_metric(columns):
        rows = [
            [heading_of(column), value, direction_of(column), column.hint]
            for column, value in zip(columns, values, strict=True)
        ]
        table = html_table(["metric", "value", "better", "meaning"], rows, texts=[True, False, True, True])
        directions = ""
    else:
        table = html_table(
            [heading_of(column) for column in columns], [values], hints=[column.hint for column in columns]
        )
        directions = f"{list_directions(columns)}; " if list_directions(columns) else ""
    made = html_text(measured_words(evaluation.convention, evaluation.scored_against))
    about = f"{html_text(directions)}{made}<br>{evaluation.counts_in_words}"
    standard = comparability_words(evaluation.comparability)
    about += f"<br>{html_text(standard)}" if standard else ""
    files = " → ".join(html_text(name) for name in evaluation.inputs)
    parts = [table, f"<p>{about}{f'<br>{files}' if files else ''}</p>"]
    notes = (*evaluation.warnings, *evaluation.notes)
    if notes:
        items = "".join(f"<li><b>{note.kind}:</b> {html_text(str(note))}</li>" for note in notes)
        parts.append(f"<ul>{items}</ul>")
    return f"<div>{''.join(parts)}</div>"


def label_results(results: Mapping[str, Evaluation]) -> dict[str, Evaluation]:
    """Return the results under names with their differences: convention, label threshold, metrics, images.

    Without differences, names do not change.

    >>> import probox
    >>> from probox.demo import make_demo
    >>> demo = make_demo()
    >>> result = probox.evaluate(demo.truth, demo.detectors["deterministic"])
    >>> list(label_results({"ssd": result, "ssd-2": result.at_threshold(0.5)}))
    ['ssd (all labels)', 'ssd-2 (> 0.5)']
    """
    given = list(results.values())
    words: list[list[str]] = [[] for _ in given]
    for about in (_conventions, _thresholds, _measures, _images):
        texts = about(given)
        if len(set(texts)) > 1:
            for own, text in zip(words, texts, strict=True):
                own.append(text)
    return {
        f"{name} ({', '.join(own)})" if own else name: result
        for (name, result), own in zip(results.items(), words, strict=True)
    }


def _conventions(results: list[Evaluation]) -> list[str]:
    return [result.convention.replace(label_threshold=None).describe() for result in results]


def _thresholds(results: list[Evaluation]) -> list[str]:
    def words(convention: Convention) -> str:
        if convention.fixed_threshold is not None:
            return f"> {convention.fixed_threshold:g}"
        return "all labels" if convention.label_threshold is None else "label threshold auto"

    return [words(result.convention) for result in results]


def _measures(results: list[Evaluation]) -> list[str]:
    return [" and ".join(result.measures) for result in results]


def _images(results: list[Evaluation]) -> list[str]:
    """Return the number of images of each result, and the range of ids where equal numbers hide different images."""
    ids = [result.dataset.image_ids for result in results]
    texts = [f"{len(own):,} images" for own in ids]
    for n, own in enumerate(ids):
        alike = [other for m, other in enumerate(ids) if len(other) == len(own) and m != n]
        if len(own) and any(not np.array_equal(own, other) for other in alike):
            texts[n] += f" from {own[0]} to {own[-1]}"
    return texts
