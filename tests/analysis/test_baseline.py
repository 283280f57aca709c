"""Evaluations scored anew, and what sigmas are worth over a constant."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from tests.strategies import random_world as mixed_world
from tests.worlds import CLASSES, boxes_truth, simulated

from probox import Convention, Detections, Evaluation, GroundTruth, InputError, evaluate
from probox.analysis.baseline import (
    RULES,
    fit_baseline,
    make_pixel_covariances,
    make_rescorer,
    measure_pdq_skill,
    measure_skill,
    minimize_by_golden_section,
    pin_edges,
)
from probox.fusion.gaussian import keep_inside
from probox.measures.registry import measures_called
from probox.measures.scoring.scores import negative_log_likelihoods
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


def test_what_is_not_kept_is_told():
    result = evaluate(*random_world(0))
    with pytest.raises(InputError, match="label probabilities were not stored"):
        make_rescorer(result.without_labels())
    with pytest.raises(InputError, match="PDQ was not measured"):
        make_rescorer(evaluate(*random_world(0), measures=("map",)))


def test_constant_covariances():
    boxes = np.array([[0.0, 0.0, 20.0, 10.0], [5.0, 5.0, 5.2, 9.0]])
    found = constant_covariances(boxes, np.array([0.1, 0.5]))
    np.testing.assert_allclose(found[0], np.tile(np.diag([4.0, 1.0]), (2, 1, 1)))
    np.testing.assert_allclose(found[1], np.tile(np.diag([0.25, 4.0]), (2, 1, 1)))  # no side is below a pixel
    np.testing.assert_array_equal(make_pixel_covariances(boxes, 3.0), np.tile(9.0 * np.eye(2), (2, 2, 1, 1)))
    np.testing.assert_array_equal(make_pixel_covariances(boxes, np.array([1.0, 2.0]))[1, 0], 4.0 * np.eye(2))


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


def erring(seed: int = 0, *, told: bool = True, images: int = 60) -> tuple:
    """Return truth and a detector that errs by 1 or 8 pixels, and tells which (or tells them mixed up)."""
    truth = boxes_truth(images)
    rng = np.random.default_rng(seed)
    sigmas = rng.choice([1.0, 8.0], len(truth))
    boxes = truth.boxes + sigmas[:, None] * rng.standard_normal((len(truth), 4))
    said = sigmas if told else rng.permutation(sigmas)
    probs = np.full((len(truth), len(CLASSES)), 0.05)
    probs[np.arange(len(truth)), truth.labels] = 0.9
    return truth, Detections(
        classes=CLASSES,
        image_ids=truth.dataset.image_ids[truth.image_rows],
        boxes=boxes,
        label_probs=probs,
        covariances=np.eye(2) * (said**2)[:, None, None, None] * np.ones((1, 2, 1, 1)),
    )


def at_border() -> tuple:
    """Return objects cut off by their images' borders now and then, and a detector that errs as told."""
    rng = np.random.default_rng(3)
    boxes = np.stack([[0, 30, 60, 90], [40, 0, 99, 50], [20, 40, 80, 100], [10, 10, 100, 60]] * 8).astype(float)
    sizes = dict.fromkeys(range(len(boxes)), (100, 100))
    truth = GroundTruth.from_boxes(["cup"], sizes, list(sizes), boxes, [0] * len(boxes))
    sigmas = rng.choice([1.0, 5.0], len(boxes))
    return truth, Detections(
        classes=["cup"],
        image_ids=list(sizes),
        boxes=np.clip(boxes + sigmas[:, None] * rng.standard_normal((len(boxes), 4)), 0, 99),
        label_probs=np.full((len(boxes), 1), 0.9),
        covariances=np.eye(2) * (sigmas**2)[:, None, None, None] * np.ones((1, 2, 1, 1)),
    )


@pytest.mark.parametrize("border", ["keep", "pin"])
def test_the_constant_is_pinned_if_and_only_if_the_detections_are(border):
    """PDQ takes away what lies beyond a border: pinning one side of the comparison would decide it."""
    truth, found = at_border()
    if border == "pin":
        boxes, covariances = keep_inside(found.boxes, found.covariances, (100, 100))
        found = found.replace(boxes=boxes, covariances=covariances, extents=None)
    result = evaluate(truth, found)
    scene = make_rescorer(result)
    constant = fit_baseline(result, scene, "constant")
    boxes = scene.found.boxes
    covariances = constant_covariances(boxes, np.asarray(constant.values)[result.detections.image_rows % 2])
    if border == "pin":
        boxes, covariances = keep_inside(boxes, covariances, (100, 100))
    assert constant.evaluation.pdq == scene.score(boxes=boxes, covariances=covariances, extents=None).pdq
    skill = result.diagnose(replicates=50).skill["pdq"]
    assert (skill.own, skill.constant) == (result.pdq, constant.evaluation.pdq)


