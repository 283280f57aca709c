"""`probox evaluate --csv`: content and place of the tables; files of users are not replaced."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest
from tests.cli.in_process import run

import probox
from probox import Detections, GroundTruth
from probox.formats import write_coco_results

TABLES = [
    "confusion.csv", "detections.csv", "objects.csv", "per_class.csv", "per_image.csv", "per_size.csv", "summary.csv",
]  # fmt: skip
NAMES = ['cup, "the" big\r\none', "dög"]


def rows_of(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def files_in(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.csv"))


def same(text: str, value: object) -> bool:
    """Return whether a field is bit-identical to a value; empty is missing."""
    if value is None or value != value:
        return text == ""
    return float(text) == value if isinstance(value, float) else text == str(value)


@pytest.fixture(scope="module")
def files(golden_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a truth and the detections of two detectors, which are the same."""
    folder = tmp_path_factory.mktemp("files")
    shutil.copy(golden_dir / "mixed" / "ground_truth.json", folder / "truth.json")
    for name in ("deterministic", "probabilistic"):
        shutil.copy(golden_dir / "mixed" / "detections.json", folder / f"{name}.json")
    return folder


def test_every_number_is_there_in_full(files: Path, tmp_path: Path) -> None:
    assert run("evaluate", files / "truth.json", files / "probabilistic.json", "--csv", tmp_path / "t")[0] == 0
    assert files_in(tmp_path / "t") == TABLES
    truth = probox.read_truth(files / "truth.json")
    result = probox.evaluate(truth, probox.read_detections(files / "probabilistic.json", truth))
    tables = {
        "detections": result.detections, "objects": result.objects,
        "per_class": result.per_class(), "per_size": result.per_size(), "per_image": result.per_image(),
        "confusion": result.confusion(),
    }  # fmt: skip
    for name, table in tables.items():
        rows, flat = rows_of(tmp_path / "t" / f"{name}.csv"), table.flat()
        assert len(rows) == len(flat) > 0
        assert list(rows[0]) == list(flat.columns)
        for column, values in flat.columns.items():
            assert all(same(row[column], value) for row, value in zip(rows, values.tolist(), strict=True)), column
    (summary,) = rows_of(tmp_path / "t" / "summary.csv")
    words = {"name": "probabilistic", "convention": "reference", "images": "40", "objects": "130", "detections": "160"}
    assert list(summary) == [*words, *result.summary()]
    assert summary.items() >= words.items()
    assert all(same(summary[key], value) for key, value in result.summary().items())


