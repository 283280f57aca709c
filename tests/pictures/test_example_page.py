"""The page of examples can be read on a phone, where the words in its pictures are too small."""

from __future__ import annotations

import pytest
from tests.explorer.browser import Browser

import probox
from probox import Evaluation
from probox.pictures.example_pictures import draw_example, example_page, view_of_example

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def window(chromium: Browser, results: dict[str, Evaluation], tmp_path_factory: pytest.TempPathFactory) -> Browser:
    folder = tmp_path_factory.mktemp("page")
    (example, *_) = probox.example_detections(results["unsure"], 1)
    draw_example(view_of_example(results["unsure"], example), caption=example.caption).figure.savefig(
        folder / "one.png"
    )
    (folder / "index.html").write_bytes(example_page([(example, "one.png")], "Examples", []))
    chromium.driver.get((folder / "index.html").resolve().as_uri())
    return chromium


@pytest.mark.parametrize(("width", "words"), [(320, True), (390, True), (1300, False)])
def test_captions_are_words_of_the_page_where_pictures_are_small(window: Browser, width: int, words: bool) -> None:
    window.resize(width, 844)
    assert window.js("return document.documentElement.scrollWidth") <= width
    assert ("overconfident: the" in window.js("return document.querySelector('figcaption').innerText")) is words
    assert window.js("return document.querySelector('details').offsetHeight > 0") is not words


def test_a_caption_is_there_once_to_be_found(window: Browser) -> None:
    window.resize(1300, 844)
    window.js("document.querySelector('details').open = true")
    shown = window.js("return document.body.innerText")
    assert shown.count("overconfident: the") == 1
