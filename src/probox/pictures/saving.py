"""Figures whose text stays text: in PDF and PostScript by TrueType fonts (Type 42), in SVG as `<text>`.

Matplotlib decides this by its settings when a figure is saved, long after it was drawn, and its own are Type 3 fonts
and outlines, which publishers refuse and nobody can search. `TextFigure` brings the settings with it. This module
imports matplotlib: import it where a figure is made.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

__all__ = ["TEXT_SETTINGS", "TextFigure", "file_content", "text_stays_text"]

TEXT_SETTINGS: Any = {"pdf.fonttype": 42, "ps.fonttype": 42, "svg.fonttype": "none"}
"""What matplotlib calls it. PDF asks both of the first two."""


@contextmanager
def text_stays_text() -> Iterator[None]:
    """Save any figure with its text as text, such as one of your own that `probox.draw(..., ax=)` drew into.

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
    """A figure that is saved with its text as text, whoever saves it, whenever.

    `plt.figure(FigureClass=TextFigure)` and `plt.subplots(FigureClass=TextFigure)` make one. The pages of a `PdfPages`
    share one way to embed fonts, which is that of whoever made it: there, matplotlib's settings hold.

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
        """Save the figure: `matplotlib.figure.Figure.savefig` with fonts that publishers take."""
        pages = sys.modules.get("matplotlib.backends.backend_pdf")
        if pages is not None and isinstance(fname, pages.PdfPages):
            super().savefig(fname, **options)
            return
        with text_stays_text():
            super().savefig(fname, **options)


def file_content(figure: Figure, ending: str) -> bytes:
    """Return what a file with this ending holds: the same bytes whenever, wherever and by whomever it is made.

    PNG files are packed lightly: the last tenth of their size would cost several times the time.
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
