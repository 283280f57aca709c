"""The JSON parser, through the readers that use it."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from probox import InputError, _core
from probox.formats.problems import Problems


def first_problem(data: bytes) -> str:
    """Return the first problem's text of an RVC1 file, or an empty string."""
    _columns, problems = _core.read_rvc1(data, lenient=False, max_examples=1)
    try:
        Problems().add_raw(problems, "")
    except InputError as error:
        return f"{error.entry or ''}: {error.problem}"
    return ""


def with_extra(text: str) -> bytes:
    """Return an RVC1 file with something more in it, which the reader only passes over."""
    return b'{"classes": [], "extra": ' + text.encode("utf-8", "surrogatepass") + b', "detections": []}'


def box_of(texts: list[str]) -> np.ndarray:
    data = f'{{"classes": [], "detections": [[{{"bbox": [{", ".join(texts)}], "label_probs": []}}]]}}'
    columns, problems = _core.read_rvc1(data.encode(), lenient=False, max_examples=1)
    assert not problems, problems
    return columns["boxes"][0]


def accepts(text: str) -> bool:
    """Return whether Python's parser takes the text for JSON, lone surrogates apart."""
    try:
        json.dumps(json.loads(text), ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return False
    return True


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=4, max_size=4))
def test_numbers_are_read_exactly(values: list[float]) -> None:
    assert box_of([repr(value) for value in values]).tolist() == values


digits = st.text("0123456789", min_size=1, max_size=30).map(lambda text: text.lstrip("0") or "0")


@given(digits, st.text("0123456789", max_size=30), st.integers(-330, 300), st.booleans(), st.booleans())
@example("9007199254740993", "", 0, True, False)
@example("179769313486231570", "", 291, True, False)
@example("0", "0000000000000000000000000000001", 0, False, False)
@example("1", "", -324, True, True)
def test_decimals_of_any_length_round_as_python_rounds(
    whole: str, fraction: str, exponent: int, with_exponent: bool, negative: bool
) -> None:
    text = f"{'-' * negative}{whole}{'.' + fraction if fraction else ''}{f'e{exponent}' if with_exponent else ''}"
    if math.isinf(float(text)):
        assert "number below" in first_problem(
            f'{{"classes": [], "detections": [[{{"bbox": [{text},1,1,1], "label_probs": []}}]]}}'.encode()
        )
        return
    read = box_of([text, "0", "0", "0"])[0]
    assert read == float(text)
    assert math.copysign(1, read) == math.copysign(1, float(text))


@pytest.mark.parametrize("text", ["1e999", "-1e999", "1" + "0" * 400, "1e99999999999999999999999", "9" * 5000 + ".5"])
def test_huge_numbers_name_their_entry(text: str) -> None:
    message = first_problem(f'{{"classes":[],"detections":[[],[{{"bbox":[0,0,{text},1],"label_probs":[]}}]]}}'.encode())
    assert message.startswith("detections[1][0].bbox[2]: expected a number below 1.8e308, but got ")
    assert len(message) < 200


@pytest.mark.parametrize("text", ["1e18", "9" * 300, "0." + "3" * 5000, "-1.5", "NaN", "true", '"7"'])
def test_what_is_no_whole_number_is_named(text: str) -> None:
    row = f'{{"masks_file": "a", "mask_id": {text}, "label_probs": []}}'
    message = first_problem(f'{{"classes":[],"detections":[[{row}]]}}'.encode())
    assert message.startswith("detections[0][0].mask_id: expected a whole number")
    assert len(message) < 150


@pytest.mark.parametrize("text", ["1e-999", "-0.0", "0e5", "4.9e-324", "0.0000000000000000000000001e-310"])
def test_tiny_numbers_are_numbers(text: str) -> None:
    assert box_of([text, "0", "0", "0"])[0] == float(text)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(values, st.booleans(), st.sampled_from([None, 2]))
