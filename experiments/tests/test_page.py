"""The page of the experiments fits the screen it is read on, in light and dark, and on paper."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from tests.explorer.browser import Browser
from tests.pictures.test_saving import font_kinds

from probox_experiments import EXPERIMENTS
from probox_experiments.claims import Claim, ResultTable
from probox_experiments.figures import new_figure, pictures
from probox_experiments.outcome import Outcome, html_page
from probox_experiments.running import Provenance

WORDS = "PDQ of 0.123456 is at most that of `preset_with_a_name_of_forty_letters_in_all` at 1e-06, " * 2


@pytest.fixture(scope="module")
def window(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Browser:
    figure = new_figure()
    figure.add_subplot().plot([0, 1])
    picture = pictures(figure)[1]
    claim = Claim(claim=WORDS, holds=False, measured=WORDS, required=WORDS, numbers={}, explanation=WORDS)
    table = ResultTable.from_rows([{"x": 1}])
    outcomes = []
    for one in EXPERIMENTS:
        files = {ending: Path(f"{one.name}.{ending}") for ending in ("csv", "json", "png", "svg")}
        made = Provenance(probox="1", code="2", command=WORDS, seed=3, data=WORDS, paper=WORDS)
        outcomes.append(
            Outcome(experiment=one, table=table, claims=[claim, claim], provenance=made, files=files, picture=picture)
        )
    page = tmp_path_factory.mktemp("page") / "index.html"
    page.write_text(html_page(outcomes, WORDS), encoding="utf-8")
    chromium.driver.get(page.resolve().as_uri())
    return chromium


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize(("width", "height"), [(320, 700), (390, 844), (740, 900), (1400, 900)])
def test_nothing_overflows_and_the_ground_is_the_users(window: Browser, width: int, height: int, dark: bool) -> None:
    window.resize(width, height, dark=dark)
    assert window.js("return document.documentElement.scrollWidth") <= width
    ends = "return [...document.querySelectorAll('td, img, li, p, h2')].map(e => e.getBoundingClientRect().right)"
    assert max(window.js(ends)) <= width
    ground = window.js("return getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).map(Number)")
    ink = window.js("return getComputedStyle(document.body).color.match(/[0-9]+/g).map(Number)")
    assert (sum(ground) < sum(ink)) is dark
    assert window.js("return getComputedStyle(document.querySelector('img')).backgroundColor") == "rgb(255, 255, 255)"


@pytest.mark.slow
def test_every_experiment_says_all_on_a_phone(window: Browser) -> None:
    window.resize(390, 844)
    rows = window.js("return [...document.querySelectorAll('tbody tr')].map(e => e.innerText)")
    assert len(rows) == len(EXPERIMENTS)
    for row, experiment in zip(rows, EXPERIMENTS, strict=True):
        for words in (experiment.name, experiment.section.removeprefix("none: "), "does not hold"):
            assert words in row


def test_figures_have_fonts_that_publishers_take() -> None:
    figure, page = new_figure(), io.BytesIO()
    figure.add_subplot().set_title("PDQ")
    figure.savefig(page, format="pdf")
    kinds = font_kinds(page.getvalue())
    assert "Type3" not in kinds
    assert {"CIDFontType2", "FontFile2"} <= kinds


@pytest.mark.slow
def test_paper_is_white_whatever_the_screen_is(window: Browser) -> None:
    window.resize(1000, 900, dark=True)
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    window.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": dark})
    assert window.js("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert window.js("return getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    assert window.js("return getComputedStyle(document.querySelector('section')).breakInside") == "avoid"
    window.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


@pytest.mark.parametrize(
    ("results", "words"),
    [
        ([True, True], "holds"),
        ([True, None], "holds"),
        ([False], "does not hold"),
        ([True, False, None, True], "2 of 3 hold"),
        ([None], "not measured"),
    ],
)
def test_an_experiment_says_how_many_of_its_claims_hold(results: list[bool | None], words: str) -> None:
    outcome = Outcome(
        experiment=EXPERIMENTS[0],
        table=ResultTable({}),
        claims=[Claim("", holds, "", "") for holds in results],
        provenance=Provenance(probox="", code="", command="", seed=0, data="", paper=""),
        files={},
        picture=b"",
    )
    assert outcome.result == words
