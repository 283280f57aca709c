"""Summary sentences, text tables and CSV files of a diagnosis."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from probox.analysis.calibration_table import OUTLIER, TOLERANCE, ErrorFactor, find_shifted_edges
from probox.analysis.loss_breakdown import PARTS, Budget
from probox.analysis.resampling import Interval
from probox.errors import Spelling, python_keyword
from probox.evaluation.text import format_value
from probox.measures.matched import FEW_PAIRS
from probox.measures.measure import Column
from probox.measures.registry import all_measures, measures_called
from probox.support.formatting import csv_lines, format_list
from probox.support.text_table import grid

if TYPE_CHECKING:
    from probox.analysis.diagnosis import Diagnosis

MOST_CLASSES = 10
"""Maximum number of classes in text tables, those with most edges; CSV files have all."""

Rows = list[list[str]]

_INDENT = "  "


def diagnosis_text(diagnosis: Diagnosis, width: int | None = None, spell: Spelling = python_keyword) -> str:
    """Return the summary and the tables; tables wider than `width` characters are broken into blocks.

    `spell` writes options in notes: as keywords of Python, or as options of the command line.
    """
    tables: list[tuple[str, Rows]] = []
    if diagnosis.budget is not None and not math.isnan(diagnosis.budget.pdq):
        tables.append(("Loss breakdown", _tabulate_losses(diagnosis.budget)))
    if any(not math.isnan(answer.pdq) for answer in diagnosis.what_if):
        tables.append(("What-if analysis", _tabulate_what_if(diagnosis)))
    if any(not math.isnan(best.value) for best in diagnosis.best_thresholds):
        title = "Best label thresholds, chosen on these images"
        tables.append((title, _tabulate_thresholds(diagnosis)))
    judged = diagnosis.pairs - diagnosis.plain_pairs
    if judged > 0:
        of = f"{judged:,} pairs by {diagnosis.pairing}; error/std: 68% quantile of |z|, 1 if calibrated"
        tables.append((f"Calibration of standard deviations ({of})", _tabulate_calibration(diagnosis)))
        tables.append(("Skill over the best constant std (above 0: informative)", _tabulate_skill(diagnosis)))
    tables.append(("Uncertainty metrics", _tabulate_numbers(diagnosis)))
    parts = ["\n".join(f"- {text}" for text in diagnosis.verdict)]
    parts += [_add_title(title, rows, width) for title, rows in tables]
    if diagnosis.notes:
        parts.append("\n".join(note.with_label(spell) for note in diagnosis.notes))
    return "\n\n".join(parts)


def diagnosis_tables(diagnosis: Diagnosis) -> dict[str, str]:
    """Return the tables as CSV by file name; values are fractions, not percentages."""
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
    return {
        name: "".join(csv_lines([list(rows[0]), *(list(row.values()) for row in rows)])) if rows else ""
        for name, rows in tables.items()
    }


def _tabulate_losses(budget: Budget) -> Rows:
    rows = [["", "points of 100", "of the loss"], ["PDQ", f"{100 * budget.pdq:.2f}", ""]]
    for part, words in PARTS.items():
        share = getattr(budget, part)
        if part != "rounding" or abs(share) >= 5e-5:
            of_lost = f"{100 * share / budget.lost:.0f}%" if budget.lost else "-"
            rows.append([words, f"{100 * share:.2f}", of_lost])
    return rows


def _tabulate_what_if(diagnosis: Diagnosis) -> Rows:
    rows = [["", "PDQ [%]", "gain [points]"]]
    known = [answer for answer in diagnosis.what_if if not math.isnan(answer.pdq)]
    return rows + [[a.words, f"{100 * a.pdq:.2f}", f"{100 * a.gain + 0.0:+.2f}"] for a in known]


def _tabulate_thresholds(diagnosis: Diagnosis) -> Rows:
    """Return a row per metric: its best threshold, its values now and there, then those of the standard metrics."""
    others = [measure.headline for measure in all_measures() if measure.standard]
    others = [c for c in others if all(c.key in b.summary for b in diagnosis.best_thresholds)]
    rows = [["metric", "label threshold", "now -> then", *(column.heading or column.key for column in others)]]
    for best in diagnosis.best_thresholds:
        own = measures_called([best.measure])[0].headline
        changes = [_change(column, best.summary_now, best.summary) for column in others]
        above = "none better" if best.threshold is None else f"{best.threshold:.4g}"
        above = "undefined" if math.isnan(best.value) else above
        value = _change(own, {own.key: best.now}, {own.key: best.value})
        rows.append([own.heading or own.key, above, value, *changes])
    return rows


def _change(column: Column, now: Mapping[str, float], there: Mapping[str, float]) -> str:
    return f"{format_value(column, column.shown(now))} -> {format_value(column, column.shown(there))}"


def _tabulate_calibration(diagnosis: Diagnosis) -> Rows:
    rows = [["", "edges", "error/std", "RMS z", "bias [px]", "RMSE [px]", "std [px]", "in 68%", "in 90%", "CRPS [px]"]]
    classes = sorted((row for row in diagnosis.calibration if row.group == "class"), key=lambda row: -row.edges)
    shown = [row for row in diagnosis.calibration if row.group != "class"] + classes[:MOST_CLASSES]
    for row in shown:
        numbers = [
            f"{row.factor:.2f}", f"{row.rms_z:.2f}", f"{row.bias:+.2f}", f"{row.rmse:.2f}", f"{row.sharpness:.2f}",
            f"{100 * row.coverage_68:.1f}%", f"{100 * row.coverage_90:.1f}%", f"{row.crps:.2f}",
        ]  # fmt: skip
        rows.append([row.name, f"{row.edges:,}", *(numbers if row.edges else ["-"] * 8)])
    if len(classes) > MOST_CLASSES:
        rows.append([f"and {len(classes) - MOST_CLASSES} more classes", *[""] * 9])
    return rows


_RULES = {
    "nll": "NLL",
    "energy": "energy score",
    "energy_pixels": "energy score (pixels)",
    "crps": "CRPS",
    "pdq": "PDQ",
}


def _tabulate_skill(diagnosis: Diagnosis) -> Rows:
    rows = [["", "own", "constant", "skill", "95% CI", "best constant"]]
    for rule, skill in diagnosis.skill.items():
        if math.isnan(skill.skill.value):
            rows.append([_RULES[rule], *["-"] * 5])
            continue
        per, unit = {"nll": (1.0, "nats"), "pdq": (100.0, "points")}.get(rule, (100.0, "%"))
        scale = 100.0 if rule == "pdq" else 1.0
        low, high = per * skill.skill.low, per * skill.skill.high
        rows.append(
            [
                _RULES[rule], f"{scale * skill.own:.3f}", f"{scale * skill.constant:.3f}",
                f"{per * skill.skill.value:+.2f} {unit}",
                "-" if math.isnan(low) else f"{low:+.2f} to {high:+.2f}",
                f"{skill.share:.1f} px" if rule == "energy_pixels" else f"{100 * skill.share:.1f}%",
            ]
        )  # fmt: skip
    return rows


def _tabulate_numbers(diagnosis: Diagnosis) -> Rows:
    from probox.analysis.diagnosis import NUMBERS

    rows = [["", "value", ""]]
    for name in NUMBERS.values():
        column = measures_called([name])[0].headline
        value = diagnosis.numbers.get(column.key, math.nan)
        shown = f"{format_value(column, value)} {'' if math.isnan(value) else column.shown_unit}".rstrip()
        rows.append([column.key, shown, column.hint])
    return rows


def _add_title(title: str, rows: Rows, width: int | None) -> str:
    words = len(rows[0]) == 3 and rows[0][-1] == ""  # a last column of words
    table = grid(rows, width=None if width is None else width - len(_INDENT), words=words)
    return "\n".join([title, *(_INDENT + line if line else "" for line in table.split("\n"))])


WIDE = 1.25
"""A confidence interval that contains 1 and extends beyond this factor, or below its inverse, is inconclusive."""


def summarize(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Return the summary: calibration, outliers, bias, constant-variance baseline, loss breakdown, best threshold."""
    sentences = [
        _describe_calibration(diagnosis),
        _describe_outliers(diagnosis.error_factor),
        _describe_shift(diagnosis),
        _describe_baseline(diagnosis),
        _describe_energy(diagnosis),
        _describe_losses(diagnosis),
        _describe_threshold(diagnosis),
    ]
    return tuple(text for text in sentences if text)


