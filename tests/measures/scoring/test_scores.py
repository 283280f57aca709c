"""Scores of boxes and labels: exact for any covariance, from a thousandth of a pixel to a thousand pixels."""

from __future__ import annotations

import math
from statistics import NormalDist
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats
from tests.amounts import examples, others_slow

from probox import InputError
from probox.measures.boxes.box_definition import overlaps
from probox.measures.scoring import calibration_metrics, score_definition, scores
from probox.measures.scoring.calibration_metrics import object_brier_scores
from probox.measures.scoring.scores import (
    QUICK,
    brier_scores,
    edge_variances,
    energy_scores,
    entropies,
    ignorances,
    invertible,
    log_determinants,
    mean_lengths,
    negative_log_likelihoods,
    squared_distances,
)


def random_boxes(seed: int, n: int = 4, low: float = 1e-3, high: float = 1e3) -> tuple[np.ndarray, np.ndarray]:
    """Return residuals and covariances of sigmas between two bounds, with any correlation."""
    rng = np.random.default_rng(seed)
    sigmas = np.exp(rng.uniform(math.log(low), math.log(high), (n, 2, 2)))
    rho = np.tanh(rng.normal(size=(n, 2)))
    covariances = sigmas[..., :, None] * sigmas[..., None, :]
    covariances[..., 0, 1] *= rho
    covariances[..., 1, 0] *= rho
    residuals = sigmas.reshape(n, 4) * rng.standard_t(3, size=(n, 4))
    return residuals, covariances


@examples(25)
@given(st.integers(0, 2**32 - 1))
def test_scores_are_those_of_the_definition(seed: int) -> None:
    residuals, covariances = random_boxes(seed, 2)
    nll, energy = negative_log_likelihoods(residuals, covariances), energy_scores(residuals, covariances)
    for row in range(len(residuals)):
        one = residuals[row], covariances[row]
        assert nll[row] == pytest.approx(score_definition.negative_log_likelihood(*one), rel=1e-9, abs=1e-9)
        size = np.linalg.norm(np.append(residuals[row], np.sqrt(edge_variances(covariances[row][None]))))
        assert energy[row] == pytest.approx(score_definition.energy_score(*one), rel=0, abs=1e-11 * size)


@pytest.mark.parametrize("small", [1.0, 0.3, 1e-1, 1e-2, 1e-3, 1e-4, 1e-6])
@pytest.mark.parametrize("shift", others_slow([0.3, 100.0, 0.0, 3.0], 2))
def test_mean_lengths_are_those_of_finer_steps(small: float, shift: float) -> None:
    for spread in ([1, small, small, small], [1, 1, small, small], [1, small, small**2, 1], [1, 0, 0, 0]):
        variances = np.square(np.array(spread, float))
        for direction in np.eye(4)[:2]:
            mean = shift * direction
            length = mean_lengths(mean[None], variances[None])[0]
            assert length == pytest.approx(score_definition.mean_length(mean, np.diag(variances), 0.1), rel=2e-12)


def test_known_lengths() -> None:
    one = np.ones((1, 1))
    assert mean_lengths(0 * one, one)[0] == pytest.approx(math.sqrt(2 / math.pi), abs=1e-12)  # |N(0, 1)|
    assert mean_lengths(np.zeros((1, 4)), np.ones((1, 4)))[0] == pytest.approx(stats.chi(4).mean(), abs=1e-12)
    assert mean_lengths(np.array([[3.0, 4.0]]), np.zeros((1, 2)))[0] == pytest.approx(5.0, abs=1e-11)
    assert mean_lengths(np.zeros((1, 4)), np.zeros((1, 4)))[0] == 0


def test_the_energy_score_of_one_edge_is_its_crps() -> None:
    rng = np.random.default_rng(1)
    r, s = rng.normal(size=50), rng.uniform(0.1, 3.0, 50)
    one = mean_lengths(r[:, None], s[:, None] ** 2) - 0.5 * mean_lengths(np.zeros((50, 1)), 2 * s[:, None] ** 2)
    np.testing.assert_allclose(one, scores.crps(r, s), atol=1e-10)


def test_the_energy_score_of_a_plain_box_is_the_distance() -> None:
    residuals = np.array([[3.0, 0.0, 0.0, 4.0], [0.0, 0.0, 0.0, 0.0]])
    np.testing.assert_allclose(energy_scores(residuals, np.zeros((2, 2, 2, 2))), [5.0, 0.0], atol=1e-9)


def test_the_score_is_least_for_the_covariance_that_is_right() -> None:
    rng = np.random.default_rng(2)
    residuals = rng.normal(size=(5_000, 4)) * 3.0
    for score in (energy_scores, negative_log_likelihoods):
        means = {f: score(residuals, np.broadcast_to(np.eye(2) * (3.0 * f) ** 2, (5_000, 2, 2, 2))).mean()
                 for f in (0.8, 1.0, 1.25)}  # fmt: skip
        assert min(means, key=means.__getitem__) == 1.0


# --- covariances ---


@given(st.integers(0, 2**32 - 1))
def test_distances_and_determinants_are_those_of_the_whole_matrix(seed: int) -> None:
    residuals, covariances = random_boxes(seed)
    assert invertible(covariances).all()
    for r, corners, distance, log in zip(
        residuals, covariances, squared_distances(residuals, covariances), log_determinants(covariances), strict=True
    ):
        whole = score_definition.whole_covariance(corners)
        assert distance == pytest.approx(r @ np.linalg.solve(whole, r), rel=1e-8)
        assert log == pytest.approx(np.linalg.slogdet(whole)[1], abs=1e-8)


