"""Informativeness of standard deviations: the same boxes without, with the best constant, own, and calibrated std.

    python -m benchmarks.uncertainty TRUTH FILES_OR_FOLDERS...
    python -m benchmarks.uncertainty TRUTH FOLDER --threshold 0.05 --json out.json

prints a Markdown table with four rows per file of detections (two without covariances), and 95% intervals by the
bootstrap over images. Only detections above the threshold are used, in fits and metrics.

Constants and calibrations are cross-validated by image: each detection in the table was changed by a fit without its
image. Each column has its own objective: the constant, and the `isotonic` calibration of own standard deviations, are
the best for NLL in the columns of NLL and coverage, for the energy score in its two, and for PDQ in the others. The
JSON has all metrics of all fits.
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
from probox.analysis.resampling import Interval, Intervals

KEYS = tuple(MEASURE_OF)
FOLDS = 5

ROWS: dict[str, dict[str, str]] = {
    "plain": dict.fromkeys(KEYS, "plain"),
    "best constant": {key: f"constant, {target}" for key, target in FITTED_FOR.items()},
    "own": dict.fromkeys(KEYS, "own"),
    "own, calibrated": {key: f"calibrated, {target}" for key, target in FITTED_FOR.items()},
}
"""Version of the detections for each row and column of the table."""


def all_versions(truth: probox.GroundTruth, found: probox.Detections, seed: int) -> dict[str, probox.Detections]:
    """Return the detections with other standard deviations, each fitted without its own image."""
    own = has_sigmas(found)
    methods = {"constant": "constant"} | ({"calibrated": "isotonic"} if own else {})
    given = {"plain": found.replace(covariances=None)} | ({"own": found} if own else {})
    return given | versions(truth, found, methods, FOLDS, seed)


def skill(key: str, own: probox.Evaluation, constant: probox.Evaluation, seed: int) -> Interval:
    """Return PDQ minus that of the constant, or 1 - S / S(constant) of a score."""
    if key == "PDQ":
        return above(key, own, constant, seed)
    return above(key, own, constant, seed, lambda first, second: 1.0 - first / second)


def measured(truth: probox.GroundTruth, file: Path, threshold: float, seed: int) -> dict[str, Any]:
    """Return the metrics of every version of a file's detections, and the rows of the table."""
    started = time.perf_counter()
    found = probox.read_detections(file, truth)
    found = found.select(np.flatnonzero(found.label_probs.max(axis=1) > np.float32(threshold)))
    evaluations = {
        name: probox.evaluate(truth, table, measures=tuple(MEASURE_OF.values()))
        for name, table in all_versions(truth, found, seed).items()
    }
    intervals = {name: evaluation.intervals(seed=seed) for name, evaluation in evaluations.items()}
    skills: dict[str, dict[str, Interval]] = {}
    for row in ("own", "own, calibrated"):
        if "own" not in evaluations:
            break
        own, constant = ROWS[row], ROWS["best constant"]
        skills[row] = {
            key: skill(key, evaluations[own[key]], evaluations[constant[key]], seed) for key in ("PDQ", "energy")
        }
    return {
        "file": file.name,
        "title": file.name.split(".")[0].replace("_", " "),
        "threshold": threshold,
        "images": len(truth.dataset),
        "detections": len(found),
        "pairs": {name: len(evaluation.matched_pairs) for name, evaluation in evaluations.items()},
        "numbers": {name: {key: own[key].to_dict() for key in KEYS} for name, own in intervals.items()},
        "skill": {row: {key: own.to_dict() for key, own in of.items()} for row, of in skills.items()},
        "table": list(table_rows(intervals, skills)),
        "seconds": time.perf_counter() - started,
    }


def table_rows(intervals: dict[str, Intervals], skills: dict[str, dict[str, Interval]]) -> Iterator[list[str]]:
    """Yield the cells of each row, starting with PDQ."""
    for row, source in ROWS.items():
        if source["PDQ"] not in intervals:
            continue
        shows_sigmas = row != "plain"
        own = {key: intervals[source[key]][key] for key in KEYS}
        worth = skills.get(row, {})
        yield [
            row,
            cell(own["PDQ"], 100.0, 1),
            cell(worth.get("PDQ"), 100.0, 2, signed=True),
            cell(own["NLL"], 1.0, 1) if shows_sigmas else "",
            cell(own["energy"], 1.0, 1),
            cell(worth.get("energy"), 100.0, 1, signed=True),
            cell(own["coverage_90"], 100.0, 0) if shows_sigmas else "",
            cell(own["AUSE"], 1.0, 2) if shows_sigmas else "",
            cell(own["Spearman"], 1.0, 2) if shows_sigmas else "",
        ]


HEADINGS = ("std", "PDQ", "own - constant", "NLL", "energy", "skill [%]", "edge coverage 90% [%]", "AUSE", "Spearman")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    options = command_line(__doc__, "folds and bootstrap").parse_args(arguments)
    truth = probox.read_truth(options.truth)
    results = []
    for file in files_of(options.detections):
        results.append(measured(truth, file, options.threshold, options.seed))
        print(f"{file.name}: {results[-1]['seconds']:.0f} s", file=sys.stderr)
    print_table(HEADINGS, results, lambda result: int(result["pairs"]["plain"]))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
