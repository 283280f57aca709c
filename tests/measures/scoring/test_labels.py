"""Labels: Brier, ignorance, entropy, and the objects' own calibration error."""

from __future__ import annotations

import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probox.measures.boxes.box_definition import overlaps
from probox.measures.scoring import calibration_metrics, score_definition
from probox.measures.scoring.calibration_metrics import object_brier_scores
from probox.measures.scoring.scores import brier_scores, entropies, ignorances


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
