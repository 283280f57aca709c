"""Pairs, searches and fitted corners: what is wrong with simulated detectors is found."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.amounts import examples
from tests.strategies import random_world
from tests.worlds import CLASSES, boxes_truth, simulated

import probox
from probox import Detections, GroundTruth, InputError
from probox.calibration import Calibration
from probox.calibration.corner_fit import BOUND, FittingPairs, MatchOutcome, fit_corners, lattice_maximum
from probox.calibration.corner_maps import (
    CalibrationInputs,
    ClassScale,
    Constant,
    EdgeScale,
    Learned,
    MonotoneCurve,
    RelativeCurves,
    Scale,
    box_reach,
    calibrate_corners,
    edge_reach,
    sigmas_of,
)
from probox.calibration.std_regression import Slope, StdModel
from probox.measures.matched import MatchedPairs
from probox.notes import Note
from probox_experiments import SimulatedDetector


def test_pairs_of_a_small_scene() -> None:
    truth = GroundTruth.from_boxes(
        ["cup", "dog"],
        {3: (100, 80), 8: (100, 80), 9: (50, 50)},
        [8, 3, 3],
        [[0.5, 10, 40, 79.5], [10, 10, 30, 30], [50, 50, 70, 70]],
        [1, 0, 0],
    )
    found = Detections(
        classes=["dog", "cup"],
        image_ids=[8, 3, 3, 3, 77],
        boxes=[[2, 12, 40, 75], [50, 51, 69, 70], [11, 10, 31, 30], [80, 10, 90, 20], [0, 0, 1, 1]],
        label_probs=[[0.9, 0], [0.1, 0.8], [0, 0.7], [0, 0.6], [0, 1]],
        covariances=np.tile(4 * np.eye(2), (5, 2, 1, 1)) * np.array([1, 1, 0, 1, 1])[:, None, None, None],
    )
    pairs = FittingPairs.of(truth, found)
    order = np.argsort(pairs.detections)
    assert pairs.detections[order].tolist() == [0, 1, 2]
    assert truth.boxes[pairs.objects[order]].tolist() == [[0.5, 10, 40, 79.5], [50, 50, 70, 70], [10, 10, 30, 30]]
    assert pairs.image_rows[order].tolist() == [1, 0, 0]
    assert pairs.labels[order].tolist() == [1, 0, 0]
    assert pairs.residuals[order].tolist() == [[-1.5, -2, 0, 4.5], [0, -1, 1, 0], [-1, 0, -1, 0]]
    assert pairs.sides[order].tolist() == [[38, 63, 38, 63], [19, 19, 19, 19], [20, 20, 20, 20]]
    assert pairs.free[order].tolist() == [[False, True, True, False], [True] * 4, [True] * 4]
    assert pairs.usable[order].tolist() == [True, True, False]
    hit, missed, aside = MatchOutcome.MATCHED, MatchOutcome.UNMATCHED, MatchOutcome.ASIDE
    assert pairs.outcomes.tolist() == [hit, hit, hit, missed, aside]
    assert pairs.z[order][0].tolist() == [-0.75, -1, 0, 2.25]


@pytest.mark.parametrize(("edge", "said", "free"), [(1.0, 5, False), (1.01, 2.01, True), (5, 0.0, True)])
def test_the_border_is_one_pixel_of_the_truth(edge: float, said: float, free: bool) -> None:
    truth = GroundTruth.from_boxes(["cup"], {1: (60, 40)}, [1], [[edge, edge, 60 - edge, 40 - edge]], [0])
    boxes = [[said, said, 60 - said, 40 - said]]
    found = Detections(classes=["cup"], image_ids=[1], boxes=boxes, label_probs=[[1.0]])
    assert FittingPairs.of(truth, found).free.tolist() == [[free] * 4]


def test_crowds_are_left_aside() -> None:
    truth = GroundTruth.from_boxes(["cup"], {1: (60, 40)}, [1], [[5, 5, 30, 30]], [0])
    found = Detections(classes=["cup"], image_ids=[1], boxes=truth.boxes, label_probs=[[1.0]])
    pairs = FittingPairs.of(truth.replace(crowd=[True]), found)
    assert len(pairs) == 0
    assert pairs.outcomes.tolist() == [MatchOutcome.ASIDE]


@examples(40)
@given(st.integers(0, 10**6))
def test_pairs_are_those_of_the_measures(seed: int) -> None:
    """As many as mAP at an IoU of 0.5 counts as right, whatever the order of rows and the covariances."""
    truth, found = random_world(seed)
    pairs = FittingPairs.of(truth, found)
    matches = probox.evaluate(truth, found, measures=["map"]).box_matches
    assert len(pairs) == int(((matches.matched[:, 0] & 1 == 1) & (matches.ignored[:, 0] & 1 == 0)).sum())
    judged = MatchedPairs.of(probox.evaluate(truth, found))
    assert np.sort(judged.residuals, axis=0).tolist() == np.sort(pairs.residuals, axis=0).tolist()
    assert sorted(judged.objects.tolist()) == sorted(pairs.objects.tolist())
    assert int(judged.truncated.sum()) <= int((~pairs.free).sum())
    plain = found.replace(covariances=None)
    assert (FittingPairs.of(truth, plain).detections == pairs.detections).all()
    assert (found.image_ids[pairs.detections] == truth.image_ids[pairs.image_rows]).all()
    assert (truth.image_rows[pairs.objects] == pairs.image_rows).all()
    back = np.arange(len(found))[::-1]
    turned = FittingPairs.of(truth, found.select(back))
    if len(np.unique(found.scores)) == len(found):
        assert sorted(back[turned.detections].tolist()) == sorted(pairs.detections.tolist())


def test_a_correlation_of_one_has_no_inverse() -> None:
    truth = GroundTruth.from_boxes(["cup"], {1: (60, 40)}, [1], [[5, 5, 30, 30]], [0])
    for covariance, usable in (([[4, 2], [2, 1]], False), ([[4, 1], [1, 1]], True), ([[4, 0], [0, 0]], False)):
        found = Detections(
            classes=["cup"], image_ids=[1], boxes=truth.boxes, label_probs=[[1.0]],
            covariances=[[covariance, [[1, 0], [0, 1]]]],
        )  # fmt: skip
        assert FittingPairs.of(truth, found).usable.tolist() == [usable]


@given(st.floats(-300, 300), st.integers(-50, 50), st.floats(0.2, 3), st.floats(0.2, 3))
def test_one_top_is_found(top: float, start: int, left: float, right: float) -> None:
    asked: list[int] = []

    def value(k: int) -> float:
        asked.append(k)
        return -left * (top - k) if k < top else -right * (k - top)

    found = lattice_maximum(value, start)
    assert abs(found - top) <= 1
    assert value(found) == max(value(round(top) + step) for step in (-1, 0, 1))
    assert len(asked) <= 40
    assert len(set(asked[:-4])) == len(asked[:-4]), "nothing is measured twice"


def test_a_plain_is_stayed_on_and_a_slope_ends() -> None:
    assert lattice_maximum(lambda k: 1.0, 17) == 17
    climbed: Callable[[int], float] = float
    assert lattice_maximum(climbed, 7) == 7 + BOUND
    assert lattice_maximum(lambda k: -float(k), 7) == 7 - BOUND


def inputs_of(sigma: float, sides: float | np.ndarray, names: np.ndarray) -> CalibrationInputs:
    """Return what maps may look at, of detections with the same sigma and score."""
    shape = (len(names), 4)
    sigmas, sides = np.full(shape, sigma), np.broadcast_to(np.asarray(sides, float), shape)
    return CalibrationInputs(sigmas=sigmas, sides=sides, classes=names, scores=np.full(len(names), 0.6))


def fitted(truth: GroundTruth, found: Detections, method: str, target: str = "nll", **options: float) -> object:
    pairs = FittingPairs.of(truth, found)
    return fit_corners(pairs, method, target, **options)[0]


@pytest.fixture(scope="module")
def truth() -> GroundTruth:
    return boxes_truth()


@pytest.mark.parametrize("target", ["nll", "coverage"])
def test_a_scale_of_two_is_found(truth: GroundTruth, target: str) -> None:
    mapping = fitted(truth, simulated(truth), "scale", target)
    assert mapping.factor == pytest.approx(2.0, abs=0.1)


def test_correlated_corners_are_scaled_by_their_joint_distance(truth: GroundTruth) -> None:
    covariance = np.array([[9.0, 6.0], [6.0, 9.0]])
    found = SimulatedDetector(
        corner_variance=covariance, reported_variance=covariance / 4
    ).detect(truth, seed=3)  # fmt: skip
    mapping = fitted(truth, found, "scale")
    pairs = FittingPairs.of(truth, found)
    r = pairs.residuals.reshape(-1, 2, 2)
    distance = np.einsum("kci,ij,kcj->k", r, np.linalg.inv(covariance / 4), r)
    assert mapping.factor == pytest.approx(math.sqrt(distance.mean() / 4), rel=1e-12)
    assert mapping.factor == pytest.approx(2.0, abs=0.1)


def test_the_scale_for_nll_is_its_minimum(truth: GroundTruth) -> None:
    found = simulated(truth)
    pairs = FittingPairs.of(truth, found)
    mapping = fitted(truth, found, "scale")

    def nll(factor: float) -> float:
        sigmas = factor * sigmas_of(pairs.covariances)
        return float((0.5 * np.square(pairs.residuals / sigmas) + np.log(sigmas)).sum())

    assert nll(mapping.factor) < min(nll(0.999 * mapping.factor), nll(1.001 * mapping.factor))


def test_coverage_is_exact_on_what_it_was_fitted_on(truth: GroundTruth) -> None:
    found = simulated(truth)
    for level in (0.5, 0.9):
        mapping = fitted(truth, found, "scale", "coverage", level=level)
        z = np.abs(FittingPairs.of(truth, found).z)
        assert (z <= mapping.factor * edge_reach(level)).mean() == pytest.approx(level, abs=1e-3)


def test_edges_are_told_apart(truth: GroundTruth) -> None:
    wrong = np.array([[[9.0, 0], [0, 1]], [[4, 0], [0, 16]]])
    found = SimulatedDetector(corner_variance=wrong, reported_variance=4.0).detect(truth, seed=2)
    mapping = fitted(truth, found, "edge-scale")
    assert mapping.factors == pytest.approx((1.5, 0.5, 1.0, 2.0), rel=0.1)


def test_classes_are_told_apart_and_small_ones_use_all() -> None:
    truth = boxes_truth(100)
    found = simulated(truth, sigma=4.0)
    scale = np.where(truth.labels == 0, 0.5, 2.0)  # of the reported variance's root
    found = found.replace(covariances=found.covariances * np.square(scale)[:, None, None, None])
    mapping = fitted(truth, found, "class-scale")
    assert [name for name, _ in mapping.classes] == sorted(CLASSES)
    own = dict(mapping.classes)
    pairs = FittingPairs.of(truth, found)
    everything = math.sqrt(np.square(pairs.z).mean())
    assert mapping.others == pytest.approx(everything)
    for label, name in enumerate(CLASSES):
        rows = pairs.labels == label
        alone, n = math.sqrt(np.square(pairs.z[rows]).mean()), int(rows.sum())
        assert own[name] == pytest.approx(math.exp((n * math.log(alone) + 30 * math.log(everything)) / (n + 30)))
    few = found.select(np.concatenate([np.flatnonzero(found.labels == 0), np.flatnonzero(found.labels == 1)[:29]]))
    pairs = FittingPairs.of(truth, few)
    mapping, notes = fit_corners(pairs, "class-scale", "nll")
    assert [name for name, _ in mapping.classes] == ["cup"]
    assert notes == (Note("few-pairs-of-classes", 1, least=30, names="dog"),)


def test_isotonic_finds_errors_by_relative_sigma() -> None:
    """Sigmas that are the square of what they should be: no factor repairs that, a curve does."""
    truth = boxes_truth(150)
    rng = np.random.default_rng(5)
    share = rng.uniform(0.02, 0.1, len(truth))
    sides = np.tile(truth.boxes[:, 2:] - truth.boxes[:, :2], 2)
    boxes = truth.boxes + rng.normal(size=(len(truth), 4)) * share[:, None] * sides
    said = 10 * np.square(share)[:, None] * np.tile(boxes[:, 2:] - boxes[:, :2], 2)
    covariances = np.square(said).reshape(-1, 2, 2)[..., None] * np.eye(2)
    found = Detections(
        classes=CLASSES,
        image_ids=truth.image_ids[truth.image_rows],
        boxes=boxes,
        label_probs=np.eye(2)[truth.labels],
        covariances=covariances,
    )
    mapping = fitted(truth, found, "isotonic")
    sigmas = sigmas_of(np.asarray(calibrate_corners(found, mapping).covariances))
    relative = sigmas / np.tile(boxes[:, 2:] - boxes[:, :2], 2)
    assert np.abs(relative / share[:, None] - 1).mean() < 0.15
    covering = fitted(truth, found, "isotonic", "coverage", level=0.9)
    ratios = {
        b / a
        for one, other in zip(mapping.curves, covering.curves, strict=True)
        for a, b in zip(one.y, other.y, strict=True)
    }
    assert max(ratios) == pytest.approx(min(ratios)), "one factor for the whole shape"


def test_the_constant_is_a_share_of_the_sides(truth: GroundTruth) -> None:
    found = simulated(truth, reported=0.0)
    assert found.covariances is None
    mapping = fitted(truth, found, "constant")
    pairs = FittingPairs.of(truth, found)
    assert mapping.fraction == pytest.approx(math.sqrt(np.square(pairs.residuals / pairs.sides).mean()))
    sigmas = sigmas_of(np.asarray(calibrate_corners(found, mapping).covariances))
    assert sigmas == pytest.approx(mapping.fraction * np.tile(found.boxes[:, 2:] - found.boxes[:, :2], 2))


def test_truncated_edges_do_not_count() -> None:
    truth = GroundTruth.from_boxes(["cup"], {1: (60, 40)}, [1], [[0, 10, 30, 30]], [0])
    found = Detections(
        classes=["cup"], image_ids=[1], boxes=[[5, 12, 30, 30]], label_probs=[[1]],
        covariances=[[[[1, 0.5], [0.5, 1]], [[1, 0], [0, 1]]]],
    )  # fmt: skip
    mapping = fitted(truth, found, "scale")
    assert mapping.factor == pytest.approx(math.sqrt((2**2 + 0 + 0) / 3))


class TestConformal:
    def test_the_quantile_is_the_definition(self, truth: GroundTruth) -> None:
        found = simulated(truth)
        pairs = FittingPairs.of(truth, found)
        largest = sorted(np.abs(pairs.z).max(axis=1).tolist())
        for alpha in (0.05, 0.1, 0.5):
            mapping = fitted(truth, found, "conformal", "coverage", alpha=alpha)
            assert mapping.reach == largest[math.ceil((len(largest) + 1) * (1 - alpha)) - 1]
            assert mapping.factor == pytest.approx(mapping.reach / box_reach(1 - alpha))

    @pytest.mark.parametrize(("pairs", "possible"), [(9, True), (8, False)])
    def test_nine_pairs_promise_nine_in_ten(self, pairs: int, possible: bool) -> None:
        truth = boxes_truth(2)
        found = simulated(truth).select(np.arange(pairs))
        if possible:
            mapping = fitted(truth, found, "conformal", "coverage")
            assert mapping.reach == np.abs(FittingPairs.of(truth, found).z).max()
        else:
            with pytest.raises(InputError, match=r"8 matched boxes are too few to cover 90%.*fit on at least 9"):
                fitted(truth, found, "conformal", "coverage")

    def test_new_boxes_cover_as_promised(self) -> None:
        """Over many draws of fitting and new images the mean coverage is 1 - alpha within sampling error."""
        covered = []
        truth = boxes_truth(12)
        for seed in range(60):
            mapping = fitted(truth, simulated(truth, seed=seed), "conformal", "coverage", alpha=0.2)
            new = simulated(truth, seed=1000 + seed)
            scaled = calibrate_corners(new, mapping)
            z = np.abs(FittingPairs.of(truth, scaled).z)
            covered.append(float((z <= box_reach(0.8)).all(axis=1).mean()))
        error = float(np.std(covered)) / math.sqrt(len(covered))
        assert np.mean(covered) == pytest.approx(0.8, abs=4 * error)
        assert error < 0.012


def test_maps_leave_plain_boxes_and_heatmaps() -> None:
    found = Detections(
        classes=["cup", "dog"],
        image_ids=[1, 1, 1],
        boxes=[[0, 0, 10, 20]] * 3,
        label_probs=[[1, 0], [0, 1], [1, 0]],
        covariances=np.array([1.0, 0.0, 1.0])[:, None, None, None] * np.tile(np.eye(2), (3, 2, 1, 1)),
        heatmaps=[None, None, np.zeros((4, 4), np.float32)],
    )
    after = Calibration(corners=ClassScale(3.0, (("dog", 2.0),))).apply(found)
    assert sigmas_of(np.asarray(after.covariances)).tolist() == [[3.0] * 4, [0.0] * 4, [1.0] * 4]
    assert after.notes == (
        Note("heatmaps-kept", 1, total=3),
        Note("plain-boxes-kept", 1, total=3),
        Note("classes-not-fitted", 1, what="corners", names="cup"),
    )
    constant = Calibration(corners=Constant(0.1)).apply(found)
    assert sigmas_of(np.asarray(constant.covariances)).tolist() == [[1, 2, 1, 2], [1, 2, 1, 2], [1, 1, 1, 1]]
    assert constant.notes == (Note("heatmaps-kept", 1, total=3),)


def test_edges_are_pinned_if_asked_for_and_sizes_are_known() -> None:
    truth = GroundTruth.from_boxes(["cup"], {1: (100, 60), 2: (300, 300)}, [1], [[0, 10, 30, 30]], [0])
    found = Detections(
        classes=["cup"], image_ids=[1, 2, 7], boxes=[[-2.0, 10, 97, 59]] * 3, label_probs=[[1.0]] * 3,
        covariances=np.tile(np.eye(2), (3, 2, 1, 1)),
    )  # fmt: skip
    for_pdq = Calibration(corners=Scale(4.0), target="pdq", border="pin")
    inside = for_pdq.apply(found, truth)
    assert inside.boxes.tolist() == [[0.5, 10, 97, 58.5], [0.5, 10, 97, 59], [-2, 10, 97, 59]]
    assert sigmas_of(np.asarray(inside.covariances)).tolist() == [[0.25, 4, 1, 0.25], [0.25, 4, 4, 4], [4, 4, 4, 4]]
    assert inside.extents[:, 0].tolist() == [96.5, 96.5, 99.0]
    assert inside.notes == (Note("pinned-calibration"),)
    unknown = for_pdq.apply(found)
    assert sigmas_of(np.asarray(unknown.covariances)).tolist() == [[4.0] * 4] * 3
    assert unknown.notes == (Note("not-pinned"),)
    for target in ("nll", "pdq"):
        kept = Calibration(corners=Scale(4.0), target=target).apply(found, truth)
        assert sigmas_of(np.asarray(kept.covariances)).tolist() == [[4.0] * 4] * 3
        assert kept.boxes.tolist() == found.boxes.tolist()
        assert kept.notes == ()


def test_classes_are_known_by_any_of_their_names() -> None:
    mapping = ClassScale(3.0, (("tv", 2.0),))
    names = np.array(["Television", "cup"])
    assert mapping.sigmas(inputs_of(1.0, 1.0, names))[:, 0].tolist() == [2.0, 3.0]
    assert mapping.has_class("TVmonitor")
    assert not mapping.has_class("cup")


def test_every_map_scales() -> None:
    curve = MonotoneCurve((0.1, 0.2), (0.1, 0.3))
    maps = [
        Scale(1.5),
        EdgeScale((1.0, 2.0, 3.0, 4.0)),
        ClassScale(2.0, (("cup", 5.0),)),
        RelativeCurves((curve, curve, curve, curve)),
        Constant(0.2),
        Learned(StdModel(-2.0, (0.1, 0.2, -0.1, 0.0), (Slope("score", 0.0, 1.0, -0.3),), (("cup", 0.5),))),
    ]
    seen = inputs_of(3.0, 20.0, np.array(["cup", "dog"]))
    for mapping in maps:
        assert mapping.scale_by(2.0).sigmas(seen) == pytest.approx(2 * mapping.sigmas(seen))


def test_degenerate_boxes_keep_their_sigmas() -> None:
    curve = MonotoneCurve((0.1,), (0.2,))
    mapping = RelativeCurves((curve, curve, curve, curve))
    seen = inputs_of(3.0, np.array([[0.0, 10.0, 0.0, 10.0]]), np.array(["cup"]))
    assert mapping.sigmas(seen).tolist() == [[3.0, 2.0, 3.0, 2.0]]


def test_errors_that_ask_for_no_sigma_at_all_are_refused(truth: GroundTruth) -> None:
    found = simulated(truth, sigma=0.0)
    with pytest.raises(InputError, match=r"to 1e6, but got 0; check that detections are not the ground truth"):
        fitted(truth, found, "scale")
    with pytest.raises(InputError, match="no matched boxes: no detection reaches"):
        fitted(truth, found.select(np.zeros(0, np.int64)), "scale")


def test_no_curve_falls_below_a_thousandth_of_the_side() -> None:
    truth = boxes_truth(20)
    found = simulated(truth, sigma=0.0)
    mapping = fitted(truth, found, "isotonic")
    assert {y for curve in mapping.curves for y in curve.y} == {1e-3}


def test_a_few_wild_errors_do_not_move_the_ratios_of_edges_for_pdq(truth: GroundTruth) -> None:
    found = simulated(truth)
    pairs = FittingPairs.of(truth, found)
    wild = pairs.residuals.copy()
    wild[:5, 0] = 500.0
    heights = np.quantile(np.abs(pairs.z), 0.68, axis=0) / edge_reach(0.68)
    for residuals, close in ((pairs.residuals, 1e-9), (wild, 0.05)):
        changed = dataclasses.replace(pairs, residuals=residuals)
        mapping = fit_corners(changed, "edge-scale", "pdq", quality=lambda mapping: 0.0)[0]
        assert mapping.factors == pytest.approx(heights, rel=close)
