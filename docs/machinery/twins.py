"""Every page a second time as plain Markdown beside it, and an index of all of them: ``llms.txt``."""

from __future__ import annotations

import re
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

from api import PAGES
from docstring_text import markdown_of
from docstrings import Entry, entries
from docutils import nodes
from navigation import CHILDREN, MENU
from sphinx.application import Sphinx

__all__ = ["setup"]

TOP = ("function", "class", "exception", "data")
"""Kinds of objects that belong to a module, not to a class."""
ABOUT = "Measure, make and show probabilistic object detections: PDQ, mAP, moLRP and measures of uncertainty."


def name_twin(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Tell a page's template where its Markdown is."""
    if doctree is not None:
        context["markdown_twin"] = pagename.rsplit("/", 1)[-1] + ".md"


def write_twins(app: Sphinx, error: Exception | None) -> None:
    """Write the Markdown of all pages, with the figures that they show, and the index."""
    if error is not None:
        return
    source, out = Path(app.srcdir), Path(app.outdir)
    for docname in sorted(app.env.found_docs):
        text = (source / f"{docname}.md").read_text(encoding="utf-8")
        target = out / f"{docname}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_reference(docname, text) if docname in PAGES else text, encoding="utf-8")
    for path in source.rglob("*"):
        if path.is_file() and path.suffix != ".md":
            target = out / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    (out / "llms.txt").write_text(_index(app), encoding="utf-8")


def _reference(docname: str, text: str) -> str:
    """Return a page of the reference with docstrings in place of the directives that fetch them."""
    given = _in_page_order(entries[docname])
    asked = re.findall(r"^\.\. auto\w+:: (\S+)", text, re.M)
    made = []
    top = 2
    for piece in re.split(r"^(```\{eval-rst\}.*?^```)\n", text, flags=re.M | re.S):
        if not piece.startswith("```{eval-rst}"):
            made.append(piece)
            top = 3 if re.search("^## ", piece, re.M) else top
            continue
        modules = re.findall(r"automodule:: (\S+)", piece)
        names = set(re.findall(r"^\.\. auto\w+:: (\S+)", piece, re.M))
        while given and _asked_as(given[0], asked) in names:
            entry = given.pop(0)
            if entry.name not in modules:
                made.append(f"{'#' * (top + (entry.kind not in TOP))} `{entry.name}`\n\n")
            if entry.signature:
                made.append(f"```python\n{entry.name.rsplit('.', 1)[-1]}{entry.signature}\n```\n\n")
            made.append(markdown_of(entry.lines) + "\n")
    if given:
        raise RuntimeError(f"{docname}: {given[0].name} has no place in the Markdown")
    return re.sub(r"\n{3,}", "\n\n", "".join(made))


def _in_page_order(found: list[Entry]) -> list[Entry]:
    """Return entries with the members of a class right after it, whenever autodoc came upon them."""
    names = {entry.name for entry in found if entry.kind == "class"}
    members: dict[str, list[Entry]] = defaultdict(list)
    rest = []
    for entry in found:
        owner = entry.name.rpartition(".")[0]
        (members[owner] if owner in names and entry.kind not in TOP else rest).append(entry)
    return [one for entry in rest for one in (entry, *members.pop(entry.name, []))]


def _asked_as(entry: Entry, asked: list[str]) -> str:
    """Return the directive's name that fetched an entry: its own, its class's or its module's."""
    fits = [name for name in asked if entry.name == name or entry.name.startswith(f"{name}.")]
    return max(fits, key=len, default="")


def _index(app: Sphinx) -> str:
    lines = [f"# {app.config.project} {app.config.version}", "", f"> {ABOUT}", ""]
    lines += ["Every page of this documentation as plain Markdown.", "", "- [Start](index.md)"]
    for caption, listed in MENU:
        lines += ["", f"## {caption}", ""]
        for entry in listed:
            name = f"{entry}index" if entry.endswith("/") else entry
            if name in app.env.found_docs:
                lines.append(_line(app, name))
            if name in CHILDREN and name in app.env.found_docs:
                below = app.env.toctree_includes.get(name, [])
                lines += [f"  {_line(app, child)}" for child in below]
    return "\n".join(lines) + "\n"


def _line(app: Sphinx, docname: str) -> str:
    title = app.env.titles.get(docname, nodes.title("", docname)).astext()
    return f"- [{title}]({docname}.md)"


def setup(app: Sphinx) -> None:
    """Listen to Sphinx."""
    app.connect("html-page-context", name_twin)
    app.connect("build-finished", write_twins)
