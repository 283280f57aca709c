"""Intervals in the summary, and one detector against another, in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.explorer.browser import Browser, settle

from probox import Detections, Evaluation, GroundTruth, compare, evaluate
from probox.evaluation.text import format_value
from probox.explorer import payload
from probox.explorer.page import write_report
from probox.explorer.payload import box_intervals
from probox.measures.boxes.mean_ap import MEAN_AP
from probox.measures.boxes.optimal_lrp import OPTIMAL_LRP
from probox.measures.pdq.pdq_measure import PDQ

pytestmark = pytest.mark.slow  # the walk through the page that always runs is test_explorer.py

MARK, MINUS, DASH = "✱", "\u2212", "\u2013"


def at(results: dict[str, Evaluation], threshold: float) -> dict[str, Evaluation]:
    return {name: result.at_threshold(threshold) for name, result in results.items()}


def points(value: float) -> str:
    """Return a difference as the page writes it."""
    return f"{MINUS if value < 0 else '+'}{100 * abs(value):.2f}"


@pytest.mark.parametrize("threshold", [0.6, 0.6543])
def test_the_summary_s_intervals_follow_the_threshold(
    browser: Browser, page: Path, results: dict[str, Evaluation], threshold: float
) -> None:
    browser.open(page)
    settle(browser)
    before = browser.texts("#summary .interval")
    # Those of the threshold before are gone at once.
    left = browser.js(
        "probox.update({t: arguments[0]}); return document.querySelectorAll('#summary .interval').length", threshold
    )
    assert left == 0
    settle(browser)
    assert browser.texts("#summary .interval") != before
    for number, result in enumerate(at(results, threshold).values()):
        intervals = result.intervals()
        for column in PDQ.columns:
            cell = f'#summary tr[data-result="{number}"] td[data-column="{column.key}"]'
            interval = intervals[column.key]
            low, high = (format_value(column, end) for end in (interval.low, interval.high))
            if column.unit == "per cent":
                assert browser.text(f"{cell} .interval") == f"{low}{DASH}{high}"
            ends = browser.js("const c = document.querySelector(arguments[0]).dataset; return [c.low, c.high]", cell)
            assert [float(end) for end in ends] == pytest.approx([interval.low, interval.high], rel=1e-6, abs=1e-7)
    # Of mAP none is known at a threshold, and the line under the table says whose they are and that images are few.
    assert browser.count('#summary td[data-column="mAP"] .interval') == 0
    said = browser.text('[data-caption="summary"]')
    assert "95 % intervals, images drawn anew 1,000 times" in said
    assert "fewer than 30" in said


def test_without_a_threshold_map_and_lrp_have_intervals_too(
    browser: Browser, page: Path, results: dict[str, Evaluation]
) -> None:
    browser.open(page)
    for number, result in enumerate(results.values()):
        intervals = result.intervals()
        for column in (*MEAN_AP.table_columns, *OPTIMAL_LRP.table_columns):
            cell = f'#summary tr[data-result="{number}"] td[data-column="{column.key}"]'
            low, high = intervals[column.key].low, intervals[column.key].high
            ends = (1 - high, 1 - low) if column.key == "moLRP" else (low, high)
            assert browser.text(f"{cell} .interval") == DASH.join(f"{100 * end:.2f}" for end in ends)
            told = browser.js("const c = document.querySelector(arguments[0]).dataset; return [c.low, c.high]", cell)
            assert [float(end) for end in told] == pytest.approx(ends, rel=1e-12)
    assert "below numbers: 95 % intervals" in browser.text('[data-caption="summary"]')


def test_intervals_of_map_are_left_out_where_they_take_long(
    results: dict[str, Evaluation], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = results["probabilistic"]
    assert set(box_intervals(result)) == {"mAP", "moLRP"}
    assert box_intervals(result.select_images(result.dataset.image_ids[:1])) == {}  # one image cannot be drawn anew
    monkeypatch.setattr(payload, "MOST_DRAWN", len(result.detections))
    assert set(box_intervals(result)) == {"mAP", "moLRP"}
    monkeypatch.setattr(payload, "MOST_DRAWN", len(result.detections) - 1)
    assert box_intervals(result) == {}


def test_without_a_rival_nothing_is_compared(browser: Browser, page: Path) -> None:
    browser.open(page)
    settle(browser)
    assert "Choose a second detector" in browser.text("#versus-words")
    assert browser.count("#versus-table tr") == 0
    assert browser.count('#classes td[data-column="versus"]') == 0


def cells(browser: Browser, key: str) -> list[str]:
    return browser.texts(f'#versus-table tr[data-key="{key}"] > *')


@pytest.mark.parametrize("threshold", [0.3, 0.7777])
def test_two_detectors_with_intervals_and_tests(
    browser: Browser, page: Path, results: dict[str, Evaluation], threshold: float
) -> None:
    browser.open(page, f"t={threshold}")
    browser.choose("#versus-main", "1")
    browser.choose("#versus-rival", "0")
    settle(browser)
    assert browser.js("return [probox.state().main, probox.state().rival]") == [1, 0]
    assert "against=0" in browser.js("return location.hash")
    both = dict(reversed(at(results, threshold).items()))
    (pair,) = compare(both, measures=["pdq"], per_class=True).pairs
    assert browser.text("#versus-words") == pair.conclusion
    for key in ("PDQ", "spatial", "label"):
        found = pair.columns[key]
        _, first, second, difference, between, p = cells(browser, key)
        assert (first, second) == (f"{100 * found.first.value:.2f}", f"{100 * found.second.value:.2f}")
        assert difference.startswith(points(found.difference.value))
        assert (MARK in difference) == found.claimed
        assert between == f"{points(found.difference.low)} to {points(found.difference.high)}"
        assert p == f"{found.p:.3f}"
    difference = pair.columns["FP"].difference
    assert cells(browser, "FP")[3].startswith(f"{MINUS if difference.value < 0 else '+'}{abs(difference.value):.0f}")
    # mAP follows the threshold too, but nobody knows its interval here.
    summaries = [result.summary()["mAP"] for result in both.values()]
    assert cells(browser, "mAP")[3:] == [points(summaries[0] - summaries[1]), DASH, DASH]
    assert "12 images are few" in browser.text("#versus-method")
    check_classes(browser, pair, list(results["deterministic"].classes))


def check_classes(browser: Browser, pair: Any, classes: list[str]) -> None:
    shown = browser.js(
        "return Object.fromEntries([...document.querySelectorAll('#classes tbody tr')].map((row) => "
        "[row.cells[0].textContent, row.querySelector('[data-column=\"versus\"]').textContent]))"
    )
    assert set(shown) == set(classes)
    for name, difference in pair.classes["PDQ"].items():
        value, ends = difference.difference.value, difference.difference
        assert shown[name].startswith(points(value)), name
        assert shown[name].endswith(f"{points(ends.low)} to {points(ends.high)}"), name
        assert (MARK in shown[name]) == difference.claimed
    claimed = [d for d in pair.classes["PDQ"].values() if d.claimed]
    said = browser.text("#versus-method")
    ahead = sum(d.difference.value > 0 for d in claimed)
    words = f"{pair.first} is ahead in {ahead} and {pair.second} in {len(claimed) - ahead} beyond chance"
    assert (words if claimed else "none differs in PDQ beyond chance") in said


def test_classes_sort_by_the_difference_and_exports_have_its_interval(browser: Browser, page: Path) -> None:
    browser.open(page, "detector=1&against=0")
    settle(browser)
    browser.click('#classes button[data-key="versus"]')
    values = browser.js(
        "return [...document.querySelectorAll('#classes [data-column=\"versus\"]')].map((e) => Number(e.dataset.value))"
    )
    assert values == sorted(values, reverse=True)
    assert len(values) > 3
    lines = browser.js("return probox.exported('classes', 'csv')").split("\r\n")
    assert {f"PDQ {MINUS} deterministic{end}" for end in ("", " low", " high")} <= set(lines[1].split(","))
    browser.click("#versus-table-csv")
    name, text = browser.js("return [probox.downloaded.name, probox.downloaded.text]")
    assert name == "versus.csv"
    assert "swapped between the two" in text.split("\r\n")[0]
    row = next(line for line in text.split("\r\n") if line.startswith("PDQ,")).split(",")
    assert float(row[3]) == pytest.approx(float(row[1]) - float(row[2]))
    assert float(row[4]) < float(row[3]) < float(row[5])


def test_results_that_may_not_be_compared_say_why(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.js("probox.store.index.obstacles['0,1'] = 'they were measured with rulers of another length'")
    browser.choose("#rival", "1")
    settle(browser)
    assert browser.text("#versus-words") == (
        "They cannot be compared: they were measured with rulers of another length."
    )
    assert not browser.js("return document.getElementById('versus-table').checkVisibility()")
    assert browser.count('#classes td[data-column="versus"]') == 0


def test_moving_on_gives_up_what_was_under_way(browser: Browser, page: Path, results: dict[str, Evaluation]) -> None:
    browser.open(page, "against=1")
    for threshold in ("0.2", "0.4", "0.5"):
        browser.choose("#exact", threshold)
    settle(browser)
    expected = compare(at(results, 0.5), measures=["pdq"]).pairs[0].conclusion
    assert browser.text("#versus-words") == expected
    # No sentence stays of a threshold that has gone.
    assert (
        browser.js("probox.update({t: 0.45}); probox.settle(); return probox.byId('versus-words').textContent") == "…"
    )


def test_any_number_of_detectors_can_be_compared(browser: Browser, tmp_path: Path) -> None:
    truth = GroundTruth.from_boxes(["cup"], {1: (64, 48), 2: (64, 48)}, [1, 2], [[10, 10, 40, 40]] * 2, [0, 0])
    both = [
        evaluate(truth, Detections(classes=["cup"], image_ids=[1, 2], boxes=[box] * 2, label_probs=[[0.9], [0.6]]))
        for box in ([10, 10, 40, 40], [12, 10, 40, 40])
    ]
    page, _ = write_report({str(n): both[n % 2] for n in range(26)}, tmp_path / "report")
    browser.open(page, "against=1")
    settle(browser)
    expected = compare({"0": both[0], "1": both[1]}, measures=["pdq"]).pairs[0].conclusion
    assert browser.text("#versus-words") == expected
    assert browser.count('#summary td[data-column="PDQ"] .interval') == 26
