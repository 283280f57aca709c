"""Small tables in HTML for notebooks, in whatever colours the notebook has."""

from __future__ import annotations

import math
from collections.abc import Sequence

from probox.support.words import one_line

__all__ = ["html_table", "html_text", "shown_value"]

LONGEST = 60
"""Characters of a text that a cell shows."""

# No colours: a line in the colour of the text, fainter, is seen on light and on dark ground.
_RULE = "border-bottom:1px solid currentColor"
_CELL = "padding:0.15em 0.7em;white-space:nowrap"


def html_text(text: str) -> str:
    """Return text that means itself in HTML: names in files may hold anything.

    >>> html_text("<b>cup")
    '&lt;b&gt;cup'
    """
    import html  # its table of entities is long, and few runs make a page

    return html.escape(one_line(text))


def shown_value(value: object) -> str:
    """Return a value as a cell shows it: six digits of a number, the beginning of a long text, nothing if missing.

    >>> [shown_value(value) for value in (0.123456789, 7, True, None, float("nan"), "cup")]
    ['0.123457', '7', 'True', '', '', 'cup']
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    text = one_line(str(value))
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def html_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    texts: Sequence[bool] | None = None,
    hints: Sequence[str] | None = None,
) -> str:
    """Return a table in HTML; cells are text as it is shown.

    Parameters
    ----------
    headings : sequence of str
        What stands over the columns.
    rows : sequence of sequences of str
        The cells.
    texts : sequence of bool, optional
        Which columns hold text and stand on the left. Default: none.
    hints : sequence of str, optional
        What headings mean, shown when the pointer rests on them.
    """
    sides = ["left" if text else "right" for text in texts or [False] * len(headings)]
    head = "".join(
        f'<th style="{_CELL};{_RULE};text-align:{side}" title="{html_text(hint)}">{html_text(name)}</th>'
        for name, side, hint in zip(headings, sides, hints or headings, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="{_CELL};text-align:{side}">{html_text(cell)}</td>'
            for cell, side in zip(row, sides, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return (
        '<div style="overflow-x:auto"><table style="border-collapse:collapse">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
