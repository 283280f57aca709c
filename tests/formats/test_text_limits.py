"""JSON at its limits: every boundary of UTF-8, of surrogates and of whole numbers, as Python has them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.readers import read_coco

from probox import InputError, _core

from .conftest import TRUTH
from .test_json import box_of, first_problem


def class_name(content: bytes) -> str | None:
    """Return a class name as the reader has it, or None if it refuses the file."""
    columns, problems = _core.read_rvc1(
        b'{"classes": ["' + content + b'"], "detections": []}', lenient=False, max_examples=1
    )
    return None if problems else columns["classes"][0]


def by_python(content: bytes) -> str | None:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return None


EDGES = [0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF]
LEADS = [0x80, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF]


@pytest.mark.parametrize("lead", LEADS, ids=hex)
@pytest.mark.parametrize("pad", [b"", b"plain text before "], ids=["alone", "after eight bytes"])
def test_utf8_is_accepted_exactly_where_python_accepts_it(lead: int, pad: bytes) -> None:
    tails = [b"", *(bytes([a]) for a in EDGES), *(bytes([a, b]) for a in EDGES for b in EDGES)]
    tails += [bytes([a, b, c]) for a in EDGES for b in (0x80, 0xBF, 0x7F, 0xC0) for c in (0x80, 0xBF, 0x7F, 0xC0)]
    for tail in tails:
        content = pad + bytes([lead]) + tail
        assert class_name(content) == by_python(content), content


@pytest.mark.parametrize(
    "escapes",
    [
        r"\u0000", r"\u007f", r"\u0080", r"\u07ff", r"\u0800", r"\ud7ff", r"\ue000", r"\uffff", r"\ud800\udc00",
        r"\ud800\udfff", r"\udbff\udc00", r"\udbff\udfff", r"\uD83D\uDE00", r"a\ud83d\ude00b\u00E9",
    ],
)  # fmt: skip
def test_escapes_are_decoded_at_every_boundary(escapes: str) -> None:
    assert class_name(escapes.encode()) == json.loads(f'"{escapes}"')


@pytest.mark.parametrize(
    "escapes",
    [
        r"\ud800", r"\udbff", r"\udc00", r"\udfff", r"\udc00\ud800", r"\ud800\ud800", r"\ud800\udbff", r"\ud800\ue000",
        r"\ud800\u0041", r"\ud800A", r"\ud800\n", r"\ud800\\udc00",
    ],
)  # fmt: skip
def test_half_a_surrogate_pair_is_refused(escapes: str) -> None:
    assert "expected a pair of surrogates" in first_problem(f'{{"classes": ["{escapes}"], "detections": []}}'.encode())


@pytest.mark.parametrize("escapes", [r"\u12", r"\u123g", r"\u123G", r"\u12 4", r"\u/000", r"\u:000", r"\u@000"])
def test_four_hexadecimal_digits_are_four(escapes: str) -> None:
    assert "hexadecimal" in first_problem(f'{{"classes": ["{escapes}"], "detections": []}}'.encode())


MOST = 2**53


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (str(MOST - 1), MOST - 1),
        (str(MOST), MOST),
        (str(MOST + 1), MOST + 1),  # digits alone are read exactly, beyond what a double can hold
        ("999999999999999999", 10**18 - 1),
        ("-999999999999999999", 1 - 10**18),
        (str(2**63 - 1), 2**63 - 1),
        (str(1 - 2**63), 1 - 2**63),
        (f"{MOST}.0", MOST),
        (f"-{MOST}.0", -MOST),
        (f"{MOST - 1}.0", MOST - 1),
        ("9e15", 9 * 10**15),
        ("0", 0),
        ("-0", 0),
        ("12.0", 12),
        ("1.2e1", 12),
        ("120e-1", 12),
    ],
)
def test_whole_numbers_are_read_exactly(write: Callable[..., Path], text: str, value: int) -> None:
    image = {"id": "ID", "width": 30, "height": 20}
    content = json.dumps({**TRUTH, "images": [image], "annotations": []}).replace('"ID"', text)
    assert read_coco(write(content.encode())).image_ids.tolist() == [value]


@pytest.mark.parametrize(
    "text", [f"{MOST + 2}.0", f"-{MOST + 2}.0", "1e16", "1e18", "9223372036854775808", "-9223372036854775808", "0.5"]
)
def test_what_a_double_cannot_count_is_no_whole_number(write: Callable[..., Path], text: str) -> None:
    image = {"id": "ID", "width": 30, "height": 20}
    content = json.dumps({**TRUTH, "images": [image], "annotations": []}).replace('"ID"', text)
    with pytest.raises(InputError, match=r"images\[0\]\.id: expected a whole number"):
        read_coco(write(content.encode()))


NUMBERS = [
    str(MOST - 1), str(MOST), str(MOST + 1), str(MOST + 3), "9007199254740993e-1", "900719925474099.3",
    "90071992547409.93", "123456789012345678", "1234567890123456789", "12345678901234567890", "0.123456789012345678",
    "0.1234567890123456789", "1e22", "1e23", "9007199254740991e22", "9007199254740991e23", "9007199254740993e22",
    "1e-22", "1e-23", "3e-22", "3e-23", "9007199254740992e-22", "9007199254740993e-22", "0.3", "-0.3", "-0", "7e0",
    "1.7976931348623157e308", "4.9406564584124654e-324", "2.4703282292062327e-324", "2.4703282292062328e-324",
]  # fmt: skip


@pytest.mark.parametrize("text", NUMBERS)
def test_a_number_is_the_nearest_double(text: str) -> None:
    assert repr(float(box_of([text, "0", "0", "0"])[0])) == repr(float(text))
