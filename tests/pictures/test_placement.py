"""Labels never collide badly, whatever is to be labelled."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from probox.pictures.labelling import place_labels


@given(st.integers(0, 2**32 - 1))
def test_labels_stay_in_bounds_and_off_each_other(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, 40))
    bounds = (float(rng.uniform(20, 400)), float(rng.uniform(20, 400)))
    corners = rng.uniform(-20, 1, (n, 2)) + rng.uniform(0, 1, (n, 2)) * bounds
    boxes = np.concatenate([corners, corners + rng.uniform(0, 100, (n, 2))], axis=1)
    sizes = [[tuple(rng.uniform(5, 120, 2)), tuple(rng.uniform(3, 30, 2))] for _ in range(n)]
    places = place_labels(boxes, sizes, bounds, rng.random((16, 16)) < 0.3)
    assert len(places) == n
    drawn = []
    for place, variants in zip(places, sizes, strict=True):
        if place is None:
            continue
        width, height = variants[place.variant]
        assert place.left >= 0
        assert place.left + width <= bounds[0] + 1e-6
        assert place.top >= 0
        assert place.top + height <= bounds[1] + 1e-6
        for left, top, w, h in drawn:
            across = min(place.left + width, left + w) - max(place.left, left)
            down = min(place.top + height, top + h) - max(place.top, top)
            assert max(across, 0) * max(down, 0) <= 0.01 * width * height + 1e-6
        drawn.append((place.left, place.top, width, height))


def test_a_shorter_label_must_win_something() -> None:
    label, everywhere = [(60.0, 20.0), (30.0, 10.0)], np.ones((200, 200), bool)
    (place,) = place_labels([[80, 80, 120, 120]], [label], (200, 200), everywhere)
    assert place is not None
    assert place.variant == 0  # both cover things to see alike
    free_above = everywhere.copy()
    free_above[68:80] = False
    (place,) = place_labels([[80, 80, 120, 120]], [[(150.0, 40.0), (30.0, 10.0)]], (200, 200), free_above)
    assert place is not None
    assert place.variant == 1


def test_a_lonely_label_stands_above_its_box() -> None:
    (place,) = place_labels([[50, 50, 90, 90]], [[(30, 10), (20, 8)]], (200, 200))
    assert place is not None
    assert (place.variant, place.left, place.top) == (0, 50, 40)


def test_a_label_shrinks_where_the_long_form_has_no_room() -> None:
    (place,) = place_labels([[5, 5, 20, 20]], [[(300, 10), (25, 8)]], (40, 40))
    assert place is not None
    assert place.variant == 1


def test_labels_drop_out_when_the_picture_is_full() -> None:
    boxes = np.tile([[10.0, 10.0, 90.0, 90.0]], (200, 1))
    places = place_labels(boxes, [[(30, 10), (12, 6)]] * 200, (100, 100))
    assert sum(place is not None for place in places) < 40


def test_a_label_keeps_off_what_there_is_to_see() -> None:
    busy = np.zeros((100, 100), bool)
    busy[:50] = True  # everything above the box's middle
    (place,) = place_labels([[20, 40, 60, 60]], [[(30, 10)]], (100, 100), busy)
    assert place is not None
    assert place.top >= 50
