"""`probox rank`: table, JSON, image ids and wrong input."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from tests.cli.in_process import run

import probox
from probox import Detections, GroundTruth
from probox.notes import Note


@pytest.fixture
def truth(demo_files: Path) -> GroundTruth:
    return probox.read_truth(demo_files / "truth.json")


def ranked(*arguments: object) -> dict[str, list[dict[str, object]]]:
    code, out, err = run("rank", *arguments, "--json")
    assert (code, err) == (0, "")
    answer: dict[str, list[dict[str, object]]] = json.loads(out)
    return answer


@pytest.mark.parametrize("by", ["entropy", "spread", "margin"])
def test_the_same_as_in_python(demo_files: Path, truth: GroundTruth, by: str) -> None:
    found = probox.read_detections(demo_files / "probabilistic.json", truth)
    expected = probox.rank(found, by, aggregate="mean", label_threshold=0.4)
    options = ("--by", by, "--aggregate", "mean", "--label-threshold", 0.4)
    rows = ranked(demo_files / "probabilistic.json", *options)["images"]
    assert [row["image_id"] for row in rows] == expected.image_ids.tolist()
    assert [row["value"] for row in rows] == pytest.approx(expected.values.tolist())
    assert [row["detections"] for row in rows] == expected.detections.tolist()


def test_ids_are_what_evaluate_takes(demo_files: Path, tmp_path: Path) -> None:
    ids = tmp_path / "next.json"
    code, out, err = run("rank", demo_files / "probabilistic.json", "--top", 3, "--out", ids)
    assert (code, err) == (0, f"wrote 3 image ids to {ids}\n")
    heading, *lines = out.splitlines()
    assert heading.split() == ["image", "entropy", "detections"]
    assert [int(line.split()[0]) for line in lines] == json.loads(ids.read_text())
    code, out, _ = run(
        "evaluate", demo_files / "truth.json", demo_files / "probabilistic.json", "--image-ids", ids, "--json"
    )
    assert code == 0
    # Its own list is replaced, and chosen from.
    code, _, err = run("rank", demo_files / "probabilistic.json", "--by", "margin", "--top", 2, "--out", ids)
    assert code == 0
    assert err.startswith("wrote 2 image ids to ")
    assert len(ranked(demo_files / "probabilistic.json", "--image-ids", ids)["images"]) == 2


def test_other_files_are_not_replaced(demo_files: Path, tmp_path: Path) -> None:
    notes = tmp_path / "notes.json"
    for mine in ('{"mine": 1}', "[1, 2]", "[\n 1,\n 2\n]\n"):  # a list of ids, too
        notes.write_text(mine)
        code, _, err = run("rank", demo_files / "probabilistic.json", "--out", notes)
        assert code == 1
        assert err.endswith(
            "exists and does not contain image ids that `probox rank` wrote; choose another name, or move it\n"
        )
        assert notes.read_text() == mine
    ids = tmp_path / "ids.json"
    ids.write_text("[1, 2]")
    code, _, err = run("rank", demo_files / "probabilistic.json", "--image-ids", ids, "--out", ids)
    assert code == 1
    assert "would replace what it is made from" in err


def test_truth_adds_names_and_images_without_detections(demo_files: Path, tmp_path: Path, truth: GroundTruth) -> None:
    everything = json.loads((demo_files / "probabilistic.json").read_text())
    some = tmp_path / "some.json"
    if isinstance(everything, list):
        first = truth.image_ids[0]
        everything = [entry for entry in everything if entry["image_id"] != first]
    else:
        everything["detections"][0] = []
    some.write_text(json.dumps(everything))
    answer = ranked(some, "--truth", demo_files / "truth.json")
    last = answer["images"][-1]
    assert len(answer["images"]) == len(truth.image_ids)
    assert (last["image_id"], last["value"], last["detections"]) == (int(truth.image_ids[0]), None, 0)
    assert last["file_name"] == truth.dataset.file_names[0]
    assert answer["notes"] == [Note("images-last", 1, total=len(truth.image_ids)).to_dict()]
    code, out, _ = run("rank", some, "--truth", demo_files / "truth.json", "--format", "csv")
    rows = list(csv.reader(out.splitlines()))
    assert code == 0
    assert rows[0] == ["image", "entropy", "detections", "file"]
    assert rows[-1] == [str(last["image_id"]), "", "0", last["file_name"]]
    assert float(rows[1][1]) == answer["images"][0]["value"]


def test_every_format_without_truth(demo_files: Path, tmp_path: Path, truth: GroundTruth) -> None:
    source = demo_files / "probabilistic.json"
    values = {}
    for name in ("a.coco.json", "a.rvc1.json", "a.parquet"):
        code, _, err = run("convert", source, tmp_path / name, "--truth", demo_files / "truth.json")
        assert code == 0, err
        answer = ranked(tmp_path / name, "--by", "spread")
        values[name] = [row["value"] for row in answer["images"]]
        assert ("image ids count the file's images from 0" in str(answer["notes"])) == (name == "a.rvc1.json")
    for name in values:
        assert values[name] == pytest.approx(values["a.parquet"], rel=1e-5), name


def test_coco_results_with_a_score_alone(tmp_path: Path) -> None:
    entries = [
        {"image_id": 4, "category_id": c, "bbox": [1, 2, 30, 40], "score": s} for c, s in ((1, 0.9), (2, 0.8), (7, 0.9))
    ]
    (tmp_path / "found.json").write_text(json.dumps(entries))
    answer = ranked(tmp_path / "found.json", "--by", "margin")
    assert answer["images"] == [{"image_id": 4, "value": pytest.approx(0.2 + 0.4 + 0.2), "detections": 3}]
    assert answer["notes"] == [Note("background-of-scores", 3, total=3).to_dict()]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("deterministic.json", "--by", "spread"),
            "deterministic.json: no box has a covariance to rank by; rank by entropy or margin",
        ),
        (("empty.json",), "empty.json: no detections to rank"),
        (("nowhere.json",), "nowhere.json"),
        (("probabilistic.json", "--image-ids", "x"), "expected image ids, but got 'x'"),
        (("probabilistic.json", "--out", "nowhere/ids.json"), "the folder of this file does not exist"),
        (
            ("probabilistic.json", "--image-ids", "123456", "--truth", "truth.json"),
            "--image-ids: image 123456: not in the ground truth; leave it out",
        ),
    ],
)
def test_wrong_input_is_one_line(
    demo_files: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    words: str,
) -> None:
    for name in ("deterministic.json", "probabilistic.json", "truth.json"):
        (tmp_path / name).write_bytes((demo_files / name).read_bytes())
    (tmp_path / "empty.json").write_text("[]")
    monkeypatch.chdir(tmp_path)
    code, out, err = run("rank", *arguments)
    assert (code, out) == (1, "")
    assert words in err
    assert err.count("\n") == 1


def test_parquet_can_be_drawn_without_truth(demo_files: Path, tmp_path: Path) -> None:
    found = Detections(classes=["cup"], image_ids=[7], boxes=[[10, 20, 50, 60]], label_probs=[[0.9]])
    probox.write_parquet(tmp_path / "found.parquet", found)
    code, _, err = run("draw", tmp_path / "found.parquet", "--out", tmp_path / "pictures")
    assert (code, err) == (0, f"1 picture written to {tmp_path / 'pictures'}\n")
