"""Held-out numbers: what they are, and that nothing is judged by images it was fitted on."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.amounts import examples
from tests.strategies import random_world
from tests.worlds import boxes_truth, simulated

import probox
from probox.analysis.resampling import compute_interval, draw_images
from probox.calibration import fit
from probox.calibration.corner_fit import CornerFit, FittingPairs
from probox.calibration.corner_maps import Constant, Scale, calibrate_corners
from probox.calibration.cross_validation import (
    FitTask,
    PdqCurve,
    columns,
    compare,
    corner_parts,
    pdq_parts,
    shortlist,
)
from probox.measures.scoring.score_definition import energy_score, negative_log_likelihood


def test_corner_numbers_are_their_definitions() -> None:
    truth = boxes_truth(4)
    found = simulated(truth)
    found = found.replace(covariances=np.tile([[4.0, 1.0], [1.0, 9.0]], (len(found), 2, 1, 1)))
    pairs = FittingPairs.of(truth, found)
    nll = [negative_log_likelihood(r, c) for r, c in zip(pairs.residuals, pairs.covariances, strict=True)]
    parts = corner_parts(pairs, 4, 0.1)
    assert parts["NLL"][:, 0] == pytest.approx(np.bincount(pairs.image_rows, nll))
    assert parts["NLL"][:, 1].tolist() == np.bincount(pairs.image_rows).tolist()
    assert parts["energy"].sum() == pytest.approx(
        sum(energy_score(r, c) for r, c in zip(pairs.residuals, pairs.covariances, strict=True)) + len(pairs)
    )
    z = np.abs(pairs.residuals) / [2, 3, 2, 3]
    assert parts["coverage68"].sum(axis=0) == pytest.approx([(z < 0.994457883).sum(), z.size])
    assert parts["coverage90"].sum(axis=0) == pytest.approx([(z < 1.644853627).sum(), z.size])
    assert parts["box_coverage"].sum(axis=0) == pytest.approx([(z.max(axis=1) < 2.226266).sum(), len(z)])
    (factor,) = (column for column in columns() if column.key == "z68")
    changes = compare(parts, parts | {"z68": parts["z68"] * [1, 0.5]}, (factor,), resamples=20, seed=0)
    expected = np.sort(z, axis=None)[math.ceil(0.6826894921 * z.size) - 1]
    assert changes["z68"].before == pytest.approx(expected)
    assert changes["z68"].after == pytest.approx(expected / 2)
    assert changes["z68"].gain == pytest.approx(abs(expected - 1) - abs(expected / 2 - 1))
    draws = [
        abs(own - 1) - abs(own / 2 - 1)
        for weights in draw_images(4, 20, 0)
        for drawn in weights
        for own in [np.quantile(np.repeat(z, drawn[pairs.image_rows], axis=0), 0.6826894921, method="inverted_cdf")]
    ]
    interval = compute_interval(changes["z68"].gain, np.array(draws), 4, 0.95)
    assert (changes["z68"].low, changes["z68"].high) == pytest.approx((interval.low, interval.high))


def test_truncated_edges_are_not_covered_or_missed() -> None:
    truth = probox.GroundTruth.from_boxes(["cup"], {1: (60, 40)}, [1], [[0, 10, 30, 30]], [0])
    found = probox.Detections(
        classes=["cup"], image_ids=[1], boxes=[[9, 10, 30, 30]], label_probs=[[1]],
        covariances=np.tile(np.eye(2), (1, 2, 1, 1)),
    )  # fmt: skip
    parts = corner_parts(FittingPairs.of(truth, found), 1, 0.1)
    assert parts["coverage68"].tolist() == [[3, 3]]
    assert len(parts["z68"]) == 3
    assert parts["box_coverage"].tolist() == [[1, 1]]
    assert parts["NLL"][0, 0] == pytest.approx(0.5 * 81 + 2 * math.log(2 * math.pi))


@examples(40)
@given(st.integers(0, 10**6), st.sampled_from([None, 0.3]), st.sampled_from(["reference", "challenge"]))
def test_parts_of_pdq_add_up(seed: int, threshold: float | None, preset: str) -> None:
    """Sums over images are PDQ; and a search that looks at few detections counts all the others."""
    truth, found = random_world(seed)
    convention = probox.Convention.preset(preset, label_threshold=threshold)
    inside = calibrate_corners(found, Scale(1.0), truth.dataset)
    result = probox.evaluate(truth, inside, convention=convention, measures=["pdq"])
    each = pdq_parts(truth, inside, convention)
    total, counted = each.sum(axis=0)
    assert counted == 0 or total / counted == pytest.approx(result.pdq)
    curve = PdqCurve(truth, found, convention, border="pin")
    parts = curve.parts(Scale(1.0))
    assert parts is curve.parts(Scale(1.0))
    assert parts[:, 0].sum() <= total + 1e-9, "fewer detections cannot match better"
    assert curve.pdq(Scale(1.0), np.zeros(len(truth.dataset), bool)) == 0.0
    if preset == "reference":
        kept = found.label_probs.max(axis=1, initial=0.0) > (-1 if threshold is None else np.float32(threshold))
        most = len(truth) + int(kept.sum())
        assert counted <= most
        assert parts[:, 1].sum() <= most
        if len(kept) and kept.sum() <= 2:
            assert parts == pytest.approx(each)


def test_the_probability_of_background_costs_nothing() -> None:
    """Of four detections of one object two are looked at, and the others cost what they say of a class."""
    truth = probox.GroundTruth.from_boxes(["cup"], {1: (60, 60)}, [1], [[10, 10, 40, 40]], [0])
    found = probox.Detections(
        classes=["cup", "background"], image_ids=[1] * 4, boxes=[[10, 10, 40 - gone, 40] for gone in (0, 3, 9, 15)],
        label_probs=[[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.2, 0.8]], covariances=np.tile(np.eye(2), (4, 2, 1, 1)),
    )  # fmt: skip
    convention = probox.Convention.preset("challenge")
    counted = PdqCurve(truth, found, convention).parts(Scale(1.0))[0, 1]
    expected = pdq_parts(truth, found, convention)[0, 1]
    assert counted == pytest.approx(expected) == pytest.approx(1 + 0.8 + 0.3 + 0.2)


def test_a_search_finds_what_a_grid_finds() -> None:
    truth = boxes_truth(10)
    found = simulated(truth, false_per_image=5)
    curve = PdqCurve(truth, found, probox.Convention.preset("reference"))
    images = np.ones(10, bool)
    grid = {share: curve.pdq(Constant(share), images) for share in np.exp(np.arange(-5, -1, 0.1)).tolist()}
    best = fit(truth, found, method="constant", target="pdq").calibration.corners
    assert isinstance(best, Constant)
    assert curve.pdq(best, images) >= max(grid.values()) - 1e-6
    shown = probox.evaluate(truth, found, measures=["pdq"]).pdq
    assert curve.pdq(Scale(1.0), images) == pytest.approx(shown), "one detection an object: nothing is left out"


def test_what_is_judged_was_not_fitted_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fit that knows its images by heart: it puts sigmas right on those, and absurdly wrong on all others."""
    truth = boxes_truth(10)
    found = simulated(truth)
    seen: list[np.ndarray] = []

    def by_heart(job: FitTask, method: str, images: np.ndarray) -> CornerFit:
        seen.append(images)
        return Scale(2.0 if images.all() else 10.0), ()

    monkeypatch.setattr(FitTask, "_corners", by_heart)
    result = fit(truth, found, target="nll", folds=5)
    assert result.calibration.corners == Scale(2.0)
    assert result.gain.changes["coverage68"].after > 0.99, "the numbers are those of the folds"
    folds = np.array(seen[1:6])
    assert (folds.sum(axis=0) == 4).all(), "each image is held out once"
    assert (folds.sum(axis=1) == 8).all()


