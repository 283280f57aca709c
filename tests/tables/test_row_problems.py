"""What makes rows unusable: every kind is found, with its rows and words, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from probox.tables.row_problems import FARTHEST, extent_problems, find_problems

SOUND: dict[str, Any] = {
    "boxes": np.array([[0.0, 0, 9, 9], [1, 1, 2, 2], [3, 3, 3, 3]]),
    "label_probs": np.array([[0.5, 0.5], [0, 1], [0.2, 0.1]], np.float32),
    "covariances": np.tile(np.eye(2), (3, 2, 1, 1)),
    "heatmaps": [np.zeros((4, 5), np.uint8), None, np.ones((4, 5))],
    "extents": np.array([[9.0, 9], [1, 1], [0, 0]]),
    "scores": np.array([0.5, 1, 0.2]),
}

KINDS: dict[str, tuple[str, Any, str]] = {
    "non-finite box": ("boxes", [0, 0, np.nan, 9], "four finite box corners"),
    "inverted box": ("boxes", [2, 1, 1, 2], "x1 <= x2 and y1 <= y2"),
    "non-finite label probability": ("label_probs", [np.nan, 0], "one is NaN or infinite"),
    "label probability outside [0, 1]": ("label_probs", [1.1, 0], "between 0 and 1, but got 1.1"),
    "label probabilities above 1 in sum": ("label_probs", [0.7, 0.6], "they make 1.3"),
    "unusable size": ("extents", [-1, 1], "finite and at least 0"),
    "size not that of the box": ("extents", [9, 1], "the box's width and height"),
    "score outside [0, 1]": ("scores", 1.5, "a score between 0 and 1, but got 1.5"),
    "non-finite covariance": ("covariances", np.full((2, 2, 2), np.inf), "finite covariances"),
    "covariance not symmetric": ("covariances", [[[1, 2], [0, 9]], [[1, 0], [0, 1]]], "xy and yx differ by 2"),
    "covariance not positive semi-definite": ("covariances", [[[1, 2], [2, 1]], np.eye(2)], "eigenvalue is -1"),
    "heatmap type": ("heatmaps", np.zeros(5), "an H x W heatmap, but got float64 5"),
    "heatmap range": ("heatmaps", np.full((2, 2), 1.5), "values between 0 and 1"),
}


def test_nothing_is_wrong_with_what_is_sound() -> None:
    assert find_problems(**SOUND) == []


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_kind_is_found_in_its_row_alone(kind: str) -> None:
    column, value, words = KINDS[kind]
    changed = list(SOUND[column])
    changed[1] = value
    columns = SOUND | {column: changed if column == "heatmaps" else np.array(changed, SOUND[column].dtype)}
    (problem,) = find_problems(**columns)
    assert (problem.kind, problem.rows.tolist()) == (kind, [1])
    assert words in problem.text(1)
    assert problem.remedy


def test_columns_that_are_not_given_are_not_looked_at() -> None:
    assert find_problems(SOUND["boxes"], SOUND["label_probs"]) == []


def test_extents_of_boxes_that_are_reported_anyway_are_passed_over() -> None:
    boxes = np.array([[0, 0, 9, FARTHEST * 2], [0, 0, 9, 9.0]])
    kinds = extent_problems(boxes, np.array([[np.nan, 1], [np.nan, 1]]), np.array([False, True]))
    assert [problem.rows.tolist() for problem in kinds] == [[1], []]
