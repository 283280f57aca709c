"""`probox compare` and the option --intervals."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from tests.cli.in_process import run

from probox import Evaluation
from probox.notes import InputWarning, Note

QUICK = ("--replicates", "50")


def test_table_and_conclusion(demo_files: Path) -> None:
    status, out, err = run("compare", demo_files / "results", *QUICK)
    assert status == 0
    header, *rows, conclusion = out.splitlines()
    assert header.split() == ["deterministic", "probabilistic", "deterministic", "-", "probabilistic", "p"]
    assert [row.split()[0] for row in rows] == [
        "mAP",
        "1-moLRP",
        "PDQ",
        "pPDQ",
        "Sp",
        "Lbl",
        "FG",
        "BG",
        "TP",
        "FP",
        "FN",
    ]
    assert rows[2].startswith("PDQ [%]      30.5 [")
    assert rows[2].endswith("0.020*")
    assert conclusion.startswith("probabilistic is better than deterministic in PDQ by 27.0 points (95% CI ")
    assert conclusion.endswith("p = 0.020, 12 images); in mAP and 1-moLRP they are equal.")
    assert (
        "lower is better: FP, FN; [95% CI] and p-value: 50 bootstrap replicates and permutations of 12 images, seed 0; "
        "* significant difference" in err
    )
    assert "note: only 12 images: confidence intervals" in err


def test_order_and_options(demo_files: Path) -> None:
    folders = [demo_files / "results" / name for name in ("probabilistic", "deterministic")]
    status, out, _ = run(
        "compare",
        *folders,
        *QUICK,
        "--measures",
        "pdq",
        "--per-class",
        "--seed",
        "3",
        "--level",
        "0.8",
        "--json",
    )
    assert status == 0
    found = json.loads(out)
    (pair,) = found["pairs"]
    assert (pair["first"], pair["second"]) == ("probabilistic", "deterministic")
    assert (found["seed"], found["level"], found["replicates"], found["images"]) == (3, 0.8, 50, 12)
    assert next(iter(pair["columns"])) == "PDQ"
    assert "mAP" not in pair["columns"]
    assert pair["columns"]["PDQ"]["difference"]["low"] > 0
    assert pair["classes"]["PDQ"]["star"]["p_adjusted"] >= pair["classes"]["PDQ"]["star"]["p"]
    again = json.loads(run("compare", *folders, *QUICK, "--measures", "pdq", "--seed", "3", "--json")[1])
    assert again["pairs"][0]["columns"]["PDQ"]["p"] == pair["columns"]["PDQ"]["p"]


@pytest.mark.parametrize(
    ("style", "start"), [("markdown", "|  | deterministic |"), ("latex", "\\begin{tabular}"), ("csv", "column,")]
)
def test_formats(demo_files: Path, style: str, start: str) -> None:
    status, out, err = run("compare", demo_files / "results", *QUICK, "--format", style, "--per-class")
    assert status == 0
    assert out.startswith(start)
    assert "star" in out
    assert "better than" not in out
    assert "probabilistic is better than deterministic in PDQ" in err


def test_all_pairs(
    demo_files: Path,
    tmp_path: Path,
    results: dict[str, Evaluation],
) -> None:
    results["probabilistic"].at_threshold(0.6).save(tmp_path / "third")
    folders = (demo_files / "results", tmp_path / "third")
    status, out, err = run("compare", *folders, *QUICK, "--measures", "pdq", "--all-pairs")
    assert status == 0
    assert out.count("Holm's correction for 3 pairs") == 3
    assert (
        str(
            Note(
                "settings-differ",
                first="note: deterministic",
                setting="label",
                a="threshold none",
                second="third",
                b=0.6,
            )
        )
        in err
    )


def test_results_that_cannot_be_compared(
    demo_files: Path,
    tmp_path: Path,
    results: dict[str, Evaluation],
) -> None:
    deterministic = demo_files / "results" / "deterministic"
    status, out, err = run("compare", deterministic)
    assert (status, out) == (1, "")
    assert err == f"probox: {deterministic}: expected two or more results, got one; name another\n"

    result = results["probabilistic"]
    result.select_images(result.dataset.image_ids[:4]).save(tmp_path / "few")
    status, out, err = run("compare", deterministic, tmp_path / "few")
    assert (status, out) == (1, "")
    assert err.startswith("probox: few cannot be compared with deterministic: image ")
    assert err.endswith(
        "and 7 more of deterministic are not in few; evaluate both on the same ground truth and with the same options\n"
    )

    assert run("compare", tmp_path / "nothing", deterministic)[0] == 1


def test_all_measures(demo_files: Path) -> None:
    status, out, _ = run("compare", demo_files / "results", "--replicates", "5", "--measures", "all", "--json")
    assert status == 0
    assert {"PDQ", "mAP", "moLRP"} <= set(json.loads(out)["pairs"][0]["columns"])


# --- evaluate --intervals, table --intervals ---


def test_evaluate_with_intervals(demo_files: Path) -> None:
    files = [demo_files / name for name in ("truth.json", "deterministic.json", "probabilistic.json")]
    status, out, err = run("evaluate", *files[:2], "--intervals")
    assert status == 0
    _, _, numbers, limits, _ = out.splitlines()
    found = json.loads(run("evaluate", *files[:2], "--intervals", "--json")[1])
    low, high = (100 * found["intervals"]["columns"]["PDQ"][end] for end in ("low", "high"))
    assert numbers.split()[2] == "30.5"
    assert limits.split("]")[2].strip() == f"[{low:.1f}, {high:.1f}"
    assert low < 30.53 < high
    assert found["intervals"]["level"] == 0.95
    assert Note("few-images", 12, least=30).to_dict() in found["notes"]
    assert "[95% intervals]: 1,000 bootstrap replicates of 12 images" in err
    assert err.count("only 12 images") == 1
    two = json.loads(run("evaluate", *files, "--intervals", "--measures", "pdq", "--json")[1])["results"]
    assert [next(iter(one["intervals"]["columns"])) for one in two] == ["PDQ", "PDQ"]
    assert "intervals" not in json.loads(run("evaluate", *files[:2], "--json")[1])


def test_one_image_has_numbers_but_no_intervals(demo_files: Path) -> None:
    files = [demo_files / name for name in ("truth.json", "deterministic.json")]
    first = json.loads((demo_files / "truth.json").read_text())["images"][0]["id"]
    status, out, err = run("evaluate", *files, "--image-ids", first, "--intervals")
    assert status == 0
    assert len(out.splitlines()) == 5
    assert "note: no confidence intervals: expected two or more images, got 1\n" in err
    found = json.loads(run("evaluate", *files, "--image-ids", first, "--intervals", "--json")[1])
    assert found["intervals"]["columns"]["PDQ"]["low"] is None


def test_table_with_intervals(demo_files: Path) -> None:
    files = [demo_files / name for name in ("truth.json", "deterministic.json", "probabilistic.json")]
    rows = json.loads(run("table", *files, "--thresholds", "0.3", "0.6", "--intervals", "--json")[1])["rows"]
    assert len({row["intervals"]["columns"]["PDQ"]["low"] for row in rows}) == 4
    text = run("table", *files, "--intervals")[1].splitlines()
    assert [line.split()[0] for line in (text[2], text[4])] == ["deterministic", "probabilistic"]
    assert text[3].strip().startswith("[")
    assert " [" in run("table", *files, "--intervals", "--format", "markdown")[1]
    table = list(csv.DictReader(io.StringIO(run("table", *files, "--intervals", "--format", "csv")[1])))
    columns = rows[0]["intervals"]["columns"]
    assert float(table[0]["1-moLRP low"]) == pytest.approx(1 - columns["moLRP"]["high"])
    assert float(table[0]["PDQ high"]) == columns["PDQ"]["high"]


# --- masks and boxes ---


@pytest.fixture(scope="module")
def two_truths(demo_files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the demo's ground truth, with and without masks."""
    folder = tmp_path_factory.mktemp("two truths")
    truth = json.loads((demo_files / "truth.json").read_text())
    (folder / "masks.json").write_text(json.dumps(truth))
    for annotation in truth["annotations"]:
        del annotation["segmentation"]
    (folder / "boxes.json").write_text(json.dumps(truth))
    return folder


