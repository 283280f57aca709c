"""The page as a whole: its sections, keys, what screen readers are told, paper, narrow windows, contrast."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
from tests.contrast import contrast
from tests.explorer.browser import Browser

from probox import Evaluation
from probox.explorer.page import style_sheet, write_report

pytestmark = pytest.mark.slow  # the walk through the page that always runs is test_explorer.py

LONG = "a detector whose name somebody made up of settings: resnet-101-fpn-3x-iou0.65-score0.001-run"


@pytest.fixture(scope="module")
def long_names(results: dict[str, Evaluation], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of three detectors whose names are long, one without a place to break."""
    names = [f"{LONG} 1", f"{LONG} 2", "x" * 90]
    three = dict(zip(names, itertools.cycle(results.values()), strict=False))
    return write_report(three, tmp_path_factory.mktemp("long names") / "r", title="T" * 120)[0]


# --- sections -------------------------------------------------------------------------------------------------------

PLACE = """
const bar = document.getElementById('bar').getBoundingClientRect();
const heading = document.activeElement.querySelector('h2')?.getBoundingClientRect();
return heading ? [bar.bottom, heading.top, innerHeight] : null;
"""
# Which section is marked in the line of sections, and whether the line shows that link whole.
MARKED = """
const link = document.querySelector('#sections [aria-current]');
if (!link) return null;
const line = link.parentElement.getBoundingClientRect(), {left, right} = link.getBoundingClientRect();
return [link.textContent, left >= line.left - 1 && right <= line.right + 1];
"""


@pytest.mark.parametrize(("width", "height"), [(1400, 900), (390, 844)])
def test_going_to_a_section_shows_its_heading_below_the_bar(
    browser: Browser, page: Path, long_names: Path, width: int, height: int
) -> None:
    for shown in (page, long_names):
        browser.resize(width, height)
        browser.open(shown, "t=0.5")
        names = browser.texts("#sections a:not([hidden])")
        assert "Summary" in names
        assert len(names) == browser.count("main > section:not([hidden])")
        for number in range(len(names)):
            browser.js("document.querySelectorAll('#sections a:not([hidden])')[arguments[0]].click()", number)
            bottom, top, window = browser.wait(lambda: browser.js(PLACE))
            assert bottom <= top < window, names[number]
            if top < bottom + 45:  # the page's last sections may be too short to come up to the bar
                browser.wait(lambda name=names[number]: browser.js(MARKED) == [name, True])
        assert "t=0.5" in browser.js("return location.hash")  # the address keeps what one sees


def test_the_first_link_leads_to_the_images_and_keeps_the_state(browser: Browser, page: Path) -> None:
    browser.open(page, "t=0.5")
    browser.keys("TAB", "ENTER")
    assert browser.js("return document.activeElement.id") == "gallery"
    assert browser.js("return probox.state().t") == 0.5


# --- narrow windows -------------------------------------------------------------------------------------------------


def test_nothing_sticks_out_of_a_phone(browser: Browser, long_names: Path) -> None:
    browser.resize(390, 844)
    for address in ("", "t=0.5&against=1", "image=2&detector=1", "image=2&detector=0&beside=2&layers=pmbeshl&pick=o0"):
        browser.open(long_names, address)
        browser.wait(lambda: browser.js("return probox.resting !== false"))
        assert browser.js("return document.documentElement.scrollWidth") <= 390, address
        wide = browser.js(
            "return [...document.querySelectorAll('#viewer[open], #viewer[open] .top, #bar, header, main > section')]"
            ".filter(e => e.getBoundingClientRect().right > 391"
            " || e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX === 'visible')"
            ".map(e => e.id || e.className || e.tagName)"
        )
        assert wide == [], address


def test_tables_scroll_inside_with_the_first_column_in_place(browser: Browser, long_names: Path) -> None:
    browser.resize(390, 844)
    browser.open(long_names)
    for name in ("summary", "classes"):
        before, after, moved, width = browser.js(
            """
            const scroll = document.getElementById(arguments[0]).closest('.scroll');
            const first = scroll.querySelector('tbody th'), last = scroll.querySelector('tbody td:last-child');
            const before = [first, last].map(e => e.getBoundingClientRect().left);
            scroll.scrollLeft = 150;
            const after = [first, last].map(e => e.getBoundingClientRect().left);
            return [before, after, scroll.scrollLeft, first.getBoundingClientRect().width];
            """,
            name,
        )
        assert moved > 100
        assert after[0] == pytest.approx(before[0], abs=1)
        assert after[1] == pytest.approx(before[1] - moved, abs=1)
        assert width < 200  # numbers keep their room


def test_buttons_keep_their_words_on_one_line(browser: Browser, long_names: Path) -> None:
    for width in (1400, 390):
        browser.resize(width, 844)
        browser.open(long_names)
        high = browser.js(
            "return [...document.querySelectorAll('.tools button')].filter(e => e.offsetHeight > 48).map(e => e.id)"
        )
        assert high == []


