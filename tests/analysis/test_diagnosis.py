"""A diagnosis: numbers that belong together, and words that follow from them."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
from tests.strategies import random_world
from tests.worlds import boxes_truth, simulated

import probox
from probox import Detections, Evaluation, GroundTruth, evaluate
from probox.analysis.calibration_table import calibration_table, worst_edge
from probox.analysis.diagnosis import NUMBERS, diagnose
from probox.evaluation.joining import without_labels
from probox.measures.registry import MEASURES, measures_called

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
    asked = {column.key for measure in MEASURES if not measure.standard for column in measure.columns}
    assert set(told["numbers"]) == asked
    assert told["pairs"] == len(too_sure.matched_pairs)
    assert told["coverage"]["90"] == told["numbers"]["coverage_90"]
    json.dumps(told)


def test_a_scale_of_two_is_found_and_said(too_sure):
    diagnosis = too_sure.diagnose(replicates=200)
    assert diagnosis.numbers["NEES_factor"] == pytest.approx(2.0, abs=0.1)
    assert diagnosis.verdict[0].startswith("corners are 2.0 times too sure (95 % interval 1.9")
    everything, *_ = diagnosis.calibration
    assert (everything.group, everything.too_sure) == ("all", pytest.approx(2.0, abs=0.1))
    assert everything.rmse == pytest.approx(4.0, rel=0.06)
    assert everything.sharpness == pytest.approx(2.0)
    assert everything.coverage_68 == pytest.approx(0.38, abs=0.04)  # P(|z| < 0.994 / 2)


def test_a_few_corners_that_are_far_too_sure_do_not_speak_for_all():
    truth = boxes_truth(30)
    found = simulated(truth)
    assert found.covariances is not None
    times = np.where(np.arange(len(found)) % 10, 9.0, 0.001)  # 6 pixels for errors of 4, one in ten next to nothing
    diagnosis = evaluate(truth, found.replace(covariances=found.covariances * times[:, None, None, None])).diagnose(
        replicates=50
    )
    inside = 100 * diagnosis.numbers["coverage_68"]
    assert inside > 68
    said = diagnosis.verdict[0]
    assert said.startswith("a few corners are far too sure: errors are ")
    assert f"yet {inside:.0f} % of edges lie inside their 68 % interval" in said


def test_unsure_and_honest_corners_are_said_so():
    truth = boxes_truth(30)
    unsure = evaluate(truth, simulated(truth, sigma=2.0, reported=5.0)).diagnose(replicates=100)
    assert unsure.verdict[0].startswith("corners are 2.5 times too unsure (95 % interval 2.")
    honest = evaluate(truth, simulated(truth, sigma=3.0, reported=3.0)).diagnose(replicates=100)
    assert honest.verdict[0].startswith("corners are as sure as they should be: errors are ")


def test_calibration_by_groups(too_sure):
    rows = calibration_table(too_sure)
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


def test_the_worst_edge_is_found():
    truth = boxes_truth(40)
    found = simulated(truth, sigma=3.0, reported=3.0)
    boxes = found.boxes.copy()
    dogs = found.labels == 1
    boxes[dogs, 3] += np.where(np.arange(dogs.sum()) % 2, 9.0, -9.0)
    worst = worst_edge(evaluate(truth, found.replace(boxes=boxes, extents=None)))
    assert (worst.edge, worst.name) == ("y2", truth.classes[1])
    assert worst.too_sure == pytest.approx(math.sqrt(10), rel=0.15)


def test_edges_at_the_border_are_not_judged():
    truth = GroundTruth.from_boxes(["cup"], {1: (100, 100)}, [1], [[0, 10, 50, 60]], [0])
    found = Detections(classes=["cup"], image_ids=[1], boxes=[[5, 11, 51, 61]], label_probs=[[0.9]],
                       covariances=np.tile(np.eye(2), (1, 2, 1, 1)))  # fmt: skip
    rows = calibration_table(evaluate(truth, found))
    assert [row.edges for row in rows[:5]] == [3, 0, 1, 1, 1]
    assert math.isnan(rows[1].too_sure)


def test_boxes_of_last_pixels_are_noticed():
    truth = boxes_truth(40)
    found = simulated(truth, sigma=3.0, reported=3.0)
    shifted = found.replace(boxes=found.boxes - [0, 0, 1, 1], extents=None)
    word = "x2 and y2 lie about a pixel short"
    assert any(word in text for text in evaluate(truth, shifted).diagnose(replicates=20).remarks)
    assert not any(word in text for text in evaluate(truth, found).diagnose(replicates=20).remarks)
    moved = found.replace(boxes=found.boxes - [1, 1, 1, 1], extents=None)
    assert not any(word in text for text in evaluate(truth, moved).diagnose(replicates=20).remarks)


def test_plain_boxes():
    truth = boxes_truth(10)
    result = evaluate(truth, simulated(truth).replace(covariances=None))
    diagnosis = result.diagnose(replicates=20)
    pairs = len(result.matched_pairs)
    assert diagnosis.verdict[0] == f"boxes claim to be certain: none of {pairs} matched ones has a sigma to judge"
    assert diagnosis.verdict[1].startswith("a constant of ")
    assert f"instead of {100 * result.pdq:.2f}" in diagnosis.verdict[1]
    assert "best_scale" not in {answer.key for answer in diagnosis.what_if}
    assert math.isnan(diagnosis.numbers["NLL"])
    assert math.isnan(diagnosis.skill["energy"].skill.value)
    assert " nan" not in str(diagnosis)
    assert sum(f"{pairs} of {pairs} pairs" in text for text in diagnosis.remarks) == 2
    assert not any("only 0 pairs" in text for text in diagnosis.remarks)


def test_words_do_not_claim_more_than_images_can_tell():
    from probox.analysis.intervals import Interval
    from probox.analysis.verdict import verdict_of

    truth = boxes_truth(6)
    diagnosis = evaluate(truth, simulated(truth)).diagnose(replicates=20)
    wide = verdict_of(diagnosis, Interval(5.42, 0.95, 11.18, 3.0), None)[0]
    assert wide.startswith(
        "errors are 5.4 times what sigmas say (95 % interval 0.95 to 11.18): these images cannot tell"
    )
    unsure = verdict_of(diagnosis, Interval(0.5, -0.1, 0.8, 0.2), None)[0]
    assert unsure.startswith("corners are 2.0 times too unsure")
    assert "interval" not in unsure


def test_singular_covariances_are_said():
    truth = boxes_truth(6)
    found = simulated(truth)
    flat = np.zeros_like(found.covariances)
    flat[:, :, 0, 0] = 4.0
    diagnosis = evaluate(truth, found.replace(covariances=flat)).diagnose(replicates=20)
    assert diagnosis.verdict[0].startswith("no covariance of a matched box can be inverted")


def test_few_pairs_are_said():
    truth = boxes_truth(3, per_image=2)
    diagnosis = evaluate(truth, simulated(truth)).diagnose(replicates=20)
    assert "pairs are too few to say much" in diagnosis.verdict[0]
    assert any("fewer than 30" in text for text in diagnosis.remarks)


def test_one_image_has_no_interval():
    truth = boxes_truth(1)
    diagnosis = evaluate(truth, simulated(truth)).diagnose(replicates=20)
    assert "95 %" not in " ".join(diagnosis.verdict)
    assert "pdq" not in diagnosis.skill
    assert any(
        text.startswith("no intervals: images are drawn anew, and there is only one") for text in diagnosis.remarks
    )


def test_nothing_found_and_nothing_there():
    truth = boxes_truth(3)
    none = Detections(classes=truth.classes, image_ids=[], boxes=np.zeros((0, 4)), label_probs=np.zeros((0, 2)))
    assert evaluate(truth, none).diagnose().verdict == (
        "no detection overlaps an object of its class by half: there are no sigmas or labels to judge",
        "100 % of the lost points are missed objects",
    )
    empty = GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [], np.zeros((0, 4)), [])
    diagnosis = evaluate(empty, Detections(classes=["cup"], image_ids=[], boxes=np.zeros((0, 4)),
                                           label_probs=np.zeros((0, 1)))).diagnose()  # fmt: skip
    assert len(diagnosis.verdict) == 1
    assert str(diagnosis)


def test_what_is_missing_is_said(too_sure):
    forgotten = without_labels(too_sure).diagnose(replicates=20)
    assert any("label probabilities were not kept" in text for text in forgotten.remarks)
    assert math.isnan(forgotten.numbers["Brier"])
    assert forgotten.budget is not None
    assert {answer.key for answer in forgotten.what_if} == {"no_false_positives", "no_duplicates", "best_threshold"}
    boxes_alone = dataclasses.replace(too_sure, measures=("map",)).diagnose(replicates=20)
    assert boxes_alone.budget is None
    assert any("PDQ was not measured" in text for text in boxes_alone.remarks)


def test_heatmaps_are_left_out():
    truth, found = random_world(2)
    result = evaluate(truth, found)
    assert result.detections.heatmaps.any()
    diagnosis = result.diagnose(replicates=20)
    assert any("heatmaps, which results do not keep" in text for text in diagnosis.remarks)


def test_it_is_deterministic_and_independent_of_threads(too_sure):
    one, two = (diagnose(too_sure, replicates=50, threads=threads).to_dict() for threads in (1, 2))
    np.testing.assert_equal(one, two)
    assert probox.diagnose is diagnose


def test_text_has_every_table(too_sure):
    text = str(too_sure.diagnose(replicates=50))
    for title in ("Where the points went", "What if", "Are sigmas honest?", "Are sigmas informative?", "Every measure"):
        assert f"\n{title}" in text
    assert text.startswith("- corners are 2.0 times too sure")
    assert "by COCO IoU 0.5" in text


def test_progress_ends_at_the_end(too_sure):
    steps: list[tuple[int, int]] = []
    diagnose(too_sure, replicates=20, progress=lambda done, total: steps.append((done, total)))
    assert steps == [(n, len(steps)) for n in range(1, len(steps) + 1)]
    assert len(steps) > 7
