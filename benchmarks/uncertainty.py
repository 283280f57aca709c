"""Are sigmas informative? The same boxes plain, with the best constant sigma, their own, and their own calibrated.

    python -m benchmarks.uncertainty TRUTH FILES_OR_FOLDERS...
    python -m benchmarks.uncertainty TRUTH FOLDER --threshold 0.05 --json out.json

prints a Markdown table with four rows for each file of detections (two where there are no covariances), and 95 %
intervals by the bootstrap over images. Detections above the threshold alone take part, in fits and in numbers.

Constants and calibrations are cross-validated by image: what stands in the table is of detections each of which was
changed by a fit that did not see its image. Each column has what was fitted for it: the constant, and the `isotonic`
curves by which own sigmas are calibrated, are the best for NLL in the columns of NLL and coverage, for the energy score
in its two, and for PDQ in the others. The JSON has every number of every fit.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import probox
from probox.analysis.intervals import Interval, Intervals, interval_of
from probox.analysis.resampling import drawn_images
from probox.analysis.rescoring import golden_section
from probox.calibration import fit
from probox.calibration.dealing import dealt
from probox.measures.registry import measures_called
from probox.measures.scoring.box_scores import energy_scores

MEASURES = ("pdq", "nll", "energy", "coverage", "ause", "spearman")
KEYS = ("PDQ", "NLL", "energy", "coverage_90", "AUSE", "Spearman")
FOLDS = 5
FACTORS = (0.25, 4.0)
"""Between these multiples of what is best for NLL the best for the energy score is sought."""

FITTED_FOR = {"PDQ": "PDQ", "NLL": "NLL", "energy": "energy", "coverage_90": "NLL", "AUSE": "PDQ", "Spearman": "PDQ"}
"""What the constant and the calibration of each column are fitted for.