def test_pinned_edges_are_a_repair_of_detections_that_keep_their_std():
    result = evaluate(*at_border())
    scene = make_rescorer(result)
    pinned = pin_edges(result, scene)
    assert pinned.pdq > result.pdq + 0.05
    boxes, covariances = keep_inside(scene.found.boxes, scene.found.covariances, (100, 100))
    assert pinned.pdq == scene.score(boxes=boxes, covariances=covariances, extents=None).pdq
    assert pin_edges(pinned, make_rescorer(pinned)) is pinned
    told = result.diagnose(replicates=50)
    assert next(answer for answer in told.what_if if answer.key == "kept_inside").pdq == pinned.pdq


def test_a_half_without_detections_fits_nothing():
    truth, found = erring(images=2)
    first = found.select(found.image_ids == truth.dataset.image_ids[0])
    result = evaluate(truth, first)
    scene = make_rescorer(result)
    assert fit_baseline(result, scene, "constant") is None
    assert fit_baseline(result, scene, "scale") is None
    told = result.diagnose(replicates=20)
    assert "pdq" not in told.skill
    assert any("one half of the images has no match to fit it on" in text for text in map(str, told.notes))


def test_a_constant_in_pixels_tells_nothing():
    """Errors of so many pixels for boxes of any size: a share of the side is beaten by what knows as little."""
    truth = boxes_truth(60)
    rng = np.random.default_rng(5)
    sigma = 1.5
    scale = rng.uniform(0.2, 1.0, len(truth))[:, None]
    low = truth.boxes[:, :2]
    smaller = np.concatenate([low, low + scale * (truth.boxes[:, 2:] - low)], axis=1).round()
    truth = GroundTruth.from_boxes(
        CLASSES, dict.fromkeys(truth.dataset.image_ids.tolist(), (400, 300)),
        truth.dataset.image_ids[truth.image_rows], smaller, truth.labels,
    )  # fmt: skip
    probs = np.full((len(truth), len(CLASSES)), 0.05)
    probs[np.arange(len(truth)), truth.labels] = 0.9
    boxes = smaller + sigma * rng.standard_normal((len(truth), 4))
    found = Detections(
        classes=CLASSES, image_ids=truth.dataset.image_ids[truth.image_rows], boxes=boxes, label_probs=probs,
        covariances=make_pixel_covariances(boxes, sigma),
    )  # fmt: skip
    told = evaluate(truth, found).diagnose(replicates=100)
    assert told.skill["energy"].skill.low > 0
    assert told.skill["energy_pixels"].skill.value == pytest.approx(0, abs=0.01)
    assert not any(text.startswith("Informative") for text in told.verdict)


def test_sigmas_that_tell_are_worth_something():
    result = evaluate(*erring())
    for rule in RULES:
        skill = measure_skill(result, rule)
        assert skill.skill.low > 0, rule
        assert skill.own < skill.constant
    pdq = measure_pdq_skill(result, fit_baseline(result, make_rescorer(result), "constant"))
    assert pdq.skill.low > 0
    assert any(text.startswith("Informative: the energy score is ") for text in result.diagnose(replicates=50).verdict)


def test_the_baseline_in_fractions_of_the_gain_and_of_what_remains():
    truth, found = erring()
    skill = evaluate(truth, found).diagnose(replicates=20).skill["pdq"]
    assert skill.deterministic == evaluate(truth, found.replace(covariances=None)).pdq
    told = skill.to_dict()
    gain = (skill.constant - skill.deterministic) / (skill.own - skill.deterministic)
    assert 0 < gain < 1
    assert told["gain_fraction"] == gain
    assert told["remaining_fraction"] == (skill.own - skill.constant) / (1 - skill.constant)
    plain = evaluate(truth, found.replace(covariances=None)).diagnose(replicates=20).skill["pdq"]
    assert plain.deterministic == plain.own
    assert np.isnan([plain.gain_fraction, plain.remaining_fraction]).all()


