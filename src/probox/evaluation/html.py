"""An evaluation as a notebook shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probox.evaluation.notes import label_note
from probox.evaluation.text import format_value, heading_at, shown_columns, threshold_words
from probox.support.html_table import html_table, html_text

if TYPE_CHECKING:
    from probox.evaluation.result import Evaluation

__all__ = ["evaluation_html"]


def evaluation_html(evaluation: Evaluation) -> str:
    """Return the numbers, what made them, how much was scored, and what is odd or worth knowing; all of it escaped."""
    summary = evaluation.summary()
    columns = shown_columns([("", summary)])
    table = html_table(
        [heading_at(column, threshold_words(evaluation.convention)) for column in columns],
        [[format_value(column, column.shown(summary)) for column in columns]],
        hints=[column.hint for column in columns],
    )
    convention = html_text(evaluation.convention.describe())
    about = f"qualities in per cent; convention: {convention}<br>{evaluation.counts_in_words}"
    files = " → ".join(html_text(name) for name in evaluation.inputs)
    parts = [table, f"<p>{about}{f'<br>{files}' if files else ''}</p>"]
    said = [f"warning: {oddity}" for oddity in evaluation.oddities]
    said += map(label_note, (*evaluation.plain_notes, *evaluation.remarks))
    if said:
        parted = (text.partition(": ") for text in said)
        items = "".join(f"<li><b>{kind}:</b> {html_text(text)}</li>" for kind, _, text in parted)
        parts.append(f"<ul>{items}</ul>")
    return f"<div>{''.join(parts)}</div>"
