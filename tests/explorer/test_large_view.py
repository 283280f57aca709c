"""One image large, in a real Chromium: layers, both lists, samples that move, fingers."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.explorer.browser import Browser
from tests.explorer.test_viewer import on_screen, open_image

import probox
from probox import Evaluation
from probox.explorer.page import write_report
from probox.tables.masks import Masks
from probox.tables.results import Verdict

pytestmark = pytest.mark.slow  # the walk through the page that always runs is test_explorer.py

COLOUR = """
const canvas = document.querySelectorAll('.stage')[arguments[3] || 0].querySelectorAll('canvas')[arguments[2] || 0];
const spot = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
spot.drawImage(canvas, -arguments[0], -arguments[1]);
return [...spot.getImageData(0, 0, 1, 1).data];
"""


def colour(browser: Browser, x: float, y: float, layer: int = 0) -> np.ndarray:
    """Return the colour of a pixel of the image on one of its canvases: scene, samples, labels."""
    _, left, top = on_screen(browser, x, y)
    return np.array(browser.js(COLOUR, left, top, layer))


def calm(browser: Browser, *, reduced: bool) -> None:
    """Say whether the user wants things not to move."""
    taste = [{"name": "prefers-reduced-motion", "value": "reduce" if reduced else "no-preference"}]
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": taste})


# --- heatmaps -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("embed", [False, True])
def test_given_heatmaps_appear_without_a_pointer(
    browser: Browser, golden_dir: Path, tmp_path: Path, embed: bool
) -> None:
    truth = probox.read_truth(golden_dir / "probseg" / "ground_truth.json")
    found = probox.read_detections(golden_dir / "probseg" / "detections.json", truth)
    result = probox.evaluate(truth, found)
    path, _ = write_report({"segmentation": result}, tmp_path / "r", detections=[found], embed=embed)
    assert found.heatmaps is not None
    image_id = int(found.image_ids[0])
    given: Any = np.max([found.heatmaps[row] for row in np.flatnonzero(found.image_ids == image_id)], axis=0)
    values = np.asarray(given, float) / (255 if given.dtype == np.uint8 else 1)
    y, x = np.unravel_index(int(values.argmax()), values.shape)
    browser.open(path, f"image={image_id}&layers=")
    browser.wait(lambda: browser.count("#items .item"))
    ground = colour(browser, x + 0.5, y + 0.5)
    browser.open(path, f"image={image_id}&layers=h")
    browser.wait(lambda: np.abs(colour(browser, x + 0.5, y + 0.5) - ground).max() > 30, 10)
    script = (
        "return new Promise(done => probox.withGeometry(probox.store, arguments[0], g => {"
        "const d = g.results[0][0]; done(d.values ? [...d.values] : null); }))"
    )
    row = int(result.dataset.rows_of([image_id])[0])
    first = np.asarray(found.heatmaps[0], float) / (255 if given.dtype == np.uint8 else 1)
    np.testing.assert_allclose(np.reshape(browser.js(script, row), first.shape), first, atol=0.01)


def test_masks_of_detections_are_drawn_and_are_heatmaps(browser: Browser, tmp_path: Path) -> None:
    flags = np.zeros((48, 64), bool)
    flags[10:30, 12:50], flags[15:20, 20:40] = True, False
    truth = probox.GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [7], [[40, 35, 60, 47]], [0])
    found = probox.Detections.from_scores([[12, 10, 50, 30]], [0.9], [0], classes=["cup"], image_ids=7)
    result = probox.evaluate(truth, found)
    masked = found.replace(masks=Masks.from_arrays([flags]))
    path, _ = write_report({"masks": result}, tmp_path / "r", detections=[masked])
    browser.open(path, "image=7&layers=")
    browser.wait(lambda: browser.count("#items .item"))
    ground = colour(browser, 13.5, 25.5)
    for layers in ("m", "h"):
        browser.open(path, f"image=7&layers={layers}")
        browser.wait(lambda: np.abs(colour(browser, 13.5, 25.5) - ground).max() > 10, 10)
        np.testing.assert_allclose(colour(browser, 30.5, 17.5), ground, atol=1)
    values = browser.js(
        "return new Promise(done => probox.withGeometry(probox.store, 0, g => done([...g.results[0][0].values])))"
    )
    np.testing.assert_array_equal(np.reshape(values, flags.shape), flags)


def test_the_heatmap_has_a_scale_from_0_to_1(browser: Browser, page: Path) -> None:
    open_image(browser, page, "image=2&detector=1&layers=h")
    assert browser.js("return !document.querySelector('.scale').hidden")
    assert browser.text(".scale").replace(" ", "") == "P(x)01"
    browser.keys("5")
    browser.wait(lambda: browser.js("return document.querySelector('.scale').hidden"))


# --- the veil -------------------------------------------------------------------------------------------------------


def seen(browser: Browser, x: float, y: float) -> np.ndarray:
    """Return the colour on the screen at a pixel of the image: scripts may not look at photos from disk."""
    image = pytest.importorskip("PIL.Image")
    selector, left, top = on_screen(browser, x, y)
    box = browser.js(
        "const b = document.querySelector(arguments[0]).getBoundingClientRect(); return [b.x, b.y]", selector
    )
    clip = {"x": box[0] + left, "y": box[1] + top, "width": 1, "height": 1, "scale": 1}
    answer = browser.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "clip": clip})
    with image.open(io.BytesIO(base64.b64decode(answer["data"]))) as picture:
        return np.array(picture.convert("RGB").getpixel((0, 0)), int)


def test_the_veil_is_a_layer_of_its_own(browser: Browser, page: Path) -> None:
    open_image(browser, page, "image=2&detector=1&layers=p")
    browser.wait(lambda: seen(browser, 320, 465)[1] > seen(browser, 320, 465)[0] + 4)  # green felt: the photo
    plain = seen(browser, 320, 465)
    browser.keys("v")
    browser.wait(lambda: (seen(browser, 320, 465) > plain + 10).all())
    assert "layers=pv" in browser.js("return location.hash")
    browser.keys("v")
    browser.wait(lambda: (seen(browser, 320, 465) == plain).all())


# --- lines from labels ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a page of one image with a missed cup in the midst of a matched table."""
    mask = np.zeros((200, 300), bool)
    mask[90:100, 140:150] = True
    table = np.zeros((200, 300), bool)
    table[10:190, 10:290] = True
    truth = probox.GroundTruth.from_masks(["table", "cup"], [(1, [table & ~mask, mask], [0, 1])])
    found = probox.Detections(
        classes=["table", "cup"], image_ids=[1], boxes=[[10, 10, 289, 189]], label_probs=[[0.9, 0.0]]
    )
    folder = tmp_path_factory.mktemp("crowd")
    return write_report({"a": probox.evaluate(truth, found)}, folder / "r")[0]


