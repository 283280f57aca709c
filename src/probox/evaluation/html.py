"""An evaluation as a notebook shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probox.evaluation.notes import label_note
from probox.evaluation.text import (
    columns_at,
    direction_of,
    format_value,
    goes_by_metric,
    heading_of,
    list_directions,
    measured_words,
    threshold_words,
)
from probox.support.html_table import html_table, html_text

if TYPE_CHECKING:
    from probox.evaluation.result import Evaluation

__all__ = ["evaluation_html"]


def evaluation_html(evaluation: Evaluation) -> str:
    """Return the numbers, what made them, how much was scored, and what is odd or worth knowing; all of it escaped."""
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
    files = " → ".join(html_text(name) for name in evaluation.inputs)
    parts = [table, f"<p>{about}{f'<br>{files}' if files else ''}</p>"]
    said = [f"warning: {oddity}" for oddity in evaluation.oddities]
    said += map(label_note, (*evaluation.plain_notes, *evaluation.remarks))
    if said:
        parted = (text.partition(": ") for text in said)
        items = "".join(f"<li><b>{kind}:</b> {html_text(text)}</li>" for kind, _, text in parted)
        parts.append(f"<ul>{items}</ul>")
    return f"<div>{''.join(parts)}</div>"
