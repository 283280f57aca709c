"""Tables of classes and sizes, curves of a class, and every table as Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from tests.explorer.browser import Browser, percent, settle
from tests.explorer.node import needs_node, run

import probox
from probox import Evaluation
from probox.explorer.page import write_report

pytestmark = pytest.mark.slow  # the walk through the page that always runs is test_explorer.py

AT = 0.7321


def rows_of(browser: Browser, table: str) -> list[dict[str, str]]:
    """Return what a table of groups shows, by headings."""
    browser.js("probox.settle()")
    head = browser.texts(f"#{table} thead th")
    cells = browser.js(
        "return [...document.querySelectorAll(arguments[0])].map(r => [...r.cells].map(c => c.textContent))",
        f"#{table} tbody tr",
    )
    return [dict(zip(head, row, strict=True)) for row in cells]


@pytest.fixture(scope="module")
def at(results: dict[str, Evaluation]) -> Evaluation:
    return results["probabilistic"].at_threshold(AT)


def test_classes_and_sizes_have_cocos_numbers_at_the_threshold(browser: Browser, page: Path, at: Evaluation) -> None:
    browser.open(page, f"t={AT}&detector=1")
    matches, objects = at.box_matches, at.box_matches.objects_per_class()
    right = (matches.matched & ~matches.ignored & 1) == 1
    wrong = (~(matches.matched | matches.ignored) & 1) == 1
    classes = at.per_class()
    shown = rows_of(browser, "classes")
    assert len(shown) > 2
    for row in shown:
        own = matches.labels == at.classes.index(row["class"])
        summary = classes[row["class"]]
        assert row["AP"] == percent(summary["mAP"])
        assert row["1-LRP"] == percent(1 - summary["moLRP"])
        tp, fp = right[own, 0].sum(), wrong[own, 0].sum()
        assert row["Prec"] == (percent(tp / (tp + fp)) if tp + fp else "\u2013")
        assert row["Rec"] == percent(tp / objects[at.classes.index(row["class"]), 0])
    for size, row in enumerate(rows_of(browser, "sizes"), start=1):
        summary = at.per_size()[row["size"]]
        assert row["AP"] == percent(summary["mAP"])
        assert row["1-LRP"] == percent(1 - summary["moLRP"])
        tp, fp = right[:, size].sum(), wrong[:, size].sum()
        assert row["Prec"] == percent(tp / (tp + fp))
        assert row["Rec"] == percent(tp / objects[:, size].sum())


def test_the_curve_is_that_of_the_chosen_class_at_the_threshold(browser: Browser, page: Path, at: Evaluation) -> None:
    browser.open(page, f"t={AT}&iou=75")
    curves = "return probox.recallCurves(probox.store, probox.state())[1].curve"
    precision = at.average_precision.precision[5, :, :, 0]
    np.testing.assert_allclose(browser.js(curves), np.nanmean(precision, axis=1), rtol=1e-9)
    assert browser.text("#h-recall") == "Precision and recall"
    name = browser.text("#classes tbody button")
    browser.js("probox.update({class: probox.store.classes.indexOf(arguments[0])}); probox.settle()", name)
    chosen = precision[:, at.classes.index(name)]
    np.testing.assert_allclose(browser.js(curves), chosen, rtol=1e-9)
    assert browser.text("#h-recall") == f"Precision and recall: {name}"
    assert f"probabilistic {100 * chosen.mean():.1f}" in browser.text("#of-recall")
    assert f"label threshold {AT}" in browser.text("#of-recall")


def test_every_exported_table_says_what_made_it(browser: Browser, page: Path) -> None:
    made = f"convention reference; 12 images; probox {probox.__version__}"
    browser.open(page)
    line = browser.text('[data-caption="summary"]')
    assert line.startswith(f"no label threshold; {made}; below numbers: 95 % intervals, images drawn anew")
    # At a threshold intervals come a moment after the numbers, and the line then says how they were made.
    read = "document.querySelector('[data-caption=summary]').textContent"
    assert browser.js(f"probox.update({{t: {AT}}}); return {read}") == f"label threshold {AT}; {made}"
    settle(browser)
    for table, more in (
        ("summary", "below PDQ, its"),
        ("classes", "columns after PDQ: deterministic"),
        ("sizes", "columns"),
    ):
        line = browser.text(f'[data-caption="{table}"]')
        assert line.startswith(f"label threshold {AT}; {made}; {more}")
        for form, at in (("markdown", -1), ("latex", -1), ("csv", 0)):
            browser.js("probox.copied = probox.downloaded = null")
            browser.click(f"#{table}-{form}")
            told = "return probox.copied ?? probox.downloaded?.text"
            text = browser.wait(lambda told=told: browser.js(told))
            said = text.splitlines()[at]
            assert line in said.replace("\\%", "%")
            assert {"markdown": said.startswith("label"), "latex": "\\footnotesize" in said, "csv": said[0] == "#"}[
                form
            ]


def test_csv_has_all_digits_in_the_order_shown(browser: Browser, page: Path, at: Evaluation) -> None:
    browser.open(page, f"t={AT}&detector=1")
    browser.click("#classes-csv")
    told = browser.wait(lambda: browser.js("return probox.downloaded"))
    assert told["name"] == f"classes-{AT}.csv"
    rows = list(csv.DictReader(io.StringIO(told["text"].split("\r\n", 1)[1])))
    assert [row["class"] for row in rows] == [row["class"] for row in rows_of(browser, "classes")]
    classes = at.per_class()
    for row in rows:
        summary = classes[row["class"]]
        for heading, value in (("AP", summary["mAP"]), ("PDQ probabilistic", summary["PDQ"]), ("TP", summary["TP"])):
            assert float(row[heading]) == pytest.approx(value, rel=1e-12)
        assert (row["1-LRP"] == "") == bool(np.isnan(summary["moLRP"]))


def test_results_of_several_conventions_are_told_apart(browser: Browser, tmp_path: Path) -> None:
    truth = probox.GroundTruth.from_boxes(["cup"], {1: (64, 48)}, [1], [[10, 10, 40, 40]], [0])
    found = probox.Detections(classes=["cup"], image_ids=[1], boxes=[[10, 10, 40, 40]], label_probs=[[0.9]])
    results = {
        "=1+2": probox.evaluate(truth, found, convention=probox.Convention(label_threshold=0.5)),
        'a, "b"': probox.evaluate(truth, found, convention="paper", label_threshold=0.25),
    }
    path, _ = write_report(results, tmp_path / "report")
    browser.open(path)
    browser.click("#summary-csv")
    text = browser.wait(lambda: browser.js("return probox.downloaded")["text"])
    caption, head, *rows = text.splitlines()
    first, second = "=1+2 (reference, > 0.5)", 'a, "b" (paper, > 0.25)'
    assert caption.startswith(
        f"# label threshold 0.5 ({first}), 0.25 ({second}); convention reference ({first}), paper ("
    )
    names = {row[0] for row in csv.reader(rows)}
    assert names == {f"'{first}", second}  # no spreadsheet works it out
    assert head.split(",")[:2] == ["detector", "mAP"]
    browser.choose("#exact", "0.75")
    assert browser.text('[data-caption="summary"]').startswith("label threshold 0.75; convention")


def test_the_line_about_a_table_is_one_line_whatever_is_in_names(browser: Browser, tmp_path: Path) -> None:
    truth = probox.GroundTruth.from_boxes(["cup"], {1: (64, 48)}, [1], [[10, 10, 40, 40]], [0])
    found = probox.Detections(classes=["cup"], image_ids=[1], boxes=[[10, 10, 40, 40]], label_probs=[[0.9]])
    evaluation = probox.evaluate(truth, found)
    path, _ = write_report(dict.fromkeys(("a\n=1+2", "-1+2", "@b", "+c", "=d"), evaluation), tmp_path / "report")
    browser.open(path)
    caption, head, *rows = browser.js("return probox.exported('classes', 'csv')").splitlines()
    assert "columns after PDQ: a =1+2; shares" in caption
    assert (head.split(",")[0], len(rows)) == ("class", 1)
    lines = browser.js("return probox.exported('summary', 'csv')").splitlines()[2:]
    assert {line.split(",")[0] for line in lines} == {"a =1+2", "'-1+2", "'@b", "'+c", "'=d"}


def test_intervals_are_shown_and_exported(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.js(
        "probox.intervalOf = (r, key, t) => key === 'PDQ' && t === null ? { low: 0.1 + r, high: 0.123456 + r } : null;"
        "probox.renderSummaryAgain()"
    )
    assert browser.texts('#summary tr[data-result="0"] td[data-column="PDQ"] .interval') == ["10.00\u201312.35"]
    assert browser.count("#summary .interval") == 2
    browser.click("#summary-csv")
    rows = list(csv.DictReader(io.StringIO(browser.js("return probox.downloaded.text").split("\r\n", 1)[1])))
    assert [(row["PDQ low"], row["PDQ high"]) for row in rows if row["detector"] == "deterministic"] == [
        ("0.1", "0.123456")
    ]
    assert "(10.00\u201312.35)" in browser.js("return probox.exported('summary', 'markdown')")
    assert "(10.00--12.35)" in browser.js("return probox.exported('summary', 'latex')")
    browser.choose("#threshold", "0.5")
    assert browser.count("#summary .interval") == 0


@needs_node
def test_at_rest_everything_is_done_one_after_the_other() -> None:
    script = """
    const done = [];
    globalThis.location = { hash: "" };
    globalThis.history = { replaceState() {} };
    globalThis.addEventListener = () => {};
    globalThis.requestAnimationFrame = (work) => setTimeout(work, 0);
    globalThis.IntersectionObserver = class { constructor(tell) { this.tell = tell; } observe(target) {
      this.tell([{ target, isIntersecting: target === "near" }]); } };
    probox.eachFrame = (work) => () => requestAnimationFrame(work);
    probox.byId = (id) => ({ closest: () => id });
    globalThis.document.documentElement = { dataset: {} };
    probox.Store = class {};
    probox.columns = () => {};
    """
    answer = run(
        "(0, eval)(`${input.script}{${input.state}}`); probox.field('t', null, 't', Number);"
        "for (const [name, when, id] of [['far', 'frame', 'away'], ['here', 'frame', 'near'], ['slow', 'rest', null]]) "
        "probox.follow(['t'], () => done.push(name), when, id);"
        "probox.start({}); const first = [...done]; probox.settle(); done.length = 0;"
        "probox.update({ t: 0.5 }); const waiting = probox.resting; probox.settle();"
        "const answer = { first, waiting, order: done, resting: probox.resting };",
        {"script": script.replace("const done", "var done"), "state": _asset("state.js")},
    )
    assert answer == {"first": [], "waiting": False, "order": ["here", "far", "slow"], "resting": True}


def _asset(name: str) -> str:
    return (Path(probox.__file__).parent / "explorer" / "assets" / name).read_text(encoding="utf-8")
