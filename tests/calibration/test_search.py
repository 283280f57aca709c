"""The best place on a lattice."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from probox.calibration.corner_fit import BOUND, lattice_maximum


@given(st.floats(-300, 300), st.integers(-50, 50), st.floats(0.2, 3), st.floats(0.2, 3))
def test_one_top_is_found(top: float, start: int, left: float, right: float) -> None:
    asked: list[int] = []

    def value(k: int) -> float:
        asked.append(k)
        return -left * (top - k) if k < top else -right * (k - top)

    found = lattice_maximum(value, start)
    assert abs(found - top) <= 1
    assert value(found) == max(value(round(top) + step) for step in (-1, 0, 1))
    assert len(asked) <= 40
    assert len(set(asked[:-4])) == len(asked[:-4]), "nothing is measured twice"


def test_a_plain_is_stayed_on_and_a_slope_ends() -> None:
    assert lattice_maximum(lambda k: 1.0, 17) == 17
    climbed: Callable[[int], float] = float
    assert lattice_maximum(climbed, 7) == 7 + BOUND
    assert lattice_maximum(lambda k: -float(k), 7) == 7 - BOUND
