"""Means and covariances of clusters against NumPy's own, and what small clusters get."""

from __future__ import annotations

import numpy as np
import pytest

from probox.errors import InputError
from probox.fusion import Spread
from probox.fusion.gaussian import cluster_gaussians, floor_std


def test_weighted_mean_and_covariance_equal_numpys() -> None:
    rng = np.random.default_rng(1)
    boxes = rng.normal(size=(60, 4)) * [3, 2, 5, 1] + [10, 20, 60, 80]
    weights = rng.uniform(0.1, 1.0, 60)
    cluster = rng.integers(0, 4, 60)
    means, covariances, observations = cluster_gaussians(boxes, weights, cluster, 4)
    for k in range(4):
        rows = cluster == k
        np.testing.assert_allclose(means[k], np.average(boxes[rows], axis=0, weights=weights[rows]))
        for corner in range(2):
            own = boxes[rows][:, 2 * corner : 2 * corner + 2]
            np.testing.assert_allclose(covariances[k, corner], np.cov(own.T, aweights=weights[rows]))
        expected = weights[rows].sum() ** 2 / (weights[rows] ** 2).sum() - 1
        assert observations[k] == pytest.approx(expected)


def test_equal_weights_are_worth_one_observation_less_than_members() -> None:
    boxes = np.random.default_rng(0).normal(size=(7, 4))
    for weight in (1.0, 1e-3, 1e-150):
        _, covariances, observations = cluster_gaussians(boxes, np.full(7, weight), np.zeros(7, np.int64), 1)
        assert observations[0] == pytest.approx(6)
        np.testing.assert_allclose(covariances[0, 0], np.cov(boxes[:, :2].T))


def test_members_with_their_own_covariances_make_a_mixture() -> None:
    rng = np.random.default_rng(3)
    means = rng.normal(size=(6, 4)) * 4
    factors = rng.normal(size=(6, 2, 2, 2))
    own = factors @ np.swapaxes(factors, -1, -2)
    mean, mixed, _ = cluster_gaussians(means, np.ones(6), np.zeros(6, np.int64), 1, own)
    np.testing.assert_allclose(mean[0], means.mean(axis=0))
    np.testing.assert_allclose(mixed[0, 1], np.cov(means[:, 2:].T) + own[:, 1].mean(axis=0))


def test_a_cluster_of_one_gets_the_prior_scaled_to_its_box() -> None:
    box = np.array([[10.0, 20.0, 110.0, 60.0]])
    spread = Spread(min_std=0.0, prior_std=0.1, shrinkage=2.0)
    covariance = spread.apply(np.full((1, 2, 2, 2), np.nan_to_num(0.0)), np.zeros(1), box)
    np.testing.assert_allclose(covariance[0], [np.diag([100.0, 16.0])] * 2)


def test_shrinkage_weighs_prior_against_members() -> None:
    box = np.array([[0.0, 0.0, 100.0, 100.0]])
    own = np.array([[[[4.0, 1.0], [1.0, 9.0]]] * 2])
    spread = Spread(min_std=0.0, prior_std=0.02, shrinkage=1.0)
    mixed = spread.apply(own, np.array([3.0]), box)
    np.testing.assert_allclose(mixed[0, 0], (3 * own[0, 0] + np.diag([4.0, 4.0])) / 4)
    alone = Spread(min_std=0.0, shrinkage=0.0).apply(own, np.array([3.0]), box)
    np.testing.assert_array_equal(alone, own)


def test_without_prior_a_cluster_of_one_is_a_circle_of_the_least_std() -> None:
    box = np.array([[0.0, 0.0, 100.0, 100.0]])
    covariance = Spread(min_std=1.5, shrinkage=0.0).apply(np.zeros((1, 2, 2, 2)), np.zeros(1), box)
    np.testing.assert_allclose(covariance[0], [np.eye(2) * 2.25] * 2)


def test_flooring_keeps_directions_and_leaves_wide_ones_alone() -> None:
    angle = 0.4
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    narrow = turn @ np.diag([9.0, 0.01]) @ turn.T
    np.testing.assert_allclose(floor_std(narrow[None], 1.0)[0], turn @ np.diag([9.0, 1.0]) @ turn.T)
    wide = np.array([[[5.0, 1.0], [1.0, 3.0]]])
    np.testing.assert_array_equal(floor_std(wide, 1.0), wide)


def test_the_prior_of_a_box_that_ends_before_it_begins_has_no_size() -> None:
    spread = Spread(min_std=0.0, prior_std=0.1, shrinkage=1.0)
    covariance = spread.apply(np.zeros((1, 2, 2, 2)), np.zeros(1), np.array([[50.0, 20.0, 10.0, 40.0]]))
    np.testing.assert_allclose(covariance[0], [np.diag([0.0, 4.0])] * 2)


def test_what_nobody_chooses() -> None:
    assert Spread() == Spread(min_std=1.0, prior_std=0.1, shrinkage=1.0)
    with pytest.raises(TypeError):
        Spread(1.0)  # type: ignore[misc]
    with pytest.raises(AttributeError):
        Spread().min_std = 2.0  # type: ignore[misc]


@pytest.mark.parametrize("value", [-0.5, float("inf"), float("nan")])
@pytest.mark.parametrize("name", ["min_std", "prior_std", "shrinkage"])
def test_other_choices_are_refused(name: str, value: float) -> None:
    with pytest.raises(InputError, match=name):
        Spread(**{name: value})
