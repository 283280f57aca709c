"""One image large, in a real Chromium: what is under the pointer, neighbours, links, layers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.explorer.browser import Browser, percent, summary_cell

from probox import Evaluation
from probox.explorer.page import write_report
from probox.tables.results import Verdict

pytestmark = pytest.mark.slow  # the walk through the page that always runs is test_explorer.py


def on_screen(browser: Browser, x: float, y: float, pane: int = 0) -> tuple[str, float, float]:
    """Return a selector of the canvas, and where a pixel of the image lies on it."""
    size = browser.js(
        "const s = document.querySelectorAll('.stage')[arguments[0]]; return [s.clientWidth, s.clientHeight]", pane
    )
    width, height = browser.js(
        "const row = probox.store.rowOfImage.get(probox.state().image); const { images } = probox.store;"
        "return [images.w[row], images.h[row]]"
    )
    scale = min(size[0] / width, size[1] / height)
    left = (size[0] - scale * width) / 2
    return f".pane:nth-child({pane + 1}) canvas", left + scale * x, scale * y


def open_image(browser: Browser, page: Path, address: str) -> None:
    browser.open(page, address)
    browser.wait(lambda: browser.js("return document.getElementById('viewer').open"))
    browser.wait(lambda: browser.count("#items .item"))


def a_lonely_match(result: Evaluation, image_id: int) -> int:
    """Return a true positive whose middle no other box of the image covers."""
    table = result.detections
    here = np.flatnonzero(table.image_rows == result.dataset.rows_of([image_id]))
    middle = (table.boxes[:, :2] + table.boxes[:, 2:]) / 2
    for row in here:
        others = [other for other in here if other != row]
        boxes = table.boxes[others]
        inside = [(box[:2] <= middle[row]).all() and (box[2:] >= middle[row]).all() for box in boxes]
        if table.verdicts[row] == Verdict.TP and not any(inside):
            return int(row)
    raise AssertionError("no such detection")


def test_hovering_a_detection_shows_its_partner_and_five_qualities(
    browser: Browser, page: Path, results: dict[str, Evaluation]
) -> None:
    result = results["probabilistic"]
    open_image(browser, page, "image=1&detector=1")
    row = a_lonely_match(result, 1)
    x1, y1, x2, y2 = result.detections.boxes[row]
    browser.hover(*on_screen(browser, (x1 + x2) / 2, (y1 + y2) / 2))
    browser.wait(lambda: browser.js("return !document.getElementById('card').hidden"))
    for name in ("pPDQ", "spatial", "label", "foreground", "background"):
        assert browser.text(f'#card [data-quality="{name}"]') == percent(result.detections.quality(name)[row])
    card = browser.text("#card")
    assert "true positive" in card
    partner = int(result.detections.partners[row])
    number = int(np.flatnonzero(np.flatnonzero(result.objects.image_rows == 0) == partner)[0]) + 1
    assert f"matched with object {result.classes[result.objects.labels[partner]]} {number}" in card


def test_hovering_a_missed_object_says_so(browser: Browser, page: Path, results: dict[str, Evaluation]) -> None:
    result = results["probabilistic"]
    missed = int(np.flatnonzero(result.objects.verdicts == Verdict.FN)[0])
    image = int(result.objects.image_rows[missed])
    open_image(browser, page, f"image={result.dataset.image_ids[image]}&detector=1&layers=m")
    mask = result.masks.to_array(missed, int(result.dataset.heights[image]), int(result.dataset.widths[image]))
    rows, columns = np.nonzero(mask)
    middle = len(rows) // 2
    browser.hover(*on_screen(browser, columns[middle] + 0.5, rows[middle] + 0.5))
    browser.wait(lambda: "missed" in browser.text("#card"))
    assert "matched with no detection" in browser.text("#card")


def test_goes_by_key_and_back(browser: Browser, page: Path) -> None:
    browser.open(page, "sort=number")
    browser.js("document.getElementById('gallery').scrollIntoView({behavior: 'instant'})")
    browser.wait(lambda: browser.count(".tile") == 12)
    browser.js("document.querySelector('.tile').focus()")
    browser.keys("ARROW_RIGHT", "ARROW_RIGHT")
    assert browser.js("return document.activeElement.dataset.image") == "3"
    browser.keys("ENTER")
    browser.wait(lambda: browser.text("#title") == "scene-03.jpg")
    browser.keys("ARROW_RIGHT")
    browser.wait(lambda: browser.text("#title") == "scene-04.jpg")
    browser.keys("ARROW_LEFT", "ARROW_LEFT")
    browser.wait(lambda: browser.text("#title") == "scene-02.jpg")
    assert "image=2" in browser.js("return location.hash")
    browser.keys("5")  # the heatmap
    browser.wait(lambda: "h" in browser.js("return probox.state().layers"))
    browser.keys("c")  # the other detector beside it
    browser.wait(lambda: browser.count(".pane") == 2)
    browser.keys("ESCAPE")
    browser.wait(lambda: not browser.js("return document.getElementById('viewer').open"))
    assert browser.js("return document.activeElement.dataset.image") == "2"
    browser.driver.back()
    browser.wait(lambda: browser.js("return document.getElementById('viewer').open"))


def test_a_link_restores_the_view(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.choose("#exact", "0.6")
    browser.choose("#sort", "missed")
    browser.choose("#class", browser.js("return String(probox.store.classes.indexOf('ring'))"))
    browser.js("probox.update({image: 6, main: 1, other: 0, layers: 'mbh', pick: 'd2'}, true)")
    browser.wait(lambda: browser.count(".pane") == 2)
    browser.click("#link")
    link = browser.wait(lambda: browser.js("return probox.copied"))
    state = browser.js("return probox.state()")
    card = browser.text("#picked")
    assert "pPDQ" in card
    browser.driver.get("about:blank")
    browser.driver.get(link)
    browser.wait(lambda: browser.js("return document.documentElement.dataset.ready") == "true")
    browser.wait(lambda: browser.count(".pane") == 2)
    browser.wait(lambda: browser.count("#items .item"))
    assert browser.js("return probox.state()") == state
    assert browser.text("#picked") == card
    assert (
        browser.js("return [...document.querySelectorAll('#layers input:checked')].map(e => e.value).join('')") == "mbh"
    )


def test_a_point_of_a_cloud_leads_to_its_image(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.wait(lambda: browser.count("#chart-spatial .over"))  # charts come a moment later
    browser.js("document.querySelector('#chart-spatial .over').scrollIntoView({block: 'center', behavior: 'instant'})")
    place = browser.js(
        "const v = probox.store.view(1, null); const d = v.verdict.findIndex(x => x === 1); const q = v.qualities(d);"
        "const o = document.querySelector('#chart-spatial .over'); const b = o.getBoundingClientRect();"
        "return [b.x + 48 + q.label * (b.width - 62), b.y + b.height - 40 - q.spatial * (b.height - 50)]"
    )
    for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
        event = {"type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1}
        browser.driver.execute_cdp_cmd("Input.dispatchMouseEvent", event)
    browser.wait(lambda: browser.js("return document.getElementById('viewer').open"))
    assert browser.js("return probox.state().pick")


def test_one_file_holds_it_all(
    browser: Browser, results: dict[str, Evaluation], demo_files: Path, tmp_path: Path
) -> None:
    path, notes = write_report(results, tmp_path / "one file.html", images=demo_files / "images", embed=True)
    assert notes == ()
    assert [entry.name for entry in tmp_path.iterdir()] == ["one file.html"]
    browser.open(path, "image=2&detector=1")
    browser.wait(lambda: browser.count("#items .item"))
    assert summary_cell(browser, 1, "PDQ") == percent(results["probabilistic"].pdq)
    # The photo is there: its colours are on the canvas where nothing is drawn over them.
    browser.js("probox.update({layers: 'p'})")
    _, x, y = on_screen(browser, 320, 465)
    look = (
        "const spot = document.createElement('canvas').getContext('2d', {willReadFrequently: true});"
        "spot.drawImage(document.querySelector('.stage canvas'), -arguments[0], -arguments[1]);"
        "const [red, green] = spot.getImageData(0, 0, 1, 1).data; return green - red"
    )
    browser.wait(lambda: browser.js(look, x, y) > 4)  # green felt, not a grey ground
    assert [url for url in browser.requests() if not url.startswith(("file:", "data:", "blob:", "about:"))] == []
