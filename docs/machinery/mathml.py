"""Equations as MathML, which browsers draw themselves: no script, no font, no network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging

__all__ = ["setup"]

LOG = logging.getLogger(__name__)


def _put(translator: Any, node: nodes.Node, display: str) -> None:
    try:
        translator.body.append(convert(node.astext(), display=display))
    except Exception as error:  # whatever the converter raises, it is about this equation
        LOG.warning("not understood: %s (%s)", node.astext(), error, location=node)
    raise nodes.SkipNode


def put_inline(translator: Any, node: nodes.Node) -> None:
    """Write an equation in a line of text."""
    _put(translator, node, "inline")


def put_block(translator: Any, node: nodes.Node) -> None:
    """Write an equation in lines of its own, which scrolls by itself if it is too wide."""
    translator.body.append(translator.starttag(node, "div", CLASS="math"))
    try:
        _put(translator, node, "block")
    finally:
        translator.body.append("</div>\n")


def setup(app: Sphinx) -> None:
    """Make this the renderer called ``mathml``."""
    app.add_html_math_renderer("mathml", (put_inline, None), (put_block, None))
