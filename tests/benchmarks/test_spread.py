"""The table of learned sigmas beside others, and its claims."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.spread import HEADINGS, KEYS, claims, main, measured, verdict

import probox
from probox.analysis.resampling import Interval
from probox.calibration import fit
from probox.demo import Demo


@pytest.mark.slow
def test_rows_are_what_the_library_says(demo: Demo, demo_files: Path) -> None:
    truth = demo.truth.select_images(demo.truth.image_ids[:8])
    got = measured(truth, demo_files / "probabilistic.json", 0.3, seed=0)
    assert [row[0] for row in got["table"]] == [
        "plain", "own", "constant", "calibrated", "learned from the box", "learned",
        "learned - own", "learned - constant", "learned - calibrated", "learned - learned from the box",
    ]  # fmt: skip
    values = {row: {key: number["value"] for key, number in of.items()} for row, of in got["numbers"].items()}
    found = probox.read_detections(demo_files / "probabilistic.json", truth)
    found = found.select(found.label_probs.max(axis=1) > 0.3)
    for row, method, table in (
        ("learned", "learned", found),
        ("calibrated", "isotonic", found),
        ("learned from the box", "learned", found.replace(covariances=None)),
    ):
        gain = fit(truth, table, method=method, target="nll", folds=2, resamples=1).gain
        assert gain is not None
        assert values[row]["NLL"] == pytest.approx(gain.changes["NLL"].after)
    for row, of in got["learned minus"].items():
        for key in KEYS:
            assert of[key]["value"] == pytest.approx(values["learned"][key] - values[row][key])
            assert of[key]["low"] <= of[key]["value"] <= of[key]["high"]
    assert len(got["claims"]) == 6


@pytest.mark.slow
def test_plain_boxes_have_fewer_rows(demo_files: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    main([str(demo_files / "truth.json"), str(demo_files / "deterministic.json"), "--json", str(out)])
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["detections", *HEADINGS]
    assert [line[1] for line in lines[2:6]] == ["plain", "constant", "learned", "learned - constant"]
    assert lines[2][3] == lines[2][5] == lines[2][6] == "", "nothing that needs a sigma"
    assert lines[7] == ["claim", "deterministic"]
    assert len(lines) == 12
    (kept,) = json.loads(out.read_text())
    assert [claim for claim, _ in kept["claims"]] == [line[0] for line in lines[9:]]


def interval(value: float, low: float, high: float) -> Interval:
    return Interval(value, low, high)


def test_claims_are_judged() -> None:
    assert verdict(interval(0.2, 0.1, 0.3), 1) == "holds, significantly"
    assert verdict(interval(0.2, -0.1, 0.3), 1) == "holds"
    assert verdict(interval(-0.2, -0.3, 0.1), 1) == "fails"
    assert verdict(interval(-0.2, -0.3, -0.1), 1) == "fails, significantly"
    assert verdict(interval(-0.2, -0.3, -0.1), -1) == "holds, significantly"
    assert verdict(interval(0.2, 0.1, 0.3), -1) == "fails, significantly"
    assert verdict(interval(0.0, -0.1, 0.1), 1) == "holds"
    assert verdict(interval(0.0, -0.1, 0.1), 1, strictly=True) == "fails"
    differences = {"constant": {"PDQ": interval(1, 0.5, 2), "energy": interval(1, 0.5, 2)}}
    for ends, said in (
        ((0.9, 0.88, 0.92), "holds, significantly"),
        ((0.9, 0.86, 0.92), "holds"),
        ((0.86, 0.8, 0.9), "fails"),
        ((0.8, 0.7, 0.86), "fails, significantly"),
        ((0.97, 0.95, 0.99), "fails, significantly"),
    ):
        got = dict(claims({"coverage_90": interval(*ends)}, differences))
        assert got["coverage of 90% intervals of edges is 87 to 93%"] == said
    assert got["PDQ is above that of constant"] == "holds, significantly"
    assert got["energy is below that of constant"] == "fails, significantly"
