"""Charts in a real browser: ranges chosen by hand and with keys, axes of logarithms, values under the cross-hair."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.explorer.browser import Browser

pytestmark = pytest.mark.slow  # the walk through the page that always runs is test_explorer.py

CHART = """
const [options] = arguments;
document.getElementById("trial")?.remove();
const place = document.createElement("div");
place.id = "trial";
place.className = "chart";
place.style.cssText = "position:fixed;left:0;top:0;width:500px;z-index:99;background:white";
document.body.append(place);
window.told = [];
window.draw = (brush) => probox.lineChart(place, {
  xRange: [0, 1], xLabel: "quality", yLabel: "share", label: "a trial", format: (v) => v.toFixed(1), brush,
  onBrush: (lo, hi) => { window.told.push([lo, hi]); window.draw(lo === null ? null : [lo, hi]); },
  brushStep: 0.05,
  series: [{ name: "one", colour: "red", x: [0, 0.25, 0.5, 0.75, 1], y: [1, 4, 2, 8, 3] }], ...options });
window.draw(null);
"""


@pytest.fixture
def chart(browser: Browser, page: Path) -> Browser:
    browser.open(page)
    # The focus must not move before the page was drawn once: the browser would have a word to say about that.
    browser.driver.execute_async_script("const [done] = arguments; requestAnimationFrame(() => setTimeout(done, 20));")
    browser.js(CHART, {})
    return browser


def drag(browser: Browser, start: float, end: float) -> None:
    """Drag from x = start to x = end of the chart's axis."""
    left, right = 48, 500 - 14

    def send(kind: str, value: float, **more: Any) -> None:
        where = {"type": kind, "x": left + value * (right - left), "y": 100, "button": "left", "clickCount": 1, **more}
        browser.driver.execute_cdp_cmd("Input.dispatchMouseEvent", where)

    send("mousePressed", start, buttons=1)
    for part in (0.5, 1.0):
        if start != end:
            send("mouseMoved", start + part * (end - start), buttons=1)
    send("mouseReleased", end)


def shade(browser: Browser) -> list[float] | None:
    """Return the range that is shown as chosen, as x of the axis."""
    found = browser.js(
        "const b = document.querySelector('#trial .brush');"
        "if (b.getAttribute('visibility') !== 'visible') return null;"
        "const x = Number(b.getAttribute('x')); return [x, x + Number(b.getAttribute('width'))]"
    )
    return None if found is None else [(value - 48) / (500 - 14 - 48) for value in found]


def test_a_range_is_dragged_in_either_direction_and_a_click_clears_it(chart: Browser) -> None:
    drag(chart, 0.22, 0.61)
    assert chart.js("return told") == [[0.2, 0.65]]  # every step that was touched
    assert shade(chart) == pytest.approx([0.2, 0.65])
    drag(chart, 0.93, 0.71)
    assert chart.js("return told.at(-1)") == [0.7, 0.95]
    drag(chart, 0.42, 1.2)  # beyond the end
    assert chart.js("return told.at(-1)") == [0.4, 1]
    drag(chart, 0.5, 0.5)
    assert chart.js("return told.at(-1)") == [None, None]
    assert shade(chart) is None
    drag(chart, 0.5, 0.5)  # nothing to clear: nothing is told
    assert len(chart.js("return told")) == 4


def test_a_range_is_chosen_with_the_keys(chart: Browser) -> None:
    from selenium.webdriver.common.keys import Keys

    chart.js("document.querySelector('#trial svg').focus()")

    def press(key: str, *, shift: bool = False) -> Any:
        from selenium.webdriver.common.action_chains import ActionChains

        actions = ActionChains(chart.driver)
        (actions.key_down(Keys.SHIFT).send_keys(key).key_up(Keys.SHIFT) if shift else actions.send_keys(key)).perform()
        return chart.js("return told.at(-1)")

    assert press(Keys.ARROW_RIGHT, shift=True) == [0, 0.05]
    assert press(Keys.ARROW_RIGHT, shift=True) == [0, 0.1]  # the focus is still there, on what was drawn anew
    assert press(Keys.ARROW_RIGHT) == [0.05, 0.15]
    assert press(Keys.ARROW_LEFT) == [0, 0.1]
    assert press(Keys.ARROW_LEFT) == [0, 0.1]  # not beyond the end
    assert press(Keys.ARROW_LEFT, shift=True) == [0, 0.05]
    assert press(Keys.ARROW_LEFT, shift=True) == [0, 0.05]  # never empty
    assert "0 to 0.05" in chart.text("#trial [aria-live]")
    assert press(Keys.ESCAPE) == [None, None]
    assert chart.text("#trial [aria-live]") == "no range chosen"
    told = len(chart.js("return told"))
    press(Keys.ARROW_RIGHT)  # without a range the arrows read values
    press(Keys.ARROW_RIGHT)
    assert len(chart.js("return told")) == told
    assert chart.text("#trial [aria-live]") == "quality 0.25, one 4.0"
    assert not chart.js("return document.querySelector('#trial .tip').hidden")
    assert press(Keys.ARROW_RIGHT, shift=True) == [0.25, 0.3]  # from the cross-hair


