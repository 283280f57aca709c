"""The explorer in a real Chromium, opened from disk in a folder with spaces in its name."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from tests.amounts import others_slow
from tests.explorer.browser import Browser, percent, summary_cell
from tests.measures.toy import TOY

import probox
from probox import Evaluation
from probox.demo import Demo
from probox.explorer.page import COLOURS, write_report
from probox.measures import registry
from probox.tables.results import Verdict


def test_loads_without_a_word_and_without_leaving_the_page(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.js("document.getElementById('gallery').scrollIntoView({behavior: 'instant'})")
    browser.wait(lambda: browser.count(".tile") == 12)
    browser.js("document.querySelector('.tile').click()")
    browser.wait(lambda: browser.js("return document.getElementById('viewer').open"))
    asked = [url for url in browser.requests() if url != "about:blank"]
    assert any("chunk-0.js" in url for url in asked)
    assert any("/photos/" in url for url in asked)
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


@pytest.mark.parametrize("threshold", [None, *others_slow([0.45, 0.93, 0.01, 0.7, 1.0], 2)])
def test_the_table_is_the_papers_at_any_threshold(
    browser: Browser, page: Path, demo: Demo, threshold: float | None
) -> None:
    browser.open(page)
    if threshold is not None:
        browser.choose("#threshold", str(threshold))
        assert browser.js("return document.getElementById('exact').value") == str(threshold).removesuffix(".0")
    convention = probox.Convention(label_threshold=threshold)
    for number, found in enumerate(demo.detectors.values()):
        summary = probox.evaluate(demo.truth, found, convention=convention).summary()
        for name in ("mAP", "PDQ", "pPDQ", "spatial", "label", "foreground", "background"):
            shown = summary_cell(browser, number, name)
            assert shown == ("\u2013" if np.isnan(summary[name]) else percent(summary[name]))
        assert summary_cell(browser, number, "moLRP") == percent(1 - summary["moLRP"])
        for name in ("TP", "FP", "FN"):
            assert summary_cell(browser, number, name) == str(int(summary[name]))
        readout = browser.text(f'#readout [data-result="{number}"]')
        assert f"{int(summary['TP'])} TP · {int(summary['FP'])} FP · {int(summary['FN'])} FN" in readout
    if threshold is None:
        best = browser.js(
            "return [...document.querySelectorAll('#summary td.best')]"
            ".map(e => e.parentElement.dataset.result + e.dataset.column)"
        )
        assert {"1PDQ", "1FP"} <= set(best)  # of FP, fewer is better
        assert "0PDQ" not in best


def test_a_measure_of_the_registry_has_its_column(
    browser: Browser, demo: Demo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "MEASURES", (*registry.MEASURES, TOY))
    results = {name: probox.evaluate(demo.truth, found) for name, found in demo.detectors.items()}
    path, _ = write_report(results, tmp_path / "report")
    browser.open(path)
    assert browser.texts("#summary thead th")[-2:] == ["FN", "Hit"]
    assert summary_cell(browser, 0, "hit_score") == f"{results['deterministic'].summary()['hit_score']:.4f}"
    best = "return document.querySelector('#summary td.best[data-column=hit_score]').parentElement.dataset.result"
    assert results["deterministic"].summary()["hit_score"] < results["probabilistic"].summary()["hit_score"]
    assert browser.js(best) == "0"  # the toy's low numbers are the better ones
    assert browser.js("return document.querySelector('#summary [data-key=hit_score]').title") == (
        "mean score of true positives, all detections; lower is better"
    )
    assert browser.count('#classes [data-key="hit_score"]') == 0  # it cannot follow the threshold
    browser.choose("#threshold", "0.5")
    assert summary_cell(browser, 0, "hit_score") == "\u2013"  # never the number of another threshold
    hint = browser.js("return document.querySelector('#summary td[data-column=hit_score]').title")
    assert hint.startswith("not available at a threshold")


def test_sorts(browser: Browser, page: Path, results: dict[str, Evaluation]) -> None:
    browser.open(page)
    names = lambda: browser.texts("#summary tbody th")  # noqa: E731
    assert names() == ["deterministic", "probabilistic"]  # as given
    browser.click('#summary [data-key="PDQ"]')
    assert names() == ["probabilistic", "deterministic"]
    browser.click('#summary [data-key="number"]')
    assert names() == ["deterministic", "probabilistic"]
    browser.click('#summary [data-key="number"]')
    assert names() == ["probabilistic", "deterministic"]
    assert browser.js("return document.querySelector('#summary th[aria-sort=descending]').textContent") == "detector"
    for key in ("label", "FN", "foreground"):
        browser.click(f'#summary [data-key="{key}"]')
        assert names() == sorted(results, key=lambda name: -results[name].summary()[key])


def test_copies_as_markdown_and_latex(browser: Browser, page: Path, results: dict[str, Evaluation]) -> None:
    browser.open(page)
    browser.click('#summary [data-key="PDQ"]')
    browser.click("#summary-markdown")
    markdown = browser.wait(lambda: browser.js("return probox.copied"))
    lines = markdown.splitlines()
    assert lines[0] == "| detector | mAP | 1-moLRP | PDQ | pPDQ | Sp | Lbl | FG | BG | TP | FP | FN |"
    assert lines[2].startswith("| probabilistic | ")
    assert f"**{percent(results['probabilistic'].pdq)}**" in lines[2]
    browser.click("#summary-latex")
    browser.wait(lambda: browser.js("return probox.copied") != markdown)
    latex = browser.js("return probox.copied")
    assert latex.startswith("\\begin{tabular}{lrrrrrrrrrrr}\n")
    assert f"\\textbf{{{percent(results['probabilistic'].pdq)}}}" in latex


def test_bars_of_sizes_follow_the_slider_too(browser: Browser, page: Path, results: dict[str, Evaluation]) -> None:
    browser.open(page)
    browser.choose("#exact", "0.8")
    browser.js("document.getElementById('chart-sizes').scrollIntoView({behavior: 'instant'})")
    for result in results.values():
        bars = {percent(row["PDQ"]) for row in result.at_threshold(0.8).per_size().values() if np.isfinite(row["PDQ"])}
        browser.wait(lambda bars=bars: bars <= set(browser.texts("#chart-sizes text")))


def test_a_click_on_a_class_filters_the_gallery(browser: Browser, page: Path, results: dict[str, Evaluation]) -> None:
    browser.open(page, "detector=1")
    key = results["probabilistic"].classes.index("leaf")
    browser.click(f'#classes [data-key="row-{key}"]')
    table, objects = results["probabilistic"].detections, results["probabilistic"].objects
    with_leaf = set(objects.image_rows[objects.labels == key].tolist())
    with_leaf |= set(table.image_rows[(table.labels == key) & (table.verdicts == Verdict.FP)].tolist())
    browser.wait(lambda: browser.text("#found").startswith(f"{len(with_leaf)} images"))
    assert "class=leaf" in browser.js("return location.hash")
    browser.choose("#verdict", "FN")
    missed = objects.image_rows[(objects.labels == key) & (objects.verdicts == Verdict.FN)]
    browser.wait(lambda: browser.text("#found").startswith(f"{len(set(missed.tolist()))} image"))
    browser.click("#clear")
    browser.wait(lambda: browser.text("#found").startswith("12 images"))


def test_filters_by_quality_range_and_name(browser: Browser, page: Path, results: dict[str, Evaluation]) -> None:
    browser.open(page, "detector=1&quality=spatial&from=0&to=0.3")
    table = results["probabilistic"].detections
    poor = table.image_rows[(table.verdicts == Verdict.TP) & (table.quality("spatial") <= 0.3)]
    browser.wait(lambda: browser.text("#found").startswith(f"{len(set(poor.tolist()))} image"))
    browser.open(page)
    browser.choose("#find", "scene-07")
    browser.wait(lambda: browser.text("#found").startswith("1 image "))
    assert browser.js("return probox.order") == [6]


@pytest.mark.parametrize("sort", others_slow(["worst", "best", "missed", "wrong"]))
def test_sorts_the_gallery(browser: Browser, page: Path, results: dict[str, Evaluation], sort: str) -> None:
    browser.open(page, "detector=1")
    browser.choose("#sort", sort)
    order = browser.js("return probox.order")
    per_image = results["probabilistic"].per_image().columns
    lost = per_image["TP"] + per_image["FP"] + per_image["FN"] - per_image["sum_pPDQ"]
    key = {"worst": -lost, "best": -per_image["PDQ"], "missed": -per_image["FN"], "wrong": -per_image["FP"]}
    assert order == np.lexsort((np.arange(12), key[sort])).tolist()


def test_an_address_that_makes_no_sense_is_no_harm(browser: Browser, page: Path) -> None:
    browser.open(page, "t=7&detector=9&beside=-1&class=%3Cscript%3E&layers=xyz&pick=q9&image=abc&sort=up&from=a")
    assert summary_cell(browser, 0, "TP")
    browser.open(page, "image=999")
    browser.wait(lambda: "no image 999" in browser.text("#message"))


def smallest_text(browser: Browser) -> float:
    return float(
        browser.js(
            "const written = (e) => [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());"
            "const shown = [...document.querySelectorAll('body *')].filter(e => e.checkVisibility() && written(e));"
            "return Math.min(...shown.map(e => parseFloat(getComputedStyle(e).fontSize)))"
        )
    )


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dark"), [(1360, False), (390, False), (390, True)])
def test_is_readable_on_a_desk_and_on_a_phone(browser: Browser, page: Path, width: int, dark: bool) -> None:
    browser.resize(width, 844, dark=dark)
    for address in ("", "image=2&beside=1"):
        browser.open(page, address)
        if address:
            browser.wait(lambda: browser.count("#items .item"))
        assert smallest_text(browser) >= 12
        # Nothing makes the page itself scroll sideways.
        assert browser.js("return document.documentElement.scrollWidth") <= width
    ground = browser.js("return getComputedStyle(document.body).backgroundColor")
    light = np.mean([int(number) for number in re.findall(r"\d+", ground)[:3]])
    assert (light < 60) == dark


@pytest.mark.slow
def test_the_theme_can_be_switched(browser: Browser, page: Path) -> None:
    browser.open(page)
    before = browser.js("return getComputedStyle(document.body).backgroundColor")
    browser.click("#theme")
    assert browser.js("return getComputedStyle(document.body).backgroundColor") != before
    browser.click("#theme")
    assert browser.js("return getComputedStyle(document.body).backgroundColor") == before


@pytest.mark.slow
def test_everything_is_reached_by_tab(browser: Browser, page: Path) -> None:
    browser.open(page)
    seen: list[str] = []
    while "tile" not in seen and len(seen) < 200:
        browser.keys("TAB")
        seen.append(browser.js("const e = document.activeElement; return e.id || e.dataset.key || e.className"))
    for name in (
        "threshold",
        "exact",
        "summary-markdown",
        "summary-csv",
        "PDQ",
        "of",
        "row-0",
        "sort",
        "class",
        "verdict",
        "find",
        "tile",
    ):
        assert name in seen


NASTY = "<img src=x onerror=alert(1)><script>alert(2)</script>\"'&amp; </script> \u2028"


def test_names_with_markup_are_shown_as_text(browser: Browser, tmp_path: Path) -> None:
    truth = probox.GroundTruth.from_boxes([NASTY, "cup"], {1: (64, 48)}, [1], [[10, 10, 40, 40]], [0])
    truth = truth.replace(dataset=truth.dataset.replace(file_names=(NASTY,)))
    found = probox.Detections(
        classes=[NASTY, "cup"],
        image_ids=[1],
        boxes=[[10, 10, 40, 40]],
        label_probs=[[0.9, 0.1]],
        source=NASTY,
        notes=[NASTY],
    )
    result = probox.evaluate(truth, found)
    for embed in (False, True):
        path, _ = write_report({NASTY: result}, tmp_path / f"nasty {embed}", title=NASTY, embed=embed)
        browser.open(path, "image=1")
        browser.wait(lambda: browser.count("#items .item"))
        assert browser.js("return document.querySelector('img, main script, dialog script')") is None
        assert browser.text("#title") == NASTY
        assert browser.text("h1") == NASTY
        assert NASTY in browser.text("#classes")
        assert NASTY in browser.text("#summary")
        assert NASTY in browser.text("#about")


def nothing(n: int, images: dict[int, tuple[int, int]]) -> tuple[probox.GroundTruth, probox.Detections]:
    truth = probox.GroundTruth.from_boxes(["cup"], images, [], np.zeros((0, 4)), [])
    boxes = np.tile([[1.0, 1.0, 5.0, 5.0]], (n, 1))
    probs = np.full((n, 1), 0.5)
    return truth, probox.Detections(classes=["cup"], image_ids=[7] * n, boxes=boxes, label_probs=probs)


@pytest.mark.parametrize(("found", "images"), [(0, {}), (0, {7: (20, 10)}), (2, {7: (20, 10)})])
def test_a_report_of_next_to_nothing(
    browser: Browser, tmp_path: Path, found: int, images: dict[int, tuple[int, int]]
) -> None:
    result = probox.evaluate(*nothing(found, images), measures=("pdq",))
    path, _ = write_report({"none": result}, tmp_path / "r")
    browser.open(path, "image=7" if images else "")
    assert summary_cell(browser, 0, "FP") == str(found)
    assert summary_cell(browser, 0, "PDQ") == ("0.00" if found else "\u2013")
    assert browser.count('#summary [data-key="mAP"]') == 0
    browser.choose("#threshold", "0.6")
    assert summary_cell(browser, 0, "FP") == "0"


# --- many detectors -------------------------------------------------------------------------------------------------

SEVEN = (
    "zebra_run_with_a_rather_long_name_00001",
    "empty_submission_of_some_team_round_002",
    "resnet101_fpn_3x_iou065_score0001_no_03",
    "resnet101_fpn_3x_iou065_score0001_no_04",
    "resnet101_fpn_3x_iou065_score0001_no_05",
    "resnet101_fpn_3x_iou065_score0001_no_06",
    "a_detector_that_comes_last_though_an_a_",
)


@pytest.fixture(scope="module")
def seven(demo: Demo, results: dict[str, Evaluation], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of seven detectors with long names: six are equal, the second has no detections."""
    empty = probox.evaluate(demo.truth, demo.detectors["deterministic"].select(np.zeros(0, int)))
    named = {name: empty if name == SEVEN[1] else results["deterministic"] for name in SEVEN}
    return write_report(named, tmp_path_factory.mktemp("seven") / "r")[0]


