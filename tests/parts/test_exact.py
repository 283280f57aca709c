"""Sums without rounding."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probox.parts.exact import exact_sum, exact_sums, from_text, to_float, to_text

FLOATS = st.lists(st.floats(0, 1e300, allow_subnormal=True), max_size=40)


@given(FLOATS)
def test_the_float_nearest_to_a_sum_is_that_of_fsum(values: list[float]) -> None:
    assert to_float(exact_sum(values)) == math.fsum(values)
    assert Fraction(exact_sum(values), 2**1126) == sum(map(Fraction, values), Fraction(0))


@given(FLOATS, st.integers(0, 40))
def test_parts_add_up_to_the_whole(values: list[float], cut: int) -> None:
    assert exact_sum(values[:cut]) + exact_sum(values[cut:]) == exact_sum(values)


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(-1, 3)), max_size=60))
def test_groups_have_their_own_sums(pairs: list[tuple[float, int]]) -> None:
    values, groups = np.array([value for value, _ in pairs]), np.array([group for _, group in pairs], np.int64)
    assert exact_sums(values, groups, 4) == [exact_sum(values[groups == group]) for group in range(4)]


def test_many_numbers_of_one_exponent_do_not_overflow() -> None:
    values = np.full(300_000, np.nextafter(2.0, 0.0))
    assert exact_sum(values) == 300_000 * exact_sum([np.nextafter(2.0, 0.0)])


@given(FLOATS)
def test_a_text_says_all_of_it(values: list[float]) -> None:
    total = exact_sum(values)
    assert from_text(to_text(total)) == total


@pytest.mark.parametrize(
    "text", ["", "p", "1", "1p", "-1p3", "2p0", "1p-3", "1p99999", "1p3 ", "xp1", "0x1p3", "1P3", "1p2150"]
)
def test_other_texts_are_no_sums(text: str) -> None:
    with pytest.raises(ValueError, match=r"no sum|invalid literal"):
        from_text(text)
