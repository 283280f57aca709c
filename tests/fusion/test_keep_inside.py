"""Corners at the image border: the rule of `pin` written out coordinate by coordinate, and who follows it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.amounts import examples

from probox.errors import InputError
from probox.fusion import from_edge_distributions, fuse_candidates, fuse_samples, keep_inside


def by_the_rule(box, covariance, size, sigmas, margin):
    """Return a box and the covariances of its corners by the rule, in plain Python."""
    last = [size[0] - 1, size[1] - 1]
    corners = [[0.0, 0.0], [0.0, 0.0]]
    ratio = [[0.0, 0.0], [0.0, 0.0]]
    for axis in (0, 1):
        low = min(max(box[axis], margin), max(last[axis] - margin, margin))
        high = max(min(box[2 + axis], last[axis] - margin), low)
        corners[0][axis], corners[1][axis] = low, high
        for corner, away in ((0, low), (1, max(last[axis] - high, margin))):
            std = math.sqrt(covariance[corner][axis][axis])
            ratio[corner][axis] = 1.0 if std == 0 else min(1.0, away / (sigmas * std))
    limited = [
        [[covariance[c][i][j] * ratio[c][i] * ratio[c][j] for j in (0, 1)] for i in (0, 1)] for c in (0, 1)
    ]  # fmt: skip
    return [*corners[0], *corners[1]], limited


def test_an_example_by_hand() -> None:
    """An image of 101 x 51: the last pixel is (100, 50). Two sigmas and half a pixel are what nobody has to say."""
    boxes = np.array([[10.0, -4.0, 104.0, 42.0]])
    covariances = np.array([[[[4.0, 3.0], [3.0, 36.0]], [[64.0, 8.0], [8.0, 25.0]]]])
    moved, limited = keep_inside(boxes, covariances, (101, 51))
    assert moved.tolist() == [[10.0, 0.5, 99.5, 42.0]]
    # Top left: 10 from the left with sigma 2, as it was; 0.5 from the top with sigma 6, which becomes 0.25.
    np.testing.assert_allclose(limited[0, 0], [[4.0, 3.0 * 0.25 / 6], [3.0 * 0.25 / 6, 0.0625]], rtol=1e-15)
    # Bottom right: 0.5 from the right with sigma 8, which becomes 0.25; 8 from the bottom with sigma 5, now 4.
    xy = 8.0 * (0.25 / 8) * (4 / 5)
    np.testing.assert_allclose(limited[0, 1], [[0.0625, xy], [xy, 16.0]], rtol=1e-15)
    assert boxes.tolist() == [[10.0, -4.0, 104.0, 42.0]]  # new ones were made


def test_what_lies_well_inside_stays_to_the_bit() -> None:
    boxes = np.array([[30.25, 31.5, 60.1, 70.7]])
    covariances = np.array([[[[9.0, 1.3], [1.3, 4.7]], [[2.1, -0.3], [-0.3, 7.7]]]])
    moved, limited = keep_inside(boxes, covariances, (100, 100))
    assert moved.tobytes() == boxes.tobytes()
    assert limited.tobytes() == covariances.tobytes()


@given(data=st.data(), count=st.integers(0, 4), own_sizes=st.booleans())
@examples(100)
def test_the_rule(data: st.DataObject, count: int, own_sizes: bool) -> None:
    """Of boxes anywhere, in images down to a single pixel, of one size or each of its own."""
    number = st.floats(-30, 130)
    sizes = [(data.draw(st.integers(1, 100)), data.draw(st.integers(1, 100))) for _ in range(count or 1)]
    sigmas, margin = data.draw(st.floats(0.5, 4)), data.draw(st.floats(0.1, 3))
    boxes = np.array([[data.draw(number) for _ in range(4)] for _ in range(count)]).reshape(-1, 4)
    roots = np.array([data.draw(st.floats(-6, 6)) for _ in range(8 * count)]).reshape(-1, 2, 2, 2)
    covariances = roots @ np.swapaxes(roots, -1, -2)
    given_size = np.array(sizes, float) if own_sizes and count else sizes[0]
    moved, limited = keep_inside(boxes, covariances, given_size, sigmas=sigmas, margin=margin)
    assert (moved.shape, limited.shape) == ((count, 4), (count, 2, 2, 2))
    for row in range(count):
        size = sizes[row] if own_sizes else sizes[0]
        box, covariance = by_the_rule(boxes[row].tolist(), covariances[row].tolist(), size, sigmas, margin)
        np.testing.assert_allclose(moved[row], box, rtol=1e-15)
        np.testing.assert_allclose(limited[row], covariance, rtol=1e-12, atol=1e-300)


BOX = [-4.0, 20.0, 60.0, 80.0]
PROBS = [[0.9]]


@pytest.mark.parametrize(
    "fuse",
    [
        lambda **options: fuse_samples([[BOX]], [PROBS], classes=["cup"], **options),
        lambda **options: fuse_candidates([BOX], PROBS, classes=["cup"], **options),
        lambda **options: from_edge_distributions(
            [[[0.5, 0.5, 0.0]] * 4], [[4.0, 40.0]], 16.0, PROBS, classes=["cup"], **options
        ),
    ],
    ids=["samples", "candidates", "edges"],
)
def test_fusion_pins_on_request_only(fuse) -> None:
    free = fuse()
    assert free.boxes[0, 0] == -4.0
    clipped = fuse(image_size=(100, 100))
    assert clipped.boxes[0, 0] == 0.0
    assert (clipped.covariances == free.covariances).all()
    pinned = fuse(image_size=(100, 100), border="pin")
    boxes, covariances = keep_inside(free.boxes, free.covariances, (100, 100))
    assert (pinned.boxes == boxes).all()
    assert (pinned.covariances == covariances).all()
    with pytest.raises(InputError, match="needs the size of the image"):
        fuse(border="pin")
    with pytest.raises(InputError, match="expected border to be one of keep, pin, but got 'inside'"):
        fuse(image_size=(100, 100), border="inside")
