"""Printable text, JSON values and CSV rows."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

# Characters that control a terminal or change the direction of text: control characters except tab and line feed,
# direction marks, line separators, and surrogates, which terminals cannot show.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    r"""Return text with control characters escaped.

    >>> printable("\x1b]0;title\x07cup")
    '\\x1b]0;title\\x07cup'
    """
    return _UNPRINTABLE.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


def one_line(text: str) -> str:
    """Return printable text without line breaks and tabs: a name must not look like a separate message or row."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def printable_json(text: str) -> str:
    """Return JSON text with control characters, which occur in strings only, as JSON escapes."""
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def nearest_word(word: str, known: Iterable[str]) -> str | None:
    """Return the most similar known word, by all of it or by one of its parts; None if none is similar.

    >>> nearest_word("lable_threshold", ["label_threshold", "label_weight"])
    'label_threshold'
    >>> nearest_word("treshold", ["iou_thresholds", "label_threshold"])
    'label_threshold'
    """
    from difflib import SequenceMatcher, get_close_matches

    def likeness(name: str) -> float:
        return max(SequenceMatcher(None, part, word).ratio() for part in (name, *name.split("_")))

    return max(get_close_matches(word, list(known)), key=likeness, default=None)


def with_count(n: int, noun: str) -> str:
    """Return a number with its noun in singular or plural.

    >>> with_count(1, "image"), with_count(1203, "class"), with_count(0, "plain box")
    ('1 image', '1,203 classes', '0 plain boxes')
    """
    plural = "" if n == 1 else "es" if noun.endswith(("s", "x")) else "s"
    return f"{n:,} {noun}{plural}"


def some_names(names: Sequence[str]) -> str:
    """Return the first of many names.

    >>> some_names(["cup", "dog", "cat", "hat"])
    'cup, dog, cat, ...'
    """
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


def format_list(words: Sequence[str]) -> str:
    """Return words as an enumeration.

    >>> format_list(["PDQ"]), format_list(["PDQ", "mAP", "NLL"])
    ('PDQ', 'PDQ, mAP and NLL')
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def plain_json(value: Any) -> Any:
    """Return a value made of lists, dictionaries, numbers and text only; NaN and infinities become None.

    >>> plain_json({1: (0.5, float("nan"))})
    {'1': [0.5, None]}
    """
    if isinstance(value, dict):
        return {str(key): plain_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(item) for item in value]
    if hasattr(value, "tolist"):
        return plain_json(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


_STARTS_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class _Lines(list[str]):
    """A file-like list of lines, for `csv.writer`."""

    def write(self, line: str) -> None:
        self.append(line.removesuffix("\r\n") + "\n")


def csv_lines(rows: Iterable[Sequence[object]], *, ready: bool = False) -> Iterator[str]:
    r"""Yield each row as a line, line feed included; a field with a line break in it stays one field.

    Numbers have the fewest digits that restore them. Missing values (None, NaN) are empty fields. Rows that are `ready`
    contain only text or None, which is written unchanged.

    >>> list(csv_lines([["a,b", 0.1, None], ["c", float("nan"), 3]]))
    ['"a,b",0.1,\n', 'c,,3\n']
    """
    import csv

    lines = _Lines()
    # With this terminator both characters of line breaks are quoted, in all versions of Python.
    writer = csv.writer(lines, lineterminator="\r\n")
    for row in rows:
        writer.writerow(row if ready else [_plain(value) for value in row])
        yield from lines
        lines.clear()


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as one text, without a line feed at the end."""
    return "".join(csv_lines(rows)).removesuffix("\n")


def _plain(value: object) -> object:
    """Return the value to write: empty for missing values; surrogates, which cannot be encoded, as escapes."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if not isinstance(value, str):
        return value
    return without_formula(value.encode("utf-8", "backslashreplace").decode())


def without_formula(text: str) -> str:
    """Return a field that spreadsheets do not read as a formula: prefixed with an apostrophe unless it is a number.

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
