"""Tables as text and CSV: aligned, no line wider than it may be, and every field comes back."""

from __future__ import annotations

import csv
import io

from hypothesis import given
from hypothesis import strategies as st
from tests.amounts import examples

from probox.support.formatting import csv_lines, csv_text, without_formula
from probox.support.text_table import grid

NUMBERS = st.from_regex(r"-?[0-9]{1,4}\.[0-9]{2}", fullmatch=True)
NAMES = st.text("abc -", min_size=1, max_size=40).map(str.strip).filter(bool).map(lambda text: " ".join(text.split()))


@st.composite
def tables(draw: st.DrawFn) -> list[list[str]]:
    columns = draw(st.integers(1, 9))
    header = draw(st.lists(NAMES, min_size=columns, max_size=columns))
    names = draw(st.lists(NAMES, min_size=1, max_size=4))
    rows = [[name, *draw(st.lists(NUMBERS, min_size=columns, max_size=columns))] for name in names]
    return [["", *header], *rows]


def plainly(rows: list[list[str]]) -> str:
    """Return the table without a limit: what a file gets."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


@given(tables())
def test_without_a_width_it_is_one_table(rows: list[list[str]]) -> None:
    text = plainly(rows)
    assert grid(rows) == text
    widest = max(map(len, text.splitlines()))
    assert grid(rows, width=widest) == text
    if len(rows[0]) > 2:  # a single column cannot be broken
        assert grid(rows, width=widest - 1) != text


@given(tables(), st.integers(20, 90))
def test_narrow_tables_hold_all_numbers_in_lines_that_fit(rows: list[list[str]], width: int) -> None:
    """Names and headings have 12 letters a line, however narrow it is."""
    text = grid(rows, width=width)
    assert max(map(len, text.splitlines())) <= max(width, 12 + 2 + 12)
    body = rows[1:]
    blocks = text.split("\n\n")
    found: list[list[str]] = [[] for _ in body]
    for block in blocks:
        # A row of numbers is a line that ends with one; names go on below, and headings are letters.
        lines = [line.split() for line in block.splitlines()]
        numbers = [[cell for cell in line if cell[-1:].isdigit()] for line in lines]
        for row, cells in zip(found, [line for line in numbers if line], strict=True):
            row += cells
    assert found == [row[1:] for row in body]
    for name in (row[0] for row in body if len(row[0]) <= 12):
        assert all(name in block for block in blocks)


def test_names_stand_before_each_block_and_blocks_are_alike() -> None:
    rows = [["", *"PQRST"], ["one", *["1.00"] * 5], ["two", *["2.00"] * 5]]
    assert grid(rows, width=25) == (
        "        P     Q     R\none  1.00  1.00  1.00\ntwo  2.00  2.00  2.00\n\n"
        "        S     T\none  1.00  1.00\ntwo  2.00  2.00"
    )
    assert grid([row[1:] for row in rows], width=17, names=False).startswith("   P     Q     R\n1.00  1.00  1.00\n2.00")


def test_words_go_over_lines_in_their_column() -> None:
    rows = [["", "value", ""], ["NLL", "9.61", "negative log likelihood of the boxes, nats"]]
    assert grid(rows, width=34, words=True) == (
        "     value\nNLL   9.61  negative log\n            likelihood of the\n            boxes, nats"
    )


def test_rows_that_say_nothing_here_are_left_out() -> None:
    rows = [["", "PDQ", "TP"], ["one", "10.25", "1"], ["", "[9, 11]", ""]]
    assert grid(rows, width=12) == "         PDQ\none    10.25\n     [9, 11]\n\n     TP\none   1"


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
