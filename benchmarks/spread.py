"""Value of a std regressor: the same boxes without covariance, with constant, own, calibrated and learned std.

    python -m benchmarks.spread TRUTH FILES_OR_FOLDERS...
    python -m benchmarks.spread TRUTH FOLDER --threshold 0.05 --json out.json

Images are split into two halves by a seeded shuffle. A fit on one half is applied to the other, both ways, and metrics
are computed on both together: no fit has seen the image of a detection. A Markdown table has 95% intervals by the
bootstrap over images, and differences from the same draws. Each column has its own objective: NLL for NLL and coverage,
the energy score for itself, and PDQ for PDQ and AUSE.

"learned" is the std regressor with all features; "learned from the box" does not use the predicted std, but score,
size and class of the same boxes. For boxes without covariance both are equal.

Claims stated before the run, for detectors with predicted std:

- learned is at least as good as calibrated in PDQ and in the energy score;
- learned ranks errors better than own: AUSE is lower;

and for all detectors:

- learned is better than the best constant in PDQ and in the energy score;
- 90% intervals of edges, learned for NLL, have a coverage of 87 to 93%.

A claim holds or fails by its value; "significantly" is added if the 95% interval does not cross the limit.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import probox
from benchmarks.sigmas import (
    FITTED_FOR,
    MEASURE_OF,
    above,
    cell,
    command_line,
    files_of,
    has_sigmas,
    print_table,
    versions,
)
from probox.analysis.resampling import Interval

KEYS = ("PDQ", "NLL", "energy", "coverage_90", "AUSE")
HEADINGS = ("std", "PDQ", "NLL", "energy", "edge coverage 90% [%]", "AUSE")
SHOWN = {"PDQ": (100.0, 2), "NLL": (1.0, 2), "energy": (1.0, 2), "coverage_90": (100.0, 1), "AUSE": (1.0, 3)}
"""Factor and digits of each column."""

HALVES = 2
ROWS = ("plain", "own", "constant", "calibrated", "learned from the box", "learned")
DIFFERENCES = ("own", "constant", "calibrated", "learned from the box")
"""Rows that learned is compared with."""

LIMITS = (0.87, 0.93)
"""Accepted range of the coverage at 90%."""


def all_versions(truth: probox.GroundTruth, found: probox.Detections, seed: int) -> dict[str, probox.Detections]:
    """Return the detections with other standard deviations, each cross-fitted on the other half of the images."""
    plain = found.replace(covariances=None)
    if not has_sigmas(found):
        methods = {"constant": "constant", "learned": "learned"}
        return {"plain": plain} | versions(truth, found, methods, HALVES, seed)
    methods = {"constant": "constant", "calibrated": "isotonic", "learned": "learned"}
    boxes_alone = versions(truth, plain, {"learned from the box": "learned"}, HALVES, seed)
    return {"plain": plain, "own": found} | versions(truth, found, methods, HALVES, seed) | boxes_alone


def version_of(row: str, key: str) -> str:
    """Return the version of the detections for a cell of the table."""
    return row if row in ("plain", "own") else f"{row}, {FITTED_FOR[key]}"


def measured(truth: probox.GroundTruth, file: Path, threshold: float, seed: int) -> dict[str, Any]:
    """Return the metrics of a file, the rows of its table, and its claims."""
    started = time.perf_counter()
    found = probox.read_detections(file, truth)
    found = found.select(np.flatnonzero(found.label_probs.max(axis=1) > np.float32(threshold)))
    measures = tuple(MEASURE_OF[key] for key in KEYS)
    evaluations = {
        name: probox.evaluate(truth, table, measures=measures)
        for name, table in all_versions(truth, found, seed).items()
    }
    told = {name: evaluation.intervals(seed=seed) for name, evaluation in evaluations.items()}
    rows = [row for row in ROWS if version_of(row, "PDQ") in evaluations]
    numbers = {row: {key: told[version_of(row, key)][key] for key in KEYS} for row in rows}

    def minus(one: str, other: str) -> dict[str, Interval]:
        tables = {key: [evaluations[version_of(row, key)] for row in (one, other)] for key in KEYS}
        return {key: above(key, *of, seed) for key, of in tables.items()}

    differences = {row: minus("learned", row) for row in DIFFERENCES if row in rows}
    return {
        "file": file.name,
        "title": file.name.split(".")[0].replace("_", " "),
        "threshold": threshold,
        "images": len(truth.dataset),
        "detections": len(found),
        "pairs": len(evaluations["plain"].matched_pairs),
        "numbers": {row: {key: own.to_dict() for key, own in of.items()} for row, of in numbers.items()},
        "learned minus": {row: {key: own.to_dict() for key, own in of.items()} for row, of in differences.items()},
        "table": list(table_rows(numbers, differences)),
        "claims": list(claims(numbers["learned"], differences)),
        "seconds": time.perf_counter() - started,
    }


def table_rows(
    numbers: dict[str, dict[str, Interval]],
    differences: dict[str, dict[str, Interval]],
) -> Iterator[list[str]]:
    """Yield the cells of each row, starting with the source of the std."""
    for row, own in numbers.items():
        empty = ("NLL", "coverage_90", "AUSE") if row == "plain" else ()
        yield [row, *("" if key in empty else cell(own[key], *SHOWN[key]) for key in KEYS)]
    for row, own in differences.items():
        yield [f"learned - {row}", *(cell(own[key], *SHOWN[key], signed=True) for key in KEYS)]


def claims(
    learned: dict[str, Interval],
    differences: dict[str, dict[str, Interval]],
) -> Iterator[tuple[str, str]]:
    """Yield each claim of a file and whether it holds."""
    if "calibrated" in differences:
        yield "PDQ is at least that of calibrated", verdict(differences["calibrated"]["PDQ"], 1)
        yield "energy is at most that of calibrated", verdict(differences["calibrated"]["energy"], -1)
        yield "AUSE is below that of own", verdict(differences["own"]["AUSE"], -1, strictly=True)
    yield "PDQ is above that of constant", verdict(differences["constant"]["PDQ"], 1, strictly=True)
    yield "energy is below that of constant", verdict(differences["constant"]["energy"], -1, strictly=True)
    coverage = learned["coverage_90"]
    inside = [LIMITS[0] <= value <= LIMITS[1] for value in (coverage.value, coverage.low, coverage.high)]
    beyond = coverage.high < LIMITS[0] or coverage.low > LIMITS[1]
    significant = all(inside) or beyond
    yield (
        "coverage of 90% intervals of edges is 87 to 93%",
        ("holds" if inside[0] else "fails") + (", significantly" if significant else ""),
    )


def verdict(difference: Interval, sign: int, *, strictly: bool = False) -> str:
    """Return whether a difference has the claimed sign; 0 counts unless strictly."""
    ends = sorted((sign * difference.low, sign * difference.high))
    value = sign * difference.value
    holds = value > 0 or (value == 0 and not strictly)
    significant = ends[0] > 0 if holds else ends[1] < 0
    return ("holds" if holds else "fails") + (", significantly" if significant else "")


def print_results(results: Sequence[dict[str, Any]]) -> None:
    """Print all results as one Markdown table, and the claims as another."""
    print_table(HEADINGS, results, lambda result: int(result["pairs"]))
    print()
    titles = list(dict.fromkeys(claim for result in results for claim, _ in result["claims"]))
    print("| " + " | ".join(("claim", *(result["title"] for result in results))) + " |")
    print("| --- |" + " --- |" * len(results))
    for title in titles:
        print("| " + " | ".join((title, *(dict(result["claims"]).get(title, "") for result in results))) + " |")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = command_line(__doc__, "halves and bootstrap")
    options = parser.parse_args(arguments)
    truth = probox.read_truth(options.truth)
    results = []
    for file in files_of(options.detections):
        results.append(measured(truth, file, options.threshold, options.seed))
        print(f"{file.name}: {results[-1]['seconds']:.0f} s", file=sys.stderr)
    print_results(results)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
