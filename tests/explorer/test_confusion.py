"""The page's confusion matrix: counts as Python has them, and cells that choose what the gallery shows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.explorer.browser import Browser
from tests.explorer.node import needs_node, run
from tests.strategies import random_world

from probox import Convention, Evaluation, evaluate
from probox.explorer.payload import index_payload

pytestmark = pytest.mark.slow  # the walk through the page that always runs is test_explorer.py

COUNTED = """
const answer = input.map(({ index, thresholds }) => {
  const store = new probox.Store(index);
  return thresholds.map((threshold) => {
    const counts = probox.confusion(store, store.view(0, threshold));
    return { counts: counts.map((row) => [...row]), most: [1, 2, 9].map((most) => probox.mostConfused(counts, most)) };
  });
});
"""
THRESHOLDS = [None, 0.25, 0.4321, 0.8]


@needs_node
def test_counts_are_python_s_at_every_threshold() -> None:
    conventions = (Convention(), Convention(object_filter=True))
    results = [
        evaluate(*random_world(seed, max_images=9), convention=convention, measures=["pdq"])
        for seed in range(8)
        for convention in conventions
    ]
    told = [
        {
            "index": index_payload({"": result}, [""] * len(result.dataset), 50, [""] * len(result.dataset)),
            "thresholds": THRESHOLDS,
        }
        for result in results
    ]
    answers = run(COUNTED, told)
    for result, answer in zip(results, answers, strict=True):
        for threshold, page in zip(THRESHOLDS, answer, strict=True):
            counted = (result if threshold is None else result.at_threshold(threshold)).confusion()
            expected = np.concatenate([counted.matrix, counted.unnamed[:, None]], axis=1)
            assert page["counts"] == expected.tolist()
            assert page["most"] == [counted.most_confused(most) for most in (1, 2, 9)]


def matrix(browser: Browser) -> tuple[list[str], list[list[float]]]:
    """Return the names of the rows and the values of the cells, background against background left out."""
    rows = browser.texts("#confusion-table tbody th")
    values = browser.js(
        "return [...document.querySelectorAll('#confusion-table tbody tr')].map((row) => "
        "[...row.querySelectorAll('td')].map((cell) => Number(cell.dataset.value ?? 0)))"
    )
    return rows, values


@pytest.mark.parametrize("threshold", [None, 0.6, 0.8123])
def test_the_matrix_follows_threshold_and_detector(
    browser: Browser, page: Path, results: dict[str, Evaluation], threshold: float | None
) -> None:
    browser.open(page, "" if threshold is None else f"t={threshold}")
    for number, result in enumerate(results.values()):
        browser.choose("#confusion-detector", str(number))
        browser.wait(lambda: browser.js("return probox.resting"))
        counted = (result if threshold is None else result.at_threshold(threshold)).confusion()
        rows, values = matrix(browser)
        assert rows == [*counted.classes, "background"]
        assert browser.texts("#confusion-table thead th")[1:] == rows
        assert values == counted.matrix.tolist()
        mixed = int(counted.count_mixed().sum() / 2)
        assert browser.text("#confusion-note").startswith(f"{mixed} of {counted.tp} matched detections")


def test_shares_of_the_rows(browser: Browser, page: Path, results: dict[str, Evaluation]) -> None:
    browser.open(page, "detector=1")
    browser.click("#confusion-shares")
    browser.wait(lambda: browser.js("return probox.resting"))
    assert "shares=yes" in browser.js("return location.hash")
    shares = results["probabilistic"].confusion().shares()
    np.testing.assert_allclose(matrix(browser)[1], shares)
    assert browser.text('#confusion-table td[data-cell="0>0"]') == f"{100 * shares[0, 0]:.1f}"
    text = browser.js("return probox.exported('confusion-table', 'csv')")
    assert "probabilistic; shares of the rows" in text.split("\r\n")[0]


def test_a_cell_chooses_its_images_by_hand_and_by_key(
    browser: Browser, page: Path, results: dict[str, Evaluation]
) -> None:
    counted = results["probabilistic"].confusion()
    classes = len(counted.classes)
    mixed = [(int(t), int(p)) for t, p in np.argwhere(counted.matrix[:classes, :classes]) if t != p]
    cells = {
        f"{mixed[0][0]}>{mixed[0][1]}": (counted.matrix[mixed[0]], "taken for"),
        "0>-": (counted.matrix[0, classes], "missed"),
        "->1": (counted.matrix[classes, 1], "false positives"),
    }
    browser.open(page, "detector=1")
    for cell, (expected, words) in cells.items():
        button = f'#confusion-table [data-key="{cell}"]'
        name = browser.js("return document.querySelector(arguments[0]).getAttribute('aria-label')", button)
        assert words in name
        browser.js("document.querySelector(arguments[0]).focus()", button)
        browser.keys("ENTER")
        browser.wait(lambda: browser.js("return probox.resting"))
        assert browser.js("return probox.state().confused") == cell
        assert f"with {expected} " in browser.text("#found")
        assert browser.js("return document.querySelector(arguments[0]).getAttribute('aria-pressed')", button) == "true"
    browser.click("#clear")
    assert browser.js("return probox.state().confused") is None
    browser.open(page, "detector=1&confused=0>-")
    assert browser.js("return probox.state().confused") == "0>-"
    for nonsense in ("->-", "99>0", "0", "0>1>2", "x>1"):
        browser.open(page, f"confused={nonsense}")
        assert browser.js("return probox.state().confused") is None


def test_the_matrix_is_a_table_for_screen_readers_and_spreadsheets(
    browser: Browser, page: Path, results: dict[str, Evaluation]
) -> None:
    browser.open(page, "detector=1&t=0.5")
    assert browser.count("#confusion-table caption") == 1
    assert browser.count('#confusion-table thead th[scope="col"]') == len(results["probabilistic"].classes) + 2
    assert browser.count('#confusion-table tbody th[scope="row"]') == len(results["probabilistic"].classes) + 1
    lines = browser.js("return probox.exported('confusion-table', 'csv')").strip().split("\r\n")
    assert "label threshold 0.5" in lines[0]
    assert "probabilistic; counts" in lines[0]
    counted = results["probabilistic"].at_threshold(0.5).confusion()
    values = [[int(cell or 0) for cell in line.split(",")[1:]] for line in lines[2:]]
    assert values == counted.matrix.tolist()


def test_arrows_go_from_cell_to_cell(browser: Browser, page: Path, results: dict[str, Evaluation]) -> None:
    browser.open(page, "detector=1")
    assert browser.count('#confusion-table button[tabindex="0"]') == 1
    browser.js("document.querySelector('#confusion-table button[tabindex=\"0\"]').focus()")
    matrix = results["probabilistic"].confusion().matrix
    here = lambda: browser.js("return document.activeElement.dataset.key")  # noqa: E731
    assert here() == "0>0"
    right = next(column for column in range(1, len(matrix)) if matrix[0, column])
    down = next(row for row in range(1, len(matrix)) if matrix[row, 0])
    names = [*map(str, range(len(matrix) - 1)), "-"]
    browser.keys("ARROW_RIGHT")
    assert here() == f"0>{names[right]}"
    browser.keys("ARROW_LEFT", "ARROW_LEFT")  # there is nothing further left
    assert here() == "0>0"
    browser.keys("ARROW_DOWN")
    assert here() == f"{names[down]}>0"
    assert browser.count('#confusion-table button[tabindex="0"]') == 1
    browser.keys("ARROW_UP", "ARROW_UP")
    assert here() == "0>0"
