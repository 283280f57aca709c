"""Sums without rounding."""

from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from probox.evaluation.kept import exact_sum

FLOATS = st.lists(st.floats(-1e300, 1e300, allow_subnormal=True), max_size=40)


@given(FLOATS)
def test_nothing_is_rounded(values: list[float]) -> None:
    total = exact_sum(values)
    assert sum(map(Fraction, total), Fraction(0)) == sum(map(Fraction, values), Fraction(0))
    assert (total[0] if total else 0.0) == math.fsum(total) == math.fsum(values)


@given(FLOATS, st.integers(0, 40), st.randoms())
def test_parts_in_any_order_add_up_to_the_whole(values: list[float], cut: int, random: object) -> None:
    mixed = values.copy()
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert exact_sum([*exact_sum(mixed[:cut]), *exact_sum(mixed[cut:])]) == exact_sum(values)


def test_many_numbers_take_few_floats() -> None:
    assert len(exact_sum([0.1 * number for number in range(300_000)])) <= 3
