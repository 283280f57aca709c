"""Fusing samples and candidates: known Gaussians come back, bad input is named, and it is fast."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probox.errors import InputError
from probox.fusion import (
    from_edge_distributions,
    fuse_candidates,
    fuse_samples,
    fusion_definition,
    limit_to_distribution,
)

CLASSES = ("cup", "dog", "car")


def _passes(
    rng: np.random.Generator, passes: int, objects: int, classes: int, std: float = 2.0
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    corner = rng.uniform(0, 500, (objects, 2))
    base = np.concatenate([corner, corner + rng.uniform(100, 200, (objects, 2))], axis=1)
    labels = rng.integers(0, classes, objects)
    boxes = [base + rng.normal(0, std, base.shape) for _ in range(passes)]
    probs = []
    for _ in range(passes):
        rows = rng.dirichlet(np.full(classes, 0.2), objects) * 0.4
        rows[np.arange(objects), labels] += 0.5
        probs.append(rows)
    return boxes, probs


@pytest.mark.parametrize("choices", [{}, {"min_std": 0.0, "shrinkage": 0.0}])
def test_samples_of_a_known_gaussian_give_it_back(choices: dict[str, float]) -> None:
    rng = np.random.default_rng(5)
    truth_mean = np.array([100.0, 120.0, 300.0, 280.0])
    top_left = np.array([[9.0, 4.0], [4.0, 16.0]])
    bottom_right = np.array([[25.0, -6.0], [-6.0, 4.0]])
    count = 4000
    samples = np.concatenate(
        [rng.multivariate_normal(truth_mean[:2], top_left, count),
         rng.multivariate_normal(truth_mean[2:], bottom_right, count)], axis=1,
    )  # fmt: skip
    probs = np.tile([[0.7, 0.2, 0.1]], (count, 1))
    fused = fuse_samples(samples[:, None], probs[:, None], classes=CLASSES, image_id=3, **choices)
    assert len(fused) == 1
    assert fused.image_ids.tolist() == [3]
    # The standard error of a mean is sigma / sqrt(n), of a covariance about sigma_a sigma_b sqrt(2 / n).
    for corner, covariance in enumerate((top_left, bottom_right)):
        sigma = np.sqrt(np.diag(covariance))
        own_mean = fused.boxes[0, 2 * corner : 2 * corner + 2]
        assert (np.abs(own_mean - truth_mean[2 * corner : 2 * corner + 2]) < 4 * sigma / np.sqrt(count)).all()
        error = np.abs(fused.covariances[0, corner] - covariance)
        assert (error < 4 * np.outer(sigma, sigma) * np.sqrt(2 / count) + 0.05).all()
    np.testing.assert_allclose(fused.label_probs[0], [0.7, 0.2, 0.1], atol=1e-6)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["same", "similar", "none"]), st.booleans())
def test_samples_equal_a_brute_force_version(seed: int, affinity: str, absent_counts: bool) -> None:
    rng = np.random.default_rng(seed)
    boxes, probs = _passes(rng, 4, 6, 3, std=8.0)
    keep = [rng.random(6) < 0.7 for _ in boxes]
    boxes = [box[rows] for box, rows in zip(boxes, keep, strict=True)]
    probs = [prob[rows] for prob, rows in zip(probs, keep, strict=True)]
    fused = fuse_samples(
        boxes, probs, classes=CLASSES, label_affinity=affinity, absent_counts=absent_counts,
        min_members=2, min_std=0.0, shrinkage=0.0,
    )  # fmt: skip
    flat_boxes, flat_probs = np.concatenate(boxes), np.concatenate(probs)
    cluster = fusion_definition.cluster_sequentially(
        flat_boxes, 0.7,
        flat_probs.argmax(axis=1) if affinity == "same" else None,
        flat_probs if affinity == "similar" else None, 0.5,
    )  # fmt: skip
    expected = []
    for k in range(cluster.max(initial=-1) + 1):
        rows = np.flatnonzero(cluster == k)
        if len(rows) >= 2:
            share = max(len(rows), len(boxes)) if absent_counts else len(rows)
            covariances = [np.cov(flat_boxes[rows, 2 * c : 2 * c + 2].T) for c in range(2)]
            expected.append((flat_probs[rows].sum(axis=0) / share, flat_boxes[rows].mean(axis=0), covariances))
    expected.sort(key=lambda item: -item[0].max())
    assert len(fused) == len(expected)
    for row, (prob, box, covariances) in enumerate(expected):
        np.testing.assert_allclose(fused.label_probs[row], prob, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(fused.boxes[row], box, rtol=1e-12)
        np.testing.assert_allclose(fused.covariances[row], covariances, rtol=1e-8, atol=1e-9)


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_candidates_equal_a_brute_force_version(seed: int, class_agnostic: bool) -> None:
    rng = np.random.default_rng(seed)
    parts, probs = _passes(rng, 6, 4, 3, std=8.0)
    boxes, scores = np.concatenate(parts), np.concatenate(probs)
    fused = fuse_candidates(
        boxes, scores, classes=CLASSES, class_agnostic=class_agnostic, min_std=0.0, shrinkage=0.0, max_detections=5
    )
    winner, best = scores.argmax(axis=1), scores.max(axis=1)
    order = sorted(range(len(boxes)), key=lambda row: -best[row])
    alive: list[int] = []
    suppressed: list[int] = []
    for row in order:
        rivals = [other for other in alive if class_agnostic or winner[other] == winner[row]]
        hit = any(fusion_definition.box_iou(boxes[row], boxes[other]) > 0.5 for other in rivals)
        (suppressed if hit else alive).append(row)
    assert len(fused) == min(5, len(alive))
    for position, survivor in enumerate(alive[:5]):
        members = [survivor] + [
            row for row in suppressed
            if (class_agnostic or winner[row] == winner[survivor])
            and fusion_definition.box_iou(boxes[row], boxes[survivor]) > 0.75
        ]  # fmt: skip
        np.testing.assert_allclose(fused.boxes[position], np.average(boxes[members], axis=0, weights=best[members]))
        np.testing.assert_allclose(fused.label_probs[position], scores[survivor], rtol=1e-6)
        if len(members) > 1:
            expected = [np.cov(boxes[members, 2 * c : 2 * c + 2].T, aweights=best[members]) for c in range(2)]
            np.testing.assert_allclose(fused.covariances[position], expected, rtol=1e-7, atol=1e-9)
        else:
            assert not fused.covariances[position].any()


def test_a_candidate_may_stand_for_another_class_than_the_winning_one() -> None:
    boxes = [[0, 0, 10, 10], [0, 0, 10, 10]]
    probs = [[0.6, 0.3, 0.0], [0.6, 0.3, 0.0]]
    fused = fuse_candidates(boxes, probs, labels=[0, 1], classes=CLASSES)
    assert fused.labels.tolist() == [0, 1]
    np.testing.assert_allclose(fused.scores, [0.6, 0.3])


def test_same_label_keeps_classes_apart_and_none_does_not() -> None:
    boxes = [[[0, 0, 10, 10]], [[0, 0, 10, 10]]]
    probs = [[[0.6, 0.3, 0.0]], [[0.4, 0.5, 0.0]]]
    assert len(fuse_samples(boxes, probs, classes=CLASSES)) == 2
    assert len(fuse_samples(boxes, probs, classes=CLASSES, label_affinity="none")) == 1
    # min(0.67, 0.44) + min(0.33, 0.56) = 0.78
    assert len(fuse_samples(boxes, probs, classes=CLASSES, label_affinity="similar", label_similarity=0.77)) == 1
    assert len(fuse_samples(boxes, probs, classes=CLASSES, label_affinity="similar", label_similarity=0.79)) == 2


def test_absent_passes_lower_the_score_when_they_count() -> None:
    boxes = [[[0, 0, 10, 10]], [], [], []]
    probs = [[[0.8, 0.1, 0.0]], [], [], []]
    assert fuse_samples(boxes, probs, classes=CLASSES).scores[0] == pytest.approx(0.8)
    assert fuse_samples(boxes, probs, classes=CLASSES, absent_counts=True).scores[0] == pytest.approx(0.2)


def test_nothing_in_nothing_out() -> None:
    assert len(fuse_samples([], [], classes=CLASSES)) == 0
    assert len(fuse_samples([[], []], [[], []], classes=CLASSES)) == 0
    assert len(fuse_candidates(np.zeros((0, 4)), np.zeros((0, 3)), classes=CLASSES)) == 0


def test_sigmoid_scores_keep_the_winner() -> None:
    fused = fuse_samples([[[0, 0, 9, 9]]], [[[0.9, 0.8, 0.1]]], classes=CLASSES)
    assert fused.scores[0] == pytest.approx(0.9)
    np.testing.assert_allclose(fused.label_probs[0], [0.9, 0.1 * 8 / 9, 0.1 / 9], rtol=1e-6)


@pytest.mark.parametrize(
    ("boxes", "probs", "message"),
    [
        ([[[0, 0, np.nan, 1]]], [[[0.1, 0.1, 0.1]]], "box 0: expected finite corners"),
        ([[[9, 0, 1, 1]]], [[[0.1, 0.1, 0.1]]], "x1 <= x2"),
        ([[[0, 0, 1, 1]]], [[[0.1, 5.0, 0.1]]], "apply softmax or sigmoid first"),
        ([[[0, 0, 1, 1]]], [[[0.1, np.nan, 0.1]]], "between 0 and 1"),
        ([[[0, 0, 1, 1]]], [[[0.1, 0.1]]], "label_probs of pass 0"),
        ([[[0, 0, 1]]], [[[0.1, 0.1, 0.1]]], "boxes of pass 0"),
        ([[[0, 0, 1, 1]], []], [[[0.1, 0.1, 0.1]]], "every pass"),
        ([[[0, 0, 1, 1]]], [[]], "every pass"),
    ],
)
def test_bad_samples_are_named(boxes: list, probs: list, message: str) -> None:
    with pytest.raises(InputError, match=message):
        fuse_samples(boxes, probs, classes=CLASSES, image_id=7)


def test_bad_options_are_named() -> None:
    with pytest.raises(InputError, match="iou"):
        fuse_samples([], [], classes=CLASSES, iou=0.0)
    with pytest.raises(InputError, match="label_affinity"):
        fuse_samples([], [], classes=CLASSES, label_affinity="maybe")
    with pytest.raises(InputError, match="expected labels to be indices"):
        fuse_candidates([[0, 0, 1, 1]], [[0.1, 0.1, 0.1]], labels=[3], classes=CLASSES)


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