def test_the_label_of_a_missed_object_on_another_one_has_a_line_to_it(browser: Browser, crowd: Path) -> None:
    open_image(browser, crowd, "image=1")
    labels = browser.wait(lambda: browser.js("return probox.panes()[0].labels"))
    by_text = {label["text"]: label for label in labels}
    assert by_text["table 90"]["leader"] is None
    line = by_text["missed cup"]["leader"]
    assert line
    _, left, top = on_screen(browser, 140, 90)
    _, right, bottom = on_screen(browser, 150, 100)
    assert left - 1 <= line[2] <= right + 1
    assert top - 1 <= line[3] <= bottom + 1
    drawn = browser.js(COLOUR, (line[0] + line[2]) / 2, (line[1] + line[3]) / 2, 2)
    assert drawn[3] > 100  # it is there to be seen, not only worked out


# --- both lists -----------------------------------------------------------------------------------------------------


def test_two_detectors_have_two_lists_and_either_can_be_picked_from(
    browser: Browser, page: Path, results: dict[str, Evaluation]
) -> None:
    open_image(browser, page, "image=3&detector=0&beside=1")
    assert browser.texts("#items h3") == ["deterministic", "probabilistic"]
    for r, result in enumerate(results.values()):
        rows = np.flatnonzero(result.detections.image_rows == 2)
        missed = np.flatnonzero((result.objects.image_rows == 2) & (result.objects.verdicts == Verdict.FN))
        assert browser.count(f'#items .group[data-of="{r}"] .item') == len(rows) + len(missed)
    code = browser.js("return document.querySelector('.group[data-of=\"1\"] .item').dataset.code")
    assert code.endswith(".1")
    browser.click(f'.group[data-of="1"] .item[data-code="{code}"]')
    assert browser.js("return probox.state().pick") == code
    assert browser.count('.item[aria-pressed="true"]') == 1
    card = browser.text("#picked")
    number = int(code[1:].split(".")[0])
    row = int(np.flatnonzero(results["probabilistic"].detections.image_rows == 2)[number])
    assert f"{100 * results['probabilistic'].detections.quality('pPDQ')[row]:.2f}" in card
    link = browser.js("return location.href")
    browser.driver.get("about:blank")
    browser.driver.get(link)
    browser.wait(lambda: browser.js("return document.documentElement.dataset.ready") == "true")
    browser.wait(lambda: browser.count("#items .item"))
    assert browser.text("#picked") == card
    browser.click('.group[data-of="0"] .item')
    assert browser.js("return probox.state().pick") == browser.js(
        "return document.querySelector('.group[data-of=\"0\"] .item').dataset.code"
    )


