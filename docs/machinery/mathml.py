"""Render equations as MathML, which browsers draw without scripts, fonts or network."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging

__all__ = ["setup", "to_mathml"]

LOG = logging.getLogger(__name__)
KNOWN_AS = {"{aligned}": "{split}", "\\arg\\max": "\\operatorname*{argmax}", "\\arg\\min": "\\operatorname*{argmin}"}
"""Commands that the converter does not support, and equivalent ones that it does."""
UPRIGHT = re.compile(r"<mi>(&#x000(?:[46][1-9A-F]|[57][0-9A]);)</mi>")
"""A single letter in \\mathrm{E}: the converter writes its number and loses the upright style."""


def to_mathml(latex: str, display: str) -> str:
    """Return an equation as MathML.

    The converter passes on what it does not know as if it were a name; here that is an error.

    Parameters
    ----------
    latex : str
        The equation.
    display : {"inline", "block"}
        In a line of text, or in lines of its own.
    """
    for name, known in KNOWN_AS.items():
        latex = latex.replace(name, known)
    # An unpaired double bar would stretch to the height of the line.
    made = convert(latex, display=display).replace("<mo>&#x02016;</mo>", '<mo stretchy="false">&#x02016;</mo>')
    made = UPRIGHT.sub(r'<mi mathvariant="normal">\1</mi>', made)
    if "<mi>\\" in made or "<mi>&</mi>" in made:
        raise ValueError("there is a command that the converter does not know")
    return made


def _put(translator: Any, node: nodes.Node, display: str) -> None:
    try:
        translator.body.append(to_mathml(node.astext(), display))
    except Exception as error:  # the converter raises many types
        LOG.warning("not understood: %s (%s)", node.astext(), error, location=node)
    raise nodes.SkipNode


def put_inline(translator: Any, node: nodes.Node) -> None:
    """Write an inline equation."""
    _put(translator, node, "inline")


def put_block(translator: Any, node: nodes.Node) -> None:
    """Write a display equation, which scrolls if it is too wide."""
    translator.body.append(translator.starttag(node, "div", CLASS="math"))
    try:
        _put(translator, node, "block")
    finally:
        translator.body.append("</div>\n")


def setup(app: Sphinx) -> None:
    """Register the renderer ``mathml``."""
    app.add_html_math_renderer("mathml", (put_inline, None), (put_block, None))
