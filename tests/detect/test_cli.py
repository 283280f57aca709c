"""`probox detect` as people call it."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import pytest
from detect_graphs import small_yolo
from tests.readers import read_parquet

from probox.formats.parquet.sets import open_detections

from .conftest import Run


def test_json_says_what_happened(run: Run, ssd: Path, names: Path, photos: Path, tmp_path: Path) -> None:
    (photos / "99.jpg").write_bytes(b"oops")
    graph = tmp_path / "masked.onnx"
    masks = ("--uncertainty", "mc-dropout", "--passes", 3, "--dropout-rate", 0.2, "--dropout-layers", "box")
    more = ("--classes", names, "--json", "--save-graph", graph, "--batch", 4, "--threads", 1)
    status, printed, words = run(ssd, "--images", photos, "--out", tmp_path / "f.coco.json", *masks, *more)
    assert status == 0
    said = json.loads(printed)
    assert said["family"] == "ssd"
    assert said["images"] == 5
    assert said["dropout_layers"] == ["box.depthwise", "box.point"]
    assert "99.jpg" in said["skipped"][0]
    assert "99.jpg" in words
    cost = said["cost"]
    assert cost["plain"] >= cost["masked"] > 0
    assert cost["plain"] - cost["disappear"] == cost["remain"] == cost["masked"] - cost["appear"]
    changed = f"{cost['disappear']} disappear and {cost['appear']} appear"
    assert f"{cost['remain']} of {cost['plain']} detections above 0.5 remain, {changed}" in words
    kept = onnx.load(str(graph))
    onnx.checker.check_model(kept)
    assert [tensor.name for tensor in kept.graph.input[1:]] == [f"probox_dropout_{number}_mask" for number in (0, 1)]
    entries = json.loads((tmp_path / "f.coco.json").read_text())
    assert said["detections"] == len(entries) > 0
    assert all(len(entry["all_scores"]) == 3 and len(entry["covars"]) == 2 for entry in entries)


def test_without_out_the_file_is_called_like_the_model(
    run: Run, ssd: Path, names: Path, photos: Path, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    line = (ssd, "--images", photos, "--classes", names, "--threads", 1)
    assert run(*line)[0] == 0
    entries = json.loads((tmp_path / "ssd.coco.json").read_text())
    assert {entry["image_id"] for entry in entries} == {3, 7, 12, 20}
    status, _, words = run(*line)
    assert status == 1
    assert "ssd.coco.json: already exists; use --out ssd.coco.json to replace it" in words
    (photos / "3.png").rename(photos / "cat.png")
    status, _, words = run(*line)
    assert status == 0
    assert "note: images are numbered from 0 in order of their paths, because cat.png is not a number" in words
    assert "to use its image ids (--truth FILE)" in words
    assert json.loads((tmp_path / "ssd.rvc1.json").read_text())["img_names"] == ["12.png", "20.png", "7.png", "cat.png"]
    status, _, words = run(*line, "--out", "x.coco.json")
    assert status == 1
    assert "but got cat.png; give the ground truth (--truth FILE), or write .rvc1.json" in words


def test_photos_may_follow_as_a_shell_writes_them(run: Run, names: Path, photos: Path, tmp_path: Path) -> None:
    model = small_yolo(tmp_path / "m.onnx", shape=("n", 3, "h", "w"), out_shape=("n", 7, "cells"))
    out = tmp_path / "found.coco.json"
    line = [model, "--family", "yolov8", "--classes", names, "--out", out, "--json", "--threads", 1]
    chosen = ["--images", photos / "3.png", photos / "7.png", "--images", photos / "20.png"]
    status, printed, _ = run(*line, *chosen, "--size", "96x64", "--batch", 2)
    assert status == 0
    said = json.loads(printed)
    assert said["images"] == 3
    assert said["notes"][0]["message"].startswith("category ids are class numbers in the detector's order (1 is cup)")
    assert "--truth FILE" in said["notes"][0]["message"]
    wide = out.read_text()
    assert run(*line, *chosen, "--size", "64", "--workers", 3)[0] == 0
    assert out.read_text() != wide


def test_options_of_another_uncertainty_are_said(
    run: Run, ssd: Path, names: Path, photos: Path, tmp_path: Path
) -> None:
    line = [ssd, "--images", photos / "3.png", "--classes", names, "--out", tmp_path / "x.json", "--json"]
    mistaken = ["--relative-std", 0.5, "--passes", 20]  # what they are by default would be a mistake as well
    said = json.loads(run(*line, "--uncertainty", "nms-clusters", *mistaken)[1])["notes"]
    assert [note["message"] for note in said[:2]] == [
        "--relative-std has no effect here: it is for --uncertainty constant",
        "--passes has no effect here: it is for --uncertainty mc-dropout",
    ]
    said = json.loads(run(*line, "--uncertainty", "constant", "--relative-std", 0.5)[1])["notes"]
    assert not [note for note in said if note["code"] == "idle-option"]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--out", "x.json", "--size", "0x5"), 2, "expected a size such as 640x480, or 640"),
        (("--out", "x.json", "--size", "64x64x3"), 2, "expected a size such as 640x480, or 640"),
        (("--out", "x.json", "--size", "64", "--classes", "NAMES"), 1, "the graph's input size 32 x 32"),
        (("--out", "x.json", "--workers", "0"), 2, "--workers"),
        (("--out", "x.json", "--truth", "nowhere.json"), 1, "nowhere.json"),
        (("--out", "x.json", "--images", "nowhere"), 1, "nowhere: no such file or folder"),
        (("--out", "x.json"), 1, "--classes"),  # three classes are not COCO's
        (("--out", "x.txt"), 1, "file name"),
        (("--out", "x.json", "--family", "yolov9"), 2, "yolov9"),
        (("--out", "x.json", "--uncertainty", "edge-distribution", "--classes", "NAMES"), 1, "edge distributions"),
        (("--out", "x.json", "--save-graph", "g.onnx", "--classes", "NAMES"), 2, "mc-dropout"),
        (("--out", "x.json", "--dropout-rate", "1.5"), 2, "1.5"),
        (
            ("--out", "x.json", "--recipe", "paper", "--min-std", "2"),
            1,
            "--shrinkage and --border pin do not apply to the paper's recipe",
        ),
        (("--out", "x.json", "--recipe", "paper", "--border", "pin"), 1, "--border pin do not apply to the paper's"),
        (("--out", "x.json", "--uncertainty", "mc-dropout", "--dropout-layers", " "), 1, "but got nothing"),
        (
            ("--out", "x.json", "--classes", "NAMES", "--uncertainty", "mc-dropout", "--dropout-layers", "existing"),
            1,
            "ssd.onnx: the graph has no Dropout nodes",
        ),
    ],
)
def test_mistakes_are_one_line(
    run: Run, ssd: Path, names: Path, photos: Path, tmp_path: Path, monkeypatch, arguments, status: int, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    given = [str(names) if argument == "NAMES" else argument for argument in arguments]
    got, printed, words = run(ssd, "--images", photos, *given)
    assert got == status
    assert message in words
    assert printed == ""


def test_help_loads_no_runtime() -> None:
    import subprocess
    import sys

    code = (
        "import sys\nfrom probox.cli import main\n"
        "try:\n main(['detect', '--help'])\nexcept SystemExit:\n pass\n"
        "assert not {'onnx', 'onnxruntime', 'PIL', 'torch'} & set(sys.modules), 'loaded too much'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.skipif(find_spec("pyarrow") is None, reason="needs pyarrow")
def test_a_folder_of_shards(run: Run, ssd: Path, names: Path, photos: Path, tmp_path: Path) -> None:
    line = (ssd, "--images", photos, "--classes", names, "--threads", 1)
    assert run(*line, "--out", tmp_path / "found.parquet")[0] == 0
    status, out, err = run(*line, "--out", tmp_path / "found", "--shards", 3, "--json")
    assert status == 0, err
    assert json.loads(out)["out"] == str(tmp_path / "found")
    one, several = read_parquet(tmp_path / "found.parquet"), read_parquet(tmp_path / "found")
    assert len(one)
    for name in ("image_ids", "boxes", "label_probs", "scores"):
        np.testing.assert_array_equal(getattr(one, name), getattr(several, name))
    assert open_detections(tmp_path / "found").shards == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "found", "found.parquet", "names.txt", "photos", "ssd.onnx",
    ]  # fmt: skip
    assert run(*line, "--out", tmp_path / "found", "--shards", 2)[0] == 0  # an earlier set is replaced
    assert open_detections(tmp_path / "found").shards == 2


def test_a_url(
    run: Run, ssd: Path, names: Path, photos: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    pytest.importorskip("fsspec")
    pytest.importorskip("pyarrow")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    line = (ssd, "--images", photos, "--classes", names, "--threads", 1)
    status, _, err = run(*line, "--out", f"file://{tmp_path}/found", "--shards", 2)
    assert status == 0, err
    assert len(read_parquet(tmp_path / "found"))
    assert list((tmp_path / "here").iterdir()) == []


def test_what_is_refused_before_any_work(run: Run, ssd: Path, names: Path, photos: Path, tmp_path: Path) -> None:
    line = (ssd, "--images", photos, "--classes", names, "--threads", 1)
    for more, message in (
        (("--out", photos, "--shards", 2), "is not empty, and probox did not write its files"),
        (("--out", photos), "is a folder, expected a file: name a file, or add --shards N"),
        (("--shards", 2), "--shards needs --out"),
        (("--out", tmp_path / "x", "--shards", 0), "0 is not in the range"),
    ):
        status, _, err = run(*line, *more)
        assert (status in (1, 2), message in err) == (True, True), err
    (photos / "3.png").rename(photos / "cat.png")
    status, _, err = run(*line, "--out", tmp_path / "found", "--shards", 2)
    assert (status, "expected file names that are distinct numbers, the image ids of Parquet" in err) == (
        1,
        True,
    )
    assert not (tmp_path / "found").exists()
