"""What holds for every evaluation: bounds, order, merging, storing, thresholds."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.amounts import examples
from tests.evaluation.equal import assert_equal
from tests.strategies import CLASSES, random_world, worlds

import probox
from probox import Convention, Detections, Evaluation, Evaluator, GroundTruth, InputError, evaluate
from probox.notes import Note
from probox.tables.results import Verdict


@given(world=worlds, preset=st.sampled_from(["reference", "paper", "challenge"]))
def test_results_do_not_depend_on_the_number_of_threads(world, preset):
    truth, found = world
    assert_equal(
        evaluate(truth, found, convention=preset, threads=1), evaluate(truth, found, convention=preset, threads=2)
    )


@given(world=worlds, preset=st.sampled_from(["reference", "paper"]))
def test_qualities_lie_between_0_and_1(world, preset):
    evaluation = evaluate(*world, convention=preset)
    for name in ("pPDQ", "spatial", "label", "foreground", "background"):
        values = evaluation.pairs.quality(name)
        assert np.all((values >= 0) & (values <= 1)), name
    assert np.isnan(evaluation.pdq) or 0 <= evaluation.pdq <= 1


@given(world=worlds, seed=st.integers(0, 1000))
def test_order_of_detections_does_not_matter(world, seed):
    truth, found = world
    shuffled = found.select(np.random.default_rng(seed).permutation(len(found)))
    one, other = evaluate(truth, found).summary(), evaluate(truth, shuffled).summary()
    assert one == pytest.approx(other, abs=1e-12, nan_ok=True)


@given(world=worlds, seed=st.integers(0, 1000))
def test_order_of_objects_does_not_matter(world, seed):
    truth, found = world
    order = np.random.default_rng(seed).permutation(len(truth))
    order = order[np.argsort(truth.image_rows[order], kind="stable")]
    columns = ("image_rows", "labels", "boxes", "extents", "areas", "crowd", "ids")
    changed = {name: getattr(truth, name)[order] for name in columns}
    shuffled = dataclasses.replace(truth, masks=truth.masks.take(order), **changed)
    one, other = evaluate(truth, found).summary(), evaluate(shuffled, found).summary()
    assert one == pytest.approx(other, abs=1e-12, nan_ok=True)


@given(world=worlds, seed=st.integers(0, 1000))
def test_one_more_false_positive_never_raises_pdq(world, seed):
    truth, found = world
    before = evaluate(truth, found)
    rng = np.random.default_rng(seed)
    image_id = int(rng.choice(truth.image_ids))
    # A box that no pixel of the image can see.
    extra = Detections(
        classes=CLASSES,
        image_ids=np.append(found.image_ids, image_id),
        boxes=np.append(found.boxes, [[-500.0, -500.0, -400.0, -400.0]], axis=0),
        covariances=np.append(found.covariances, np.zeros((1, 2, 2, 2)), axis=0),
        label_probs=np.append(found.label_probs, [[0.5, 0.25, 0.25]], axis=0),
        heatmaps=None if found.heatmaps is None else (*found.heatmaps, None),
    )
    after = evaluate(truth, extra)
    assert after.fp == before.fp + 1
    assert after.pdq <= before.pdq or np.isnan(before.pdq)


@given(world=worlds)
def test_optimal_assignment_is_never_below_greedy(world):
    truth, found = world
    optimal = evaluate(truth, found)
    greedy = evaluate(truth, found, convention=Convention(assignment="greedy"))
    assert optimal.detections.quality("pPDQ").sum() >= greedy.detections.quality("pPDQ").sum() - 1e-12


@given(world=worlds, seed=st.integers(0, 1000))
def test_image_by_image_in_any_order_is_the_same_to_the_bit(world, seed):
    truth, found = world
    whole = evaluate(truth, found)
    evaluator, other = Evaluator(CLASSES), Evaluator(CLASSES)
    for number, image_id in enumerate(np.random.default_rng(seed).permutation(truth.image_ids)):
        part = truth.select_images([image_id]), found.select(found.image_ids == image_id)
        (evaluator if number % 2 else other).update(*part)
    evaluator.merge(other)
    assert_equal(evaluator.result(), whole)


@given(world=worlds, seed=st.integers(0, 1000))
def test_halves_add_up_to_the_whole(world, seed):
    truth, found = world
    first = np.random.default_rng(seed).random(len(truth.image_ids)) < 0.5
    halves = [
        evaluate(
            truth.select_images(truth.image_ids[rows]), found.select(np.isin(found.image_ids, truth.image_ids[rows]))
        )
        for rows in (first, ~first)
    ]
    assert_equal(halves[0] + halves[1], evaluate(truth, found))
    assert_equal(halves[1] + halves[0], evaluate(truth, found))


def test_parts_that_share_an_image_do_not_add_up():
    truth, found = random_world(5)
    part = evaluate(truth, found)
    with pytest.raises(InputError, match="image 22: is in result 1 too"):
        part + part
    with pytest.raises(InputError, match="by another convention"):
        part + evaluate(truth, found, convention="paper")
    evaluator = Evaluator(CLASSES)
    evaluator.update(truth, found)
    with pytest.raises(InputError, match="added before"):
        evaluator.update(truth, found)


@examples(30)
@given(world=worlds, preset=st.sampled_from(["reference", "paper", "challenge"]))
def test_saving_and_loading_changes_nothing(tmp_path_factory, world, preset):
    folder = tmp_path_factory.mktemp("saved")
    evaluation = evaluate(*world, convention=preset)
    evaluation.save(folder)
    loaded = Evaluation.load(folder)
    assert_equal(loaded, evaluation)
    assert (loaded.version, loaded.inputs, loaded.notes) == (probox.__version__, evaluation.inputs, evaluation.notes)


@examples(40)
@given(
    world=worlds, threshold=st.sampled_from([0.0, 0.35, 0.5, 0.9]), preset=st.sampled_from(["reference", "challenge"])
)
def test_a_threshold_afterwards_equals_a_threshold_before(world, threshold, preset):
    truth, found = world
    convention = Convention.preset(preset, label_threshold=threshold)
    before = evaluate(truth, found, convention=convention)
    after = evaluate(truth, found, convention=preset).at_threshold(threshold)
    np.testing.assert_equal(after.summary(), before.summary())
    np.testing.assert_array_equal(after.detections.partners, before.detections.partners)


@given(world=worlds)
def test_classes_sizes_and_images_add_up(world):
    evaluation = evaluate(*world)
    for counted in ("TP", "FN", "FP"):
        total = getattr(evaluation, counted.lower())
        assert sum(part[counted] for part in evaluation.per_class().values()) == total
        assert sum(part[counted] for part in evaluation.per_size().values()) >= total  # on a limit, twice
    per_image = evaluation.per_image().columns
    assert per_image["TP"].sum() == evaluation.tp
    assert per_image["FP"].sum() == evaluation.fp
    assert per_image["FN"].sum() == evaluation.fn


def test_a_threshold_below_the_evaluations_own_is_refused():
    """Detections that were left out cannot come back, so there is no number to give."""
    truth, found = random_world(3)
    result = evaluate(truth, found, convention=Convention(label_threshold=0.5))
    with pytest.raises(InputError, match=r"at least 0\.5, because .*; evaluate with this label_threshold"):
        result.at_threshold(0.25)
    assert_equal(result.at_threshold(0.5), result)
    again = evaluate(truth, found, convention=Convention(label_threshold=0.75))
    assert_equal(result.at_threshold(0.75), again)
    assert_equal(evaluate(truth, found).at_threshold(0.5), result)


def test_notes_follow_the_threshold():
    truth, found = random_world(3)
    everything = evaluate(truth, found)
    for threshold in (0.25, 0.5, 0.75):
        anew = evaluate(truth, found, convention=Convention(label_threshold=threshold))
        assert everything.at_threshold(threshold).notes == anew.notes
        assert everything.at_threshold(0.25).at_threshold(threshold).notes == anew.notes
    left = len(found) - len(anew.detections)
    assert Note("below-threshold", left, threshold=0.75) in anew.notes


def test_notes_of_parts_add_up():
    truth, found = random_world(3)
    convention = Convention(label_threshold=0.5)
    whole = evaluate(truth, found, convention=convention)
    evaluator = Evaluator(truth.classes, convention=convention)
    for image_id in truth.image_ids:
        evaluator.update(truth.select_images([image_id]), found.select(found.image_ids == image_id))
    assert len(truth.image_ids) > 1
    assert evaluator.result().notes == whole.notes


def test_a_threshold_without_pdq_matches_nobody():
    truth, found = random_world(3)
    result = evaluate(truth, found, measures=["map"]).at_threshold(0.5)
    assert_equal(result, evaluate(truth, found, measures=["map"], convention=Convention(label_threshold=0.5)))


@given(world=worlds)
def test_names_of_the_images_table_mean_what_they_mean_in_the_summary(world):
    """Averages over true positives, as an evaluation of the image alone gives them; sums are called sums."""
    truth, found = world
    table = evaluate(truth, found).per_image().columns
    for row, image_id in enumerate(table["image_id"]):
        alone = evaluate(truth.select_images([image_id]), found.select(found.image_ids == image_id)).summary()
        for name in ("PDQ", "pPDQ", "spatial", "label", "foreground", "background", "TP", "FP", "FN"):
            assert table[name][row] == pytest.approx(alone[name], rel=1e-12, nan_ok=True), name
        if alone["TP"]:
            assert table["sum_label"][row] == pytest.approx(alone["label"] * alone["TP"])


@pytest.mark.parametrize(
    ("area", "sizes"),
    [
        (32.0**2 - 1, ["small"]), (32.0**2, ["small", "medium"]), (32.0**2 + 1, ["medium"]),
        (96.0**2, ["medium", "large"]), (96.0**2 + 1, ["large"]),
    ],
)  # fmt: skip
def test_sizes_are_cocos(area, sizes):
    """One definition for PDQ, mAP and LRP: both ends of a range belong to it."""
    truth = GroundTruth.from_boxes(["cup"], {1: (200, 10_000)}, [1], [[10, 10, 50, 50]], [0])
    truth = dataclasses.replace(truth, areas=[area])
    found = Detections(classes=["cup"], image_ids=[1], boxes=[[120, 10, 121, 10 + area]], label_probs=[[1.0]])
    result = evaluate(truth, found)
    per_size = result.per_size()
    assert [name for name in per_size if per_size[name]["FN"]] == sizes
    assert [name for name in per_size if per_size[name]["FP"]] == sizes
    counted = result.average_precision.objects[0, 1:]
    assert [name for name, count in zip(per_size, counted, strict=True) if count] == sizes


def test_nothing_to_score_gives_nan():
    empty = GroundTruth.from_boxes(["cup"], {1: (10, 10)}, [], np.zeros((0, 4)), [])
    none = Detections(classes=["cup"], image_ids=[], boxes=[], label_probs=np.zeros((0, 1)))
    evaluation = evaluate(empty, none)
    assert np.isnan(evaluation.pdq)
    assert evaluation.summary()["TP"] == evaluation.summary()["FP"] == evaluation.summary()["FN"] == 0
    assert np.isnan(Evaluator(["cup"]).result().pdq)
    assert "-" in str(evaluation)


def test_only_misses_or_only_false_positives_give_zero():
    truth = GroundTruth.from_boxes(["cup"], {1: (10, 10)}, [1], [[2, 2, 8, 8]], [0])
    none = Detections(classes=["cup"], image_ids=[], boxes=[], label_probs=np.zeros((0, 1)))
    assert evaluate(truth, none).pdq == 0.0
    bare = GroundTruth.from_boxes(["cup"], {1: (10, 10)}, [], np.zeros((0, 4)), [])
    found = Detections(classes=["cup"], image_ids=[1], boxes=[[2, 2, 8, 8]], label_probs=[[1.0]])
    assert evaluate(bare, found).pdq == 0.0
    assert evaluate(bare, found).fp == 1


def test_detections_of_unknown_images_are_left_out_and_said():
    truth = GroundTruth.from_boxes(["cup"], {1: (10, 10)}, [1], [[2, 2, 8, 8]], [0])
    found = Detections(classes=["cup"], image_ids=[9, 1], boxes=[[2, 2, 8, 8]] * 2, label_probs=[[1.0]] * 2)
    evaluation = evaluate(truth, found)
    assert (evaluation.tp, evaluation.fp) == (1, 0)
    assert Note("unknown-images", 1, images=1) in evaluation.notes


def test_challenge_counts_false_positives_by_confidence():
    truth = GroundTruth.from_boxes(["cup", "dog"], {1: (40, 40)}, [1], [[5, 5, 15, 15]], [0])
    found = Detections(
        classes=["none", "cup", "dog"],
        image_ids=[1, 1],
        boxes=[[5, 5, 15, 15], [25, 25, 35, 35]],
        label_probs=[[0.0, 1.0, 0.0], [0.7, 0.1, 0.2]],
    )
    evaluation = evaluate(truth, found, convention="challenge")
    assert evaluation.pdq == pytest.approx(1 / (1 + 0.2))
    # Nothing is left behind from one call to the next.
    assert evaluate(truth, found, convention="challenge").pdq == evaluation.pdq
    assert evaluate(truth, found).pdq == pytest.approx(0.5)


def test_filtered_objects_are_neither_misses_nor_matches():
    truth = GroundTruth.from_boxes(["cup"], {1: (60, 60)}, [1, 1], [[1, 1, 6, 6], [20, 20, 50, 50]], [0, 0])
    found = Detections(classes=["cup"], image_ids=[1], boxes=[[1, 1, 6, 6]], label_probs=[[1.0]])
    evaluation = evaluate(truth, found, convention=Convention(object_filter=True))
    assert (evaluation.tp, evaluation.fp, evaluation.fn) == (0, 0, 1)
    assert evaluation.detections.verdicts.tolist() == [Verdict.IGNORED]
    assert evaluation.objects.verdicts.tolist() == [Verdict.IGNORED, Verdict.FN]


def test_parts_of_which_one_forgot_its_labels_add_up():

    truth, found = random_world(3)
    ids = truth.image_ids
    one, two = (evaluate(truth.select_images(part), found) for part in (ids[::2], ids[1::2]))
    assert (one + two).detections.label_probs is not None
    for parts in ((one.without_labels(), two), (one, two.without_labels())):
        assert (parts[0] + parts[1]).detections.label_probs is None
        assert (parts[0] + parts[1]).pdq == (one + two).pdq
