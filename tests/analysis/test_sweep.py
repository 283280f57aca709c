"""All thresholds at once give what evaluating anew at each gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.amounts import examples
from tests.strategies import random_world

import probox
from probox import Convention, Evaluation, InputError
from probox.analysis import threshold_sweep
from probox.analysis.threshold_sweep import find_rematches, threshold_curve


def check(result: Evaluation, levels: np.ndarray) -> None:
    curve = threshold_curve(result, levels)
    for place, level in enumerate(levels):
        expected = result.at_threshold(float(level)).summary()
        for name in ("TP", "FP", "FN"):
            assert curve[name][place] == expected[name], (name, level)
        np.testing.assert_allclose(curve["PDQ"][place], expected["PDQ"], atol=1e-12)


@examples(60)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["optimal", "greedy"]), st.sampled_from(["reference", "challenge"]))
def test_curve_is_that_of_evaluating_anew(seed: int, assignment: str, preset: str) -> None:
    truth, found = random_world(seed)
    convention = Convention.preset(preset, assignment=assignment, object_filter=bool(seed % 2))
    result = probox.evaluate(truth, found, convention=convention)
    own = np.unique(result.detections.confidences)
    check(result, np.unique(np.concatenate([own, np.linspace(0, 1, 11).astype(np.float32)])))


def test_below_the_evaluations_own_threshold_nothing_is_known() -> None:
    truth, found = random_world(3)
    result = probox.evaluate(truth, found, convention=Convention(label_threshold=0.5))
    levels = np.linspace(0, 1, 11).astype(np.float32)
    curve = threshold_curve(result, levels)
    for values in curve.values():
        np.testing.assert_array_equal(np.isnan(values[:5]), True)
    whole = threshold_curve(probox.evaluate(truth, found), levels)
    np.testing.assert_allclose(curve["PDQ"][5:], whole["PDQ"][5:], atol=1e-12)


def test_a_detection_takes_over_when_a_surer_quality_drops_out() -> None:
    """Two detections of one object: the better one is less sure, so a threshold hands the object to the other."""
    truth = probox.GroundTruth.from_boxes(["cup", "dog"], {1: (100, 100)}, [1], [[10, 10, 60, 60]], [0])
    found = probox.Detections(
        classes=["cup", "dog"],
        image_ids=[1, 1],
        boxes=[[10, 10, 60, 60], [12, 10, 60, 60]],
        label_probs=[[0.5, 0.4], [0.45, 0.55]],
        covariances=np.full((2, 2, 2, 2), 0.0) + np.eye(2),
    )
    result = probox.evaluate(truth, found)
    assert result.detections.verdicts.tolist() == [1, 2]
    events = find_rematches(result)
    assert events.detection.tolist() == [1]
    assert events.threshold.tolist() == [0.5]
    assert result.pairs.objects[events.pair].tolist() == [0]


def test_nothing_found_nothing_there() -> None:
    truth = probox.GroundTruth.from_boxes(["cup"], {1: (10, 10)}, [], np.zeros((0, 4)), [])
    found = probox.Detections(classes=["cup"], image_ids=[], boxes=np.zeros((0, 4)), label_probs=np.zeros((0, 1)))
    curve = threshold_curve(probox.evaluate(truth, found), [0.0, 0.5])
    assert np.isnan(curve["PDQ"]).all()
    assert curve["TP"].tolist() == [0, 0]


@pytest.mark.parametrize("name", ["sure", "unsure"])
def test_demo(results: dict[str, Evaluation], name: str) -> None:
    check(results[name], np.linspace(0, 1, 21))


def test_without_pdq_there_is_nothing_to_sweep():
    result = probox.evaluate(*random_world(3), measures=("map",))
    with pytest.raises(InputError, match="PDQ was not measured, so nobody is matched; evaluate with PDQ"):
        threshold_curve(result, [0.5])


@pytest.mark.parametrize("assignment", ["optimal", "greedy"])
def test_states_in_which_only_unmatched_detections_drop_out_change_nothing(
    assignment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An image with very many detections is matched only where a matched one drops out."""
    rng = np.random.default_rng(0)
    boxes = np.tile([[10, 10, 40, 40], [30, 20, 60, 50], [12, 40, 30, 60]], (20, 1)) + rng.integers(-4, 5, (60, 4))
    sizes, rows = {1: (80, 80), 2: (80, 80)}, [0, 1, 2]
    truth = probox.GroundTruth.from_boxes(["cup"], sizes, [1] * 3 + [2] * 3, boxes[rows + rows], [0] * 6)
    found = probox.Detections(
        classes=["cup"],
        image_ids=[1] * 20 + [2] * 40,
        boxes=boxes,
        label_probs=rng.choice(40, (60, 1)) / 50 + 0.1,
        covariances=np.broadcast_to(4.0 * np.eye(2), (60, 2, 2, 2)),
    )
    result = probox.evaluate(truth, found, assignment=assignment)
    expected = find_rematches(result)
    assert len(expected) > 5
    for most in (0, 500):  # both images, and one of them
        monkeypatch.setattr(threshold_sweep, "_MOST_PAIRS", most)
        found = find_rematches(result)
        order, known = (np.lexsort((events.detection, events.threshold)) for events in (found, expected))
        for column in ("threshold", "detection", "pair"):
            np.testing.assert_array_equal(getattr(found, column)[order], getattr(expected, column)[known])
