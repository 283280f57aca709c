"""Edge distributions: moments, corners and label distributions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probox.errors import InputError
from probox.fusion import from_edge_distributions, limit_to_distribution


def test_moments_equal_those_of_samples() -> None:
    rng = np.random.default_rng(2)
    probs = rng.dirichlet(np.ones(8), 4)
    found = from_edge_distributions(probs[None], [[200.0, 150.0]], 16.0, [[0.5]], classes=["cup"])
    draws = np.stack([rng.choice(8, 200_000, p=row) for row in probs], axis=1) * 16.0
    corners = np.concatenate([[200.0, 150.0] - draws[:, :2], [200.0, 150.0] + draws[:, 2:]], axis=1)
    np.testing.assert_allclose(found.boxes[0], corners.mean(axis=0), rtol=0.01)
    variances = np.concatenate([np.diag(block) for block in found.covariances[0]])
    np.testing.assert_allclose(variances, corners.var(axis=0), rtol=0.02)
    assert found.covariances[0, 0, 0, 1] == 0.0


def test_logits_and_bins() -> None:
    logits = np.log([[[0.25, 0.75], [0.5, 0.5], [1e-9, 1.0], [0.9, 0.1]]])
    found = from_edge_distributions(logits + 3.0, [[0, 0]], [2.0], [[0.5]], classes=["cup"], logits=True, bins=[0, 4])
    np.testing.assert_allclose(found.boxes[0], [-6.0, -4.0, 8.0, 0.8], atol=1e-6)
    np.testing.assert_allclose(found.covariances[0, 0], np.diag([4 * 3.0, 4 * 4.0]), atol=1e-9)


def test_a_certain_edge_gets_the_least_std() -> None:
    edges = np.zeros((1, 4, 3))
    edges[..., 1] = 1.0
    found = from_edge_distributions(edges, [[50, 50]], 8, [[0.5]], classes=["cup"], min_std=0.5)
    np.testing.assert_allclose(found.covariances[0], [np.eye(2) * 0.25] * 2)


def test_wrong_input_is_named() -> None:
    with pytest.raises(InputError, match="N x 4 x B"):
        from_edge_distributions(np.zeros((1, 32)), [[0, 0]], 8, [[0.5]], classes=["cup"])
    with pytest.raises(InputError, match="logits=True"):
        from_edge_distributions(np.ones((1, 4, 8)), [[0, 0]], 8, [[0.5]], classes=["cup"])


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_limited_scores_keep_winner_order_and_mass(seed: int, classes: int) -> None:
    rng = np.random.default_rng(seed)
    scores = (rng.random((20, classes)) ** rng.integers(1, 6)).astype(np.float32)
    limited = limit_to_distribution(scores)
    assert (limited.sum(axis=1, dtype=np.float64) <= 1.001).all()
    assert (limited <= scores).all()
    np.testing.assert_array_equal(limited.argmax(axis=1), scores.argmax(axis=1))
    np.testing.assert_array_equal(limited.max(axis=1), scores.max(axis=1))
    small = scores.sum(axis=1, dtype=np.float64) <= 1.001
    np.testing.assert_array_equal(limited[small], scores[small])


def test_several_certain_classes_leave_one() -> None:
    np.testing.assert_array_equal(limit_to_distribution([[1.0, 1.0, 1.0]]), [[1.0, 0.0, 0.0]])
