"""The label threshold that is chosen on other images than it is applied to."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from tests.strategies import random_world

import probox
from probox import Convention, InputError
from probox.notes import Note
from probox.tables.results import Verdict


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
    with pytest.raises(InputError, match=r"left out those that are not above 0\.3"):
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
    with pytest.raises(InputError, match="expected two or more, got 1"):
        probox.evaluate(truth, found, image_ids=[1], label_threshold="auto")
    with pytest.raises(InputError, match="PDQ was not measured"):
        probox.evaluate(truth, found, measures="map", label_threshold="auto")
    with pytest.raises(InputError, match='fit does not take label_threshold="auto"'):
        probox.calibration.fit(truth, found, label_threshold="auto")
    with pytest.raises(InputError, match='PDQ does not take label_threshold="auto"'):
        probox.PDQ(label_threshold="auto")
    with pytest.raises(InputError, match="a number, \"auto\" or None, got 'best'"):
        Convention(label_threshold="best")
