"""Write every page as plain Markdown beside its HTML, and an index of all pages: ``llms.txt``."""

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
from sphinx.application import Sphinx

__all__ = ["setup"]

TOP = ("function", "class", "exception", "data")
"""Kinds of objects at the top level of a module."""
ABOUT = "Evaluate probabilistic object detectors: PDQ, mAP, moLRP and metrics of uncertainty."


def name_twin(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Pass the address of the Markdown to the template."""
    if doctree is not None:
        context["markdown_twin"] = pagename.rsplit("/", 1)[-1] + ".md"


def write_twins(app: Sphinx, error: Exception | None) -> None:
    """Write the Markdown of all pages, their figures, and the index."""
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
    """Return an API page with docstrings in place of autodoc directives."""
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
        raise RuntimeError(f"{docname}: no directive matches {given[0].name}")
    return re.sub(r"\n{3,}", "\n\n", "".join(made))


def _in_page_order(found: list[Entry]) -> list[Entry]:
    """Return entries with the members of each class right after it."""
    names = {entry.name for entry in found if entry.kind == "class"}
    members: dict[str, list[Entry]] = defaultdict(list)
    rest = []
    for entry in found:
        owner = entry.name.rpartition(".")[0]
        (members[owner] if owner in names and entry.kind not in TOP else rest).append(entry)
    return [one for entry in rest for one in (entry, *members.pop(entry.name, []))]


def _asked_as(entry: Entry, asked: list[str]) -> str:
    """Return the name in the directive of an entry: its own, its class's or its module's."""
    fits = [name for name in asked if entry.name == name or entry.name.startswith(f"{name}.")]
    return max(fits, key=len, default="")


def _index(app: Sphinx) -> str:
    lines = [f"# {app.config.project} {app.config.version}", "", f"> {ABOUT}", ""]
    lines += ["Every page of this documentation as plain Markdown.", "", "- [Start](index.md)"]
    for section in app.env.toctree_includes.get("index", []):
        lines += ["", f"## {_title(app, section)}", "", *_lines(app, section)]
    return "\n".join(lines) + "\n"


def _lines(app: Sphinx, docname: str, indent: str = "") -> list[str]:
    """Return a list item for a page and for each page below it."""
    below = [line for child in app.env.toctree_includes.get(docname, []) for line in _lines(app, child, indent + "  ")]
    return [f"{indent}- [{_title(app, docname)}]({docname}.md)", *below]


def _title(app: Sphinx, docname: str) -> str:
    return app.env.titles.get(docname, nodes.title("", docname)).astext()


def setup(app: Sphinx) -> None:
    """Connect to Sphinx."""
    app.connect("html-page-context", name_twin)
    app.connect("build-finished", write_twins)