def test_seven_detectors_stay_in_the_order_given(browser: Browser, seven: Path) -> None:
    browser.open(seven)
    browser.wait(lambda: browser.count("#legend span"))
    assert browser.texts("#summary tbody th") == list(SEVEN)
    assert browser.texts("#verdicts h3") == list(SEVEN)
    assert browser.texts("#legend span") == list(SEVEN)
    assert browser.texts("#detector option") == list(SEVEN)
    assert browser.count("#summary td.best") == 0  # neither equals nor an empty submission are the best


def test_seven_long_names_fit_a_window_of_1400_pixels(browser: Browser, seven: Path) -> None:
    browser.resize(1400, 900)
    browser.open(seven)
    browser.wait(lambda: browser.count("#sizes thead th"))
    assert browser.js("return document.documentElement.scrollWidth") <= 1400
    cut = browser.js(
        """
        const tables = [...document.querySelectorAll('#summary, #classes, #sizes')].map((e) => e.closest('.scroll'));
        const names = [...document.querySelectorAll('#summary tbody th, #classes thead button, #readout')];
        const outside = (e) => e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1;
        return [...tables.filter((e) => e.scrollWidth > e.clientWidth + 1), ...names.filter(outside)]
          .map((e) => e.textContent.slice(0, 60));
        """
    )
    assert cut == []
    shown = browser.texts("#readout .name")
    assert len(set(shown)) == 7  # shortened, names still differ
    assert browser.js("return document.querySelector('#readout .name').title") == SEVEN[0]


