"""Additions to pages written for GitHub: the menu, anchors, and links from names to the API reference."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import Any

from api import PAGES
from docutils import nodes
from navigation import CHILDREN, SECTIONS
from sphinx.application import Sphinx
from sphinx.util.nodes import make_refnode

__all__ = ["setup"]

ANCHOR = re.compile(r'^(#{1,6} [^\n]*)\n<a id="([\w-]+)"></a>$', re.M)
named: dict[str, list[str]] = {}
"""Anchors of each page."""
NAME = re.compile(r"(?:probox\.)?[A-Za-z_][\w.]*")


def add_menu(app: Sphinx, docname: str, source: list[str]) -> None:
    """Append the menu to the start page, its part to the index of a section, and the pages below to other indexes."""
    found = app.env.found_docs
    pages = {section.index: [name for name, _ in section.pages] for section in SECTIONS}
    if docname == "index":
        source[0] += _toctree(list(pages))
    elif pages.get(docname):
        source[0] += _toctree(pages[docname])
    elif docname in CHILDREN:
        listed = sorted(
            name
            for name in found
            if name != docname and any(fnmatchcase(name, pattern) for pattern in CHILDREN[docname])
        )
        mentioned = re.findall(r"\]\(([\w./-]+)\.md[)#]", source[0])  # the page's own order goes first
        order = {
            f"{docname.removesuffix('index')}{name}": place for place, name in reversed(list(enumerate(mentioned)))
        }
        source[0] += _toctree(sorted(listed, key=lambda name: order.get(name, len(order) + len(mentioned))))


def _toctree(pages: list[str]) -> str:
    lines = ["", "", "```{toctree}", ":hidden:", ""]
    return "\n".join([*lines, *(f"/{page}" for page in pages), "```", ""])


def name_anchors(app: Sphinx, docname: str, source: list[str]) -> None:
    """Turn HTML anchors below headings into MyST targets above them."""
    named[docname] = [anchor for _, anchor in ANCHOR.findall(source[0])]
    source[0] = ANCHOR.sub(r"(\2)=\n\1", source[0])


def keep_anchors(app: Sphinx, doctree: nodes.document) -> None:
    """Register anchors as targets of links from other pages."""
    slugs = app.env.metadata[app.env.docname].setdefault("myst_slugs", {})
    slugs |= {anchor: (0, anchor, anchor) for anchor in named.get(app.env.docname, ())}


def link_names(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Link names in prose, such as ``probox.evaluate``, to the API reference."""
    domain = app.env.domains["py"]
    for literal in list(doctree.findall(nodes.literal)):
        if _is_within(literal, (nodes.reference, nodes.title, nodes.raw)) or "code-block" in literal["classes"]:
            continue
        modules = PAGES[docname].modules if docname in PAGES else ()
        target = _target_of(literal.astext(), domain.data["objects"], modules, in_reference=docname.startswith("api/"))
        if target is None:
            continue
        name, entry = target
        if entry.docname == docname and not name.startswith("probox."):
            continue
        link = make_refnode(app.builder, docname, entry.docname, entry.node_id, literal.deepcopy(), name)
        literal.replace_self(link)


def _target_of(text: str, objects: Any, modules: tuple[str, ...], *, in_reference: bool) -> tuple[str, Any] | None:
    name = text.partition("(")[0]
    if not NAME.fullmatch(name):
        return None
    if name in objects and "." in name:
        return name, objects[name]
    # A lower-case name without a dot may be an ordinary word or a metric, so only classes and names with an underscore
    # are looked up in the modules of the page.
    owners = [*modules, "probox"] if name[0].isupper() or "_" in name else ["probox"]
    for full in (f"{owner}.{name}" for owner in owners):
        is_class = name[0].isupper() and not name.isupper()
        if full in objects and objects[full].objtype != "module" and (in_reference or is_class):
            return full, objects[full]
    return None


def _is_within(node: nodes.Node, kinds: tuple[type, ...]) -> bool:
    while node.parent is not None:
        node = node.parent
        if isinstance(node, kinds):
            return True
    return False


def setup(app: Sphinx) -> None:
    """Connect to Sphinx."""
    app.connect("source-read", add_menu)
    app.connect("source-read", name_anchors)
    app.connect("doctree-read", keep_anchors)
    app.connect("doctree-resolved", link_names)