def test_a_detection_of_the_pane_beside_can_be_picked_with_the_pointer(
    browser: Browser, page: Path, results: dict[str, Evaluation]
) -> None:
    open_image(browser, page, "image=1&detector=0&beside=1&layers=b")
    table = results["probabilistic"].detections
    row = int(np.flatnonzero((table.image_rows == 0) & (table.verdicts == Verdict.TP))[0])
    x1, y1, x2, y2 = table.boxes[row]
    browser.wait(lambda: browser.js("return document.querySelectorAll('.stage canvas')[3].clientWidth > 100"))
    selector, x, y = on_screen(browser, (x1 + x2) / 2, (y1 + y2) / 2, 1)
    box = browser.js(
        "const b = document.querySelector(arguments[0]).getBoundingClientRect(); return [b.x, b.y]", selector
    )
    for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
        event = {"type": kind, "x": box[0] + x, "y": box[1] + y, "button": "left", "clickCount": 1}
        browser.driver.execute_cdp_cmd("Input.dispatchMouseEvent", event)
    pick = browser.wait(lambda: browser.js("return probox.state().pick"))
    assert pick.endswith(".1")
    assert not browser.js("return document.getElementById('picked').hidden")


def test_a_pick_of_a_detector_that_is_not_shown_picks_nothing(browser: Browser, page: Path) -> None:
    open_image(browser, page, "image=3&detector=0&pick=d0.1")
    assert browser.js("return document.getElementById('picked').hidden")
    open_image(browser, page, "image=3&detector=0&pick=d99999.0")
    assert browser.js("return document.getElementById('picked').hidden")
    browser.open(page, "image=3&pick=nonsense")
    assert browser.js("return probox.state().pick") is None


# --- samples --------------------------------------------------------------------------------------------------------

SAMPLES = """
const canvas = document.querySelectorAll('.stage canvas')[1];
const copy = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
copy.canvas.width = canvas.width; copy.canvas.height = canvas.height;
copy.drawImage(canvas, 0, 0);
const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
let hash = 0, count = 0;
for (let i = 3; i < data.length; i += 4) if (data[i]) { count++; hash = (hash * 31 + i * data[i]) | 0; }
return [count, hash];
"""