def test_the_gain_on_fitted_images_is_nowhere() -> None:
    """With sigmas that are right there is nothing to learn, and factors for the edges must not seem to help."""
    truth = boxes_truth(8)
    found = simulated(truth, sigma=3.0, reported=3.0)
    result = fit(truth, found, method="edge-scale", target="nll", folds=8)
    inside = corner_parts(FittingPairs.of(truth, result.calibration.apply(found)), 8, 0.1)["NLL"].sum(axis=0)
    change = result.gain.changes["NLL"]
    assert change.gain < 0
    assert inside[0] / inside[1] < change.before, "though on its own images it does"


def test_before_is_what_evaluate_says() -> None:
    truth = boxes_truth(6)
    found = simulated(truth, false_per_image=2)
    result = fit(truth, found, target="nll", label_threshold=0.5)
    before = result.gain.changes["PDQ"].before
    assert before == pytest.approx(probox.evaluate(truth, found, measures=["pdq"]).at_threshold(0.5).pdq)


def test_intervals_are_of_draw_images() -> None:
    before = {"PDQ": np.array([[1.0, 2.0], [3.0, 4.0]]), "NLL": np.array([[0.0, 0.0], [6.0, 2.0]])}
    after = {"PDQ": np.array([[2.0, 2.0], [3.0, 4.0]]), "NLL": np.array([[0.0, 0.0], [4.0, 2.0]])}
    changes = compare(before, after, columns(), resamples=4000, seed=1)
    pdq, nll = changes["PDQ"], changes["NLL"]
    assert (pdq.before, pdq.after) == (4 / 6, 5 / 6)
    assert pdq.gain == pytest.approx(1 / 6)
    drawn = [w @ np.array([[1.0, 2.0], [0.0, 4.0]]) for w in np.concatenate(list(draw_images(2, 4000, 1)))]
    wanted = compute_interval(1 / 6, np.array([gained / counted for gained, counted in drawn]), 2, 0.95)
    assert (pdq.low, pdq.high) == pytest.approx((wanted.low, wanted.high))
    assert (nll.before, nll.after, nll.gain, nll.low, nll.high) == (3.0, 2.0, 1.0, 1.0, 1.0), "lower is better"
    assert set(changes) == {"PDQ", "NLL"}


