"""CSV: whatever a field holds, a reader gets it back."""

from __future__ import annotations

import csv
import io

from hypothesis import given
from hypothesis import strategies as st
from tests.amounts import examples

from probox.support.csv_rows import csv_lines, csv_text, without_formula

FIELDS = st.one_of(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), st.integers())


@given(st.lists(st.lists(FIELDS | st.floats(allow_nan=False), min_size=2, max_size=2), max_size=4))
@examples(40)
def test_every_field_comes_back(rows: list[list[object]]) -> None:
    read = list(csv.reader(io.StringIO("".join(csv_lines(rows)), newline="")))
    assert read == [
        [without_formula(field) if isinstance(field, str) else repr(field) for field in row] for row in rows
    ]
    for row, fields in zip(rows, read, strict=True):
        assert all(float(text) == field for text, field in zip(fields, row, strict=True) if isinstance(field, float))


def test_breaks_of_lines_stay_in_their_field() -> None:
    assert csv_text([["a\rb", "c\nd", 'e"f', "g,h"]]) == '"a\rb","c\nd","e""f","g,h"'


def test_text_that_a_spreadsheet_would_run_gets_an_apostrophe() -> None:
    evil = ["=HYPERLINK(1)", "+1+2", "-2+3", "@SUM(A1)", "\t=1", "\r=1"]
    assert next(csv.reader(io.StringIO(csv_text([evil]), newline=""))) == [f"'{text}" for text in evil]
    assert csv_text([[-0.5, -3, "-0.5", "+1e-3", "-inf", "a=b", "'", ""]]) == "-0.5,-3,-0.5,+1e-3,-inf,a=b,',"


def test_what_is_missing_is_an_empty_field() -> None:
    assert csv_text([[None, float("nan"), 0, 0.0, ""]]) == ",,0,0.0,"


def test_halves_of_characters_are_escaped() -> None:
    assert csv_text([["cup\ud800"]]).encode() == b"cup\\ud800"
