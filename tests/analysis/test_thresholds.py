"""All thresholds at once, the best one, and the one that is chosen on other images."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.amounts import examples, others_slow
from tests.strategies import random_world, with_box_masks

import probox
from probox import Convention, Detections, Evaluation, GroundTruth, InputError, evaluate
from probox.analysis import threshold_sweep
from probox.analysis.threshold_sweep import find_rematches, threshold_curve
from probox.analysis.thresholds import GRID, best_threshold
from probox.measures.registry import MEASURES
from probox.notes import Note
from probox.tables.results import Verdict


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


def test_without_pdq_there_is_nothing_to_sweep():
    result = probox.evaluate(*random_world(3), measures=("map",))
    with pytest.raises(InputError, match="PDQ was not measured; evaluate again with measures="):
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
        "best label threshold for PDQ: 0.3 (chosen on these images): 0.3686 -> 0.9216; mAP 1.0000 -> 1.0000, moLRP "
    )


def test_nothing_to_gain():
    best = best_threshold(evaluate(*sure_and_unsure()), "map")
    assert (best.threshold, best.gain) == (None, 0.0)
    assert str(best) == "no label threshold improves mAP beyond 1.0000"


@pytest.fixture(scope="module")
def on_the_grid():
    truth, found = random_world(1)
    result = evaluate(truth, with_box_masks(truth, found), measures="all")
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
    with pytest.raises(InputError, match="but the result has none"):
        best_threshold(result.at_threshold(0.95))
    with pytest.raises(InputError, match="pdq was not measured; evaluate again with measures="):
        best_threshold(evaluate(*sure_and_unsure(), measures=("map",)))


def cross_fitted_by_definition(truth, found, **settings):
    """Return thresholds of folds and the summed-up PDQ: each fold evaluated at the best threshold of the others."""
    ids = np.sort(truth.image_ids)
    folds = np.empty(len(ids), int)
    folds[np.random.default_rng(0).permutation(len(ids))] = np.arange(len(ids)) % min(5, len(ids))
    thresholds, qualities, counted = [], [], []
    for fold in range(folds.max() + 1):
        others = probox.evaluate(truth, found, image_ids=ids[folds != fold].tolist(), **settings)
        best = others.best_threshold().threshold if len(others.detections) else None
        own = probox.evaluate(truth, found, image_ids=ids[folds == fold].tolist(), label_threshold=best, **settings)
        table = own.detections
        qualities += table.quality("pPDQ")[table.verdicts == Verdict.TP].tolist()
        wrong = table.costs[table.verdicts == Verdict.FP] if own.convention.confidence_denominator else np.ones(own.fp)
        counted += [own.tp, own.fn, *wrong.tolist()]
        thresholds.append(best)
    return folds, thresholds, math.fsum(qualities) / math.fsum(counted)


@pytest.mark.parametrize("preset", ["reference", "challenge"])
@pytest.mark.parametrize("seed", range(6))
def test_is_the_definition_to_the_bit(seed, preset):
    truth, found = random_world(seed)
    folds, thresholds, pdq = cross_fitted_by_definition(truth, found, preset=preset)
    result = probox.evaluate(truth, found, label_threshold="auto", preset=preset)
    choice = result.threshold_choice
    assert choice.folds.tolist() == folds.tolist()
    assert choice.thresholds == tuple(thresholds)
    assert result.pdq == pdq
    everything = probox.evaluate(truth, found, preset=preset)
    assert choice.on_all == everything.best_threshold().threshold
    np.testing.assert_equal(everything.at_threshold("auto").summary(), result.summary())


def many_faint_boxes(images: int = 12):
    """Return an object in each image, found surely, and four faint boxes beside it; scores differ in each image."""
    boxes, probs, ids = [], [], []
    for image in range(1, images + 1):
        boxes += [[10, 20, 40, 40], *([50 - n, 2, 56 - n, 8] for n in range(4))]
        probs += [[0.9 - 0.01 * image], *([0.1 + 0.01 * image + 0.001 * n] for n in range(4))]
        ids += [image] * 5
    sizes = dict.fromkeys(range(1, images + 1), (64, 48))
    truth = probox.GroundTruth.from_boxes(["cup"], sizes, list(sizes), [[10, 20, 40, 40]] * images, [0] * images)
    return truth, probox.Detections(classes=["cup"], image_ids=ids, boxes=boxes, label_probs=probs)


@pytest.fixture(scope="module")
def world():
    return many_faint_boxes()


@pytest.fixture(scope="module")
def result(world):
    return probox.evaluate(*world, label_threshold="auto")


def test_pdq_is_at_the_threshold_and_other_metrics_of_all_detections(world, result):
    everything = probox.evaluate(*world)
    summary, before = result.summary(), everything.summary()
    assert (summary["mAP"], summary["moLRP"]) == (before["mAP"], before["moLRP"])
    assert len(result.detections) == len(everything.detections)
    assert result.pdq > 3 * everything.pdq
    assert (result.tp, result.fn) == (12, 0)
    assert result.fp < everything.fp
    assert result.convention.describe() == "reference, label threshold auto"


def test_says_what_it_chose(result):
    choice = result.threshold_choice
    (note,) = [text for text in map(str, result.notes) if text.startswith("label threshold")]
    for threshold in (*choice.thresholds, choice.on_all):
        assert f"{threshold:.4g}" in note
    assert "cross-fitting over 5 folds of images" in note
    assert "label threshold of PDQ chosen by cross-fitting" in str(result)
    described = choice.to_dict()
    assert [fold["images"] for fold in described["folds"]] == [3, 3, 2, 2, 2]
    assert described["chosen_on_all_images"] == choice.on_all


def test_thresholds_are_greater_than_not_at_least(result):
    """A detection whose confidence equals the threshold of its image is left out of PDQ."""
    table, choice = result.detections, result.threshold_choice
    levels = np.array(choice.thresholds, np.float32)[choice.folds][table.image_rows]
    left = table.verdicts == Verdict.IGNORED
    assert left.tolist() == (table.confidences <= levels).tolist()
    exact = dataclasses.replace(choice, thresholds=(float(table.confidences[0]),) * 5)
    assert not exact.keeps(table.confidences, table.image_rows)[0]


def test_saved_and_loaded(result, tmp_path):
    result.save(tmp_path / "auto")
    for again in (probox.load(tmp_path / "auto"), probox.Evaluation.from_bytes(result.to_bytes())):
        np.testing.assert_equal(again.summary(), result.summary())
        assert again.threshold_choice.to_words() == result.threshold_choice.to_words()
        assert again.notes == result.notes
        assert again.convention == result.convention


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"folds": [0]}, "expected the fold of each image"),
        ({"thresholds": [2.0] * 5}, "expected thresholds between 0 and 1"),
        ({"more": 1}, "expected thresholds, folds and on_all"),
    ],
)
def test_forged_choices_are_refused(result, tmp_path, change, problem):
    choice = result.threshold_choice
    with pytest.raises(InputError, match=problem):
        type(choice).from_words({**choice.to_words(), **change}, len(result.dataset))


def test_some_images_keep_their_thresholds(result):
    one = result.select_images([3])
    images = result.per_image().columns
    assert one.pdq == images["PDQ"][2]
    assert one.summary()["FP"] == images["FP"][2]
    ids = result.dataset.image_ids
    both = result.select_images(ids[6:]) + result.select_images(ids[:6])
    np.testing.assert_equal(both.summary(), result.summary())


def test_other_thresholds_follow_from_all_detections(world, result):
    everything = probox.evaluate(*world)
    np.testing.assert_equal(result.at_threshold(0.3).summary(), everything.at_threshold(0.3).summary())
    assert result.best_threshold() == everything.best_threshold()
    assert result.at_threshold("auto") is result
    with pytest.raises(InputError, match=r"this one excludes those not above 0\.3"):
        everything.at_threshold(0.3).at_threshold("auto")


def test_images_one_by_one(world, result):
    truth, found = world
    evaluator = probox.Evaluator(truth.classes, label_threshold="auto")
    for image in truth.image_ids.tolist():
        evaluator.update(truth.select_images([image]), found.select(found.image_ids == image))
    np.testing.assert_equal(evaluator.result().summary(), result.summary())


def test_compared_by_the_thresholds_of_each(world, result):
    everything = probox.evaluate(*world)
    compared = probox.compare({"auto": result, "all": everything}, replicates=50, per_class=True)
    pdq = compared.pairs[0].columns["PDQ"]
    assert (pdq.first.value, pdq.second.value) == pytest.approx((result.pdq, everything.pdq))
    assert pdq.p < 0.05
    assert compared.pairs[0].columns["mAP"].difference.value == 0.0
    assert compared.pairs[0].classes["PDQ"]["cup"].first.value == pytest.approx(result.pdq)
    assert result.intervals(replicates=20)["PDQ"].value == result.pdq
    assert (
        Note("settings-differ", first="auto", setting="label threshold", a="auto", second="all", b="none")
        in compared.notes
    )


def test_what_it_cannot_be_used_for(world):
    truth, found = world
    with pytest.raises(InputError, match="needs two or more images, got 1"):
        probox.evaluate(truth, found, image_ids=[1], label_threshold="auto")
    with pytest.raises(InputError, match="PDQ was not measured"):
        probox.evaluate(truth, found, measures="map", label_threshold="auto")
    with pytest.raises(InputError, match='fit does not take label_threshold="auto"'):
        probox.calibration.fit(truth, found, label_threshold="auto")
    with pytest.raises(InputError, match='PDQ does not take label_threshold="auto"'):
        probox.PDQ(label_threshold="auto")
    with pytest.raises(InputError, match="a number, \"auto\" or None, got 'best'"):
        Convention(label_threshold="best")
