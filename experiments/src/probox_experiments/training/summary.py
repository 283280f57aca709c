"""The table of the training experiment as Markdown: from its CSV file to what a page shows.

python -m probox_experiments.training.summary training.csv
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from probox_experiments.claims import Claim
from probox_experiments.table import ResultTable
from probox_experiments.training.arms import ARMS
from probox_experiments.training.intervals import interval_of
from probox_experiments.training.verdicts import claims_of_training

__all__ = ["arm_table", "claim_list", "read_rows", "read_table", "seed_table"]

Row = Mapping[str, str]

COLUMNS: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "PDQ": ("PDQ", lambda value: f"{100 * value:.2f}"),
    "PDQ_paper": ("PDQ, `paper`", lambda value: f"{100 * value:.2f}"),
    "mAP": ("mAP", lambda value: f"{100 * value:.2f}"),
    "moLRP": ("moLRP", lambda value: f"{100 * value:.2f}"),
    "log_sigma_correlation": ("correlation", lambda value: f"{value:.3f}"),
    "sigma_ratio": ("ratio", lambda value: f"{value:.3f}"),
    "coverage_90": ("90 % hold", lambda value: f"{100 * value:.1f}"),
    "NLL": ("NLL", lambda value: f"{value:.3f}"),
    "energy": ("energy", lambda value: f"{value:.3f}"),
    "occluded_wider": ("occluded longer", lambda value: f"{100 * value:.1f}"),
}
"""What is shown of the columns, and how; of plain boxes much is nothing."""


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of the experiment's CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def read_table(path: Path) -> ResultTable:
    """Return the table of an experiment's CSV file; columns of numbers are numbers."""
    rows = read_rows(path)
    return ResultTable({name: _column([row[name] for row in rows]) for name in rows[0]})


def _column(texts: Sequence[str]) -> list[float] | list[str]:
    try:
        return [_number(text) for text in texts]
    except ValueError:
        return list(texts)


def claim_list(claims: Sequence[Claim]) -> str:
    """Return a list of claims with what became of them."""
    return "\n".join(
        f"- **{claim.verdict.capitalize()}**: {claim.claim}. Measured: {claim.measured}. Required: {claim.required}."
        for claim in claims
    )


def arm_table(rows: Sequence[Row]) -> str:
    """Return a line per arm: means over seeds, and of PDQ and mAP the half of the 95 % interval."""
    lines = _head("loss")
    for arm in ARMS:
        own = [row for row in rows if row["arm"] == arm.name]
        if own:
            lines.append(_line([arm.title], [_mean(name, [_number(row[name]) for row in own]) for name in COLUMNS]))
    return "\n".join(lines)


def seed_table(rows: Sequence[Row]) -> str:
    """Return a line per arm and seed."""
    lines = _head("loss", "seed")
    for arm in ARMS:
        for row in rows:
            if row["arm"] == arm.name:
                shown = [_shown(name, _number(row[name])) for name in COLUMNS]
                lines.append(_line([arm.title, row["seed"]], shown))
    return "\n".join(lines)


def _head(*first: str) -> list[str]:
    names = [title for title, _ in COLUMNS.values()]
    return [_line(first, names), _line(["---"] * len(first), ["---:"] * len(names))]


def _line(first: Sequence[str], rest: Sequence[str]) -> str:
    return f"| {' | '.join([*first, *rest])} |"


def _number(text: str) -> float:
    return float(text) if text else math.nan


def _shown(name: str, value: float) -> str:
    return "" if math.isnan(value) else COLUMNS[name][1](value)


def _mean(name: str, values: Sequence[float]) -> str:
    mean = interval_of(values)
    text = _shown(name, mean.mean)
    if name in ("PDQ", "PDQ_paper", "mAP") and math.isfinite(mean.high):
        text += f" \N{PLUS-MINUS SIGN} {100 * (mean.high - mean.mean):.2f}"
    return text


if __name__ == "__main__":
    given = read_rows(Path(sys.argv[1]))
    judged = claim_list(claims_of_training(read_table(Path(sys.argv[1]))))
    print(f"{arm_table(given)}\n\n{judged}\n\n{seed_table(given)}")
