"""Evaluations scored anew from what they keep."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import random_world as mixed_world

from probox import Convention, Detections, Evaluation, GroundTruth, InputError, evaluate
from probox.analysis.baseline import make_pixel_covariances, make_rescorer, minimize_by_golden_section
from probox.tables.geometry import constant_covariances


def random_world(seed):
    """Return a world without heatmaps, which results do not keep."""
    truth, found = mixed_world(seed)
    return truth, found.replace(heatmaps=None)


CONVENTIONS = [
    "reference", "paper", "challenge", Convention(box_truth=True), Convention(fixed_variance=9.0),
    Convention(clip="corners"), Convention(label_threshold=0.4),
]  # fmt: skip


@pytest.mark.parametrize("convention", CONVENTIONS, ids=str)
@pytest.mark.parametrize("seed", range(2))
def test_nothing_changed_gives_the_same_numbers(seed, convention):
    result = evaluate(*random_world(seed), convention=convention)
    again = make_rescorer(result).score()
    np.testing.assert_array_equal(again.pairs.qualities, result.pairs.qualities)
    np.testing.assert_array_equal(again.detections.verdicts, result.detections.verdicts)
    assert again.pdq == result.pdq


@pytest.mark.parametrize("seed", range(3))
def test_a_stored_result_will_do(seed, tmp_path):
    result = evaluate(*random_world(seed))
    result.save(tmp_path)
    scaled = result.detections.covariances * 4
    assert (
        make_rescorer(Evaluation.load(tmp_path)).score(covariances=scaled).pdq
        == make_rescorer(result).score(covariances=scaled).pdq
    )


@pytest.mark.parametrize("seed", range(3))
def test_other_covariances_are_those_of_another_file(seed):
    truth, found = random_world(seed)
    covariances = np.tile(np.eye(2) * 25.0, (len(found), 2, 1, 1))
    result = evaluate(truth, found)
    scored = make_rescorer(result).score(covariances=covariances[: len(result.detections)])
    assert scored.pdq == evaluate(truth, found.replace(covariances=covariances)).pdq


def test_right_labels_are_worth_the_square_root_of_the_label():
    truth = GroundTruth.from_boxes(["cup", "dog"], {7: (64, 48)}, [7], [[10, 20, 40, 40]], [0])
    found = Detections(classes=["cup", "dog"], image_ids=[7], boxes=[[10, 20, 40, 40]], label_probs=[[0.0, 0.9]])
    result = evaluate(truth, found)
    assert result.pdq == 0.0  # a label of probability 0 matches nothing
    assert make_rescorer(result).with_right_labels().pdq == 1.0


def test_heatmaps_are_noticed():
    truth = GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [7], [[10, 20, 40, 40]], [0])
    heatmap = np.zeros((48, 64))
    heatmap[20:41, 10:41] = 0.7
    found = Detections(
        classes=["cup"], image_ids=[7], boxes=[[10, 20, 40, 40]], label_probs=[[0.9]], heatmaps=[heatmap]
    )
    with pytest.raises(InputError, match="1 detections are heatmaps, which results do not keep"):
        make_rescorer(evaluate(truth, found))


def test_what_is_not_kept_is_told():
    result = evaluate(*random_world(0))
    with pytest.raises(InputError, match="label probabilities were not kept"):
        make_rescorer(result.without_labels())
    with pytest.raises(InputError, match="PDQ was not measured"):
        make_rescorer(evaluate(*random_world(0), measures=("map",)))


def test_a_fixed_variance_is_what_was_scored():
    result = evaluate(*random_world(0), convention=Convention(fixed_variance=9.0))
    np.testing.assert_array_equal(result.detections.covariances[0], np.tile(9 * np.eye(2), (2, 1, 1)))


def test_constant_covariances():
    boxes = np.array([[0.0, 0.0, 20.0, 10.0], [5.0, 5.0, 5.2, 9.0]])
    found = constant_covariances(boxes, np.array([0.1, 0.5]))
    np.testing.assert_allclose(found[0], np.tile(np.diag([4.0, 1.0]), (2, 1, 1)))
    np.testing.assert_allclose(found[1], np.tile(np.diag([0.25, 4.0]), (2, 1, 1)))  # no side is below a pixel


@given(st.floats(-5, 5), st.floats(0.5, 3))
def test_golden_section_finds_the_valley(where, power):
    found = minimize_by_golden_section(lambda x: abs(x - where) ** power, -6.0, 6.0, steps=40)
    assert found == pytest.approx(where, abs=1e-5)


def test_golden_section_calls_once_a_step():
    calls: list[float] = []
    minimize_by_golden_section(lambda x: calls.append(x) or x * x, -1.0, 2.0, steps=10)
    assert len(calls) == 10


@pytest.mark.parametrize("convention", ["reference", "challenge"])
def test_false_positives_cost_what_they_did(convention):
    """The challenge counts a false positive by its label, also one of a class that the truth does not have."""
    truth = GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [7], [[10, 20, 40, 40]], [0])
    found = Detections(
        classes=["cup", "zebra"],
        image_ids=[7] * 3,
        boxes=[[10, 20, 40, 40], [0, 0, 5, 5], [50, 5, 60, 15]],
        label_probs=[[0.8, 0.1], [0.3, 0.1], [0.05, 0.9]],
    )
    result = evaluate(truth, found, convention=convention)
    scene = make_rescorer(result)
    assert scene.score().pdq == result.pdq
    assert scene.of(truth.dataset.image_ids, np.array([True, False, True])).score().pdq == (
        result.keeping(np.array([True, False, True])).pdq
    )
    assert scene.with_right_labels().pdq >= result.pdq


def test_constant_covariances_in_pixels():
    boxes = np.array([[0.0, 0.0, 20.0, 10.0], [5.0, 5.0, 5.2, 9.0]])
    np.testing.assert_array_equal(make_pixel_covariances(boxes, 3.0), np.tile(9.0 * np.eye(2), (2, 2, 1, 1)))
    np.testing.assert_array_equal(make_pixel_covariances(boxes, np.array([1.0, 2.0]))[1, 0], 4.0 * np.eye(2))