Those for PDQ keep corners inside the image, as detectors do. At borders even a constant sigma then knows something, so
AUSE and Spearman's correlation of own sigmas must be judged by those of such a constant.
"""

ROWS: dict[str, dict[str, str]] = {
    "plain": dict.fromkeys(KEYS, "plain"),
    "best constant": {key: f"constant, {target}" for key, target in FITTED_FOR.items()},
    "own": dict.fromkeys(KEYS, "own"),
    "own, calibrated": {key: f"calibrated, {target}" for key, target in FITTED_FOR.items()},
}
"""For each row of the table, which version of the detections each column is of."""


def versions(truth: probox.GroundTruth, found: probox.Detections, seed: int) -> dict[str, probox.Detections]:
    """Return the detections with other sigmas, each fitted without the image that it is for."""
    fitted: dict[str, probox.Detections | None] = {"plain": found.replace(covariances=None)}
    has_sigmas = found.covariances is not None and bool(found.covariances.any())
    for target in ("pdq", "nll"):
        name = target.upper()
        options: dict[str, Any] = {"target": target, "folds": FOLDS, "seed": seed, "resamples": 1}
        fitted[f"constant, {name}"] = fit(truth, found, method="constant", **options).held_out
        if has_sigmas:
            fitted[f"calibrated, {name}"] = fit(truth, found, method="isotonic", **options).held_out
    fitted["constant, energy"] = for_energy(truth, found, "constant", seed)
    if has_sigmas:
        fitted["calibrated, energy"] = for_energy(truth, found, "isotonic", seed)
        fitted["own"] = found
    lacking = [name for name, table in fitted.items() if table is None]
    if lacking:
        raise SystemExit(f"{found.source}: too few matched boxes to hold any out ({', '.join(lacking)})")
    return {name: table for name, table in fitted.items() if table is not None}


def for_energy(truth: probox.GroundTruth, found: probox.Detections, method: str, seed: int) -> probox.Detections:
    """Return the detections calibrated for NLL, and then scaled for the lowest energy score, on other images each."""
    fold = dealt(len(truth.dataset), FOLDS, seed)
    fold_of = fold[truth.dataset.rows_of(found.image_ids)]
    covariances = np.zeros((len(found), 2, 2, 2))
    for number in range(FOLDS):
        seen = truth.select_images(truth.dataset.image_ids[fold != number])
        given = found.select(np.flatnonzero(fold_of != number))
        shape = fit(seen, given, method=method, target="nll", folds=2, resamples=1).calibration
        pairs = probox.evaluate(seen, shape.apply(given), measures=("energy",)).matched_pairs

        def loss(logarithm: float, pairs: Any = pairs) -> float:
            return float(energy_scores(pairs.residuals, pairs.covariances * math.exp(2 * logarithm)).sum())

        factor = math.exp(golden_section(loss, *np.log(FACTORS), steps=14))
        held_out = np.flatnonzero(fold_of == number)
        best = dataclasses.replace(shape, corners=shape.corners.scaled(factor)).apply(found.select(held_out))
        assert best.covariances is not None
        covariances[held_out] = best.covariances
    return found.replace(covariances=covariances)


def skill(measure: str, key: str, own: probox.Evaluation, constant: probox.Evaluation, seed: int) -> Interval:
    """Return PDQ minus that of the constant, or 1 - S / S(constant) of a score; images are drawn alike for both."""
    (rule,) = measures_called([measure])
    assert rule.resampled is not None

    def worth(first: Any, second: Any) -> Any:
        return first - second if key == "PDQ" else 1.0 - first / second

    images = len(own.dataset)
    draws = [
        worth(rule.resampled(own, weights)[key], rule.resampled(constant, weights)[key])
        for weights in drawn_images(images, 1000, seed)
    ]
    value = worth(rule.summary(own)[key], rule.summary(constant)[key])
    return interval_of(float(value), np.concatenate(draws), images, 0.95)


def measured(truth: probox.GroundTruth, file: Path, threshold: float, seed: int) -> dict[str, Any]:
    """Return the numbers of every version of a file's detections, and the rows of the table."""
    started = time.perf_counter()
    found = probox.read_detections(file, truth)
    found = found.select(np.flatnonzero(found.label_probs.max(axis=1) > np.float32(threshold)))
    evaluations = {
        name: probox.evaluate(truth, table, measures=MEASURES) for name, table in versions(truth, found, seed).items()
    }
    intervals = {name: evaluation.intervals(seed=seed) for name, evaluation in evaluations.items()}
    skills: dict[str, dict[str, Interval]] = {}
    for row in ("own", "own, calibrated"):
        if "own" not in evaluations:
            break
        own, constant = ROWS[row], ROWS["best constant"]
        skills[row] = {
            key: skill(measure, key, evaluations[own[key]], evaluations[constant[key]], seed)
            for measure, key in (("pdq", "PDQ"), ("energy", "energy"))
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
    """Yield the cells of each row, from PDQ on."""
    for row, source in ROWS.items():
        if source["PDQ"] not in intervals:
            continue
        has_sigmas = row != "plain"
        own = {key: intervals[source[key]][key] for key in KEYS}
        worth = skills.get(row, {})
        yield [
            row,
            cell(own["PDQ"], 100.0, 1),
            cell(worth.get("PDQ"), 100.0, 2, signed=True),
            cell(own["NLL"], 1.0, 1) if has_sigmas else "",
            cell(own["energy"], 1.0, 1),
            cell(worth.get("energy"), 100.0, 1, signed=True),
            cell(own["coverage_90"], 100.0, 0) if has_sigmas else "",
            cell(own["AUSE"], 1.0, 2) if has_sigmas else "",
            cell(own["Spearman"], 1.0, 2) if has_sigmas else "",
        ]


def cell(number: Interval | None, times: float, digits: int, *, signed: bool = False) -> str:
    """Return a number with its interval."""
    if number is None:
        return ""
    sign = "+" if signed else ""
    ends = f"{times * number.low:{sign}.{digits}f}, {times * number.high:{sign}.{digits}f}"
    return f"{times * number.value:{sign}.{digits}f} [{ends}]"


HEADINGS = ("sigmas", "PDQ", "own - constant", "NLL", "energy", "skill, %", "edges in 90 %", "AUSE", "Spearman")


def print_table(results: Sequence[dict[str, Any]]) -> None:
    """Print everything as one Markdown table."""
    print("| " + " | ".join(("detections", *HEADINGS)) + " |")
    print("| --- | --- |" + " ---: |" * (len(HEADINGS) - 1))
    for result in results:
        for number, cells in enumerate(result["table"]):
            name = f"{result['title']} ({result['detections']}, {result['pairs']['plain']} pairs)"
            print("| " + " | ".join(["" if number else name, *cells]) + " |")


def files_of(paths: Sequence[Path]) -> list[Path]:
    """Return the files of detections among files and folders, by name."""
    found = [inside for path in paths for inside in (sorted(path.iterdir()) if path.is_dir() else [path])]
    return [path for path in found if path.name.endswith((".json", ".json.gz", ".parquet"))]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("truth", type=Path, help="ground truth")
    parser.add_argument("detections", type=Path, nargs="+", help="files of detections, or folders of them")
    parser.add_argument("--threshold", type=float, default=0.5, help="detections above it take part (default 0.5)")
    parser.add_argument("--seed", type=int, default=0, help="of folds and bootstrap")
    parser.add_argument("--json", type=Path, help="also keep everything in this file")
    options = parser.parse_args(arguments)
    truth = probox.read_truth(options.truth)
    results = []
    for file in files_of(options.detections):
        results.append(measured(truth, file, options.threshold, options.seed))
        print(f"{file.name}: {results[-1]['seconds']:.0f} s", file=sys.stderr)
    print_table(results)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
