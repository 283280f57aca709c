"""Rows as comma-separated text that every reader takes apart as it was put together."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Sequence

__all__ = ["csv_lines", "csv_text", "without_formula"]

_STARTS_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class _Lines(list[str]):
    """Where a writer puts its lines."""

    def write(self, line: str) -> None:
        self.append(line.removesuffix("\r\n") + "\n")


def csv_lines(rows: Iterable[Sequence[object]], *, ready: bool = False) -> Iterator[str]:
    r"""Yield each row as a line, line feed included; a field with a line break in it stays one field.

    Numbers are as short as they can be read back equal. What is missing (None, NaN) is an empty field. Rows that are
    `ready` hold text or None alone, which is written as it is.

    >>> list(csv_lines([["a,b", 0.1, None], ["c", float("nan"), 3]]))
    ['"a,b",0.1,\n', 'c,,3\n']
    """
    lines = _Lines()
    # With this terminator both characters of line breaks are quoted, in all versions of Python.
    writer = csv.writer(lines, lineterminator="\r\n")
    for row in rows:
        writer.writerow(row if ready else [_plain(value) for value in row])
        yield from lines
        lines.clear()


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as one text, without a line feed at its end."""
    return "".join(csv_lines(rows)).removesuffix("\n")


def _plain(value: object) -> object:
    """Return what to write: nothing for what is missing; halves of characters, which no file can hold, as escapes."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if not isinstance(value, str):
        return value
    return without_formula(value.encode("utf-8", "backslashreplace").decode())


def without_formula(text: str) -> str:
    """Return a field that no spreadsheet takes for a formula: with an apostrophe before it, unless it is a number.

    >>> without_formula("=1+1"), without_formula("-0.5"), without_formula("cup")
    ("'=1+1", '-0.5', 'cup')
    """
    if not text.startswith(_STARTS_FORMULA):
        return text
    try:
        float(text)
    except ValueError:
        return "'" + text
    return text
