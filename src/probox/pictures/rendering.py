"""Fast matplotlib artists for pixel output, and figures that are saved with text as text.

An image of a hundred detections has a thousand shapes and a hundred words, and matplotlib takes a millisecond or more
per artist. Here a layer's shapes are one artist, words are rendered once and copied, and Pillow scales photos. SVG and
PDF files get lines, words and images. This module imports matplotlib: import it lazily.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import matplotlib
import numpy as np
import numpy.typing as npt
from matplotlib import rcParams
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.image import AxesImage
from matplotlib.path import Path
from matplotlib.text import Text
from matplotlib.transforms import IdentityTransform

_LARGEST = 6000
"""Side length in pixels above which matplotlib, which scales only the visible part, is faster."""

_renderer: Any = RendererAgg


class Shapes(PathCollection):
    """Many paths in one artist, drawn in order, each with a name or "": the element id in SVG.

    Options are those of a `PathCollection`, for all paths or for each path.
    """

    def __init__(self, paths: Sequence[Path], names: Sequence[str] | None = None, **options: Any) -> None:
        super().__init__(paths, **options)
        self.names = tuple(names) if names is not None else ("",) * len(paths)

    def draw(self, renderer: Any) -> None:
        """Draw all paths: in one call for pixel output, one by one with their names for vector output."""
        if isinstance(renderer, RendererAgg) or not any(self.names) or not self.get_visible():
            super().draw(renderer)
            return
        transform = self.get_transform()
        face: Any = self.get_facecolor()
        edge: Any = self.get_edgecolor()
        widths: Any = self.get_linewidth()
        styles: Any = self.get_linestyle()  # dashes, in points
        for number, (path, name) in enumerate(zip(self.get_paths(), self.names, strict=True)):
            gc = renderer.new_gc()
            self._set_gc_clip(gc)  # type: ignore[attr-defined]
            gc.set_linewidth(0.0)
            if len(edge):
                gc.set_foreground(tuple(edge[number % len(edge)]), isRGBA=True)
                gc.set_linewidth(widths[number % len(widths)])
                gc.set_dashes(*styles[number % len(styles)])
            renderer.open_group("shape", gid=name or None)
            renderer.draw_path(gc, path, transform, tuple(face[number % len(face)]) if len(face) else None)
            renderer.close_group("shape")
            gc.restore()


class Picture(AxesImage):
    """An image in data coordinates, scaled by Pillow: smoothly, or by nearest neighbour for class maps."""

    def make_image(self, renderer: Any, magnification: float = 1.0, unsampled: bool = False) -> Any:
        """Return the image's pixels on the canvas, and their position."""
        from PIL import Image

        left, right, bottom, top = self.get_extent()
        (x0, y0), (x1, y1) = np.rint(self.get_transform().transform([(left, bottom), (right, top)])).astype(int)
        upright = x0 < x1 <= x0 + _LARGEST and y0 < y1 <= y0 + _LARGEST and self.get_alpha() is None
        if unsampled or not isinstance(renderer, RendererAgg) or not upright:
            return super().make_image(renderer, magnification, unsampled)
        smooth = self.get_interpolation() != "nearest"
        values: Any = self.get_array()
        pixels = Image.fromarray(np.asarray(self.to_rgba(values, bytes=True, norm=values.ndim < 3)))
        scaled = pixels.resize((x1 - x0, y1 - y0), Image.Resampling.BICUBIC if smooth else Image.Resampling.NEAREST)
        return np.asarray(scaled)[::-1], x0, y0, IdentityTransform()


class Words(Text):
    """A line of text, left-aligned at its baseline, whose words are rendered once for all images."""

    def draw(self, renderer: Any) -> None:
        """Draw the text; pixel output copies rendered words."""
        if not isinstance(renderer, RendererAgg) or not self.get_visible() or self.get_rotation():
            super().draw(renderer)
            return
        x, y = self.get_transform().transform(self.get_unitless_position())
        gc = renderer.new_gc()
        self._set_gc_clip(gc)  # type: ignore[attr-defined]
        for word in _words(self.get_text()):
            if word.strip():
                pixels, down = _render(word, *_look(self, renderer.dpi))
                renderer.draw_image(gc, round(x), round(y) - down, pixels)
            x += word_width(word, self.get_fontsize(), renderer.dpi)  # type: ignore[arg-type]
        gc.restore()


