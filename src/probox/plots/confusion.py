"""Which classes are taken for which, as a matrix with background."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from probox.analysis.confusion import BACKGROUND, Confusion, confusion
from probox.pictures.style import Theme
from probox.plots.base import Plot, Results, pdq_measured, styled, subplots
from probox.plots.legends import short_name, short_names
from probox.plots.pairs import CAPTION_SIZE, put_words, wrapped

__all__ = ["MOST_CLASSES", "PLOT"]

TITLE = "Confusion by PDQ's matches"
MOST_CLASSES = 12
"""Of more classes, those that are mixed up most are shown."""
_COLUMNS = 3
"""Panels beside each other."""
_LETTERS = 16
_PAD = 0.08
"""Inches above and below panels: matplotlib's own 0.04 let the caption touch what the axes are called."""


def draw(results: Results, *, most: int = MOST_CLASSES, dark: bool = False) -> Any:
    """Plot how many objects of each class were taken for which class, a panel per result; return an array of axes.

    Numbers are counts, colours their shares of the row; of more than `most` classes, those that are mixed up most over
    all results are shown.
    """
    found = [confusion(evaluation) for evaluation in results.values()]
    # All results are shown with the same classes: those of the sum of their confusions.
    both = Confusion(
        found[0].classes,
        *(np.concatenate([getattr(one, name) for one in found]) for name in ("truth", "predicted", "counts")),
    )
    classes = both.most_confused(most)
    columns = min(len(found), _COLUMNS)
    rows = math.ceil(len(found) / columns)
    side = 2.6 + 0.36 * (len(classes) + 1)
    with styled(dark) as theme:
        size = (columns * (side + 0.3), rows * side + 0.9)
        figure, panels = subplots(rows, columns, size, squeeze=False)
        for axes in panels.ravel()[len(found) :]:
            axes.set_visible(False)
        for axes, name, one in zip(panels.ravel(), short_names(results), found, strict=False):
            _draw_matrix(axes, one, classes, theme)
            axes.set_title(name or TITLE)
        if any(name.strip() for name in results):
            figure.suptitle(TITLE, x=0.008, ha="left", fontsize=12, fontweight="bold")
        caption = wrapped([_caption(both, classes)], int(14 * size[0]))
        figure.get_layout_engine().set(h_pad=_PAD)
        figure.supxlabel(caption, x=0.008, ha="left", fontsize=CAPTION_SIZE, multialignment="left")
        # Panels that keep their shape settle in the second layout only; what is saved is that of the last.
        figure.draw_without_rendering()
    return panels.ravel()[: len(found)]


def _caption(both: Confusion, classes: list[int]) -> str:
    said = "Numbers: counts. Colours: shares of the row."
    there = len(both.most_confused(len(both.classes)))
    if len(classes) < there:
        said += f" The {len(classes)} of {there} classes that are mixed up most; what a row lacks went to others."
    if both.unnamed.any():
        said += f" {both.unnamed.sum():,} detections that name no class of the truth are not shown."
    return f"{said} Detections that give an object's class no probability are not matched with it."


def _draw_matrix(axes: Any, one: Confusion, classes: list[int], theme: Theme) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    axes.set(xlabel="detection names", ylabel="truth")
    if not classes:
        put_words(axes, "nothing was found,\nnothing was missed")
        return
    shown = [*classes, len(one.classes)]
    counts = one.among(shown)
    shares = counts / np.maximum(one.row_sums()[shown], 1)[:, None]
    # One hue, from the ground's lightness to the other end: all eyes can order that.
    colours = LinearSegmentedColormap.from_list("share", [theme.ground, theme.lines[0]])
    axes.imshow(shares, cmap=colours, vmin=0.0, vmax=1.0, aspect="equal")
    for row, column in np.ndindex(counts.shape):
        if counts[row, column]:
            ink = max((theme.ground, theme.ink), key=lambda one: _contrast(one, colours(shares[row, column])))
            words = _short_count(int(counts[row, column]))
            axes.text(column, row, words, ha="center", va="center", fontsize=7, color=ink)
    last = len(classes)
    axes.text(last, last, "-", ha="center", va="center", fontsize=8, color=theme.ink)  # nothing there, nothing found
    names = [short_name(name, _LETTERS) for name in (*(one.classes[label] for label in classes), BACKGROUND)]
    axes.set_xticks(range(len(shown)), names, rotation=60, ha="right", rotation_mode="anchor", parse_math=False)
    axes.set_yticks(range(len(shown)), names, parse_math=False)
    axes.grid(visible=False)
    axes.axhline(last - 0.5, color=theme.ink, linewidth=0.8)
    axes.axvline(last - 0.5, color=theme.ink, linewidth=0.8)


def _contrast(first: Any, second: Any) -> float:
    """Return how well two colours are told apart, from 1 to 21 (WCAG 2).

    >>> round(_contrast("black", "white"), 3)
    21.0
    """
    from matplotlib.colors import to_rgb

    light = []
    for colour in (first, second):
        parts = np.array(to_rgb(colour))
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        light.append(float(linear @ [0.2126, 0.7152, 0.0722]))
    return (max(light) + 0.05) / (min(light) + 0.05)


def _short_count(count: int) -> str:
    """Return a count that fits into a cell.

    >>> _short_count(214), _short_count(15696), _short_count(270449)
    ('214', '16k', '270k')
    """
    return str(count) if count < 10_000 else f"{count / 1000:.0f}k"


PLOT = Plot("confusion", TITLE, draw, pdq_measured)