# --- keys -----------------------------------------------------------------------------------------------------------


def test_a_question_mark_lists_the_keys(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.keys("?")
    browser.wait(lambda: browser.js("return document.getElementById('keys').open"))
    told = browser.text("#key-list")
    for key in ("veil", "samples", "zoom", "gallery", "Esc"):
        assert key in told
    browser.keys("ESCAPE")
    browser.wait(lambda: not browser.js("return document.getElementById('keys').open"))
    # Over an open image, too, which stays open; and not while one writes.
    browser.open(page, "image=2")
    browser.wait(lambda: browser.count("#items .item"))
    browser.keys("?")
    browser.wait(lambda: browser.js("return document.getElementById('keys').open"))
    browser.keys("v")
    assert "v" not in browser.js("return probox.state().layers")
    browser.keys("ESCAPE")
    browser.wait(lambda: not browser.js("return document.getElementById('keys').open"))
    assert browser.js("return document.getElementById('viewer').open")
    browser.open(page)
    browser.js("document.getElementById('find').focus()")
    browser.keys("?")
    assert browser.js("return document.getElementById('find').value") == "?"
    assert not browser.js("return document.getElementById('keys').open")


def test_every_layer_has_a_key_and_the_list_knows_it(browser: Browser, page: Path) -> None:
    browser.open(page, "image=2&layers=")
    browser.wait(lambda: browser.count("#items .item"))
    keys = browser.js("return [...document.querySelectorAll('#layers input')].map(e => [e.dataset.key, e.value])")
    listed = browser.js(
        "return probox.keys.filter(([, , where]) => where === 'large view').map(([k]) => k).join(' ').split(' ')"
    )
    for key, layer in keys:
        assert key in listed
        browser.keys(key)
        assert browser.js("return probox.state().layers").endswith(layer) or layer in browser.js(
            "return probox.state().layers"
        )
    assert sorted(browser.js("return probox.state().layers")) == sorted(layer for _, layer in keys)


def test_what_has_the_focus_is_seen(browser: Browser, page: Path) -> None:
    browser.open(page)
    for _ in range(12):
        browser.keys("TAB")
        outline = browser.js(
            "const s = getComputedStyle(document.activeElement); return [s.outlineStyle, s.outlineWidth]"
        )
        assert outline[0] != "none"
        assert float(outline[1].removesuffix("px")) >= 1


# --- screen readers -------------------------------------------------------------------------------------------------


def test_everything_has_a_name_and_a_place(browser: Browser, page: Path) -> None:
    browser.open(page, "image=2&beside=1")
    browser.wait(lambda: browser.count("#items .item"))
    assert browser.count("main") == browser.count("header") == browser.count("nav[aria-label]") == 1
    nameless = browser.js(
        """
        const named = (e) => e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || e.textContent.trim()
          || e.labels?.[0]?.textContent.trim() || e.title;
        return [...document.querySelectorAll('button, a, select, input, dialog, main > section, [role=img], aside')]
          .filter((e) => !named(e)).map((e) => e.outerHTML.slice(0, 90));
        """
    )
    assert nameless == []
    broken = browser.js(
        "return [...document.querySelectorAll('[aria-labelledby]')].map(e => e.getAttribute('aria-labelledby'))"
        ".filter(id => !document.getElementById(id))"
    )
    assert broken == []
    ids = browser.js("return [...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))


def test_a_slider_that_moves_is_not_talked_over(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.js(
        "window.told = []; new MutationObserver(() => told.push(document.getElementById('spoken').textContent))"
        ".observe(document.getElementById('spoken'), {childList: true})"
    )
    browser.js(
        "const slider = document.getElementById('threshold');"
        "for (let step = 0; step < 8; step++) { slider.value = (0.1 + 0.05 * step).toFixed(2);"
        " slider.dispatchEvent(new Event('input', { bubbles: true })); }"
    )
    told = browser.wait(lambda: browser.js("return told"))
    assert len(told) == 1
    assert "threshold 0.45" in told[0]
    assert "probabilistic PDQ" in told[0]
    assert browser.count("#bar [aria-live], #gallery [aria-live]") == 0
    browser.choose("#verdict", "FN")
    browser.wait(lambda: browser.text("#found") == browser.text("#spoken"))


def test_what_is_said_is_seen_over_an_open_image(browser: Browser, page: Path) -> None:
    browser.open(page, "image=2")
    browser.wait(lambda: browser.count("#items .item"))
    browser.click("#link")
    browser.wait(lambda: not browser.js("return document.getElementById('message').hidden"))
    on_top = browser.js(
        "const b = document.getElementById('message').getBoundingClientRect();"
        "return document.elementFromPoint(b.x + b.width / 2, b.y + b.height / 2)?.id"
    )
    assert on_top == "message"


# --- paper ----------------------------------------------------------------------------------------------------------


def test_on_paper(browser: Browser, page: Path) -> None:
    browser.resize(1040, 800, dark=True)
    browser.open(page, "t=0.3")
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        browser.wait(lambda: browser.js("return document.documentElement.dataset.theme") == "light")
        shown = "return getComputedStyle(document.getElementById(arguments[0])).display !== 'none'"
        for name, there in {"bar": False, "gallery": False, "viewer": False, "printed": True, "summary": True}.items():
            assert browser.js(shown, name) is there, name
        assert "0.3" in browser.text("#printed")
        assert browser.js("return document.documentElement.scrollWidth") <= 1040
        cut = browser.js(
            """
            const outside = (e) => e.getBoundingClientRect().right > innerWidth + 1;
            const hidden = (e) => e.scrollHeight > e.clientHeight + 2 && getComputedStyle(e).overflowY !== 'visible';
            return [...document.querySelectorAll('.scroll, .card, .chart svg')]
              .filter((e) => e.getClientRects().length && (outside(e) || hidden(e)))
              .map((e) => e.outerHTML.slice(0, 80));
            """
        )
        assert cut == []
        light = browser.js("return getComputedStyle(document.body).backgroundColor")
        assert light == "rgb(255, 255, 255)"
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    browser.wait(lambda: browser.js("return document.documentElement.dataset.theme") is None)


def test_an_image_on_paper_is_whole_with_its_lists(browser: Browser, page: Path) -> None:
    browser.resize(1400, 900, dark=True)
    browser.open(page, "image=4&beside=1&layers=mbl")
    browser.wait(lambda: browser.count("#items .item") > 4)
    canvases = (
        "return probox.panes().map(({canvas, names}) => [canvas.width, canvas.height, names.width, names.height])"
    )
    on_screen = browser.js(canvases)
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        browser.wait(lambda: browser.js("return document.documentElement.dataset.theme") == "light")
        image = browser.js("const s = probox.store.images, i = s.id.indexOf(4); return [s.w[i], s.h[i]]")
        for width, height, *names in browser.js(canvases):
            assert width / height == pytest.approx(image[0] / image[1], rel=0.01)  # nothing cut off, nothing empty
            assert names == [width, height]
        seen = browser.js(
            """
            const dialog = document.getElementById('viewer');
            return [getComputedStyle(dialog).overflowY, dialog.scrollHeight <= dialog.clientHeight + 1,
              [...dialog.querySelectorAll('.stage')].every((stage) => {
                const all = stage.getBoundingClientRect(), own = stage.firstChild.getBoundingClientRect();
                return Math.abs(all.height - own.height) < 2 && own.height > 100;
              }),
              [...dialog.querySelectorAll('.item .numbers')].every((one) => one.getClientRects().length > 0)];
            """
        )
        assert seen == ["visible", True, True, True]
        labels = "return JSON.stringify(probox.panes().map((pane) => pane.labels))"
        whole = browser.js(labels)
        assert "banana" in whole
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    browser.wait(lambda: browser.js(canvases) == on_screen)
    # What is zoomed on the screen is whole on paper.
    browser.keys("+", "+")
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        browser.wait(lambda: browser.js("return document.documentElement.dataset.theme") == "light")
        assert browser.js(labels) == whole
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


# --- contrast -------------------------------------------------------------------------------------------------------


def themes() -> dict[str, dict[str, str]]:
    """Return the colours of both themes, as the style sheet has them."""
    sheet = style_sheet()
    blocks = {
        "light": re.search(r":root \{(.*?)\}", sheet, re.S),
        "dark": re.search(r':root\[data-theme="dark"\] \{(.*?)\}', sheet, re.S),
    }
    return {
        name: dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6})", block[1])) if block else {}
        for name, block in blocks.items()
    }


INKS = ("--ink", "--soft", "--right-ink", "--wrong-class-ink", "--wrong-ink")
GROUNDS = ("--page", "--panel", "--mark")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read_on_every_ground(theme: str) -> None:
    colours = themes()[theme]
    for ink, ground in itertools.product(INKS, GROUNDS):
        assert contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)
    # What is not text needs 3: lines of detectors, outcomes, the ring of the focus.
    lines = [name for name in colours if name.startswith("--line-")]
    for name in ("--right", "--wrong-class", "--wrong", "--neutral", "--accent", *lines):
        assert contrast(colours[name], colours["--panel"]) >= 3, name


def test_text_has_no_other_colours_than_those_that_are_checked() -> None:
    allowed = {*(f"var({ink})" for ink in INKS), "inherit", "currentcolor"}
    used = re.findall(r"[;{\s]color: ([^;}]+)", style_sheet())
    assert len(used) > 20
    assert {colour.strip() for colour in used} - allowed - {"var(--page)", "var(--accent)"} == set()
