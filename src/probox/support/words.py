"""Text that is safe to show: names in files may hold anything, also what a terminal would obey."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

__all__ = ["nearest_word", "one_line", "printable", "printable_json", "some_names", "with_count"]

# Characters that make a terminal do something, or show text in another order than it stands in: control characters
# except tab and line feed, marks of direction, separators of lines; and halves of characters, which no terminal gets.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    r"""Return text that a terminal shows as it is.

    >>> printable("\x1b]0;title\x07cup")
    '\\x1b]0;title\\x07cup'
    """
    return _UNPRINTABLE.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


def one_line(text: str) -> str:
    """Return printable text without line breaks and tabs: a name must not look like a message or row of its own."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def printable_json(text: str) -> str:
    """Return JSON text in which such characters, which only strings hold, are written as JSON escapes."""
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def nearest_word(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that somebody most likely meant, or None if none is near.

    >>> nearest_word("lable_threshold", ["label_threshold", "label_weight"])
    'label_threshold'
    """
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, list(known), n=1)), None)


def with_count(n: int, noun: str) -> str:
    """Return a number with its noun.

    >>> with_count(1, "image"), with_count(1203, "class"), with_count(0, "plain box")
    ('1 image', '1,203 classes', '0 plain boxes')
    """
    plural = "" if n == 1 else "es" if noun.endswith(("s", "x")) else "s"
    return f"{n:,} {noun}{plural}"


def some_names(names: Sequence[str]) -> str:
    """Return the first names of many.

    >>> some_names(["cup", "dog", "cat", "hat"])
    'cup, dog, cat, ...'
    """
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


def format_list(words: Sequence[str]) -> str:
    """Return words as a sentence lists them.

    >>> format_list(["PDQ"]), format_list(["PDQ", "mAP", "NLL"])
    ('PDQ', 'PDQ, mAP and NLL')
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
