"""Text tables: columns aligned, and broken into blocks of columns where a line is too narrow for all of them."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from probox.support.words import one_line

__all__ = ["grid"]

_GAP = 2
"""Spaces between columns."""
_LEAST_NAME, _LEAST_HEADING, _LEAST_WORDS = 12, 12, 20
"""Letters that names, headings and words have in a line, however narrow it is."""

Row = Sequence[str]


def grid(
    rows: Sequence[Row],
    *,
    width: int | None = None,
    names: int = 1,
    words: bool = False,
    units: Row | None = None,
) -> str:
    """Return rows of cells as text, numbers to the right.

    Parameters
    ----------
    rows : sequence of sequence of str
        The headings, then the other rows.
    width : int, optional
        How many letters a line may have. A table that is wider is broken into blocks of columns with the names before
        each; names and headings go over several lines, but a number stays whole, whatever the width. Default: no limit.
    names : int
        How many of the first columns stand to the left and are repeated in each block.
    words : bool
        The last column holds words, which stand to the left, and go over several lines rather than into a block.
    units : sequence of str, optional
        Under the headings, such as ``[px]``; nothing where a column has none.

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
    rows = [[one_line(cell) for cell in row] for row in rows]  # names may hold line breaks: a row must stay one
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
        header[column] = _wrapped(header[column], max(own, _LEAST_HEADING))
    if names:
        others = sum(_GAP + max(_width(row[column]) for row in (header, *body)) for column in range(1, last))
        most = max(width // 2, width - others - words * (_GAP + _LEAST_WORDS), _LEAST_NAME)
        for row in (header, *body):
            row[0] = _wrapped(row[0], most)
    widths = [max(_width(row[column]) for row in (header, *body)) for column in range(len(header))]
    if words:
        room = width - sum(w + _GAP for w in widths[:last])
        for row in (header, *body):
            row[-1] = _wrapped(row[-1], max(room, _LEAST_WORDS))
        return "\n".join(_lines([header, *body], names, words))
    blocks = _blocks(widths[first:], width - sum(w + _GAP for w in widths[:first]))
    texts = []
    for block in blocks:
        columns = [*range(first), *(first + column for column in block)]
        chosen = [[row[column] for column in columns] for row in body]
        # A row that has nothing in these columns and no name, such as intervals of counts, is no row here.
        kept = [row for row in chosen if any(cell.strip() for cell in row)]
        texts.append("\n".join(_lines([[header[column] for column in columns], *kept], names, words=False)))
    return "\n\n".join(texts)


def _blocks(widths: Sequence[int], room: int) -> list[list[int]]:
    """Return which columns stand beside each other: as few blocks as fit, about as wide as each other."""
    fewest = len(_filled(widths, room))
    return next(found for less in range(room + 1) if len(found := _filled(widths, less)) <= fewest)


def _filled(widths: Sequence[int], room: int) -> list[list[int]]:
    """Return which columns stand beside each other: as many as fit, at least one."""
    blocks: list[list[int]] = []
    used = room + 1
    for column, width in enumerate(widths):
        if used + _GAP + width > room:
            blocks.append([])
            used = -_GAP
        blocks[-1].append(column)
        used += _GAP + width
    return blocks


def _wrapped(text: str, most: int) -> str:
    lines = (
        textwrap.wrap(line, most, break_on_hyphens=False) if len(line) > most else [line] for line in text.split("\n")
    )
    return "\n".join(part for line in lines for part in line)


def _width(cell: str) -> int:
    return max(map(len, cell.split("\n")))


def _lines(rows: Sequence[Row], names: int, words: bool) -> list[str]:
    """Return aligned lines; cells of several lines stand on the headings' last and on other rows' first."""
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