def test_coverage_is_better_nearer_to_what_it_should_be() -> None:
    column = next(column for column in columns() if column.key == "coverage90")
    assert column.gain(0.95, 0.89) == pytest.approx(0.04)
    assert column.gain(0.89, 0.95) == pytest.approx(-0.04)


def test_plain_boxes_have_numbers_after_only() -> None:
    truth = boxes_truth(6)
    gain = fit(truth, simulated(truth, reported=0.0), method="constant", target="nll").gain
    change = gain.changes["NLL"]
    assert math.isnan(change.before)
    assert math.isnan(change.gain)
    assert change.after > 0
    assert gain.over_constant == {}
    assert gain.changes["energy"].low > 0, "the energy score of a plain box is its distance"
    assert gain.changes["PDQ"].gain > 0


def test_numbers_before_and_after_are_of_the_same_pairs() -> None:
    """Half of the boxes are plain: NLL before is of the others, and so is NLL after."""
    truth = boxes_truth(6)
    found = simulated(truth, sigma=2.0, reported=2.0)
    plain = np.arange(len(found)) % 2 == 0
    boxes = found.boxes + np.where(plain, 15.0, 0.0)[:, None]  # those are far off, which must not show
    half = found.replace(covariances=np.where(plain[:, None, None, None], 0.0, found.covariances), boxes=boxes)
    fitted = fit(truth, half, method="constant", target="nll")
    pairs = FittingPairs.of(truth, fitted.calibration.apply(half))
    near = ~plain[pairs.detections]
    everybody, others = (corner_parts(part, 6, 0.1)["NLL"].sum(axis=0) for part in (pairs, pairs.take(near)))
    change = fitted.gain.changes["NLL"]
    assert change.after == pytest.approx(others[0] / others[1], abs=0.1)
    assert everybody[0] / everybody[1] > change.after + 1
    assert change.before == pytest.approx(
        fit(truth, half.select(~plain), method="constant", target="nll").gain.changes["NLL"].before
    )


def test_the_constant_stands_beside_every_other_method() -> None:
    truth = boxes_truth(10)
    found = simulated(truth)
    gain, control = (fit(truth, found, method=method, target="nll").gain for method in ("scale", "constant"))
    for key, change in gain.over_constant.items():
        assert change.before == pytest.approx(control.changes[key].after)
        assert change.after == pytest.approx(gain.changes[key].after)


def test_a_search_looks_at_the_two_that_fit_an_object_best() -> None:
    truth = probox.GroundTruth.from_boxes(
        ["cup", "dog"], {1: (100, 100), 2: (50, 50)}, [1, 1], [[10, 10, 30, 30], [60, 60, 90, 90]], [0, 1]
    )
    found = probox.Detections(
        classes=["cup", "dog"],
        image_ids=[1, 1, 1, 1, 1, 1, 2, 2, 2],
        boxes=[
            [10, 10, 30, 29],  # best of the cup
            [10, 10, 30, 28],  # its box is next, its label is not
            [10, 10, 30, 26],
            [10, 10, 30, 24],
            [60, 60, 90, 90],
            [0, 60, 9, 90],  # meets nothing
            *[[0, 0, 9, 9]] * 3,  # an image without objects
        ],
        label_probs=[[0.9, 0], [0.3, 0.6], [0.9, 0], [0.9, 0], [0.1, 0.8], *[[0.5, 0]] * 4],
    )
    rows = truth.dataset.rows_of(found.image_ids)
    everything = np.ones(9, bool)
    listed = shortlist(truth, found, rows, everything)
    assert np.flatnonzero(listed).tolist() == [0, 2, 4, 6, 7, 8]
    assert not shortlist(truth, found, rows, ~everything).any()
    without_best = everything.copy()
    without_best[0] = False
    assert np.flatnonzero(shortlist(truth, found, rows, without_best))[:3].tolist() == [2, 3, 4]
    curve = PdqCurve(truth, found, probox.Convention.preset("reference"))
    assert curve.parts(Constant(0.05))[:, 1].tolist() == [6.0, 3.0], "those that are not looked at are false positives"