def test_sigmas_mixed_up_are_worth_less_than_nothing():
    result = evaluate(*erring(told=False))
    for rule in RULES:
        assert measure_skill(result, rule).skill.high < 0, rule
    assert measure_pdq_skill(result, fit_baseline(result, make_rescorer(result), "constant")).skill.value < 0


def test_a_constant_is_worth_nothing_over_itself():
    truth, found = erring()
    for rule in RULES:
        share = measure_skill(evaluate(truth, found), rule).share
        covariances_of = make_pixel_covariances if rule == "energy_pixels" else constant_covariances
        constant = evaluate(truth, found.replace(covariances=covariances_of(found.boxes, share)))
        assert measure_skill(constant, rule).skill.value == pytest.approx(0, abs=0.03), rule


def test_the_nll_skill_by_hand():
    """Fit the share on each half with another search, and score the other half with it."""
    result = evaluate(*erring())
    pairs = result.matched_pairs
    boxes = result.detections.boxes[pairs.detections]
    constant = np.empty(len(pairs))
    for half in (0, 1):
        here, there = pairs.image_rows % 2 == half, pairs.image_rows % 2 != half

        def loss(log_share, chosen=there):
            covariances = constant_covariances(boxes[chosen], np.exp(log_share))
            return negative_log_likelihoods(pairs.residuals[chosen], covariances).mean()

        share = np.exp(minimize_scalar(loss, bounds=(-6, -0.7), method="bounded").x)
        constant[here] = negative_log_likelihoods(pairs.residuals[here], constant_covariances(boxes[here], share))
    own = negative_log_likelihoods(pairs.residuals, pairs.covariances)
    skill = measure_skill(result, "nll")
    assert skill.own == pytest.approx(own.mean(), rel=1e-12)
    assert skill.skill.value == pytest.approx(constant.mean() - own.mean(), rel=1e-3)
    assert skill.pairs == len(pairs)


def test_crps_leaves_truncated_edges_out():
    result = evaluate(*erring())
    crps = measures_called(["crps"])[0]
    assert measure_skill(result, "crps").own == pytest.approx(crps.summary(result)["CRPS"], rel=1e-12)
    truth, found = at_border()
    result = evaluate(truth, found)
    assert result.matched_pairs.truncated.any(axis=0).all()
    assert measure_skill(result, "crps").own == pytest.approx(crps.summary(result)["CRPS"], rel=1e-12)


@pytest.mark.parametrize("reported", [1.0, 8.0])
def test_the_best_scale_turns_sigmas_towards_the_true_ones(reported):
    """A detector that reports half or double of its errors: PDQ's best factor is found again from any of them."""
    truth = boxes_truth(24)
    result = evaluate(truth, simulated(truth, sigma=2.0, reported=reported), convention="paper")
    scale = fit_baseline(result, make_rescorer(result), "scale")
    again = evaluate(truth, simulated(truth, sigma=2.0, reported=2.0), convention="paper")
    wanted = fit_baseline(again, make_rescorer(again), "scale")
    assert scale.value * reported == pytest.approx(wanted.value * 2.0, rel=0.15)
    assert scale.evaluation.pdq == pytest.approx(wanted.evaluation.pdq, abs=0.005)
    assert scale.evaluation.pdq > result.pdq


def test_halves_judge_each_other():
    """The value of even images is what the odd ones say, and the other way round."""
    truth, found = erring(images=24)
    odd = np.isin(found.image_ids, truth.dataset.image_ids[1::2])
    scaled = found.covariances * np.where(odd, 16.0, 1.0)[:, None, None, None]
    result = evaluate(truth, found.replace(covariances=scaled))
    even_value, odd_value = fit_baseline(result, make_rescorer(result), "scale").values
    assert even_value == pytest.approx(odd_value / 4, rel=0.2)  # odd images report too much


def test_a_constant_ranks_nothing():
    """Shares that differ in their last bits alone are one share: no rank correlation, and AUSE of the random order."""
    truth, found = erring()
    constant = evaluate(truth, found.replace(covariances=constant_covariances(found.boxes, 0.07)))
    numbers = {name: measures_called([name])[0].summary(constant) for name in ("spearman", "ause")}
    assert np.isnan(numbers["spearman"]["Spearman"])
    assert numbers["ause"]["AUSE"] == pytest.approx(1.0)
