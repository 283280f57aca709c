"""P(x), the probability of every pixel to belong to a detected object: one hue from nothing to full, and its scale."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from probox.pictures.view import ImageView

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["HEAT", "HEAT_OPACITY", "add_heat", "highest_probability"]

HEAT = "#004d40"
"""Differs from all colours of outlines, for every kind of colour vision. What is certain is darkest."""
HEAT_OPACITY = 0.72
"""Of what is certain: what is below can still be seen."""

_WORDS = "P(pixel belongs to it)"


def highest_probability(view: ImageView, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return, for every pixel, the probability of the detection that claims it most."""
    highest = np.zeros((view.height, view.width))
    for row in rows.tolist():
        np.maximum(highest, view.heatmap(row), out=highest)
    return highest


def add_heat(axes: Axes, view: ImageView, rows: npt.NDArray[np.int64]) -> tuple[float, float, float, float]:
    """Draw the probabilities of these detections with a scale; return where it is, x1, y1, x2, y2."""
    from probox.pictures.artists import Picture

    extent = (-0.5, view.width - 0.5, view.height - 0.5, -0.5)
    picture = Picture(axes, extent=extent, interpolation="nearest", zorder=1.6, cmap=_colours())
    picture.set_data(highest_probability(view, rows))
    picture.set_clim(0.0, 1.0)
    picture.set_clip_path(axes.patch)
    picture.set_gid("heat")
    axes.add_image(picture)
    return _add_scale(axes, view)


def _colours() -> Any:
    from matplotlib.colors import ListedColormap, to_rgb

    steps = np.linspace(0.0, 1.0, 256)
    return ListedColormap(np.column_stack([np.tile(to_rgb(HEAT), (256, 1)), HEAT_OPACITY * steps]), name="heat")


def _add_scale(axes: Axes, view: ImageView) -> tuple[float, float, float, float]:
    """Draw the bar from 0 to 1 in the lower right corner, on white."""
    from probox.pictures.artists import Picture, Words, word_width
    from probox.pictures.labelling import Canvas, add_card

    canvas = Canvas.of(axes, view)
    points = 6.5
    text = canvas.text_height(points)  # in the picture's pixels, as all that follows
    width = word_width(_WORDS, points, canvas.dpi) * canvas.pixel
    inset, bar = 0.6 * text, 0.8 * text
    right, bottom = view.width - 0.5 - inset, view.height - 0.5 - inset
    left, top = right - width - 1.2 * text, bottom - 4.3 * text
    if left < -0.5 or top < -0.5:  # no room: a picture of a few pixels needs no scale
        return (0.0, 0.0, 0.0, 0.0)
    add_card(axes, [(left, top, right, bottom)], ["#9aa1ab"], text, zorder=4.2, names=["heat-scale"])
    x1, x2, y1 = left + 0.6 * text, right - 0.6 * text, top + 1.75 * text
    ramp = Picture(axes, extent=(x1, x2, y1 + bar, y1), interpolation="nearest", zorder=4.3, cmap=_colours())
    ramp.set_data(np.linspace(0.0, 1.0, 128)[None, :])
    ramp.set_clim(0.0, 1.0)
    ramp.set_clip_path(axes.patch)
    ramp.set_gid("heat-ramp")
    axes.add_image(ramp)
    common: dict[str, Any] = {
        "fontsize": points,
        "color": "#14181f",
        "parse_math": False,
        "zorder": 4.3,
        "clip_on": True,
    }
    axes.add_artist(Words(x1, top + 1.3 * text, _WORDS, **common))
    for value, word in ((0.0, "0"), (0.5, "0.5"), (1.0, "1")):
        shift = value * word_width(word, points, canvas.dpi) * canvas.pixel
        axes.add_artist(Words(x1 + value * (x2 - x1) - shift, bottom - 0.55 * text, word, **common))
    return left, top, right, bottom
