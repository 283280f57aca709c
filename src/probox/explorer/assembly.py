"""The page's text, put together from `assets`: its sections, style and script."""

from __future__ import annotations

import html
from importlib import resources
from string import Template

from probox.explorer.constants import COLOURS, constants
from probox.explorer.packing import to_script_json
from probox.version import __version__

__all__ = ["page_text", "script", "style_sheet"]

SECTIONS = (
    "verdict",
    "summary",
    "versus",
    "plots",
    "why",
    "groups",
    "confusion",
    "gallery",
)
"""The page from top to bottom: ``sections/NAME.html`` each."""

DIALOGS = ("viewer", "keys")
"""What opens over it, in the same folder."""

STYLES = (
    "base",
    "threshold",
    "tables",
    "versus",
    "confusion",
    "charts",
    "why",
    "gallery",
    "viewer",
    "narrow",
    "print",
)
"""``style/NAME.css``; what comes later rules."""

SCRIPTS = (
    "dom",
    "store",
    "boxes",
    "diagnosis",
    "state",
    "keys",
    "geometry",
    "heatmap",
    "heat",
    "paint",
    "labels",
    "samples",
    "axes",
    "brush",
    "charts",
    "bars",
    "threshold",
    "selection",
    "filters",
    "ids",
    "tags",
    "captions",
    "exports",
    "tables",
    "resampling",
    "comparing",
    "versus",
    "mixing",
    "confusion",
    "plots",
    "histogram",
    "recall",
    "clouds",
    "verdict",
    "why",
    "sigmas",
    "objects",
    "gallery",
    "items",
    "gestures",
    "viewer",
    "nav",
    "print",
    "app",
)
"""``NAME.js``, in the order in which they need each other; what follows from a change is done in this order too."""


def _asset(name: str) -> str:
    return (resources.files("probox.explorer") / "assets" / name).read_text(encoding="utf-8")


def style_sheet() -> str:
    """Return the style sheet, with the colours of both themes."""
    light, dark = (" ".join(f"--{name}: {both[theme]};" for name, both in COLOURS.items()) for theme in (0, 1))
    return Template("\n".join(_asset(f"style/{name}.css") for name in STYLES)).substitute(
        light=light, dark=f"color-scheme: dark; {dark}"
    )


def script() -> str:
    """Return the script, and before it the constants that it takes from Python."""
    told = f"window.probox = {{ constants: {to_script_json(constants())} }};"
    return "\n".join([told, *(_asset(f"{name}.js") for name in SCRIPTS)])


def page_text(title: str, style: str, scripts: str) -> str:
    """Return the page with elements for its style and scripts."""
    return Template(_asset("explorer.html")).substitute(
        title=html.escape(title),
        version=__version__,
        style=style,
        sections="\n".join(_asset(f"sections/{name}.html") for name in SECTIONS),
        dialogs="\n".join(_asset(f"sections/{name}.html") for name in DIALOGS),
        scripts=scripts,
    )
