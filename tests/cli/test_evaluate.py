"""`probox evaluate`: files and exit codes, some in a separate process."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys

import pytest
from tests.cli.in_process import probox

from probox import Evaluation
from probox.measures.registry import measure_names, table_columns

SUMMARY = ["PDQ", "pPDQ", "spatial", "label", "foreground", "background", "TP", "FP", "FN"]
BOXES = ["mAP", "AP50", "AP75", "moLRP", "moLRP_loc", "moLRP_fp", "moLRP_fn"]


def in_a_process(*args, **env):
    """Run the command line in a separate process."""
    command = [sys.executable, "-c", "from probox.cli import main; main()", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **env}, check=False, timeout=120)


@pytest.fixture(scope="module")
def mixed(golden_dir):
    return golden_dir / "mixed" / "ground_truth.json", golden_dir / "mixed" / "detections.json"


def test_prints_the_papers_table(mixed):
    done = in_a_process("evaluate", *mixed)
    assert done.returncode == 0, done.stderr
    header, units, row, note = done.stdout.splitlines()
    assert header.split() == ["mAP", "1-moLRP", "PDQ", "pPDQ", "Sp", "Lbl", "FG", "BG", "TP", "FP", "FN"]
    assert units.split() == ["[%]"] * 8
    assert row.split()[2:] == ["7.80", "26.49", "22.52", "50.81", "38.16", "62.00", "66", "94", "64"]
    assert "reference" in note
    assert "40 images, 130 objects, 160 detections" in done.stderr


def test_json_is_one_object_and_nothing_else(mixed):
    done = in_a_process("evaluate", *mixed, "--json")
    result = json.loads(done.stdout)
    assert list(result["summary"]) == SUMMARY + BOXES
    assert result["convention"]["name"] == "reference"
    assert result["counts"] == {"images": 40, "objects": 130, "detections": 160}
    assert done.stderr == ""


def test_help_names_the_measures():
    told = " ".join(probox("evaluate", "--help").stdout.split())
    names = told.split("Metrics, separated by commas: ")[1].split("; or `all`. [default: pdq,map,lrp]")[0]
    assert tuple(names.replace("- ", "-").split(", ")) == measure_names()


@pytest.mark.parametrize(
    ("words", "heading"), [((), "Evaluate:"), (("calibrate",), "Commands:"), (("experiment",), "Commands:")]
)
def test_summaries_of_commands_are_not_truncated(words, heading):
    listed = probox(*words, "--help").stdout.split(f"\n{heading}\n")[1]
    assert "..." not in listed


def test_chosen_measures_only(mixed):
    result = json.loads(probox("evaluate", *mixed, "--measures", "map", "--json").stdout)
    assert list(result["summary"]) == ["mAP", "AP50", "AP75"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--assignment", "greedy"], "expected.greedy.json"),
        (["--background", "mask"], "expected.segment.json"),
        (["--box-truth"], "expected.bbox_gt.json"),
        (["--preset", "paper"], "expected.paper.json"),
    ],
)
def test_options_reach_the_measure(golden_dir, mixed, options, expected):
    want = json.loads((golden_dir / "mixed" / expected).read_text())["summary"]
    got = json.loads(probox("evaluate", *mixed, *options, "--json").stdout)["summary"]
    assert got["PDQ"] == pytest.approx(want["PDQ"], abs=1e-6)
    assert [got[name] for name in ("TP", "FP", "FN")] == [want[name] for name in ("TP", "FP", "FN")]


def test_out_keeps_the_whole_evaluation(mixed, tmp_path):
    done = probox("evaluate", *mixed, "--out", tmp_path / "kept", "--json")
    kept = tmp_path / "kept" / "detections"
    assert Evaluation.load(kept).summary() == pytest.approx(json.loads(done.stdout)["summary"], nan_ok=True)
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["detections"]
    assert sorted(path.name for path in kept.iterdir()) == ["evaluation.json", "tables.npz"]


def test_empty_inputs_have_defined_results(tmp_path):
    (tmp_path / "truth.json").write_text(json.dumps({"images": [], "annotations": [], "categories": []}))
    (tmp_path / "none.json").write_text("[]")
    done = probox("evaluate", "truth.json", "none.json", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)["summary"]
    assert summary["PDQ"] is None
    assert summary["mAP"] is None
    assert summary["TP"] == summary["FP"] == summary["FN"] == 0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "empty"),
        ("[{", "line 1"),
        ('{"classes": ["cup"]}', "detections"),
        ('[{"image_id": 100, "category_id": 1, "bbox": [1, 2, 3], "score": 0.5}]', "bbox"),
        ('[{"image_id": 100, "category_id": 1, "bbox": [1, 2, 3, "4"], "score": 0.5}]', "bbox"),
        ('[{"image_id": 100, "category_id": 999, "bbox": [1, 2, 3, 4], "score": 0.5}]', "999"),
        ('[{"image_id": 100, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 7}]', "score"),
    ],
)
def test_bad_files_are_one_line_and_exit_1(mixed, tmp_path, content, words):
    path = tmp_path / "bad.json"
    path.write_text(content)
    done = probox("evaluate", mixed[0], path, "--out", tmp_path / "kept")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "bad.json" in done.stderr
    assert words in done.stderr
    assert not (tmp_path / "kept").exists()


def test_folders_that_are_files(mixed, tmp_path):
    (tmp_path / "file").write_text("")
    done = probox("evaluate", *mixed, "--out", tmp_path / "file")
    assert done.returncode == 1
    assert "file" in done.stderr
    assert "Traceback" not in done.stderr


def test_label_threshold_and_weight(mixed):
    all_of_them = json.loads(probox("evaluate", *mixed, "--json").stdout)
    some = json.loads(probox("evaluate", *mixed, "--label-threshold", "0.9", "--json").stdout)
    assert some["counts"]["detections"] < all_of_them["counts"]["detections"]
    assert any(note["code"] == "below-threshold" for note in some["notes"])
    spatial = json.loads(probox("evaluate", *mixed, "--label-weight", "0", "--json").stdout)["summary"]
    assert spatial["pPDQ"] == pytest.approx(spatial["spatial"])
    assert math.isfinite(spatial["PDQ"])


def test_numbers_of_groups(mixed):
    told = json.loads(probox("evaluate", *mixed, "--measures", "pdq,nll", "--per-class", "--per-size", "--json").stdout)
    assert list(told["per_size"]) == ["small", "medium", "large"]
    assert {"PDQ", "NLL", "TP"} <= set(next(iter(told["per_class"].values())))
    assert sum(numbers["FN"] + numbers["TP"] for numbers in told["per_class"].values()) == (
        told["summary"]["FN"] + told["summary"]["TP"]
    )
    text = probox("evaluate", *mixed, "--measures", "pdq,nll", "--per-class", "--per-size").stdout
    assert "\nClass " in text
    assert "\nSize " in text
    plain = json.loads(probox("evaluate", *mixed, "--json").stdout)
    assert "per_class" not in plain


def test_all_measures_have_a_row_with_unit_and_direction(mixed):
    lines = probox("evaluate", *mixed, "--measures", "all").stdout.splitlines()
    assert lines[0].split() == ["metric", "unit", "better", "value"]
    about = {line.split()[0]: line.split()[1:-1] for line in lines[1:-1]}
    assert len(about) == len(table_columns()) - 2  # without those of masks, which the detections do not have
    assert {" ".join(words[1:]) for words in about.values()} == {"higher", "lower", "near 4", "near 1", "near 90", "-"}
    assert [about[name][0] for name in ("PDQ", "TP", "NLL", "energy", "AUSE")] == ["%", "count", "nats", "px", "-"]
    assert max(map(len, lines)) < 80
