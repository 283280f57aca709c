"""Boxes with standard deviations of other methods, cross-fitted by image, and confidence intervals of their metrics.

Shared by the benchmarks of uncertainty: versions of detections by method and objective of the fit, differences of their
metrics with 95% intervals, tables, and arguments.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import probox
from probox.analysis.baseline import minimize_by_golden_section
from probox.analysis.resampling import Interval, assign_folds, compute_interval, draw_images
from probox.calibration import fit
from probox.measures.registry import measures_called
from probox.measures.scoring.scores import energy_scores

__all__ = [
    "FITTED_FOR",
    "MEASURE_OF",
    "above",
    "cell",
    "command_line",
    "files_of",
    "has_sigmas",
    "print_table",
    "versions",
]

MEASURE_OF = {
    "PDQ": "pdq", "NLL": "nll", "energy": "energy", "coverage_90": "coverage", "AUSE": "ause", "Spearman": "spearman",
}  # fmt: skip
"""Metric of each value."""

FACTORS = (0.25, 4.0)
"""Search range for the lowest energy score, as multiples of the best scale for NLL."""

FITTED_FOR = {"PDQ": "PDQ", "NLL": "NLL", "energy": "energy", "coverage_90": "NLL", "AUSE": "PDQ", "Spearman": "PDQ"}
"""Objective that the constant and the calibration of each column are fitted for.

Those for PDQ keep corners inside the image, as detectors do. At borders even a constant std is then informative, so
AUSE and Spearman's correlation of predicted std must be compared with those of such a constant.
"""


def has_sigmas(found: probox.Detections) -> bool:
    """Return whether a detector predicts standard deviations."""
    return found.covariances is not None and bool(found.covariances.any())


def versions(
    truth: probox.GroundTruth,
    found: probox.Detections,
    methods: Mapping[str, str],
    folds: int,
    seed: int,
) -> dict[str, probox.Detections]:
    """Return the detections with other standard deviations, by name: ``"constant, PDQ"`` for the method "constant"."""
    fitted: dict[str, probox.Detections | None] = {}
    for name, method in methods.items():
        for target in ("pdq", "nll"):
            options: dict[str, Any] = {"target": target, "folds": folds, "seed": seed, "resamples": 1}
            fitted[f"{name}, {target.upper()}"] = fit(truth, found, method=method, **options).held_out
        fitted[f"{name}, energy"] = for_energy(truth, found, method, folds, seed)
    lacking = [name for name, table in fitted.items() if table is None]
    if lacking:
        raise SystemExit(f"{found.source}: too few matched boxes for cross-fitting ({', '.join(lacking)})")
    return {name: table for name, table in fitted.items() if table is not None}


def for_energy(
    truth: probox.GroundTruth,
    found: probox.Detections,
    method: str,
    folds: int,
    seed: int,
) -> probox.Detections:
    """Return the detections calibrated for NLL, then scaled for the lowest energy score, both cross-fitted."""
    fold = assign_folds(len(truth.dataset), folds, seed)
    fold_of = fold[truth.dataset.rows_of(found.image_ids)]
    covariances = np.zeros((len(found), 2, 2, 2))
    for number in range(folds):
        seen = truth.select_images(truth.dataset.image_ids[fold != number])
        given = found.select(np.flatnonzero(fold_of != number))
        shape = fit(seen, given, method=method, target="nll", folds=2, resamples=1).calibration
        pairs = probox.evaluate(seen, shape.apply(given), measures=("energy",)).matched_pairs

        def loss(logarithm: float, pairs: Any = pairs) -> float:
            return float(energy_scores(pairs.residuals, pairs.covariances * math.exp(2 * logarithm)).sum())

        factor = math.exp(minimize_by_golden_section(loss, *np.log(FACTORS), steps=14))
        held_out = np.flatnonzero(fold_of == number)
        best = dataclasses.replace(shape, corners=shape.corners.scale_by(factor)).apply(found.select(held_out))
        assert best.covariances is not None
        covariances[held_out] = best.covariances
    return found.replace(covariances=covariances)


def above(
    key: str,
    one: probox.Evaluation,
    other: probox.Evaluation,
    seed: int,
    contrast: Callable[[Any, Any], Any] = lambda first, second: first - second,
) -> Interval:
    """Return the difference of a metric to another version, or another contrast, from the same bootstrap draws."""
    (rule,) = measures_called([MEASURE_OF[key]])
    assert rule.resampled is not None
    images = len(one.dataset)
    draws = [
        contrast(rule.resampled(one, weights)[key], rule.resampled(other, weights)[key])
        for weights in draw_images(images, 1000, seed)
    ]
    value = contrast(rule.summary(one)[key], rule.summary(other)[key])
    return compute_interval(float(value), np.concatenate(draws), images, 0.95)


def cell(number: Interval | None, times: float, digits: int, *, signed: bool = False) -> str:
    """Return a number with its interval."""
    if number is None:
        return ""
    sign = "+" if signed else ""
    ends = f"{times * number.low:{sign}.{digits}f}, {times * number.high:{sign}.{digits}f}"
    return f"{times * number.value:{sign}.{digits}f} [{ends}]"


def files_of(paths: Sequence[Path]) -> list[Path]:
    """Return the files of detections among files and folders, sorted by name."""
    found = [inside for path in paths for inside in (sorted(path.iterdir()) if path.is_dir() else [path])]
    return [path for path in found if path.name.endswith((".json", ".json.gz", ".parquet"))]


def print_table(
    headings: Sequence[str], results: Sequence[Mapping[str, Any]], pairs_of: Callable[[Mapping[str, Any]], int]
) -> None:
    """Print the tables of results as one Markdown table; the first row of each has its name and number of pairs."""
    print("| " + " | ".join(("detections", *headings)) + " |")
    print("| --- | --- |" + " ---: |" * (len(headings) - 1))
    for result in results:
        for number, cells in enumerate(result["table"]):
            name = f"{result['title']} ({result['detections']}, {pairs_of(result)} pairs)"
            print("| " + " | ".join(["" if number else name, *cells]) + " |")


def command_line(description: str | None, seed: str) -> argparse.ArgumentParser:
    """Return the arguments shared by these scripts; `seed` describes the use of the seed."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("truth", type=Path, help="ground truth")
    parser.add_argument("detections", type=Path, nargs="+", help="files of detections, or folders of them")
    parser.add_argument("--threshold", type=float, default=0.5, help="minimum score of detections (default 0.5)")
    parser.add_argument("--seed", type=int, default=0, help=f"of {seed}")
    parser.add_argument("--json", type=Path, help="also write all results to this file")
    return parser
