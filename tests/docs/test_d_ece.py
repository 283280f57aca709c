"""The table of D-ECE variants has the values of other packages, and those of probox on the same detections."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import probox
from probox.measures.scoring.score_rows import outcomes

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "measures" / "d-ece.md").read_text(encoding="utf-8")
DATA = ROOT / "docs" / "data" / "forty-detections"
ORACLES = json.loads((ROOT / "tests" / "golden" / "uncertainty" / "packages.json").read_text())["oracles"]
ROWS = {
    (bins, ends, matching): (value, packages)
    for bins, ends, matching, value, packages in re.findall(
        r"^\| (\d+, equal \w+) \| (.+?) \| (\w+) \| ([\d.]+) \| (.+) \|$", TEXT, re.M
    )
}
UNIT, LOWEST, EXTREMES = "0 to 1", "lowest score to 1", "lowest to highest score"


def value_of(package: str, key: str) -> float:
    """Return the value of a package."""
    (numbers,) = (numbers for name, numbers in ORACLES.items() if name.startswith(package))
    value = numbers[key]
    return float(value[0] if isinstance(value, list) else value)


@pytest.mark.parametrize(
    ("row", "name", "package", "key"),
    [
        (("10, equal mass", "quantiles", "COCO"), "vernier", "vernier", "quantile 10 bins min_score 0 (ece, mce, n)"),
        (("15, equal mass", "quantiles", "COCO"), "vernier", "vernier", "quantile 15 bins min_score 0 (ece, mce, n)"),
        (("10, equal width", UNIT, "COCO"), "netcal", "netcal", "D-ECE 10 bins"),
        (("10, equal width", UNIT, "COCO"), "hotcoco", "hotcoco", "calibration_error 10 bins (ece,mce)"),
        (("10, equal width", UNIT, "COCO"), "fiveai", "fiveai", "D-ECE tau .5 10 bins"),
        (("15, equal width", UNIT, "COCO"), "netcal", "netcal", "D-ECE 15 bins"),
        (("15, equal width", UNIT, "COCO"), "hotcoco", "hotcoco", "15 bins"),
        (("25, equal width", UNIT, "COCO"), "netcal", "netcal", "D-ECE 25 bins"),
        (("25, equal width", UNIT, "COCO"), "fiveai", "fiveai", "D-ECE tau .5 25 bins"),
        (("10, equal width", LOWEST, "COCO"), "vernier", "vernier", "equal_width 10 bins min_score 0 (ece, mce, n)"),
        (("10, equal width", LOWEST, "COCO"), "15 bins", "vernier", "equal_width 15 bins min_score 0 (ece, mce, n)"),
        (("25, equal width", EXTREMES, "COCO"), "uq-detr, greedy", "uq-detr", "dece greedy .5 25bins"),
        (("25, equal width", EXTREMES, "single"), "uq-detr, independent", "uq-detr", "dece independent"),
    ],
)
def test_values_of_packages(row: tuple[str, str, str], name: str, package: str, key: str) -> None:
    shown, packages = ROWS[row]
    assert name in packages
    assert shown == f"{value_of(package, key):.3f}"


def test_values_of_probox() -> None:
    assert len(ROWS) == 8
    truth = probox.read_truth(DATA / "truth.json")
    summary = probox.evaluate(truth, probox.read_detections(DATA / "found.json", truth), measures="d-ece").summary()
    own = {re.search(r"`(\d+[wm])`", packages): value for value, packages in ROWS.values()}
    shown = {f"D-ECE@50/{found[1]}": value for found, value in own.items() if found}
    assert shown == {key: f"{value:.3f}" for key, value in summary.items()}


def test_simulated_range() -> None:
    truth = probox.read_truth(DATA / "truth.json")
    result = probox.evaluate(truth, probox.read_detections(DATA / "found.json", truth), measures="d-ece")
    judged = outcomes(result)
    scores = result.detections.scores[judged.detections]
    assert f"so 20 instead of {judged.hits.sum()} detections are correct" in " ".join(TEXT.split())
    bins = np.searchsorted(np.arange(1, 25) / 25, scores, side="right")
    draws = np.random.default_rng(0).random((500, len(scores))) < scores
    gaps = np.stack([np.abs((draws - scores)[:, bins == number].sum(axis=1)) for number in np.unique(bins)])
    low, high = np.quantile(gaps.sum(axis=0) / len(scores), [0.025, 0.975])
    assert f"{low:.2f} to {high:.2f} (95% of 500 simulations" in " ".join(TEXT.split())
