"""What plots of matched pairs share: which edges they look at, captions, and words where there is nothing to draw."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from probox.measures.matched import FEW_PAIRS, MatchedPairs
from probox.measures.scoring.score_rows import with_sigma
from probox.plots.base import Results
from probox.plots.legends import short_names
from probox.support.words import with_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "CUT",
    "add_caption",
    "caption_of_edges",
    "few_words",
    "put_words",
    "sigmas_of_edges",
    "why_no_sigma",
]

FloatArray = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

CUT = "Pairs: {}, which cuts off large errors."
"""What the least overlap of pairs does to errors."""

CAPTION_SIZE = 8.5
"""Points."""
_LETTERS_PER_INCH, _MARGIN = 15.5, 0.9
"""How many letters of a caption fit, and how much of a figure's width is not the caption's."""


def sigmas_of_edges(pairs: MatchedPairs) -> tuple[FloatArray, Flags]:
    """Return the sigma of each edge, and which edges have one and a truth that is not the image's border, (K, 4)."""
    present = with_sigma(pairs)
    return np.where(present, np.sqrt(pairs.variances), 1.0), present


def why_no_sigma(pairs: MatchedPairs) -> str:
    """Return why there is no sigma to judge; nothing if there is one."""
    if not len(pairs):
        return "no pairs to judge"
    if not pairs.variances.any():
        return "plain boxes: no sigma to judge"
    return "" if with_sigma(pairs).any() else "all edges lie on the image's border"


def few_words(n: int, what: str = "pair") -> str:
    """Return how many there are, and that few say little.

    >>> few_words(12)
    '12 pairs (fewer than 30 say little)'
    """
    return with_count(n, what) + (f" (fewer than {FEW_PAIRS} say little)" if n < FEW_PAIRS else "")


def caption_of_edges(results: Results) -> str:
    """Return how many pairs each result has with a sigma, and what was left out of them."""
    lines = []
    for name, evaluation in zip(short_names(results, lines=False), results.values(), strict=True):
        pairs = evaluation.matched_pairs
        missing = why_no_sigma(pairs)
        judged = int(with_sigma(pairs).any(axis=1).sum())
        words = [missing or few_words(judged)]
        plain, cut = int((~pairs.variances.any(axis=1)).sum()), int(pairs.truncated.sum())
        if not missing:
            words += [f"{with_count(plain, 'plain box')} left out"] if plain else []
            words += [f"{with_count(cut, 'edge')} on the image's border left out"] if cut else []
        lines.append(f"{name}: {', '.join(words)}" if name else ", ".join(words))
    return "\n".join(lines)


def add_caption(axes: Axes, *texts: str) -> None:
    """Write a caption below the axes' label, each text in lines of its own, as wide as the figure's column."""
    figure: Any = axes.get_figure()
    grid = axes.get_subplotspec()
    columns = 1 if grid is None else grid.get_gridspec().ncols
    width = int(_LETTERS_PER_INCH * (figure.get_figwidth() / columns - _MARGIN))
    axes.annotate(
        wrapped(texts, width),
        xy=(0.0, 0.0),
        xycoords=("axes fraction", axes.xaxis.label),
        xytext=(0.0, -7.0),
        textcoords="offset points",
        ha="left",
        va="top",
        fontsize=CAPTION_SIZE,
        annotation_clip=False,
    )


def wrapped(texts: Sequence[str], width: int) -> str:
    """Return texts in lines of at most `width` letters."""
    lines = [line for text in texts for line in text.splitlines()]
    return "\n".join(part for line in lines for part in textwrap.wrap(line, max(width, 30)))


def put_words(axes: Axes, words: str) -> None:
    """Say in the middle of empty axes why they are empty; there is nothing for a scale to measure."""
    axes.set(xticks=[], yticks=[])
    axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", fontsize=11)
