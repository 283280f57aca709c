"""The warning about false positives that a label threshold would leave out."""

from __future__ import annotations

import numpy as np
import pytest
from tests.analysis.test_thresholds import many_faint_boxes

import probox
from probox.demo import make_demo
from probox.evaluation.input_checks import warn_of_clutter


def warnings(result):
    return [warning for warning in result.warnings if warning.code == "false-positives-dominate"]


def test_names_a_threshold_and_the_pdq_there():
    truth, found = many_faint_boxes()
    result = probox.evaluate(truth, found)
    (warning,) = warnings(result)
    assert warning.message == (
        f"80% of PDQ's denominator TP + FP + FN are false positives: PDQ is {100 * result.pdq:.2f}%, and "
        f"{100 * result.at_threshold(0.223).pdq:.2f}% at scores > 0.223 (threshold chosen on these images); "
        'evaluate with label_threshold="auto", which chooses it on other images'
    )
    assert (
        result.at_threshold(0.22).pdq < result.at_threshold(0.223).pdq == pytest.approx(result.best_threshold().value)
    )


def test_the_named_pdq_is_that_of_detections_matched_anew():
    """Without its faint match, the second object is matched with a box that was a false positive."""
    objects = [[10, 20, 40, 40], [70, 20, 100, 40]]
    boxes = [objects[0], objects[1], [70, 20, 100, 39], *([50 - n, 2, 56 - n, 8] for n in range(9))]
    probs = [[0.9, 0.1], [0.19, 0.0], [0.05, 0.95], *([0.05, 0.2] for _ in range(9))]
    truth = probox.GroundTruth.from_boxes(["cup", "dog"], {7: (128, 48)}, [7, 7], objects, [0, 0])
    found = probox.Detections(classes=["cup", "dog"], image_ids=[7] * 12, boxes=boxes, label_probs=probs)
    result = probox.evaluate(truth, found)
    assert result.objects.partners.tolist() == [0, 1]
    there = result.at_threshold(0.2)
    assert (there.tp, there.fp) == (2, 0)
    (warning,) = warnings(result)
    assert f"{100 * there.pdq:.2f}% at scores > 0.2 (" in warning.message


@pytest.mark.parametrize(("false", "warned"), [(2, False), (3, True)])
def test_warns_from_more_false_positives_than_objects_on(false, warned):
    objects = [[10, 20, 40, 40], [70, 20, 100, 40]]
    boxes = [*objects, *([50 - n, 2, 56 - n, 8] for n in range(false))]
    truth = probox.GroundTruth.from_boxes(["cup"], {7: (128, 48)}, [7, 7], objects, [0, 0])
    probs = [[0.9], [0.9], *([0.1] for _ in range(false))]
    found = probox.Detections(classes=["cup"], image_ids=[7] * len(boxes), boxes=boxes, label_probs=probs)
    result = probox.evaluate(truth, found)
    assert (result.tp, result.fp) == (2, false)
    assert bool(warnings(result)) == warned


@pytest.mark.parametrize("name", ["deterministic", "probabilistic"])
def test_is_silent_where_few_detections_are_wrong(name):
    demo = make_demo()
    assert not warnings(probox.evaluate(demo.truth, demo.detectors[name]))


def test_is_silent_with_a_threshold_or_without_pdq():
    truth, found = many_faint_boxes()
    assert not warnings(probox.evaluate(truth, found, label_threshold=0.0))
    assert not warnings(probox.evaluate(truth, found, label_threshold="auto"))
    assert not warnings(probox.evaluate(truth, found, measures="map"))


@pytest.mark.parametrize("probability", [0.0, 0.5])
def test_is_silent_where_no_threshold_helps(probability):
    truth, found = many_faint_boxes()
    equal = probox.Detections(
        classes=["cup"], image_ids=found.image_ids, boxes=found.boxes, label_probs=np.full((len(found), 1), probability)
    )
    assert not warnings(probox.evaluate(truth, equal))


@pytest.mark.parametrize(
    ("false", "there", "warned"),
    [(11, 0.31, True), (10, 0.31, False), (11, 0.3, False)],
    ids=["both", "as many objects", "not much higher"],
)
def test_limits(false, there, warned):
    assert bool(warn_of_clutter(0.2, false, 10, 0.5, there)) == warned


def test_results_without_tables_warn_alike():
    truth, found = many_faint_boxes()
    (warning,) = warnings(probox.evaluate(truth, found))
    parts = [probox.evaluate(truth, found, part=(number, 2), keep="matches") for number in (1, 2)]
    joined = probox.merge(parts)
    assert [str(one) for one in warnings(joined)] == [str(warning).replace("> 0.223", "> 0.23")]  # steps of 0.01