def test_any_json_is_passed_over(value: object, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    problem = first_problem(with_extra(text))
    assert (problem == "") == accepts(text), problem


@given(values, st.integers(0, 200), st.sampled_from(list('[]{}",:\\ \n0-1.eEutfnN\x00\x1fé\ud800')), st.integers(0, 2))
def test_broken_json_is_refused_exactly_where_python_refuses_it(value: object, at: int, what: str, cut: int) -> None:
    text = json.dumps(value)
    at = min(at, len(text))
    broken = text[:at] + what + text[at + cut :]
    # Something like `1, "classes": []` would be fine inside the object: brackets keep the change within the value.
    problem = first_problem(with_extra(f"[{broken}]"))
    whole = f'{{"classes": [], "extra": [{broken}], "detections": []}}'
    assert (problem == "") == accepts(whole) or "duplicate" in problem or "twice" in problem, problem


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"classes": ["a", "detections": []}', "expected ',' or ']', but got ':'"),
        (b'{"classes": ["a"], "detections": [', "the file ends"),
        (b'{"classes": ["a"], "detections": []', "expected ',' or '}', but the file ends"),
        (b'{"classes": ["a"], "detections": []}}', "expected the end of the file, but got '}'"),
        (b'{"classes": ["a",], "detections": []}', "expected a string, but got ']'"),
        (b'{"classes": ["a"], "detections": [],}', "expected a key in double quotes, but got '}'"),
        (b'{"classes": ["a"] "detections": []}', "expected ',' or '}', but got '\"'"),
        (b"{'classes': []}", "expected a key in double quotes, but got '''"),
        (b'{"classes": ["a\n"]}', "expected a closing quote, but got 0x0a"),
        (b'{"classes": ["\xe9t\xe9"]}', "expected UTF-8 text, but got byte 0xe9"),
        (b'{"classes": ["\\ud800"]}', "expected a pair of surrogates"),
        (b'{"classes": ["\\x41"]}', "expected an escape"),
        (b'{"classes": [1]}', "expected a string, but got 1"),
        (b'{"classes": "person"}', 'expected a list, but got the string "person"'),
        (b'{"classes": [], "classes": []}', "this key occurs twice"),
        (b'{"classes": [], "detections": [[{"bbox": [01,0,0,0]}]]}', "expected no digit after a leading 0"),
        (b'{"classes": [], "detections": [[{"bbox": [1.,0,0,0]}]]}', "expected a digit after the decimal point"),
        (b'{"classes": [], "detections": [[{"bbox": [1e,0,0,0]}]]}', "expected a digit in the exponent"),
        (b'{"classes": [], "detections": [[{"bbox": [+1,0,0,0]}]]}', "expected a number, but got '+'"),
        (b'{"classes": [], "detections": [[{"bbox": [nan,0,0,0]}]]}', "expected a number, but got nan"),
        (b'{"classes": [], "detections": [[{"bbox": [1,2,3]}]]}', "expected a list of 4, but got 3"),
        (b'{"classes": [], "detections": [[{"bbox": [1,2,3,4,5]}]]}', "expected a list of 4, but got 5"),
        (b"[" * 100000, "expected an object, but got a list"),
        (b'{"a": ' + b"[" * 100000, "nested more than 128 levels"),
        (b'{"a": ' * 100000, "nested more than 128 levels"),
    ],
)
def test_a_message_says_what_and_where(data: bytes, message: str) -> None:
    assert message in first_problem(data)


def test_a_syntax_error_gives_line_and_column() -> None:
    assert "line 3, column 5: expected" in first_problem(b'{\n "classes": [\n    oops\n]}')


@pytest.mark.parametrize(
    "text", ['"\\u00e9\\ud83d\\ude00\\n\\"\\\\\\/"', '"é😀 plain and longer than eight bytes"', '""']
)
def test_strings_are_decoded(text: str) -> None:
    columns, problems = _core.read_rvc1(
        f'{{"classes": [{text}], "detections": []}}'.encode(), lenient=False, max_examples=1
    )
    assert not problems
    assert columns["classes"] == [json.loads(text)]