@pytest.mark.parametrize("keep", ["all", "matches", "summary"])
@pytest.mark.parametrize("how", ["another file", "box truth"])
def test_results_against_masks_and_boxes_are_not_compared(
    tmp_path: Path, demo_files: Path, two_truths: Path, keep: str, how: str
) -> None:
    measures = ("--measures", "pdq") if keep == "summary" else ()
    for name, truth in (("a", "masks"), ("b", "boxes"), ("c", "masks")):
        boxed = ("--box-truth",) if how == "box truth" and truth == "boxes" else ()
        file = two_truths / ("masks.json" if boxed else f"{truth}.json")
        out = ("--out", tmp_path / name, "--keep", keep)
        status, printed, _ = run(
            "evaluate", file, f"{name}={demo_files / 'probabilistic.json'}", *measures, *boxed, *out
        )
        assert status == 0
        assert f"; scored against {truth}\n" in printed
    status, _, err = run("compare", *(tmp_path / name / name for name in "abc"), *QUICK)
    assert status == 1
    assert str(InputWarning("regions-differ", masks="a and c", boxes="b", many=2)) in err


def test_a_report_warns_of_results_against_masks_and_boxes(
    tmp_path: Path,
    demo_files: Path,
    two_truths: Path,
) -> None:
    for truth in ("masks", "boxes"):
        run("evaluate", two_truths / f"{truth}.json", demo_files / "deterministic.json", "--out", tmp_path / truth)
    folders = [f"{truth}={tmp_path / truth / 'deterministic'}" for truth in ("masks", "boxes")]
    status, _, err = run("report", *folders, "--out", tmp_path / "report")
    assert status == 0
    assert "warning: masks was scored against masks, boxes against boxes: PDQ is not comparable\n" in err
    files = (two_truths / "masks.json", demo_files / "deterministic.json")
    run("evaluate", *files, "--background", "mask", "--out", tmp_path / "other")
    folders[1] = f"other={tmp_path / 'other' / 'deterministic'}"
    _, _, err = run("report", *folders, "--out", tmp_path / "report")
    assert (
        "warning: masks was evaluated with background box, other with mask: their numbers are not comparable\n" in err
    )


@pytest.mark.parametrize("truth", ["masks", "boxes"])
def test_tables_say_what_detections_were_scored_against(demo_files: Path, two_truths: Path, truth: str) -> None:
    _, _, err = run("table", two_truths / f"{truth}.json", demo_files / "deterministic.json")
    assert f"convention: reference; scored against {truth}; 12 images" in err
    _, _, err = run("table", two_truths / f"{truth}.json", demo_files / "deterministic.json", "--measures", "map")
    assert "scored against" not in err
