"""Sigmas, distances and quantiles of corners."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import random_covariance

from probox.calibration.corner_maps import box_reach, edge_reach, sigmas_of, squared_distances, with_sigmas


def some_covariances(seed: int, n: int = 5) -> np.ndarray:
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(n, 2, 2, 2))
    return roots @ np.swapaxes(roots, -1, -2) + 0.01 * np.eye(2)


@given(st.integers(0, 10**6))
def test_distances_are_those_of_the_marginal(seed: int) -> None:
    rng = np.random.default_rng(seed)
    covariances, residuals = some_covariances(seed), rng.normal(size=(5, 4))
    free = rng.random((5, 4)) < 0.6
    found = squared_distances(residuals, covariances, free)
    for row in range(5):
        whole = np.zeros((4, 4))
        whole[:2, :2], whole[2:, 2:] = covariances[row]
        kept = np.flatnonzero(free[row])
        r = residuals[row, kept]
        assert found[row] == pytest.approx(r @ np.linalg.inv(whole[np.ix_(kept, kept)]) @ r if len(r) else 0.0)


@given(st.integers(0, 10**6))
def test_new_sigmas_keep_correlations(seed: int) -> None:
    rng = np.random.default_rng(seed)
    covariances = np.stack([[random_covariance(rng), random_covariance(rng)] for _ in range(4)])
    sigmas = rng.uniform(0.1, 9, (4, 4))
    changed = with_sigmas(covariances, sigmas)
    assert sigmas_of(changed) == pytest.approx(sigmas)
    old = sigmas_of(covariances).reshape(4, 2, 2)
    rho = np.divide(covariances[..., 0, 1], old.prod(-1), out=np.zeros((4, 2)), where=old.prod(-1) > 0)
    assert changed[..., 0, 1] == pytest.approx(rho * sigmas.reshape(4, 2, 2).prod(-1))
    assert changed[..., 1, 0] == pytest.approx(changed[..., 0, 1])


def test_quantiles() -> None:
    assert edge_reach(0.6826894921370859) == pytest.approx(1.0)
    for level in (0.5, 0.9, 0.99):
        assert math.erf(box_reach(level) / math.sqrt(2)) ** 4 == pytest.approx(level)
