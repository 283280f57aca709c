"""The threshold at which a measure is best."""

from __future__ import annotations

import numpy as np
import pytest
from tests.amounts import others_slow
from tests.strategies import random_world

from probox import Convention, Detections, GroundTruth, InputError, evaluate
from probox.analysis.thresholds import GRID, best_threshold
from probox.measures.registry import MEASURES


@pytest.mark.parametrize("convention", ["reference", Convention(label_threshold=0.2)], ids=["all", "above 0.2"])
@pytest.mark.parametrize("seed", range(6))
def test_no_threshold_gives_a_higher_pdq(seed, convention):
    result = evaluate(*random_world(seed), convention=convention)
    best = best_threshold(result)
    lowest = result.convention.label_threshold or 0.0
    tried = [result.at_threshold(t).pdq for t in (*GRID, *result.detections.confidences) if t >= lowest]
    assert best.value == pytest.approx(np.nanmax([*tried, result.pdq]), abs=1e-12)
    if best.threshold is None:
        assert (best.gain, best.value) == (0.0, result.pdq)
    else:
        assert result.at_threshold(best.threshold).pdq == pytest.approx(best.value, abs=1e-12)
        np.testing.assert_equal(best.summary, result.at_threshold(best.threshold).summary())
        assert best.gain > 0


def sure_and_unsure() -> tuple[GroundTruth, Detections]:
    """Return two objects found surely, and false detections below 0.3: above that, nothing is wrong."""
    boxes = [[10, 20, 40, 40], [50, 5, 60, 30]]
    truth = GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [7, 7], boxes, [0, 0])
    rest = [[0, 0, 5, 5], [1, 1, 6, 6], [30, 1, 35, 5]]
    probs = [[0.9], [0.8], [0.3], [0.25], [0.1]]
    return truth, Detections(classes=["cup"], image_ids=[7] * 5, boxes=boxes + rest, label_probs=probs)


def test_false_detections_are_left_out():
    best = best_threshold(evaluate(*sure_and_unsure()))
    assert best.threshold == pytest.approx(0.3, abs=1e-7)
    assert best.value == pytest.approx((np.sqrt(0.9) + np.sqrt(0.8)) / 2, abs=1e-7)
    assert best.now == pytest.approx((np.sqrt(0.9) + np.sqrt(0.8)) / 5, abs=1e-7)
    assert str(best).startswith(
        "PDQ is best above 0.3 (chosen on these images): 0.3686 -> 0.9216; mAP 1.0000 -> 1.0000, moLRP "
    )


def test_nothing_to_gain():
    best = best_threshold(evaluate(*sure_and_unsure()), "map")
    assert (best.threshold, best.gain) == (None, 0.0)
    assert str(best) == "no threshold makes mAP better than 1.0000"


@pytest.fixture(scope="module")
def on_the_grid():
    result = evaluate(*random_world(1), measures="all")
    return result, [result.at_threshold(t).summary() for t in GRID]


@pytest.mark.parametrize("measure", others_slow([m.name for m in MEASURES if m.name not in ("pdq", "map")], 7))
def test_other_measures_are_tried_on_the_grid(on_the_grid, measure):
    result, summaries = on_the_grid
    chosen = next(m for m in MEASURES if m.name == measure)
    best = best_threshold(result, measure)
    tried = [summary[chosen.headline.key] for summary in summaries]
    sign = -1 if chosen.headline.better == "low" else 1
    if np.isnan(tried).all():
        assert best.threshold is None
    elif best.threshold is None:
        assert not np.nanmax(sign * np.array(tried)) > sign * best.now + 1e-12
    else:
        assert best.value == pytest.approx(sign * np.nanmax(sign * np.array(tried)))


def test_messages():
    result = evaluate(*sure_and_unsure())
    with pytest.raises(InputError, match=r"expected measure to be one of pdq, map, lrp.*, got 'PDQ'"):
        best_threshold(result, "PDQ")
    with pytest.raises(InputError, match="there is no detection to leave out"):
        best_threshold(result.at_threshold(0.95))
    with pytest.raises(InputError, match="pdq was not measured; evaluate with pdq among the measures"):
        best_threshold(evaluate(*sure_and_unsure(), measures=("map",)))
