"""`probox diagnose`: text, JSON and files."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from tests.cli.in_process import run


def test_summary_comes_first(demo_files):
    code, out, err = run("diagnose", demo_files / "results" / "probabilistic", "--replicates", 50)
    assert (code, err) == (0, "")
    title, blank, verdict, *_ = out.splitlines()
    assert title.startswith("probabilistic: PDQ ")
    assert (blank, verdict[:2]) == ("", "- ")
    assert " nan" not in out


def test_json_has_all_results(demo_files):
    code, out, err = run("diagnose", demo_files / "results", "--json", "--replicates", 50)
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert sorted(result["name"] for result in told["results"]) == ["deterministic", "probabilistic"]
    plain = next(result for result in told["results"] if result["name"] == "deterministic")
    assert plain["nll"] is None or isinstance(plain["nll"], float)
    assert sum(plain["budget"].values()) == pytest.approx(1.0, abs=1e-12)
    assert isinstance(plain["verdict"], list)


@pytest.mark.slow
@pytest.mark.parametrize("which", ["probabilistic", "."])
def test_files(demo_files, tmp_path: Path, which):
    folder = tmp_path / "why"
    code, _, err = run("diagnose", demo_files / "results" / which, "--out", folder, "--replicates", 20)
    assert code == 0
    assert err.strip().endswith(f"wrote plots and tables to {folder}")
    names = {path.name for path in folder.iterdir()}
    plots = {"budget", "coverage", "pit", "reliability", "sparsification", "sigma-error", "thresholds", "what-if"}
    assert {f"{plot}.png" for plot in plots} <= names
    tables = {f"probabilistic-{table}.csv" for table in ("budget", "what_if", "calibration", "skill", "numbers")}
    assert tables <= names
    rows = list(csv.DictReader((folder / "probabilistic-budget.csv").read_text().splitlines()))
    assert sum(float(row["share"]) for row in rows) == pytest.approx(1.0, abs=1e-12)
    told = json.loads((folder / "diagnosis.json").read_text())
    assert {result["name"] for result in told["results"]} >= {"probabilistic"}


def test_thresholds_of_other_measures(demo_files):
    code, out, _ = run(
        "diagnose", demo_files / "results" / "probabilistic", "--thresholds-for", "d-ece,nll", "--replicates", 20
    )
    assert code == 0
    rows = [line.split() for line in out.splitlines() if line.startswith(("  PDQ ", "  D-ECE ", "  NLL "))]
    assert {row[0] for row in rows} == {"PDQ", "D-ECE", "NLL"}
    code, out, err = run("diagnose", demo_files / "results" / "probabilistic", "--thresholds-for", "pdk")
    assert (code, out) == (2, "")
    assert "expected measures to be some of pdq, map, lrp" in err
    assert "got 'pdk'. Did you mean pdq?" in err


def test_a_result_without_pdq(demo_files, tmp_path: Path):
    files = [demo_files / "truth.json", demo_files / "probabilistic.json"]
    run("evaluate", *files, "--measures", "nll", "--out", tmp_path / "r")
    code, out, _ = run("diagnose", tmp_path / "r", "--replicates", 20)
    assert code == 0
    assert out.startswith("probabilistic: PDQ not measured, reference\n\n- ")
    assert " nan" not in out


def test_other_files_stay(demo_files, tmp_path: Path):
    (tmp_path / "deterministic-budget.csv").write_text("mine")
    code, _, err = run("diagnose", demo_files / "results" / "deterministic", "--out", tmp_path, "--replicates", 20)
    assert code != 0
    assert "deterministic-budget.csv" in err
    assert (tmp_path / "deterministic-budget.csv").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["deterministic-budget.csv"]


def test_no_result_is_one_line(tmp_path: Path):
    code, out, err = run("diagnose", tmp_path)
    assert (code, out) == (1, "") or (code, out) == (2, "")
    assert len(err.strip().splitlines()) == 1
    assert "contains no evaluation.json" in err