def test_sections_have_the_titles_of_the_menu(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert browser.texts("main > section:not([hidden]) h2") == browser.texts("#sections a:not([hidden])")
    browser.open(page, "show=objects")
    assert browser.text("#gallery h2") == "Gallery"


def test_one_click_leads_to_the_gallery(browser: Browser, page: Path) -> None:
    for width in (1400, 390):
        browser.resize(width, 844)
        browser.open(page)
        left, right = browser.js(
            "const b = document.getElementById('to-gallery').getBoundingClientRect(); return [b.left, b.right]"
        )
        assert 0 <= left < right <= width
        browser.click("#to-gallery")
        browser.wait(
            lambda: 0 < browser.js("return document.getElementById('h-gallery').getBoundingClientRect().top") < 400
        )


def test_tables_name_their_detector(browser: Browser, results: dict[str, Evaluation], tmp_path: Path) -> None:
    browser.open(write_report({"only one": results["probabilistic"]}, tmp_path / "r")[0])
    browser.wait(lambda: browser.count("#sizes thead th"))
    assert browser.texts("#classes thead th")[2] == browser.texts("#sizes thead th")[2] == "PDQ only one"
    assert browser.texts(".groups .whose") == ["columns after PDQ: only one"] * 2
    assert "columns after PDQ: only one" in browser.js("return probox.exported('classes', 'markdown')")
    assert browser.js("return document.getElementById('confusion-detector').checkVisibility()")


def test_1_minus_lrp_is_called_so(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.wait(lambda: browser.count("#classes thead th"))
    heading = "return ['textContent', 'title'].map(name => document.querySelector(arguments[0])[name])"
    for place, name in (("#summary [data-key=moLRP]", "1-moLRP"), ("#classes [data-key=LRP]", "1-LRP")):
        text, hint = browser.js(heading, place)
        assert text == name
        assert "higher is better" in hint
    assert "1 minus the optimal" in hint
    assert "1-moLRP: 1 minus the mean optimal" in browser.text("section:has(#summary) > p.note:not(.caption)")


# --- what pictures show ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a page of images with a hundred detections, with nothing, and with a match of the wrong class."""
    classes = ["boat", "scissors"]
    truth = probox.GroundTruth.from_boxes(
        classes, {1: (200, 200), 2: (200, 200), 3: (200, 200)}, [1, 3], [[20, 20, 80, 80], [20, 20, 80, 80]], [0, 1]
    )
    corners = np.random.default_rng(0).uniform(0, 150, (99, 2))
    boxes = [[20, 20, 80, 80], *np.hstack([corners, corners + 40]).tolist(), [20, 20, 80, 80]]
    confident, other = [[0.9, 0.05]], [[0.8, 0.2]]
    weak = np.column_stack([np.linspace(0.02, 0.3, 99), np.zeros(99)]).tolist()
    found = probox.Detections(
        classes=classes,
        image_ids=[*[1] * 100, 3],
        boxes=boxes,
        label_probs=[*confident, *weak, *other],
        covariances=np.tile(4.0 * np.eye(2), (101, 2, 1, 1)),
    )
    return write_report({"a": probox.evaluate(truth, found)}, tmp_path_factory.mktemp("crowded") / "r")[0]


COUNT_RINGS = """
const own = CanvasRenderingContext2D.prototype.ellipse;
window.rings = [];
CanvasRenderingContext2D.prototype.ellipse = function (...given) {
  window.rings.push(given[2]);
  own.apply(this, given);
};
probox.redraw();
"""


def test_pictures_show_what_is_above_the_best_threshold_and_all_on_demand(browser: Browser, crowded: Path) -> None:
    browser.open(crowded, "image=1")
    browser.wait(lambda: browser.count("#items .item"))
    browser.js(COUNT_RINGS)
    browser.wait(lambda: browser.js("return window.rings.length > 0"))
    assert browser.js("return window.rings") == pytest.approx([2.0, 2.0])  # one std, at both corners of one detection
    said = browser.text(".pane .limit")
    assert said.startswith("1 of 100 detections drawn: above 0.3")
    assert "best threshold on these images" in said
    assert [label["text"] for label in browser.js("return probox.panes()[0].labels")] == ["boat 90"]
    browser.js("window.rings = []")
    browser.click(".pane .limit button")
    browser.wait(lambda: browser.js("return window.rings.length") == 200)
    assert browser.text(".pane .limit").startswith("All 100 detections drawn")
    assert "detections=all" in browser.js("return location.hash")


def test_at_most_20_detections_have_rings_and_labels(browser: Browser, crowded: Path) -> None:
    browser.open(crowded, "image=1&t=0.05")
    browser.wait(lambda: browser.count("#items .item") > 80)
    browser.js(COUNT_RINGS)
    browser.wait(lambda: browser.js("return window.rings.length") == 40)
    assert 10 < browser.js("return probox.panes()[0].labels.length") <= 20
    assert browser.text(".pane .limit") == ""  # the threshold that is set says what is shown


def test_the_gallery_says_what_its_pictures_show_and_an_empty_one_comes_last(browser: Browser, crowded: Path) -> None:
    browser.open(crowded)
    assert browser.text("#sort option:checked") == "largest loss"
    assert browser.js("return probox.order") == [0, 2, 1]  # the second image has neither objects nor detections
    assert "above 0.3" in browser.text("#limit")
    browser.js("document.querySelector('#limit button').click()")
    assert browser.text("#limit").startswith("Images show all detections.")


def test_a_match_of_the_wrong_class_says_so_in_its_own_colour(browser: Browser, crowded: Path) -> None:
    browser.open(crowded, "image=3&pick=d0")
    browser.wait(lambda: browser.count("#items .item"))
    assert browser.texts(".item.wrong-class > span:first-child") == ["boat (truth: scissors) 80.0"]
    assert browser.wait(lambda: browser.js("return probox.panes()[0].labels?.map(one => one.text)")) == [
        "boat (truth: scissors) 80"
    ]
    picked = browser.text("#picked")
    assert "boat (truth: scissors)" in picked
    assert "wrong class" in picked
    view = "const view = probox.store.view(0, null);"
    colours = browser.js(f"{view} return [probox.outcomeColour(view, 'd', 100), probox.outcomeColour(view, 'o', 1)]")
    assert set(colours) == {COLOURS["wrong-class"][0]}
    browser.open(crowded, "show=objects&class=scissors")
    browser.js("document.getElementById('gallery').scrollIntoView({behavior: 'instant'})")
    browser.wait(lambda: browser.count("#grid .said"))
    assert browser.text("#grid .said .name") == "boat (truth: scissors)"
    browser.js(COUNT_RINGS)
    browser.wait(lambda: browser.js("return window.rings.length > 0"))
    assert set(browser.js("return window.rings")) == {2.0}  # one std here, too
    assert browser.count("#grid .numbers.wrong-class") == 1


def test_own_rules_of_map_are_those_of_the_page(browser: Browser, demo: Demo, tmp_path: Path) -> None:
    own = {"iou_thresholds": (0.3, 0.6), "max_detections": (1, 3), "area_ranges": ((0, 900), (900, 4e3), (4e3, 1e10))}
    results = {name: probox.evaluate(demo.truth, found, **own) for name, found in demo.detectors.items()}
    browser.open(write_report(results, tmp_path / "report")[0])
    for threshold in (None, 0.5):
        if threshold is not None:
            browser.choose("#threshold", str(threshold))
        for number, result in enumerate(results.values()):
            at = result if threshold is None else result.at_threshold(threshold)
            for key in ("mAP", "PDQ"):
                assert summary_cell(browser, number, key) == percent(at.summary()[key])
            assert summary_cell(browser, number, "moLRP") == percent(1 - at.summary()["moLRP"])
    told = browser.text("#comparability")
    for name, result in results.items():
        words = ", ".join(map(str, result.comparability))
        assert f"{name}: not comparable with published values: {words}." in told
    assert browser.texts("#iou option") == ["0.50"]  # 0.75 is not matched
    assert "IoU 0.30,0.60" in browser.js("return document.querySelector('#classes [data-key=AP]').title")


def test_a_page_has_one_set_of_rules(browser: Browser, page: Path, demo: Demo, tmp_path: Path) -> None:
    browser.open(page)
    assert browser.js("return document.getElementById('comparability').hidden")
    truth, found = demo.truth, demo.detectors["probabilistic"]
    results = {"one": probox.evaluate(truth, found), "other": probox.evaluate(truth, found, iou_thresholds=(0.5,))}
    with pytest.raises(probox.InputError, match="'one' and 'other' were evaluated with different iou_thresholds, max_"):
        write_report(results, tmp_path / "report")