def _look(text: Text, dpi: float) -> tuple[float, float, str, str]:
    return float(text.get_fontsize()), float(dpi), str(text.get_color()), _font()


def _font() -> str:
    return str(rcParams["font.family"])  # part of the cache key: another font renders differently


def word_width(text: str, points: float, dpi: float) -> float:
    """Return the width of text on a canvas, in pixels."""
    return sum(_width(word, float(points), float(dpi), _font()) for word in _words(text))


def _words(text: str) -> list[str]:
    """Return words and the spaces between them; many labels share few words.

    >>> _words("person 24")
    ['person', ' ', '24']
    """
    parts = []
    for number, word in enumerate(text.split(" ")):
        parts += [" "] * (number > 0) + [word] * bool(word)
    return parts


@lru_cache(maxsize=8192)
def _width(word: str, points: float, dpi: float, font: str) -> float:
    if word == " ":  # measured with a neighbour: a lone space has width 0
        return _width("a a", points, dpi, font) - _width("aa", points, dpi, font)
    renderer = _renderer(8, 8, dpi)
    return float(renderer.get_text_width_height_descent(word, FontProperties(size=points), ismath=False)[0])


@lru_cache(maxsize=8192)
def _render(word: str, points: float, dpi: float, colour: str, font: str) -> tuple[npt.NDArray[np.uint8], int]:
    """Return a word's pixels, the lowest row first, and the number of rows below the baseline."""
    properties = FontProperties(size=points)
    height = int(np.ceil(2.0 * points * dpi / 72.0)) + 2
    down = height // 3
    renderer = _renderer(int(np.ceil(_width(word, points, dpi, font))) + 4, height, dpi)
    gc = renderer.new_gc()
    gc.set_foreground(colour)
    renderer.draw_text(gc, 0, height - down, word, properties, 0.0)
    gc.restore()
    pixels = np.array(renderer.buffer_rgba())[::-1].copy()
    return pixels, down


TEXT_SETTINGS: Any = {"pdf.fonttype": 42, "ps.fonttype": 42, "svg.fonttype": "none"}
"""Matplotlib's settings for embedded fonts. PDF needs both of the first two."""


@contextmanager
def text_stays_text() -> Iterator[None]:
    """Save any figure with its text as text within a block, such as your own figure for `probox.draw(..., ax=)`.

    >>> import io
    >>> figure = Figure()
    >>> _ = figure.text(0, 0, "cup")
    >>> with text_stays_text():
    ...     figure.savefig(page := io.StringIO(), format="svg")
    >>> ">cup</text>" in page.getvalue()
    True
    """
    with matplotlib.rc_context(TEXT_SETTINGS):
        yield


class TextFigure(Figure):
    """A figure that is always saved with its text as text.

    Create it with `plt.figure(FigureClass=TextFigure)` or `plt.subplots(FigureClass=TextFigure)`. The pages of a
    `PdfPages` share the font setting that matplotlib has when the file is created.

    Examples
    --------
    >>> import io
    >>> figure = TextFigure()
    >>> _ = figure.text(0, 0, "cup")
    >>> figure.savefig(page := io.StringIO(), format="svg")
    >>> ">cup</text>" in page.getvalue()
    True
    """

    def savefig(self, fname: Any, **options: Any) -> None:
        """Save the figure as `matplotlib.figure.Figure.savefig` does, with embedded fonts."""
        pages = sys.modules.get("matplotlib.backends.backend_pdf")
        if pages is not None and isinstance(fname, pages.PdfPages):
            super().savefig(fname, **options)
            return
        with text_stays_text():
            super().savefig(fname, **options)


def file_content(figure: Figure, ending: str) -> bytes:
    """Return the content of an image file with this ending; it is bit-identical in every run.

    PNG files use fast compression: the last 10% of their size would take several times as long.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    data = io.BytesIO()
    if ending == "png":
        from PIL import Image

        canvas: Any = FigureCanvasAgg(figure)
        canvas.draw()
        pixels = Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3])
        pixels.save(data, format="png", compress_level=1, dpi=(figure.dpi, figure.dpi))
        return data.getvalue()
    dates: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    settings: Any = {**TEXT_SETTINGS, "svg.hashsalt": "probox"}
    with matplotlib.rc_context(settings):
        figure.savefig(data, format=ending, metadata=dates[ending])
    return data.getvalue()
