"""Text of saved figures stays text, also when the user saves them, long after they were drawn."""

from __future__ import annotations

import io
import pickle
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest
from matplotlib.backends.backend_pdf import PdfPages

import probox
from probox import Evaluation
from probox.pictures.rendering import TextFigure, text_stays_text


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
    drawn = probox.draw(results["unsure"], 1).get_figure()
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
