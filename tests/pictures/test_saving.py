"""Text of saved figures stays text, also when the user saves them, long after they were drawn."""

from __future__ import annotations

import io
import pickle
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.image import AxesImage
from matplotlib.text import Text

import probox
from probox import Evaluation
from probox.pictures.drawing import new_axes
from probox.pictures.rendering import Picture, TextFigure, Words, file_content, text_stays_text, word_width


def font_kinds(pdf: bytes) -> set[str]:
    """Return the kinds of the fonts in a PDF, also of those in compressed parts: Type3, or CIDFontType2 and others."""
    parts = [pdf]
    for match in re.finditer(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL):
        try:
            parts.append(zlib.decompress(match[1]))
        except zlib.error:
            continue
    objects = b"\n".join(parts)
    kinds = {kind.decode() for kind in re.findall(rb"/Subtype\s*/(Type[0-9]\w*|CIDFontType[0-9]|TrueType)", objects)}
    return kinds | ({"FontFile2"} if b"/FontFile2" in objects else set())


def saved(figure: matplotlib.figure.Figure, ending: str) -> bytes:
    data = io.BytesIO()
    figure.savefig(data, format=ending)
    return data.getvalue()


@pytest.fixture
def figure(results: dict[str, Evaluation]) -> Iterator[TextFigure]:
    drawn = probox.draw(results["probabilistic"], 1).get_figure()
    assert isinstance(drawn, TextFigure)
    yield drawn
    plt.close(drawn)


def test_pdf_has_truetype_fonts(figure: TextFigure) -> None:
    kinds = font_kinds(saved(figure, "pdf"))
    assert "Type3" not in kinds
    assert {"CIDFontType2", "FontFile2"} <= kinds
    assert matplotlib.rcParams["pdf.fonttype"] == 3  # the user's own figures are the user's


def test_svg_has_words(figure: TextFigure) -> None:
    svg = saved(figure, "svg").decode()
    words = [text.get_text() for text in figure.axes[0].texts]
    assert len(words) > 5
    for word in words:
        assert f">{word}</text>" in svg
    assert matplotlib.rcParams["svg.fonttype"] == "path"


def test_the_tests_would_see_what_matplotlib_does_by_itself() -> None:
    plain = matplotlib.figure.Figure()
    plain.text(0.1, 0.5, "cup")
    assert font_kinds(saved(plain, "pdf")) == {"Type3"}
    assert b"<text" not in saved(plain, "svg")
    with text_stays_text():
        assert "Type3" not in font_kinds(saved(plain, "pdf"))
        assert b"<text" in saved(plain, "svg")


def test_pages_of_one_file_agree_on_fonts(figure: TextFigure, tmp_path: Path) -> None:
    """Fonts are embedded when the file is closed: text written for one kind could not be read by another."""
    with PdfPages(tmp_path / "pages.pdf") as pages:
        figure.savefig(pages, format="pdf")
        pages.savefig(figure)
    assert font_kinds((tmp_path / "pages.pdf").read_bytes()) == {"Type3"}
    with text_stays_text(), PdfPages(tmp_path / "pages.pdf") as pages:
        pages.savefig(figure)
    assert "Type3" not in font_kinds((tmp_path / "pages.pdf").read_bytes())


def test_figures_can_be_sent_elsewhere(figure: TextFigure) -> None:
    again = pickle.loads(pickle.dumps(figure))
    assert b"<text" in saved(again, "svg")
    plt.close(again)


def pixels(axes: Any) -> np.ndarray:
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(file_content(axes.get_figure(), "png")))).astype(int)


def axes_of(width: int, height: int) -> Any:
    axes = new_axes(width, height, shown=False)
    axes.set_xlim(-0.5, width - 0.5)
    axes.set_ylim(height - 0.5, -0.5)
    axes.set_axis_off()
    return axes


def test_words_stand_where_text_would_stand() -> None:
    seen = []
    for kind in (Text, Words):
        axes = axes_of(400, 100)
        axes.add_artist(kind(40, 60, "pPDQ 24  gy Lbl 7", fontsize=30, color="#14181f", parse_math=False))
        ink = 255 - pixels(axes)[..., 0]
        y, x = np.nonzero(ink > 60)
        seen.append((x.min(), x.max(), y.min(), y.max(), ink.sum()))
    np.testing.assert_allclose(seen[0][:4], seen[1][:4], atol=4)  # words begin at whole pixels
    assert seen[1][4] == pytest.approx(seen[0][4], rel=0.03)


def test_width_of_text_is_that_of_its_words() -> None:
    axes = axes_of(400, 100)
    text = axes.add_artist(Text(0, 50, "person 24", fontsize=20))
    renderer: Any = FigureCanvasAgg(axes.get_figure())
    assert word_width("person 24", 20, 150) == pytest.approx(
        text.get_window_extent(renderer.get_renderer()).width, abs=2
    )
    assert word_width("", 20, 150) == 0


@pytest.mark.parametrize("interpolation", ["nearest", "antialiased"])
def test_pictures_lie_where_images_lie(interpolation: str) -> None:
    rng = np.random.default_rng(1)
    coarse = rng.integers(0, 256, (6, 8, 3), dtype=np.uint8)
    values = np.kron(coarse, np.ones((10, 10, 1), np.uint8))  # blocks of 10 x 10
    shown = []
    for kind in (AxesImage, Picture):
        axes = axes_of(80, 60)
        image = kind(axes, extent=(-0.5, 79.5, 59.5, -0.5), interpolation=interpolation)
        image.set_data(values)
        axes.add_image(image)
        shown.append(pixels(axes))
    assert shown[0].shape == shown[1].shape
    middles = shown[1][75::150, 75::150]  # 15 pixels of the canvas for one of the image
    np.testing.assert_array_equal(middles, coarse)
    # Smoothing differs where blocks meet.
    assert np.abs(shown[0] - shown[1]).mean() < (0.5 if interpolation == "nearest" else 6)


def test_svg_has_an_element_for_each_thing(results: dict[str, Evaluation]) -> None:
    axes = probox.draw(results["probabilistic"], 2, heatmap=True, show_above=0, corners="ellipses")
    svg = file_content(axes.get_figure(), "svg").decode()
    here = np.flatnonzero(results["probabilistic"].detections.image_rows == 1)
    named = set(re.findall(r'id="((?:box|corner|mask|heat)-[^"]*)"', svg))
    for row in range(len(here)):
        assert {f"box-{row}", f"corner-{row}-0-1", f"corner-{row}-1-3"} <= named
    assert {"mask-0", "heat-scale", "heat-ramp"} <= named
    assert ">P(pixel belongs to it)</text>" in svg
    assert b"FontFile2" in file_content(axes.get_figure(), "pdf")
    assert svg == file_content(axes.get_figure(), "svg").decode()  # no dates, no chance
