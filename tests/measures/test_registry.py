"""The registry: measures keep what they say of themselves, and a new one shows up everywhere."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.measures.toy import TOY
from tests.strategies import with_box_masks

import probox

# Help texts, made once, name the standard measures: they are made before the toy is one of them.
import probox.cli.evaluate
from probox import Detections, Evaluation, InputError
from probox.cli import main
from probox.demo import Demo
from probox.evaluation.group_tables import COUNTS
from probox.explorer.payload import index_payload
from probox.measures import registry
from probox.measures.measure import Column, Measure
from probox.tables.results import Verdict

EVERY = pytest.mark.parametrize("measure", [*registry.MEASURES, TOY], ids=lambda measure: measure.name)


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Measure:
    """Register the toy measure: its one line."""
    monkeypatch.setattr(registry, "MEASURES", (*registry.MEASURES, TOY))
    return TOY


@pytest.fixture
def result(toy: Measure, demo: Demo) -> Evaluation:
    return probox.evaluate(demo.truth, demo.detectors["probabilistic"])


def detections_for(measure: Measure, demo: Demo) -> Detections:
    """Return detections with masks only if a measure needs them."""
    found = demo.detectors["probabilistic"]
    return with_box_masks(demo.truth, found) if "masks" in measure.needs else found


def expected(result: Evaluation) -> float:
    table = result.detections
    return float(np.mean(table.scores[table.verdicts == Verdict.TP]))


def run(capsys: pytest.CaptureFixture[str], *args: Any) -> str:
    with pytest.raises(SystemExit) as done:
        main([str(arg) for arg in args])
    out, words = capsys.readouterr()
    assert done.value.code == 0, words
    return out


# --- what measures say of themselves ---


@EVERY
def test_a_summary_has_the_columns_in_their_order(
    measure: Measure, demo: Demo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "MEASURES", (measure,))
    result = probox.evaluate(demo.truth, detections_for(measure, demo), measures=[measure.name])
    keys = [column.key for column in measure.columns if not column.optional]
    assert list(result.summary()) == list(measure.nothing()) == keys
    for groups, has_them in ((result.per_class(), measure.per_class), (result.per_size(), measure.per_size)):
        assert all(list(group) == [*COUNTS, *(keys if has_them else [])] for group in groups.values())


@EVERY
def test_a_measure_reads_what_it_needs_and_nothing_else(
    measure: Measure, demo: Demo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "MEASURES", (measure,))
    result = probox.evaluate(demo.truth, detections_for(measure, demo), measures=[measure.name])
    result.summary()
    read = {
        "pairs": len(result.pairs) > 0,
        "boxes": "box_matches" in vars(result),
        "masks": "mask_matches" in vars(result),
    }
    assert {name for name, true in read.items() if true} == measure.needs - {"labels"}  # which are there anyway
    assert result.has_pairs == ("pairs" in measure.needs)
    assert result.has_overlaps == (len(result.overlaps) > 0) == ("masks" in measure.needs)


def test_names_and_keys_are_used_once() -> None:
    assert registry.standard_names() == registry.measure_names()[:3] == ("pdq", "map", "lrp")
    assert len(registry.measure_names()) == len(set(registry.measure_names()))
    assert registry.named_measures("all") == registry.measure_names()
    assert [registry.need_labels([name]) for name in ("pdq", "brier")] == [False, True]
    keys = [column.key for measure in registry.MEASURES for column in measure.columns]
    assert len(keys) == len(set(keys))


def test_tables_have_the_papers_columns_in_its_order() -> None:
    standard = [measure for measure in registry.in_table_order() if measure.standard]
    headings = [column.heading for measure in standard for column in measure.table_columns]
    assert headings == ["mAP", "1-moLRP", "PDQ", "pPDQ", "Sp", "Lbl", "FG", "BG", "TP", "FP", "FN"]


@pytest.mark.parametrize(
    ("column", "number", "better"),
    [
        (Column(key="x"), 0.25, "high"),
        (Column(key="x", better="low"), 0.25, "low"),
        (Column(key="x", better=None, complement=True), 0.75, None),
        (Column(key="x", better="low", complement=True), 0.75, "high"),
        (Column(key="x", better="high", complement=True), 0.75, "low"),
    ],
)
def test_an_error_is_shown_as_a_quality(column: Column, number: float, better: str | None) -> None:
    assert column.shown({"x": 0.25}) == number
    assert math.isnan(column.shown({}))
    assert column.shown_better == better


def test_of_what_was_not_asked_for_groups_have_nothing(demo: Demo) -> None:
    result = probox.evaluate(demo.truth, demo.detectors["probabilistic"], measures=["map"])
    for groups in (result.per_class(), result.per_size()):
        for group in groups.values():
            pdq, lrp = ([c.key for c in measure.columns] for measure in registry.measures_called(["pdq", "lrp"]))
            assert list(group) == [*COUNTS, *pdq, "mAP", "AP50", "AP75", *lrp]
            assert all(group[name] == 0 for name in ("TP", "FP", "FN"))
            assert all(math.isnan(group[name]) for name in (*pdq, *lrp) if name not in ("TP", "FP", "FN"))
            assert not math.isnan(group["mAP"])


# --- one module, one line ---


def test_a_new_measure_is_in_an_evaluation(result: Evaluation, demo: Demo) -> None:
    assert result.measures == ("pdq", "map", "lrp", "toy")
    assert list(result.summary())[-2:] == ["hit_score", "top_score"]
    assert result.summary()["hit_score"] == pytest.approx(expected(result))
    hit = result.detections.verdicts == Verdict.TP
    for index, (name, group) in enumerate(result.per_class().items()):
        there = hit & (result.objects.labels[result.detections.partners] == index)
        assert name == result.classes[index]
        assert group["TP"] == there.sum()
        assert group["hit_score"] == pytest.approx(np.mean(result.detections.scores[there]))
    assert "hit_score" not in result.per_size()["large"]
    assert str(result).splitlines()[0].split()[-2:] == ["FN", "Hit"]
    assert str(result).splitlines()[2].split()[-1] == f"{expected(result):.3f}"


def test_a_new_measure_alone_has_its_pixels_looked_at(result: Evaluation, demo: Demo) -> None:
    alone = probox.evaluate(demo.truth, demo.detectors["probabilistic"], measures=["toy"])
    assert alone.summary() == {key: result.summary()[key] for key in ("hit_score", "top_score")}
    for change in (lambda e: e.at_threshold(0.5), lambda e: e.select_images(demo.truth.image_ids[:5])):
        assert change(alone).summary()["hit_score"] == change(result).summary()["hit_score"]
        np.testing.assert_array_equal(change(alone).detections.verdicts, change(result).detections.verdicts)
    halves = [alone.select_images(demo.truth.image_ids[rows]) for rows in (slice(None, 5), slice(5, None))]
    assert (halves[0] + halves[1]).summary() == alone.summary()


def test_a_new_measure_is_kept(result: Evaluation, demo: Demo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, kept in enumerate(
        (result, probox.evaluate(demo.truth, demo.detectors["deterministic"], measures=["toy"]))
    ):
        kept.save(tmp_path / str(number))
        again = Evaluation.load(tmp_path / str(number))
        assert again.measures == kept.measures
        assert again.summary() == kept.summary()
    monkeypatch.setattr(registry, "MEASURES", registry.MEASURES[:-1])
    with pytest.raises(InputError, match=r"measures: expected some of pdq, map, lrp(, [a-z-]+)*; evaluate again"):
        Evaluation.load(tmp_path / "0")


def test_a_new_measure_is_on_the_command_line(
    result: Evaluation, demo_files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = demo_files / "truth.json", demo_files / "probabilistic.json"
    told = json.loads(run(capsys, "evaluate", *files, "--measures", "toy,map", "--json"))
    assert told["summary"] == {name: result.summary()[name] for name in ("mAP", "AP50", "AP75", *TOY.nothing())}
    for chosen in ((), ("--measures", "pdq,toy")):
        header, _, row, *_ = run(capsys, "evaluate", *files, *chosen).splitlines()
        assert header.split()[-1] == "Hit"
        assert row.split()[-1] == f"{expected(result):.3f}"
    with pytest.raises(SystemExit):
        main(["evaluate", *map(str, files), "--measures", "iou"])
    assert f"{', '.join(registry.measure_names())}, got 'iou'." in " ".join(capsys.readouterr().err.split())


def test_a_new_measure_is_in_tables(
    toy: Measure, demo: Demo, demo_files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = [
        expected(probox.evaluate(demo.truth, demo.detectors[name])) for name in ("probabilistic", "deterministic")
    ]
    assert values[0] > values[1]  # so that the second is the better one
    words = [
        "table",
        *(demo_files / f"{name}.json" for name in ("truth", "probabilistic", "deterministic")),
        "--format",
    ]
    rows = json.loads(run(capsys, *words[:-1], "--json"))["rows"]
    assert [row["summary"]["hit_score"] for row in rows] == values
    lines = run(capsys, *words, "markdown").splitlines()
    shown = [f"{values[0]:.3f}", f"**{values[1]:.3f}**"]
    assert [line.split("|")[-2].strip() for line in lines] == ["Hit", "---:", *shown]


def test_a_new_measure_is_told_to_the_explorer(result: Evaluation) -> None:
    told = index_payload({"probabilistic": result}, [""] * len(result.dataset), 50, [""] * len(result.dataset))
    assert told["columns"][-1] == {
        "key": "hit_score",
        "heading": "Hit",
        "hint": "mean score of true positives",
        "unit": "plain",
        "better": "low",
        "complement": False,
        "measure": "toy",
        "follows": False,  # no threshold: the page says so rather than showing the number of all detections
    }
    standard = [measure for measure in registry.MEASURES if measure.standard and measure is not TOY]
    assert {column["key"] for column in told["columns"] if column["follows"]} == {
        column.key for measure in standard for column in measure.table_columns
    }
    assert told["columns"][1]["heading"] == "1-moLRP"
    assert told["columns"][1]["better"] == "high"
    whole = {key: value for key, value in told["results"][0]["whole"].items() if value is not None}
    assert whole == {
        "mAP": pytest.approx(result.summary()["mAP"], abs=1e-12),
        "moLRP": pytest.approx(1 - result.summary()["moLRP"], abs=1e-12),
        "hit_score": pytest.approx(expected(result), abs=1e-12),
    }
