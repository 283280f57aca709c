"""The gallery in a real Chromium: filters in captions, two detectors, a drawn range, tags, single objects."""

from __future__ import annotations

import functools
import io
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.explorer.browser import Browser
from tests.explorer.test_explorer import smallest_text
from tests.explorer.test_selection import Item, expected_sums, items_of, qualities_of, verdict_of

import probox
from probox import Evaluation
from probox.demo import Demo
from probox.explorer.page import write_report
from probox.tables.results import Verdict

pytestmark = pytest.mark.slow  # the walk through the page that always runs is test_explorer.py

A, B = "deterministic", "probabilistic"


@pytest.fixture(scope="module")
def unequal(demo: Demo) -> dict[str, Evaluation]:
    """Return the demo's detectors, of which A never saw two images, and B one: each finds what the other does not."""
    ids = demo.truth.image_ids
    lacking = {A: ids[[2, 7]], B: ids[[4]]}
    return {
        name: probox.evaluate(demo.truth, found[~np.isin(found.image_ids, lacking[name])], measures=("pdq",))
        for name, found in demo.detectors.items()
    }


@pytest.fixture(scope="module")
def pair(unequal: dict[str, Evaluation], demo_files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(unequal, tmp_path_factory.mktemp("pair") / "report", images=demo_files / "images")[0]


def state(browser: Browser, key: str) -> Any:
    return browser.js("return probox.state()[arguments[0]]", key)


def settled(browser: Browser, condition: Callable[[], Any]) -> None:
    """Bring the gallery into sight and wait for what it should show."""
    browser.js("document.getElementById('gallery').scrollIntoView({behavior: 'instant'})")
    browser.wait(lambda: browser.count(".tile") > 0)
    browser.wait(condition)


def shows(browser: Browser, start: str) -> bool:
    return browser.text("#found").startswith(start)


def label(browser: Browser, number: int = 0) -> str:
    return str(
        browser.js(
            "return document.querySelector(`.tile[data-number='${arguments[0]}']`).getAttribute('aria-label')", number
        )
    )


def of_class(evaluation: Evaluation, item: Item, number: int) -> bool:
    labels = evaluation.objects.labels[item[2]] if item[2] >= 0 else evaluation.detections.labels[item[1]]
    return bool(labels == number)


def test_worst_images_of_a_class(browser: Browser, pair: Path, unequal: dict[str, Evaluation]) -> None:
    result = unequal[B]
    number = result.classes.index("leaf")
    browser.open(pair, "detector=1&class=leaf&t=0.3")
    settled(browser, lambda: "leaf" in browser.text("#found"))
    items = [item for item in items_of(result, 0.3) if of_class(result, item, number)]
    sums = expected_sums(result, items)
    rows = np.flatnonzero(sums["TP"] + sums["FP"] + sums["FN"])
    lost = (1 - sums["PDQ"]) * (sums["TP"] + sums["FP"] + sums["FN"])
    order = rows[np.lexsort((rows, -lost[rows]))]
    assert browser.js("return probox.order") == order.tolist()
    text = browser.text("#found")
    assert text.startswith(f"{len(rows)} images with {len(items)} matches, misses and false positives (leaf)")
    for place in (0, 1):
        row = order[place]
        told = browser.text(f'.tile[data-number="{place}"] .caption')
        assert "PDQ of leaf" in told
        counts = "".join(f"{int(sums[name][row])} {name}" for name in ("TP", "FP", "FN"))
        assert f"{100 * sums['PDQ'][row]:.1f}{counts}" in told
        assert f"PDQ of leaf {100 * sums['PDQ'][row]:.1f}," in label(browser, place)
    browser.click("#clear")
    browser.wait(lambda: "leaf" not in browser.text("#found"))
    assert "PDQ of" not in label(browser)


def test_images_that_a_detector_never_saw_come_last_or_not(browser: Browser, tmp_path: Path) -> None:
    ids = np.arange(1, 25)
    box = [10.0, 10.0, 40.0, 40.0]
    truth = probox.GroundTruth.from_boxes(["cup"], {int(i): (64, 48) for i in ids}, ids, [box] * 24, [0] * 24)
    seen = np.repeat(ids[12:], 2)
    probs = np.full((24, 1), 0.9)
    found = probox.Detections(
        classes=["cup"], image_ids=seen, boxes=[box, [0.0, 0.0, 5.0, 5.0]] * 12, label_probs=probs
    )
    results = {"half": probox.evaluate(truth, found, measures=("pdq",))}
    path, _ = write_report(results, tmp_path / "r")
    browser.open(path, "sort=missed")
    settled(browser, lambda: browser.text("#apart"))
    assert browser.text("#apart") == "12 images that half seems never to have seen (no detections) come last."
    assert browser.js("return probox.order") == [*range(12, 24), *range(12)]
    browser.click("#unseen")
    browser.wait(lambda: "unseen=among" in browser.js("return location.hash"))
    assert browser.text("#apart") == ""
    assert browser.js("return probox.order") == list(range(24))
    browser.js("history.back()")
    browser.wait(lambda: browser.text("#apart"))
    assert browser.js("return probox.order[0]") == 12


def test_sorts_by_the_difference_of_two_detectors_and_opens_both(
    browser: Browser, pair: Path, unequal: dict[str, Evaluation]
) -> None:
    browser.open(pair, "t=0.4")
    hidden = "return [...document.querySelectorAll('option[data-ahead]')].every(o => o.hidden && o.disabled)"
    assert browser.js(hidden)
    browser.choose("#rival", "1")
    assert not browser.js(hidden)
    browser.choose("#sort", "behind")
    settled(browser, lambda: state(browser, "sort") == "behind")
    mine, others = (unequal[name].at_threshold(0.4).per_image().columns["PDQ"] for name in (A, B))
    number = np.arange(12)
    order = np.lexsort((number, mine - others))
    assert browser.js("return probox.order") == order.tolist()
    assert browser.texts('#sort option[value="behind"]') == ["probabilistic better than deterministic"]
    row = order[0]
    difference = 100 * (mine[row] - others[row])
    assert difference < 0
    shown = f"\N{MINUS SIGN}{abs(difference):.1f} against {100 * others[row]:.1f} of probabilistic"
    assert browser.text('.tile[data-number="0"] .against') == shown
    assert label(browser).endswith(f"; difference {shown}")
    browser.click('.tile[data-number="0"]')
    browser.wait(lambda: browser.count(".pane") == 2)
    assert "beside=1" in browser.js("return location.hash")
    browser.js("history.back()")
    browser.wait(lambda: not browser.js("return document.getElementById('viewer').open"))
    assert state(browser, "sort") == "behind"
    browser.choose("#rival", "")  # without a second detector there is no difference
    browser.wait(lambda: browser.js("return document.getElementById('sort').value") == "worst")


def test_what_one_found_and_the_other_did_not(browser: Browser, pair: Path, unequal: dict[str, Evaluation]) -> None:
    browser.open(pair, "t=0.4")
    assert browser.js("return document.getElementById('duel').closest('label').hidden")
    browser.choose("#rival", "1")
    assert browser.texts("#duel option")[1:3] == [
        "found by deterministic, missed by probabilistic",
        "missed by deterministic, found by probabilistic",
    ]
    both = [items_of(unequal[name], 0.4) for name in (A, B)]
    found = [{item[2] for item in items if verdict_of(item) == "TP"} for items in both]
    for duel, wanted in (("won", found[0] - found[1]), ("lost", found[1] - found[0])):
        browser.choose("#duel", duel)
        rows = {int(unequal[A].objects.image_rows[o]) for o in wanted}
        start = f"{len(rows)} {'image' if len(rows) == 1 else 'images'} with {len(wanted)} match"
        browser.wait(functools.partial(shows, browser, start))
        assert set(browser.js("return probox.order")) == rows
    browser.click("#clear")
    assert state(browser, "duel") == ""


def drag(browser: Browser, selector: str, start: float, end: float) -> None:
    """Drag over a chart from x = start to x = end of its axis, which goes from 0 to 1."""
    browser.js("document.querySelector(arguments[0]).scrollIntoView({block: 'center', behavior: 'instant'})", selector)
    x, y, width = browser.js(
        "const b = document.querySelector(arguments[0]).getBoundingClientRect(); return [b.x, b.y, b.width]", selector
    )
    left, right = x + 48, x + width - 14

    def send(kind: str, value: float, buttons: int) -> None:
        place = {"type": kind, "x": left + value * (right - left), "y": y + 100, "button": "left", "clickCount": 1}
        browser.driver.execute_cdp_cmd("Input.dispatchMouseEvent", place | {"buttons": buttons})

    send("mousePressed", start, 1)
    if start != end:
        send("mouseMoved", (start + end) / 2, 1)
        send("mouseMoved", end, 1)
    send("mouseReleased", end, 0)


def test_a_range_drawn_over_the_histogram_filters_the_gallery(
    browser: Browser, pair: Path, unequal: dict[str, Evaluation]
) -> None:
    browser.open(pair, "detector=1&distribution=spatial&t=0.2")
    drag(browser, "#chart-qualities svg", 0.13, 0.43)
    browser.wait(lambda: state(browser, "quality") == "spatial")
    low, high = state(browser, "lo"), state(browser, "hi")
    assert (low, high) == pytest.approx((0.12, 0.44))  # whole bars
    table = unequal[B].at_threshold(0.2).detections
    values = table.quality("spatial")
    wanted = table.image_rows[(table.verdicts == Verdict.TP) & (values >= low) & (values <= high)]
    assert len(wanted) > 3
    browser.wait(lambda: browser.text("#found").startswith(f"{len(set(wanted.tolist()))} images with {len(wanted)} "))
    assert "verdict=TP" in browser.js("return location.hash")
    visible = "return document.querySelector('#chart-qualities .brush').getAttribute('visibility')"
    assert browser.js(visible) == "visible"
    assert "Gallery: spatial 12 to 44 %" in browser.text("#brushed")
    browser.choose("#of", "label")  # another quality's range is not this one's
    assert browser.js(visible) == "hidden"
    browser.choose("#of", "spatial")
    browser.choose("#from", "20")  # by hand
    browser.wait(lambda: "Gallery: spatial 20 to 44 %" in browser.text("#brushed"))
    drag(browser, "#chart-qualities svg", 0.7, 0.7)
    browser.wait(lambda: state(browser, "hi") == 1)
    assert (state(browser, "lo"), state(browser, "verdict")) == (0, "")
    assert browser.js(visible) == "hidden"
    browser.wait(lambda: browser.text("#found").startswith("12 images"))


def test_tags_by_key_and_button_are_kept_in_the_link(browser: Browser, pair: Path) -> None:
    browser.open(pair, "sort=number")
    settled(browser, lambda: browser.count(".tile") > 4)
    assert browser.js("return document.getElementById('tags').hidden")
    browser.js("document.querySelector('.tile[data-number=\"1\"]').focus()")
    browser.keys("t", "ARROW_RIGHT", "t", "ARROW_RIGHT", "t", "t")
    assert browser.text("#tag-count") == "2 tagged"
    pressed = (
        "return [...document.querySelectorAll('.flag[aria-pressed=true]')].map(e => e.previousSibling.dataset.image)"
    )
    ids = browser.js("return probox.store.images.id")
    assert browser.js(pressed) == [str(ids[1]), str(ids[2])]
    assert label(browser, 1).endswith("; tagged")
    browser.js("document.querySelector('.tile[data-number=\"5\"]').click()")
    browser.wait(lambda: browser.js("return document.getElementById('viewer').open"))
    browser.keys("t")
    browser.wait(lambda: browser.js("return document.getElementById('tag').getAttribute('aria-pressed')") == "true")
    address = browser.js("return location.hash").removeprefix("#")
    browser.open(pair, address)
    browser.wait(lambda: browser.text("#tag") == "\N{BLACK STAR} Tagged")
    browser.click("#close")
    browser.js("document.getElementById('tag-copy').click()")
    assert browser.wait(lambda: browser.js("return probox.copied")) == f"{ids[1]}\n{ids[2]}\n{ids[5]}"
    saved = (
        "const done = arguments[0]; const make = URL.createObjectURL;"
        "URL.createObjectURL = (blob) => { blob.text().then(done); return make.call(URL, blob); };"
        "document.addEventListener('click', (e) => { if (e.target.download) e.preventDefault(); }, true);"
        "HTMLAnchorElement.prototype.click = () => {}; document.getElementById('tag-save').click();"
    )
    assert browser.driver.execute_async_script(saved) == f"{ids[1]}\n{ids[2]}\n{ids[5]}\n"
    browser.choose("#tagged", "yes")
    settled(browser, lambda: browser.text("#found").startswith("3 images"))
    assert browser.js("return probox.order") == [1, 2, 5]
    browser.js("document.querySelector('.tile[data-number=\"1\"]').focus()")
    browser.keys("t")  # it leaves the list: the focus is on the one that took its place
    browser.wait(lambda: browser.js("return probox.order") == [1, 5])
    assert browser.js("return document.activeElement.dataset.image") == str(ids[5])
    browser.choose("#tagged", "no")
    browser.wait(lambda: browser.text("#found").startswith("10 images"))
    browser.click("#tag-all")
    browser.wait(lambda: browser.text("#tag-count") == "12 tagged")
    browser.js("history.back()")
    browser.wait(lambda: browser.text("#tag-count") == "2 tagged")
    browser.click("#tag-clear")
    assert browser.js("return document.getElementById('tags').hidden")
    browser.js("history.back()")
    browser.wait(lambda: browser.text("#tag-count") == "2 tagged")


def test_tags_of_other_images_and_many_tags_are_said(browser: Browser, pair: Path) -> None:
    browser.open(pair, "tags=1.1.zzz")
    assert browser.text("#tag-count") == "3 tagged, 1 of them not in this report"
    browser.open(pair, "tags=" + ".".join(["a1"] * 700))
    assert "700 tagged" in browser.text("#tag-count")
    assert "characters, too many for some programs" in browser.text("#tag-count")
    browser.open(pair, "tags=a..b")
    assert browser.js("return document.getElementById('tags').hidden")


def test_single_objects_open_with_themselves_picked(
    browser: Browser, pair: Path, unequal: dict[str, Evaluation]
) -> None:
    result = unequal[A]
    browser.open(pair, "t=0.4")
    browser.click('#show button[value="objects"]')
    items = items_of(result, 0.4)
    settled(browser, lambda: browser.text("#found").startswith(f"{len(items)} matches, misses and false positives in"))
    assert browser.js("return document.getElementById('grid').ariaLabel") == "objects"
    assert browser.count(".tile") < len(items)  # only those in sight exist
    browser.choose("#by", "worst")
    browser.wait(lambda: state(browser, "by") == "worst")
    worst = min((item for item in items if verdict_of(item) == "TP"), key=lambda i: qualities_of(result, i, "pPDQ"))
    quality = 100 * qualities_of(result, worst, "pPDQ")
    score = 100 * result.detections.scores[worst[1]]
    name = result.classes[result.objects.labels[worst[2]]]
    assert f"{name}, score {score:.0f}, pPDQ {quality:.1f}" in label(browser)
    assert f"pPDQ {quality:.1f}" in browser.text('.tile[data-number="0"] .caption')
    browser.js("document.querySelector('.tile[data-number=\"0\"]').focus()")
    browser.keys("ENTER")
    browser.wait(lambda: browser.js("return document.getElementById('viewer').open"))
    first = int(np.flatnonzero(result.detections.image_rows == worst[0])[0])
    assert state(browser, "image") == result.dataset.image_ids[worst[0]]
    assert state(browser, "pick") == f"d{worst[1] - first}"
    browser.keys("ESCAPE")
    browser.wait(lambda: not browser.js("return document.getElementById('viewer').open"))
    assert browser.js("return document.activeElement.dataset.number") == "0"
    browser.keys("END")
    browser.wait(lambda: browser.js("return document.activeElement.dataset.number") == str(len(items) - 1))
    browser.keys("HOME")
    browser.wait(lambda: browser.js("return document.activeElement.dataset.number") == "0")
    browser.choose("#by", "score")
    wrong = [item for item in items if verdict_of(item) == "FP"]
    highest = max(float(result.detections.scores[item[1]]) for item in wrong)
    browser.wait(lambda: f"score {100 * highest:.0f}, false positive" in label(browser))
    browser.choose("#verdict", "FN")
    missed = [item for item in items if verdict_of(item) == "FN"]
    browser.wait(lambda: browser.text("#found").startswith(f"{len(missed)} matches, misses"))
    assert label(browser).endswith(", missed")


def test_steps_in_the_large_view_go_from_object_to_object(browser: Browser, pair: Path) -> None:
    browser.open(pair, "order=number")
    browser.click('#show button[value="objects"]')
    browser.js("history.back()")
    browser.wait(lambda: state(browser, "show") == "images")
    browser.js("history.forward()")
    settled(browser, lambda: state(browser, "show") == "objects")
    browser.js("probox.update({ image: probox.store.images.id[0], pick: 'd0' }, true)")
    browser.wait(lambda: browser.js("return document.getElementById('viewer').open"))
    total = browser.text("#place").split(" of ")[1]
    seen = []
    for key in ("ARROW_RIGHT", "ARROW_RIGHT", "ARROW_LEFT"):
        browser.keys(key)
        seen.append([browser.text("#place"), state(browser, "pick")])
    assert seen == [[f"2 of {total}", "d1"], [f"3 of {total}", "d2"], [f"2 of {total}", "d1"]]
    browser.keys("ESCAPE")
    browser.wait(lambda: browser.js("return document.activeElement.dataset.number") == "1")


def test_crops_show_the_photo_and_what_was_found(browser: Browser, pair: Path) -> None:
    from PIL import Image
    from selenium.webdriver.common.by import By

    browser.open(pair, "show=objects&order=worst&t=0.4")
    settled(browser, lambda: browser.count(".tile") > 4)
    tile = browser.driver.find_element(By.CSS_SELECTOR, '.tile[data-number="0"] canvas')

    def colours() -> np.ndarray:
        pixels = np.asarray(Image.open(io.BytesIO(tile.screenshot_as_png)).convert("RGB"), np.int64)
        return np.unique(pixels.reshape(-1, 3), axis=0)

    # A photo has many colours; a detection that is right is drawn in a blue that nothing in the scene has.
    browser.wait(lambda: len(colours()) > 500 and (colours()[:, 2] - colours()[:, 0] > 100).sum() > 5)


@pytest.mark.parametrize("dark", [False, True])
def test_the_gallery_fits_a_phone(browser: Browser, pair: Path, dark: bool) -> None:
    browser.resize(390, 844, dark=dark)
    for address in ("against=1&sort=ahead&class=leaf&duel=won", "show=objects&against=1", "tags=1.1.1&tagged=yes"):
        browser.open(pair, address)
        settled(browser, lambda: True)
        assert browser.js("return document.documentElement.scrollWidth") <= 390
        assert smallest_text(browser) >= 12
        # A caption has the room that was made for it: no tile reaches into the row below.
        rows = browser.js(
            "const rows = new Map(); for (const e of document.querySelectorAll('.cell')) {"
            "  const { top, bottom } = e.getBoundingClientRect();"
            "  rows.set(top, Math.max(rows.get(top) ?? 0, bottom)); }"
            "return [...rows].sort((a, b) => a[0] - b[0])"
        )
        assert all(bottom + 8 <= top for (_, bottom), (top, _) in itertools.pairwise(rows))