def test_parts_of_parquet_files_have_the_same_tables(files: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    truth, found = files / "truth.json", files / "probabilistic.json"
    assert run("convert", truth, tmp_path / "truth.parquet")[0] == 0
    assert run("convert", found, tmp_path / "probabilistic.parquet", "--truth", truth)[0] == 0
    assert run("evaluate", truth, found, "--csv", tmp_path / "json")[0] == 0
    assert (
        run("evaluate", tmp_path / "truth.parquet", tmp_path / "probabilistic.parquet", "--csv", tmp_path / "parquet")[
            0
        ]
        == 0
    )
    for name in TABLES:
        assert (tmp_path / "json" / name).read_bytes() == (tmp_path / "parquet" / name).read_bytes(), name


def test_names_come_back_whatever_they_hold(tmp_path: Path) -> None:
    truth = GroundTruth.from_boxes(NAMES, {7: (64, 48)}, [7], [[10, 20, 40, 40]], [0])
    named = truth.replace(dataset=truth.dataset.replace(file_names=['a,"b"\n.jpg']))
    found = Detections(classes=NAMES, image_ids=[7], boxes=[[10, 20, 40, 40]], label_probs=[[0.8, 0.1]])
    data = {
        "images": [{"id": 7, "width": 64, "height": 48, "file_name": 'a,"b"\n.jpg'}],
        "categories": [{"id": n + 1, "name": name} for n, name in enumerate(NAMES)],
        "annotations": [{"id": 1, "image_id": 7, "category_id": 1, "bbox": [10, 20, 30, 20], "area": 600, "iscrowd": 0,
                         "segmentation": [[10, 20, 40, 20, 40, 40, 10, 40]]}],
    }  # fmt: skip
    (tmp_path / "truth.json").write_text(json.dumps(data), encoding="utf-8")
    write_coco_results(tmp_path / "found.json", found, named.dataset)
    assert run("evaluate", tmp_path / "truth.json", tmp_path / "found.json", "--csv", tmp_path / "t")[0] == 0
    (row,) = rows_of(tmp_path / "t" / "detections.csv")
    assert (row["class"], row["file_name"], row["verdict"]) == (NAMES[0], 'a,"b"\n.jpg', "TP")
    assert [row["class"] for row in rows_of(tmp_path / "t" / "per_class.csv")] == NAMES


def test_several_files_have_a_folder_each(files: Path, tmp_path: Path) -> None:
    truth, deterministic, probabilistic = (
        files / f"{name}.json" for name in ("truth", "deterministic", "probabilistic")
    )
    folder = tmp_path / "t"
    status, _, err = run("evaluate", truth, deterministic, probabilistic, "--csv", folder)
    assert status == 0
    assert f"tables in {folder / 'deterministic'}, {folder / 'probabilistic'}" in err.replace("\n", "")
    assert files_in(folder) == [f"{name}/{table}" for name in ("deterministic", "probabilistic") for table in TABLES]
    assert [rows_of(folder / name / "summary.csv")[0]["name"] for name in ("deterministic", "probabilistic")] == [
        "deterministic",
        "probabilistic",
    ]
    assert run("evaluate", truth, deterministic, probabilistic, "--csv", folder)[0] == 0  # a run of its own is replaced
    status, _, err = run("evaluate", truth, deterministic, "--csv", folder)
    assert status == 1
    assert "contains tables of several files, cannot add tables of one; choose another folder" in err
    assert run("evaluate", truth, deterministic, "--csv", tmp_path / "one")[0] == 0
    status, _, err = run("evaluate", truth, deterministic, probabilistic, "--csv", tmp_path / "one")
    assert status == 1
    assert "contains tables of one file, cannot add tables of several; choose another folder" in err
    assert files_in(tmp_path / "one") == TABLES


def test_files_of_others_stay_and_nothing_is_written_beside_them(files: Path, tmp_path: Path) -> None:
    truth, found = files / "truth.json", files / "probabilistic.json"
    (tmp_path / "objects.csv").write_text("mine")
    (tmp_path / "notes.txt").write_text("mine too")
    status, out, err = run("evaluate", truth, found, "--csv", tmp_path)
    assert (status, out) == (1, "")  # refused before any work was done
    assert "objects.csv" in err
    assert files_in(tmp_path) == ["objects.csv"]
    (tmp_path / "objects.csv").unlink()
    assert run("evaluate", truth, found, "--csv", tmp_path)[0] == 0
    assert (tmp_path / "notes.txt").read_text() == "mine too"
    with open(tmp_path / "summary.csv", "a", encoding="utf-8") as file:
        file.write("mine\n")
    status, _, err = run("evaluate", truth, found, "--csv", tmp_path)
    assert status == 1
    assert "was changed since" in err
    status, _, err = run("evaluate", truth, found, "--csv", truth)
    assert status == 1
    assert "is a file, expected a folder" in err


def test_json_holds_the_groups(files: Path, tmp_path: Path) -> None:
    args = (files / "truth.json", files / "probabilistic.json", "--per-class", "--per-size", "--json")
    status, out, err = run("evaluate", *args, "--csv", tmp_path / "t")
    assert (status, err) == (0, "")
    told = json.loads(out)
    first = rows_of(tmp_path / "t" / "per_class.csv")[0]
    numbers = {key: float(text) for key, text in first.items() if key != "class"}
    assert numbers == told["per_class"][first["class"]]
    assert {"objects", "detections", "mAP", "moLRP", "PDQ"} <= set(told["per_size"]["small"])
    assert not any(note["code"] == "no-groups" for note in told["notes"])
