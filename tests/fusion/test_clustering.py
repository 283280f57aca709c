"""The kernel's clustering equals the plain one, and both do what their words say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probox import _core as core
from probox.fusion import fuse, fusion_definition


@st.composite
def box_sets(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Boxes on a coarse lattice, so that equal overlaps, equal boxes and empty boxes are common."""
    count = draw(st.integers(0, 30))
    corner = st.tuples(*[st.integers(0, 6)] * 4)
    corners = np.array(draw(st.lists(corner, min_size=count, max_size=count)), np.float64).reshape(-1, 4)
    boxes = np.concatenate([corners[:, :2], corners[:, :2] + corners[:, 2:]], axis=1)
    labels = np.array(draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)), np.int64)
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    return boxes, labels, rng.random((count, 3)), rng.permutation(count).astype(np.int64)


@given(box_sets(), st.sampled_from([0.1, 0.3, 0.5, 0.7, 1.0]), st.sampled_from(["same", "similar", "none"]))
def test_sequential_clusters_equal_the_definition(sets: tuple, iou: float, affinity: str) -> None:
    boxes, labels, probs, _ = sets
    choices = {
        "labels": labels if affinity == "same" else None,
        "label_probs": probs if affinity == "similar" else None,
        "label_similarity": 0.6,
    }
    expected = fusion_definition.cluster_sequentially(boxes, iou, **choices)
    np.testing.assert_array_equal(core.cluster_sequentially(boxes, iou, **choices), expected)


@given(box_sets(), st.sampled_from([0.0, 0.25, 0.5, 0.75]), st.sampled_from([0.0, 0.3, 0.75]), st.booleans())
def test_suppression_and_members_equal_the_definition(
    sets: tuple, iou: float, cluster_iou: float, class_agnostic: bool
) -> None:
    boxes, labels, _, order = sets
    groups = np.zeros_like(labels) if class_agnostic else labels
    expected = fusion_definition.suppress(boxes, groups, order, iou)
    stands_for = core.suppress(boxes, groups, order, iou)
    np.testing.assert_array_equal(stands_for, expected)
    survivors = np.flatnonzero(stands_for == np.arange(len(boxes)))
    ours = core.members_of_survivors(
        boxes=boxes, groups=groups, stands_for=stands_for, survivors=survivors, iou=cluster_iou
    )
    theirs = fusion_definition.members_of_survivors(boxes, groups, expected, survivors, cluster_iou)
    np.testing.assert_array_equal(ours[0], theirs[0])
    np.testing.assert_array_equal(ours[1], theirs[1])


def test_a_box_joins_the_best_of_several_clusters() -> None:
    boxes = np.array([[0, 0, 10, 10], [4, 0, 14, 10], [3, 0, 13, 10]], np.float64)
    assert fuse.cluster_sequentially(boxes, 0.5).tolist() == [0, 1, 1]


def test_of_equally_good_clusters_the_earliest_wins() -> None:
    boxes = np.array([[0, 0, 10, 10], [8, 0, 18, 10], [4, 0, 14, 10]], np.float64)
    assert fusion_definition.box_iou(boxes[0], boxes[2]) == fusion_definition.box_iou(boxes[1], boxes[2]) == 6 / 14
    for cluster in (fuse.cluster_sequentially, fusion_definition.cluster_sequentially):
        assert cluster(boxes, 6 / 14).tolist() == [0, 1, 0]  # and an overlap of exactly the bound is enough
        assert cluster(boxes, float(np.nextafter(6 / 14, 1))).tolist() == [0, 1, 2]


def test_affinity_is_to_the_clusters_mean_not_its_first_member() -> None:
    # Each box overlaps the one before by 9/11, the last overlaps the first by 6/14 only.
    boxes = np.array([[x, 0, x + 10, 10] for x in range(5)], np.float64)
    assert fusion_definition.box_iou(boxes[0], boxes[4]) < 0.5
    assert fuse.cluster_sequentially(boxes, 0.5).tolist() == [0, 0, 0, 0, 0]


def test_the_kernel_refuses_rows_outside_the_table() -> None:
    boxes = np.zeros((2, 4))
    rows = np.array([0, 2], np.int64)
    with pytest.raises(ValueError, match="order"):
        core.suppress(boxes, np.zeros(2, np.int64), rows, 0.5)
    with pytest.raises(ValueError, match="one per box"):
        core.suppress(boxes, np.zeros(1, np.int64), np.array([0, 1]), 0.5)
    with pytest.raises(ValueError, match="survivors"):
        core.members_of_survivors(
            boxes=boxes, groups=np.zeros(2, np.int64), stands_for=np.zeros(2, np.int64), survivors=rows, iou=0.5
        )
