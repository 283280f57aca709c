"""The verdict and the section that says why, in a real browser: words, numbers as text, what is shown of whom."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.explorer.browser import Browser

from probox import Detections, Evaluation, GroundTruth, evaluate
from probox.analysis.diagnosis import summarize_for_page
from probox.analysis.loss_breakdown import PARTS, compute_budget, what_if_matched
from probox.explorer.page import write_report
from probox.measures.scoring.calibration_metrics import ause, coverage, edge_levels, pit_histogram, pit_values, spearman
from probox.measures.scoring.pair_measures import relative_edges
from probox.plots.base import sigmas_of_edges
from probox.plots.calibration_plots import bin_scores, compute_coverage

pytestmark = pytest.mark.slow  # the walk through the page that always runs is test_explorer.py

CARDS = ("budget", "what-if", "reliability", "coverage", "pit", "sparsification", "sigma")


def opened(browser: Browser, page: Path, address: str = "") -> None:
    browser.open(page, address)
    browser.wait(lambda: browser.js("return probox.resting"))


def cells(browser: Browser, card: str) -> list[list[str]]:
    """Return the rows of a card's table of numbers."""
    script = "return [...document.querySelectorAll(arguments[0])].map(row => [...row.cells].map(c => c.textContent))"
    return [list(row) for row in browser.js(script, f"#table-{card} tbody tr")]


def label(browser: Browser, selector: str) -> str:
    return str(browser.js("return document.querySelector(arguments[0]).getAttribute('aria-label')", selector))


def percent(value: float, digits: int) -> str:
    return "\N{EN DASH}" if np.isnan(value) else f"{100 * value:.{digits}f}"


def test_the_verdict_is_python_s_and_says_of_which_threshold(
    browser: Browser, page: Path, results: dict[str, Evaluation]
) -> None:
    opened(browser, page)
    for number, evaluation in enumerate(results.values()):
        said = browser.texts(f'#verdicts [data-result="{number}"] li')
        short = summarize_for_page(evaluation)[0]
        expected = list(short.verdict)
        notes = browser.texts(f'#verdicts [data-result="{number}"] .note')
        assert notes == [f"Note: {remark}." for remark in short.notes]
        assert [text[0].lower() + text[1:] for text in said] == [text[0].lower() + text[1:] for text in expected]
    assert browser.text("#verdict-of") == "of all detections"
    assert "probox diagnose" in browser.text("#verdict-more")
    browser.choose("#threshold", "0.3")
    assert browser.text("#verdict-of") == "of all detections, not of the threshold 0.3 that is set now"
    assert browser.js("return document.querySelector('#verdicts').classList.contains('moved')")


@pytest.mark.parametrize("threshold", [None, 0.37])
def test_every_card_has_the_numbers_of_its_threshold_as_text(
    browser: Browser, page: Path, results: dict[str, Evaluation], threshold: float | None
) -> None:
    opened(browser, page, "" if threshold is None else f"t={threshold}")
    at = [one if threshold is None else one.at_threshold(threshold) for one in results.values()]
    budgets = [compute_budget(one) for one in at]
    for row, budget in zip(cells(browser, "budget"), budgets, strict=True):
        assert row[1:] == [percent(getattr(budget, part), 2) for part in ("pdq", *PARTS) if part != "rounding"]
        assert f"false positives {percent(budget.false_positives, 1)}" in label(browser, "#chart-budget svg")
    shown = {row[0]: row[1::2] for row in cells(browser, "what-if")}
    answers = [{answer.key: answer.pdq for answer in what_if_matched(one, None)} for one in at]
    assert shown["no false positives"] == [percent(one["no_false_positives"], 2) for one in answers]
    assert shown["no duplicates"] == [percent(one["no_duplicates"], 2) for one in answers]
    for number, one in enumerate(at):
        n, hits, _ = bin_scores(one)
        rows = cells(browser, "reliability")
        assert [row[1 + 3 * number] for row in rows] == [f"{int(count):,}" for count in n]
        with np.errstate(invalid="ignore"):
            assert [row[3 + 3 * number] for row in rows] == [percent(value, 1) for value in hits / n]
    (spread,) = (one for one in at if one.detections.covariances.any())
    check_sigmas(browser, spread)
    for card in CARDS:
        words = browser.text(f"#of-{card}")
        assert words, card
    assert label(browser, "#chart-coverage svg").startswith("coverage against")


def check_sigmas(browser: Browser, at: Evaluation) -> None:
    """Compare the tables of the one result that has sigmas."""
    pairs = at.matched_pairs
    edges, boxes = compute_coverage(pairs)
    for row, k in zip(cells(browser, "coverage"), (50, 68, 90, 95), strict=True):
        assert row[1:] == [percent(edges[k], 1), percent(boxes[k], 1)]
    sigmas, present = sigmas_of_edges(pairs)
    own = pit_histogram(pit_values(pairs.residuals[present[:, 0], 0], sigmas[present[:, 0], 0]))
    assert [row[1] for row in cells(browser, "pit")] == [percent(share, 1) for share in own]
    sigma, error, there = relative_edges(pairs)
    assert f"AUSE {ause(sigma[there], error[there]):.2f}" in browser.text("#of-sparsification")
    assert f"Spearman {spearman(sigma[there], error[there]):.2f}" in browser.text("#of-sigma")


