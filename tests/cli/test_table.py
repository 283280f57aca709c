"""`probox table`, and the tables of `probox evaluate`: the paper's Table 1."""

from __future__ import annotations

import json

import pytest
from tests.cli.in_process import probox

from probox.cli.console import file_title


@pytest.fixture(scope="module")
def files(golden_dir):
    folder = golden_dir / "mixed"
    return folder / "ground_truth.json", folder / "detections.json"


def test_one_row_per_detector_and_threshold(files):
    truth, found = files
    done = probox("table", truth, f"one={found}", found, "--thresholds", "0.5", "0.05")
    assert done.returncode == 0, done.stderr
    header, _, *rows = done.stdout.splitlines()
    names = ["mAP", "1-moLRP", "PDQ", "pPDQ", "Sp", "Lbl", "FG", "BG", "TP", "FP", "FN"]
    assert header.replace("mAP, scores > threshold", "mAP").split()[2:] == names
    assert [row.split("  ")[0] for row in rows] == ["one (0.5)", "one (0.05)", "detections (0.5)", "detections (0.05)"]


def test_a_threshold_gives_what_evaluate_gives(files):
    truth, found = files
    rows = json.loads(probox("table", truth, f"x={found}", "--thresholds", "0.7", "--json").stdout)["rows"]
    alone = json.loads(probox("evaluate", truth, found, "--label-threshold", "0.7", "--json").stdout)
    assert rows[0]["summary"] == pytest.approx(alone["summary"])
    assert rows[0]["threshold"] == 0.7


@pytest.mark.parametrize(
    ("style", "marked"), [("markdown", "**"), ("latex", r"\textbf{"), ("text", "*"), ("csv", "Approach")]
)
def test_formats(files, style, marked):
    truth, found = files
    done = probox("table", truth, f"a_b={found}", f"c={found}", "--thresholds", "0.9", "0.1", "--format", style)
    assert done.returncode == 0, done.stderr
    assert marked in done.stdout
    if style == "latex":
        assert r"a\_b (0.9)" in done.stdout
        assert done.stdout.count(r"\\") == 5


def test_table_is_evaluate_with_a_format(files):
    truth, found = files
    given = (truth, f"one={found}", found)
    assert probox("table", *given).stdout == probox("evaluate", *given, "--format", "text").stdout
    given = (*given, "--thresholds", "0.5", "0.05")
    assert probox("table", *given).stdout == probox("evaluate", *given).stdout
    assert probox("table", *given, "--json").stdout == probox("evaluate", *given, "--json").stdout


def test_a_job_summary(demo_files):
    given = (
        "evaluate",
        demo_files / "truth.json",
        demo_files / "deterministic.json",
        demo_files / "probabilistic.json",
        "--per-size",
    )
    done = probox(*given, "--format", "github")
    assert done.returncode == 0, done.stderr
    title, table, reading, sizes, *_ = done.stdout.split("\n\n")
    assert title == "### Evaluation"
    assert probox(*given, "--format", "markdown").stdout.split("\n\n")[0] == table
    assert reading.startswith("<sub>lower is better: FP, FN; convention: reference")
    assert sizes.startswith("| Size (deterministic) |")


def test_titles_of_files():
    assert file_title("a/b.rvc1.json.gz") == "b.rvc1"
    assert file_title(".json") == "detections"
