"""Colours of outcomes and detectors, and light and dark themes."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from probox.errors import InputError
from probox.tables.results import Verdict

ENDINGS = ("png", "svg", "pdf")
"""File types of images and plots."""


@dataclasses.dataclass(frozen=True)
class Palette:
    """Colours of matched and unmatched boxes, matches of the wrong class, and ignored objects.

    The default of `wrong_class`, a dark purple, differs from the other colours also with colour vision deficiencies.
    """

    right: str
    wrong: str
    wrong_class: str = "#8a0f8a"
    neutral: str = "#8a8f98"

    def of_verdict(self, verdict: int, *, wrong_class: bool = False) -> str:
        """Return the colour of an object or detection; `wrong_class`: its match has another class."""
        right = self.wrong_class if wrong_class else self.right
        return {Verdict.TP: right, Verdict.FP: self.wrong, Verdict.FN: self.wrong}.get(verdict, self.neutral)


PALETTES = {"blue-orange": Palette("#1f77ff", "#ff8a1e"), "green-red": Palette("#1fa35b", "#e5383b")}
"""Available palettes. Blue and orange are distinguishable with all colour vision deficiencies."""


def palette_called(name: str) -> Palette:
    """Return a palette by name."""
    if name not in PALETTES:
        raise InputError(f"expected colours to be one of {', '.join(PALETTES)}, got {name!r}")
    return PALETTES[name]


@dataclasses.dataclass(frozen=True)
class Theme:
    """Colours of a plot: background, text and grid."""

    name: str
    ground: str
    ink: str
    faint: str
    lines: tuple[str, ...]

    def settings(self) -> dict[str, Any]:
        """Return the matplotlib settings of the theme."""
        from cycler import cycler

        return {
            "figure.facecolor": self.ground,
            "axes.facecolor": self.ground,
            "savefig.facecolor": self.ground,
            "text.color": self.ink,
            "axes.labelcolor": self.ink,
            "axes.titlecolor": self.ink,
            "xtick.color": self.ink,
            "ytick.color": self.ink,
            "axes.edgecolor": self.faint,
            "grid.color": self.faint,
            "grid.linewidth": 0.6,
            "axes.grid": True,
            "axes.axisbelow": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.prop_cycle": cycler(color=self.lines),
            "axes.titlesize": 12,
            "axes.titleweight": "bold",
            "axes.titlelocation": "left",
            "axes.titlepad": 10,
            "axes.labelsize": 10,
            "xtick.labelsize": 9,
            "ytick.labelsize": 9,
            "xtick.major.size": 0,
            "ytick.major.size": 0,
            "legend.frameon": True,
            "legend.framealpha": 0.85,
            "legend.facecolor": self.ground,
            "legend.edgecolor": self.ground,
            "legend.fontsize": 9,
            "lines.linewidth": 1.8,
            "lines.solid_capstyle": "round",
            "figure.constrained_layout.use": True,
            "text.parse_math": False,  # file names may contain $
            "axes.formatter.use_mathtext": False,  # otherwise numbers would be formulas
            "text.usetex": False,
        }


LINES = ("#2f6fde", "#ee7f1d", "#2a9d6f", "#b5449c", "#8a6d1c", "#14889c", "#d0434b", "#6a5acd")
"""One colour per detector, distinguishable on a light background."""

LIGHT = Theme("light", "#ffffff", "#1d2430", "#dde1e7", LINES)
DARK = Theme(
    "dark", "#14181f", "#e6e9ee", "#333b47",
    ("#6ea2ff", "#ffa552", "#58cf9f", "#e584d0", "#d9b85a", "#5cc9dc", "#ff8087", "#aaa0ff"),
)  # fmt: skip


@contextmanager
def quietly() -> Iterator[None]:
    """Suppress matplotlib's warnings about letters missing from its font, which it shows as boxes."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        yield
