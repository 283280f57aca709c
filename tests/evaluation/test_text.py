"""Results as text: which cells are best, how numbers are written, what a name may hold."""

from __future__ import annotations

import csv
import io

import pytest

from probox import Convention
from probox.evaluation.text import best_cells, format_limits, format_table, format_value, summary_text
from probox.measures.measure import Column
from probox.measures.registry import table_columns


def rows(**columns: list[float]) -> list[tuple[str, dict[str, float]]]:
    count = len(next(iter(columns.values())))
    return [(f"row {n}", {name: values[n] for name, values in columns.items()}) for n in range(count)]


def best(key: str, *values: float) -> list[int]:
    return sorted(number for number, name in best_cells(rows(**{key: list(values)})) if name == key)


def column(key: str) -> Column:
    return next(column for column in table_columns() if column.key == key)


NAN = float("nan")


@pytest.mark.parametrize(
    ("key", "values", "expected"),
    [
        ("PDQ", (0.1, 0.3, 0.2), [1]),
        ("PDQ", (0.3, 0.3, 0.2), [0, 1]),
        ("TP", (5, 7, 6), [1]),
        ("FP", (5, 7, 5), [0, 2]),
        ("FN", (9, 8), [1]),
        ("moLRP", (0.9, 0.8), [1]),
        # Alike as they are shown, in hundredths of a per cent, and so alike; a hundredth apart, and so not.
        ("PDQ", (0.12344, 0.12336), [0, 1]),
        ("PDQ", (0.12344, 0.12346), [1]),
        ("PDQ", (0.1234, 0.1235), [1]),
        ("mAP", (NAN, 0.2, 0.1), [1]),
        ("mAP", (NAN, NAN), []),
        ("PDQ", (0.0, 0.0), [0, 1]),
    ],
)
def test_best_of_a_column(key, values, expected):
    assert best(key, *values) == expected


def test_a_row_alone_is_not_best():
    assert best_cells(rows(PDQ=[0.5])) == set()
    assert "*" not in format_table(rows(PDQ=[0.5]))
    assert "*" in format_table(rows(PDQ=[0.5, 0.5]))


def test_only_columns_that_every_row_has_are_shown():
    table = [("a", {"PDQ": 0.5, "mAP": 0.25}), ("b", {"PDQ": 0.25})]
    assert {name for _, name in best_cells(table)} == {"PDQ"}
    assert "mAP" not in format_table(table)


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("PDQ", 0.123456, "12.35"),
        ("PDQ", 1.0, "100.00"),
        ("PDQ", 0.0, "0.00"),
        ("PDQ", NAN, "-"),
        ("TP", 1234567, "1,234,567"),
        ("FP", 999, "999"),
        ("FN", 0, "0"),
    ],
)
def test_a_number_as_it_is_shown(key, value, text):
    assert format_value(column(key), value) == text


def test_mlrp_is_one_minus_molrp_and_nothing_else_is():
    summary = {"moLRP": 0.75, "mAP": 0.75, "PDQ": 0.75}
    assert [column(key).shown(summary) for key in ("moLRP", "mAP", "PDQ")] == [0.25, 0.75, 0.75]


TABLE = [("first_one", {"PDQ": 0.5, "FP": 1200}), ("b", {"PDQ": 0.25, "FP": 7})]


def test_text_is_aligned_with_room_for_marks():
    assert format_table(TABLE) == (
        "Approach     PDQ      FP\n"
        "first_one  50.00*  1,200\n"
        "b          25.00       7*"
    )  # fmt: skip
    assert format_table([("", {"PDQ": 0.5, "TP": 12})]) == "  PDQ  TP\n50.00  12"


def test_text_without_marks_has_no_room_for_them():
    table = [("a", {"PDQ": NAN}), ("b", {"PDQ": NAN})]
    assert format_table(table, heading="") == "   PDQ\na    -\nb    -"


def test_markdown_and_latex_have_units_and_marks():
    assert format_table(TABLE, "markdown").splitlines() == [
        "| Approach | PDQ (%) | FP |",
        "| --- | ---: | ---: |",
        r"| first\_one | **50.00** | 1,200 |",
        "| b | 25.00 | **7** |",
    ]
    assert format_table(TABLE, "latex").splitlines() == [
        r"\begin{tabular}{@{}lrr@{}}",
        r"\toprule",
        r"Approach & PDQ (\%) & FP \\",
        r"\midrule",
        r"first\_one & \textbf{50.00} & 1,200 \\",
        r"b & 25.00 & \textbf{7} \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
    assert format_table([("", {"PDQ": 0.5})], "markdown") == "| PDQ (%) |\n| ---: |\n| 50.00 |"
    assert "{@{}r@{}}" in format_table([("", {"PDQ": 0.5})], "latex")


def test_csv_has_plain_fractions_and_empty_cells():
    table = [("a, b", {"PDQ": 1 / 3, "TP": 3, "mAP": NAN}), ('"c"', {"PDQ": 0.25, "TP": 4, "mAP": 0.5})]
    read = list(csv.reader(io.StringIO(format_table(table, "csv"))))
    assert read == [["Approach", "mAP", "PDQ", "TP"], ["a, b", "", repr(1 / 3), "3"], ['"c"', "0.5", "0.25", "4"]]


@pytest.mark.parametrize(
    ("style", "name", "written"),
    [
        ("markdown", r"a|b*c_d`e[f]<g>\h", r"a\|b\*c\_d\`e\[f\]\<g\>\\h"),
        ("latex", r"a#b$c%d&e_f{g}", r"a\#b\$c\%d\&e\_f\{g\}"),
        ("latex", "a\\b~c^d", r"a\textbackslash{}b\textasciitilde{}c\textasciicircum{}d"),
        ("text", "a|b*c_d", "a|b*c_d"),
    ],
)
def test_a_name_means_itself(style, name, written):
    assert written in format_table([(name, {"PDQ": 0.5})], style)


def test_the_line_below_says_what_marks_mean():
    convention = Convention.preset("paper")
    assert summary_text(TABLE, convention).endswith("\nqualities in per cent; * best; convention: paper")
    assert summary_text(TABLE[:1], convention).endswith("\nqualities in per cent; convention: paper")


@pytest.mark.parametrize(
    ("unit", "low", "high", "text"),
    [
        ("per cent", 0.0083, 0.0094, "[0.83, 0.94]"),
        ("per cent", 0.008, 0.018, "[0.8, 1.8]"),
        ("per cent", 0.00878, 0.00886, "[0.878, 0.886]"),
        ("per cent", 0.5, 0.5, "[50.00, 50.00]"),
        ("per cent", -1e-9, 1e-9, "[0.0000, 0.0000]"),
        ("plain", 1.2, 1.21, "[1.200, 1.210]"),
        ("plain", 1.2, 1.2023, "[1.2000, 1.2023]"),
        ("plain", 0.00001, 0.00003, "[0.00001, 0.00003]"),
        ("count", 2.2, 3.4, "[2, 3]"),
    ],
)
def test_narrow_intervals_have_more_decimals(unit, low, high, text):
    assert format_limits(Column(key="X", unit=unit), low, high) == text