def _describe_calibration(diagnosis: Diagnosis) -> str:
    errors = diagnosis.error_factor
    if not diagnosis.pairs:
        return "No matched boxes: no detection reaches IoU 0.5 with an object of its class"
    if diagnosis.pairs == diagnosis.plain_pairs:
        return f"No covariances: none of {diagnosis.pairs:,} matched boxes has a predicted std"
    if not errors.edges:
        return "Calibration undefined: every edge with a predicted std lies on the image border"
    if errors.rms_z == 0.0:
        return "Calibration undefined: boxes equal the ground truth"
    text = _describe_factor(errors.factor)
    if errors.worst is not None:
        text += f"; worst: {errors.worst[0]}, error/std {_format_factor(errors.worst[1])}"
    if errors.pairs < FEW_PAIRS:
        text += f"; {errors.pairs} matched boxes are too few for a reliable factor"
    return text


def _describe_factor(factor: Interval) -> str:
    """Return whether an error factor means over- or underconfidence, and by how much.

    >>> _describe_factor(Interval(1.84, 1.62, 2.13))
    'Overconfident by a factor of 1.8 (95% CI 1.6 to 2.1)'
    """
    if not 1.0 / TOLERANCE < factor.value < TOLERANCE:
        if factor.low > 1.0:
            return f"Overconfident by a factor of {_format_factor(factor)}"
        if factor.high < 1.0:
            inverse = Interval(1.0 / factor.value, 1.0 / factor.high, 1.0 / factor.low)
            return f"Underconfident by a factor of {_format_factor(inverse)}"
    verdict = "Calibrated" if factor.low >= 1.0 / WIDE and factor.high <= WIDE else "Undecided"
    return f"{verdict}: error/std is {_format_factor(factor)}"


