"""Text and HTML tables."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

from probox.support.formatting import one_line

_GAP = 2

"""Spaces between columns."""

_LEAST_NAME, _LEAST_HEADING, _LEAST_WORDS = 12, 12, 20

"""Maximum characters per line of names, headings and text in narrow tables."""

Row = Sequence[str]


def grid(
    rows: Sequence[Row],
    *,
    width: int | None = None,
    names: int = 1,
    words: bool = False,
    units: Row | None = None,
) -> str:
    """Return rows of cells as text with right-aligned numbers.

    Parameters
    ----------
    rows : sequence of sequence of str
        Headings, then the other rows.
    width : int, optional
        Maximum characters per line. A wider table is split into blocks of columns, each with the names; names and
        headings wrap, but numbers do not, whatever the width. Default: no limit.
    names : int
        Number of left-aligned first columns, which are repeated in each block.
    words : bool
        The last column is text: left-aligned, and wrapped rather than moved to another block.
    units : sequence of str, optional
        Line below the headings, such as ``[px]``; empty for columns without a unit.

    Examples
    --------
    >>> rows = [["", "PDQ", "mAP", "TP"], ["ssd", "10.25", "20.50", "1,205"], ["yolo", "9.75", "21.00", "980"]]
    >>> print(grid(rows))
            PDQ    mAP     TP
    ssd   10.25  20.50  1,205
    yolo   9.75  21.00    980
    >>> print(grid(rows, width=18))
            PDQ    mAP
    ssd   10.25  20.50
    yolo   9.75  21.00
    <BLANKLINE>
             TP
    ssd   1,205
    yolo    980
    """
    rows = [[one_line(cell) for cell in row] for row in rows]  # line breaks in names would split a row
    if units is not None and any(units):
        rows[0] = [f"{cell}\n{unit}" for cell, unit in zip(rows[0], units, strict=True)]
    whole = _lines(rows, names, words)
    if width is None or max(map(len, whole)) <= width:
        return "\n".join(whole)
    header, *body = ([*row] for row in rows)
    first = names
    last = len(header) - int(words)
    for column in range(first, last):
        own = max((len(row[column]) for row in body), default=0)
        header[column] = _wrap(header[column], max(own, _LEAST_HEADING))
    if names:
        others = sum(_GAP + max(_width(row[column]) for row in (header, *body)) for column in range(1, last))
        most = max(width // 2, width - others - words * (_GAP + _LEAST_WORDS), _LEAST_NAME)
        for row in (header, *body):
            row[0] = _wrap(row[0], most)
    widths = [max(_width(row[column]) for row in (header, *body)) for column in range(len(header))]
    if words:
        room = width - sum(w + _GAP for w in widths[:last])
        for row in (header, *body):
            row[-1] = _wrap(row[-1], max(room, _LEAST_WORDS))
        return "\n".join(_lines([header, *body], names, words))
    blocks = _blocks(widths[first:], width - sum(w + _GAP for w in widths[:first]))
    texts = []
    for block in blocks:
        columns = [*range(first), *(first + column for column in block)]
        chosen = [[row[column] for column in columns] for row in body]
        # A row without a name and without values in these columns, such as intervals of counts, is omitted.
        kept = [row for row in chosen if any(cell.strip() for cell in row)]
        texts.append("\n".join(_lines([[header[column] for column in columns], *kept], names, words=False)))
    return "\n\n".join(texts)


def _blocks(widths: Sequence[int], room: int) -> list[list[int]]:
    """Return the columns of each block: as few blocks as possible, of similar width."""
    fewest = len(_fill_blocks(widths, room))
    return next(found for less in range(room + 1) if len(found := _fill_blocks(widths, less)) <= fewest)


def _fill_blocks(widths: Sequence[int], room: int) -> list[list[int]]:
    """Return the columns of each block: as many as fit, at least one."""
    blocks: list[list[int]] = []
    used = room + 1
    for column, width in enumerate(widths):
        if used + _GAP + width > room:
            blocks.append([])
            used = -_GAP
        blocks[-1].append(column)
        used += _GAP + width
    return blocks


def _wrap(text: str, most: int) -> str:
    lines = (
        textwrap.wrap(line, most, break_on_hyphens=False) if len(line) > most else [line] for line in text.split("\n")
    )
    return "\n".join(part for line in lines for part in line)


def _width(cell: str) -> int:
    return max(map(len, cell.split("\n")))


def _lines(rows: Sequence[Row], names: int, words: bool) -> list[str]:
    """Return aligned lines; multi-line cells are aligned at the bottom in headings and at the top in other rows."""
    widths = [max(_width(row[column]) for row in rows) for column in range(len(rows[0]))]
    left = {*range(names), *([len(widths) - 1] if words else [])}
    lines = []
    for number, row in enumerate(rows):
        cells = [cell.split("\n") for cell in row]
        high = max(map(len, cells))
        padded = [[""] * (high - len(own)) + own if number == 0 else own + [""] * (high - len(own)) for own in cells]
        for line in range(high):
            parts = [
                own[line].ljust(width) if column in left else own[line].rjust(width)
                for column, (own, width) in enumerate(zip(padded, widths, strict=True))
            ]
            lines.append((" " * _GAP).join(parts).rstrip())
    return lines


LONGEST = 60

"""Maximum characters of a text in a cell."""

# No colours: a faint line in the text colour is visible on light and dark backgrounds.
_RULE = "border-bottom:1px solid currentColor"

_CELL = "padding:0.15em 0.7em;white-space:nowrap"


def html_text(text: str) -> str:
    """Return escaped text for HTML: names in files may contain any characters.

    >>> html_text("<b>cup")
    '&lt;b&gt;cup'
    """
    import html  # imported on use: its entity table is large

    return html.escape(one_line(text))


def shown_value(value: object) -> str:
    """Return a value as shown in a cell: numbers with six digits, long text truncated, missing values empty.

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
    """Return an HTML table; cells are escaped text.

    `texts` marks left-aligned text columns, `hints` are tooltips of headings.
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
