"""Results as text: which cells are best, how numbers are written, what a name may hold."""

from __future__ import annotations

import csv
import io

import pytest

from probox import Convention
from probox.evaluation.text import best_cells, format_limits, format_table, format_value, summary_text
from probox.measures.measure import Column
from probox.measures.registry import MEASURES, standard_columns, table_columns


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
        "             [%]\n"
        "first_one  50.00*  1,200\n"
        "b          25.00       7*"
    )  # fmt: skip
    assert format_table([("", {"PDQ": 0.5, "TP": 12})]) == "  PDQ  TP\n  [%]\n50.00  12"


def test_text_without_marks_has_no_room_for_them():
    table = [("a", {"PDQ": NAN}), ("b", {"PDQ": NAN})]
    assert format_table(table, heading="") == "   PDQ\n   [%]\na    -\nb    -"


def test_markdown_and_latex_have_units_and_marks():
    assert format_table(TABLE, "markdown").splitlines() == [
        "| Approach | PDQ [%] | FP |",
        "| --- | ---: | ---: |",
        r"| first\_one | **50.00** | 1,200 |",
        "| b | 25.00 | **7** |",
    ]
    assert format_table(TABLE, "latex").splitlines() == [
        r"\begin{tabular}{@{}lrr@{}}",
        r"\toprule",
        r"Approach & PDQ [\%] & FP \\",
        r"\midrule",
        r"first\_one & \textbf{50.00} & 1,200 \\",
        r"b & 25.00 & \textbf{7} \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
    assert format_table([("", {"PDQ": 0.5})], "markdown") == "| PDQ [%] |\n| ---: |\n| 50.00 |"
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
    assert summary_text(TABLE, convention).endswith("\nlower is better: FP; * best; convention: paper")
    assert summary_text(TABLE[:1], convention).endswith("\nlower is better: FP; convention: paper")
    against = summary_text(TABLE[:1], convention, against="boxes")
    assert against.endswith("; convention: paper; scored against boxes")


@pytest.mark.parametrize(
    ("unit", "low", "high", "text"),
    [
        ("per cent", 0.523, 0.631, "[52.3, 63.1]"),
        ("per cent", 0.1, 0.9, "[10, 90]"),
        ("per cent", 0.0083, 0.0094, "[0.830, 0.940]"),
        ("per cent", 0.008, 0.018, "[0.80, 1.80]"),
        ("per cent", 0.00878, 0.00886, "[0.8780, 0.8860]"),
        ("per cent", 0.5, 0.5, "[50.00, 50.00]"),
        ("per cent", -1e-9, 1e-9, "[0.0000, 0.0000]"),
        ("plain", 1.2, 1.21, "[1.2000, 1.2100]"),
        ("plain", 1200, 3400, "[1,200, 3,400]"),
        ("plain", 0.00001, 0.00003, "[0.00001, 0.00003]"),
        ("count", 2.2, 3.4, "[2, 3]"),
    ],
)
def test_half_an_interval_has_two_significant_digits(unit, low, high, text):
    assert format_limits(Column(key="X", unit=unit), low, high) == text


def test_a_number_has_the_digits_of_its_interval():
    table = [("a", {"PDQ": 0.5757}), ("b", {"PDQ": 0.5764})]
    limits = [{"PDQ": (0.523, 0.631)}, {"PDQ": (0.55, 0.6)}]
    assert format_table(table, limits=limits).splitlines()[2:] == [
        "a                 57.6*",
        "          [52.3, 63.1]",
        "b                 57.6*",  # what looks alike is alike
        "          [55.0, 60.0]",
    ]
    assert "**57.6** [52.3, 63.1]" in format_table(table, "markdown", limits=limits)


METRICS = {"PDQ": 0.5, "FP": 7, "NLL": 9.6157, "energy": 3.756, "NEES": 6.58, "coverage_90": 0.8726, "AUSE": 0.322}


def test_one_row_per_metric_beyond_the_standard_ones():
    table = [("first_one", METRICS), ("b", {**METRICS, "PDQ": 0.25, "NLL": 9.5})]
    assert format_table(table) == (
        "metric       unit   better   first_one       b\n"
        "PDQ          %      higher       50.00*  25.00\n"
        "FP           count  lower            7*      7*\n"
        "NLL          nats   lower        9.616   9.500*\n"
        "energy       px     lower         3.76*   3.76*\n"
        "NEES         -      near 4       6.580   6.580\n"
        "coverage_90  %      near 90      87.26   87.26\n"
        "AUSE         -      lower        0.322*  0.322*"
    )
    assert format_table([("", METRICS)]).splitlines()[0].split() == ["metric", "unit", "better", "value"]
    assert format_table(table, "markdown").splitlines()[:3] == [
        r"| metric | unit | better | first\_one | b |",
        "| --- | --- | --- | ---: | ---: |",
        "| PDQ | % | higher | **50.00** | 25.00 |",
    ]
    assert r"coverage\_90 & \% & near 90 & 87.26 & 87.26 \\" in format_table(table, "latex").splitlines()
    assert format_table(table, "csv").startswith("Approach,PDQ,FP,NLL,energy,NEES,coverage_90,AUSE\n")
    assert "lower is better" not in summary_text(table, Convention())  # the table has the directions


def test_metrics_of_the_standard_table_are_rows_where_columns_do_not_fit():
    standard = {column.key: 0.5 for column in table_columns() if column.key in standard_columns()}
    two = [("one detector", standard), ("another detector", standard)]
    assert format_table(two, width=100).startswith("Approach")
    assert format_table(two, width=80).startswith("metric")
    assert format_table(two, width=80, by_metric=False).startswith("Approach")  # say, classes


def test_rows_are_called_as_the_option_that_asks_for_them():
    for measure in MEASURES:
        plain = str(measure.headline.heading).lower().replace("-", "")
        name = measure.name.removesuffix("-mask")
        assert name.replace("-", "") in plain, measure.name
        assert plain.startswith("mask") == measure.name.endswith("-mask")
