"""Numbers of JSON become the nearest double, however they are written: Python's own reader is the judge."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from probox import _core


def assert_nearest(texts: list[str]) -> None:
    """Compare numbers as they stand in a file, in fours, with what `float` makes of them."""
    padded = texts + ["0"] * (-len(texts) % 4)
    rows = [f'{{"label_probs":[],"bbox":[{",".join(padded[at : at + 4])}]}}' for at in range(0, len(padded), 4)]
    data = f'{{"classes":[],"detections":[[{",".join(rows)}]]}}'.encode()
    columns, problems = _core.read_rvc1(data, lenient=False, max_examples=1)
    assert problems == []
    expected = np.array([float(text) for text in padded])
    wrong = np.flatnonzero(columns["boxes"].ravel().view(np.int64) != expected.view(np.int64))
    assert [padded[at] for at in wrong] == []


digits = st.text("0123456789", min_size=1, max_size=25)


@st.composite
def written(draw: st.DrawFn) -> str:
    whole = draw(digits).lstrip("0") or "0"
    fraction = "." + draw(digits) if draw(st.booleans()) else ""
    exponent = draw(st.sampled_from(["", "e", "E", "e+", "e-"]))
    if exponent:
        exponent += str(draw(st.integers(0, 60))).zfill(draw(st.integers(1, 4)))
    return draw(st.sampled_from(["", "-"])) + whole + fraction + exponent


@given(st.lists(written(), max_size=40))
@example(["0", "-0", "0.0", "-0.0e5", "0e999", "1e22", "1e23", "9007199254740993", "9007199254740993.0"])
@example(["0." + "0" * 30 + "1", "1" + "0" * 30, "123456789012345678901234567890", "0.1234567890123456789012"])
def test_any_digits(texts: list[str]) -> None:
    assert_nearest(texts)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=40))
def test_what_python_writes(values: list[float]) -> None:
    assert_nearest([json.dumps(value) for value in values])


@given(st.lists(st.floats(1e-7, 1e7), max_size=20), st.integers(15, 25))
def test_the_middle_of_two_doubles(values: list[float], size: int) -> None:
    """Numbers that lie between two doubles, as near to the middle as so many digits can say."""
    texts = []
    for value in values:
        middle = (Fraction(value) + Fraction(float(np.nextafter(value, np.inf)))) / 2
        exact = Decimal(middle.numerator) / Decimal(middle.denominator)
        texts += [f"{exact:.{size}g}".replace("E", "e"), f"{exact:.{size}f}"]
    assert_nearest(texts)


def test_many_numbers() -> None:
    rng = np.random.default_rng(5)
    mantissas = rng.integers(1, 10**18, 20_000).astype(np.uint64) * rng.integers(1, 10, 20_000).astype(np.uint64)
    exponents = rng.integers(-50, 30, 20_000)
    assert_nearest([f"{mantissa}e{exponent}" for mantissa, exponent in zip(mantissas, exponents, strict=True)])
    halves = (2 * rng.integers(2**52, 2**53, 2_000).astype(np.uint64) + np.uint64(1)).astype(object)
    assert_nearest([f"{half * 5**k}e-{k}" for half in halves for k in (0, 1)])
    assert_nearest([f"{half // 2**k * 5**k}e-{k}" for half in halves for k in (1, 2, 3, 4, 5)])


STARTS = ["", "-", "+", "00", "0", "01", "12", "1234567", "12345678", "."]
ENDS = ["", ".", ".5", ".12345", ".123456", ".1234567", ".12345678", ".5.2", "e", "e5", ".e5", ".5e", ".5e3", ".5E-2"]


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("after", ["", " ", "\n" + " " * 12, "x", "e1"])
def test_short_literals_are_those_of_json(start: str, after: str) -> None:
    """Also at the end of the file, where eight characters cannot be read at once."""
    for end in ENDS:
        text = f'[{{"image_id":7,"category_id":3,"score":0.5,"bbox":[{start}{end}{after},1,1,{start}{end}]}}]'
        try:
            expected = [float(value) for value in json.loads(text)[0]["bbox"]]
        except ValueError:
            expected = None
        columns, problems = _core.read_coco_results(
            text.encode(), image_ids=np.array([7]), category_ids=np.array([3]), lenient=False, max_examples=1,
            max_side=9, max_mask_numbers=9, max_numbers=9,
        )  # fmt: skip
        assert (expected is None) == bool(problems), text
        if expected is not None:
            assert [columns["boxes"][0, 0], columns["extents"][0, 1]] == [expected[0], expected[3]]
