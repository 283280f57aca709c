"""Docstrings on their way into the site: kept as they were written, and handed on as Sphinx wants them."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from docstring_text import with_literal_blocks
from sphinx.application import Sphinx

__all__ = ["Entry", "entries", "setup"]


@dataclass
class Entry:
    """A documented object: of which kind, its full name, its signature and the lines of its docstring."""

    kind: str
    name: str
    signature: str
    lines: list[str]


entries: dict[str, list[Entry]] = defaultdict(list)
"""What autodoc put on each page, in the page's order."""


def note_signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str | None, returns: str | None
) -> None:
    """Keep the signature of an object whose docstring comes next."""
    arrow = f" -> {_short(returns)}" if returns else ""
    entries[app.env.docname].append(Entry(what, name, _short(signature or "") + arrow, []))


def note_docstring(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Keep a docstring as it was written, and make it reStructuredText."""
    page = entries[app.env.docname]
    if not page or page[-1].name != name:
        page.append(Entry(what, name, "", []))
    page[-1].lines = list(lines)
    lines[:] = with_literal_blocks(lines)


def _short(text: str) -> str:
    return re.sub(r"\b(?:probox|numpy|collections|typing|os)(?:\.\w+)*\.(?=\w)", "", text).replace("~", "")


def setup(app: Sphinx) -> None:
    """Listen to autodoc, before the extension that reads NumPy's sections."""
    app.connect("autodoc-process-signature", note_signature)
    app.connect("autodoc-process-docstring", note_docstring, priority=100)
