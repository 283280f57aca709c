"""A diagnosis as text and as files: the verdict, then its tables."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from probox.analysis.budget import PARTS
from probox.evaluation.text import format_value
from probox.measures.measure import Column
from probox.measures.registry import all_measures, measures_called
from probox.support.csv_rows import csv_lines
from probox.support.grids import grid

if TYPE_CHECKING:
    from probox.analysis.diagnosis import Diagnosis

__all__ = ["diagnosis_tables", "diagnosis_text"]

MOST_CLASSES = 10
"""Classes that text shows, those with most edges; files have all."""

Rows = list[list[str]]
_INDENT = "  "


def diagnosis_text(diagnosis: Diagnosis, width: int | None = None) -> str:
    """Return the verdict and the tables; those that are wider than `width` letters are broken into blocks."""
    parts = ["\n".join(f"- {text}" for text in diagnosis.verdict)]
    if diagnosis.budget is not None and not math.isnan(diagnosis.budget.pdq):
        parts.append(_titled("Where the points went (per cent of 100)", _budget(diagnosis), width))
    if any(not math.isnan(answer.pdq) for answer in diagnosis.what_if):
        parts.append(_titled("What if", _what_if(diagnosis), width))
    if any(not math.isnan(best.value) for best in diagnosis.best_thresholds):
        title = "Where is the best threshold, chosen on these images, and what does it cost elsewhere?"
        parts.append(_titled(title, _thresholds(diagnosis), width))
    if diagnosis.pairs > diagnosis.plain_pairs:
        parts.append(_titled(f"Are sigmas honest? {_pairs(diagnosis)}", _calibration(diagnosis), width))
        parts.append(_titled("Are sigmas informative? Skill over the best constant sigma", _skill(diagnosis), width))
    parts.append(_titled("Every measure of corners, labels and scores", _numbers(diagnosis), width))
    if diagnosis.remarks:
        parts.append("\n".join(f"note: {text}" for text in diagnosis.remarks))
    return "\n\n".join(parts)


def diagnosis_tables(diagnosis: Diagnosis) -> dict[str, str]:
    """Return the tables as CSV with plain fractions, by the names of their files."""
    tables: dict[str, list[dict[str, object]]] = {
        "calibration.csv": [dataclasses.asdict(row) for row in diagnosis.calibration],
        "what_if.csv": [dataclasses.asdict(answer) for answer in diagnosis.what_if],
        "skill.csv": [
            {
                "rule": rule, "skill": skill.skill.value, "low": skill.skill.low, "high": skill.skill.high,
                "own": skill.own, "constant": skill.constant, "share_of_side": skill.share, "pairs": skill.pairs,
                "deterministic": skill.deterministic, "gain_fraction": skill.gain_fraction,
                "remaining_fraction": skill.remaining_fraction,
            }
            for rule, skill in diagnosis.skill.items()
        ],
        "numbers.csv": [{"number": key, "value": value} for key, value in diagnosis.numbers.items()],
    }  # fmt: skip
    if diagnosis.budget is not None:
        tables["budget.csv"] = [{"part": part, "share": value} for part, value in diagnosis.budget.to_dict().items()]
    return {name: _csv(rows) for name, rows in tables.items()}


def _csv(rows: Sequence[dict[str, object]]) -> str:
    return "".join(csv_lines([list(rows[0]), *(list(row.values()) for row in rows)])) if rows else ""


def _pairs(diagnosis: Diagnosis) -> str:
    judged = diagnosis.pairs - diagnosis.plain_pairs
    cut = "an overlap of half cuts off larger errors"
    return f"({judged:,} pairs by {diagnosis.pairing}; error/std: 68% quantile of |z|; {cut})"


def _budget(diagnosis: Diagnosis) -> Rows:
    budget = diagnosis.budget
    assert budget is not None
    rows = [["", "points", "of what is lost"], ["PDQ", f"{100 * budget.pdq:.2f}", ""]]
    for part, words in PARTS.items():
        share = getattr(budget, part)
        if part != "rounding" or abs(share) >= 5e-5:
            of_lost = f"{100 * share / budget.lost:.0f} %" if budget.lost else "-"
            rows.append([words, f"{100 * share:.2f}", of_lost])
    return rows


def _what_if(diagnosis: Diagnosis) -> Rows:
    rows = [["", "PDQ", "gain"]]
    known = [answer for answer in diagnosis.what_if if not math.isnan(answer.pdq)]
    return rows + [[a.words, f"{100 * a.pdq:.2f}", f"{100 * a.gain + 0.0:+.2f}"] for a in known]


def _thresholds(diagnosis: Diagnosis) -> Rows:
    """Return a row per measure: where it is best, its own number now and there, then those of standard measures."""
    others = [measure.headline for measure in all_measures() if measure.standard]
    others = [c for c in others if all(c.key in b.summary for b in diagnosis.best_thresholds)]
    rows = [["best for", "labels above", "now -> there", *(column.heading or column.key for column in others)]]
    for best in diagnosis.best_thresholds:
        own = measures_called([best.measure])[0].headline
        changes = [_change(column, best.summary_now, best.summary) for column in others]
        above = "none is better" if best.threshold is None else f"{best.threshold:.4g}"
        above = "no number" if math.isnan(best.value) else above
        value = _change(own, {own.key: best.now}, {own.key: best.value})
        rows.append([own.heading or own.key, above, value, *changes])
    return rows


def _change(column: Column, now: Mapping[str, float], there: Mapping[str, float]) -> str:
    return f"{format_value(column, column.shown(now))} -> {format_value(column, column.shown(there))}"


def _calibration(diagnosis: Diagnosis) -> Rows:
    rows = [["", "edges", "error/std", "RMS z", "bias px", "RMSE px", "sigma px", "in 68 %", "in 90 %", "CRPS px"]]
    classes = sorted((row for row in diagnosis.calibration if row.group == "class"), key=lambda row: -row.edges)
    shown = [row for row in diagnosis.calibration if row.group != "class"] + classes[:MOST_CLASSES]
    for row in shown:
        numbers = [
            f"{row.factor:.2f}", f"{row.rms_z:.2f}", f"{row.bias:+.2f}", f"{row.rmse:.2f}", f"{row.sharpness:.2f}",
            f"{100 * row.coverage_68:.1f}", f"{100 * row.coverage_90:.1f}", f"{row.crps:.2f}",
        ]  # fmt: skip
        rows.append([row.name, f"{row.edges:,}", *(numbers if row.edges else ["-"] * 8)])
    if len(classes) > MOST_CLASSES:
        rows.append([f"and {len(classes) - MOST_CLASSES} more classes", *[""] * 9])
    return rows


def _skill(diagnosis: Diagnosis) -> Rows:
    rows = [["", "own", "constant", "skill", "95 % interval", "best constant"]]
    for rule, skill in diagnosis.skill.items():
        per = 1.0 if rule == "nll" else 100.0
        unit = {"nll": "nats", "pdq": "points"}.get(rule, "%")
        scale = 100.0 if rule == "pdq" else 1.0
        if math.isnan(skill.skill.value):
            rows.append([_rule_words(rule), *["-"] * 5])
            continue
        low, high = per * skill.skill.low, per * skill.skill.high
        rows.append(
            [
                _rule_words(rule), f"{scale * skill.own:.3f}", f"{scale * skill.constant:.3f}",
                f"{per * skill.skill.value:+.2f} {unit}",
                "-" if math.isnan(low) else f"{low:+.2f} to {high:+.2f}",
                f"{skill.share:.1f} px" if rule == "energy_pixels" else f"{100 * skill.share:.1f} %",
            ]
        )  # fmt: skip
    return rows


def _rule_words(rule: str) -> str:
    return {
        "nll": "NLL",
        "energy": "energy score",
        "energy_pixels": "energy score (pixels)",
        "crps": "CRPS",
        "pdq": "PDQ",
    }[rule]


def _numbers(diagnosis: Diagnosis) -> Rows:
    from probox.analysis.diagnosis import NUMBERS

    rows = [["", "value", ""]]
    for name in NUMBERS.values():
        column = measures_called([name])[0].headline
        value = diagnosis.numbers.get(column.key, math.nan)
        shown = f"{format_value(column, value)} {'' if math.isnan(value) else column.shown_unit}".rstrip()
        rows.append([column.key, shown, column.hint])
    return rows


def _titled(title: str, rows: Rows, width: int | None) -> str:
    words = len(rows[0]) == 3 and rows[0][-1] == ""  # a last column of words
    table = grid(rows, width=None if width is None else width - len(_INDENT), words=words)
    return "\n".join([title, *(_INDENT + line if line else "" for line in table.split("\n"))])
