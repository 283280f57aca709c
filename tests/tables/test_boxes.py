"""Boxes: how large they are, and which pixels they have."""

from __future__ import annotations

import numpy as np
import pytest

from probox import GroundTruth
from probox.tables.boxes import extents_of, pixels_of_boxes


@pytest.mark.parametrize(
    ("box", "pixels"),
    [
        ([2, 3, 4, 5], [2, 3, 4, 5]),
        ([2.5, 3.5, 4.5, 5.5], [2, 3, 5, 6]),
        ([-8, -8, 60, 60], [0, 0, 9, 7]),
        ([-8, 2, 0, 4], [0, 2, 0, 4]),
        ([-8, 2, -1, 4], None),
        ([-8, 2, -0.5, 4], [0, 2, 0, 4]),  # ceil(-0.5) is 0
        ([9.9, 2, 12, 4], [9, 2, 9, 4]),
        ([10, 2, 12, 4], None),
        ([2, 7.5, 4, 9], [2, 7, 4, 7]),
        ([2, 8, 4, 9], None),
    ],
)
def test_the_pixels_of_a_box(box: list[float], pixels: list[int] | None) -> None:
    truth = GroundTruth.from_boxes(["cup"], {1: (10, 8)}, [1], [box], [0])
    assert truth.masks.boxes.tolist() == [pixels or [0, 0, -1, -1]]
    assert (truth.masks.pixels[0] == 0) == (pixels is None)
    assert truth.masks.to_array(0, 8, 10).sum() == truth.masks.pixels[0]
    found = pixels_of_boxes(np.array([box], float), np.array([[10, 8]], np.int32))
    assert found.tolist() == truth.masks.boxes.tolist()


def test_extents_are_differences_of_corners_whatever_they_are() -> None:
    boxes = np.array([[1, 2, 4, 8], [0, 0, 0, 0], [0, 0, np.inf, np.nan]], float)
    np.testing.assert_array_equal(extents_of(boxes), [[3, 6], [0, 0], [np.inf, np.nan]])
