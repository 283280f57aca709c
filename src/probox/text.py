"""Results as text: the paper's table, for people."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from probox.convention import Convention

__all__ = ["COLUMNS", "format_value", "summary_text"]

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


def format_value(column: str, value: float) -> str:
    """Return a number as the table shows it: counts as they are, qualities in per cent, nothing as a dash."""
    if math.isnan(value):
        return "-"
    value = 1 - value if column == "mLRP" else value
    return f"{int(value):,}" if column in ("TP", "FP", "FN") else f"{100 * value:.2f}"


def summary_text(rows: Sequence[tuple[str, Mapping[str, float]]], convention: Convention) -> str:
    """Return one line per row under the paper's columns, in per cent."""
    shown = [(title, key) for title, key in COLUMNS if all(key in summary for _, summary in rows)]
    cells = [["", *(title for title, _ in shown)]]
    cells += [[name, *(format_value(title, summary[key]) for title, key in shown)] for name, summary in rows]
    if not any(name for name, _ in rows):
        cells = [row[1:] for row in cells]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    named = any(name for name, _ in rows)
    lines = []
    for row in cells:
        padded = [
            cell.ljust(width) if named and column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(padded).rstrip())
    return "\n".join([*lines, f"qualities in per cent; convention: {convention.name}"])