def test_a_click_picks_only_where_no_range_is_in_the_way(chart: Browser) -> None:
    chart.js(CHART, {})
    chart.js(
        "const draw = (brush) => probox.lineChart(document.getElementById('trial'), { xRange: [0, 1],"
        "xLabel: 'x', yLabel: 'y', label: 'l', format: String, brush,"
        "onBrush: (lo) => draw(lo === null ? null : [0.2, 0.4]),"
        "onPick: (x) => told.push(x), series: [{ name: 'one', colour: 'red', x: [0, 1], y: [1, 2] }] }); draw(null);"
    )
    drag(chart, 0.25, 0.35)
    assert chart.js("return told") == []
    drag(chart, 0.3, 0.3)  # clears
    assert chart.js("return told") == []
    drag(chart, 0.3, 0.3)
    assert chart.js("return told") == [pytest.approx(0.3, abs=0.01)]


def test_the_click_that_ends_a_drag_does_not_clear_the_range(chart: Browser) -> None:
    chart.js(
        "probox.lineChart(document.getElementById('trial'), { xRange: [0, 1], xLabel: 'x', yLabel: 'y', label: 'l',"
        "format: String, brush: [0.5, 0.6], brushStep: 0.1, onBrush: (lo, hi) => told.push([lo, hi]),"
        "series: [{ name: 'one', colour: 'red', x: [0, 1], y: [1, 2] }] })"
    )
    drag(chart, 0.25, 0.35)  # whoever is told draws later, if at all
    assert chart.js("return told") == [[0.2, 0.4]]


def test_an_axis_of_logarithms_shows_nought_and_real_numbers(chart: Browser) -> None:
    series = [{"name": "one", "colour": "red", "x": [0, 0.5, 1], "y": [0, 10, 30000]}]
    chart.js(CHART, {"yScale": "log", "series": series})
    assert chart.texts("#trial text.tick") == ["0", "1", "10", "100", "1k", "10k"]
    height = 260 - 10 - 40
    ys = [
        float(value)
        for value in chart.js("return document.querySelector('#trial .line').getAttribute('d')").split()[2::3]
    ]
    assert ys[0] == 260 - 40  # 0 lies on the axis
    assert 10 < ys[2] < 10 + 0.1 * height  # the highest is within, near the top: nothing is cut
    ticks = [
        float(value)
        for value in chart.js("return [...document.querySelectorAll('#trial text.tick')].map(e => e.getAttribute('y'))")
    ]
    assert ys[1] == pytest.approx(ticks[2] - 4)
    gaps = [a - b for a, b in pairwise(ticks[1:])]
    assert gaps == pytest.approx([gaps[0]] * len(gaps))  # a decade each


def test_a_line_breaks_where_there_is_no_value_and_its_label_tells_numbers(chart: Browser) -> None:
    series = [{"name": "one", "colour": "red", "x": [0, 0.25, 0.5, 1], "y": [1, None, 2, 9]}]
    chart.js(CHART, {"series": series})
    assert chart.js("return document.querySelector('#trial .line').getAttribute('d')").count("M") == 2
    assert (
        chart.js("return document.querySelector('#trial svg').getAttribute('aria-label')")
        == "a trial; highest: one: 9.0 at 1"
    )
    chart.js(CHART, {"series": series, "marker": 0.45})
    assert (
        chart.js("return document.querySelector('#trial svg').getAttribute('aria-label')")
        == "a trial; at 0.45: one: 2.0"
    )


def test_counts_of_false_positives_are_not_cut(browser: Browser, page: Path) -> None:
    browser.open(page)
    drawn = browser.js(
        "const chart = document.querySelector('#chart-counts');"
        "const numbers = (line) => line.getAttribute('d').split(/[ ML]+/).filter(Boolean).map(Number);"
        "return [...chart.querySelectorAll('.line')].map(numbers)"
    )
    curves = browser.js("return probox.store.results.flatMap(r => [r.curve.TP, r.curve.FP, r.curve.FN])")
    ticks = browser.texts("#chart-counts text.tick")
    assert ticks[:3] == ["0", "1", "10"]
    for numbers, curve in zip(drawn, curves, strict=True):
        ys = numbers[1::2]
        assert len(ys) == len(curve)
        assert all(a == b or (a < b) == (p > q) for a, b, p, q in zip(ys, ys[1:], curve, curve[1:], strict=False))
        assert all((a == b) == (p == q) for a, b, p, q in zip(ys, ys[1:], curve, curve[1:], strict=False))
