"""The table of broken measures: its measure is the true one, its mutants are seen, and nothing stays broken."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import sys
from pathlib import Path
from subprocess import run as run_process

import numpy as np
import pytest
from benchmarks.mutants import IDENTITY, MUTANTS, Mutant, patched
from benchmarks.mutants.__main__ import main
from benchmarks.mutants.measuring import Measuring, box_numbers, pdq_numbers
from benchmarks.mutants.mutant import MODULES
from benchmarks.mutants.page import as_csv, as_json, as_markdown
from benchmarks.mutants.small import measure_small, small_truth
from benchmarks.mutants.trying import Judged, try_mutants

from probox import Detections, GroundTruth, evaluate
from probox.convention import Convention
from probox.measures import boxes as box_measures
from probox.measures.pdq import definition
from probox_experiments import EXPERIMENTS, Experiment, ResultTable, Run, SimulatedDetector, running
from probox_experiments.claims import Claim, equals, not_measured
from probox_experiments.synthetic import boxes_in_one_image, square_scene

BY_NAME = {experiment.name: experiment for experiment in EXPERIMENTS}
MUTANT = {mutant.name: mutant for mutant in MUTANTS}
QUICK = ("label-uncertainty", "false-small", "missed-small", "lower-confidence", "label-coco", "missed-coco")
"""Experiments whose small run takes a few hundredths of a second."""


def crossing(*, run: Run | None = None) -> ResultTable:
    """Evaluate two objects that both match two uncertain detections, and a box without covariance."""
    run = run or Run()
    low, side = 12, 8
    two = square_scene(side, 32, extra=[[low + 2, low, low + 9, low + 7]])
    boxes = np.array([[low + 1, low, low + 8, low + 7], [low - 2, low, low + 5, low + 7]])
    aside = square_scene(10, 30)

    def point(scene: str) -> dict[str, float]:
        if scene == "two":
            found = boxes_in_one_image(two, boxes, [1.0, 1.0], variance=2.0)
            return run.measure(two, found, also=("foreground", "background"), measures=())
        found = boxes_in_one_image(aside, [10, 10, 18, 19], [0.25])  # the last column is missed
        return run.measure(aside, found, also=("foreground", "background"), measures=())

    return run.table("crossing", [{"scene": "two"}, {"scene": "aside"}], point)


def claims_of_crossing(table: ResultTable) -> list[Claim]:
    """Judge that both are matched, that what lies beside the objects costs, and what a missed column costs."""
    two, aside = table.where(scene="two"), table.where(scene="aside")
    missed = np.array([1e-14**0.1])
    return [
        Claim("Both objects are found", bool(two["PDQ"][0] > 0.55), "", ""),
        Claim("What lies beside them costs", bool(two["background"][0] < 0.9), "", ""),
        equals(
            "A missed tenth", aside, {"foreground": missed, "background": np.ones(1), "PDQ": np.sqrt(missed * 0.25)}
        ),
        not_measured("Nothing", "more"),
        Claim("A pig can fly", False, "", ""),
        Claim("It is measured", True if two["background"][0] < 0.9 else None, "", ""),
    ]


def no_picture(table: ResultTable) -> None:
    raise AssertionError("nothing is drawn here")


CROSSING = Experiment(
    name="crossing",
    section="none: ours",
    varied="two scenes",
    claim="both are found",
    function=crossing,
    judge=claims_of_crossing,
    draw=no_picture,  # type: ignore[arg-type]
)


@pytest.fixture(scope="module")
def truth() -> GroundTruth:
    return small_truth()


@pytest.mark.parametrize("name", [*QUICK, "corner-variance", "duplicates-coco-100", "plane"])
def test_the_definition_gives_the_kernels_tables(truth: GroundTruth, name: str) -> None:
    kernel = measure_small(BY_NAME[name], truth)
    with Measuring().instead():
        plain = measure_small(BY_NAME[name], truth)
    assert list(plain.columns) == list(kernel.columns)
    assert len(plain) == len(kernel) > 0
    for column in plain.columns:
        np.testing.assert_allclose(plain[column], kernel[column], atol=1e-6, rtol=0, err_msg=column)


@pytest.fixture(scope="module")
def noisy(truth: GroundTruth) -> Detections:
    """Detections that err in every way, so that no number is 0 or 1."""
    detector = SimulatedDetector(
        corner_variance=2.0, reported_variance=[[3.0, 1.0], [1.0, 2.0]], label_probability=0.7,
        duplicate_probability=0.4, detections_per_object=2, miss_rate=0.3, false_per_image=1, false_probability=0.6,
    )  # fmt: skip
    return detector.detect(truth, seed=3)


def test_every_number_is_the_kernels(truth: GroundTruth, noisy: Detections) -> None:
    for preset in ("reference", "paper"):
        summary = evaluate(truth, noisy, convention=preset).summary()
        numbers = pdq_numbers(truth, noisy, Convention.preset(preset))
        assert {"PDQ", "pPDQ", "spatial", "label", "foreground", "background", "TP", "FP", "FN"} == set(numbers)
        assert numbers == pytest.approx({name: summary[name] for name in numbers}, abs=1e-6)
        assert all(0 < numbers[name] < 1 for name in ("PDQ", "foreground", "background", "label"))
        boxes = box_numbers(truth, noisy)
        assert boxes == pytest.approx({name: summary[name] for name in boxes}, abs=1e-12)
        assert 0 < boxes["mAP"] < 1
        measuring = Measuring()
        for mutant in (IDENTITY, None, IDENTITY):  # the second time from memory
            with measuring.instead(mutant):
                measured = running.summary_of(truth, noisy, Convention.preset(preset), ("pdq", "map", "lrp"), None)
            assert measured == pytest.approx({name: summary[name] for name in measured}, abs=1e-6)
            assert len(measured) == 9 + 3 + 4


def test_every_mutant_has_a_name_a_sentence_and_a_place() -> None:
    assert len(MUTANTS) >= 30
    assert len({mutant.name for mutant in MUTANTS}) == len({mutant.sentence for mutant in MUTANTS}) == len(MUTANTS)
    for mutant in MUTANTS:
        module, name = mutant.where.split(".")
        assert callable(getattr(MODULES[module], name))
        assert mutant.sentence.endswith(".")


@pytest.fixture(scope="module")
def scenes() -> list[tuple[GroundTruth, Detections]]:
    """Scenes with something of everything: what is wrong with a measure must show in one of them."""
    low = 12
    two = square_scene(8, 32, extra=[[low + 2, low, low + 9, low + 7]])
    boxes = np.array([[low + 1, low, low + 8, low + 7], [low - 2, low, low + 5, low + 7]])
    # An overlap of exactly 0.5, corners of small variance, a missed object, a false positive.
    half = square_scene(8, 32, extra=[[1, 1, 4, 4]])
    truth = small_truth(3)
    detector = SimulatedDetector(
        corner_variance=2.0, label_probability=0.7, duplicate_probability=0.4, detections_per_object=2,
        false_per_image=1, false_probability=0.9, order="shuffled",
    )  # fmt: skip
    plain = detector.detect(truth, seed=1)
    roots = np.random.default_rng(0).normal(0.0, 1.5, (len(plain), 2, 2, 2))
    uncertain = plain.replace(covariances=roots @ np.swapaxes(roots, 2, 3))
    perfect = SimulatedDetector(label_probability=0.6).detect(truth).select([0])
    given = np.where(truth.masks.to_array(0, 36, 48), 0.8, 0.1)
    own = perfect.replace(heatmaps=(given,), label_probs=perfect.label_probs * 0.9)
    return [
        (half, boxes_in_one_image(half, [[12, 12, 19, 15], [25, 25, 28, 28]], [0.9, 0.8], variance=1e-4)),
        (two, boxes_in_one_image(two, boxes, [1.0, 0.9], variance=2.0)),
        (truth, Detections.concatenate([plain, own])),
        (truth, uncertain),
        (half, boxes_in_one_image(half, [*[[25, 25, 28, 28]] * 100, [12, 12, 19, 19]], [1.0] * 100 + [0.9])),
    ]


def test_of_fewer_than_a_hundred_all_take_part(scenes: list[tuple[GroundTruth, Detections]]) -> None:
    for truth, found in scenes[:-1]:
        true = box_numbers(truth, found)
        with patched(MUTANT["map-all-take-part"]):
            assert box_numbers(truth, found) == pytest.approx(true, abs=1e-12)


def numbers_of(truth: GroundTruth, found: Detections, preset: str, mutant: Mutant) -> list[float]:
    with patched(mutant), np.errstate(all="ignore"):
        numbers = box_numbers(truth, found) if mutant.of_boxes else pdq_numbers(truth, found, Convention.preset(preset))
    return list(numbers.values())


@pytest.mark.slow
def test_every_mutant_changes_a_number(scenes: list[tuple[GroundTruth, Detections]]) -> None:
    """One that changes nothing anywhere would be the true measure under another name."""
    left = list(MUTANTS)
    for truth, found in scenes:
        for preset in ("reference", "paper"):
            pixels = numbers_of(truth, found, preset, IDENTITY)
            boxes = numbers_of(truth, found, preset, Mutant("unbroken", "", "boxes.overlaps", lambda true: true))
            same = [
                np.allclose(
                    numbers_of(truth, found, preset, m), boxes if m.of_boxes else pixels, 0, 1e-9, equal_nan=True
                )
                for m in left
            ]
            left = [mutant for mutant, unseen in zip(left, same, strict=True) if unseen]
    assert [mutant.name for mutant in left] == []


NAMED = ("greedy", "components-exchanged", "no-background", "no-foreground", "arithmetic-mean")


def test_the_named_mutants_are_seen_and_nothing_stays_broken(truth: GroundTruth) -> None:
    places = [(owner, name, getattr(owner, name)) for owner in MODULES.values() for name in owner.__all__]
    places += [(running, "summary_of", running.summary_of), (definition, "tight_box", definition.tight_box)]
    places += [(box_measures, "average_precision", box_measures.average_precision)]
    chosen = [MUTANT[name] for name in (*NAMED, "variance-ignored", "map-11-recalls")]
    trials = try_mutants([*chosen, IDENTITY], [CROSSING, BY_NAME["false-small"]], truth)
    assert trials.true["crossing"] == Judged(
        (
            ("Both objects are found", True),
            ("What lies beside them costs", True),
            ("A missed tenth", True),
            ("Nothing", None),
            ("A pig can fly", False),
            ("It is measured", True),
        )
    )
    failing = {trial.mutant.name: trial.failing["crossing"] for trial in trials.mutants}
    assert failing == {
        "greedy": ["Both objects are found"],
        "components-exchanged": ["A missed tenth"],
        "no-background": ["What lies beside them costs"],
        "no-foreground": ["A missed tenth"],
        "arithmetic-mean": ["A missed tenth"],
        "variance-ignored": ["Both objects are found"],
        "map-11-recalls": [],
        "identity": [],
    }
    assert all(getattr(owner, name) is true for owner, name, true in places)


def test_experiments_of_the_registry_see_mutants(truth: GroundTruth) -> None:
    chosen = [MUTANT[name] for name in ("arithmetic-mean", "no-false-positives", "lrp-false-free", "map-weighted")]
    trials = try_mutants([*chosen, IDENTITY], [BY_NAME[name] for name in QUICK[:2]], truth)
    assert trials.survivors == [IDENTITY]
    assert not any(trial.errors for trial in trials.mutants)


@pytest.mark.slow
def test_experiments_of_the_registry_see_the_named_mutants(truth: GroundTruth) -> None:
    seeing = [BY_NAME[name] for name in ("assignment", "box-probability", "scaling")]
    trials = try_mutants([MUTANT[name] for name in NAMED], seeing, truth)
    assert trials.survivors == []
    assert trials.mutants[0].total == len(trials.mutants[0].failing["assignment"])  # only it detects greedy
    swapped = trials.mutants[1].failing
    assert swapped["box-probability"]
    assert swapped["scaling"]


def test_average_precision_asked_for_directly_is_broken_too(truth: GroundTruth) -> None:
    chosen = [MUTANT[name] for name in ("map-at-three-quarters", "map-11-recalls")]
    trials = try_mutants(chosen, [BY_NAME["plane"], BY_NAME["precision-recall"]], truth)
    first, second = (trial.failing for trial in trials.mutants)
    assert (len(first["plane"]), len(second["plane"])) == (1, 0)
    assert any("mean of the samples" in claim for claim in second["precision-recall"])


def broken_judge(table: ResultTable) -> list[Claim]:
    if table["background"][0] == 1.0:
        raise ZeroDivisionError("no background")
    held = bool(table["foreground"][0] < 0.8)
    return [
        *([Claim("It has a foreground", True, "", "")] if held else []),
        Claim("It is there", held, "", ""),
        Claim("It is measured", True if held else None, "", ""),
    ]


def test_what_stops_is_no_claim_that_fails(truth: GroundTruth) -> None:
    stopping = dataclasses.replace(CROSSING, judge=broken_judge)
    trials = try_mutants([MUTANT["no-background"], MUTANT["no-foreground"]], [stopping], truth)
    stopped, fewer = trials.mutants
    assert stopped.errors == {"crossing": "ZeroDivisionError: no background"}
    assert trials.survivors == [MUTANT["no-background"]]
    # With fewer claims than before, claims are identified by their sentences.
    assert fewer.failing == {"crossing": ["It is there"]}
    assert trials.unbroken() == {"crossing": ["It has a foreground", "It is measured"]}
    page = as_markdown(trials, truth, "make it")
    assert "| `no-background` | error | **0: SURVIVES** |" in page
    assert "| `no-foreground` | 2 | 1 |" in page
    assert "`crossing` stopped with an error, which does not count: ZeroDivisionError" in page


def test_the_page(truth: GroundTruth) -> None:
    trials = try_mutants([MUTANT["greedy"], MUTANT["no-foreground"]], [CROSSING], truth)
    page = as_markdown(trials, truth, "make it")
    assert "Made by `make it`" in page
    assert "**No mutant survives**: each of the 2 makes at least one claim fail." in page
    assert "| `greedy` | 1 | 1 |\n| `no-foreground` | 3 | 1 |" in page
    assert "1. Both objects are found (detects 1)\n2. What lies beside them costs (**detects none**)\n" in page
    assert "4. Nothing (not measured at this size)\n5. A pig can fly (fails at this size)\n" in page
    assert page.endswith("## Settings\n\n- `crossing`: unchanged\n")
    everything = as_json(trials, "make it")
    assert everything["mutants"][0]["failing"] == {"crossing": ["Both objects are found"]}
    assert everything["unbroken"] == {"crossing": ["What lies beside them costs", "It is measured"]}
    assert as_csv(trials) == [
        ["mutant", "crossing", "total"],
        ["claims that hold", 4, 4],
        ["greedy", 1, 1],
        ["no-foreground", 1, 1],
    ]


def test_the_command_writes_a_report_into_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    what = ["--experiments", "label-uncertainty", "--processes", "1", "--json", str(tmp_path / "all.json")]
    assert main(["--mutants", "label-squared", *what]) == 0
    printed, progress = capsys.readouterr()
    assert printed == ""
    page = (tmp_path / "build" / "mutants.md").read_text()
    assert "python -m benchmarks.mutants --mutants label-squared --experiments label-uncertainty`" in page
    assert "SURVIVES" not in page + progress
    assert page.endswith("- `label-uncertainty`: `probabilities` 0.15, 0.5, 1\n")
    assert json.loads((tmp_path / "all.json").read_text())["survivors"] == []


def test_the_command_fails_if_one_survives(tmp_path: Path) -> None:
    names = ["--mutants", "identity", "label-squared", "--experiments", "label-uncertainty"]
    files = ["--out", str(tmp_path / "page.md"), "--csv", str(tmp_path / "table.csv")]
    command = [sys.executable, "-m", "benchmarks.mutants", *names, *files, "--processes", "2"]
    done = run_process(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "SURVIVES: identity: No defect." in done.stderr
    assert "**1 of 2 MUTANTS SURVIVE: no claim detects them.**" in (tmp_path / "page.md").read_text()
    rows = list(csv.reader(io.StringIO((tmp_path / "table.csv").read_text())))
    assert [row[0] for row in rows] == ["mutant", "claims that hold", "identity", "label-squared"]
    assert rows[2][1:] == ["0", "0"]
    assert int(rows[3][-1]) > 0
