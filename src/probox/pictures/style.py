"""How everything probox draws looks: colours of verdicts, of detectors, of light and dark grounds."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from probox.errors import InputError
from probox.tables.results import Verdict

ENDINGS = ("png", "svg", "pdf")
"""The kinds of files that pictures and plots are written to."""


@dataclasses.dataclass(frozen=True)
class Palette:
    """Colours of matched and unmatched, of matches of the wrong class, and of what is ignored.

    The default of `wrong_class`, a dark purple, differs from the other colours for every kind of colour vision.
    """

    right: str
    wrong: str
    wrong_class: str = "#8a0f8a"
    neutral: str = "#8a8f98"

    def of_verdict(self, verdict: int, *, wrong_class: bool = False) -> str:
        """Return the colour of an object or detection; `wrong_class`: its match is of another class."""
        right = self.wrong_class if wrong_class else self.right
        return {Verdict.TP: right, Verdict.FP: self.wrong, Verdict.FN: self.wrong}.get(verdict, self.neutral)


PALETTES = {"blue-orange": Palette("#1f77ff", "#ff8a1e"), "green-red": Palette("#1fa35b", "#e5383b")}
"""The colours to choose from. Blue and orange stay apart for every kind of colour vision."""


def palette_called(name: str) -> Palette:
    """Return a palette by name."""
    if name not in PALETTES:
        raise InputError(f"expected colours to be one of {', '.join(PALETTES)}, got {name!r}")
    return PALETTES[name]


@dataclasses.dataclass(frozen=True)
class Theme:
    """The ground a plot stands on."""

    name: str
    ground: str
    ink: str
    faint: str
    lines: tuple[str, ...]

    def settings(self) -> dict[str, Any]:
        """Return matplotlib's settings for it."""
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
            "text.parse_math": False,  # names are names, whatever signs are in them
            "axes.formatter.use_mathtext": False,  # so numbers must not be formulas
            "text.usetex": False,
        }


LINES = ("#2f6fde", "#ee7f1d", "#2a9d6f", "#b5449c", "#8a6d1c", "#14889c", "#d0434b", "#6a5acd")
"""One colour per detector, told apart on light ground."""

LIGHT = Theme("light", "#ffffff", "#1d2430", "#dde1e7", LINES)
DARK = Theme(
    "dark", "#14181f", "#e6e9ee", "#333b47",
    ("#6ea2ff", "#ffa552", "#58cf9f", "#e584d0", "#d9b85a", "#5cc9dc", "#ff8087", "#aaa0ff"),
)  # fmt: skip


@contextmanager
def quietly() -> Iterator[None]:
    """Keep matplotlib from warning of every letter that its font lacks: such a letter is shown as a box."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        yield