def _format_factor(factor: Interval) -> str:
    """Return a factor with its interval, and enough digits that no limit rounds to 1.

    >>> _format_factor(Interval(1.84, 1.62, 2.13)), _format_factor(Interval(1.2, 1.04, 1.6))
    ('1.8 (95% CI 1.6 to 2.1)', '1.20 (95% CI 1.04 to 1.60)')
    >>> _format_factor(Interval(2.0))
    '2.00'
    """
    if math.isnan(factor.low):
        return f"{factor.value:.2f}"
    digits = 1 if factor.high - factor.low >= 0.5 else 2
    while digits < 4 and 1.0 in (round(factor.low, digits), round(factor.high, digits)):
        digits += 1
    return f"{factor.value:.{digits}f} (95% CI {factor.low:.{digits}f} to {factor.high:.{digits}f})"


def _describe_outliers(errors: ErrorFactor) -> str:
    found = errors.outliers
    if found is None:
        return ""
    edges = f"{found.edges:,} of {errors.edges:,} edges {'has' if found.edges == 1 else 'have'}"
    bound = f"{found.bound:.3g}" + (f", {OUTLIER:g} times the factor" if found.bound > OUTLIER else "")
    largest = f"{found.largest:,.0f}" if found.largest >= 100 else f"{found.largest:.3g}"
    where = format_list([f"{name} ({count:,})" for name, count in found.places.items()]) if found.places else ""
    text = f"Outliers: {edges} |z| above {bound} (largest {largest}), in {found.images:,} of {errors.images:,} images"
    text += f", most in {where}" if where else ""
    return f"{text}; RMS z is {errors.rms_z:.2f} with outliers, {found.rms_z:.2f} without"


