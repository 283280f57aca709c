"""A diagnosis: numbers that belong together, and words that follow from them."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest
from tests.strategies import random_world, with_masks
from tests.worlds import boxes_truth, simulated

import probox
from probox import Detections, Evaluation, GroundTruth, evaluate
from probox.analysis import diagnosis as module
from probox.analysis.baseline import Skill
from probox.analysis.calibration_table import (
    CalibrationRow,
    ErrorFactor,
    Outliers,
    find_error_factor,
    tabulate_calibration,
)
from probox.analysis.diagnosis import NUMBERS, Diagnosis, diagnose, summarize_for_page
from probox.analysis.diagnosis_text import summarize
from probox.analysis.loss_breakdown import Budget, compute_budget
from probox.analysis.resampling import Interval, compute_interval, draw_images
from probox.analysis.threshold_sweep import find_rematches
from probox.analysis.thresholds import best_threshold, find_best_pdq
from probox.measures.registry import MEASURES, measures_called
from probox.measures.scoring.score_rows import with_density
from probox.notes import Note

KEYS = (
    "pairs", "nll", "energy", "crps", "nees", "brier", "ignorance", "coverage", "ence", "mqce", "ause", "mue", "d_ece",
    "laece", "laace", "oce", "qgc", "pmb_nll", "budget", "what_if", "skill", "best_threshold", "verdict",
)  # fmt: skip


@pytest.fixture(scope="module")
def too_sure() -> Evaluation:
    """Return a detector whose corners err by 4 pixels and claim 2."""
    truth = boxes_truth(30)
    return evaluate(truth, simulated(truth))


def test_every_number_is_its_measures(too_sure):
    told = too_sure.diagnose(replicates=50).to_dict()
    assert set(KEYS) <= set(told)
    for key, name in NUMBERS.items():
        measure = measures_called([name])[0]
        np.testing.assert_equal(told[key], measure.summary(too_sure)[measure.headline.key])
        assert told["names"][key] == measure.headline.key
    others = [measure for measure in MEASURES if not measure.standard and "masks" not in measure.needs]
    asked = {column.key for measure in others for column in measure.columns}
    assert set(told["numbers"]) == asked
    assert told["pairs"] == len(too_sure.matched_pairs)
    assert told["coverage"]["90"] == told["numbers"]["coverage_90"]
    json.dumps(told)


def test_a_scale_of_two_is_found_and_said(too_sure):
    diagnosis = too_sure.diagnose(replicates=200)
    pairs = too_sure.matched_pairs
    z = np.sort(np.abs(pairs.residuals / np.sqrt(pairs.variances)), axis=None)
    factor = diagnosis.error_factor
    assert factor.factor.value == z[math.ceil(0.6826894921 * z.size) - 1] == pytest.approx(2.0, abs=0.15)
    draws = [
        np.quantile(np.repeat(np.abs(pairs.residuals) / 2.0, drawn[pairs.image_rows], axis=0), 0.6826894921)
        for weights in draw_images(30, 200, 0)
        for drawn in weights
    ]
    interval = compute_interval(factor.factor.value, np.array(draws), 30, 0.95)
    assert (factor.factor.low, factor.factor.high) == pytest.approx((interval.low, interval.high), abs=0.01)
    interval = f"{factor.factor.value:.2f} (95% CI {factor.factor.low:.2f} to {factor.factor.high:.2f})"
    assert diagnosis.verdict[0].startswith(f"Overconfident by a factor of {interval}")
    assert factor.rms_z == pytest.approx(math.sqrt(np.square(z).mean()))
    assert diagnosis.numbers["RMS_z"] == pytest.approx(factor.rms_z)
    assert diagnosis.numbers["z68"] == factor.factor.value
    assert factor.worst is None
    everything, *_ = diagnosis.calibration
    assert (everything.group, everything.factor) == ("all", factor.factor.value)
    assert everything.rms_z == pytest.approx(factor.rms_z)
    assert everything.rmse == pytest.approx(4.0, rel=0.06)
    assert everything.sharpness == pytest.approx(2.0)
    assert everything.coverage_68 == pytest.approx(0.38, abs=0.04)  # P(|z| < 0.994 / 2)
    answers = {answer.key: answer for answer in diagnosis.what_if}
    assert answers["calibrating_scale"].words.startswith(f"std times {factor.factor.value:.2f} (error factor")
    assert diagnosis.to_dict()["error_factor"]["value"] == factor.factor.value


def test_no_scale_calibrates_boxes_without_error():
    """The factor is 0 then, and would take the std away."""
    truth = boxes_truth(4)
    right = simulated(truth).replace(boxes=truth.boxes, extents=truth.boxes[:, 2:] - truth.boxes[:, :2])
    diagnosis = evaluate(truth, right).diagnose(replicates=10)
    assert diagnosis.error_factor.factor.value == 0.0
    answers = {answer.key for answer in diagnosis.what_if}
    assert "best_scale" in answers
    assert "calibrating_scale" not in answers


def test_one_outlier_is_named_and_does_not_move_the_factor():
    truth = boxes_truth(30)
    found = simulated(truth, sigma=3.0, reported=3.0)
    before = evaluate(truth, found).diagnose(replicates=100)
    assert before.verdict[0].startswith("Calibrated: error/std is ")
    assert not any("Outliers" in text for text in before.verdict)
    pairs = evaluate(truth, found).matched_pairs
    covariances = found.covariances.copy()
    row = int(np.abs(pairs.residuals[:, 3]).argmax())
    covariances[pairs.detections[row], 1, 1, 1] = (pairs.residuals[row, 3] / 1000.0) ** 2
    result = evaluate(truth, found.replace(covariances=covariances))
    diagnosis = result.diagnose(replicates=100)
    assert diagnosis.verdict[0] == before.verdict[0]
    name, image = result.classes[pairs.labels[row]], result.dataset.image_ids[pairs.image_rows[row]]
    edges = diagnosis.error_factor.edges
    start = f"Outliers: 1 of {edges:,} edges has |z| above 5"
    assert diagnosis.verdict[1].startswith(start)
    assert "(largest 1,000), in 1 of 30 images, most in edge y2 (1)" in diagnosis.verdict[1]
    assert f"image {image} (1)" in diagnosis.verdict[1]
    assert ("class" in diagnosis.verdict[1]) == (f"class {name} (1)" in diagnosis.verdict[1])
    rest = np.square(pairs.residuals / 3.0).sum() - (pairs.residuals[row, 3] / 3.0) ** 2
    rms, without = math.sqrt((rest + 1e6) / edges), math.sqrt(rest / (edges - 1))
    assert diagnosis.verdict[1].endswith(f"RMS z is {rms:.2f} with outliers, {without:.2f} without")
    short, _ = summarize_for_page(result, replicates=100)
    assert short.verdict[:2] == diagnosis.verdict[:2]


def test_outliers_at_the_border_of_the_image_are_placed_there():
    sizes, boxes = dict.fromkeys(range(40), (440, 340)), np.tile([[30.0, 30, 130, 130]], (40, 1))
    truth = GroundTruth.from_boxes(["cup"], sizes, list(range(40)), boxes, [0] * 40)
    moved = boxes + np.random.default_rng(0).normal(size=boxes.shape)
    moved[:2, 0] = [1.5, 19.5]
    covariances = np.tile(np.eye(2), (40, 2, 1, 1))
    found = Detections(classes=["cup"], image_ids=list(range(40)), boxes=moved, covariances=covariances,
                       label_probs=np.full((40, 1), 0.9))  # fmt: skip
    outliers = evaluate(truth, found).diagnose(replicates=20).error_factor.outliers
    assert (outliers.edges, outliers.images) == (2, 2)
    assert outliers.places == {"edge x1": 2, "edges within 20 px of the image border": 2}


def test_calibration_by_groups(too_sure):
    rows = tabulate_calibration(too_sure)
    names = [(row.group, row.name) for row in rows]
    assert names[:8] == [("all", "all"), *(("edge", e) for e in ("x1", "y1", "x2", "y2")),
                         *(("size", s) for s in ("small", "medium", "large"))]  # fmt: skip
    assert [name for group, name in names if group == "class"] == list(too_sure.classes)
    for group in ("edge", "class"):
        assert sum(row.edges for row in rows if row.group == group) == rows[0].edges
    pairs = too_sure.matched_pairs
    person = (pairs.labels == 0)[:, None] & ~pairs.truncated
    cup = next(row for row in rows if row.name == too_sure.classes[0])
    assert cup.bias == pytest.approx(pairs.residuals[person].mean())


def test_a_worst_group_is_worse_than_all_edges():
    truth = boxes_truth(40)
    found = simulated(truth, sigma=3.0, reported=3.0)
    assert find_error_factor(evaluate(truth, found), replicates=200).worst is None
    boxes = found.boxes.copy()
    boxes[:, 3] += np.where(np.arange(len(boxes)) % 2, 9.0, -9.0)
    name, factor = find_error_factor(evaluate(truth, found.replace(boxes=boxes, extents=None)), replicates=200).worst
    assert name == "edge y2"
    assert factor.low < factor.value < factor.high
    assert factor.value == pytest.approx(10.4 / 3.0, rel=0.15)  # of |9 + 3 e| / 3, e normal
    # Outliers in one edge raise its RMS z, but most of its errors are smaller than those of other edges.
    better = found.boxes.copy()
    pairs = evaluate(truth, found).matched_pairs
    better[pairs.detections, 3] += 0.5 * pairs.residuals[:, 3]
    better[pairs.detections[::20], 3] += 30.0
    errors = find_error_factor(evaluate(truth, found.replace(boxes=better, extents=None)), replicates=200)
    rows = {row.name: row for row in tabulate_calibration(evaluate(truth, found.replace(boxes=better, extents=None)))}
    assert max(rows, key=lambda row: rows[row].rms_z) == "y2"
    assert rows["y2"].factor < errors.factor.low
    assert errors.worst is not None
    assert errors.worst[1].high < errors.factor.low  # underconfident, and farther from 1 than all edges


def test_a_group_that_is_nearer_to_calibration_is_not_the_worst():
    truth = boxes_truth(40)
    truth = truth.replace(labels=(np.arange(len(truth)) % 20 == 0).astype(np.int32))
    found = simulated(truth, sigma=3.0, reported=9.0)
    times = np.where(found.labels == 1, 0.03, 1.0)[:, None, None, None]
    result = evaluate(truth, found.replace(covariances=found.covariances * times))
    rows = {row.name: row.factor for row in tabulate_calibration(result)}
    assert (rows["all"], rows[truth.classes[1]]) == (pytest.approx(0.34, abs=0.03), pytest.approx(1.8, abs=0.2))
    assert find_error_factor(result, replicates=200).worst is None


def test_edges_at_the_border_are_not_judged():
    truth = GroundTruth.from_boxes(["cup"], {1: (100, 100)}, [1], [[0, 10, 50, 60]], [0])
    found = Detections(classes=["cup"], image_ids=[1], boxes=[[5, 11, 51, 61]], label_probs=[[0.9]],
                       covariances=np.tile(np.eye(2), (1, 2, 1, 1)))  # fmt: skip
    rows = tabulate_calibration(evaluate(truth, found))
    assert [row.edges for row in rows[:5]] == [3, 0, 1, 1, 1]
    assert math.isnan(rows[1].factor)


def test_boxes_of_last_pixels_are_noticed():
    truth = boxes_truth(40)
    found = simulated(truth, sigma=3.0, reported=3.0)
    shifted = found.replace(boxes=found.boxes - [0, 0, 1, 1], extents=None)
    assert any(note.code == "last-pixels" for note in evaluate(truth, shifted).diagnose(replicates=20).notes)
    assert not any(note.code == "last-pixels" for note in evaluate(truth, found).diagnose(replicates=20).notes)
    moved = found.replace(boxes=found.boxes - [1, 1, 1, 1], extents=None)
    assert not any(note.code == "last-pixels" for note in evaluate(truth, moved).diagnose(replicates=20).notes)


def test_plain_boxes():
    truth = boxes_truth(10)
    result = evaluate(truth, simulated(truth).replace(covariances=None))
    diagnosis = result.diagnose(replicates=20)
    pairs = len(result.matched_pairs)
    assert diagnosis.verdict[0] == f"No covariances: none of {pairs} matched boxes has a predicted std"
    assert diagnosis.verdict[1].startswith("Constant-variance baseline (std ")
    assert f"instead of {100 * result.pdq:.2f} without covariances" in diagnosis.verdict[1]
    assert "best_scale" not in {answer.key for answer in diagnosis.what_if}
    assert math.isnan(diagnosis.numbers["NLL"])
    assert math.isnan(diagnosis.skill["energy"].skill.value)
    assert " nan" not in str(diagnosis)
    assert sum(f"{pairs} of {pairs} matched pairs" in text for text in map(str, diagnosis.notes)) == 2
    assert not any("only 0 matched pairs" in text for text in map(str, diagnosis.notes))


def test_singular_covariances_are_judged_by_their_edges():
    truth = boxes_truth(6)
    found = simulated(truth)
    flat = np.zeros_like(found.covariances)
    flat[:, :, 0, 0] = 4.0
    diagnosis = evaluate(truth, found.replace(covariances=flat)).diagnose(replicates=20)
    assert diagnosis.verdict[0].startswith("Overconfident by a factor of ")
    assert diagnosis.error_factor.edges == 2 * diagnosis.pairs
    assert any(note.code == "singular-pairs" for note in diagnosis.notes)


def test_few_pairs_are_said():
    truth = boxes_truth(3, per_image=2)
    diagnosis = evaluate(truth, simulated(truth)).diagnose(replicates=20)
    assert "matched boxes are too few" in diagnosis.verdict[0]
    assert any("unreliable below 30" in text for text in map(str, diagnosis.notes))


def test_one_image_has_no_interval():
    truth = boxes_truth(1)
    diagnosis = evaluate(truth, simulated(truth)).diagnose(replicates=20)
    assert "CI" not in " ".join(diagnosis.verdict)
    assert diagnosis.verdict[0].startswith("Undecided: error/std is ")
    assert "pdq" not in diagnosis.skill
    assert Note("too-few-images-for-intervals", 1) in diagnosis.notes


def test_nothing_found_and_nothing_there():
    truth = boxes_truth(3)
    none = Detections(classes=truth.classes, image_ids=[], boxes=np.zeros((0, 4)), label_probs=np.zeros((0, 2)))
    assert evaluate(truth, none).diagnose().verdict == (
        "No matched boxes: no detection reaches IoU 0.5 with an object of its class",
        "100% of the lost points are missed objects",
    )
    empty = GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [], np.zeros((0, 4)), [])
    diagnosis = evaluate(empty, Detections(classes=["cup"], image_ids=[], boxes=np.zeros((0, 4)),
                                           label_probs=np.zeros((0, 1)))).diagnose()  # fmt: skip
    assert len(diagnosis.verdict) == 1
    assert str(diagnosis)


def test_what_is_missing_is_said(too_sure):
    forgotten = too_sure.without_labels().diagnose(replicates=20)
    assert any("label probabilities were not stored" in str(note) for note in forgotten.notes)
    assert math.isnan(forgotten.numbers["Brier"])
    assert forgotten.budget is not None
    assert {answer.key for answer in forgotten.what_if} == {"no_false_positives", "no_duplicates", "best_threshold"}
    boxes_alone = dataclasses.replace(too_sure, measures=("map",)).diagnose(replicates=20)
    assert boxes_alone.budget is None
    assert any("PDQ was not measured" in text for text in map(str, boxes_alone.notes))


def test_heatmaps_are_left_out():
    truth, found = random_world(2)
    result = evaluate(truth, found)
    assert result.detections.heatmaps.any()
    diagnosis = result.diagnose(replicates=20)
    assert any(", which results do not store" in text for text in map(str, diagnosis.notes))


def test_masks_are_not_rescored():
    world = random_world(2, heatmaps=False)
    truth, found = world[0], with_masks(world, 2)
    result = evaluate(truth, found)
    np.testing.assert_array_equal(np.sort(result.detections.masks), np.sort(found.has_mask))
    count = int(found.has_mask.sum())
    assert any(f"{count} detections are masks, which results do not store" in str(n) for n in result.diagnose().notes)
    pairs = result.matched_pairs  # boxes of masks keep their covariances
    np.testing.assert_array_equal(pairs.plain, ~pairs.covariances.any(axis=(1, 2, 3)))


def test_it_is_deterministic_and_independent_of_threads(too_sure):
    one, two = (diagnose(too_sure, replicates=50, threads=threads).to_dict() for threads in (1, 2))
    np.testing.assert_equal(one, two)
    assert probox.diagnose is diagnose


def test_text_has_every_table(too_sure):
    text = str(too_sure.diagnose(replicates=50))
    for title in ("Loss breakdown", "What-if analysis", "Calibration of ", "Skill over ", "Uncertainty metrics"):
        assert f"\n{title}" in text
    assert text.startswith("- Overconfident by a factor of ")
    assert "by COCO IoU 0.5" in text


def test_progress_ends_at_the_end(too_sure):
    steps: list[tuple[int, int]] = []
    diagnose(too_sure, replicates=20, progress=lambda done, total: steps.append((done, total)))
    assert steps == [(n, len(steps)) for n in range(1, len(steps) + 1)]
    assert len(steps) > 7


LONG = ("Constant-variance baseline",)


def test_sentences_are_those_of_the_diagnosis_to_the_letter(
    too_sure: Evaluation, results: dict[str, Evaluation]
) -> None:
    for evaluation in (too_sure, *results.values()):
        whole = evaluation.diagnose(replicates=100).verdict
        short, left_out = summarize_for_page(evaluation, replicates=100)
        kept = [text for text in whole if not any(words in text for words in LONG)]
        assert list(short.verdict) == kept
        assert len(kept) == len(whole) - 1
        assert left_out == ("PDQ of the constant-variance baseline",)
        assert short.budget == compute_budget(evaluation)
        assert set(short.notes) <= set(evaluation.diagnose(replicates=2).notes)
    # The demo's boxes name their last pixel: what seems too sure is in part that.
    assert summarize_for_page(results["probabilistic"])[0].notes == (Note("last-pixels"),)
    assert summarize_for_page(too_sure, replicates=20)[0].notes == ()


def test_rematches_at_hand_change_nothing(too_sure: Evaluation) -> None:
    given, _ = summarize_for_page(too_sure, find_rematches(too_sure), replicates=20)
    assert given.verdict == summarize_for_page(too_sure, replicates=20)[0].verdict
    best = best_threshold(too_sure)
    quick = find_best_pdq(too_sure, find_rematches(too_sure))
    assert (quick.threshold, quick.value, quick.now) == (best.threshold, best.value, best.now)


def test_sigmas_that_know_their_errors_are_said_to(too_sure: Evaluation) -> None:
    truth = boxes_truth(20)
    found = simulated(truth, sigma=4.0, reported=4.0)
    objects = evaluate(truth, found).matched_pairs
    errors = np.zeros((len(found), 4))
    errors[objects.detections] = objects.residuals
    knowing = np.stack([np.diag(np.square(error) + 0.5) for error in errors.reshape(-1, 2)]).reshape(-1, 2, 2, 2)
    (said,) = _of_energy(evaluate(truth, found.replace(covariances=knowing)))
    assert said.startswith("Informative: the energy score is ")
    assert said.endswith("% better than with any constant std")
    wild = found.covariances * np.where(np.arange(len(found)) % 2, 400.0, 0.0025)[:, None, None, None]
    (said,) = _of_energy(evaluate(truth, found.replace(covariances=wild)))
    assert said.startswith("Not informative: the energy score is ")
    assert said.endswith("% worse than with a constant std")
    (said,) = _of_energy(evaluate(truth, found))
    assert said.startswith("Undecided whether informative: the energy score does not differ")


def _of_energy(evaluation: Evaluation) -> list[str]:
    return [text for text in summarize_for_page(evaluation, replicates=200)[0].verdict if "energy score" in text]


def test_many_pairs_and_their_energy_score_are_left_to_the_diagnosis(
    too_sure: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    dense = int(with_density(too_sure.matched_pairs).sum())
    monkeypatch.setattr(module, "MOST_PAIRS", dense)
    short, left_out = summarize_for_page(too_sure, replicates=20)
    assert left_out == ("PDQ of the constant-variance baseline",)
    assert any("energy score" in text for text in short.verdict)
    monkeypatch.setattr(module, "MOST_PAIRS", dense - 1)
    short, left_out = summarize_for_page(too_sure, replicates=20)
    assert left_out == ("PDQ of the constant-variance baseline", "whether the std is informative")
    assert not any("energy score" in text for text in short.verdict)


def test_without_detections_nothing_is_left_out() -> None:
    truth = boxes_truth(3)
    found = simulated(truth)
    nothing = evaluate(truth, found.select(np.zeros(len(found), bool)))
    short, left_out = summarize_for_page(nothing, replicates=20)
    assert (short.best_thresholds, left_out) == ((), ())
    assert short.verdict[0].startswith("No matched boxes")
    bare = dataclasses.replace(evaluate(truth, found), measures=("map",))
    assert summarize_for_page(bare, replicates=20)[0].budget is None


def said(
    factor: Interval,
    budget: Budget | None = None,
    calibration: tuple[CalibrationRow, ...] = (),
    skill: Skill | None = None,
    **more: Any,
) -> str:
    """Return the verdict on a hundred pairs whose errors are so many times their std."""
    errors = ErrorFactor(factor=factor, **{"edges": 400, "pairs": 100, "images": 50, "rms_z": 2.0} | more)
    diagnosis = Diagnosis(
        verdict=(), pairs=100, plain_pairs=0, pairing="", numbers={}, error_factor=errors, calibration=calibration,
        budget=budget, what_if=(), skill={} if skill is None else {"pdq": skill}, best_thresholds=(),
    )  # fmt: skip
    return "; ".join(summarize(diagnosis))


@pytest.mark.parametrize(
    ("factor", "low", "high", "words"),
    [
        (1.84, 1.62, 2.13, "Overconfident by a factor of 1.8 (95% CI 1.6 to 2.1)"),
        (0.62, 0.57, 0.68, "Underconfident by a factor of 1.61 (95% CI 1.47 to 1.75)"),
        (1.03, 0.97, 1.08, "Calibrated: error/std is 1.03 (95% CI 0.97 to 1.08)"),
        (1.049, 1.02, 1.06, "Calibrated: error/std is 1.05 (95% CI 1.02 to 1.06)"),  # within the tolerance
        (1.051, 1.02, 1.06, "Overconfident by a factor of 1.05 (95% CI 1.02 to 1.06)"),
        (0.953, 0.94, 0.98, "Calibrated: error/std is 0.95 (95% CI 0.94 to 0.98)"),
        (0.952, 0.94, 0.98, "Underconfident by a factor of 1.05 (95% CI 1.02 to 1.06)"),
        (1.1, 0.99, 1.24, "Calibrated: error/std is 1.10 (95% CI 0.99 to 1.24)"),  # the interval holds 1
        (0.9, 0.81, 1.01, "Calibrated: error/std is 0.90 (95% CI 0.81 to 1.01)"),
        (1.1, 1.001, 1.24, "Overconfident by a factor of 1.100 (95% CI 1.001 to 1.240)"),  # 1.00 would not tell why
        (1.1, 0.79, 1.24, "Undecided: error/std is 1.10 (95% CI 0.79 to 1.24)"),
        (1.1, 0.81, 1.26, "Undecided: error/std is 1.10 (95% CI 0.81 to 1.26)"),
        (5.42, 0.95, 11.18, "Undecided: error/std is 5.4 (95% CI 0.9 to 11.2)"),
        (2.0, math.nan, math.nan, "Undecided: error/std is 2.00"),
    ],
)
def test_what_a_factor_means(factor: float, low: float, high: float, words: str) -> None:
    assert said(Interval(factor, low, high)) == words


def test_few_pairs_and_the_worst_group() -> None:
    told = said(Interval(1.84, 1.62, 2.13), pairs=29, worst=("class dog", Interval(3.0, 2.5, 3.5)))
    assert told.endswith(
        "; worst: class dog, error/std 3.0 (95% CI 2.5 to 3.5); 29 matched boxes are too few for a reliable factor"
    )
    assert "too few" not in said(Interval(1.84, 1.62, 2.13), pairs=30)


def test_outliers_are_named_with_their_count_and_place() -> None:
    places = {"edge y2": 3, "edges within 20 px of the image border": 4}
    found = Outliers(edges=4, images=2, bound=5.0, largest=912.4, rms_z=1.02, places=places)
    told = said(Interval(0.98, 0.95, 1.02), rms_z=13.1, outliers=found)
    assert told.endswith(
        "; Outliers: 4 of 400 edges have |z| above 5 (largest 912), in 2 of 50 images, most in edge y2 (3) and edges "
        "within 20 px of the image border (4); RMS z is 13.10 with outliers, 1.02 without"
    )
    far = Outliers(edges=1, images=1, bound=10.0, largest=12.0, rms_z=1.0, places={})
    told = said(Interval(2.0, 1.9, 2.1), outliers=far)
    assert "1 of 400 edges has |z| above 10, 5 times the factor (largest 12), in 1 of 50 images; RMS z is 2.00" in told


@pytest.mark.parametrize(
    ("deterministic", "constant", "own", "words"),
    [
        (0.3, 0.56, 0.58, "The baseline reaches 93% of the gain over deterministic boxes. "
         "Own minus baseline is +2.00 (95% CI +1.00 to +3.00), 4.5% of the 44.00 points between the baseline and 100"),
        (0.3, 0.58, 0.56, "The baseline reaches the whole gain over deterministic boxes. "
         "Own minus baseline is -2.00 (95% CI -3.00 to -1.00)"),
        (0.6, 0.58, 0.56, "The own std gains nothing over deterministic boxes. Own minus baseline is -2.00 (95% CI "),
        (0.57, 0.56, 0.58, "The baseline gains nothing over deterministic boxes. Own minus baseline is +2.00 (95% CI "),
        (0.58, 0.56, 0.58, "The own std gains nothing over deterministic boxes. Own minus baseline is +2.00 (95% CI "),
    ],
)  # fmt: skip
def test_the_baseline_has_both_denominators(deterministic: float, constant: float, own: float, words: str) -> None:
    value = own - constant
    skill = Skill("pdq", own, constant, Interval(value, value - 0.01, value + 0.01), 0.041, 9, deterministic)
    told = said(Interval(1.0, 0.9, 1.1), skill=skill)
    assert f"; Constant-variance baseline (std 4.1% of the side): PDQ {100 * constant:.2f}, own std " in told
    assert words in told
    assert told.count("%") == (5 if deterministic == 0.3 and own > constant else 3)  # no fraction of what is no gain
    assert "nan" not in told


def test_a_difference_to_the_baseline_that_may_be_0_is_not_claimed() -> None:
    for low, words in ((-0.001, True), (0.001, False)):
        skill = Skill("pdq", 0.51, 0.5, Interval(0.01, low, 0.03), 0.041, 9, 0.2)
        told = said(Interval(1.0, 0.9, 1.1), skill=skill)
        assert told.endswith(": no difference can be claimed") == words


@pytest.mark.parametrize(("label", "words"), [(0.12, ", 12% wrong or uncertain labels"), (0.09, "")])
def test_a_second_cause_is_named_from_a_tenth_of_the_loss_on(label: float, words: str) -> None:
    shares = {"missed": 0.9 - label, "false_positives": 0.05, "label": label, "foreground": 0.05, "background": 0.0}
    budget = Budget(pdq=0.0, rounding=0.0, **shares)
    assert said(Interval(1.0, 0.9, 1.1), budget).endswith(f"of the lost points are missed objects{words}")


@pytest.mark.parametrize(
    ("group", "edges", "bias", "rmse", "told"),
    [
        ("edge", 100, 9.0, 12.0, "x1 by +9.0 px"),
        ("edge", 100, -9.0, 12.0, "x1 by -9.0 px"),
        ("edge", 100, 9.0, 13.0, ""),  # less than half of the mean square
        ("edge", 100, 1.1, 1.5, "x1 by +1.1 px"),
        ("edge", 100, 0.9, 1.0, ""),  # a pixel is a matter of counting: `last_pixels`
        ("edge", 3, 9.0, 9.5, ""),
        ("class", 100, 9.0, 9.5, ""),
    ],
)
def test_boxes_that_lie_aside(group: str, edges: int, bias: float, rmse: float, told: str) -> None:
    row = CalibrationRow(group, "x1", edges, 3.0, 3.0, bias, rmse, 4.0, 0.5, 0.6, 2.0)
    text = said(Interval(3.0, 2.9, 3.1), calibration=(row,))
    assert ("the ground truth is shifted from the boxes" in text) == bool(told)
    assert told in text