def test_coverage_of_one_edge_is_kept_in_the_address(
    browser: Browser, page: Path, results: dict[str, Evaluation]
) -> None:
    opened(browser, page, "edge=y2")
    pairs = results["probabilistic"].matched_pairs
    sigmas, present = sigmas_of_edges(pairs)
    levels = edge_levels(pairs.residuals[present[:, 3], 3], sigmas[present[:, 3], 3])
    assert cells(browser, "coverage")[1][1] == percent(coverage(levels, 0.68), 1)
    browser.choose("#edge", "")
    browser.wait(lambda: browser.js("return probox.resting"))
    assert cells(browser, "coverage")[1][1] == percent(compute_coverage(pairs)[0][68], 1)
    assert "edge" not in browser.js("return location.hash")


def test_parts_fill_their_bar_and_differ_by_more_than_colour(browser: Browser, page: Path) -> None:
    opened(browser, page)
    widths = browser.js(
        "return [...document.querySelectorAll('#chart-budget .part')].map(e => Number(e.getAttribute('width')))"
    )
    full = browser.js("return document.querySelector('#chart-budget').clientWidth")
    assert sum(widths) == pytest.approx(2 * full, abs=0.1)
    looks = browser.js(
        "const plain = (e) => e.innerHTML.replace(/(fill|stroke)=.#[^\"]*./g, '');"
        "return [...document.querySelectorAll('#chart-budget pattern')].map(plain)"
    )
    assert len(set(looks)) == len(looks) == 6
    shapes = browser.js("return [...document.querySelectorAll('#why-legend .mark')].map(e => e.getAttribute('d'))")
    assert len(set(shapes)) == len(shapes) == 2


def test_a_point_of_sigma_against_error_opens_its_image(browser: Browser, page: Path) -> None:
    opened(browser, page)
    browser.js("document.querySelector('#chart-sigma').scrollIntoView({block: 'center', behavior: 'instant'})")
    opens = browser.js(
        "const line = document.querySelector('#chart-sigma .over'); const box = line.getBoundingClientRect();"
        "for (let x = 60; x < box.width - 20; x += 3) for (let y = 30; y < 260; y += 3) {"
        "  line.dispatchEvent(new PointerEvent('pointermove', {clientX: box.x + x, clientY: box.y + y}));"
        "  if (!line.classList.contains('pickable')) continue;"
        "  line.dispatchEvent(new MouseEvent('click', {clientX: box.x + x, clientY: box.y + y, bubbles: true}));"
        "  return true; }"
        "return false"
    )
    assert opens
    browser.wait(lambda: browser.js("return document.querySelector('#viewer').open"))
    assert browser.js("return probox.state().pick").startswith("d")


def cups(scores: list[float], sigma: float | None) -> Detections:
    boxes = [[10.0 + i, 10.0, 40.0 + i, 40.0] for i in range(len(scores))]
    given = None if sigma is None else np.tile(np.eye(2) * sigma**2, (len(scores), 2, 1, 1))
    probs = np.array(scores, np.float32)[:, None]
    return Detections(classes=["cup"], image_ids=[1] * len(scores), boxes=boxes, label_probs=probs, covariances=given)


def test_plain_boxes_and_few_pairs_have_words_in_place_of_a_curve(browser: Browser, tmp_path: Path) -> None:
    truth = GroundTruth.from_boxes(["cup"], {1: (64, 48)}, [1], [[10, 10, 40, 40]], [0])
    plain, spread = evaluate(truth, cups([0.9, 0.8], None)), evaluate(truth, cups([0.9, 0.8], 3.0))
    page, _ = write_report({"plain": plain, "spread": spread}, tmp_path / "mixed")
    opened(browser, page)
    for card in ("coverage", "pit", "sparsification", "sigma"):
        words = browser.text(f"#of-{card}")
        assert "plain: plain boxes: no sigma to judge" in words
        assert "1 pair (fewer than 30 say little)" in words
    assert "2 detections (fewer than 30 say little)" in browser.text("#of-reliability")
    opened(browser, page, "t=0.95")
    assert browser.text("#chart-coverage") == browser.text("#chart-pit") == "no pairs to judge"

    page, _ = write_report({"plain": plain}, tmp_path / "plain")
    opened(browser, page)
    assert "All boxes are plain" in browser.text("#no-sigma p")
    assert browser.js("return [...document.querySelectorAll('#why .sigma')].every(card => card.hidden)")