def _describe_shift(diagnosis: Diagnosis) -> str:
    shifted = find_shifted_edges(diagnosis.calibration)
    if not shifted:
        return ""
    edges = ", ".join(f"{edge} by {bias:+.1f} px" for edge, bias in shifted.items())
    return (
        f"Biased boxes: the ground truth is shifted from the boxes, {edges} on average, which is most of their error; "
        "no std can express a bias, so correct the boxes first"
    )


def _describe_baseline(diagnosis: Diagnosis) -> str:
    """Return PDQ of the constant-variance baseline, of deterministic boxes and of the detector's own std."""
    skill = diagnosis.skill.get("pdq")
    if skill is None or not diagnosis.pairs:
        return ""
    text = f"Constant-variance baseline (std {100 * skill.share:.2g}% of the side): PDQ {100 * skill.constant:.2f}"
    if diagnosis.plain_pairs == diagnosis.pairs:
        return f"{text} instead of {100 * skill.own:.2f} without covariances"
    own, low, high = (100 * value for value in (skill.skill.value, skill.skill.low, skill.skill.high))
    difference = f"{own:+.2f}" + ("" if math.isnan(low) else f" (95% CI {low:+.2f} to {high:+.2f})")
    text += f", own std {100 * skill.own:.2f}, "
    text += f"deterministic boxes {100 * skill.deterministic:.2f}. "
    if not math.isnan(skill.gain_fraction):
        text += f"The baseline reaches {100 * skill.gain_fraction:.0f}% of the gain over deterministic boxes. "
    elif skill.own <= skill.deterministic:
        text += "The own std gains nothing over deterministic boxes. "
    elif skill.constant <= skill.deterministic:
        text += "The baseline gains nothing over deterministic boxes. "
    else:
        text += "The baseline reaches the whole gain over deterministic boxes. "
    text += f"Own minus baseline is {difference}"
    if not math.isnan(skill.remaining_fraction):
        left = 100 * (1 - skill.constant)
        text += f", {100 * skill.remaining_fraction:.2g}% of the {left:.2f} points between the baseline and 100"
    return text + (": no difference can be claimed" if low <= 0.0 <= high else "")


def _describe_energy(diagnosis: Diagnosis) -> str:
    """Return whether the energy score of the own std is better than that of a constant one."""
    if "energy" not in diagnosis.skill:
        return ""
    energy, in_pixels = diagnosis.skill["energy"].skill, diagnosis.skill["energy_pixels"].skill
    if energy.low > 0.0 and in_pixels.low > 0.0:
        better = 100 * min(energy.value, in_pixels.value)
        return f"Informative: the energy score is {better:.0f}% better than with any constant std"
    if in_pixels.high < 0.0 or energy.high < 0.0:
        worse = 100 * max(-energy.value, -in_pixels.value)
        return f"Not informative: the energy score is {worse:.0f}% worse than with a constant std"
    undecided = "Undecided whether informative: the energy score does not differ from that with a constant std"
    return undecided if math.isfinite(energy.value) else ""


def _describe_losses(diagnosis: Diagnosis) -> str:
    budget = diagnosis.budget
    if budget is None or not budget.lost > 0:
        return ""
    called = PARTS | {
        "label": "wrong or uncertain labels",
        "foreground": "missing probability on object pixels",
        "background": "probability on background pixels",
    }
    shares = sorted(((getattr(budget, part) / budget.lost, words, part) for part, words in PARTS.items()), reverse=True)
    (first, _, most), (second, _, next_) = shares[:2]
    text = f"{100 * first:.0f}% of the lost points are {called[most]}"
    return text + (f", {100 * second:.0f}% {called[next_]}" if second >= 0.1 else "")


def _describe_threshold(diagnosis: Diagnosis) -> str:
    best = diagnosis.best_threshold
    if best is None:
        return ""
    if best.threshold is None:
        return f"Best label threshold: none gives more than PDQ {100 * best.now:.2f}"
    gives = f"gives PDQ {100 * best.value:.2f} instead of {100 * best.now:.2f}"
    return f"Best label threshold, chosen on these images: {best.threshold:.3g} {gives}"