def test_a_line_and_a_point_have_no_density() -> None:
    fine = np.stack([np.eye(2), np.eye(2)])
    line = np.array([[4.0, 6.0], [6.0, 9.0]])
    odd = [np.zeros((2, 2)), line, np.diag([1.0, 0.0]), np.diag([0.0, 1.0])]
    stack = np.array([fine, *([np.eye(2), bad] for bad in odd), *([bad, np.eye(2)] for bad in odd)])
    assert invertible(stack).tolist() == [True] + [False] * 8
    assert invertible(np.array([[[[4.0, 5.99], [5.99, 9.0]], np.eye(2)]])).all()
    # A scale of pixels decides nothing.
    assert invertible(np.array([[np.eye(2) * 1e-12, np.eye(2) * 1e12]])).all()
    assert edge_variances(np.array([[np.diag([1.0, 2.0]), np.diag([3.0, 4.0])]])).tolist() == [[1, 2, 3, 4]]


def test_a_floor_is_added_only_if_asked_for() -> None:
    r, plain = np.ones((1, 4)), np.zeros((1, 2, 2, 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        assert not np.isfinite(negative_log_likelihoods(r, plain)).any()
    expected = -stats.multivariate_normal(np.zeros(4), 0.25 * np.eye(4)).logpdf(r[0])
    assert negative_log_likelihoods(r, plain, floor=0.25)[0] == pytest.approx(expected)
    for floor in (-1.0, math.nan, math.inf):
        with pytest.raises(InputError, match="expected floor to be a variance of at least 0"):
            negative_log_likelihoods(r, plain, floor=floor)


# --- edges ---


@given(st.integers(0, 2**32 - 1))
def test_crps_is_the_integral_of_squared_differences(seed: int) -> None:
    rng = np.random.default_rng(seed)
    r, s = rng.normal() * 2, float(np.exp(rng.normal()))
    left = integrate.quad(lambda x: NormalDist().cdf(x / s) ** 2, -12 * s - abs(r), r, limit=200)[0]
    right = integrate.quad(lambda x: NormalDist().cdf(-x / s) ** 2, r, 12 * s + abs(r), limit=200)[0]
    assert scores.crps(np.array([r]), np.array([s]))[0] == pytest.approx(left + right, abs=1e-6)


def test_edges_of_plain_boxes() -> None:
    np.testing.assert_array_equal(scores.crps(np.array([-2.0, 3.0]), np.zeros(2)), [2.0, 3.0])
    assert scores.interval_widths(np.ones(1), 0.95)[0] == pytest.approx(2 * 1.959963985)


@pytest.mark.parametrize("seed", range(3))
def test_quick_scores_will_do_for_a_search(seed: int) -> None:
    residuals, covariances = random_boxes(seed, 200)
    exact = energy_scores(residuals, covariances)
    quick = energy_scores(residuals, covariances, steps=QUICK)
    np.testing.assert_allclose(quick, exact, rtol=1e-5)
    assert (quick != exact).any()


@given(st.integers(0, 2**32 - 1))
def test_a_label_has_the_scores_of_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.ones(4), 5)[:, :3].astype(np.float32)
    labels = rng.integers(0, 3, 5).astype(np.int32)
    for row, (p, label) in enumerate(zip(probs.astype(float), labels, strict=True)):
        assert brier_scores(probs, labels)[row] == pytest.approx(sum((p - np.eye(3)[label]) ** 2))
        assert ignorances(probs, labels)[row] == pytest.approx(-math.log(p[label]))
        every = np.append(p, 1 - p.sum())
        assert entropies(probs)[row] == pytest.approx(-(every * np.log(every)).sum())


def test_what_is_held_impossible_is_infinitely_surprising() -> None:
    probs, labels = np.array([[1.0, 0.0], [0.0, 0.0], [0.5, 0.5]]), np.array([1, 0, 0])
    assert ignorances(probs, labels).tolist() == [math.inf, math.inf, pytest.approx(math.log(2))]
    assert brier_scores(probs, labels).tolist() == [2.0, 1.0, 0.5]
    assert entropies(probs).tolist() == [0.0, 0.0, pytest.approx(math.log(2))]


@pytest.mark.parametrize("at_a_time", [1, 7, 1 << 22])
@given(st.integers(0, 2**32 - 1))
def test_objects_have_the_losses_of_the_definition(at_a_time: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = (int(k) for k in rng.integers(0, 6, 2))
    found, there = (np.concatenate([rng.uniform(0, 4, (k, 2)), rng.uniform(4, 9, (k, 2))], axis=1) for k in (n, m))
    probs, labels = rng.dirichlet(np.ones(4), n)[:, :3], rng.integers(0, 3, m)
    with mock.patch.object(calibration_metrics, "_MOST_OVERLAPS", at_a_time):
        losses = object_brier_scores(found, probs, there, labels, ious=(0.3, 0.6))
    assert losses.shape == (m, 2)
    shared = overlaps(found, there, np.zeros(m, bool)).T
    for column, iou in enumerate((0.3, 0.6)):
        assert losses[:, column] == pytest.approx(score_definition.oce(shared, probs, labels.tolist(), iou))
