"""Keep docstrings as written for the Markdown pages, and convert them to reStructuredText for Sphinx."""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from docstring_text import with_literal_blocks
from sphinx.application import Sphinx

__all__ = ["Entry", "entries", "setup"]


@dataclass
class Entry:
    """A documented object: kind, full name, signature and lines of the docstring."""

    kind: str
    name: str
    signature: str
    lines: list[str]


entries: dict[str, list[Entry]] = defaultdict(list)
"""Entries of each page, in the order of autodoc."""


# Short names of NumPy types; Sphinx expands their aliases.
ALIASES = (
    (r"~?(?:\w+\.)*_Buffer \| .*?_NestedSequence\[complex \| bytes \| str\]", "ArrayLike"),
    (r"type\[[~\w.]*Any\] \| .*?_DTypeDict \| str", "DTypeLike"),
    (r"~?(?:numpy\.)?ndarray\[tuple\[[~\w.]*Any, \.\.\.\], ~?(?:numpy\.)?dtype\[([~\w.]+)\]\]", r"NDArray[\1]"),
    (r"<[^<>]*(?:<[^<>]*>)?[^<>]*>", "..."),  # objects without a Python literal, such as functions
)
SKIPPED = (
    "adopts",
    "chosen_rows",
    "columns_at",
    "extra_repr",
    "known_of_objects",
    "object_images",
    "offsets",
    "rematched",
)
"""Members for internal use, or required by frameworks."""


def note_signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """Keep the signature of the object of the next docstring, and return it as written in the source."""
    if what == "class" and signature and signature.startswith("(*args"):
        signature = _own_signature(obj)
    signature, returns = _named(signature), _named(returns)
    arrow = f" -> {_short(returns)}" if returns else ""
    entries[app.env.docname].append(Entry(what, name, _short(signature or "") + arrow, []))
    return signature, returns


def _own_signature(kind: Any) -> str | None:
    """Return the signature of a class with a mocked base class (torch is not imported); None for a protocol."""
    if getattr(kind, "_is_protocol", False) or "__init__" not in vars(kind):
        return None
    taken = list(inspect.signature(kind.__init__).parameters.values())[1:]
    return str(inspect.Signature(taken)).replace("'", "")


def _named(text: str | None) -> str | None:
    for pattern, alias in ALIASES if text else ():
        text = re.sub(pattern, alias, text)
    return text


def note_docstring(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Keep a docstring as written, and convert it to reStructuredText."""
    page = entries[app.env.docname]
    if not page or page[-1].name != name:
        page.append(Entry(what, name, "", []))
    if what == "data" and inspect.cleandoc("\n".join(lines)) == inspect.getdoc(type(obj)):
        lines.clear()  # docstrings of str and int
    page[-1].lines = list(lines)
    lines[:] = with_literal_blocks(lines)


def mend_attribute(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Restore a first line in which napoleon took the words before a colon for a type."""
    if what in ("attribute", "property", "data"):
        lines[:] = with_literal_blocks(entries[app.env.docname][-1].lines)


def skip_member(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Skip internal members, and fields of named tuples, which the signature lists."""
    skipped = name in SKIPPED or (getattr(obj, "__doc__", None) or "").startswith("Alias for field number")
    return True if skipped else None


def _short(text: str) -> str:
    return re.sub(r"\b(?:probox|numpy|collections|typing|os|pathlib)(?:\.\w+)*\.(?=\w)", "", text).replace("~", "")


def setup(app: Sphinx) -> None:
    """Connect to autodoc, before and after the extension that parses NumPy sections."""
    app.connect("autodoc-process-signature", note_signature)
    app.connect("autodoc-process-docstring", note_docstring, priority=100)
    app.connect("autodoc-process-docstring", mend_attribute, priority=900)
    app.connect("autodoc-skip-member", skip_member)
