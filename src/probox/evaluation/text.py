"""Results as text: the paper's Table 1 for people, papers and programs."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence

from probox.convention import Convention

__all__ = ["COLUMNS", "FORMATS", "Row", "best_cells", "format_table", "format_value", "summary_text"]

COLUMNS = (
    ("mAP", "mAP"),
    ("mLRP", "moLRP"),
    ("PDQ", "PDQ"),
    ("pPDQ", "pPDQ"),
    ("Sp", "spatial"),
    ("Lbl", "label"),
    ("FG", "foreground"),
    ("BG", "background"),
    ("TP", "TP"),
    ("FP", "FP"),
    ("FN", "FN"),
)
"""The paper's columns and the summary's names for them; mLRP is 1 - moLRP, so that more is better."""

COUNTS = ("TP", "FP", "FN")
LESS_IS_BETTER = ("FP", "FN")
FORMATS = ("text", "markdown", "latex", "csv")

Row = tuple[str, Mapping[str, float]]
"""A name and a summary."""


def shown_columns(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Return the columns that every summary has."""
    return [(title, key) for title, key in COLUMNS if all(key in summary for _, summary in rows)]


def column_value(title: str, summary: Mapping[str, float]) -> float:
    """Return the number that a column shows."""
    value = float(summary[dict(COLUMNS)[title]])
    return 1.0 - value if title == "mLRP" else value


def format_value(column: str, value: float) -> str:
    """Return a number as the table shows it: counts as they are, qualities in per cent, nothing as a dash."""
    if math.isnan(value):
        return "-"
    return f"{int(value):,}" if column in COUNTS else f"{100 * value:.2f}"


def best_cells(rows: Sequence[Row]) -> set[tuple[int, str]]:
    """Return row number and column of the best value of each column, of all of them among equals.

    With a single row nothing is best.
    """
    best: set[tuple[int, str]] = set()
    if len(rows) < 2:
        return best
    for title, _ in shown_columns(rows):
        # Values that look alike are alike: the table is read as it is printed.
        shown = {
            number: round(column_value(title, summary), 4)
            for number, (_, summary) in enumerate(rows)
            if not math.isnan(column_value(title, summary))
        }
        if shown:
            wanted = min(shown.values()) if title in LESS_IS_BETTER else max(shown.values())
            best.update((number, title) for number, value in shown.items() if value == wanted)
    return best


def format_table(rows: Sequence[Row], style: str = "text", *, heading: str = "Approach") -> str:
    """Return the paper's Table 1 for any number of detectors, the best values marked.

    Parameters
    ----------
    rows : sequence of (name, summary)
        What `Evaluation.summary` returns, with a name each. Without names the first column is left out.
    style : {"text", "markdown", "latex", "csv"}
        Best values carry ``*``, ``**...**`` or ``\\textbf``; CSV has plain fractions and no marks.
    heading : str
        Over the names.

    Examples
    --------
    >>> print(format_table([("one", {"PDQ": 0.25, "TP": 3}), ("two", {"PDQ": 0.5, "TP": 2})], "markdown"))
    | Approach | PDQ (%) | TP |
    | --- | ---: | ---: |
    | one | 25.00 | **3** |
    | two | **50.00** | 2 |
    """
    titles = [title for title, _ in shown_columns(rows)]
    named = any(name for name, _ in rows)
    if style == "csv":
        return _csv(rows, titles, heading)
    best = best_cells(rows)
    cells = []
    for number, (name, summary) in enumerate(rows):
        values = [_marked(title, summary, (number, title) in best, style) for title in titles]
        cells.append([_escaped(name, style), *values] if named else values)
    return {"text": _text, "markdown": _markdown, "latex": _latex}[style](cells, titles, heading if named else None)


def summary_text(rows: Sequence[Row], convention: Convention) -> str:
    """Return the table as text with a line on how to read it."""
    marked = "; * best" if len(rows) > 1 else ""
    return f"{format_table(rows, heading='')}\nqualities in per cent{marked}; convention: {convention.describe()}"


def _marked(title: str, summary: Mapping[str, float], best: bool, style: str) -> str:
    text = format_value(title, column_value(title, summary))
    if not best:
        return text + (" " if style == "text" else "")
    return {"text": f"{text}*", "markdown": f"**{text}**", "latex": f"\\textbf{{{text}}}"}[style]


def _escaped(name: str, style: str) -> str:
    """Return a name that means itself in the table's language."""
    if style == "markdown":
        return "".join(f"\\{c}" if c in "\\|*_`[]<>" else c for c in name)
    if style == "latex":
        special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
        return "".join(special.get(c, f"\\{c}" if c in "#$%&_{}" else c) for c in name)
    return name


def _text(cells: list[list[str]], titles: list[str], heading: str | None) -> str:
    # A mark or the room for one stands behind every number, but room at every line's end is nothing to print.
    marked = any(cell.endswith("*") for row in cells for cell in row)
    if not marked:
        cells = [
            [cell.rstrip() if number or heading is None else cell for number, cell in enumerate(row)] for row in cells
        ]
    padded = [f"{title} " if marked else title for title in titles]
    lines = [padded if heading is None else [heading, *padded], *cells]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if heading is not None and column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _with_units(titles: list[str], per_cent: str) -> list[str]:
    return [title if title in COUNTS else f"{title} ({per_cent})" for title in titles]


def _markdown(cells: list[list[str]], titles: list[str], heading: str | None) -> str:
    first = [] if heading is None else [heading or "Approach"]
    header = [*first, *_with_units(titles, "%")]
    rule = [*("---" for _ in first), *("---:" for _ in titles)]
    return "\n".join("| " + " | ".join(line) + " |" for line in [header, rule, *cells])


def _latex(cells: list[list[str]], titles: list[str], heading: str | None) -> str:
    first = [] if heading is None else [heading or "Approach"]
    columns = "l" * len(first) + "r" * len(titles)
    lines = [f"\\begin{{tabular}}{{@{{}}{columns}@{{}}}}", r"\toprule"]
    lines += [" & ".join([*first, *_with_units(titles, r"\%")]) + r" \\", r"\midrule"]
    lines += [" & ".join(row) + r" \\" for row in cells]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def _csv(rows: Sequence[Row], titles: list[str], heading: str) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([heading, *titles])
    for name, summary in rows:
        values = [column_value(title, summary) for title in titles]
        shown = [
            "" if math.isnan(value) else int(value) if title in COUNTS else repr(value)
            for title, value in zip(titles, values, strict=True)
        ]
        writer.writerow([name, *shown])
    return out.getvalue().rstrip("\n")