@pytest.fixture
def restless(browser: Browser) -> Iterator[Browser]:
    calm(browser, reduced=False)
    yield browser
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_samples_move_while_they_are_seen_and_only_then(restless: Browser, page: Path) -> None:
    browser = restless
    open_image(browser, page, "image=1&detector=1&layers=pb")
    assert not browser.js("return probox.sampling")
    assert browser.js(SAMPLES)[0] == 0
    browser.keys("s")
    first = browser.wait(lambda: browser.js(SAMPLES)[0] and browser.js(SAMPLES))
    browser.wait(lambda: browser.js(SAMPLES)[1] != first[1], 5)
    assert browser.js("return probox.sampling")
    # A page that nobody sees draws nothing.
    hide = (
        "Object.defineProperty(document, 'hidden', { configurable: true, value: arguments[0] });"
        "document.dispatchEvent(new Event('visibilitychange')); return probox.sampling"
    )
    assert browser.js(hide, True) is False
    assert browser.js(hide, False) is True
    browser.keys("s")
    browser.wait(lambda: browser.js("return probox.sampling") is False)
    browser.wait(lambda: browser.js(SAMPLES)[0] == 0)
    browser.keys("s")
    browser.wait(lambda: browser.js("return probox.sampling"))
    browser.keys("ESCAPE")
    browser.wait(lambda: not browser.js("return document.getElementById('viewer').open"))
    assert browser.js("return probox.sampling") is False


def test_samples_stand_still_for_who_wants_that_and_a_link_shows_the_same(browser: Browser, page: Path) -> None:
    calm(browser, reduced=True)
    seen = []
    for _ in range(2):
        open_image(browser, page, "image=1&detector=1&layers=s")
        seen.append(browser.wait(lambda: browser.js(SAMPLES)[0] and browser.js(SAMPLES)))
        assert browser.js("return probox.sampling") is False
    assert seen[0] == seen[1]
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_plain_boxes_have_no_samples(browser: Browser, page: Path) -> None:
    calm(browser, reduced=True)
    open_image(browser, page, "image=1&detector=0&layers=bs")
    browser.wait(lambda: colour(browser, 320, 465)[3] == 255)
    assert browser.js(SAMPLES)[0] == 0
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


# --- fingers --------------------------------------------------------------------------------------------------------


def touch(browser: Browser, *steps: list[tuple[float, float]]) -> None:
    """Put fingers down at the first places, move them through the others, take them away."""
    for number, places in enumerate(steps):
        points = [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(places)]
        kind = "touchStart" if number == 0 else "touchMove"
        browser.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    browser.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_fingers_swipe_and_pinch(browser: Browser, page: Path) -> None:
    browser.resize(390, 844)
    browser.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True, "maxTouchPoints": 2})
    try:
        open_image(browser, page, "image=2&detector=1&sort=number&layers=p")
        box = browser.js(
            "const b = document.querySelector('.stage').getBoundingClientRect(); return [b.x, b.y, b.width, b.height]"
        )
        x, y = box[0] + box[2] / 2, box[1] + box[3] / 2
        touch(browser, [(x + 90, y)], [(x + 40, y + 2)], [(x - 90, y + 4)])
        browser.wait(lambda: browser.text("#title") == "scene-03.jpg")
        touch(browser, [(x - 90, y)], [(x, y + 2)], [(x + 90, y + 4)])
        browser.wait(lambda: browser.text("#title") == "scene-02.jpg")
        before = browser.js("return document.querySelector('.stage canvas').style.touchAction")
        touch(browser, [(x - 20, y), (x + 20, y)], [(x - 50, y), (x + 50, y)], [(x - 80, y), (x + 80, y)])
        browser.wait(lambda: browser.js("return document.querySelector('.stage canvas').style.touchAction") == "none")
        assert before != "none"
        assert browser.text("#title") == "scene-02.jpg"
        touch(browser, [(x + 90, y)], [(x, y)], [(x - 90, y)])  # now it moves the picture
        assert browser.text("#title") == "scene-02.jpg"
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})
